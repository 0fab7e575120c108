//! What happens next: the event queue, and how its ids are made.

use ackclock_core::event::MAX_EVENT_ID;
use ackclock_core::{EventQueue, Lane, Time};

/// The event queue. While an event is processed its entry stays on top of its lane, vacant: what is added first in that
/// lane takes its place.
pub(super) struct Agenda {
    pub(super) queue: EventQueue,
    vacant: Option<Lane>,
    now: Time,
}

impl Agenda {
    pub(super) fn with_capacity(entries: usize) -> Agenda {
        Agenda { queue: EventQueue::with_capacity(entries), vacant: None, now: Time::ZERO }
    }

    /// The event on top of `lane`, which is due at `now`, is processed from here to [`Agenda::settle`].
    #[inline]
    pub(super) fn begin(&mut self, now: Time, lane: Lane) {
        self.vacant = Some(lane);
        self.now = now;
    }

    /// Event `id` at `at`.
    #[inline]
    pub(super) fn add(&mut self, at: Time, id: u32) {
        self.add_as_if(self.now, at, id);
    }

    /// The same, in the place among those of the same time that it would get if it were added at `since`.
    #[inline]
    pub(super) fn add_as_if(&mut self, since: Time, at: Time, id: u32) {
        debug_assert!(id <= MAX_EVENT_ID);
        let lane = if id & KIND_MASK == TIMER { Lane::Far } else { Lane::Near };
        if self.vacant == Some(lane) {
            self.vacant = None;
            self.queue.replace_top(lane, at, since, id);
        } else {
            self.queue.push(lane, at, since, id);
        }
    }

    /// The event is processed: drop its entry if nothing took its place.
    #[inline]
    pub(super) fn settle(&mut self) {
        if let Some(lane) = self.vacant.take() {
            self.queue.pop(lane);
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
