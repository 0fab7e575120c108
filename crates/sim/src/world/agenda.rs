//! What happens next: the event queue, and how its ids are made.

use ackclock_core::{EventQueue, Time};

/// The event queue, and the time at which its events are scheduled.
#[derive(Default)]
pub(super) struct Agenda {
    queue: EventQueue,
    now: Time,
}

impl Agenda {
    /// The next event, unless it is later than `end`: it is processed now.
    #[inline]
    pub(super) fn begin(&mut self, end: Time) -> Option<(Time, u32)> {
        let next = self.queue.pop_until(end);
        if let Some((t, _)) = next {
            self.now = t;
        }
        next
    }

    /// Event `id` at `at`.
    #[inline]
    pub(super) fn add(&mut self, at: Time, id: u32) {
        self.add_as_if(self.now, at, id);
    }

    /// The same, in the place among those of the same time that it would get if it were added at `since`.
    #[inline]
    pub(super) fn add_as_if(&mut self, since: Time, at: Time, id: u32) {
        self.queue.push(at, since, id);
    }
}

/// An id is a number (of a link, an end, a flow or a recurring event) and below it one of these kinds.
pub(super) const KIND_BITS: u32 = 2;
pub(super) const KIND_MASK: u32 = (1 << KIND_BITS) - 1;
pub(super) const LINK: u32 = 0;
pub(super) const TIMER: u32 = 1;
pub(super) const WAKE: u32 = 2;
pub(super) const TICK: u32 = 3;
