//! Bookkeeping common to all queues that hold their packets, and the contract of such a queue.

use std::collections::VecDeque;

use ackclock_core::packet::Load;
use ackclock_core::{Packet, Span, Time};

use super::{Dropped, Refused, Served};
use crate::pool::{PacketId, Pool};

/// Number of waiting segments, statistics, and drops that are still to be reported.
#[derive(Clone, Default)]
pub(crate) struct Ledger {
    /// Waiting segments.
    pub packets: u32,
    /// Maximum of `packets` on arrivals that had to wait.
    pub max: u32,
    /// Total wait of all packets that have departed, in segments x ns.
    pub area: u128,
    /// Segments dropped.
    pub dropped: u64,
    /// Segments marked.
    pub marked: u64,
    /// Dropped packets, oldest first.
    pub drops: VecDeque<Dropped>,
}

impl Ledger {
    /// Renew the maximum after an arrival.
    #[inline]
    pub(crate) fn waits(&mut self, must_wait: bool) {
        if must_wait {
            self.max = self.max.max(self.packets);
        }
    }

    /// Count a departure after this wait.
    #[inline]
    pub(crate) fn leaves(&mut self, segments: u32, waited: Span) {
        self.packets -= segments;
        self.area += waited.0 as u128 * segments as u128;
    }

    /// Count and keep a dropped packet.
    #[inline]
    pub(crate) fn drop(&mut self, now: Time, packet: Packet, why: Refused) {
        self.dropped += packet.segments() as u64;
        self.drops.push_back((now, packet, why));
    }
}

/// A queue that holds its packets, because it also decides at departure.
pub(crate) trait Holding {
    /// The queue's books.
    fn ledger(&self) -> &Ledger;

    /// Variant of [`Holding::ledger`] that can be changed.
    fn ledger_mut(&mut self) -> &mut Ledger;

    /// Append a packet. `must_wait`: the link is busy, so even the first packet counts as waiting. Returns false if
    /// the packet is refused, which then still belongs to the caller.
    fn hold(&mut self, pool: &mut Pool, now: Time, id: PacketId, load: Load, must_wait: bool) -> bool;

    /// Return the packet to transmit at `now`; packets dropped before it are reported by
    /// [`Holding::take_head_drop`].
    fn serve(&mut self, pool: &mut Pool, now: Time) -> Option<Served>;

    /// Time at or after which a packet can be sent; `None` if none waits.
    fn head_arrival(&self) -> Option<Time>;

    /// Integral of the number of segments that still wait, up to `now`, in segments x ns.
    fn waiting(&self, now: Time) -> u128;

    /// Return the integral of the number of waiting segments up to `now` (segments x ns), its maximum, and the
    /// segments dropped and marked.
    fn figures(&self, now: Time) -> (u128, u32, u64, u64) {
        let ledger = self.ledger();
        (ledger.area + self.waiting(now), ledger.max, ledger.dropped, ledger.marked)
    }

    /// Number of waiting segments.
    fn len(&self) -> u32 {
        self.ledger().packets
    }

    /// Reset the maximum to the current length.
    fn forget_max(&mut self) {
        let ledger = self.ledger_mut();
        ledger.max = ledger.packets;
    }

    /// Whether any dropped packets are still to be reported.
    #[inline]
    fn has_head_drops(&self) -> bool {
        !self.ledger().drops.is_empty()
    }

    /// Return the oldest dropped packet that has not been reported yet.
    #[inline]
    fn take_head_drop(&mut self) -> Option<Dropped> {
        self.ledger_mut().drops.pop_front()
    }
}
