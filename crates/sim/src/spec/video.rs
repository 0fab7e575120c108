//! Adaptive video, as the engine reads it.

use serde::Deserialize;

/// A player at the receiving end: fetches chunks over one connection, at bitrates of its choice.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Video {
    /// Bitrates, ascending.
    pub ladder_bps: Vec<u64>,
    /// Length of a chunk, ns.
    pub chunk_ns: u64,
    /// Chunks of the video; absent = until the flow's stop.
    #[serde(default)]
    pub chunks: Option<u32>,
    /// Buffer that the player aims at, ns.
    pub buffer_ns: u64,
    /// Buffer that it never exceeds, ns.
    pub buffer_max_ns: u64,
    /// Buffer with which playback begins, ns.
    pub startup_ns: u64,
    /// Bytes of a request.
    pub request_bytes: u64,
    /// A chunk's size is within this share of its bitrate's.
    #[serde(default)]
    pub size_variation: f64,
    /// How the player chooses.
    pub adaptation: Adaptation,
}

/// How a player chooses.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Adaptation {
    /// FESTIVE.
    Festive {
        /// Chunks in the harmonic mean.
        window: u32,
        /// Share of the estimate that a bitrate may have.
        safety: f64,
        /// Weight of efficiency against stability.
        alpha: f64,
        /// Chunks over which switches are counted.
        horizon: u32,
        /// Requests at random times.
        randomised: bool,
        /// One level at a time.
        gradual: bool,
        /// Updates wait until they are worth it.
        delayed: bool,
    },
    /// The highest bitrate below the last chunk's throughput.
    RateBased {
        /// Weight of the last chunk in the moving average.
        weight: f64,
        /// Share of the estimate that a bitrate may have.
        safety: f64,
    },
}
