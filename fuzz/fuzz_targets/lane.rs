//! See `mizzen_fuzz_targets::lane`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| mizzen_fuzz_targets::lane::run(data));
