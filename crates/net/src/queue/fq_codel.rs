//! FQ-CoDel: one queue per flow, served by deficit round robin, each managed by CoDel. Flows that have just started,
//! or resume after a pause, are served first.
//!
//! Source: RFC 8290 (Hoeiland-Joergensen, McKenney, Taht, Gettys, Dumazet 2018), §4, also for the names.
//!
//! | variable | meaning |
//! |---|---|
//! | `credits` | bytes that a queue may still send in this round; zero or less ends its round |
//! | `quantum` | bytes of credit for each round |
//! | `new_queues`, `old_queues` | queues that have packets, in the order of service |
//!
//! A connection's packets share a queue, chosen by a hash of the connection's number, so that two connections may
//! collide in one queue as in a router. Differs from the RFC, as Linux 7.3 `sch_fq_codel.c` does: beyond the limit,
//! half of the longest queue, at most 64 packets, is dropped from its head, and its CoDel counts these drops. CoDel
//! drops nothing while all queues together contain no more than one frame.

use std::collections::VecDeque;

use ackclock_core::packet::Load;
use ackclock_core::schema::{Limit, Refusal, Takes, DURATION, FLAG};
use ackclock_core::{table, Span, Stream, Time};

use super::codel::{target_within_interval, Codel, CodelParams, INTERVAL, TARGET};
use super::ledger::{Holding, Ledger};
use super::{Classifier, Discipline, Refused, Served};
use crate::pool::{PacketId, Pool};
use crate::qdisc::{us, Qdisc, ENOUGH};

table! {
    /// FQ-CoDel (RFC 8290): one queue per connection, served in turn, each managed by CoDel.
    ///
    /// All queues share the limit. When it is exceeded, the queue with the most bytes drops the packet at its head.
    pub struct FqCodelParams "fq-codel" {
        /// Maximum length of the queue: packets or multiples of the bandwidth-delay product. Default: unlimited.
        limit: Option<u32> = Takes::PacketLimit;
        /// Acceptable standing queue delay (TARGET).
        target: Span = DURATION, TARGET;
        /// Time for which the sojourn time may exceed the target before drops begin (INTERVAL); about a worst-case RTT.
        interval: Span = DURATION, INTERVAL;
        /// Mark ECN-capable packets instead of dropping them.
        ecn: bool = FLAG, false;
        /// Number of queues; a hash assigns each connection to one (RFC 8290 §5.2).
        queues: u32 = Takes::Whole(1, 65_536), 1024;
        /// Bytes that a queue may send in one round (§5.2).
        quantum: u32 = Takes::Size(1, 1 << 30), 1514;
        /// Queueing delay beyond which an ECN-capable packet is marked, regardless of CoDel's decision (Linux
        /// `ce_threshold`). Default: off.
        ce_threshold: Option<Span> = DURATION;
        /// Packets that `ce_threshold` marks: those with ECT(1) or CE ("l4s"), or all ECN-capable ones (Linux
        /// `ce_threshold_selector` 1 with mask 3, or none).
        ce_threshold_for: Classifier = Classifier::TAKES, Classifier::AnyEct;
    }
    rules |codel, rules| target_within_interval(codel.target, codel.interval, rules)
}

impl Discipline for FqCodelParams {
    type Queue = Box<FqCodel>;

    fn queue(self, _: impl FnOnce() -> Stream) -> Box<FqCodel> {
        Box::new(FqCodel::new(self))
    }

    fn limit(&self) -> Option<Limit> {
        self.limit.map(Limit::Packets)
    }

    /// Return Linux `sch_fq_codel` with these parameters.
    fn qdisc(&self, _: Span) -> Result<Qdisc, Refusal> {
        let made = Qdisc::new("fq_codel")
            .row(2, self.limit.unwrap_or(ENOUGH), "limit {}")
            .row(5, self.queues, "flows {}")
            .row(6, self.quantum, "quantum {}")
            .row(1, us(self.target), "target {}us")
            .row(3, us(self.interval), "interval {}us")
            .flag(4, self.ecn, ["ecn", "noecn"])
            .some(7, self.ce_threshold.map(|t| us(t).max(1)), "ce_threshold {}us");
        Ok(match (self.ce_threshold, self.ce_threshold_for) {
            (Some(_), Classifier::L4s) => made.row(10, 1u8, "ce_threshold_selector 0x1/0x3").row(11, 3u8, ""),
            _ => made,
        })
    }
}

#[derive(Clone)]
pub(crate) struct FqCodel {
    params: FqCodelParams,
    subs: Vec<Sub>,
    new_queues: VecDeque<u32>,
    old_queues: VecDeque<u32>,
    bytes: u64,
    /// Start of the current period with waiting packets.
    since: Time,
    /// Packets that the queues' CoDel has dropped are counted there.
    ledger: Ledger,
}

/// One queue.
#[derive(Clone)]
struct Sub {
    codel: Codel,
    credits: i64,
    active: bool,
}

impl FqCodel {
    pub(crate) fn new(params: FqCodelParams) -> FqCodel {
        let FqCodelParams { target, interval, ecn, ce_threshold, .. } = params;
        let codel = || {
            let mut codel = Codel::new(CodelParams { limit: None, target, interval, ecn, ce_threshold });
            codel.marks_early = params.ce_threshold_for;
            codel
        };
        let sub = || Sub { codel: codel(), credits: 0, active: false };
        FqCodel {
            subs: (0..params.queues).map(|_| sub()).collect(),
            params,
            new_queues: VecDeque::new(),
            old_queues: VecDeque::new(),
            bytes: 0,
            since: Time::ZERO,
            ledger: Ledger::default(),
        }
    }

    /// Append a packet to its queue. `must_wait`: the link is busy. Beyond the limit, the longest queue drops packets
    /// at its head.
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
        sub.codel.enqueue(now, id, load, must_wait);
        if !std::mem::replace(&mut sub.active, true) {
            sub.credits = self.params.quantum as i64;
            self.new_queues.push_back(at);
        }
        if self.ledger.packets == 0 {
            self.since = now;
        }
        self.ledger.packets += load.segments();
        self.bytes += load.bytes() as u64;
        while must_wait && self.ledger.packets > self.params.limit.unwrap_or(u32::MAX) {
            self.drop_from_the_fattest(pool, now);
        }
        self.ledger.waits(must_wait);
        true
    }

    /// Return the packet to transmit at `now`.
    pub(crate) fn dequeue(&mut self, pool: &mut Pool, now: Time) -> Option<Served> {
        loop {
            let from_new = !self.new_queues.is_empty();
            let list = if from_new { &mut self.new_queues } else { &mut self.old_queues };
            let at = *list.front()?;
            let sub = &mut self.subs[at as usize];
            if sub.credits <= 0 {
                sub.credits += self.params.quantum as i64;
                if from_new || list.len() > 1 {
                    list.pop_front();
                    self.old_queues.push_back(at);
                } // the only old queue stays in place
                continue;
            }
            let beside = self.bytes - sub.codel.bytes();
            let taken = sub.codel.dequeue(pool, now, beside);
            if sub.codel.has_head_drops() {
                self.collect(at);
            }
            let sub = &mut self.subs[at as usize];
            self.bytes = beside + sub.codel.bytes();
            match taken {
                Some(served) => {
                    self.ledger.packets -= served.load.segments();
                    sub.credits -= served.load.bytes() as i64;
                    return Some(served);
                }
                // An empty new queue moves to the end of the old ones once, so that it cannot stay new (§4.2).
                None if from_new => {
                    self.new_queues.pop_front();
                    self.old_queues.push_back(at);
                }
                None => {
                    self.old_queues.pop_front();
                    sub.active = false;
                }
            }
        }
    }

    /// Collect the packets that a queue's CoDel has dropped.
    #[cold]
    fn collect(&mut self, at: u32) {
        while let Some(dropped) = self.subs[at as usize].codel.take_head_drop() {
            self.ledger.packets -= dropped.1.segments();
            self.ledger.drops.push_back(dropped);
        }
    }

    /// Drop from the longest queue (Linux `fq_codel_drop`).
    #[cold]
    fn drop_from_the_fattest(&mut self, pool: &mut Pool, now: Time) {
        let active = self.new_queues.iter().chain(&self.old_queues);
        let fattest =
            active.copied().max_by_key(|&at| (self.subs[at as usize].codel.bytes(), std::cmp::Reverse(at)));
        let at = fattest.expect("invariant: some queue holds the packet that exceeds the limit");
        let codel = &mut self.subs[at as usize].codel;
        let before = codel.bytes();
        let mut dropped = 0;
        while dropped < BATCH && before - codel.bytes() < (before / 2).max(1) {
            let Some(packet) = codel.drop_head(pool, now) else { break };
            dropped += 1;
            self.ledger.packets -= packet.segments();
            self.ledger.drop(now, packet, Refused::QueueFull);
        }
        codel.add_to_count(dropped);
        self.bytes -= before - codel.bytes();
    }
}

impl Holding for FqCodel {
    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    fn hold(&mut self, pool: &mut Pool, now: Time, id: PacketId, load: Load, must_wait: bool) -> bool {
        self.enqueue(pool, now, id, load, must_wait)
    }

    fn serve(&mut self, pool: &mut Pool, now: Time) -> Option<Served> {
        self.dequeue(pool, now)
    }

    fn head_arrival(&self) -> Option<Time> {
        (self.ledger.packets > 0).then_some(self.since)
    }

    fn waiting(&self, now: Time) -> u128 {
        self.subs.iter().map(|sub| sub.codel.figures(now).0).sum()
    }

    fn figures(&self, now: Time) -> (u128, u32, u64, u64) {
        let subs = || self.subs.iter().map(|sub| sub.codel.ledger());
        let dropped = self.ledger.dropped + subs().map(|sub| sub.dropped).sum::<u64>();
        (self.waiting(now), self.ledger.max, dropped, subs().map(|sub| sub.marked).sum())
    }
}

/// Maximum number of packets that one overflow drops (Linux `drop_batch_size`).
const BATCH: u32 = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::queue::Pooled;
    use ackclock_core::Packet;

    fn fq(limit: Option<u32>) -> Pooled<FqCodel> {
        let (target, interval) = (TARGET, INTERVAL);
        Pooled::new(FqCodel::new(FqCodelParams {
            limit,
            target,
            interval,
            ecn: false,
            queues: 1024,
            quantum: 1514,
            ce_threshold: None,
            ce_threshold_for: Classifier::AnyEct,
        }))
    }

    fn packet(conn: u32, bytes: u32) -> Packet {
        Packet { conn, bytes, forward: true, ..Packet::default() }
    }

    fn order(queue: &mut Pooled<FqCodel>, n: usize) -> Vec<u32> {
        (0..n).map(|i| queue.dequeue(Time(i as u64)).expect("a packet").0.conn).collect()
    }

    #[test]
    fn flows_take_turns_by_bytes_not_by_packets() {
        let mut queue = fq(None);
        for _ in 0..20 {
            queue.enqueue(Time(0), packet(1, 1514), true);
            queue.enqueue(Time(0), packet(2, 757), true);
        }
        let sent = order(&mut queue, 30);
        let bytes = |conn| sent.iter().filter(|&&c| c == conn).count() * if conn == 1 { 1514 } else { 757 };
        assert!(bytes(1).abs_diff(bytes(2)) <= 2 * 1514, "{sent:?}");
    }

    proptest! {
        /// Backlogged flows get equal shares: no flow is ahead of another by more than a quantum plus one packet of
        /// each, and each flow keeps its order.
        #[test]
        fn shares_are_equal_whatever_the_sizes(
            sizes in prop::collection::vec(prop::collection::vec(40u32..9000, 60..61), 2..6),
            quantum in 300u32..4000,
            sent in 1usize..60,
        ) {
            let long = Span::from_secs(10);
            let mut queue = Pooled::new(FqCodel::new(FqCodelParams {
                limit: None, target: long, interval: long, ecn: false, queues: 65_536, quantum,
                ce_threshold: None, ce_threshold_for: Classifier::AnyEct }));
            for i in 0..60 {
                for (conn, sizes) in sizes.iter().enumerate() {
                    queue.enqueue(Time(0), Packet { flow: i as u32, ..packet(conn as u32, sizes[i]) }, true);
                }
            }
            let (mut bytes, mut next) = (vec![0u32; sizes.len()], vec![0; sizes.len()]);
            for t in 0..sent {
                let (p, _) = queue.dequeue(Time(t as u64)).expect("a packet");
                let conn = p.conn as usize;
                prop_assert_eq!(p.flow, next[conn]);
                next[conn] += 1;
                bytes[conn] += p.bytes;
            }
            let spread = bytes.iter().max().unwrap() - bytes.iter().min().unwrap();
            prop_assert!(spread <= quantum + 9000, "{bytes:?}");
        }
    }

    #[test]
    fn a_flow_that_begins_goes_first_once() {
        let mut queue = fq(None);
        for _ in 0..10 {
            queue.enqueue(Time(0), packet(1, 1514), true);
            queue.enqueue(Time(0), packet(2, 1514), true);
        }
        assert_eq!(order(&mut queue, 4), [1, 2, 1, 2]);
        queue.enqueue(Time(0), packet(3, 1514), true);
        queue.enqueue(Time(0), packet(3, 1514), true);
        // flow 2 has just used up its round, so flows 1 and 3 precede it
        assert_eq!(order(&mut queue, 5), [3, 1, 3, 2, 1]);
    }

    #[test]
    fn the_fattest_queue_pays_for_the_overflow() {
        let mut queue = fq(Some(10));
        for _ in 0..10 {
            queue.enqueue(Time(0), packet(1, 1514), true);
        }
        for _ in 0..3 {
            queue.enqueue(Time(0), packet(2, 1514), true);
        }
        let dropped: Vec<_> =
            std::iter::from_fn(|| queue.take_head_drop()).map(|(_, p, why)| (p.conn, why)).collect();
        // the first packet above the limit drops half of the packets of flow 1
        assert_eq!(dropped, [(1, Refused::QueueFull); 5]);
        assert_eq!((queue.len(), queue.ledger.max, queue.figures(Time(9)).2), (8, 10, 5));
    }

    #[test]
    fn one_flow_alone_is_codel() {
        // CoDel alone, with the same arrivals and departures, drops the same packets
        let codel =
            CodelParams { limit: None, target: TARGET, interval: INTERVAL, ecn: false, ce_threshold: None };
        let (mut fair, mut alone) = (fq(None), Pooled::new(Codel::new(codel)));
        let mut sent = [Vec::new(), Vec::new()];
        for ms in 0..2_000u64 {
            let now = Time(ms * 1_000_000);
            for i in 0..2 {
                let p = Packet { flow: (2 * ms + i) as u32, ..packet(7, 1514) };
                fair.enqueue(now, p, true);
                alone.enqueue(now, p, true);
            }
            sent[0].extend(fair.dequeue(now).map(|(p, waited)| (p.flow, waited)));
            sent[1].extend(alone.dequeue(now).map(|(p, waited)| (p.flow, waited)));
        }
        assert!(alone.figures(Time(0)).2 > 20);
        assert_eq!(fair.figures(Time(0)).2, alone.figures(Time(0)).2);
        assert_eq!(sent[0], sent[1]);
    }

    #[test]
    fn connections_spread_over_the_queues() {
        let mut hit = vec![0; 1024];
        (0..10_240).for_each(|conn| hit[crate::queue::queue_of(&packet(conn, 100), 1024) as usize] += 1);
        assert!(hit.iter().all(|&n| (1..40).contains(&n)), "{hit:?}");
    }
}
