//! The data in pieces, one per datagram: at the sender the unacknowledged ones, at the receiver those that
//! wait for an earlier one. Rings by number; nothing grows beyond the outstanding data.

use std::collections::VecDeque;

/// A piece that was sent and not cumulatively acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub len: u32,
    /// Whether this is the last piece of the stream.
    pub last: bool,
    pub delivered: bool,
    /// Whether the piece is in the queue for retransmission.
    pub queued: bool,
    /// Transmissions so far, minus one.
    pub rexmit: u8,
}

/// Pieces at the sender.
#[derive(Clone, Default)]
pub(crate) struct Outgoing {
    ring: VecDeque<Piece>,
    /// Number of the ring's first piece.
    base: u64,
    /// Pieces to send again, oldest loss first; some may have been delivered meanwhile.
    again: VecDeque<u64>,
    acked: u64,
}

impl Outgoing {
    /// Number of the next new piece.
    pub fn next(&self) -> u64 {
        self.base + self.ring.len() as u64
    }

    /// Bytes cumulatively acknowledged.
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// Everything sent has been acknowledged.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// A new piece goes out.
    pub fn push(&mut self, len: u32, last: bool) -> u64 {
        let number = self.next();
        self.ring.push_back(Piece { len, last, delivered: false, queued: false, rexmit: 0 });
        number
    }

    /// The piece, if it is not yet cumulatively acknowledged.
    #[inline]
    pub fn get(&mut self, number: u64) -> Option<&mut Piece> {
        self.ring.get_mut(number.checked_sub(self.base)? as usize)
    }

    /// A piece has arrived at the other side.
    #[inline]
    pub fn on_delivered(&mut self, number: u64) {
        let Some(piece) = self.get(number) else { return };
        piece.delivered = true;
        self.advance(self.base);
    }

    /// Every piece below `next` has arrived.
    #[inline]
    pub fn on_cumulative(&mut self, next: u64) {
        if self.base < next {
            self.advance(next);
        }
    }

    /// Drop everything below `next`, and delivered pieces after it.
    #[inline]
    fn advance(&mut self, next: u64) {
        while let Some(front) = self.ring.front().filter(|front| self.base < next || front.delivered) {
            self.acked += front.len as u64;
            self.ring.pop_front();
            self.base += 1;
        }
    }

    /// A transmission of it is lost: send it again, unless it arrived otherwise.
    pub fn on_lost(&mut self, number: u64) {
        let Some(piece) = self.get(number) else { return };
        if !piece.delivered && !piece.queued {
            piece.queued = true;
            self.again.push_back(number);
        }
    }

    /// Whether something may wait for retransmission.
    #[inline]
    pub fn has_losses(&self) -> bool {
        !self.again.is_empty()
    }

    /// The piece to send again next.
    pub fn take_again(&mut self) -> Option<u64> {
        while let Some(number) = self.again.pop_front() {
            let Some(piece) = self.get(number) else { continue };
            piece.queued = false;
            if !piece.delivered {
                return Some(number);
            }
        }
        None
    }

    /// Return the first piece at or after `from` (else the very first) that has not arrived and does not wait
    /// for retransmission.
    pub fn unacknowledged(&self, from: u64) -> Option<u64> {
        let skip = from.saturating_sub(self.base) as usize;
        let open = |(_, piece): &(usize, &Piece)| !piece.delivered && !piece.queued;
        let found = self.ring.iter().enumerate().skip(skip).find(open);
        found.or_else(|| self.ring.iter().enumerate().find(open)).map(|(i, _)| self.base + i as u64)
    }
}

/// Pieces at the receiver.
#[derive(Clone, Default)]
pub(crate) struct Incoming {
    /// Length plus one of each piece that arrived, 0 for the others; the first one is always missing.
    ring: VecDeque<u32>,
    next: u64,
    bytes: u64,
    last: Option<u64>,
}

impl Incoming {
    /// First piece that has not arrived.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Bytes handed over in order.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that wait for a piece before them.
    pub fn behind_gaps(&self) -> u64 {
        self.ring.iter().map(|held| held.saturating_sub(1) as u64).sum()
    }

    /// The whole stream is here.
    pub fn is_complete(&self) -> bool {
        self.last.is_some_and(|last| self.next > last)
    }

    /// Note that a piece arrived; returns whether it is the first time.
    #[inline]
    pub fn insert(&mut self, number: u64, len: u32, last: bool) -> bool {
        if last {
            self.last = Some(number);
        }
        if number < self.next {
            return false;
        }
        if number == self.next && self.ring.is_empty() {
            self.next += 1;
            self.bytes += len as u64;
            return true;
        }
        let at = (number - self.next) as usize;
        if at >= self.ring.len() {
            self.ring.resize(at + 1, 0);
        }
        let new = self.ring[at] == 0;
        self.ring[at] = len + 1;
        while let Some(&front) = self.ring.front() {
            if front == 0 {
                break;
            }
            self.ring.pop_front();
            self.next += 1;
            self.bytes += front as u64 - 1;
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Oracle: a set of arrived pieces.
        #[test]
        fn the_receiver_hands_over_what_is_in_order(arrivals in prop::collection::vec(0u64..40, 1..120)) {
            let (mut incoming, mut set) = (Incoming::default(), BTreeSet::new());
            for n in arrivals {
                prop_assert_eq!(incoming.insert(n, n as u32 + 1, n == 39), set.insert(n));
                let next = (0..).find(|n| !set.contains(n)).expect("some is missing");
                prop_assert_eq!(incoming.next(), next);
                prop_assert_eq!(incoming.bytes(), (0..next).map(|n| n + 1).sum::<u64>());
                prop_assert_eq!(incoming.is_complete(), next == 40);
            }
        }

        /// Oracle: a set of delivered pieces and one of pieces lost since.
        #[test]
        fn the_sender_repeats_what_is_lost_and_nothing_else(
            events in prop::collection::vec((0u8..4, 0u64..30), 1..150)
        ) {
            let mut out = Outgoing::default();
            for _ in 0..30 {
                out.push(10, false);
            }
            let (mut delivered, mut lost) = (BTreeSet::new(), BTreeSet::new());
            for (what, n) in events {
                match what {
                    0 => { out.on_delivered(n); delivered.insert(n); }
                    1 => { out.on_lost(n); if !delivered.contains(&n) { lost.insert(n); } }
                    2 => { out.on_cumulative(n); delivered.extend(0..n); }
                    _ => {
                        let again = out.take_again();
                        let open: Vec<u64> = lost.difference(&delivered).copied().collect();
                        prop_assert_eq!(again.is_some(), !open.is_empty());
                        lost = open.into_iter().filter(|&n| Some(n) != again).collect();
                    }
                }
                let next = (0..30).find(|n| !delivered.contains(n)).unwrap_or(30);
                prop_assert_eq!(out.acked(), 10 * next);
            }
        }
    }
}
