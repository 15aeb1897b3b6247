//! NumPy arrays.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| orthant_fuzz::read(&["a.npy"], bytes));
