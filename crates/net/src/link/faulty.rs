//! A link whose packets come twice, or are damaged.

use ackclock_core::packet::Load;
use ackclock_core::{Packet, Time};

use super::Link;
use crate::queue::{Dropped, Refused};

impl Link {
    /// The copy of the packet that was offered last, which is offered next, and when. The caller looks behind every offer that did not
    /// return a delivery, if [`Link::has_head_drops`] says that there may be something.
    pub fn take_copy(&mut self) -> Option<(Time, Packet)> {
        self.extras_mut()?.doubler.as_mut()?.take()
    }

    /// A packet has been transmitted: whether it is damaged, which is counted.
    pub(super) fn damages(&mut self, load: Load) -> bool {
        let damaged = self.extras_mut().and_then(|extras| extras.damage.as_mut()).is_some_and(|of| of.draw());
        if damaged {
            let count = &mut self.crowd().rare().damaged;
            count[0] += load.segments() as u64;
            count[1] += load.bytes() as u64;
        }
        damaged
    }

    /// A packet is gone that whoever offered it has not got back.
    pub fn refused_unseen(&mut self, now: Time, packet: Packet, reason: Refused) {
        self.extras_or_none().refused.push_back((now, packet, reason));
    }

    /// Such a packet, the oldest first.
    pub(super) fn take_refused(&mut self) -> Option<Dropped> {
        self.extras_mut()?.refused.pop_front()
    }
}
