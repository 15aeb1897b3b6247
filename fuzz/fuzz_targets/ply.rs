//! Vertices of PLY files.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| orthant_fuzz::read(&["a.ply"], bytes));
