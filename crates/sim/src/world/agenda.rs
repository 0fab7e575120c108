//! The event queue and the encoding of event ids.

use std::rc::Rc;

use ackclock_core::event::{Foresight, MAX_RANK};
use ackclock_core::{EventQueue, FlowId, Time};
use ackclock_net::PacketId;
use ackclock_tcp::Armed;

/// The event queue, with the time of the event in progress.
///
/// Within a nanosecond, host timers come first, as in a kernel whose clock interrupt runs them before packets are
/// received ([`Agenda::add_timer`]). Other events of the same nanosecond are popped in the order in which they were
/// scheduled. Among those scheduled at the same nanosecond, events of links come first, ordered by link number. The
/// order therefore does not depend on how far ahead of time a link learned of its packets.
#[derive(Clone, Default)]
pub(super) struct Agenda {
    queue: EventQueue,
    now: Time,
    /// Group of each flow.
    groups: Rc<[u32]>,
}

impl Agenda {
    /// Pop the next event, unless it is later than `end`, and set the current time to its time.
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

    /// Whether no other event is pending in the current nanosecond.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.queue.is_over(self.now)
    }

    /// See [`EventQueue::foresee`].
    #[inline]
    pub(super) fn foresee(&mut self, foresight: &impl Foresight) {
        self.queue.foresee(foresight);
    }

    /// Time of the event in progress.
    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// Schedule event `id` at `at`.
    #[inline]
    pub(super) fn add(&mut self, at: Time, id: u32) {
        self.queue.push(at, self.now, MAX_RANK, id);
    }

    /// Schedule event `id` of a timer at `at`, on a host of `flow`. Timers are ordered by host number. On each host,
    /// timers of the timer wheel precede high-resolution ones. On the wheel the highest level comes first, and within
    /// a level the timer armed last (Linux `expire_timers`, `enqueue_timer`).
    pub(super) fn add_timer(&mut self, at: Time, flow: FlowId, side: usize, wheel: Option<Armed>, id: u32) {
        let group = self.groups.get(flow as usize).copied().unwrap_or(flow);
        let first_armed_first = Time(LATEST.saturating_sub(self.now.0));
        let (turn, since) =
            wheel.map_or((LEVELS, first_armed_first), |armed| (LEVELS - 1 - armed.level, armed.since));
        self.queue.push_ahead(at, (2 * group + side as u32) * (LEVELS + 1) + turn, since, id);
    }

    /// Set the group of each flow; flows of one group share their hosts.
    pub(super) fn tell_groups(&mut self, groups: &[u32]) {
        self.groups = groups.into();
    }

    /// Schedule event `id` of a link at `at`. Among events at the same time, it is ordered as if it were added at
    /// `since`.
    #[inline]
    pub(super) fn add_of_link(&mut self, since: Time, at: Time, link: u32, id: u32) {
        self.queue.push(at, since, link, id);
    }

    /// Packets in transit to a host or a link: time of departure from the current link, number of that link, and
    /// packet.
    pub(super) fn packets(&self) -> impl Iterator<Item = (Time, u32, PacketId)> + '_ {
        let pending = self.queue.pending().filter(|(.., id)| matches!(id & KIND_MASK, ARRIVAL | CROSSING));
        pending.map(|(at, link, id)| (at, link, PacketId::of(id >> KIND_BITS)))
    }
}

/// Levels of the timer wheel (Linux LVL_DEPTH).
const LEVELS: u32 = 9;
/// Upper bound of the times of a run, ns.
const LATEST: u64 = 1 << 43;

/// An event id consists of the number of a packet, a link, an end, a flow or a recurring event and, in the low bits,
/// one of these kinds.
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
/// A junction takes the packets that have arrived.
pub(super) const MEETING: u32 = 6;
/// The application at an end learns of the packets that have arrived.
pub(super) const NEWS: u32 = 7;
