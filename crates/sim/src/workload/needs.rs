//! Assumptions of memory estimates, on workloads and on runs.

/// Full packets in `ns` at `bps`.
pub fn packets(bps: u64, ns: f64) -> f64 {
    bps as f64 * ns / (FULL_BYTES * 8.0 * 1e9)
}

/// A full packet.
pub const FULL_BYTES: f64 = 1500.0;
/// Both halves and buffers of a connection, without packets.
pub const CONNECTION_BYTES: f64 = (8 << 10) as f64;
/// Rows, growth of their vector, and columns made from them.
pub const COPIES: f64 = 3.0;
/// Rate assumed for links without one.
pub const FASTEST_BPS: u64 = 10_000_000_000;
