//! libFuzzer entry point of [`ackclock_fuzz::script::play`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = ackclock_fuzz::script::play(data);
});
