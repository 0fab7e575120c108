//! A link with duplicated or damaged packets.

use ackclock_core::{Packet, Time};

use super::Link;
use crate::faults::Chance;
use crate::pool::{PacketId, Pool};
use crate::queue::{Dropped, Refused};

impl Link {
    /// Return the copy of the last packet offered, and its time. The caller offers the copy next. After every offer
    /// that returned no delivery, the caller checks for copies if [`Link::has_head_drops`] returns true.
    pub fn take_copy(&mut self) -> Option<(Time, Packet)> {
        self.extras_mut()?.doubler.as_mut()?.take()
    }

    /// Return the first undamaged packet among this one and the following ones that depart by `now`.
    #[cold]
    pub(super) fn first_whole(&mut self, pool: &mut Pool, now: Time, mut id: PacketId) -> Option<PacketId> {
        loop {
            if !self.extras_mut().and_then(|extras| extras.damage.as_mut()).is_some_and(Chance::draw) {
                return Some(id);
            }
            let packet = pool.remove(id);
            let count = &mut self.crowd().rare().damaged;
            count[0] += packet.segments() as u64;
            count[1] += packet.bytes as u64;
            self.refused_unseen(now, packet, Refused::Loss);
            let due = self.rest().wire.next(pool).0;
            if due > now || due == Time::NEVER {
                return None;
            }
            id = self.pop(pool);
        }
    }

    /// Record a lost packet that was not returned to the caller.
    pub fn refused_unseen(&mut self, now: Time, packet: Packet, reason: Refused) {
        self.extras_or_none().refused.push_back((now, packet, reason));
    }

    /// Return the oldest lost packet that has not been reported to the caller.
    pub(super) fn take_refused(&mut self) -> Option<Dropped> {
        self.extras_mut()?.refused.pop_front()
    }
}
