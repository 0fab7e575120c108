//! CAKE: a shaper, queues that hosts and their flows share fairly, and COBALT (`cobalt.rs`) in each.
//!
//! Source: Linux 7.3 `net/sched/sch_cake.c`; T. Høiland-Jørgensen, D. Täht, J. Morton, "Piece of CAKE: A comprehensive queue
//! management solution for home gateways", 2018.
//!
//! | part | what it does |
//! |---|---|
//! | shaper | the next packet may leave when what left before would be over at `bandwidth`; no burst, and no debt beyond half as much again |
//! | overhead | what the shaper charges: IP packet + `overhead`, at least `mpu`, in cells of ATM or with PTM's code |
//! | isolation | deficit round robin over flows; a flow's quantum is divided by the bulk flows of its sending or receiving host, whichever has more |
//! | queues | 1024 in sets of 8: a flow whose queue is taken gets another one of its set |
//! | memory | beyond `limit`, the queue with the most bytes loses its head |
//!
//! All packets are of one tin (`besteffort`); without DSCP that is what diffserv3 comes to. No ACK filter, no ingress mode, no
//! autorate. ECN-capable packets are marked where CoDel would drop them.
//!
//! Differs: hosts are counted exactly, not by a hash; the overflow of equal queues takes that of the lowest number; a packet
//! of several segments stays whole (`no-split-gso`).

use std::collections::VecDeque;
use std::rc::Rc;

use ackclock_core::packet::Ecn;
use ackclock_core::schema::{Takes, DURATION, RATE, SIZE};
use ackclock_core::{choice, table, Packet, Rate, Span, Stream, Time};

use super::cobalt::{Cobalt, CobaltParams, Verdict};
use super::{ecn_capable, Dropped, Refused};

table! {
    /// CAKE (Høiland-Jørgensen, Täht and Morton 2018): a shaper, fair shares for hosts and flows, and COBALT.
    pub struct CakeParams "cake" {
        /// Round-trip time to expect.
        rtt: Span = DURATION, Span::from_ms(100);
        /// Memory, counted as the kernel does: payload and 832 bytes a packet; absent: four times what `bandwidth` carries in
        /// `rtt`, at least 4 MiB; without `bandwidth`: unlimited.
        limit: Option<u64> = SIZE;
        /// Rate of its own shaper; absent: none (`unlimited`), the link sets the pace.
        bandwidth: Option<Rate> = RATE;
        /// Bytes charged beyond the IP packet; absent: the framing of the network. tc's words: ethernet 38, docsis 18,
        /// pppoe-ptm 30, bridged-ptm 22, pppoe-vcmux 32, ipoa-vcmux 8, conservative 48.
        overhead: Option<u32> = Takes::Whole(0, 256);
        /// Least bytes charged for a packet (ethernet 84, docsis 64).
        mpu: u32 = Takes::Whole(0, 256), 0;
        /// Code of the line: cells of 53 bytes for 48 (ATM), 65 bytes for 64 (PTM), or none.
        framing: LineCode = LineCode::TAKES, LineCode::NoAtm;
        /// Who gets equal shares. Hosts are the described ones, and for ends without one those of each group of flows.
        isolation: Isolation = Isolation::TAKES, Isolation::TripleIsolate;
    }
}

/// What a line adds to packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of tc-cake(8)")]
pub enum LineCode {
    NoAtm,
    Atm,
    Ptm,
}

choice! { LineCode: NoAtm "noatm", Atm "atm", Ptm "ptm" }

/// Among whom CAKE shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Flows alone.
    Flows,
    /// Sending hosts, and flows within each.
    DualSrchost,
    /// Receiving hosts, and flows within each.
    DualDsthost,
    /// Both kinds of hosts, and flows within each.
    TripleIsolate,
}

choice! {
    Isolation: Flows "flows", DualSrchost "dual-srchost", DualDsthost "dual-dsthost", TripleIsolate "triple-isolate"
}

impl CakeParams {
    /// What the shaper charges for a packet.
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

pub(crate) struct Cake {
    params: CakeParams,
    cobalt: CobaltParams,
    quantum: u32,
    memory_limit: u64,
    memory: u64,
    /// When the next packet may leave.
    next: Time,
    /// And when at the latest, whatever was charged.
    failsafe: Time,
    queues: Vec<Queue>,
    fresh: VecDeque<u32>,
    old: VecDeque<u32>,
    decaying: VecDeque<u32>,
    /// By flow: numbers of the sending and the receiving host.
    hosts: Rc<[[u32; 2]]>,
    /// By number: bulk flows from and to this host.
    bulk: Vec<[u16; 2]>,
    packets: u32,
    max: u32,
    since: Time,
    area: u128,
    changed: Time,
    head_drops: VecDeque<Dropped>,
    overflows: u64,
    dropped: u64,
    marked: u64,
    stream: Stream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    None,
    Sparse,
    /// Counts as sparse, though it takes turns with the bulk.
    SparseWait,
    Bulk,
    Decaying,
}

struct Queue {
    held: VecDeque<(Time, Packet)>,
    bytes: u64,
    tag: u32,
    set: Set,
    deficit: i64,
    cobalt: Cobalt,
    /// Source and destination.
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
            hosts: Rc::new([]),
            bulk: Vec::new(),
            packets: 0,
            max: 0,
            since: Time::ZERO,
            area: 0,
            changed: Time::ZERO,
            head_drops: VecDeque::new(),
            overflows: 0,
            dropped: 0,
            marked: 0,
            stream,
            params,
        }
    }

    /// Who lives where: by flow, numbers of the sending and the receiving host.
    pub(crate) fn learn_hosts(&mut self, hosts: &Rc<[[u32; 2]]>) {
        let most = hosts.iter().flatten().max().map_or(0, |&n| n as usize + 1);
        self.hosts = hosts.clone();
        self.bulk = vec![[0; 2]; most];
    }

    pub(crate) fn enqueue(&mut self, now: Time, packet: Packet, must_wait: bool) -> bool {
        if self.packets == 0 {
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
        self.packets += packet.segments();
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
        while self.memory > self.memory_limit && (must_wait || self.packets > packet.segments()) {
            self.drop_from_the_longest(now);
        }
        if must_wait {
            self.max = self.max.max(self.packets);
        }
        true
    }

    pub(crate) fn dequeue(&mut self, now: Time) -> Option<(Packet, Span)> {
        let mut first = true;
        while self.packets > 0 {
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
            // it stays first of the list that it is in
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

    pub(crate) fn take_head_drop(&mut self) -> Option<Dropped> {
        self.head_drops.pop_front()
    }

    /// A time at or after which a packet can leave.
    pub(crate) fn head_arrival(&self) -> Option<Time> {
        (self.packets > 0).then(|| self.since.max(self.shaped_until()))
    }

    pub(crate) fn len(&self) -> u32 {
        self.packets
    }

    pub(crate) fn forget_max(&mut self) {
        self.max = self.packets;
    }

    /// Integral over time up to `now`, most at a time, dropped, marked.
    pub(crate) fn figures(&self, now: Time) -> (u128, u32, u64, u64) {
        let area = self.area + now.since(self.changed).0 as u128 * self.packets as u128;
        (area, self.max, self.dropped + self.overflows, self.marked)
    }

    fn shaped_until(&self) -> Time {
        match self.params.bandwidth {
            Some(_) => self.next.min(self.failsafe),
            None => Time::ZERO,
        }
    }

    /// The shaper is charged for what leaves.
    fn advance(&mut self, bytes: u32) {
        if let Some(rate) = self.params.bandwidth {
            let takes = rate.tx_time(bytes);
            self.next += takes;
            self.failsafe += takes + takes / 2;
        }
    }

    /// The packet at the head of a queue that COBALT lets pass.
    fn take(&mut self, now: Time, at: u32) -> Option<(Packet, Span)> {
        loop {
            self.count(now);
            let queue = &mut self.queues[at as usize];
            let (arrival, mut packet) = queue.held.pop_front()?;
            let waited = now - arrival;
            queue.bytes -= packet.bytes as u64;
            self.packets -= packet.segments();
            self.memory -= memory_of(&packet);
            let marks = ecn_capable(&packet);
            match queue.cobalt.judge(now, &self.cobalt, waited, marks, &mut self.stream) {
                // the last one of a queue is not dropped
                Verdict::Drop if !queue.held.is_empty() => {
                    self.dropped += packet.segments() as u64;
                    self.head_drops.push_back((packet, Refused::Aqm));
                    continue;
                }
                Verdict::Mark => {
                    packet.ecn = Ecn::Ce;
                    self.marked += packet.segments() as u64;
                }
                Verdict::Pass | Verdict::Drop => {}
            }
            return Some((packet, waited));
        }
    }

    /// The turn of a queue came, and it is empty.
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

    /// Hosts have one bulk flow more or less.
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

    /// What a queue may send in a turn; dithered, so that what a division leaves over is not lost.
    fn quantum_of(&mut self, at: u32) -> i64 {
        let hosts = self.queues[at as usize].hosts;
        let load = [0, 1].map(|side| self.bulk.get(hosts[side] as usize).map_or(0, |count| count[side]));
        let share = 65_535 / load[0].max(load[1]).max(1) as u64;
        let dither = self.stream.next_u64() >> 48;
        ((self.quantum as u64 * share + dither) >> 16) as i64
    }

    /// The queue of a packet (Linux `cake_hash`).
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
            // a flow that collides takes the queue over, hosts and all
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
        self.packets -= packet.segments();
        self.memory -= memory_of(&packet);
        self.overflows += packet.segments() as u64;
        self.head_drops.push_back((packet, Refused::QueueFull));
    }

    /// The number of packets is about to change.
    fn count(&mut self, now: Time) {
        self.area += now.since(self.changed).0 as u128 * self.packets as u128;
        self.changed = now;
    }
}

/// Memory that Linux counts for a packet (`truesize`).
fn memory_of(packet: &Packet) -> u64 {
    packet.header.payload() as u64 + 832 * packet.segments() as u64
}

/// Linux CAKE_QUEUES and CAKE_SET_WAYS.
const QUEUES: u32 = 1024;
const WAYS: u32 = 8;
/// An Ethernet frame: CAKE's MTU.
const FULL_FRAME: u32 = 1514;

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::Segment;

    const MS: u64 = 1_000_000;

    fn params() -> CakeParams {
        CakeParams {
            rtt: Span::from_ms(100),
            limit: None,
            bandwidth: None,
            overhead: None,
            mpu: 0,
            framing: LineCode::NoAtm,
            isolation: Isolation::TripleIsolate,
        }
    }

    fn cake(params: CakeParams, hosts: &[[u32; 2]]) -> Cake {
        let mut cake = Cake::new(params, Stream::new(1, "test"));
        cake.learn_hosts(&Rc::from(hosts));
        cake
    }

    fn packet(flow: u32) -> Packet {
        let seg = Segment { len: 1448, has_ts: true, ..Segment::default() };
        Packet { header: seg.into(), flow, conn: flow, bytes: 1514, forward: true, ..Packet::default() }
    }

    /// Packets of each flow among the next `n`, if all always have some.
    fn shares(cake: &mut Cake, flows: u32, n: usize) -> Vec<usize> {
        let mut sent = vec![0; flows as usize];
        for flow in 0..flows {
            for _ in 0..4 {
                cake.enqueue(Time(0), packet(flow), true);
            }
        }
        for _ in 0..n {
            let (taken, _) = cake.dequeue(Time(1)).expect("a packet");
            sent[taken.flow as usize] += 1;
            cake.enqueue(Time(1), packet(taken.flow), true);
        }
        sent
    }

    #[test]
    fn charges_are_those_of_tc() {
        let charge =
            |overhead, mpu, framing| CakeParams { overhead, mpu, framing, ..params() }.charge(&packet(0));
        assert_eq!(charge(None, 0, LineCode::NoAtm), 1514);
        assert_eq!(charge(Some(38), 84, LineCode::NoAtm), 1538, "ethernet");
        assert_eq!(charge(Some(48), 0, LineCode::Atm), 33 * 53, "conservative: 1548 bytes are 32.25 cells");
        assert_eq!(charge(Some(30), 0, LineCode::Ptm), 1530 + 24, "pppoe-ptm");
        let ack = Packet { header: Segment::default().into(), bytes: 54, ..packet(0) };
        assert_eq!(CakeParams { overhead: Some(38), mpu: 84, ..params() }.charge(&ack), 84);
        let two = Packet {
            more: 1,
            header: Segment { len: 2896, has_ts: true, ..Segment::default() }.into(),
            ..packet(0)
        };
        assert_eq!(CakeParams { overhead: Some(38), ..params() }.charge(&two), 2 * 1538);
    }

    #[test]
    fn memory_is_four_times_the_path_and_at_least_4_mib() {
        let memory = |mbit: u64| CakeParams { bandwidth: Some(Rate(mbit * 1_000_000)), ..params() }.memory();
        assert_eq!((memory(10), memory(1000)), (4 << 20, 50_000_000));
        assert_eq!(params().memory(), u32::MAX as u64);
    }

    #[test]
    fn the_shaper_spaces_packets_by_its_rate() {
        let mut shaped = cake(
            CakeParams { bandwidth: Some(Rate(12_112_000)), rtt: Span::from_secs(10), ..params() },
            &[[0, 1]],
        );
        for _ in 0..50 {
            shaped.enqueue(Time(5 * MS), packet(0), false);
        }
        let mut times = Vec::new();
        while let Some(at) = shaped.head_arrival() {
            times.push(at.0);
            assert!(shaped.dequeue(at).is_some());
        }
        assert_eq!(times, (0..50).map(|i| (5 + i) * MS).collect::<Vec<_>>(), "1 ms each, no burst");
        shaped.enqueue(Time(100 * MS), packet(0), false);
        assert_eq!(shaped.head_arrival(), Some(Time(100 * MS)), "idle time earns nothing");
    }

    /// Host 0 has three flows to three hosts, host 1 has one: half of the link each; by flows alone a quarter each.
    #[test]
    fn hosts_share_and_flows_share_within_them() {
        let hosts = [[0, 10], [0, 11], [0, 12], [1, 13]];
        let of = |isolation, hosts: &[[u32; 2]]| {
            let sent = shares(&mut cake(CakeParams { isolation, ..params() }, hosts), 4, 60_000);
            sent.iter().map(|&n| (n as f64 / 600.0).round() as u32).collect::<Vec<_>>()
        };
        for isolation in [Isolation::TripleIsolate, Isolation::DualSrchost] {
            let shares = of(isolation, &hosts);
            assert!(
                shares[3].abs_diff(50) <= 1 && shares[..3].iter().all(|&n| n.abs_diff(17) <= 1),
                "{shares:?}"
            );
        }
        for isolation in [Isolation::Flows, Isolation::DualDsthost] {
            assert!(of(isolation, &hosts).iter().all(|&n| n.abs_diff(25) <= 1));
        }
        let back: Vec<[u32; 2]> = hosts.iter().map(|&[a, b]| [b, a]).collect();
        assert_eq!(of(Isolation::TripleIsolate, &back)[3].abs_diff(50).min(2), 0);
    }

    #[test]
    fn the_longest_queue_pays_for_the_overflow() {
        let mut full = cake(CakeParams { limit: Some(10 * 2280), ..params() }, &[[0, 1], [0, 1]]);
        for _ in 0..10 {
            full.enqueue(Time(0), packet(0), true);
        }
        for _ in 0..3 {
            full.enqueue(Time(0), packet(1), true);
        }
        let dropped: Vec<_> =
            std::iter::from_fn(|| full.take_head_drop()).map(|(p, why)| (p.flow, why)).collect();
        assert_eq!(dropped, [(0, Refused::QueueFull); 3]);
        assert_eq!((full.len(), full.figures(Time(0)).2), (10, 3));
    }

    #[test]
    fn eight_flows_of_a_set_do_not_meet() {
        let mut queue = cake(params(), &[]);
        let mut of_set: Vec<u32> = Vec::new();
        for conn in 0.. {
            let at = queue.classify(&Packet { conn, ..packet(0) });
            if at / WAYS == 7 {
                of_set.push(conn);
            }
            if of_set.len() == 9 {
                break;
            }
        }
        let mut queue = cake(params(), &[]);
        let mut used: Vec<u32> = Vec::new();
        for &conn in &of_set {
            queue.enqueue(Time(0), Packet { conn, ..packet(0) }, true);
            used.push(queue.classify(&Packet { conn, ..packet(0) }));
        }
        let mut eight = used[..8].to_vec();
        eight.sort();
        assert_eq!(eight, (56..64).collect::<Vec<_>>());
        assert!(eight.contains(&used[8]), "the ninth shares");
    }

    #[test]
    fn a_flow_that_begins_goes_first_and_a_standing_queue_is_cut() {
        let mut queue = cake(params(), &[[0, 1], [0, 1]]);
        let mut drops = 0;
        for ms in 0..3000 {
            for _ in 0..2 {
                queue.enqueue(Time(ms * MS), packet(0), true);
            }
            queue.dequeue(Time(ms * MS));
            drops += std::iter::from_fn(|| queue.take_head_drop()).count();
        }
        assert!(drops > 100, "{drops}");
        queue.enqueue(Time(3000 * MS), packet(1), true);
        let next: Vec<u32> = (0..2).map(|_| queue.dequeue(Time(3000 * MS)).unwrap().0.flow).collect();
        assert!(next.contains(&1), "{next:?}");
    }
}
