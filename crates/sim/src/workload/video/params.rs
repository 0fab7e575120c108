//! What a scenario says of players, and the rules that join several of its keys.

use std::mem::size_of;
use std::rc::Rc;

use ackclock_core::schema::{usual, Takes, COUNT, DURATION, RATE, SIZE};
use ackclock_core::{table, Span};

use super::adaptation::AdaptationConfig;
use super::{ChunkRow, Video};
use crate::error::Error;
use crate::estimate::packets;
use crate::transport::TransportConfig;
use crate::workload::{Asks, Carried, Driver, Make, Params, Place, Site};

table! {
    /// A player at the receiving end: fetches chunks over one connection, at bitrates of its choice, and plays them.
    ///
    /// It asks for the next chunk at once until the buffer has reached its target, then each time that it has run down to it. A
    /// chunk's size, relative to its bitrate, depends on the seed, the flow and its number only: arms of a comparison watch the
    /// same video. Over PCC the request is a datagram on the way back.
    pub struct VideoParams "video" {
        /// Bitrates, ascending.
        ladder: Vec<u64> = Takes::List(&RATE, 1);
        /// Length of a chunk.
        chunk: Span = DURATION, Span::from_secs(4);
        /// Chunks of the video; absent: until the flow's stop.
        chunks: Option<u32> = COUNT;
        /// Buffer that the player aims at.
        buffer: Span = DURATION, Span::from_secs(30);
        /// Buffer that it never exceeds, at least one chunk above `buffer`; absent: two chunks above.
        buffer_max: Option<Span> = DURATION;
        /// Buffer with which playback begins, and goes on after a stall; absent: one chunk, or `buffer` if that is less.
        startup: Option<Span> = DURATION;
        /// Request; over PCC at most a datagram's payload, 1456 bytes.
        request: u64 = SIZE, 200;
        /// A chunk's size is uniform within this share of its bitrate's.
        size_variation: f64 = Takes::Number(0.0, 0.99), 0.0;
        /// How the player chooses.
        adaptation: AdaptationConfig = Takes::OneOf(AdaptationConfig::FAMILY), usual("festive");
    }
}

impl VideoParams {
    /// Buffer that the player never exceeds.
    pub fn most(&self) -> Span {
        self.buffer_max.unwrap_or(self.buffer + self.chunk + self.chunk)
    }

    /// Buffer with which playback begins, and goes on after a stall.
    pub fn first(&self) -> Span {
        self.startup.unwrap_or(self.chunk.min(self.buffer))
    }

    fn check(&self, place: &Place, transport: &TransportConfig) -> Result<(), Error> {
        let refuse =
            |key: &str, found: u64, allowed: String| Err(Error::value(place.key(key), found, allowed));
        if let Some(pair) = self.ladder.windows(2).find(|pair| pair[1] <= pair[0]) {
            return refuse("ladder", pair[1], format!("more than {}: bitrates ascend", pair[0]));
        }
        let least = self.buffer + self.chunk;
        if self.most() < least {
            return refuse(
                "buffer_max",
                self.most().0,
                format!("at least {}, the buffer and a chunk", least.0),
            );
        }
        if self.first() > self.buffer {
            return refuse("startup", self.first().0, format!("up to {}, the buffer", self.buffer.0));
        }
        let largest = match transport {
            TransportConfig::Pcc(pcc) => pcc.recipe.config.payload as u64,
            _ => u32::MAX as u64,
        };
        if self.request > largest {
            let allowed = format!("up to {largest} bytes with {}", place.group.congestion_control);
            return refuse("request", self.request, allowed);
        }
        Ok(())
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

    /// Chunks: what players play, and what they have ahead.
    fn rows(&self, duration: Span) -> f64 {
        let chunks = (duration.0 as f64 + self.most().0 as f64) / self.chunk.0 as f64 + 1.0;
        chunks * size_of::<ChunkRow>() as f64
    }

    fn lay(&self, place: &Place, transport: &TransportConfig, _: &mut Site) -> Result<Make, Error> {
        self.check(place, transport)?;
        let params = Rc::new(self.clone());
        Ok(Box::new(move |member, _| {
            Driver::Video(Box::new(Video::new(params.clone(), member.id, member.seed)))
        }))
    }
}
