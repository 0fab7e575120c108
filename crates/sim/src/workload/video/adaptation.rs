//! Adaptation: the bitrate of the next chunk, and the buffer level at which it is requested. One file for
//! each algorithm; this one holds the contract and the closed set.

pub mod festive;
pub mod rate_based;

use std::collections::VecDeque;

use ackclock_core::{family, Span, Stream};

use festive::{Festive, FestiveParams};
use rate_based::{RateBased, RateBasedParams};

/// The contract. Bitrates are bit/s, levels count from 0, the lowest.
pub trait Adaptation {
    /// A chunk arrived at this throughput, from its request to its last byte.
    fn on_chunk(&mut self, bps: f64);

    /// Throughput to expect, bit/s; `None` before the first chunk.
    fn estimate(&self) -> Option<f64>;

    /// Return the level of the next chunk, which is then requested.
    fn choose(&mut self, ladder: &[u64]) -> usize;

    /// Buffer down to which the player waits with the next request; `chunk` is the length of one.
    fn goal(&mut self, target: Span, chunk: Span) -> Span;
}

family! {
    /// Which one, and its settings.
    pub enum AdaptationConfig "adaptations" {
        Festive(FestiveParams),
        RateBased(RateBasedParams),
    }
}

/// The closed set.
#[derive(Clone)]
#[allow(missing_docs, reason = "each variant holds the rule of its name")]
pub enum Adapter {
    Festive(Festive),
    RateBased(RateBased),
}

impl Adapter {
    /// Return a fresh instance, whose random draws come from `stream`.
    pub fn new(config: &AdaptationConfig, stream: Stream) -> Adapter {
        match config {
            AdaptationConfig::Festive(params) => Adapter::Festive(Festive::new(params.clone(), stream)),
            AdaptationConfig::RateBased(params) => Adapter::RateBased(RateBased::new(params.clone())),
        }
    }
}

macro_rules! dispatch {
    ($self:ident, $a:ident => $e:expr) => {
        match $self {
            Adapter::Festive($a) => $e,
            Adapter::RateBased($a) => $e,
        }
    };
}

impl Adaptation for Adapter {
    fn on_chunk(&mut self, bps: f64) {
        dispatch!(self, a => a.on_chunk(bps))
    }
    fn estimate(&self) -> Option<f64> {
        dispatch!(self, a => a.estimate())
    }
    fn choose(&mut self, ladder: &[u64]) -> usize {
        dispatch!(self, a => a.choose(ladder))
    }
    fn goal(&mut self, target: Span, chunk: Span) -> Span {
        dispatch!(self, a => a.goal(target, chunk))
    }
}

/// Return the highest level whose bitrate is at most `bps`; the lowest if there is none.
pub fn highest_below(ladder: &[u64], bps: f64) -> usize {
    ladder.iter().rposition(|&rate| rate as f64 <= bps).unwrap_or(0)
}

/// Append a value, and keep only the last `most`.
pub fn remember<T>(values: &mut VecDeque<T>, value: T, most: usize) {
    if values.len() == most {
        values.pop_front();
    }
    values.push_back(value);
}
