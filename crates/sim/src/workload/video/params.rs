//! Player parameters in a scenario, and the rules that relate them.

use std::mem::size_of;
use std::rc::Rc;

use ackclock_core::schema::{usual, Rules, Takes, COUNT, DURATION, RATE, SIZE};
use ackclock_core::{table, Span};

use super::adaptation::AdaptationConfig;
use super::{ChunkRow, Video};
use crate::error::Error;
use crate::transport::TransportConfig;
use crate::workload::needs::packets;
use crate::workload::{Asks, Carried, Driver, Make, Params, Place, Site};

table! {
    /// A video player at the receiving end fetches chunks over one connection and chooses the bitrate of each.
    ///
    /// The player requests chunks back to back until its buffer reaches the target, then requests one whenever the
    /// buffer has drained to the target. The size of a chunk relative to its bitrate depends only on the seed, the flow
    /// and the number of the chunk, so compared scenarios play the same video. Over PCC the request is a datagram in
    /// the reverse direction.
    pub struct VideoParams "video" {
        /// Bitrates to choose from, in ascending order.
        ladder: Vec<u64> = Takes::List(&RATE, 1);
        /// Playing time of a chunk.
        chunk: Span = DURATION, Span::from_secs(4);
        /// Number of chunks of the video. Default: the player fetches chunks until the flow stops.
        chunks: Option<u32> = COUNT;
        /// Playing time that the player tries to keep in its buffer (the target).
        buffer: Span = DURATION, Span::from_secs(30);
        /// Maximum playing time in the buffer, at least one chunk more than `buffer`. Default: two chunks more than
        /// `buffer`.
        buffer_max: Option<Span> = DURATION;
        /// Playing time in the buffer at which playback starts, and resumes after a stall. Default: one chunk, or
        /// `buffer` if that is less.
        startup: Option<Span> = DURATION;
        /// Size of a request. Over PCC at most 1456 bytes, the payload of a datagram.
        request: u64 = SIZE, 200;
        /// Maximum deviation of a chunk's size from bitrate times length, as a share of it. Sizes are drawn uniformly.
        size_variation: f64 = Takes::Number(0.0, 0.99), 0.0;
        /// Algorithm by which the player chooses a bitrate.
        adaptation: AdaptationConfig = Takes::OneOf(AdaptationConfig::FAMILY), usual("festive");
    }
    rules VideoParams::judge_keys
}

impl VideoParams {
    /// Maximum playing time in the buffer.
    pub fn most(&self) -> Span {
        self.buffer_max.unwrap_or(self.buffer + self.chunk + self.chunk)
    }

    /// Playing time in the buffer at which playback starts, and resumes after a stall.
    pub fn first(&self) -> Span {
        self.startup.unwrap_or(self.chunk.min(self.buffer))
    }

    /// Check that bitrates ascend and that the buffer sizes are consistent.
    fn judge_keys(&self, rules: &mut Rules) {
        if let Some(i) = self.ladder.windows(2).position(|pair| pair[1] <= pair[0]) {
            let [lower, upper] = [i, i + 1].map(|at| rules.shown(&format!("ladder.{at}")));
            rules.refuse_as(
                &format!("ladder.{}", i + 1),
                format_args!("{upper} after {lower}"),
                "bitrates that ascend",
            );
        }
        let buffer = rules.shown("buffer");
        if self.most() < self.buffer + self.chunk {
            let [most, chunk] = ["buffer_max", "chunk"].map(|key| rules.shown(key));
            let found = format!("{most} with a buffer of {buffer} and chunks of {chunk}");
            rules.refuse_as("buffer_max", found, "at least the buffer and a chunk");
        }
        if self.first() > self.buffer {
            let found = format!("{} with a buffer of {buffer}", rules.shown("startup"));
            rules.refuse_as("startup", found, "at most the buffer");
        }
    }
}

impl Params for VideoParams {
    fn carried() -> Carried {
        Carried::ByTcpOrPcc
    }

    fn asks(&self, duration: Span) -> Asks {
        let bps = self.ladder.iter().copied().max().unwrap_or(0);
        let ns = (duration.0 as f64 + self.most().0 as f64) * (1.0 + self.size_variation);
        Asks::Packets(packets(bps, ns))
    }

    /// Memory for chunk rows: chunks played, and chunks in the buffer.
    fn rows(&self, duration: Span) -> f64 {
        let chunks = (duration.0 as f64 + self.most().0 as f64) / self.chunk.0 as f64 + 1.0;
        chunks * size_of::<ChunkRow>() as f64
    }

    fn lay(&self, _: &Place, _: &TransportConfig, _: &mut Site) -> Result<Make, Error> {
        let params = Rc::new(self.clone());
        Ok(Box::new(move |member, _| {
            Driver::Video(Box::new(Video::new(params.clone(), member.id, member.seed)))
        }))
    }
}
