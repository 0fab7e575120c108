//! What happens next: the event queue, and how its ids are made.

use ackclock_core::event::MAX_EVENT_ID;
use ackclock_core::{EventQueue, Time};

/// The event queue, whose top entry is vacant while its event is processed.
pub(super) struct Agenda {
    pub(super) queue: EventQueue,
    pub(super) vacant: bool,
}

impl Agenda {
    pub(super) fn with_capacity(entries: usize) -> Agenda {
        Agenda { queue: EventQueue::with_capacity(entries), vacant: false }
    }

    #[inline]
    pub(super) fn add(&mut self, at: Time, id: u32) {
        debug_assert!(id <= MAX_EVENT_ID);
        if self.vacant {
            self.vacant = false;
            self.queue.replace_top(at, id);
        } else {
            self.queue.push(at, id);
        }
    }

    /// The event is processed: drop its entry if nothing took its place.
    #[inline]
    pub(super) fn settle(&mut self) {
        if self.vacant {
            self.vacant = false;
            self.queue.pop();
        }
    }
}

/// An id is a number (of a link, an end, a flow or a recurring event) and below it one of these kinds.
pub(super) const KIND_BITS: u32 = 2;
pub(super) const KIND_MASK: u32 = (1 << KIND_BITS) - 1;
pub(super) const LINK: u32 = 0;
pub(super) const TIMER: u32 = 1;
pub(super) const WAKE: u32 = 2;
pub(super) const TICK: u32 = 3;
