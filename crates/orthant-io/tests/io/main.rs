//! Reading and writing, from the outside. The fixtures are written by `make.py` beside them.

mod arrow;
mod common;
mod files;
mod hdf5;
mod header;
mod limits;
mod matching;
mod mutants;
mod numpy;
mod others;
mod parquet;
mod parts;
mod ply;
mod robust;
mod sound;
mod text;
mod write;
