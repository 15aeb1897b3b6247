//! The readers, from the outside. The fixtures are written by `tests/fixtures/make.py`.

mod common;
mod files;
mod numpy;
mod others;
mod parquet;
mod ply;
mod robust;
mod text;
mod write;
