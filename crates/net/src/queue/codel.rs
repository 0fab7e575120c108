//! CoDel: keeps the standing delay of a queue low by dropping (or marking) at departure while the sojourn time has
//! been above `target` for `interval`, at intervals that shrink with the square root of the number of drops.
//!
//! Source: RFC 8289 (Nichols, Jacobson, McGregor, Iyengar 2018), §5 for the pseudo-code and its names; Linux 7.3
//! `include/net/codel_impl.h` for the arithmetic.
//!
//! | variable | meaning |
//! |---|---|
//! | `first_above_time` | time at which the sojourn time will have been above `target` for `interval`; zero while it is below |
//! | `drop_next` | time of the next drop in the dropping state |
//! | `count`, `lastcount` | packets dropped since the dropping state was entered; value of `count` at the last entry |
//! | `dropping` | whether the queue is in the dropping state |
//! | `mtu` | bytes of the largest segment so far, at least a full Ethernet frame: nothing is dropped while no more bytes wait |
//! | `rec_inv_sqrt` | 1 / sqrt(count) in 2^-16, approximated by Newton's steps |
//!
//! `ce_threshold` is Linux's, not the RFC's: a packet that waited longer is marked at departure, whatever the state.
//!
//! Differs from the RFC, as Linux does:
//! - Time is counted in units of 1,024 ns, and 1 / sqrt(count) is updated by one step of Newton's method per drop,
//!   with 16 bits.
//! - The backlog is compared with the largest segment so far, not with the largest packet, which may have several
//!   segments (RFC 8289 §4.2 says "one MTU").
//! - With `ecn`, an ECN-capable packet is marked and sent instead of being dropped. On entry to the dropping state no
//!   further packet is dequeued; within it, the next drop is scheduled at once.

use std::collections::VecDeque;

use ackclock_core::packet::{Ecn, Load};
use ackclock_core::schema::{Limit, Refusal, Rules, Takes, DURATION, FLAG};
use ackclock_core::{table, Packet, Span, Stream, Time};

use super::ledger::{Holding, Ledger};
use super::{ecn_capable, Classifier, Discipline, Refused, Served};
use crate::pool::{PacketId, Pool};
use crate::qdisc::{us, Qdisc, ENOUGH};

table! {
    /// CoDel (RFC 8289): drops packets when their sojourn time stays above a target.
    pub struct CodelParams "codel" {
        /// Maximum length of the queue: packets or multiples of the bandwidth-delay product. Default: unlimited.
        limit: Option<u32> = Takes::PacketLimit;
        /// Acceptable standing queue delay (TARGET).
        target: Span = DURATION, TARGET;
        /// Time for which the sojourn time may exceed the target before drops begin (INTERVAL); about a worst-case RTT.
        interval: Span = DURATION, INTERVAL;
        /// Mark ECN-capable packets instead of dropping them.
        ecn: bool = FLAG, false;
        /// Queueing delay beyond which an ECN-capable packet is marked, regardless of CoDel's decision (Linux
        /// `ce_threshold`). Default: off.
        ce_threshold: Option<Span> = DURATION;
    }
    rules |codel, rules| target_within_interval(codel.target, codel.interval, rules)
}

impl Discipline for CodelParams {
    type Queue = Box<Codel>;

    fn queue(self, _: impl FnOnce() -> Stream) -> Box<Codel> {
        Box::new(Codel::new(self))
    }

    fn limit(&self) -> Option<Limit> {
        self.limit.map(Limit::Packets)
    }

    /// Return Linux `sch_codel` with these parameters.
    fn qdisc(&self, _: Span) -> Result<Qdisc, Refusal> {
        Ok(Qdisc::new("codel")
            .row(2, self.limit.unwrap_or(ENOUGH), "limit {}")
            .row(1, us(self.target), "target {}us")
            .row(3, us(self.interval), "interval {}us")
            .flag(4, self.ecn, ["ecn", "noecn"])
            .some(5, self.ce_threshold.map(|t| us(t).max(1)), "ce_threshold {}us"))
    }
}

/// Check that CoDel's target is at most its interval.
pub(super) fn target_within_interval(target: Span, interval: Span, rules: &mut Rules) {
    if target <= interval {
        return;
    }
    if !rules.given("target").unwrap_or(target != TARGET) {
        let target = rules.shown("target");
        return rules.refuse("interval", format_args!("at least the target of {target}"));
    }
    let interval = rules.shown("interval");
    rules.refuse("target", format_args!("at most the interval of {interval}"));
}

/// Defaults of RFC 8289 §4.4, for CoDel and for disciplines that contain CoDel.
pub(crate) const TARGET: Span = Span::from_ms(5);
pub(crate) const INTERVAL: Span = Span::from_ms(100);

/// Bytes of a full Ethernet frame (Linux `psched_mtu`).
const FRAME: u32 = 1514;

/// Linux `CODEL_MAX_DROPS_PER_DEQUEUE`.
const MAX_DROPS: u32 = 1000;

/// Convert a time to units of 1,024 ns (Linux `codel_time_t`, but wide enough never to wrap).
fn units(ns: u64) -> u64 {
    ns >> 10
}

#[derive(Clone, Copy)]
struct Held {
    arrival: Time,
    load: Load,
    id: PacketId,
}

#[derive(Clone)]
pub(crate) struct Codel {
    limit: u32,
    params: CodelParams,
    /// Packets that `ce_threshold` applies to.
    pub(super) marks_early: Classifier,
    /// In units of 1,024 ns, as is `drop_next`.
    first_above_time: u64,
    drop_next: u64,
    count: u32,
    lastcount: u32,
    rec_inv_sqrt: u16,
    dropping: bool,
    mtu: u32,
    queue: VecDeque<Held>,
    bytes: u64,
    ledger: Ledger,
}

/// Packet taken from the queue, and whether its sojourn time permits a drop.
struct DequeueResult {
    packet: Option<Held>,
    sojourn_time: Span,
    ok_to_drop: bool,
}

impl Codel {
    pub(crate) fn new(params: CodelParams) -> Codel {
        Codel {
            limit: params.limit.unwrap_or(u32::MAX),
            params,
            marks_early: Classifier::AnyEct,
            first_above_time: 0,
            drop_next: 0,
            count: 0,
            lastcount: 0,
            rec_inv_sqrt: 0,
            dropping: false,
            mtu: FRAME,
            queue: VecDeque::new(),
            bytes: 0,
            ledger: Ledger::default(),
        }
    }

    /// Append a packet. `must_wait`: the link is busy, so even the first packet counts as waiting. Returns false if
    /// the queue is full.
    pub(crate) fn enqueue(&mut self, now: Time, id: PacketId, load: Load, must_wait: bool) -> bool {
        if must_wait && self.len() >= self.limit {
            return false;
        }
        self.mtu = self.mtu.max(load.bytes() / load.segments());
        self.bytes += load.bytes() as u64;
        self.ledger.packets += load.segments();
        self.queue.push_back(Held { arrival: now, load, id });
        self.ledger.waits(must_wait);
        true
    }

    /// Return the packet to transmit at `now`; packets dropped before it are returned by [`Codel::take_head_drop`].
    /// `beside`: bytes that wait in other queues of the same discipline.
    pub(crate) fn dequeue(&mut self, pool: &mut Pool, now: Time, beside: u64) -> Option<Served> {
        let mut r = self.dodequeue(now, beside);
        let clock = units(now.0);
        if self.dropping {
            if !r.ok_to_drop {
                self.dropping = false;
            }
            let mut drops = 0;
            while self.dropping && clock >= self.drop_next {
                drops += 1;
                if drops > MAX_DROPS {
                    self.drop_next = self.control_law(clock);
                    break;
                }
                self.count = self.count.wrapping_add(1);
                self.newton_step();
                if self.mark(pool, &r) {
                    self.drop_next = self.control_law(self.drop_next);
                    break;
                }
                self.drop(pool, now, &mut r);
                r = self.dodequeue(now, beside);
                if r.ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if r.ok_to_drop {
            if !self.mark(pool, &r) {
                self.drop(pool, now, &mut r);
                r = self.dodequeue(now, beside);
            }
            self.dropping = true;
            // If the last dropping state ended recently, start near the drop rate that controlled the queue then.
            let delta = self.count.wrapping_sub(self.lastcount);
            let soon = clock < self.drop_next + 16 * units(self.params.interval.0);
            if delta > 1 && soon {
                self.count = delta;
                self.newton_step(); // inexact at first: later steps converge
            } else {
                self.count = 1;
                self.rec_inv_sqrt = u16::MAX;
            }
            self.drop_next = self.control_law(clock);
            self.lastcount = self.count;
        }
        let Held { id, load, arrival } = r.packet?;
        self.mark_early(pool, id, clock - units(arrival.0));
        Some(Served { id, load, waited: r.sojourn_time })
    }

    /// Bytes of the waiting packets.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Remove the packet at the head, for the caller to drop.
    pub(crate) fn drop_head(&mut self, pool: &mut Pool, now: Time) -> Option<Packet> {
        let Held { arrival, load, id } = self.queue.pop_front()?;
        self.leaves(load, now - arrival);
        Some(pool.remove(id))
    }

    /// Count packets that the caller dropped from the head as signals of this queue (Linux `fq_codel_drop`).
    pub(crate) fn add_to_count(&mut self, dropped: u32) {
        self.count = self.count.wrapping_add(dropped);
    }

    #[inline]
    fn leaves(&mut self, load: Load, sojourn_time: Span) {
        self.bytes -= load.bytes() as u64;
        self.ledger.leaves(load.segments(), sojourn_time);
    }

    fn dodequeue(&mut self, now: Time, beside: u64) -> DequeueResult {
        let Some(held) = self.queue.pop_front() else {
            self.first_above_time = 0;
            return DequeueResult { packet: None, sojourn_time: Span::ZERO, ok_to_drop: false };
        };
        let sojourn_time = now - held.arrival;
        self.leaves(held.load, sojourn_time);
        let clock = units(now.0);
        let waited = clock - units(held.arrival.0);
        let mut ok_to_drop = false;
        if waited < units(self.params.target.0) || self.bytes + beside <= self.mtu as u64 {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = clock + units(self.params.interval.0);
        } else {
            ok_to_drop = clock > self.first_above_time;
        }
        DequeueResult { packet: Some(held), sojourn_time, ok_to_drop }
    }

    /// `t` + interval / sqrt(count), at least one unit.
    fn control_law(&self, t: u64) -> u64 {
        t + ((units(self.params.interval.0) * self.rec_inv_sqrt as u64) >> 16).max(1)
    }

    /// Perform one step of Newton's method towards 1 / sqrt(count): x/2 (3 - count x^2), in 32 bits, of which 16 are
    /// kept.
    fn newton_step(&mut self) {
        let x = (self.rec_inv_sqrt as u64) << 16;
        let rest = (3u64 << 32).wrapping_sub((self.count as u64).wrapping_mul((x * x) >> 32));
        self.rec_inv_sqrt = ((rest >> 2).wrapping_mul(x) >> 31 >> 16) as u16;
    }

    fn drop(&mut self, pool: &mut Pool, now: Time, r: &mut DequeueResult) {
        if let Some(held) = r.packet.take() {
            self.ledger.drop(now, pool.remove(held.id), Refused::Aqm);
        }
    }

    /// Apply `ce_threshold` to a packet that waited for this many units of 1,024 ns.
    #[inline]
    fn mark_early(&mut self, pool: &mut Pool, id: PacketId, waited: u64) {
        if self.params.ce_threshold.is_some_and(|threshold| waited > units(threshold.0)) {
            let packet = &mut pool[id];
            if packet.ecn != Ecn::Ce && self.marks_early.takes(packet.ecn) {
                packet.ecn = Ecn::Ce;
                self.ledger.marked += packet.segments() as u64;
            }
        }
    }

    /// Mark the packet instead of dropping it, if possible. Returns whether it was marked.
    fn mark(&mut self, pool: &mut Pool, r: &DequeueResult) -> bool {
        let Some(held) = r.packet.filter(|held| self.params.ecn && ecn_capable(&pool[held.id])) else {
            return false;
        };
        pool[held.id].ecn = Ecn::Ce;
        self.ledger.marked += held.load.segments() as u64;
        true
    }
}

impl Holding for Codel {
    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    fn hold(&mut self, _: &mut Pool, now: Time, id: PacketId, load: Load, must_wait: bool) -> bool {
        self.enqueue(now, id, load, must_wait)
    }

    fn serve(&mut self, pool: &mut Pool, now: Time) -> Option<Served> {
        self.dequeue(pool, now, 0)
    }

    fn head_arrival(&self) -> Option<Time> {
        self.queue.front().map(|h| h.arrival)
    }

    fn waiting(&self, now: Time) -> u128 {
        let so_far = |h: &Held| now.since(h.arrival).0 as u128 * h.load.segments() as u128;
        self.queue.iter().map(so_far).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Pooled;

    const MS: u64 = 1_000_000;

    fn params(ecn: bool) -> CodelParams {
        CodelParams { limit: None, target: TARGET, interval: INTERVAL, ecn, ce_threshold: None }
    }

    /// Times of drops or marks in a queue that never empties. One packet is dequeued per ms, and all have waited for
    /// 50 ms.
    fn schedule(ecn: bool, duration_ms: u64) -> Vec<u64> {
        let mut codel = Pooled::new(Codel::new(params(ecn)));
        let packet =
            Packet { bytes: 1514, ecn: if ecn { Ecn::Ect0 } else { Ecn::NotEct }, ..Packet::default() };
        let mut at = Vec::new();
        for t in 0..duration_ms {
            while codel.len() < 100 {
                codel.enqueue(Time(t * MS), packet, true);
            }
            codel.queue.iter_mut().for_each(|h| h.arrival = Time((t * MS).saturating_sub(50 * MS)));
            let (sent, _) = codel.dequeue(Time(t * MS)).expect("never empty");
            at.extend(std::iter::from_fn(|| codel.take_head_drop()).map(|_| t));
            if sent.ecn == Ecn::Ce {
                at.push(t);
            }
        }
        at
    }

    #[test]
    fn drops_follow_the_control_law() {
        // The sojourn time is above target from 5 ms on (the oldest packets arrived at 0), and drops may begin 100 ms
        // later. They are 100 / sqrt(1), 100 / sqrt(2), ... ms apart, within the accuracy of Newton's steps: the
        // first is 50 instead of 70.7. Computed with Python's integers.
        let expected = [
            105, 205, 255, 312, 361, 405, 445, 483, 518, 551, 582, 612, 641, 669, 696, 721, 746, 771, 794,
            817, 839, 861, 882, 903, 924, 944, 963, 983,
        ];
        let got = schedule(false, 1000);
        assert!(got.len() > 10);
        assert_eq!(got, expected);
        assert_eq!(got, schedule(true, 1000), "marks come when drops would");
    }

    #[test]
    /// Linux's Newton steps from 0xffff on, computed with Python's integers, for counts 2 to 6 and 1,000.
    fn newton_steps_are_linuxs() {
        let mut codel = Codel::new(params(false));
        codel.count = 1;
        codel.rec_inv_sqrt = u16::MAX;
        let steps: Vec<u16> = (2..1001)
            .map(|count| {
                codel.count = count;
                codel.newton_step();
                codel.rec_inv_sqrt
            })
            .collect();
        assert_eq!((&steps[..5], steps[998]), (&[32769, 36864, 31968, 28935, 26481][..], 2072));
    }

    #[test]
    fn a_packet_of_several_segments_raises_no_bar() {
        let mut codel = Pooled::new(Codel::new(params(false)));
        let whole = Packet { bytes: 15_140, more: 9, ..Packet::default() };
        for t in 0..300 {
            while codel.len() < 20 {
                codel.enqueue(Time(t * MS), whole, true);
            }
            codel.queue.iter_mut().for_each(|h| h.arrival = Time((t * MS).saturating_sub(50 * MS)));
            codel.dequeue(Time(t * MS));
        }
        assert!(codel.ledger.dropped > 0, "one whole packet waits: more than a frame");
    }

    #[test]
    fn a_short_queue_and_a_short_stay_are_left_alone() {
        let mut codel = Pooled::new(Codel::new(params(false)));
        let packet = Packet { bytes: 1514, ..Packet::default() };
        for t in 0..2000 {
            // One packet waits behind the departing one: nothing is dropped while no more than a frame waits,
            // whatever the sojourn time.
            while codel.len() < 2 {
                codel.enqueue(Time(t * MS), packet, true);
            }
            codel.queue.iter_mut().for_each(|h| h.arrival = Time((t * MS).saturating_sub(50 * MS)));
            codel.dequeue(Time(t * MS));
        }
        assert_eq!(codel.ledger.dropped, 0);
        for t in 2000..4000 {
            while codel.len() < 50 {
                codel.enqueue(Time(t * MS), packet, true);
            }
            codel.queue.iter_mut().for_each(|h| h.arrival = Time((t - 4) * MS));
            codel.dequeue(Time(t * MS));
        }
        assert_eq!(codel.ledger.dropped, 0);
    }

    #[test]
    fn drops_again_near_the_old_rate_when_back_soon() {
        let mut codel = Pooled::new(Codel::new(params(false)));
        codel.count = 9;
        codel.lastcount = 1;
        codel.rec_inv_sqrt = u16::MAX / 3;
        codel.drop_next = units(500 * MS);
        for _ in 0..10 {
            codel.enqueue(Time(400 * MS), Packet { bytes: 1514, ..Packet::default() }, true);
        }
        codel.dequeue(Time(500 * MS));
        codel.dequeue(Time(601 * MS));
        assert!(codel.dropping);
        assert_eq!((codel.count, codel.lastcount), (8, 8));
        let step = (codel.drop_next - units(601 * MS)) as f64 * 1.024e-3;
        assert!((step - 100.0 / 8f64.sqrt()).abs() < 0.4, "{step}"); // near 100 ms / sqrt(8): one Newton step from 1/3
    }

    /// With a threshold of 1 ms and waits of 0.9, 1.0 and 1.1 ms, only the third packet is marked, whether or not
    /// CoDel marks.
    #[test]
    fn ce_threshold_marks_what_waited_longer() {
        let marks = |of: Classifier, ecn: Ecn| {
            let mut queue =
                Pooled::new(Codel::new(CodelParams { ce_threshold: Some(Span(MS)), ..params(false) }));
            queue.marks_early = of;
            let taken = [900, 1000, 1100].map(|us| {
                queue.enqueue(Time(0), Packet { bytes: 1500, ecn, ..Packet::default() }, true);
                queue.dequeue(Time(us * 1000)).expect("it waits").0.ecn == Ecn::Ce
            });
            (taken, queue.figures(Time(0)).3)
        };
        assert_eq!(marks(Classifier::AnyEct, Ecn::Ect0), ([false, false, true], 1));
        assert_eq!(marks(Classifier::L4s, Ecn::Ect1), ([false, false, true], 1));
        assert_eq!(marks(Classifier::L4s, Ecn::Ect0).1, 0);
        assert_eq!(marks(Classifier::AnyEct, Ecn::NotEct).1, 0);
    }
}
