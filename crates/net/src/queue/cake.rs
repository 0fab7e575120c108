//! CAKE: a shaper, fair queueing over hosts and their flows, and COBALT (`cobalt.rs`) in each queue.
//!
//! Source: Linux 7.3 `net/sched/sch_cake.c`; T. Høiland-Jørgensen, D. Täht, J. Morton, "Piece of CAKE: A comprehensive queue
//! management solution for home gateways", 2018.
//!
//! | part | function |
//! |---|---|
//! | shaper | a packet may be sent once the previous packets would have been sent at `bandwidth`; no burst, and no debt beyond 1.5 times their charge |
//! | overhead | the shaper charges the IP packet + `overhead`, at least `mpu`, in cells of ATM or with PTM's code |
//! | isolation | deficit round robin over flows; a flow's quantum is divided by the larger number of bulk flows of its two hosts |
//! | queues | 1024 in sets of 8: a flow whose queue is in use gets another queue of its set |
//! | memory | beyond `limit`, the queue with the most bytes drops its head |
//!
//! All packets are in one tin (`besteffort`), which behaves like diffserv3 for packets without DSCP. No ACK filter, no
//! ingress mode, no autorate. ECN-capable packets are marked where CoDel would drop them.
//!
//! Differs: hosts are counted exactly, not by a hash; an overflow with several longest queues drops from the one with
//! the lowest number; a multi-segment packet is not split (`no-split-gso`).

use std::collections::VecDeque;

use ackclock_core::packet::{Ecn, Load};
use ackclock_core::schema::{Limit, Refusal, Takes, DURATION, RATE, SIZE};
use ackclock_core::{choice, table, Packet, Rate, Span, Stream, Time};

use super::cobalt::{Cobalt, CobaltParams, Verdict};
use super::ledger::{Holding, Ledger};
use super::{ecn_capable, Discipline, Refused, Served};
use crate::pool::{PacketId, Pool};
use crate::qdisc::{us, Qdisc};

table! {
    /// CAKE (Høiland-Jørgensen, Täht and Morton 2018): a shaper, fairness between hosts and flows, and the AQM COBALT.
    pub struct CakeParams "cake" {
        /// Expected round-trip time; the intervals of COBALT follow from it.
        rtt: Span = DURATION, Span::from_ms(100);
        /// Maximum memory of the queued packets as the kernel counts it: payload plus 832 bytes per packet. Default:
        /// four times the product of `bandwidth` and `rtt`, at least 4 MiB; without `bandwidth`, unlimited.
        limit: Option<u64> = SIZE;
        /// Rate of CAKE's shaper. Default: no shaper (tc's `unlimited`); the link limits the rate.
        bandwidth: Option<Rate> = RATE;
        /// Bytes that the shaper adds to each IP packet. Default: the network's `framing`. Values of tc's keywords:
        /// ethernet 38, docsis 18, pppoe-ptm 30, bridged-ptm 22, pppoe-vcmux 32, ipoa-vcmux 8, conservative 48.
        overhead: Option<u32> = Takes::Whole(0, 256);
        /// Minimum size that the shaper assumes for a packet, bytes (ethernet 84, docsis 64).
        mpu: u32 = Takes::Whole(0, 256), 0;
        /// Compensation for the line's encoding: ATM (48 bytes of data occupy a cell of 53), PTM (64 bytes occupy 65),
        /// or none.
        framing: LineCode = LineCode::TAKES, LineCode::NoAtm;
        /// Parties among which the rate is shared equally. Hosts are those of the scenario's `hosts`; endpoints without
        /// a host count as one host per group of flows.
        isolation: Isolation = Isolation::TAKES, Isolation::TripleIsolate;
    }
}

impl Discipline for CakeParams {
    type Queue = Box<Cake>;

    fn queue(self, stream: impl FnOnce() -> Stream) -> Box<Cake> {
        Box::new(Cake::new(self, stream()))
    }

    fn limit(&self) -> Option<Limit> {
        self.limit.map(Limit::Bytes)
    }

    /// Return Linux `sch_cake` with all packets in one tin.
    fn qdisc(&self, _: Span) -> Result<Qdisc, Refusal> {
        const BEST_EFFORT: u32 = 3;
        let rate = self.bandwidth.map_or(0, |rate| rate.0 / 8);
        let paced = if rate > 0 { format!("bandwidth {}bit", 8 * rate) } else { "unlimited".to_string() };
        let (isolation, mode) = match self.isolation {
            Isolation::Flows => ("flows", 4u32),
            Isolation::DualSrchost => ("dual-srchost", 5),
            Isolation::DualDsthost => ("dual-dsthost", 6),
            Isolation::TripleIsolate => ("triple-isolate", 7),
        };
        let (code, atm) = match self.framing {
            LineCode::NoAtm => ("noatm", 0u32),
            LineCode::Atm => ("atm", 1),
            LineCode::Ptm => ("ptm", 2),
        };
        let rtt = us(self.rtt);
        Ok(Qdisc::new("cake")
            .row(2, rate, &paced)
            .row(3, BEST_EFFORT, "besteffort")
            .row(5, mode, isolation)
            .row(7, rtt, "rtt {}us")
            .row(8, (rtt / 20).max(1), "") // target
            .row(17, 0u32, "no-split-gso")
            .some(6, self.overhead.map(|bytes| bytes as i32), "overhead {}")
            .row(4, atm, if self.overhead.is_some() { code } else { "" })
            .row(14, self.mpu, if self.mpu > 0 { "mpu {}" } else { "" })
            .some(10, self.limit.map(|bytes| bytes.min(u32::MAX as u64) as u32), "memlimit {}b"))
    }
}

/// Line encoding that the shaper compensates for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of tc-cake(8)")]
pub enum LineCode {
    NoAtm,
    Atm,
    Ptm,
}

choice! { LineCode: NoAtm "noatm", Atm "atm", Ptm "ptm" }

/// Units between which CAKE shares the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Flows only.
    Flows,
    /// Sending hosts, and the flows of each.
    DualSrchost,
    /// Receiving hosts, and the flows of each.
    DualDsthost,
    /// Sending and receiving hosts, and the flows of each.
    TripleIsolate,
}

choice! {
    Isolation: Flows "flows", DualSrchost "dual-srchost", DualDsthost "dual-dsthost", TripleIsolate "triple-isolate"
}

impl CakeParams {
    /// Bytes that the shaper charges for a packet.
    fn charge(&self, packet: &Packet) -> u32 {
        let segments = packet.segments();
        let bytes = match self.overhead {
            Some(overhead) => packet.header.charge(0, packet.more) / segments + overhead,
            None => packet.bytes / segments,
        };
        let one = match (self.framing, bytes.max(self.mpu)) {
            (LineCode::NoAtm, len) => len,
            (LineCode::Atm, len) => len.div_ceil(48) * 53,
            (LineCode::Ptm, len) => len + len.div_ceil(64),
        };
        one * segments
    }

    fn memory(&self) -> u64 {
        let four = |rate: Rate| (rate.0 / 8) as u128 * 4 * self.rtt.0 as u128 / 1_000_000_000;
        let own = self.bandwidth.map(|rate| (four(rate).min(u32::MAX as u128) as u64).max(4 << 20));
        self.limit.or(own).unwrap_or(u32::MAX as u64)
    }
}

#[derive(Clone)]
pub(crate) struct Cake {
    params: CakeParams,
    cobalt: CobaltParams,
    quantum: u32,
    memory_limit: u64,
    memory: u64,
    /// Time at which the next packet may be sent.
    next: Time,
    /// Latest time at which the next packet may be sent: advances by 1.5 times each charge.
    failsafe: Time,
    queues: Vec<Queue>,
    fresh: VecDeque<u32>,
    old: VecDeque<u32>,
    decaying: VecDeque<u32>,
    /// Sending and receiving host of each flow, by number.
    hosts: Box<[[u32; 2]]>,
    /// Number of bulk flows from and to each host.
    bulk: Vec<[u16; 2]>,
    since: Time,
    /// Here `area` counts all waits up to `changed`, those of packets that still wait included.
    ledger: Ledger,
    changed: Time,
    stream: Stream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    None,
    Sparse,
    /// Counted as sparse, but served from the list of bulk flows.
    SparseWait,
    Bulk,
    Decaying,
}

#[derive(Clone)]
struct Queue {
    held: VecDeque<(Time, Packet)>,
    bytes: u64,
    tag: u32,
    set: Set,
    deficit: i64,
    cobalt: Cobalt,
    /// Source and destination host of the flow.
    hosts: [u32; 2],
}

impl Cake {
    pub(crate) fn new(params: CakeParams, stream: Stream) -> Cake {
        let bytes_per_s = params.bandwidth.map(|rate| rate.0 / 8);
        let full = params.bandwidth.map_or(Span::ZERO, |rate| rate.tx_time(FULL_FRAME));
        let queue = || Queue {
            held: VecDeque::new(),
            bytes: 0,
            tag: 0,
            set: Set::None,
            deficit: 0,
            cobalt: Cobalt::default(),
            hosts: [0; 2],
        };
        Cake {
            cobalt: CobaltParams::new(params.rtt, full),
            quantum: bytes_per_s.map_or(FULL_FRAME, |rate| (rate >> 12).clamp(300, FULL_FRAME as u64) as u32),
            memory_limit: params.memory(),
            memory: 0,
            next: Time::ZERO,
            failsafe: Time::ZERO,
            queues: (0..QUEUES).map(|_| queue()).collect(),
            fresh: VecDeque::new(),
            old: VecDeque::new(),
            decaying: VecDeque::new(),
            hosts: Box::default(),
            bulk: Vec::new(),
            since: Time::ZERO,
            ledger: Ledger::default(),
            changed: Time::ZERO,
            stream,
            params,
        }
    }

    /// Set the host numbers of each flow: sender, receiver.
    pub(crate) fn learn_hosts(&mut self, hosts: &[[u32; 2]]) {
        let most = hosts.iter().flatten().max().map_or(0, |&n| n as usize + 1);
        self.hosts = hosts.into();
        self.bulk = vec![[0; 2]; most];
    }

    pub(crate) fn enqueue(&mut self, now: Time, packet: Packet, must_wait: bool) -> bool {
        if self.ledger.packets == 0 {
            self.since = now;
            if self.next < now {
                (self.next, self.failsafe) = (now, now);
            }
        }
        let must_wait = must_wait || self.shaped_until() > now;
        let at = self.classify(&packet);
        self.count(now);
        let queue = &mut self.queues[at as usize];
        queue.held.push_back((now, packet));
        queue.bytes += packet.bytes as u64;
        self.ledger.packets += packet.segments();
        self.memory += memory_of(&packet);
        match queue.set {
            Set::None | Set::Decaying => {
                if queue.set == Set::Decaying {
                    self.decaying.retain(|&other| other != at);
                }
                self.fresh.push_back(at);
                self.queues[at as usize].set = Set::Sparse;
                self.queues[at as usize].deficit = self.quantum_of(at);
            }
            Set::SparseWait => self.becomes_bulk(at),
            Set::Sparse | Set::Bulk => {}
        }
        while self.memory > self.memory_limit && (must_wait || self.ledger.packets > packet.segments()) {
            self.drop_from_the_longest(now);
        }
        self.ledger.waits(must_wait);
        true
    }

    pub(crate) fn dequeue(&mut self, now: Time) -> Option<(Packet, Span)> {
        let mut first = true;
        while self.ledger.packets > 0 {
            let list = match (first, self.decaying.is_empty(), self.fresh.is_empty(), self.old.is_empty()) {
                (true, false, ..) | (_, _, true, true) => &mut self.decaying,
                (_, _, false, _) => &mut self.fresh,
                (_, _, true, false) => &mut self.old,
            };
            first = false;
            let at = list.pop_front().expect("invariant: packets lie in queues that are in a list");
            let queue = &mut self.queues[at as usize];
            if queue.deficit <= 0 {
                if queue.set == Set::Sparse {
                    match queue.held.is_empty() {
                        false => self.becomes_bulk(at),
                        true => queue.set = Set::SparseWait,
                    }
                }
                let quantum = self.quantum_of(at);
                self.queues[at as usize].deficit += quantum;
                self.old.push_back(at);
                continue;
            }
            let Some((packet, waited)) = self.take(now, at) else {
                self.found_empty(now, at);
                continue;
            };
            // the queue stays at the head of its list
            let list = match self.queues[at as usize].set {
                Set::Sparse => &mut self.fresh,
                Set::Decaying => &mut self.decaying,
                _ => &mut self.old,
            };
            list.push_front(at);
            let charged = self.params.charge(&packet);
            self.queues[at as usize].deficit -= charged as i64;
            self.advance(charged);
            return Some((packet, waited));
        }
        None
    }

    fn shaped_until(&self) -> Time {
        match self.params.bandwidth {
            Some(_) => self.next.min(self.failsafe),
            None => Time::ZERO,
        }
    }

    /// Charge the shaper for a departure.
    fn advance(&mut self, bytes: u32) {
        if let Some(rate) = self.params.bandwidth {
            let takes = rate.tx_time(bytes);
            self.next += takes;
            self.failsafe += takes + takes / 2;
        }
    }

    /// Return the next packet of a queue, after COBALT's drops.
    fn take(&mut self, now: Time, at: u32) -> Option<(Packet, Span)> {
        loop {
            self.count(now);
            let queue = &mut self.queues[at as usize];
            let (arrival, mut packet) = queue.held.pop_front()?;
            let waited = now - arrival;
            queue.bytes -= packet.bytes as u64;
            self.ledger.packets -= packet.segments();
            self.memory -= memory_of(&packet);
            let marks = ecn_capable(&packet);
            match queue.cobalt.judge(now, &self.cobalt, waited, marks, &mut self.stream) {
                // the last packet of a queue is not dropped
                Verdict::Drop if !queue.held.is_empty() => {
                    self.ledger.drop(now, packet, Refused::Aqm);
                    continue;
                }
                Verdict::Mark => {
                    packet.ecn = Ecn::Ce;
                    self.ledger.marked += packet.segments() as u64;
                }
                Verdict::Pass | Verdict::Drop => {}
            }
            return Some((packet, waited));
        }
    }

    /// Record that a queue was empty when its turn came.
    fn found_empty(&mut self, now: Time, at: u32) {
        let queue = &mut self.queues[at as usize];
        queue.cobalt.found_empty(now, &self.cobalt);
        let was_bulk = queue.set == Set::Bulk;
        if queue.cobalt.is_at_rest(now) {
            queue.set = Set::None;
        } else {
            queue.set = Set::Decaying;
            self.decaying.push_back(at);
        }
        if was_bulk {
            self.weigh(at, false);
        }
    }

    fn becomes_bulk(&mut self, at: u32) {
        self.queues[at as usize].set = Set::Bulk;
        self.weigh(at, true);
    }

    /// Add or remove one bulk flow in the counts of a queue's hosts.
    fn weigh(&mut self, at: u32, more: bool) {
        let isolation = self.params.isolation;
        for (side, on) in [(0, isolation != Isolation::DualDsthost), (1, isolation != Isolation::DualSrchost)]
        {
            let host = self.queues[at as usize].hosts[side] as usize;
            if let (true, Some(count)) = (on && isolation != Isolation::Flows, self.bulk.get_mut(host)) {
                count[side] =
                    if more { (count[side] + 1).min(QUEUES as u16) } else { count[side].saturating_sub(1) };
            }
        }
    }

    /// Bytes that a queue may send per turn. Dithered, so that the remainder of the division is not lost.
    fn quantum_of(&mut self, at: u32) -> i64 {
        let hosts = self.queues[at as usize].hosts;
        let load = [0, 1].map(|side| self.bulk.get(hosts[side] as usize).map_or(0, |count| count[side]));
        let share = 65_535 / load[0].max(load[1]).max(1) as u64;
        let dither = self.stream.next_u64() >> 48;
        ((self.quantum as u64 * share + dither) >> 16) as i64
    }

    /// Queue number for a packet (Linux `cake_hash`).
    fn classify(&mut self, packet: &Packet) -> u32 {
        let spread = (packet.conn as u64 ^ (packet.forward as u64) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = (spread >> 32) as u32;
        let (set, way) = (hash % QUEUES / WAYS * WAYS, hash % WAYS);
        let ways = || (0..WAYS).map(|i| set + (way + i) % WAYS);
        let queue = |at: &u32| &self.queues[*at as usize];
        let reserved = ways().find(|at| queue(at).tag == hash);
        let (at, allocate) = match reserved.or_else(|| ways().find(|at| queue(at).set == Set::None)) {
            Some(at) => (at, self.queues[at as usize].set == Set::None),
            None => (set + way, true),
        };
        self.queues[at as usize].tag = hash;
        if allocate {
            // a colliding flow takes over the queue, including its hosts
            let bulk = self.queues[at as usize].set == Set::Bulk;
            if bulk {
                self.weigh(at, false);
            }
            let [sends, receives] = self.hosts.get(packet.flow as usize).copied().unwrap_or([0, 0]);
            self.queues[at as usize].hosts =
                if packet.forward { [sends, receives] } else { [receives, sends] };
            if bulk {
                self.weigh(at, true);
            }
        }
        at
    }

    fn drop_from_the_longest(&mut self, now: Time) {
        let in_lists = self.fresh.iter().chain(&self.old);
        let longest =
            in_lists.copied().max_by_key(|&at| (self.queues[at as usize].bytes, std::cmp::Reverse(at)));
        let at = longest.expect("invariant: some queue holds what exceeds the limit");
        self.count(now);
        let queue = &mut self.queues[at as usize];
        let (_, packet) = queue.held.pop_front().expect("invariant: the longest holds some");
        queue.bytes -= packet.bytes as u64;
        queue.cobalt.overflowed(now, &self.cobalt);
        self.ledger.packets -= packet.segments();
        self.memory -= memory_of(&packet);
        self.ledger.drop(now, packet, Refused::QueueFull);
    }

    /// Update the integral before the number of packets changes.
    fn count(&mut self, now: Time) {
        self.ledger.area += now.since(self.changed).0 as u128 * self.ledger.packets as u128;
        self.changed = now;
    }
}

impl Holding for Cake {
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

    fn head_arrival(&self) -> Option<Time> {
        (self.ledger.packets > 0).then(|| self.since.max(self.shaped_until()))
    }

    fn waiting(&self, now: Time) -> u128 {
        now.since(self.changed).0 as u128 * self.ledger.packets as u128
    }
}

/// Memory that Linux counts for a packet (`truesize`).
fn memory_of(packet: &Packet) -> u64 {
    packet.header.payload() as u64 + 832 * packet.segments() as u64
}

/// Linux CAKE_QUEUES and CAKE_SET_WAYS.
const QUEUES: u32 = 1024;
const WAYS: u32 = 8;
/// Bytes of a full Ethernet frame, CAKE's MTU.
const FULL_FRAME: u32 = 1514;

#[cfg(test)]
mod tests;
