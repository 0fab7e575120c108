//! Data in pieces, one per datagram: the unacknowledged ones at the sender, and those received out of order at the
//! receiver. Both are rings indexed by piece number and never grow beyond the outstanding data.

use std::collections::VecDeque;

/// A piece that has been sent and is not yet cumulatively acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub len: u32,
    /// Whether this is the last piece of the stream.
    pub last: bool,
    pub delivered: bool,
    /// Whether the piece is in the queue for retransmission.
    pub queued: bool,
    /// Number of retransmissions.
    pub rexmit: u8,
}

/// Pieces at the sender.
#[derive(Clone, Default)]
pub(crate) struct Outgoing {
    ring: VecDeque<Piece>,
    /// Number of the first piece in the ring.
    base: u64,
    /// Pieces to retransmit, oldest loss first; some may have been delivered in the meantime.
    again: VecDeque<u64>,
    acked: u64,
}

impl Outgoing {
    /// Number of the next new piece.
    pub fn next(&self) -> u64 {
        self.base + self.ring.len() as u64
    }

    /// Number of bytes cumulatively acknowledged.
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// Whether everything sent has been acknowledged.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Add a new piece and return its number.
    pub fn push(&mut self, len: u32, last: bool) -> u64 {
        let number = self.next();
        self.ring.push_back(Piece { len, last, delivered: false, queued: false, rexmit: 0 });
        number
    }

    /// Return the piece, unless it is cumulatively acknowledged.
    #[inline]
    pub fn get(&mut self, number: u64) -> Option<&mut Piece> {
        self.ring.get_mut(number.checked_sub(self.base)? as usize)
    }

    /// Record that a piece has arrived at the receiver.
    #[inline]
    pub fn on_delivered(&mut self, number: u64) {
        let Some(piece) = self.get(number) else { return };
        piece.delivered = true;
        self.advance(self.base);
    }

    /// Record that every piece below `next` has arrived.
    #[inline]
    pub fn on_cumulative(&mut self, next: u64) {
        if self.base < next {
            self.advance(next);
        }
    }

    /// Drop all pieces below `next`, and the delivered pieces that follow.
    #[inline]
    fn advance(&mut self, next: u64) {
        while let Some(front) = self.ring.front().filter(|front| self.base < next || front.delivered) {
            self.acked += front.len as u64;
            self.ring.pop_front();
            self.base += 1;
        }
    }

    /// Queue a piece for retransmission after a transmission was lost, unless it has been delivered.
    pub fn on_lost(&mut self, number: u64) {
        let Some(piece) = self.get(number) else { return };
        if !piece.delivered && !piece.queued {
            piece.queued = true;
            self.again.push_back(number);
        }
    }

    /// Whether pieces may be queued for retransmission.
    #[inline]
    pub fn has_losses(&self) -> bool {
        !self.again.is_empty()
    }

    /// Remove and return the next piece to retransmit.
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

    /// Return the first piece, starting at `from` and wrapping to the beginning, that has not arrived and is not
    /// queued for retransmission.
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
    /// Length plus one of each piece that has arrived, 0 for missing ones. The first piece of the ring is always
    /// missing.
    ring: VecDeque<u32>,
    next: u64,
    bytes: u64,
    last: Option<u64>,
}

impl Incoming {
    /// Number of the first piece that has not arrived.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Number of bytes delivered in order.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of bytes received beyond a gap.
    pub fn behind_gaps(&self) -> u64 {
        self.ring.iter().map(|held| held.saturating_sub(1) as u64).sum()
    }

    /// Whether the whole stream has arrived.
    pub fn is_complete(&self) -> bool {
        self.last.is_some_and(|last| self.next > last)
    }

    /// Record that a piece arrived. Return whether it is new.
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
        /// Oracle: the set of pieces that have arrived.
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

        /// Oracle: the set of delivered pieces, and the set of pieces lost since.
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
