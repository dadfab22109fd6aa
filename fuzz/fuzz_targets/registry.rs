//! See `mizzen_fuzz_targets::registry`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| mizzen_fuzz_targets::registry::run(data));
