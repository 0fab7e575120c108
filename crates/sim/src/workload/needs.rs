//! Assumptions of the memory estimates about workloads and runs.

/// Number of full packets transmitted in `ns` at `bps`.
pub fn packets(bps: u64, ns: f64) -> f64 {
    bps as f64 * ns / (FULL_BYTES * 8.0 * 1e9)
}

/// Bytes of a full packet.
pub const FULL_BYTES: f64 = 1500.0;
/// Memory for a connection's buffers, excluding packets, bytes.
pub const CONNECTION_BYTES: f64 = (8 << 10) as f64;
/// Factor for rows: the rows themselves, the growth of their vector, and the columns built from them.
pub const COPIES: f64 = 3.0;
/// Rate assumed for links without one, bit/s.
pub const FASTEST_BPS: u64 = 10_000_000_000;
