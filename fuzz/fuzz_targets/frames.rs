//! See `mizzen_fuzz_targets::frames`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| mizzen_fuzz_targets::frames::run(data));
