//! A host's own device: a queueing discipline and the line behind it. TCP's packets wait here, and TCP is
//! notified when they no longer do (small queues).
//!
//! A packet of several segments waits whole and is cut up as it leaves, if the card cuts. It counts as gone when its
//! transmission starts, as behind Linux's HTB; behind a real card when it has ended, one packet later.

use std::collections::VecDeque;

use ackclock_core::schema::{Takes, COUNT};
use ackclock_core::{family, table, Flags, Header, Packet, Rate, Time};

use super::fq::{Fq, FqParams};
use crate::qdisc::Qdisc;
use crate::transmitter::Transmitter;

table! {
    /// Linux pfifo: first in, first out.
    /// When the queue is full it refuses packets. TCP reacts to a refusal as to a congestion mark.
    pub struct FifoParams "fifo" {
        /// Maximum number of packets. A packet of several segments counts once.
        limit: u32 = COUNT, 1000;
    }
}

family! {
    /// The queueing discipline of a host's own device.
    pub enum DisciplineConfig "disciplines" {
        Fifo(FifoParams),
        Fq(FqParams),
    }
}

impl DisciplineConfig {
    /// Values of a key that names a discipline.
    pub const TAKES: Takes = Takes::OneOf(DisciplineConfig::FAMILY);
    /// The discipline in the kernel's form.
    pub fn qdisc(&self) -> Qdisc {
        match self {
            DisciplineConfig::Fifo(params) => {
                Qdisc::new("pfifo").begins(&[params.limit]).says(&format!("limit {}", params.limit))
            }
            DisciplineConfig::Fq(params) => params.qdisc(),
        }
    }

    /// Linux `txqueuelen`.
    pub const USUAL: DisciplineConfig = DisciplineConfig::Fifo(FifoParams { limit: 1000 });
}

/// Device of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceConfig {
    /// Discipline of the packets that wait for the line.
    pub queue: DisciplineConfig,
    /// Rate of the line.
    pub rate: Rate,
    /// Packets of several segments leave as segments.
    pub cuts: bool,
}

/// Counters of a device.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceSums {
    /// Packets that left, segments apart where the card cuts.
    pub sent: u64,
    /// Packets that began to leave, whole.
    pub taken: u64,
    /// Packets it refused.
    pub refused: u64,
    /// Packets it marked.
    pub marked: u64,
    /// Maximum number of waiting packets.
    pub most: u32,
    /// Time that packets waited, all together, ns.
    pub waited: u128,
}

impl DeviceSums {
    /// Mean time that packets waited, s.
    pub fn mean_wait_s(&self) -> f64 {
        self.waited as f64 / 1e9 / self.taken as f64
    }
}

/// A packet that waits.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    pub packet: Packet,
    /// Earliest departure of the packet, if it has one.
    pub due: Option<Time>,
    /// Earliest time at which the discipline releases it.
    pub to_send: Time,
    since: Time,
    end: u64,
    smss: u32,
}

#[cfg(test)]
impl Queued {
    pub(crate) fn new(packet: Packet, due: Option<Time>) -> Queued {
        Queued { packet, due, to_send: Time::ZERO, since: Time::ZERO, end: 0, smss: 0 }
    }
}

/// A packet on the line.
#[derive(Clone)]
struct Sent {
    start: Time,
    over: Time,
    end: u64,
    packet: Packet,
}

/// A packet of an end no longer waits.
#[derive(Clone, Copy, Debug)]
pub struct Gone {
    /// Connection.
    pub conn: u32,
    /// Way.
    pub forward: bool,
    /// Payload, bytes.
    pub payload: u32,
}

#[derive(Clone)]
enum Discipline {
    Fifo(u32, VecDeque<Queued>),
    Fq(Box<Fq>),
}

/// A device at work.
#[derive(Clone)]
pub struct Device {
    discipline: Discipline,
    rate: Rate,
    transmitter: Transmitter,
    cuts: bool,
    busy_until: Time,
    line: VecDeque<Sent>,
    gone: VecDeque<Gone>,
    /// Time of its owner's next check.
    armed: Time,
    sums: DeviceSums,
}

impl Device {
    /// An idle device.
    pub fn new(config: &DeviceConfig) -> Device {
        Device {
            discipline: match config.queue.clone() {
                DisciplineConfig::Fifo(params) => Discipline::Fifo(params.limit, VecDeque::new()),
                DisciplineConfig::Fq(params) => Discipline::Fq(Box::new(Fq::new(params))),
            },
            rate: config.rate,
            transmitter: Transmitter::default(),
            cuts: config.cuts,
            busy_until: Time::ZERO,
            line: VecDeque::new(),
            gone: VecDeque::new(),
            armed: Time::NEVER,
            sums: DeviceSums::default(),
        }
    }

    /// Whether packets are paced here.
    pub fn paces(&self) -> bool {
        matches!(self.discipline, Discipline::Fq(_))
    }

    /// Whether a packet of this end, due at `due`, would be accepted.
    pub fn takes(&self, now: Time, end: u64, due: Time) -> bool {
        match &self.discipline {
            Discipline::Fifo(limit, waiting) => (waiting.len() as u32) < *limit,
            Discipline::Fq(fq) => fq.takes(now, end, due),
        }
    }

    /// An end hands down a packet in which full segments hold `smss` bytes, to leave at `due` at the
    /// earliest. False: it is refused.
    pub fn push(&mut self, now: Time, end: u64, packet: Packet, smss: u32, due: Option<Time>) -> bool {
        let queued = Queued { packet, due, to_send: now, since: now, end, smss };
        let taken = match &mut self.discipline {
            Discipline::Fifo(limit, waiting) if (waiting.len() as u32) < *limit => {
                waiting.push_back(queued);
                true
            }
            Discipline::Fifo(..) => false,
            Discipline::Fq(fq) => fq.enqueue(now, end, queued),
        };
        match taken {
            false => self.sums.refused += 1,
            true => self.serve(now),
        }
        self.sums.most = self.sums.most.max(self.waiting());
        taken
    }

    /// Note packets that were not even handed down, because the device would not take them.
    pub fn note_refused(&mut self, packets: u32) {
        self.sums.refused += packets as u64;
    }

    /// Time at which its owner has to check, if that is earlier than announced before.
    pub fn arm(&mut self, now: Time) -> Option<Time> {
        let next = match self.gone.is_empty() {
            false => now,
            true => self.next(),
        };
        let sooner = next < self.armed;
        if sooner {
            self.armed = next.max(now);
        }
        sooner.then_some(self.armed)
    }

    /// Serve the device at the time for which it was armed. False if that is not now.
    pub fn begin(&mut self, now: Time) -> bool {
        let called = self.armed == now;
        if called {
            self.armed = Time::NEVER;
            self.serve(now);
        }
        called
    }

    /// Return a packet whose transmission has ended at `now`: its start, and its owner.
    pub fn take_sent(&mut self, now: Time) -> Option<(Time, u64, Packet)> {
        let over = self.line.front().is_some_and(|sent| sent.over <= now);
        over.then(|| self.line.pop_front().map(|sent| (sent.start, sent.end, sent.packet)))?
    }

    /// Packets that no longer wait, each returned once.
    pub fn take_gone(&mut self) -> Option<Gone> {
        self.gone.pop_front()
    }

    /// Return the counters so far.
    pub fn sums(&self) -> DeviceSums {
        let marked = match &self.discipline {
            Discipline::Fifo(..) => 0,
            Discipline::Fq(fq) => fq.marked,
        };
        DeviceSums { marked, ..self.sums }
    }

    fn waiting(&self) -> u32 {
        match &self.discipline {
            Discipline::Fifo(_, waiting) => waiting.len() as u32,
            Discipline::Fq(fq) => fq.len(),
        }
    }

    /// The next start or end of a transmission.
    fn next(&self) -> Time {
        let start = match &self.discipline {
            _ if self.waiting() == 0 => Time::NEVER,
            Discipline::Fifo(..) => self.busy_until,
            Discipline::Fq(fq) => fq.ready().max(self.busy_until),
        };
        self.line.front().map_or(start, |sent| start.min(sent.over))
    }

    /// Start every transmission that may start.
    fn serve(&mut self, now: Time) {
        while self.busy_until <= now {
            let queued = match &mut self.discipline {
                Discipline::Fifo(_, waiting) => waiting.pop_front(),
                Discipline::Fq(fq) => fq.dequeue(now),
            };
            let Some(Queued { packet, since, end, smss, .. }) = queued else { return };
            self.sums.taken += 1;
            self.sums.waited += (now - since).0 as u128;
            let Packet { conn, forward, .. } = packet;
            self.gone.push_back(Gone { conn, forward, payload: packet.header.payload() });
            match (self.cuts, &packet.header) {
                (true, Header::Tcp(_)) if packet.more > 0 => {
                    segments(&packet, smss).for_each(|segment| self.transmit(now, end, segment));
                }
                _ => self.transmit(now, end, packet),
            }
        }
    }

    fn transmit(&mut self, now: Time, end: u64, packet: Packet) {
        let start = now.max(self.busy_until);
        self.busy_until = start + self.transmitter.time(&self.rate, packet.load());
        self.sums.sent += 1;
        self.line.push_back(Sent { start, over: self.busy_until, end, packet });
    }
}

/// The segments of a packet, as the card cuts it up: CWR stays with the first, FIN and PSH with the last (Linux
/// `tcp_gso_segment`; with accurate ECN, CWR is on all of them).
fn segments(packet: &Packet, smss: u32) -> impl Iterator<Item = Packet> {
    let packet = *packet;
    let Header::Tcp(whole) = packet.header else { unreachable!("invariant: asked of TCP only") };
    let n = packet.segments();
    let charged = packet.bytes - whole.len; // headers of all of them
    (0..n).map(move |i| {
        let mut seg = whole;
        seg.seq += (i * smss) as u64;
        seg.len = smss.min(whole.len.saturating_sub(i * smss));
        seg.seg_no += i;
        if i + 1 < n {
            seg.flags.0 &= !(Flags::FIN | Flags::PSH).0;
        }
        if i > 0 && !seg.flags.has(Flags::AE) {
            seg.flags.0 &= !Flags::CWR.0;
        }
        Packet { bytes: seg.len + charged / n, header: seg.into(), more: 0, ..packet }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::Segment;

    fn device(limit: u32, rate: Rate) -> Device {
        Device::new(&DeviceConfig { queue: DisciplineConfig::Fifo(FifoParams { limit }), rate, cuts: true })
    }

    fn packet(len: u32, more: u16) -> Packet {
        let flags = Flags::ACK | Flags::PSH | Flags::CWR;
        let header = Header::Tcp(Segment { seq: 1, len, flags, seg_no: 1, ..Segment::default() });
        Packet { bytes: header.charge(14, more), header, more, ..Packet::default() }
    }

    #[test]
    fn one_is_transmitted_and_as_many_as_the_limit_wait() {
        let mut d = device(2, Rate(8_000_000)); // 1 us a byte
        let taken: Vec<bool> = (0..4).map(|_| d.push(Time(0), 0, packet(946, 0), 946, None)).collect();
        assert_eq!(taken, [true, true, true, false]);
        assert!(
            d.take_gone().is_some() && d.take_gone().is_none(),
            "the one in transmission no longer waits"
        );
        assert_eq!(d.arm(Time(0)), Some(Time(1_000_000)));
        assert!(d.begin(Time(1_000_000)));
        assert_eq!(d.take_sent(Time(1_000_000)).map(|(start, ..)| start), Some(Time(0)));
        assert!(d.take_sent(Time(1_000_000)).is_none());
        assert!(d.take_gone().is_some());
        let sums = d.sums();
        assert_eq!((sums.sent, sums.refused, sums.most, sums.waited), (2, 1, 2, 1_000_000));
    }

    #[test]
    fn a_large_packet_waits_whole_and_leaves_in_segments() {
        let mut d = device(10, Rate(8_000_000));
        d.push(Time(0), 0, packet(2500, 2), 1000, None);
        let mut sent = Vec::new();
        while let Some(at) = d.arm(Time(0)) {
            d.begin(at);
            while let Some((start, _, packet)) = d.take_sent(at) {
                let Header::Tcp(seg) = packet.header else { panic!("TCP") };
                sent.push((start.0 / 1000, packet.bytes, seg.seq, seg.len, seg.seg_no, seg.flags));
            }
            d.gone.clear();
        }
        let ack = Flags::ACK;
        assert_eq!(
            sent,
            [
                (0, 1054, 1, 1000, 1, ack | Flags::CWR),
                (1054, 1054, 1001, 1000, 2, ack),
                (2108, 554, 2001, 500, 3, ack | Flags::PSH),
            ]
        );
    }

    #[test]
    fn without_a_rate_packets_leave_at_once() {
        let mut d = device(1, Rate::INFINITE);
        for _ in 0..3 {
            assert!(d.push(Time(5), 0, packet(1000, 0), 1000, None));
        }
        assert_eq!(d.arm(Time(5)), Some(Time(5)));
        assert!(d.begin(Time(5)));
        assert_eq!(std::iter::from_fn(|| d.take_sent(Time(5))).count(), 3);
    }
}
