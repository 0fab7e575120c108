//! State that a link needs once a packet waits.

use ackclock_core::packet::Load;
use ackclock_core::{Span, Time};

use super::counters::Sums;
use crate::queue::backlog::Backlog;
use crate::queue::instants::Instants;
use crate::queue::DropTail;

/// State that a link needs once a packet waits, is marked or is lost. Most access links of many flows never need it.
#[derive(Clone, Default)]
pub(super) struct Crowd {
    pub(super) backlog: Backlog,
    /// Whole seconds at which packets waited.
    pub(super) instants: Instants,
    pub(super) max_wait: Span,
    /// Segments transmitted, their total waiting time in ns, and the start of the current period with waiting
    /// packets. Used only if the queue holds its packets.
    pub(super) served: u64,
    pub(super) waited: u128,
    pub(super) occupied: Time,
    rare: Option<Box<Rare>>,
}

/// Counters that most links never use.
#[derive(Clone, Default)]
pub(super) struct Rare {
    pub(super) dropped: [u64; 4],
    pub(super) dropped_loss: u64,
    pub(super) refused: u64,
    /// Segments and bytes that were transmitted but damaged on the way.
    pub(super) damaged: [u64; 2],
    pub(super) marked: u64,
    /// Sums at the time when counting began; `None` if it began with the run.
    pub(super) before: Option<Sums>,
}

impl Crowd {
    /// Record a packet that waits for its transmission in a queue that does not hold packets.
    #[inline]
    pub(super) fn wait(&mut self, now: Time, start: Time, load: Load) {
        self.backlog.expect(now, load.segments());
        self.instants.cover(now, start);
        self.backlog.push(start, start - now, load);
        self.max_wait = self.max_wait.max(start - now);
    }

    /// Fast variant of `wait`. Returns false, and does nothing, if the queue would reach a new maximum or a second
    /// that has not been counted yet.
    #[inline(always)]
    pub(super) fn wait_as_before(&mut self, queue: &DropTail, now: Time, start: Time, load: Load) -> bool {
        let as_before = queue.has_room_at_sight(load, &self.backlog) && !self.instants.lie_before(start);
        if as_before {
            let wait = Span(start.0 - now.0);
            self.backlog.push(start, wait, load);
            if wait > self.max_wait {
                self.max_wait = wait;
            }
        }
        as_before
    }

    /// Count a packet that the queue refuses.
    pub(super) fn refuse(&mut self, load: Load) {
        let rare = self.rare();
        rare.refused += load.segments() as u64;
        rare.dropped[load.class()] += load.segments() as u64;
    }

    #[inline]
    pub(super) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Return the rare counters; `None` until one of them is used.
    pub(super) fn rare_if_any(&self) -> Option<&Rare> {
        self.rare.as_deref()
    }
}
