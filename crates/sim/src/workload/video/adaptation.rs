//! Bitrate adaptation: the bitrate of the next chunk, and the buffer level at which it is requested. Each algorithm
//! has its own file; this file contains the contract and the closed set.

pub mod festive;
pub mod rate_based;

use std::collections::VecDeque;

use ackclock_core::{family, Span, Stream};

use festive::{Festive, FestiveParams};
use rate_based::{RateBased, RateBasedParams};

/// Contract of an algorithm. Bitrates are in bit/s; levels count from 0, the lowest bitrate.
pub trait Adaptation {
    /// Called when a chunk has arrived. `bps` is its throughput, from the request to the last byte.
    fn on_chunk(&mut self, bps: f64);

    /// Expected throughput, bit/s; `None` before the first chunk.
    fn estimate(&self) -> Option<f64>;

    /// Return the level of the next chunk, which is requested at once.
    fn choose(&mut self, ladder: &[u64]) -> usize;

    /// Return the buffer level at which the next chunk is requested; `chunk` is the playing time of a chunk.
    fn goal(&mut self, target: Span, chunk: Span) -> Span;
}

family! {
    /// An adaptation algorithm and its parameters.
    pub enum AdaptationConfig "adaptations" {
        Festive(FestiveParams),
        RateBased(RateBasedParams),
    }
}

/// An algorithm with its state.
#[derive(Clone)]
#[allow(missing_docs, reason = "each variant holds the rule of its name")]
pub enum Adapter {
    Festive(Festive),
    RateBased(RateBased),
}

impl Adapter {
    /// Return the algorithm in its initial state. Random draws come from `stream`.
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

/// Highest level whose bitrate is at most `bps`, or the lowest level if there is none.
pub fn highest_below(ladder: &[u64], bps: f64) -> usize {
    ladder.iter().rposition(|&rate| rate as f64 <= bps).unwrap_or(0)
}

/// Append a value, keeping only the last `most` values.
pub fn remember<T>(values: &mut VecDeque<T>, value: T, most: usize) {
    if values.len() == most {
        values.pop_front();
    }
    values.push_back(value);
}
