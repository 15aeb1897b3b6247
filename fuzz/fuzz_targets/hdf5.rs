//! HDF5 files and annotated matrices.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| orthant_fuzz::read(
    &["a.h5", "a.h5ad", "a.h5:points"],
    bytes
));
