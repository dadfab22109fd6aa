//! See `mizzen_fuzz_targets::doctor`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| mizzen_fuzz_targets::doctor::run(data));
