//! Files of `compare --keep`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| orthant_fuzz::journal(bytes));
