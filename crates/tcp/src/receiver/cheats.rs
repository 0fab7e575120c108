//! Receivers that cheat, so that the sender goes faster than it should (Savage, Cardwell, Wetherall and Anderson, "TCP Congestion
//! Control with a Misbehaving Receiver", CCR 29(5), 1999). RFC 9743 §7.6 asks what becomes of a controller beside one.
//!
//! Split ACKs: a segment is acknowledged in k pieces. Who counts every ACK grows k times as fast. Our sender does not: like
//! Linux it counts an ACK only if a whole segment is acknowledged. Hidden marks: CE is never echoed. Optimistic ACKs: what is
//! on its way is acknowledged before it comes, and what is missing as if it had come. The sender sees no loss and a shorter RTT,
//! and the receiver does without the data.

use crate::config::Config;

/// State of a receiver that cheats.
#[derive(Clone, Debug)]
pub(super) struct Cheats {
    /// ACKs in pieces.
    pub split: Option<Box<Split>>,
    /// Acknowledgement of data that has not arrived.
    pub optimist: Option<Box<Optimist>>,
}

impl Cheats {
    pub fn new(config: &Config) -> Cheats {
        Cheats {
            split: Split::new(config.switches.ack_splits).map(Box::new),
            optimist: Optimist::new(config.optimistic_acks).map(Box::new),
        }
    }
}

/// Position of the acknowledgements within a segment, in pieces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Split {
    pieces: u32,
    told: u64,
}

impl Split {
    /// `None` for an honest receiver.
    pub(super) fn new(pieces: u32) -> Option<Split> {
        (pieces > 1).then_some(Split { pieces, told: 0 })
    }

    /// The number of an ACK that leaves ahead of the whole one. `None`: that one is next.
    ///
    /// `from` is the last ACK's number, `to` the next one's.
    pub(super) fn next(&mut self, from: u64, to: u64, mss: u32) -> Option<u64> {
        let next = self.told.max(from) + u64::from((mss / self.pieces).max(1));
        self.told = next.min(to);
        (next < to).then_some(next)
    }
}

/// Receiver that acknowledges data before it arrives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Optimist {
    /// Share of the data of a round trip that is acknowledged ahead, in 65536ths.
    share: u64,
    /// Bytes that it acknowledged and never had. Data that arrives late is included.
    concealed: u64,
    /// The next ACK is honest: the sender is repeating data, so it ignores ACKs beyond.
    honest: bool,
}

impl Optimist {
    /// `None` for an honest receiver.
    pub(super) fn new(share: Option<u32>) -> Option<Optimist> {
        share.map(|share| Optimist { share: u64::from(share), concealed: 0, honest: false })
    }

    /// Data from `start` on arrived when `next` was expected: return what is expected afterwards.
    pub(super) fn skip(&mut self, next: u64, start: u64, end: u64) -> u64 {
        self.honest = end <= next;
        let missing = start.saturating_sub(next);
        self.concealed += missing;
        next + missing
    }

    /// Bytes to acknowledge ahead, for this many arriving in a round trip and a window of this size.
    pub(super) fn ahead(&mut self, in_a_round: u64, window: u32) -> u32 {
        let told = if std::mem::take(&mut self.honest) { 0 } else { (in_a_round * self.share) >> 16 };
        told.min(u64::from(window)) as u32
    }

    /// Bytes that the receiver acknowledges without having them.
    pub(super) fn concealed(&self) -> u64 {
        self.concealed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_skipped_and_what_is_repeated_makes_honest() {
        let mut cheat = Optimist::new(Some(1 << 15)).expect("cheats");
        assert_eq!(cheat.skip(1000, 1000, 2000), 1000);
        assert_eq!(cheat.ahead(10_000, 60_000), 5000);
        assert_eq!(cheat.ahead(10_000, 3000), 3000, "the window's end stays");
        assert_eq!(cheat.skip(2000, 3000, 4000), 3000);
        assert_eq!(cheat.concealed(), 1000);
        assert_eq!(cheat.skip(4000, 1000, 2000), 4000);
        assert_eq!([cheat.ahead(10_000, 60_000), cheat.ahead(10_000, 60_000)], [0, 5000]);
        assert!(Optimist::new(None).is_none());
    }

    #[test]
    fn pieces_of_each_segment_then_the_whole() {
        let mut split = Split::new(4).expect("cheats");
        let mut told = Vec::new();
        while let Some(ack) = split.next(1000, 3000, 1000) {
            told.push(ack);
        }
        assert_eq!(told, [1250, 1500, 1750, 2000, 2250, 2500, 2750]);
        assert_eq!(split.next(3000, 3000, 1000), None, "a duplicate ACK is not split");
        assert_eq!(split.next(3000, 3100, 1000), None);
        assert!(Split::new(1).is_none());
    }
}
