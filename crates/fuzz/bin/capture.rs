//! libFuzzer entry point of [`ackclock_fuzz::capture::play`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = ackclock_fuzz::capture::play(data);
});
