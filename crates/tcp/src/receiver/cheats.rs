//! Receivers that cheat, so that the sender goes faster than it should (Savage, Cardwell, Wetherall and Anderson, "TCP Congestion
//! Control with a Misbehaving Receiver", CCR 29(5), 1999). RFC 9743 §7.6 asks what becomes of a controller beside one.
//!
//! Split ACKs: a segment is acknowledged in k pieces. Who counts every ACK grows k times as fast. Our sender does not: like
//! Linux it counts an ACK only if a whole segment is acknowledged. Hidden marks: CE is never echoed.

/// How far the acknowledgements have come, in pieces.
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

#[cfg(test)]
mod tests {
    use super::*;

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
