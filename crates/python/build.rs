//! Computes the build's identity: a hash of the engine's sources, so that stored runs are not confused with those of
//! different code with the same version number.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let crates = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("set by cargo")).join("..");
    println!("cargo:rerun-if-changed={}", crates.display());
    let mut files = Vec::new();
    collect(&crates, &mut files);
    let mut named: Vec<(String, PathBuf)> = files
        .into_iter()
        .map(|file| {
            let name = file.strip_prefix(&crates).expect("below").to_string_lossy().replace('\\', "/");
            (name, file)
        })
        .collect();
    named.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64; // FNV-1a
    for (name, file) in named {
        let text = fs::read(&file).expect("readable").into_iter().filter(|&b| b != b'\r');
        for byte in name.bytes().chain([0]).chain(text).chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    println!("cargo:rustc-env=ACKCLOCK_BUILD={hash:016x}");
    // target/PROFILE/build/PACKAGE/out; no environment variable distinguishes profiles that inherit from one another
    let out = PathBuf::from(env::var("OUT_DIR").expect("set by cargo"));
    let profile =
        out.ancestors().nth(3).and_then(Path::file_name).expect("laid out by cargo").to_string_lossy();
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let trained = if flags.contains("profile-use") { ", trained" } else { "" };
    println!("cargo:rustc-env=ACKCLOCK_PROFILE={profile}{trained}");
}

/// Collect the sources of all crates, without their tests.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("readable").flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() {
            if !["tests", "target", "benches", "fuzz", "wasm"].iter().any(|skip| name == *skip) {
                collect(&path, files);
            }
        } else if name == "Cargo.toml" || path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
}
