//! `fq` at a host: one queue per socket, served by deficit round robin. A packet that is not yet due waits without
//! delaying others. TCP sets the time at which each packet is due (its earliest departure time), so pacing is done by
//! `fq`.
//!
//! Source: Linux 7.3 net/sched/sch_fq.c, also for the names; Dumazet 2013.
//!
//! | variable | meaning |
//! |---|---|
//! | `credit` | bytes that a flow may still send in this round; zero or less ends its round |
//! | `time_next_packet` | time from which the flow may send again |
//! | `internal` | packets on the fast path: already due at arrival, while no flow was eligible |
//! | `watchdog` | expiry of the timer that releases throttled flows, up to `timer_slack` late |
//!
//! Differs: all packets have the same priority, so there is one band. A flow that has been idle for 3 s is forgotten
//! when a new flow begins, whereas Linux checks only the flows in one hash bucket. A SYN-ACK belongs to its
//! connection.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ackclock_core::packet::Ecn;
use ackclock_core::schema::{Takes, COUNT, DURATION, FLAG, RATE};
use ackclock_core::{table, Rate, Span, Time};

use super::device::Queued;
use crate::qdisc::{us, Qdisc};

table! {
    /// Linux fq: one queue per connection, served in turn; packets wait until they are due.
    /// With fq, TCP paces with every controller, at its pacing rate, and fq delays the packets.
    pub struct FqParams "fq" {
        /// Maximum number of packets in all queues.
        limit: u32 = COUNT, 10_000;
        /// Maximum number of packets of a connection.
        flow_limit: u32 = COUNT, 100;
        /// Bytes that a connection may send in one round.
        quantum: u32 = Takes::Size(1, 1 << 30), 2 * 1514;
        /// Bytes that a new connection may send in its first round.
        initial_quantum: u32 = Takes::Size(1, 1 << 30), 10 * 1514;
        /// A connection that was idle for this long gets a full quantum again.
        refill_delay: Span = DURATION, Span::from_ms(40);
        /// Maximum rate of a connection, whatever its pacing rate. Default: no maximum.
        max_rate: Option<Rate> = RATE;
        /// For datagrams limited by `max_rate`: rate up to which each packet is paced individually. Above it, packets
        /// are paced in units of a quantum.
        low_rate_threshold: Rate = RATE, Rate(550_000);
        /// Maximum time until a packet is due. A packet due later is dropped, or its departure time is moved to the
        /// horizon.
        horizon: Span = DURATION, Span::from_secs(10);
        /// Drop packets beyond the horizon; if false, they are sent at the horizon.
        horizon_drop: bool = FLAG, true;
        /// Delay after the departure time beyond which an ECN-capable packet is marked. Default: no packet is marked.
        ce_threshold: Option<Span> = DURATION;
        /// Maximum delay of the timer, which lets it release several packets at once.
        timer_slack: Span = Takes::Duration(0), Span::from_us(10);
    }
}

impl FqParams {
    /// Return Linux `sch_fq` with these parameters.
    pub(crate) fn qdisc(&self) -> Qdisc {
        let rate = |rate: Rate| (rate.0 / 8).min(u32::MAX as u64) as u32; // bytes per second
        let most = self.max_rate.map(rate);
        Qdisc::new("fq")
            .row(1, self.limit, "limit {}")
            .row(2, self.flow_limit, "flow_limit {}")
            .row(3, self.quantum, "quantum {}")
            .row(4, self.initial_quantum, "initial_quantum {}")
            .row(9, us(self.refill_delay), "refill_delay {}us")
            .row(11, rate(self.low_rate_threshold), "low_rate_threshold {}bps")
            .row(14, us(self.horizon), "horizon {}us")
            .row(15, self.horizon_drop as u8, if self.horizon_drop { "horizon_drop" } else { "horizon_cap" })
            .row(13, self.timer_slack.0 as u32, "timer_slack {}ns")
            .some(7, most, "maxrate {}bps")
            .some(12, self.ce_threshold.map(us), "ce_threshold {}us")
    }
}

/// Minimum idle time after which a flow may be forgotten (Linux FQ_GC_AGE).
const GC_AGE: Span = Span::from_secs(3);
/// Maximum number of packets on the fast path while flows are throttled.
const FAST_PATH: usize = 8;
/// Maximum transmission time charged for a packet at a low `max_rate`.
const LONGEST: Span = Span::from_secs(1);

/// Index of a flow in `flows`.
type FlowAt = u32;

/// Flow state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// In no list since this time.
    Detached(Time),
    /// In the list of new or of old flows.
    Listed,
    /// Waiting for the time of its next packet.
    Throttled,
}

#[derive(Clone, Debug)]
struct Flow {
    key: u64,
    waiting: VecDeque<Queued>,
    credit: i64,
    place: Place,
    time_next_packet: Time,
}

/// State of the queueing discipline.
#[derive(Clone)]
pub(crate) struct Fq {
    params: FqParams,
    internal: VecDeque<Queued>,
    flows: Vec<Flow>,
    /// Free entries in `flows`.
    free: Vec<FlowAt>,
    by_key: BTreeMap<u64, FlowAt>,
    new: VecDeque<FlowAt>,
    old: VecDeque<FlowAt>,
    delayed: BTreeSet<(Time, FlowAt)>,
    /// Idle flows, in the order in which they became idle. Some may have become active again.
    idle: VecDeque<(Time, FlowAt)>,
    /// Number of packets: in total, and excluding those on the fast path.
    packets: u32,
    banded: u32,
    /// Number of flows with packets that are not throttled.
    eligible: u32,
    watchdog: Time,
    pub(crate) marked: u64,
}

impl Fq {
    pub(crate) fn new(params: FqParams) -> Fq {
        Fq {
            params,
            internal: VecDeque::new(),
            flows: Vec::new(),
            free: Vec::new(),
            by_key: BTreeMap::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            delayed: BTreeSet::new(),
            idle: VecDeque::new(),
            packets: 0,
            banded: 0,
            eligible: 0,
            watchdog: Time::NEVER,
            marked: 0,
        }
    }

    /// Number of waiting packets.
    pub(crate) fn len(&self) -> u32 {
        self.packets
    }

    /// Whether a packet of this flow that is due at `due` would be accepted at `now`.
    pub(crate) fn takes(&self, now: Time, key: u64, due: Time) -> bool {
        if self.banded >= self.params.limit {
            return false;
        }
        if self.params.horizon_drop && due > now + self.params.horizon {
            return false;
        }
        self.is_fast(now, due) || {
            let waiting = self.by_key.get(&key).map_or(0, |&at| self.flows[at as usize].waiting.len());
            (waiting as u32) < self.params.flow_limit
        }
    }

    /// Append a packet. Returns false if it is refused.
    pub(crate) fn enqueue(&mut self, now: Time, key: u64, mut queued: Queued) -> bool {
        let due = queued.due.unwrap_or(now);
        if !self.takes(now, key, due) {
            return false;
        }
        let due = due.min(now + self.params.horizon);
        queued.due = queued.due.map(|_| due);
        queued.to_send = due;
        self.packets += 1;
        if self.is_fast(now, due) {
            self.internal.push_back(queued);
            return true;
        }
        self.banded += 1;
        let at = self.flow(now, key);
        let flow = &mut self.flows[at as usize];
        if let Place::Detached(since) = flow.place {
            if now > since + self.params.refill_delay {
                flow.credit = flow.credit.max(self.params.quantum as i64);
            }
            flow.place = Place::Listed;
            self.new.push_back(at);
        }
        if flow.waiting.is_empty() {
            self.eligible += 1; // a throttled flow is never empty
        }
        flow.waiting.push_back(queued);
        true
    }

    /// Return the packet to transmit at `now`. After `None`, [`Fq::ready`] returns the time of the next attempt.
    pub(crate) fn dequeue(&mut self, now: Time) -> Option<Queued> {
        if let Some(queued) = self.internal.pop_front() {
            self.packets -= 1;
            return Some(queued);
        }
        self.release(now);
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let Some(&at) = list.front() else {
                self.watch();
                return None;
            };
            let flow = &mut self.flows[at as usize];
            if flow.credit <= 0 {
                flow.credit += self.params.quantum as i64;
                list.pop_front();
                self.old.push_back(at);
                continue;
            }
            let Some(head) = flow.waiting.front() else {
                list.pop_front();
                match from_new {
                    true => self.old.push_back(at), // to the end of the old flows once, so that it cannot stay new
                    false => {
                        flow.place = Place::Detached(now);
                        self.idle.push_back((now, at));
                    }
                }
                continue;
            };
            let next = head.to_send.max(flow.time_next_packet);
            if next > now {
                flow.time_next_packet = next;
                flow.place = Place::Throttled;
                list.pop_front();
                self.delayed.insert((next, at));
                self.eligible -= 1;
                continue;
            }
            let mut queued = flow.waiting.pop_front().expect("invariant: seen above");
            self.packets -= 1;
            self.banded -= 1;
            self.eligible -= flow.waiting.is_empty() as u32;
            let late = self.params.ce_threshold.is_some_and(|threshold| now - next > threshold);
            if late && queued.packet.ecn != Ecn::NotEct {
                queued.packet.ecn = Ecn::Ce;
                self.marked += 1;
            }
            flow.credit -= queued.packet.bytes as i64;
            self.bound_rate(now, at, &queued);
            return Some(queued);
        }
    }

    /// Apply `max_rate`: set the time from which the flow may send again after `queued`.
    fn bound_rate(&mut self, now: Time, at: FlowAt, queued: &Queued) {
        let Some(rate) = self.params.max_rate else { return };
        let flow = &mut self.flows[at as usize];
        let mut bytes = queued.packet.bytes;
        if queued.due.is_none() {
            if rate <= self.params.low_rate_threshold {
                flow.credit = 0;
            } else {
                bytes = bytes.max(self.params.quantum);
                if flow.credit > 0 {
                    return;
                }
            }
        }
        let span = rate.tx_time(bytes).min(LONGEST);
        let drift = match flow.time_next_packet {
            Time::ZERO => Span::ZERO,
            before => now.since(before),
        };
        flow.time_next_packet = now + (span - drift.min(Span(span.0 / 2)));
    }

    /// Earliest time at which a packet may be available: zero if possibly at once, otherwise the watchdog's expiry.
    pub(crate) fn ready(&self) -> Time {
        match self.internal.is_empty() && self.eligible == 0 {
            true => self.watchdog,
            false => Time::ZERO,
        }
    }

    /// Whether a packet may bypass all flows (Linux `fq_fastpath_check`).
    fn is_fast(&self, now: Time, due: Time) -> bool {
        if due > now || self.params.max_rate.is_some() {
            return false;
        }
        let overdue = self.delayed.first().is_some_and(|&(t, _)| t <= now);
        self.packets == 0 || (self.eligible == 0 && self.internal.len() < FAST_PATH && !overdue)
    }

    /// Make throttled flows eligible again once their time has come.
    fn release(&mut self, now: Time) {
        while let Some(&(t, at)) = self.delayed.first() {
            if t > now {
                return;
            }
            self.delayed.pop_first();
            self.flows[at as usize].place = Place::Listed;
            self.old.push_back(at);
            self.eligible += 1;
        }
    }

    /// Arm the watchdog for the earliest throttled flow (Linux `qdisc_watchdog_schedule_range_ns`).
    fn watch(&mut self) {
        let slack = self.params.timer_slack;
        let Some(&(next, _)) = self.delayed.first() else {
            self.watchdog = Time::NEVER;
            return;
        };
        let keeps = self.watchdog != Time::NEVER
            && self.watchdog >= next + slack
            && self.watchdog <= next + slack + slack;
        if !keeps {
            self.watchdog = next + slack;
        }
    }

    /// Return the flow with this key, creating it if it is absent.
    fn flow(&mut self, now: Time, key: u64) -> FlowAt {
        if let Some(&at) = self.by_key.get(&key) {
            return at;
        }
        self.forget(now);
        let flow = Flow {
            key,
            waiting: VecDeque::new(),
            credit: self.params.initial_quantum as i64,
            place: Place::Detached(now),
            time_next_packet: Time::ZERO,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.flows[at as usize] = flow;
                at
            }
            None => {
                self.flows.push(flow);
                self.flows.len() as u32 - 1
            }
        };
        self.by_key.insert(key, at);
        at
    }

    /// Forget flows that have been idle for longer than `GC_AGE`.
    fn forget(&mut self, now: Time) {
        while let Some(&(since, at)) = self.idle.front() {
            if now <= since + GC_AGE {
                return;
            }
            self.idle.pop_front();
            let flow = &self.flows[at as usize];
            if flow.place == Place::Detached(since) && self.by_key.remove(&flow.key).is_some() {
                self.free.push(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::Packet;
    use proptest::prelude::*;

    use super::*;

    fn packet(bytes: u32) -> Packet {
        Packet { bytes, ..Packet::default() }
    }

    fn fq(change: impl FnOnce(&mut FqParams)) -> Fq {
        use ackclock_core::schema::{Described, Value};
        let mut params = FqParams::read(&Value::table([("kind", Value::Text("fq".to_string()))])).unwrap();
        change(&mut params);
        Fq::new(params)
    }

    fn due(at: u64, n: u32) -> Queued {
        Queued::new(Packet { conn: n, ..packet(1514) }, Some(Time(at)))
    }

    #[test]
    fn a_packet_waits_for_its_time_and_holds_nobody_up() {
        let mut q = fq(|_| ());
        assert!(q.enqueue(Time(0), 1, due(50_000, 1)));
        assert!(q.enqueue(Time(0), 2, due(30_000, 2)));
        assert!(q.dequeue(Time(0)).is_none());
        assert_eq!(q.ready(), Time(40_000), "the watchdog is 10 us late");
        assert!(q.enqueue(Time(10_000), 3, due(10_000, 3)), "the fast path: no other connection can send");
        assert_eq!(q.dequeue(Time(10_000)).unwrap().packet.conn, 3);
        assert!(q.dequeue(Time(29_999)).is_none());
        assert_eq!(q.dequeue(Time(40_000)).unwrap().packet.conn, 2);
        assert!(q.dequeue(Time(40_000)).is_none());
        assert_eq!(q.ready(), Time(60_000));
        assert_eq!(q.dequeue(Time(60_000)).unwrap().packet.conn, 1);
        assert_eq!((q.len(), q.ready()), (0, Time(60_000)));
    }

    #[test]
    fn a_connection_has_its_limit_and_all_have_one() {
        let mut q = fq(|params| (params.flow_limit, params.limit) = (2, 3));
        let take = |q: &mut Fq, key| q.enqueue(Time(0), key, due(1_000_000, 0));
        assert_eq!([take(&mut q, 1), take(&mut q, 1), take(&mut q, 1)], [true, true, false]);
        assert_eq!([take(&mut q, 2), take(&mut q, 3)], [true, false]);
    }

    #[test]
    fn beyond_the_horizon_packets_are_dropped_or_leave_at_it() {
        let far = 20_000_000_000;
        assert!(!fq(|_| ()).enqueue(Time(0), 1, due(far, 1)));
        let mut q = fq(|params| params.horizon_drop = false);
        assert!(q.enqueue(Time(0), 1, due(far, 1)));
        assert!(q.dequeue(Time(9_999_999_999)).is_none());
        assert!(q.dequeue(Time(10_000_000_000)).is_some());
    }

    #[test]
    fn what_leaves_late_is_marked() {
        let mut q = fq(|params| params.ce_threshold = Some(Span::from_us(100)));
        let ect = |at| Queued::new(Packet { ecn: Ecn::Ect0, ..packet(1514) }, Some(Time(at)));
        q.enqueue(Time(0), 1, ect(10_000));
        q.enqueue(Time(0), 1, ect(20_000));
        q.enqueue(Time(0), 2, due(20_000, 0));
        assert_eq!(q.dequeue(Time(110_000)).unwrap().packet.ecn, Ecn::Ect0, "just in time");
        assert_eq!(q.dequeue(Time(120_001)).map(|p| p.packet.ecn), Some(Ecn::Ce));
        assert_eq!(q.dequeue(Time(120_001)).map(|p| p.packet.ecn), Some(Ecn::NotEct), "it cannot be");
        assert_eq!(q.marked, 1);
    }

    #[test]
    fn a_greatest_rate_spaces_packets() {
        let mut q = fq(|params| params.max_rate = Some(Rate(12_112_000))); // 1 ms for 1514 bytes
        for _ in 0..3 {
            q.enqueue(Time(0), 1, due(0, 1));
        }
        assert!(q.dequeue(Time(0)).is_some());
        assert!(q.dequeue(Time(0)).is_none());
        assert_eq!(q.ready(), Time(1_010_000));
        assert!(q.dequeue(Time(1_010_000)).is_some());
        // 10 us late; the next packet makes up for the delay
        assert!(q.dequeue(Time(1_999_999)).is_none());
        assert!(q.dequeue(Time(2_000_000)).is_some());
    }

    proptest! {
        /// Oracle: a scan of all flows at every instant. No packet is sent early, flows keep their order, no packet
        /// is lost, and eligible flows get equal shares, within a quantum plus one packet of each.
        #[test]
        fn flows_share_and_nobody_leaves_early(
            sizes in prop::collection::vec(prop::collection::vec(64u32..4000, 40..41), 2..5),
            times in prop::collection::vec(0u64..50_000, 40..41),
            quantum in 300u32..6000,
        ) {
            let mut q = fq(|params| (params.quantum, params.initial_quantum) = (quantum, quantum));
            let blocker = Queued::new(packet(1), Some(Time(0)));
            prop_assert!(q.enqueue(Time(0), 99, blocker)); // keeps other flows off the fast path
            prop_assert!(q.enqueue(Time(0), 99, Queued::new(packet(1), Some(Time(1)))));
            let mut ends = vec![0; sizes.len()];
            for i in 0..40 {
                for (flow, sizes) in sizes.iter().enumerate() {
                    ends[flow] += times[i];
                    let p = Packet { conn: flow as u32, flow: i as u32, ..packet(sizes[i]) };
                    prop_assert!(q.enqueue(Time(0), flow as u64, Queued::new(p, Some(Time(1 + ends[flow])))));
                }
            }
            let last = *ends.iter().max().unwrap();
            let (mut next, mut bytes, mut now) = (vec![0u32; sizes.len()], vec![0u32; sizes.len()], Time(0));
            // all flows are eligible from `last` on
            while q.len() > 0 {
                match q.dequeue(now) {
                    None => {
                        prop_assert!(q.ready() > now && q.ready() <= Time(last + 20_002));
                        now = q.ready();
                    }
                    Some(queued) if queued.packet.bytes == 1 => {}
                    Some(queued) => {
                        let at = queued.packet.conn as usize;
                        prop_assert!(queued.due.unwrap() <= now);
                        prop_assert_eq!(queued.packet.flow, next[at]);
                        next[at] += 1;
                        if now > Time(last + 1) && next.iter().all(|&n| n < 40) {
                            bytes[at] += queued.packet.bytes;
                        }
                    }
                }
            }
            prop_assert!(next.iter().all(|&n| n == 40));
            let spread = bytes.iter().max().unwrap() - bytes.iter().min().unwrap();
            prop_assert!(spread <= 2 * (quantum + 4000), "{:?}", bytes);
        }
    }
}
