//! See `mizzen_fuzz_targets::relay`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| mizzen_fuzz_targets::relay::run(data));
