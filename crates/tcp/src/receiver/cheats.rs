//! Receivers that cheat to make the sender send faster than it should (Savage, Cardwell, Wetherall and Anderson, "TCP Congestion
//! Control with a Misbehaving Receiver", CCR 29(5), 1999). RFC 9743 §7.6 asks how a controller behaves with such a receiver.
//!
//! Split ACKs: a segment is acknowledged in k pieces, so that the window of a sender that counts ACKs grows
//! k times as fast. This sender does not: like Linux it counts only ACKs of whole segments. Hidden marks:
//! CE is never echoed. Optimistic ACKs: data in flight is acknowledged before it arrives, and missing data
//! as if it had arrived. The sender sees no loss and a shorter RTT, and the receiver forgoes the missing
//! data.

use crate::config::Config;

/// Cheating receiver state.
#[derive(Clone, Debug)]
pub(super) struct Cheats {
    /// Splitting of ACKs; `None` if ACKs are not split.
    pub split: Option<Box<Split>>,
    /// Optimistic ACKs; `None` if only received data is acknowledged.
    pub optimist: Option<Box<Optimist>>,
}

impl Cheats {
    pub fn new(config: &Config) -> Cheats {
        Cheats {
            split: Split::new(config.switches.ack_splits).map(Box::new),
            optimist: Optimist::new(config.receiving.optimistic_acks).map(Box::new),
        }
    }
}

/// Progress of split ACKs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Split {
    pieces: u32,
    told: u64,
}

impl Split {
    /// Return the state for ACKs split into this many pieces; `None` for an honest receiver.
    pub(super) fn new(pieces: u32) -> Option<Split> {
        (pieces > 1).then_some(Split { pieces, told: 0 })
    }

    /// ACK number of the next partial ACK; `None` if the full ACK is next.
    ///
    /// `from`: ACK number of the last full ACK; `to`: that of the next one.
    pub(super) fn next(&mut self, from: u64, to: u64, mss: u32) -> Option<u64> {
        let next = self.told.max(from) + u64::from((mss / self.pieces).max(1));
        self.told = next.min(to);
        (next < to).then_some(next)
    }
}

/// State of optimistic ACKs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Optimist {
    /// Fraction of a round trip's data that is acknowledged ahead of its arrival, in units of 1/65536.
    share: u64,
    /// Bytes acknowledged but missing at the time, including those that arrived later.
    concealed: u64,
    /// The next ACK is honest: the sender is retransmitting data, so it would ignore ACKs of later data.
    honest: bool,
}

impl Optimist {
    /// Return the state for this fraction; `None` for an honest receiver.
    pub(super) fn new(share: Option<u32>) -> Option<Optimist> {
        share.map(|share| Optimist { share: u64::from(share), concealed: 0, honest: false })
    }

    /// Process the arrival of data from `start` to `end` while `next` is expected. Returns the offset expected afterwards, with any gap skipped.
    pub(super) fn skip(&mut self, next: u64, start: u64, end: u64) -> u64 {
        self.honest = end <= next;
        let missing = start.saturating_sub(next);
        self.concealed += missing;
        next + missing
    }

    /// Number of bytes to acknowledge ahead of their arrival. `in_a_round`: bytes received in a round trip; the result
    /// is at most `window`.
    pub(super) fn ahead(&mut self, in_a_round: u64, window: u32) -> u32 {
        let told = if std::mem::take(&mut self.honest) { 0 } else { (in_a_round * self.share) >> 16 };
        told.min(u64::from(window)) as u32
    }

    /// Bytes acknowledged by the receiver without having been received.
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
