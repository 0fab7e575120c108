//! The event queue, and how its ids are made.

use std::rc::Rc;

use ackclock_core::event::{Foresight, MAX_RANK};
use ackclock_core::{EventQueue, FlowId, Time};
use ackclock_net::PacketId;
use ackclock_tcp::Armed;

/// The event queue, and the time at which its events are scheduled.
///
/// Timers of hosts come first in their nanosecond, as in a kernel whose clock interrupt runs them before it takes packets in
/// ([`Agenda::add_timer`]). Other events of one nanosecond leave in the order in which they were scheduled. Of those scheduled at the same
/// nanosecond, what links do comes first, by the number of the link: so it does not matter how far ahead of time a link was told of its packets.
#[derive(Clone, Default)]
pub(super) struct Agenda {
    queue: EventQueue,
    now: Time,
    /// Group of each flow.
    groups: Rc<[u32]>,
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

    /// See [`EventQueue::share_wheels`].
    pub(super) fn share_wheels(&mut self) {
        self.queue.share_wheels();
    }

    /// See [`EventQueue::give_back`].
    pub(super) fn give_back(self) {
        self.queue.give_back();
    }

    /// Whether nothing else happens in this nanosecond.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.queue.is_over(self.now)
    }

    /// See [`EventQueue::foresee`].
    #[inline]
    pub(super) fn foresee(&mut self, foresight: &impl Foresight) {
        self.queue.foresee(foresight);
    }

    /// The time at which events are scheduled.
    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// Event `id` at `at`.
    #[inline]
    pub(super) fn add(&mut self, at: Time, id: u32) {
        self.queue.push(at, self.now, MAX_RANK, id);
    }

    /// Event `id` of a timer at `at`, on a host of `flow`. Hosts have their turns by their numbers. On each, timers of the wheel come
    /// before those with a clock of their own; on the wheel the highest level comes first, and of one level the timer armed last (Linux
    /// `expire_timers`, `enqueue_timer`).
    pub(super) fn add_timer(&mut self, at: Time, flow: FlowId, side: usize, wheel: Option<Armed>, id: u32) {
        let group = self.groups.get(flow as usize).copied().unwrap_or(flow);
        let first_armed_first = Time(LATEST.saturating_sub(self.now.0));
        let (turn, since) =
            wheel.map_or((LEVELS, first_armed_first), |armed| (LEVELS - 1 - armed.level, armed.since));
        self.queue.push_ahead(at, (2 * group + side as u32) * (LEVELS + 1) + turn, since, id);
    }

    /// Flows of a group share hosts.
    pub(super) fn tell_groups(&mut self, groups: &[u32]) {
        self.groups = groups.into();
    }

    /// Event `id` of a link at `at`, in the place among those of the same time that it would get if it were added at `since`.
    #[inline]
    pub(super) fn add_of_link(&mut self, since: Time, at: Time, link: u32, id: u32) {
        self.queue.push(at, since, link, id);
    }

    /// Packets on their way to a host or a link: when they leave the link that they are on, and its number.
    pub(super) fn packets(&self) -> impl Iterator<Item = (Time, u32, PacketId)> + '_ {
        let pending = self.queue.pending().filter(|(.., id)| matches!(id & KIND_MASK, ARRIVAL | CROSSING));
        pending.map(|(at, link, id)| (at, link, PacketId::of(id >> KIND_BITS)))
    }
}

/// Levels of a wheel (Linux LVL_DEPTH).
const LEVELS: u32 = 9;
/// A time behind every run, ns.
const LATEST: u64 = 1 << 43;

/// An id is a number (of a packet, a link, an end, a flow or a recurring event) and below it one of these kinds.
pub(super) const KIND_BITS: u32 = 3;
pub(super) const KIND_MASK: u32 = (1 << KIND_BITS) - 1;
/// A packet reaches its host.
pub(super) const ARRIVAL: u32 = 0;
/// A packet reaches its next link.
pub(super) const CROSSING: u32 = 1;
pub(super) const LINK: u32 = 2;
pub(super) const TIMER: u32 = 3;
pub(super) const WAKE: u32 = 4;
pub(super) const TICK: u32 = 5;
/// Arrivals at a junction.
pub(super) const MEETING: u32 = 6;
