//! Parquet tables.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| orthant_fuzz::read(&["a.parquet"], bytes));
