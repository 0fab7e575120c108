//! QUIC as implemented by `quinn-proto`, unmodified, as the transport of a flow. Both ends use its `Endpoint` and
//! `Connection` in virtual time; datagrams carry its bytes.
//!
//! The stack takes time as an argument and does no I/O. Everything else that could differ between runs is replaced
//! (`seal.rs`): its random seed, connection IDs, keys and the wall clock of tokens. TLS is replaced by messages of the
//! same sizes in the same number of round trips (`null.rs`), so neither a TLS library nor a system library is linked.
//!
//! The stack's CUBIC uses the platform's `cbrt` and `powi`, so runs are reproducible on one machine, but not
//! necessarily across machines.

mod end;
mod null;
mod ours;
mod registry;
mod seal;
mod traced;

pub use end::End;
pub use registry::{build, Entry, Recipe, ENTRIES, REGISTRY};
pub use seal::Clock;

/// Versions of the crates that determine a flow's behaviour: the stack, and the source of its random numbers. The list
/// is part of the engine's build identity, which identifies stored runs.
pub const RELEASES: &[(&str, &str)] =
    &[("quinn-proto", "0.11.19"), ("rand", "0.10.3"), ("chacha20", "0.10.2"), ("rustc-hash", "2.1.3")];

#[cfg(test)]
mod tests {
    #[test]
    fn the_lock_file_holds_the_releases_that_runs_are_told_apart_by() {
        let lock = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock"))
            .expect("a lock file");
        for (name, version) in super::RELEASES {
            let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
            assert!(lock.contains(&entry), "{name} is not {version}: change RELEASES with Cargo.lock");
        }
    }
}
