//! A host's own device: a queueing discipline and the line behind it. TCP's packets wait here, and TCP is notified
//! when they stop waiting (small queues).
//!
//! A multi-segment packet is queued whole and split at its transmission, if the NIC splits packets. It stops waiting
//! when its transmission starts, as below Linux's HTB. With a real NIC it stops waiting when the transmission ends,
//! one packet later.

use std::collections::VecDeque;

use ackclock_core::schema::{Takes, COUNT};
use ackclock_core::{family, table, Flags, Header, Packet, Rate, Time};

use super::fq::{Fq, FqParams};
use crate::qdisc::Qdisc;
use crate::transmitter::Transmitter;

table! {
    /// Linux pfifo: first in, first out.
    /// A full queue refuses packets. TCP reacts to a refusal as to a congestion mark.
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
    /// Values of a key that selects a discipline.
    pub const TAKES: Takes = Takes::OneOf(DisciplineConfig::FAMILY);
    /// Return the kernel's matching queueing discipline.
    pub fn qdisc(&self) -> Qdisc {
        match self {
            DisciplineConfig::Fifo(params) => {
                Qdisc::new("pfifo").begins(&[params.limit]).says(&format!("limit {}", params.limit))
            }
            DisciplineConfig::Fq(params) => params.qdisc(),
        }
    }

    /// Default discipline: a FIFO with Linux's `txqueuelen`.
    pub const USUAL: DisciplineConfig = DisciplineConfig::Fifo(FifoParams { limit: 1000 });
}

/// Device configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceConfig {
    /// Queueing discipline for packets waiting for the line.
    pub queue: DisciplineConfig,
    /// Line rate.
    pub rate: Rate,
    /// Whether multi-segment packets are split into segments.
    pub cuts: bool,
}

/// Device counters.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceSums {
    /// Packets sent; a packet that the NIC splits counts once per segment.
    pub sent: u64,
    /// Packets whose transmission has started, each counted once.
    pub taken: u64,
    /// Packets refused by the device.
    pub refused: u64,
    /// Packets marked by the device.
    pub marked: u64,
    /// Maximum number of waiting packets.
    pub most: u32,
    /// Total waiting time over all packets, ns.
    pub waited: u128,
}

impl DeviceSums {
    /// Mean waiting time of packets, s.
    pub fn mean_wait_s(&self) -> f64 {
        self.waited as f64 / 1e9 / self.taken as f64
    }
}

/// A waiting packet.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    pub packet: Packet,
    /// Earliest departure time of the packet; `None` if it has none.
    pub due: Option<Time>,
    /// Earliest time at which the discipline releases the packet.
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

/// A packet in transmission.
#[derive(Clone)]
struct Sent {
    start: Time,
    over: Time,
    end: u64,
    packet: Packet,
}

/// Notice that one of an end's packets has stopped waiting.
#[derive(Clone, Copy, Debug)]
pub struct Gone {
    /// Connection to which the packet belongs.
    pub conn: u32,
    /// Whether the packet travels in the direction of the data.
    pub forward: bool,
    /// Offset of its first byte; 0 for a datagram.
    pub start: u64,
    /// Payload, bytes.
    pub payload: u32,
}

#[derive(Clone)]
enum Discipline {
    Fifo(u32, VecDeque<Queued>),
    Fq(Box<Fq>),
}

/// Device state.
#[derive(Clone)]
pub struct Device {
    discipline: Discipline,
    rate: Rate,
    transmitter: Transmitter,
    cuts: bool,
    busy_until: Time,
    line: VecDeque<Sent>,
    gone: VecDeque<Gone>,
    /// Time of the owner's next call; NEVER if none is scheduled.
    armed: Time,
    sums: DeviceSums,
}

impl Device {
    /// Return an idle device.
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

    /// Whether the device paces packets.
    pub fn paces(&self) -> bool {
        matches!(self.discipline, Discipline::Fq(_))
    }

    /// Whether the device would accept a packet from this end that is due at `due`.
    pub fn takes(&self, now: Time, end: u64, due: Time) -> bool {
        match &self.discipline {
            Discipline::Fifo(limit, waiting) => (waiting.len() as u32) < *limit,
            Discipline::Fq(fq) => fq.takes(now, end, due),
        }
    }

    /// Queue a packet from an end, to be sent no earlier than `due`. `smss` is the payload of a full segment. Returns
    /// false if the packet is refused.
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

    /// Count packets that were not handed down because the device would have refused them.
    pub fn note_refused(&mut self, packets: u32) {
        self.sums.refused += packets as u64;
    }

    /// Time of the owner's next call, if it is earlier than the last one returned.
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

    /// Serve the device at the time it was armed for. Returns false if that time is not `now`.
    pub fn begin(&mut self, now: Time) -> bool {
        let called = self.armed == now;
        if called {
            self.armed = Time::NEVER;
            self.serve(now);
        }
        called
    }

    /// Return a packet whose transmission has ended by `now`: transmission start, sending end, and packet.
    pub fn take_sent(&mut self, now: Time) -> Option<(Time, u64, Packet)> {
        let over = self.line.front().is_some_and(|sent| sent.over <= now);
        over.then(|| self.line.pop_front().map(|sent| (sent.start, sent.end, sent.packet)))?
    }

    /// Return the next packet that has stopped waiting. Each is returned once.
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

    /// Time of the next start or end of a transmission.
    fn next(&self) -> Time {
        let start = match &self.discipline {
            _ if self.waiting() == 0 => Time::NEVER,
            Discipline::Fifo(..) => self.busy_until,
            Discipline::Fq(fq) => fq.ready().max(self.busy_until),
        };
        self.line.front().map_or(start, |sent| start.min(sent.over))
    }

    /// Start every transmission that can start by `now`.
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
            let (start, payload) = (packet.header.start(), packet.header.payload());
            self.gone.push_back(Gone { conn, forward, start, payload });
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

/// Return the segments into which the NIC splits a packet. CWR stays on the first, FIN and PSH on the last (Linux
/// `tcp_gso_segment`; with accurate ECN, CWR is on all of them).
fn segments(packet: &Packet, smss: u32) -> impl Iterator<Item = Packet> {
    let packet = *packet;
    let Header::Tcp(whole) = packet.header else { unreachable!("invariant: asked of TCP only") };
    let n = packet.segments();
    let charged = packet.bytes - whole.len; // headers of every segment
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
        let mut d = device(2, Rate(8_000_000)); // 1 us per byte
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
