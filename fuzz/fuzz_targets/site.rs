//! See `mizzen_fuzz_targets::site`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| mizzen_fuzz_targets::site::run(data));
