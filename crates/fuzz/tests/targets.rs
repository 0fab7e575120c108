//! Runs of the targets without libFuzzer: the stored corpus, and inputs drawn from a seed. `tools/fuzz.py` runs longer
//! campaigns.

use std::path::PathBuf;

use ackclock_capture::read;
use ackclock_core::Stream;
use ackclock_fuzz::{capture, frames, script, segments};

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/corpus").join(target);
    let mut files: Vec<PathBuf> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 20, "a corpus of {} in {folder:?}", files.len());
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// Return the input with some bytes replaced, removed or inserted.
fn changed(input: &[u8], rng: &mut Stream) -> Vec<u8> {
    let mut data = input.to_vec();
    for _ in 0..1 + rng.below(8) {
        let at = rng.below(data.len() as u64 + 1) as usize;
        match rng.below(3) {
            0 if at < data.len() => data[at] = rng.below(256) as u8,
            1 if at < data.len() => drop(data.remove(at)),
            _ => data.insert(at, rng.below(256) as u8),
        }
    }
    data
}

#[test]
fn segments_of_any_kind() {
    let mut rng = Stream::new(1, "fuzz/segments");
    let mut left = 0;
    let mut established = 0;
    for input in corpus("segments") {
        for data in (0..20).map(|_| changed(&input, &mut rng)).chain([input.clone()]) {
            let end = segments::play(&data);
            left += end.left;
            established += end.established as u32;
        }
    }
    for _ in 0..500 {
        let data: Vec<u8> = (0..rng.below(400)).map(|_| rng.below(256) as u8).collect();
        segments::play(&data);
    }
    assert!(left > 10_000 && established > 200, "{left} segments left, {established} connections");
}

#[test]
fn scripts_of_any_kind() {
    let mut rng = Stream::new(1, "fuzz/script");
    let mut played = 0;
    for input in corpus("script") {
        for data in (0..20).map(|_| changed(&input, &mut rng)).chain([input.clone()]) {
            played += script::play(&data) as u32;
        }
    }
    assert!(played > 50, "{played} scripts played");
}

#[test]
fn captures_of_any_kind() {
    let mut rng = Stream::new(1, "fuzz/capture");
    let mut read = 0;
    for input in corpus("capture") {
        for data in (0..200).map(|_| changed(&input, &mut rng)).chain([input.clone()]) {
            read += capture::play(&data) as u32;
        }
    }
    assert!(read > 1000, "{read} captures read");
}

#[test]
fn frames_behind_layers_of_any_kind() {
    let mut rng = Stream::new(1, "fuzz/frames");
    let (mut frames, mut segments, mut links) = (0, 0, 0);
    for _ in 0..3000 {
        let data: Vec<u8> = (0..rng.below(2000)).map(|_| rng.below(256) as u8).collect();
        assert!(frames::play(&data), "{data:?}");
        let file = frames::file(&data);
        let found = read(|| Ok(&file[..]), None, 0, |_| true).unwrap();
        frames += found.frames;
        segments += found.segments;
        links += (found.segments > 0) as u32;
    }
    assert!(
        2 * segments > frames && links > 2500,
        "{segments} segments of {frames} frames, in {links} captures"
    );
}
