//! DualPI2: two queues, one for scalable controls (L) and one for all others (C), under one PI controller that couples
//! them, so that a flow of either kind gets about the same share of the link while L's delay stays near a millisecond.
//!
//! Source: RFC 9332 (De Schepper, Briscoe, White 2023), in the form of Linux's `sch_dualpi2`, including its integer
//! arithmetic.
//!
//! | variable | meaning |
//! |---|---|
//! | `p` | base probability p', in 1 / (2^32 - 1): C uses p'^2, L uses `coupling` times p' |
//! | `last_qdelay` | wait of the older head packet at the last update |
//! | `credit` | balance of the weighted round robin, in bytes x percent: C is served while it is above zero |
//!
//! Except for a full queue, all decisions are made at departure, from the waiting time of the head packets.
//! Updates are due at multiples of `update` since the start of the run. They are computed at the next call, since
//! nothing else changes between calls. An update due in the same nanosecond as a call precedes it.
//!
//! Differs: no memory limit, no filters, and no splitting of multi-segment packets, which are marked or dropped
//! whole.
//!
//! Length: two queues and the controller that couples them are one mechanism.

use std::collections::VecDeque;

use ackclock_core::packet::{Ecn, Load};
use ackclock_core::schema::{Limit, Refusal, Takes, DURATION};
use ackclock_core::{choice, table, Packet, Span, Stream, Time};

use super::ledger::{Holding, Ledger};
use super::{ecn_capable, Classifier, Discipline, Refused, Served};
use crate::pool::{PacketId, Pool};
use crate::qdisc::{general, refused, us, Qdisc, ENOUGH};

/// Behaviour while the coupled probability is above 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overload {
    /// L drops packets as C does, and marks all others.
    Drop,
    /// L marks every packet, and the queues may fill up to their limit.
    Overflow,
}

choice! { Overload: Drop "drop", Overflow "overflow" }

table! {
    /// DualPI2 (RFC 9332, Linux `sch_dualpi2`): a queue for L4S traffic, coupled to a queue for all other traffic.
    ///
    /// It marks ECN-capable packets and drops others. Its rate is that of the link.
    pub struct DualPi2Params "dualpi2" {
        /// Maximum length of both queues together: packets or multiples of the bandwidth-delay product. Default:
        /// unlimited.
        limit: Option<u32> = Takes::PacketLimit;
        /// Target delay of the C queue (RFC 9332: the Classic queue).
        target: Span = DURATION, Span::from_ms(15);
        /// Interval at which the base probability is adjusted (Tupdate).
        update: Span = DURATION, Span::from_ms(16);
        /// Integral gain, 1/s per second of delay; rounded to a multiple of 1/256.
        alpha: f64 = Takes::Number(0.0, 256.0), 41.0 / 256.0;
        /// Proportional gain, 1/s per second of delay; rounded to a multiple of 1/256.
        beta: f64 = Takes::Number(0.0, 256.0), 819.0 / 256.0;
        /// Coupling factor k.
        coupling: u32 = Takes::Whole(1, 255), 2;
        /// Queueing delay beyond which a packet of the L queue is marked (RFC 9332: the Low-Latency queue).
        step: Span = DURATION, Span::from_ms(1);
        /// Apply `step` only to packets that found at least this many packets in the L queue on arrival.
        step_from: u32 = Takes::Whole(0, 1_000_000), 0;
        /// Minimum share of the link for the C queue while both queues have packets; in steps of 1 %.
        classic_share: f64 = Takes::Number(0.01, 0.99), 0.1;
        /// Packets that are assigned to the L queue: those with ECT(1) or CE ("l4s"), or all ECN-capable ones
        /// ("any-ect").
        classifier: Classifier = Classifier::TAKES, Classifier::L4s;
        /// Behaviour when `coupling` times the base probability exceeds 1. "drop": both queues drop packets, and the L
        /// queue marks those that it does not drop. "overflow": the L queue marks every packet and drops none below the
        /// limit.
        overload: Overload = Overload::TAKES, Overload::Drop;
    }
}

impl Discipline for DualPi2Params {
    type Queue = Box<DualPi2>;

    fn queue(self, stream: impl FnOnce() -> Stream) -> Box<DualPi2> {
        Box::new(DualPi2::new(self, stream()))
    }

    fn limit(&self) -> Option<Limit> {
        self.limit.map(Limit::Packets)
    }

    /// Return Linux `sch_dualpi2`, whose gains are multiples of 1/256.
    fn qdisc(&self, _: Span) -> Result<Qdisc, Refusal> {
        let gain = |key, value: f64| match (value * 256.0 + 0.5) as u32 {
            0 => {
                Err(refused(key, format_args!("{}, less than 1/256 (the kernel's least)", general(value, 6))))
            }
            steps => Ok((steps, format!("{key} {}", general(steps as f64 / 256.0, 6)))),
        };
        let ((alpha, alpha_words), (beta, beta_words)) =
            (gain("alpha", self.alpha)?, gain("beta", self.beta)?);
        let drops = self.overload == Overload::Drop;
        let any = self.classifier == Classifier::AnyEct;
        Ok(Qdisc::new("dualpi2")
            .nested()
            .row(1, self.limit.unwrap_or(ENOUGH), "limit {}")
            .row(2, u32::MAX, "") // memory
            .row(10, self.coupling as u8, "coupling_factor {}")
            .row(8, us(self.step), "step_thresh {}us")
            .row(9, self.step_from, "min_qlen_step {}")
            .row(11, drops as u8, if drops { "drop_on_overload" } else { "overflow" })
            .row(12, 0u8, "drop_dequeue")
            .row(14, if any { 3u8 } else { 1 }, if any { "any_ect" } else { "l4s_ect" })
            .row(13, (self.classic_share * 100.0 + 0.5) as u8, "classic_protection {}%")
            .row(3, us(self.target), "target {}us")
            .row(4, us(self.update).max(1), "tupdate {}us")
            .row(5, alpha, &alpha_words)
            .row(6, beta, &beta_words)
            .row(15, 0u8, "")) // multi-segment packets stay whole
    }
}

#[derive(Clone)]
struct Held {
    arrival: Time,
    /// Whether the step applies to the packet.
    stepped: bool,
    packet: Packet,
}

/// The C queue.
const C: usize = 0;
/// The L queue.
const L: usize = 1;

#[derive(Clone)]
pub(crate) struct DualPi2 {
    params: DualPi2Params,
    stream: Stream,
    pi: Pi,
    /// Time of the next update.
    due: Time,
    /// Shares of C and L while both have packets, percent.
    weights: [i64; 2],
    credit: i64,
    queues: [VecDeque<Held>; 2],
    bytes: u64,
    ledger: Ledger,
}

impl DualPi2 {
    pub(crate) fn new(params: DualPi2Params, stream: Stream) -> DualPi2 {
        let classic = (params.classic_share * 100.0 + 0.5) as i64;
        let weights = [classic, 100 - classic];
        DualPi2 {
            pi: Pi::new(&params),
            stream,
            due: Time::ZERO + params.update,
            credit: MTU * (weights[C] - weights[L]),
            weights,
            params,
            queues: [VecDeque::new(), VecDeque::new()],
            bytes: 0,
            ledger: Ledger::default(),
        }
    }

    /// Append a packet to its queue. `must_wait`: the link is busy. Returns false if the two queues together are
    /// full.
    pub(crate) fn enqueue(&mut self, now: Time, packet: Packet, must_wait: bool) -> bool {
        self.catch_up(now);
        if must_wait && self.params.limit.is_some_and(|limit| self.ledger.packets >= limit) {
            return false;
        }
        let stepped = self.queues[L].len() as u32 >= self.params.step_from;
        self.bytes += packet.bytes as u64;
        self.ledger.packets += packet.segments();
        self.queues[self.classify(&packet)].push_back(Held { arrival: now, stepped, packet });
        self.ledger.waits(must_wait);
        true
    }

    /// Return the packet to transmit at `now`, and its wait; packets dropped before it are returned by
    /// [`DualPi2::take_head_drop`].
    pub(crate) fn dequeue(&mut self, now: Time) -> Option<(Packet, Span)> {
        self.catch_up(now);
        loop {
            let waiting = [C, L].map(|queue| !self.queues[queue].is_empty());
            let queue = match waiting {
                [false, false] => {
                    self.credit = MTU * (self.weights[C] - self.weights[L]);
                    return None;
                }
                [true, true] if self.credit > 0 => C,
                [_, true] => L,
                _ => C,
            };
            let Held { arrival, stepped, mut packet } =
                self.queues[queue].pop_front().expect("invariant: it waits");
            let waited = now - arrival;
            self.bytes -= packet.bytes as u64;
            self.ledger.leaves(packet.segments(), waited);
            let coupled =
                if self.bytes < 2 * MTU as u64 { Verdict::Pass } else { self.verdict(queue, &packet) };
            let over_step = queue == L && stepped && waited > self.params.step;
            if coupled == Verdict::Drop || over_step && !ecn_capable(&packet) {
                self.ledger.drop(now, packet, Refused::Aqm);
                continue;
            }
            if coupled == Verdict::Mark || over_step {
                packet.ecn = Ecn::Ce;
                self.ledger.marked += packet.segments() as u64;
            }
            if !self.queues[1 - queue].is_empty() {
                let bytes = packet.bytes as i64;
                self.credit += if queue == L { self.weights[C] * bytes } else { -self.weights[L] * bytes };
            }
            return Some((packet, waited));
        }
    }

    /// Draw a packet's verdict from the coupled probability.
    fn verdict(&mut self, queue: usize, packet: &Packet) -> Verdict {
        let coupled = self.pi.p as u64 * self.params.coupling as u64;
        let overload = coupled > ONE;
        let hit = match (queue, overload, self.params.overload) {
            (L, false, _) => self.rolls(coupled),
            (L, true, Overload::Overflow) => true,
            _ => self.rolls(self.pi.p as u64) && self.rolls(self.pi.p as u64),
        };
        let drops = overload && (queue == C || self.params.overload == Overload::Drop);
        match (hit, drops || !ecn_capable(packet)) {
            (true, true) => Verdict::Drop,
            (true, false) => Verdict::Mark,
            (false, _) if queue == L && overload && ecn_capable(packet) => Verdict::Mark, // not dropped by an overload
            (false, _) => Verdict::Pass,
        }
    }

    fn rolls(&mut self, p: u64) -> bool {
        self.stream.next_u64() >> 32 <= p
    }

    fn classify(&self, packet: &Packet) -> usize {
        match self.params.classifier.takes(packet.ecn) {
            true => L,
            false => C,
        }
    }

    /// Perform the updates due by `now`.
    fn catch_up(&mut self, now: Time) {
        while self.due <= now {
            let qdelay = self.head_arrival().map_or(Span::ZERO, |head| self.due.since(head));
            let at_rest = self.pi.update(qdelay);
            self.due += self.params.update;
            if at_rest && self.due <= now {
                self.due += self.params.update * (now.since(self.due).0 / self.params.update.0 + 1);
            }
        }
    }
}

impl Holding for DualPi2 {
    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    fn hold(&mut self, pool: &mut Pool, now: Time, id: PacketId, _: Load, must_wait: bool) -> bool {
        let accepted = self.enqueue(now, pool[id], must_wait);
        if accepted {
            pool.release(id); // copied into the queue
        }
        accepted
    }

    fn serve(&mut self, pool: &mut Pool, now: Time) -> Option<Served> {
        let (packet, waited) = self.dequeue(now)?;
        Some(Served { id: pool.insert(&packet), load: packet.load(), waited })
    }

    /// Arrival time of the older of the two head packets.
    fn head_arrival(&self) -> Option<Time> {
        self.queues.iter().filter_map(|queue| queue.front()).map(|head| head.arrival).min()
    }

    fn waiting(&self, now: Time) -> u128 {
        let so_far = |h: &Held| now.since(h.arrival).0 as u128 * h.packet.segments() as u128;
        self.queues.iter().flatten().map(so_far).sum()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Pass,
    Mark,
    Drop,
}

/// PI controller: computes the base probability from delays.
#[derive(Clone)]
struct Pi {
    p: u32,
    last_qdelay: Span,
    target: Span,
    /// Gains: change of `p` per nanosecond of delay, times 64.
    alpha: i128,
    beta: i128,
    most: u32,
}

impl Pi {
    fn new(params: &DualPi2Params) -> Pi {
        let scaled = |hz: f64| ((hz * 256.0 + 0.5) as u64 as u128 * ONE as u128 / 4 / 1_000_000_000) as i128;
        Pi {
            p: 0,
            last_qdelay: Span::ZERO,
            target: params.target,
            alpha: scaled(params.alpha),
            beta: scaled(params.beta),
            most: match params.overload {
                Overload::Drop => u32::MAX,
                Overload::Overflow => u32::MAX / params.coupling,
            },
        }
    }

    /// Perform one update. Returns true if further updates change nothing until a packet arrives.
    fn update(&mut self, qdelay: Span) -> bool {
        let ahead = |of: Span| qdelay.0 as i128 - of.0 as i128;
        let change = ahead(self.target) * self.alpha + ahead(self.last_qdelay) * self.beta;
        // rounded towards zero, for both signs
        let moved = self.p as i128 + change.signum() * (change.abs() >> 6);
        let idle = qdelay == Span::ZERO && self.last_qdelay == Span::ZERO;
        self.last_qdelay = qdelay;
        self.p = moved.clamp(0, self.most as i128) as u32;
        idle && self.p == 0
    }
}

/// Probability of 1.
const ONE: u64 = u32::MAX as u64;
/// Bytes of the largest Ethernet frame with its header.
const MTU: i64 = 1514;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LinkConfig, QueueConfig, SoleLink};
    use ackclock_core::schema::{Described, Value};
    use ackclock_core::Rate;

    fn params() -> DualPi2Params {
        DualPi2Params::read(&Value::Table(Default::default())).expect("every key has a default")
    }

    fn dualpi2(params: DualPi2Params) -> DualPi2 {
        DualPi2::new(params, Stream::new(1, "test"))
    }

    fn packet(conn: u32, ecn: Ecn) -> Packet {
        Packet { conn, bytes: 1514, ecn, forward: true, ..Packet::default() }
    }

    /// Linux's arithmetic, computed by hand: alpha 41/256, beta 819/256, target 15 ms.
    #[test]
    fn the_base_probability_follows_linux() {
        let mut pi = Pi::new(&params());
        assert_eq!((pi.alpha, pi.beta), (44, 879));
        let p: Vec<u32> = [20, 20, 20, 10, 0]
            .map(|ms| {
                pi.update(Span::from_ms(ms));
                pi.p
            })
            .to_vec();
        assert_eq!(p, [278_125_000, 281_562_500, 285_000_000, 144_218_750, 0]);
        pi.update(Span::from_secs(100));
        assert_eq!(pi.p, u32::MAX, "no wrap");
        let mut pi = Pi::new(&DualPi2Params { overload: Overload::Overflow, ..params() });
        pi.update(Span::from_secs(100));
        assert_eq!(pi.p, u32::MAX / 2, "without drops L is marked at most always");
    }

    #[test]
    fn the_low_bit_of_the_ecn_field_tells_the_queue() {
        let queue = dualpi2(params());
        let all = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
        assert_eq!(all.map(|ecn| queue.classify(&packet(0, ecn))), [C, C, L, L]);
        let queue = dualpi2(DualPi2Params { classifier: Classifier::AnyEct, ..params() });
        assert_eq!(all.map(|ecn| queue.classify(&packet(0, ecn))), [C, L, L, L]);
    }

    /// Nine packets of L, then one of C, from the start: the credit begins at -80 MTU, rises by 10 per packet of L
    /// and falls by 90 per packet of C. At zero, L is still served.
    #[test]
    fn ten_percent_for_c() {
        let mut queue = dualpi2(params());
        for i in 0..40 {
            queue.enqueue(Time(0), packet(i, Ecn::NotEct), true);
            queue.enqueue(Time(0), packet(i, Ecn::Ect1), true);
        }
        let order: String = (0..30)
            .map(|_| if queue.dequeue(Time(1)).expect("it waits").0.ecn == Ecn::NotEct { 'C' } else { 'L' })
            .collect();
        assert_eq!(order, "LLLLLLLLLC".repeat(3));
    }

    /// Fractions of packets dropped and marked at a base probability.
    fn met(params: DualPi2Params, p: f64, ecn: Ecn) -> (f64, f64) {
        let mut queue = dualpi2(params);
        queue.pi.p = (p * ONE as f64) as u32;
        let at = queue.classify(&packet(0, ecn));
        let tries = 40_000;
        let verdicts: Vec<Verdict> = (0..tries).map(|_| queue.verdict(at, &packet(0, ecn))).collect();
        let share = |of| verdicts.iter().filter(|&&v| v == of).count() as f64 / tries as f64;
        (share(Verdict::Drop), share(Verdict::Mark))
    }

    #[test]
    fn c_meets_the_square_and_l_the_coupled_probability() {
        let near = |(drop, mark): (f64, f64), expected: (f64, f64)| {
            assert!(
                (drop - expected.0).abs() < 0.01 && (mark - expected.1).abs() < 0.01,
                "{drop}, {mark}, not {expected:?}"
            );
        };
        near(met(params(), 0.1, Ecn::NotEct), (0.01, 0.0));
        near(met(params(), 0.1, Ecn::Ect0), (0.0, 0.01));
        near(met(params(), 0.1, Ecn::Ect1), (0.0, 0.2));
        near(met(params(), 0.49, Ecn::Ect1), (0.0, 0.98));
        // overload: k p' above 1
        near(met(params(), 0.6, Ecn::Ect0), (0.36, 0.0));
        near(met(params(), 0.6, Ecn::Ect1), (0.36, 0.64));
        near(met(DualPi2Params { overload: Overload::Overflow, ..params() }, 0.6, Ecn::Ect1), (0.0, 1.0));
    }

    /// Offer a 100 Mbit/s link `percent` of its rate for 20 s. Returns the fractions of arrivals dropped and marked
    /// after 5 s, and the mean wait in s.
    fn offered(percent: u64, ecn: Ecn) -> (f64, f64, f64) {
        let queue = QueueConfig::DualPi2(params());
        let mut link =
            SoleLink::new(&LinkConfig { queue, ..LinkConfig::new("l", Rate(100_000_000), Span::ZERO) }, 1);
        let (gap, start) = (1514 * 8 * 1000 / percent, Time(5_000_000_000));
        let mut counted = false;
        for i in 0..20_000_000_000 / gap {
            let now = Time(i * gap);
            while link.next_event() <= now {
                link.poll(link.next_event());
                while link.take_head_drops().is_some() {}
            }
            if now >= start && !std::mem::replace(&mut counted, true) {
                link.count_from(now);
            }
            let _ = link.offer(now, packet(0, ecn));
        }
        let c = link.counters(Time(20_000_000_000));
        let of = |n: u64| n as f64 / c.arrivals as f64;
        (of(c.dropped_queue), of(c.marked), c.mean_wait_s)
    }

    #[test]
    fn what_does_not_answer_is_dropped_as_far_as_it_must_be() {
        let (dropped, marked, wait) = offered(150, Ecn::Ect1);
        assert!((dropped - 1.0 / 3.0).abs() < 0.02, "{dropped}");
        assert!((marked - 2.0 / 3.0).abs() < 0.02, "{marked}");
        assert!((0.010..0.020).contains(&wait), "near the target: {wait}");
        let (dropped, marked, wait) = offered(105, Ecn::NotEct);
        assert!((dropped - 0.05 / 1.05).abs() < 0.01 && marked == 0.0, "{dropped}, {marked}");
        assert!((0.010..0.020).contains(&wait), "{wait}");
        assert_eq!(offered(95, Ecn::Ect1).0, 0.0);
    }

    #[test]
    fn the_step_marks_what_waited_longer_and_nothing_else() {
        let mut queue = dualpi2(params());
        for i in 0..3 {
            queue.enqueue(Time(0), packet(i, Ecn::Ect1), true);
        }
        let ms = |us: u64| Time(us * 1000);
        let ecn = |taken: Option<(Packet, Span)>| taken.expect("it waits").0.ecn;
        assert_eq!(ecn(queue.dequeue(ms(500))), Ecn::Ect1);
        assert_eq!(ecn(queue.dequeue(ms(1000))), Ecn::Ect1, "not longer than the step");
        assert_eq!(ecn(queue.dequeue(ms(1001))), Ecn::Ce);
        let mut queue = dualpi2(DualPi2Params { step_from: 1, ..params() });
        queue.enqueue(Time(0), packet(0, Ecn::Ect1), true);
        queue.enqueue(Time(0), packet(1, Ecn::Ect1), true);
        assert_eq!(ecn(queue.dequeue(ms(2000))), Ecn::Ect1, "no packet waited when it came");
        assert_eq!(ecn(queue.dequeue(ms(2000))), Ecn::Ce);
    }

    #[test]
    fn updates_made_up_for_are_those_that_were_due() {
        let (mut early, mut late) = (dualpi2(params()), dualpi2(params()));
        for queue in [&mut early, &mut late] {
            queue.enqueue(Time(0), packet(0, Ecn::NotEct), true);
        }
        (0..900).for_each(|ms| early.catch_up(Time(ms * 1_000_000)));
        late.catch_up(Time(899_000_000));
        assert!(late.pi.p > 0);
        assert_eq!((early.pi.p, early.due), (late.pi.p, late.due));
        for queue in [&mut early, &mut late] {
            queue.dequeue(Time(900_000_000));
        }
        (900..90_000).for_each(|ms| early.catch_up(Time(ms * 1_000_000)));
        late.catch_up(Time(89_999_000_000));
        assert_eq!((early.pi.p, early.due), (0, late.due));
    }
}
