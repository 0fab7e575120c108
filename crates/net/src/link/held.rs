//! Queues that hold their packets and decide at departure, such as CoDel and FQ-CoDel.

use ackclock_core::packet::Load;
use ackclock_core::{Span, Time};

use super::{Kind, Link};
use crate::pool::{PacketId, Pool};
use crate::queue::{Dropped, Refused, Served};

impl Link {
    /// Whether [`Link::take_head_drops`] may have something to report.
    #[inline]
    pub fn drops_from_head(&self) -> bool {
        self.holds() || self.tells
    }

    /// Whether the queue holds its packets.
    #[inline]
    pub fn holds(&self) -> bool {
        match self.kind {
            Kind::Plain | Kind::Lossy => false,
            Kind::Holding => true,
            Kind::More => self.rest.as_ref().is_some_and(|rest| rest.queue.holds()),
        }
    }

    /// Whether [`Link::take_head_drops`] should be called: the queue has dropped a held packet, or the link may have
    /// other packets to report.
    #[inline]
    pub fn has_head_drops(&self) -> bool {
        self.tells || self.holds() && self.rest.as_ref().is_some_and(|rest| rest.queue.has_head_drops())
    }

    /// Return a held packet that was dropped since the last call (CoDel, FQ-CoDel), or a packet that was lost or
    /// refused behind a merging NIC, a copy, or a damaged packet: time, packet, and reason, oldest first. Only offers
    /// and polls produce such packets.
    #[inline]
    pub fn take_head_drops(&mut self) -> Option<Dropped> {
        if self.tells {
            if let Some(refused) = self.take_refused() {
                return Some(refused);
            }
        }
        let rest = self.rest.as_mut()?;
        let taken = rest.queue.take_head_drop();
        if let Some((_, packet, _)) = &taken {
            rest.crowd.rare().dropped[packet.class() as usize] += packet.segments() as u64;
        }
        taken
    }

    /// [`Link::take`] after the loss model, for a queue that holds its packets.
    #[inline(never)]
    pub(super) fn take_held(
        &mut self,
        pool: &mut Pool,
        now: Time,
        id: PacketId,
        load: Load,
    ) -> Result<Option<Time>, Refused> {
        if self.next_event() <= now {
            self.serve(pool, now);
        }
        let busy = self.start_of(now.max(self.busy_until)) > now;
        let rest = self.rest();
        let before = rest.queue.len();
        if before == 0 {
            rest.crowd.occupied = now;
        }
        if !rest.queue.enqueue(pool, now, id, load, busy) {
            rest.crowd.refuse(load);
            return Err(Refused::QueueFull);
        }
        // a packet behind others on a busy link does not affect the next departure
        if !(busy && before > 0 && rest.queue.len() > before) {
            self.serve(pool, now);
        }
        Ok(None)
    }

    /// Start every transmission due by `now` in a queue that holds its packets.
    pub(super) fn serve(&mut self, pool: &mut Pool, now: Time) {
        loop {
            let start = self.next_departure();
            if start > now || start == Time::NEVER {
                let others = start.min(self.card_due());
                // assigned, not the minimum with the old value: the head whose departure was expected may have been
                // dropped
                if let Some(rest) = &mut self.rest {
                    rest.next = rest.wire.next(pool).0.min(others);
                }
                return;
            }
            let rest = self.rest();
            let taken = rest.queue.dequeue(pool, start);
            let crowd = &mut rest.crowd;
            if rest.queue.len() == 0 {
                crowd.instants.cover(crowd.occupied, start);
            }
            if let Some(Served { id, load, waited }) = taken {
                crowd.served += load.segments() as u64;
                crowd.waited += waited.0 as u128 * load.segments() as u128;
                crowd.max_wait = crowd.max_wait.max(waited);
                let arrived = Time(start.0.saturating_sub(waited.0));
                let (start, end) = self.transmit(start, load);
                if let Some(delivery) = self.send(pool, [arrived, start], id, end) {
                    self.put(pool, start, id, delivery);
                }
            }
        }
    }

    /// Minimum time from the start of a held packet's transmission to its delivery, and the maximum for the packet
    /// sizes seen recently.
    pub fn seen_after(&self) -> [Span; 2] {
        [self.delay, self.delay + self.transmitter.longest()]
    }

    /// Next start of a transmission in a queue that holds its packets.
    #[inline]
    pub(super) fn next_departure(&self) -> Time {
        let head = self.rest.as_ref().and_then(|rest| rest.queue.head_arrival());
        head.map_or(Time::NEVER, |arrival| self.start_of(arrival.max(self.busy_until)))
    }
}
