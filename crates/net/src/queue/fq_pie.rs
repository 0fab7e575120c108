//! FQ-PIE: one queue per flow, served by deficit round robin, each managed by its own PIE, which measures the
//! queueing delay at each departure.
//!
//! Source: Linux 7.3 `sch_fq_pie.c` and `sch_pie.c` (`pie_drop_early`, `pie_process_dequeue`,
//! `pie_calculate_probability`), paraphrased, also for the names and for the arithmetic in integers: probabilities in
//! units of 2^-56, times in units of 64 ns. The control law is that of RFC 8033 (Pan, Natarajan, Baker, White 2017).
//!
//! | variable | meaning |
//! |---|---|
//! | `prob` | drop probability |
//! | `qdelay`, `qdelay_old` | wait of the last packet sent, and its value at the last update |
//! | `burst_time` | remaining time without drops |
//! | `accu_prob` | sum of the probabilities since the last drop, which spreads drops out |
//! | `deficit` | bytes that a queue may still send in this round |
//!
//! Differs: the random numbers and the hash of connections are ours; updates begin one interval after the start of the
//! run. A queue makes up for its updates at its next arrival or departure, since nothing changes in between.

use std::collections::VecDeque;

use ackclock_core::packet::{Ecn, Load};
use ackclock_core::schema::{Limit, Refusal, Takes, DURATION, FLAG};
use ackclock_core::{table, Span, Stream, Time};

use super::ledger::{Holding, Ledger};
use super::{ecn_capable, Discipline, Refused, Served};
use crate::pool::{PacketId, Pool};
use crate::qdisc::{us, Qdisc, ENOUGH};

table! {
    /// FQ-PIE (Linux `fq_pie`): one queue per connection, served in turn, each managed by PIE.
    ///
    /// All queues share the limit. When it is exceeded, the arriving packet is dropped.
    pub struct FqPieParams "fq-pie" {
        /// Maximum length of the queue: packets or multiples of the bandwidth-delay product. Default: unlimited.
        limit: Option<u32> = Takes::PacketLimit;
        /// Reference for the queueing delay of each queue.
        target: Span = DURATION, Span::from_ms(15);
        /// Interval at which drop probabilities are adjusted.
        update: Span = DURATION, Span::from_ms(15);
        /// Gain for the distance of the delay from its reference, in sixteenths per second.
        alpha: u32 = Takes::Whole(0, 32), 2;
        /// Gain for the growth of the delay, in sixteenths per second.
        beta: u32 = Takes::Whole(0, 32), 20;
        /// Mark ECN-capable packets instead of dropping them while the drop probability is at most `ecn_prob`.
        ecn: bool = FLAG, false;
        /// Maximum drop probability at which packets are marked, percent.
        ecn_prob: u32 = Takes::Whole(0, 100), 10;
        /// Number of queues; a hash assigns each connection to one.
        queues: u32 = Takes::Whole(1, 65_536), 1024;
        /// Bytes that a queue may send in one round.
        quantum: u32 = Takes::Size(1, 1 << 20), 1514;
    }
}

impl Discipline for FqPieParams {
    type Queue = Box<FqPie>;

    fn queue(self, stream: impl FnOnce() -> Stream) -> Box<FqPie> {
        Box::new(FqPie::new(self, stream()))
    }

    fn limit(&self) -> Option<Limit> {
        self.limit.map(Limit::Packets)
    }

    /// Return Linux `sch_fq_pie` with these parameters.
    fn qdisc(&self, _: Span) -> Result<Qdisc, Refusal> {
        Ok(Qdisc::new("fq_pie")
            .row(1, self.limit.unwrap_or(ENOUGH), "limit {}")
            .row(2, self.queues, "flows {}")
            .row(3, us(self.target), "target {}us")
            .row(4, us(self.update), "tupdate {}us")
            .row(5, self.alpha, "alpha {}")
            .row(6, self.beta, "beta {}")
            .row(7, self.quantum, "quantum {}")
            .row(9, self.ecn_prob, "ecn_prob {}")
            .flag(10, self.ecn, ["ecn", "noecn"])
            .nested())
    }
}

/// Probability 1 (Linux `MAX_PROB`).
const MAX_PROB: u64 = u64::MAX >> 8;
const TICKS_PER_SEC: u64 = 15_625_000;
const BURST_TIME: u64 = ticks(Span::from_ms(150).0);
const LONG_DELAY: u64 = ticks(Span::from_ms(250).0);
/// Bytes of a full Ethernet frame (Linux `psched_mtu`).
const FRAME: u64 = 1514;

/// Convert ns to units of 64 ns (Linux `PSCHED_NS2TICKS`).
const fn ticks(ns: u64) -> u64 {
    ns >> 6
}

/// PIE of one queue.
#[derive(Clone, PartialEq)]
struct Vars {
    qdelay: u64,
    qdelay_old: u64,
    burst_time: u64,
    prob: u64,
    accu_prob: u64,
    /// Time of the last departure; `None` since the last restart.
    dq_tstamp: Option<u64>,
}

impl Vars {
    const NEW: Vars =
        Vars { qdelay: 0, qdelay_old: 0, burst_time: BURST_TIME, prob: 0, accu_prob: 0, dq_tstamp: None };

    /// Decide at random whether to drop an arrival at a queue with `backlog` bytes.
    fn drop_early(&mut self, target: u64, backlog: u64, stream: &mut Stream) -> bool {
        let light = self.qdelay < target / 2 && self.prob < MAX_PROB / 5;
        if self.burst_time > 0 || light || backlog < 2 * FRAME {
            return false;
        }
        self.accu_prob = if self.prob == 0 { 0 } else { self.accu_prob.wrapping_add(self.prob) };
        if self.accu_prob < MAX_PROB / 100 * 85 {
            return false;
        }
        if self.accu_prob >= MAX_PROB / 2 * 17 {
            return true;
        }
        let drops = stream.next_u64() >> 8 < self.prob;
        if drops {
            self.accu_prob = 0;
        }
        drops
    }

    /// Measure the delay at a departure that leaves `backlog` bytes.
    fn process_dequeue(&mut self, now: u64, arrival: u64, backlog: u64) {
        self.qdelay = if backlog > 0 { now - arrival } else { 0 };
        let since = self.dq_tstamp.replace(now).map_or(0, |before| now - before);
        self.burst_time = self.burst_time.saturating_sub(since);
    }

    /// Perform one update.
    fn calculate_probability(&mut self, law: &Law, backlog: u64) {
        let (qdelay, qdelay_old, old) = (self.qdelay, self.qdelay_old, self.prob);
        let mut decays = qdelay > 0 || backlog == 0;
        let (mut alpha, mut beta) = (law.alpha, law.beta);
        if self.prob < MAX_PROB / 10 {
            let mut power = 100;
            (alpha, beta) = (alpha >> 1, beta >> 1);
            while self.prob < MAX_PROB / power && power <= 1_000_000 {
                (alpha, beta, power) = (alpha >> 2, beta >> 2, power * 10);
            }
        }
        let off = alpha.wrapping_mul(qdelay.wrapping_sub(law.target));
        let mut delta = off.wrapping_add(beta.wrapping_mul(qdelay.wrapping_sub(qdelay_old))) as i64;
        if delta > (MAX_PROB / 50) as i64 && self.prob >= MAX_PROB / 10 {
            delta = (MAX_PROB / 100 * 2) as i64;
        }
        if qdelay > LONG_DELAY {
            delta = delta.wrapping_add((MAX_PROB / 50) as i64);
        }
        self.prob = old.wrapping_add(delta as u64);
        if delta > 0 && self.prob < old {
            self.prob = MAX_PROB;
            decays = false;
        } else if delta <= 0 && self.prob > old {
            self.prob = 0;
        }
        if qdelay == 0 && qdelay_old == 0 && decays {
            self.prob -= self.prob / 64;
        }
        if qdelay < law.target / 2 && qdelay_old < law.target / 2 && self.prob == 0 {
            *self = Vars { qdelay, qdelay_old, ..Vars::NEW };
        }
        self.qdelay_old = qdelay;
    }
}

/// Parameters of the control law in Linux's units.
#[derive(Clone)]
struct Law {
    alpha: u64,
    beta: u64,
    target: u64,
    update: Span,
}

#[derive(Clone, Copy)]
struct Held {
    arrival: Time,
    load: Load,
    id: PacketId,
}

/// One queue.
#[derive(Clone)]
struct Sub {
    vars: Vars,
    /// Time of the next update.
    due: Time,
    queue: VecDeque<Held>,
    backlog: u64,
    deficit: i64,
    active: bool,
}

impl Sub {
    /// Perform the updates due by `now`.
    fn catch_up(&mut self, law: &Law, now: Time) {
        while self.due <= now {
            let before = self.vars.clone();
            self.vars.calculate_probability(law, self.backlog);
            self.due += law.update;
            if self.vars == before && self.due <= now {
                self.due += law.update * (now.since(self.due).0 / law.update.0 + 1);
            }
        }
    }
}

#[derive(Clone)]
pub(crate) struct FqPie {
    params: FqPieParams,
    law: Law,
    stream: Stream,
    subs: Vec<Sub>,
    new_queues: VecDeque<u32>,
    old_queues: VecDeque<u32>,
    /// Start of the current period with waiting packets.
    since: Time,
    ledger: Ledger,
}

impl FqPie {
    pub(crate) fn new(params: FqPieParams, stream: Stream) -> FqPie {
        let gain = |sixteenths: u32| (sixteenths as u64 * (MAX_PROB / TICKS_PER_SEC)) >> 4;
        let (alpha, beta) = (gain(params.alpha), gain(params.beta));
        let law = Law { alpha, beta, target: ticks(params.target.0), update: params.update };
        let due = Time::ZERO + params.update;
        let sub =
            || Sub { vars: Vars::NEW, due, queue: VecDeque::new(), backlog: 0, deficit: 0, active: false };
        FqPie {
            subs: (0..params.queues).map(|_| sub()).collect(),
            params,
            law,
            stream,
            new_queues: VecDeque::new(),
            old_queues: VecDeque::new(),
            since: Time::ZERO,
            ledger: Ledger::default(),
        }
    }

    /// Append a packet to its queue, unless PIE drops it. `must_wait`: the link is busy. Returns false if the limit is
    /// reached.
    pub(crate) fn enqueue(
        &mut self,
        pool: &mut Pool,
        now: Time,
        id: PacketId,
        load: Load,
        must_wait: bool,
    ) -> bool {
        let at = super::queue_of(&pool[id], self.params.queues);
        let sub = &mut self.subs[at as usize];
        sub.catch_up(&self.law, now);
        if must_wait && self.ledger.packets >= self.params.limit.unwrap_or(u32::MAX) {
            sub.vars.accu_prob = 0;
            return false;
        }
        if sub.vars.drop_early(self.law.target, sub.backlog, &mut self.stream) {
            let rare = sub.vars.prob <= MAX_PROB / 100 * self.params.ecn_prob as u64;
            if !(self.params.ecn && rare && ecn_capable(&pool[id])) {
                sub.vars.accu_prob = 0;
                self.ledger.drop(now, pool.remove(id), Refused::Aqm);
                return true;
            }
            pool[id].ecn = Ecn::Ce;
            self.ledger.marked += load.segments() as u64;
        }
        sub.queue.push_back(Held { arrival: now, load, id });
        sub.backlog += load.bytes() as u64;
        if !std::mem::replace(&mut sub.active, true) {
            sub.deficit = self.params.quantum as i64;
            self.new_queues.push_back(at);
        }
        if self.ledger.packets == 0 {
            self.since = now;
        }
        self.ledger.packets += load.segments();
        self.ledger.waits(must_wait);
        true
    }

    /// Return the packet to transmit at `now`.
    pub(crate) fn dequeue(&mut self, now: Time) -> Option<Served> {
        loop {
            let from_new = !self.new_queues.is_empty();
            let list = if from_new { &mut self.new_queues } else { &mut self.old_queues };
            let at = *list.front()?;
            let sub = &mut self.subs[at as usize];
            if sub.deficit <= 0 {
                sub.deficit += self.params.quantum as i64;
                list.pop_front();
                self.old_queues.push_back(at);
                continue;
            }
            sub.catch_up(&self.law, now);
            if let Some(Held { arrival, load, id }) = sub.queue.pop_front() {
                sub.deficit -= load.bytes() as i64;
                sub.backlog -= load.bytes() as u64;
                sub.vars.process_dequeue(ticks(now.0), ticks(arrival.0), sub.backlog);
                let waited = now - arrival;
                self.ledger.leaves(load.segments(), waited);
                return Some(Served { id, load, waited });
            }
            list.pop_front();
            // An empty new queue moves to the old ones once, so that it cannot stay new.
            if from_new && !self.old_queues.is_empty() {
                self.old_queues.push_back(at);
            } else {
                sub.active = false;
            }
        }
    }
}

impl Holding for FqPie {
    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    fn hold(&mut self, pool: &mut Pool, now: Time, id: PacketId, load: Load, must_wait: bool) -> bool {
        self.enqueue(pool, now, id, load, must_wait)
    }

    fn serve(&mut self, _: &mut Pool, now: Time) -> Option<Served> {
        self.dequeue(now)
    }

    fn head_arrival(&self) -> Option<Time> {
        (self.ledger.packets > 0).then_some(self.since)
    }

    fn waiting(&self, now: Time) -> u128 {
        let so_far = |h: &Held| now.since(h.arrival).0 as u128 * h.load.segments() as u128;
        self.subs.iter().flat_map(|sub| &sub.queue).map(so_far).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LinkConfig, QueueConfig, SoleLink};
    use ackclock_core::{Packet, Rate};

    fn params(ecn: bool) -> FqPieParams {
        FqPieParams {
            limit: None,
            target: Span::from_ms(15),
            update: Span::from_ms(15),
            alpha: 2,
            beta: 20,
            ecn,
            ecn_prob: 10,
            queues: 1024,
            quantum: 1514,
        }
    }

    /// Offer a 1 Mbit/s link `percent` of its rate for 100 s, from each connection in turn. Returns the fraction of
    /// packets dropped or marked, and the mean wait in s.
    fn overload(percent: u64, connections: u64, ecn: bool) -> (f64, f64) {
        let queue = QueueConfig::FqPie(params(ecn));
        let mut link =
            SoleLink::new(&LinkConfig { queue, ..LinkConfig::new("l", Rate(1_000_000), Span::ZERO) }, 1);
        let gap = 12_000_000 * 100 / percent;
        for i in 0..100_000_000_000 / gap {
            let now = Time(i * gap);
            while link.next_event() <= now {
                link.poll(link.next_event());
            }
            let mark = if ecn { Ecn::Ect0 } else { Ecn::NotEct };
            let conn = (i % connections) as u32;
            let _ = link.offer(now, Packet { bytes: 1500, ecn: mark, conn, ..Packet::default() });
        }
        let c = link.counters(Time(100_000_000_000));
        ((c.dropped_queue + c.marked) as f64 / c.arrivals as f64, c.mean_wait_s)
    }

    #[test]
    fn the_delay_stays_near_its_reference_under_overload() {
        for (percent, connections) in [(105, 1), (120, 1), (150, 1), (120, 2)] {
            let (dropped, wait) = overload(percent, connections, false);
            let excess = 1.0 - 100.0 / percent as f64;
            assert!((dropped - excess).abs() < 0.02, "{percent} %: {dropped}, not {excess}");
            assert!((0.008..0.1).contains(&wait), "{percent} %: {wait} s");
        }
        assert_eq!(overload(95, 1, false).0, 0.0);
        assert!(overload(105, 1, true).0 > 0.03, "marks");
    }

    /// Computed by hand from the control law, with delays of 30 ms at each update.
    #[test]
    fn the_probability_follows_the_control_law() {
        let pie = FqPie::new(params(false), Stream::new(1, "test"));
        let mut vars = Vars { qdelay: ticks(30_000_000), ..Vars::NEW };
        let share = |prob: u64| prob as f64 / MAX_PROB as f64;
        vars.calculate_probability(&pie.law, 9000);
        // gains in 1/16 s^-1, halved, then divided by 4 for each power of ten below 1 %
        let first = (0.125 * 0.015 + 1.25 * 0.030) / 2048.0;
        assert!((share(vars.prob) / first - 1.0).abs() < 1e-3, "{}", share(vars.prob));
        let before = vars.prob;
        vars.calculate_probability(&pie.law, 9000);
        assert!((share(vars.prob - before) / (0.125 * 0.015 / 128.0) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn an_idle_queue_restarts_its_burst_and_rests() {
        let pie = FqPie::new(params(false), Stream::new(1, "test"));
        let mut early = pie.subs[0].clone();
        early.vars = Vars { prob: MAX_PROB / 3, burst_time: 0, ..Vars::NEW };
        let mut late = early.clone();
        (0..400_000).step_by(7).for_each(|ms| early.catch_up(&pie.law, Time(ms * 1_000_000)));
        late.catch_up(&pie.law, Time(399_994_000_000));
        assert!(early.vars == late.vars && early.due == late.due);
        assert!(late.vars == Vars::NEW, "prob {}", late.vars.prob);
    }

    #[test]
    fn connections_share_the_link_and_the_limit() {
        let mut pool = Pool::default();
        let mut pie = FqPie::new(
            FqPieParams { limit: Some(8), quantum: 1500, ..params(false) },
            Stream::new(1, "test"),
        );
        let taken = (0..12).filter(|i| {
            let packet = Packet { bytes: 1500, conn: if *i < 6 { 1 } else { 2 }, ..Packet::default() };
            let id = pool.insert(&packet);
            pie.enqueue(&mut pool, Time(0), id, packet.load(), true)
        });
        assert_eq!(taken.count(), 8);
        let order: Vec<u32> =
            std::iter::from_fn(|| pie.dequeue(Time(1)).map(|s| pool.remove(s.id).conn)).collect();
        assert_eq!(order, [1, 2, 1, 2, 1, 1, 1, 1]);
        assert_eq!((pie.len(), pie.head_arrival()), (0, None));
    }
}
