//! Sources of a scenario's trace files for a Rust program: a folder on disk, or memory. Python has its own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use ackclock_core::schema::front::{Files, NoFiles};
use ackclock_core::schema::{Refusal, Written};
use ackclock_net::capacity::read_trace;

/// Maximum size of a trace file, bytes: an hour at 500 Mbit/s.
const LARGEST: u64 = 128 << 20;

/// Folder on disk that contains the scenario's files.
pub struct Disk(pub PathBuf);

/// Files in memory, by name, for instance in a web page.
pub struct Embedded(pub BTreeMap<String, Vec<u8>>);

fn counts(name: &str, data: &[u8]) -> Result<Arc<[u32]>, Refusal> {
    read_trace(data).map_err(|(line, refusal)| Refusal {
        found: format!("{} in {name}, line {line}", refusal.found),
        ..refusal
    })
}

impl Files for Disk {
    fn trace(&self, name: &str) -> Result<Arc<[u32]>, Refusal> {
        let path = self.0.join(name);
        let allowed = format!("a readable file of at most {} MiB", LARGEST >> 20);
        let refused = |found: String| Refusal::new(format_args!("{found} in {name}"), &allowed);
        let about = path.metadata().map_err(|error| refused(format!("an unreadable file ({error})")))?;
        if !about.is_file() {
            return Err(refused("no regular file".to_string()));
        }
        if about.len() > LARGEST {
            return Err(refused(format!("{} bytes", about.len())));
        }
        let data = std::fs::read(&path).map_err(|error| refused(format!("an unreadable file ({error})")))?;
        counts(name, &data)
    }
    fn controller(&self, name: &str, options: &Written) -> Result<String, Refusal> {
        NoFiles.controller(name, options)
    }
}

impl Files for Embedded {
    fn trace(&self, name: &str) -> Result<Arc<[u32]>, Refusal> {
        match self.0.get(name) {
            Some(data) => counts(name, data),
            None => NoFiles.trace(name),
        }
    }
    fn controller(&self, name: &str, options: &Written) -> Result<String, Refusal> {
        NoFiles.controller(name, options)
    }
}
