//! libFuzzer entry point of [`ackclock_fuzz::frames::play`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = ackclock_fuzz::frames::play(data);
});
