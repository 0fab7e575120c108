//! The simulator's own links between the hosts' TUN devices: a scenario's network bit for bit, with its random streams, so
//! that only the TCP differs. An event takes place at its due time; only packets that come from a host are timed by
//! the clock.

use std::collections::BTreeMap;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, RawFd};

use ackclock_core::datagram::Datagram;
use ackclock_core::packet::{Ecn, Flags};
use ackclock_core::{Header as Content, Packet, Segment, Span, Stream, Time};
use ackclock_net::{LossConfig, Refused, SoleLink};
use ackclock_sim::performance::Gauges;
use ackclock_sim::spec::WorkloadConfig;
use ackclock_sim::topology::{Builder, Layout};

use crate::flows::{is_plain, Shared, SENDER_PORT};
use crate::job::Job;
use crate::network::Wiring;
use crate::packet::{Header, Udp};
use crate::{sys, wire};

/// A packet that a link refused.
pub struct Dropped {
    pub t: u64,
    pub link: u32,
    pub packet: Packet,
    pub reason: Refused,
}

/// Links, ways, and the bytes of the packets under way.
pub struct Relay {
    links: Vec<SoleLink>,
    /// Names of the links, by number.
    pub names: Vec<String>,
    routes: Vec<[Vec<u32>; 2]>,
    tuns: Vec<[RawFd; 2]>,
    groups: Vec<usize>,
    plain: Vec<bool>,
    buffer: Vec<u8>,
    payloads: Vec<Vec<u8>>,
    free: Vec<u32>,
    /// By flow and peer's port.
    connections: BTreeMap<(u32, u16), Connection>,
    numbered: u32,
    /// Somebody asks for the ordinals of segments.
    counts: bool,
    seed: u64,
    framing: u32,
    /// Packets dropped, if they were asked for.
    pub drops: Option<Vec<Dropped>>,
    /// What each flow got, if that was asked for.
    pub gauges: Option<Gauges>,
}

/// A connection, from its SYN to the next one between these ports.
#[derive(Default)]
struct Connection {
    number: u32,
    /// Forward and back.
    counts: [Count; 2],
}

/// Segments of one direction of a connection, in order of first transmission.
#[derive(Default)]
struct Count {
    next: u32,
    seen: BTreeMap<u32, (u32, u8)>,
}

impl Relay {
    /// The scenario's network, empty.
    pub fn new(job: &Job, wiring: &Wiring, shared: &Shared) -> Result<Relay> {
        let refused = |e: ackclock_sim::Error| Error::other(e.to_string());
        let mut layout = Layout::default();
        let mut builder = Builder::new(&job.scenario.network);
        for flow in &shared.flows {
            let group = &job.scenario.flows[flow.group];
            match &group.workload {
                WorkloadConfig::Population(population) => {
                    population.client(flow.id, job.seed, &mut layout);
                }
                _ => builder.route(&mut layout, group.path.as_deref()).map_err(refused)?,
            }
        }
        let scripted = layout.links.iter().any(|link| matches!(link.loss, LossConfig::Scripted(_)));
        Ok(Relay {
            links: layout.links.iter().map(|config| SoleLink::new(config, job.seed)).collect(),
            names: layout.links.iter().map(|config| config.name.clone()).collect(),
            routes: layout.routes,
            tuns: wiring.tuns.iter().map(|[a, b]| [a.as_raw_fd(), b.as_raw_fd()]).collect(),
            groups: shared.flows.iter().map(|f| f.group).collect(),
            plain: shared.flows.iter().map(|f| is_plain(&job.scenario.flows[f.group].workload)).collect(),
            buffer: vec![0; 65536],
            payloads: Vec::new(),
            free: Vec::new(),
            connections: BTreeMap::new(),
            numbered: 0,
            counts: job.scenario.record.drops || scripted || job.scenario.record.performance,
            seed: job.seed,
            framing: job.scenario.network.framing_bytes,
            drops: job.scenario.record.drops.then(Vec::new),
            gauges: None,
        })
    }

    /// The earliest instant at which a link has something to do.
    pub fn next_event(&self) -> u64 {
        self.links.iter().map(|l| l.next_event().0).min().unwrap_or(u64::MAX)
    }

    /// Everything that these hosts have sent, each named by twice its group plus its side.
    pub fn collect(&mut self, hosts: impl Iterator<Item = usize>, shared: &Shared) -> Result<()> {
        for (flow, k) in shared.take_restarts() {
            self.restart_losses(flow, k);
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut now = None;
        for host in hosts {
            let (group, side) = (host / 2, host % 2);
            while let Some(n) = sys::read(self.tuns[group][side], &mut buffer)? {
                let now = *now.get_or_insert_with(|| sys::monotonic() - shared.zero);
                self.enter(now, side == 0, &buffer[..n])?;
            }
        }
        self.buffer = buffer;
        Ok(())
    }

    /// Every event up to `now`, in order of time.
    pub fn advance(&mut self, now: u64) -> Result<()> {
        loop {
            let Some((t, link)) = self.links.iter().zip(0..).map(|(l, i)| (l.next_event(), i)).min() else {
                return Ok(());
            };
            if t.0 > now || t == Time::NEVER {
                return Ok(());
            }
            let packet = self.links[link].poll(t);
            self.head_drops(t, link as u32);
            if let Some(packet) = packet {
                let way = &self.routes[packet.flow as usize][usize::from(!packet.forward)];
                let at = way.iter().position(|&l| l == link as u32).expect("invariant: it came this way");
                match way.get(at + 1) {
                    Some(&next) => self.offer(t, next, packet),
                    None => self.deliver(t, &packet)?,
                }
            }
        }
    }

    /// Packets that wait at a link, and its counters.
    pub fn link(&mut self, link: usize) -> &mut SoleLink {
        &mut self.links[link]
    }

    fn restart_losses(&mut self, flow: u32, k: u32) {
        let seed = Stream::new(self.seed, &format!("fetch.{k}")).next_u64();
        for way in &self.routes[flow as usize] {
            for &link in way {
                self.links[link as usize].restart_loss(seed);
            }
        }
    }

    fn enter(&mut self, now: u64, forward: bool, bytes: &[u8]) -> Result<()> {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.payloads.push(Vec::new());
            self.payloads.len() as u32 - 1
        });
        let Some((flow, conn, content, ecn)) = self.read(forward, bytes, slot) else {
            self.free.push(slot);
            return Ok(());
        };
        self.payloads[slot as usize].clear();
        self.payloads[slot as usize].extend_from_slice(bytes);
        let packet = Packet {
            header: content,
            flow,
            conn,
            bytes: bytes.len() as u32 + self.framing,
            forward,
            ecn,
            more: 0,
        };
        if let Some(gauges) = &mut self.gauges {
            gauges.depart(Time(now), &packet);
        }
        let first = self.routes[flow as usize][usize::from(!forward)][0];
        self.offer(Time(now), first, packet);
        Ok(())
    }

    /// Flow, number of the connection, and what the links look at, of a packet of a flow.
    fn read(&mut self, forward: bool, bytes: &[u8], slot: u32) -> Option<(u32, u32, Content, Ecn)> {
        let flows = self.groups.len();
        let ends = |source: u16, target: u16| {
            let (ours, peer) = if forward { (source, target) } else { (target, source) };
            let flow = ours.checked_sub(SENDER_PORT).filter(|flow| (*flow as usize) < flows)?;
            Some((flow as u32, peer))
        };
        // Links do not look at offsets and times: they tell where the bytes are.
        if let Some(udp) = Udp::parse(bytes) {
            let (flow, peer) = ends(udp.source, udp.target)?;
            let mut datagram = wire::decode(udp.payload, udp.payload.len(), self.plain[flow as usize])?;
            match &mut datagram {
                Datagram::Data(data) => data.sent = Time(slot as u64),
                Datagram::Report(report) => report.held = Span(slot as u64),
            }
            let conn = self.connection(flow, peer, false).number;
            return Some((flow, conn, Content::Datagram(datagram), udp.ecn));
        }
        let header = Header::parse(bytes)?;
        let (flow, peer) = ends(header.source, header.target)?;
        let (conn, seg_no, rexmit) = self.count(flow, forward, peer, &header);
        let seg = Segment {
            seq: slot as u64,
            len: header.len,
            seg_no,
            rexmit,
            flags: Flags(header.flags.into()),
            ..Segment::default()
        };
        Some((flow, conn, seg.into(), header.ecn))
    }

    /// The connection between a flow and a port; with `opens` a new one.
    fn connection(&mut self, flow: u32, peer: u16, opens: bool) -> &mut Connection {
        let connection = self.connections.entry((flow, peer)).or_default();
        if opens || connection.number == 0 {
            self.numbered += 1;
            *connection = Connection { number: self.numbered, ..Connection::default() };
        }
        connection
    }

    /// Number of the connection; ordinal of a data segment and its transmission, as the simulator counts them.
    fn count(&mut self, flow: u32, forward: bool, peer: u16, header: &Header) -> (u32, u32, u8) {
        let counts = self.counts;
        let opens = header.syn && header.flags & Flags::ACK.0 as u8 == 0;
        let connection = self.connection(flow, peer, opens);
        let number = connection.number;
        if header.len == 0 || !counts {
            return (number, 0, 0);
        }
        let count = &mut connection.counts[usize::from(!forward)];
        let next = &mut count.next;
        let entry = count.seen.entry(header.seq).and_modify(|(_, sent)| *sent = sent.saturating_add(1));
        let (seg_no, rexmit) = *entry.or_insert_with(|| {
            *next += 1;
            (*next, 0)
        });
        if count.seen.len() > REMEMBERED {
            // By number, not by time, for sequence numbers wrap: the older half goes.
            let least = *next - REMEMBERED as u32 / 2;
            count.seen.retain(|_, (number, _)| *number > least);
        }
        (number, seg_no, rexmit)
    }

    fn offer(&mut self, t: Time, link: u32, packet: Packet) {
        if let Err(reason) = self.links[link as usize].offer(t, packet) {
            self.drop(t, link, packet, reason);
        }
        self.head_drops(t, link);
    }

    fn head_drops(&mut self, t: Time, link: u32) {
        while let Some((packet, reason)) = self.links[link as usize].take_head_drops() {
            self.drop(t, link, packet, reason);
        }
    }

    fn drop(&mut self, t: Time, link: u32, packet: Packet, reason: Refused) {
        self.free.push(slot(&packet));
        if let Some(gauges) = &mut self.gauges {
            gauges.lose(t, &packet);
        }
        if let Some(drops) = &mut self.drops {
            drops.push(Dropped { t: t.0, link, packet, reason });
        }
    }

    fn deliver(&mut self, t: Time, packet: &Packet) -> Result<()> {
        if let Some(gauges) = &mut self.gauges {
            gauges.arrive(t, packet);
        }
        let slot = slot(packet);
        let bytes = &mut self.payloads[slot as usize];
        if packet.ecn == Ecn::Ce {
            Header::mark(bytes);
        }
        self.free.push(slot);
        let tun = self.tuns[self.groups[packet.flow as usize]][usize::from(packet.forward)];
        sys::write(tun, bytes)
    }
}

/// Where the bytes of a packet are.
fn slot(packet: &Packet) -> u32 {
    match packet.header {
        Content::Tcp(segment) => segment.seq as u32,
        Content::Datagram(Datagram::Data(data)) => data.sent.0 as u32,
        Content::Datagram(Datagram::Report(report)) => report.held.0 as u32,
    }
}

/// Segments of a direction that are remembered: more than any window.
const REMEMBERED: usize = 1 << 17;
