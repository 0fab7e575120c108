//! The simulator's own links between the hosts of a relay. They reproduce a scenario's network bit for bit, random
//! streams included, so that only the TCP differs.
//!
//! The kernel runs ahead of the links. It records when hosts send, and is notified when packets arrive. The links process
//! sent packets in time order and late, but before the first delivery that depends on them is due. The lookahead is the
//! minimum delay of a packet's path (`least`): a sent packet may stay unprocessed for that long. Deliveries that no
//! other packet can still change are reported ahead of time ([`Relay::tell_ahead`]). Links read the timestamps of
//! packets and never the clock, so late processing does not change results.
//!
//! Length: a packet's way from its header through the links to its fate.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Result;
use std::os::fd::RawFd;

use ackclock_core::datagram::{Datagram, Opaque, UDP_IP_BYTES};
use ackclock_core::packet::{Ecn, Flags};
use ackclock_core::{Header as Content, Packet, Rate, Segment, Span, Stream, Time};
use ackclock_net::{LinkConfig, Refused, SoleLink};
use ackclock_sim::scenario::spec::WorkloadConfig;
use ackclock_sim::scenario::topology::Builder;
use ackclock_sim::world::gauges::Gauges;
use ackclock_sim::world::layout::Layout;

use crate::flows::{is_plain, Restart, Shared, SENDER_PORT};
use crate::job::Job;
use crate::network::Wiring;
use crate::packet::{self, Header, Udp};
use crate::sys::relay::{Device, Fate, Sent, Verdict};
use crate::wire;

/// A packet that a link dropped.
pub struct Dropped {
    pub t: u64,
    pub link: u32,
    pub packet: Packet,
    pub reason: Refused,
}

/// The links, the paths, and the device that holds the packets in flight.
pub struct Relay {
    device: Device,
    zero: u64,
    links: Vec<SoleLink>,
    /// Minimum delays of each link, ns: from the end of a transmission to the link's far end, and from there to the
    /// host.
    least: Vec<(u64, u64)>,
    ahead: bool,
    /// Whether packets may be offered to a link ahead of time: they come from a single other link, and the link does
    /// not read the clock.
    told_ahead: Vec<bool>,
    /// Names of the links, by number.
    pub names: Vec<String>,
    routes: Vec<[Vec<u32>; 2]>,
    plain: Vec<bool>,
    sent: Vec<Sent>,
    verdicts: Vec<Verdict>,
    /// Number of host pairs that belong to flows; hosts beyond them run the user's programs.
    pairs: usize,
    connections: BTreeMap<Key, Connection>,
    numbered: u32,
    /// Whether a loss model needs the ordinals of segments.
    counts: bool,
    seed: u64,
    framing: u32,
    /// Packets sent by hosts so far.
    pub entered: u64,
    /// Dropped packets, if the job records them.
    pub drops: Option<Vec<Dropped>>,
    /// Delays and drops of each flow, if the job records them.
    pub gauges: Option<Gauges>,
}

/// Flow and peer's port and, for a program's packets, the other port and the protocol.
type Key = (u32, u16, u16, u8);

/// A connection: from a SYN to the next SYN between the same ports.
#[derive(Default)]
struct Connection {
    number: u32,
    /// Segment counts, forward and backward.
    counts: [Count; 2],
    /// Latest ACK number and window scale of each end.
    offers: [Offer; 2],
}

/// ACK number of one end, unwrapped, and its window scale.
#[derive(Clone, Copy)]
struct Offer {
    ack: u64,
    scale: u8,
}

impl Default for Offer {
    fn default() -> Offer {
        Offer { ack: 1 << 32, scale: 0 }
    }
}

impl Offer {
    /// Read the ACK number and the window (bytes) from a packet's header.
    fn read(&mut self, header: &Header) -> (u64, u32) {
        if header.flags & Flags::ACK.0 != 0 {
            let distance = header.ack.wrapping_sub(self.ack as u32) as i32;
            self.ack = self.ack.saturating_add_signed(distance.into());
        }
        if header.syn {
            self.scale = header.scale.unwrap_or(0);
            return (self.ack, header.window.into()); // the window of a SYN is never scaled
        }
        (self.ack, u32::from(header.window) << self.scale)
    }
}

/// Data segments of one direction of a connection, in order of first transmission.
#[derive(Default)]
struct Count {
    next: u32,
    seen: BTreeMap<u32, (u32, u8)>,
}

impl Count {
    /// Count a segment that begins at `seq`.
    fn see(&mut self, seq: u32) -> (u32, u8) {
        let next = &mut self.next;
        let entry = self.seen.entry(seq).and_modify(|(_, sent)| *sent = sent.saturating_add(1));
        *entry.or_insert_with(|| {
            *next += 1;
            (*next, 0)
        })
    }
}

impl Relay {
    /// Build the scenario's network, with no packets in it. Without `ahead` every event is processed when it is due,
    /// which changes only the duration of a run.
    pub fn new(job: &Job, wiring: &mut Wiring, shared: &Shared, ahead: bool) -> Result<Relay> {
        let mut layout = Layout::default();
        let mut builder = Builder::new(&job.scenario.network);
        for flow in &shared.flows {
            let group = &job.scenario.flows[flow.group];
            match &group.workload {
                WorkloadConfig::Population(population) => {
                    population.client(flow.id, job.seed, &mut layout);
                }
                _ => builder.route(&mut layout, group.path.as_deref()),
            }
        }
        let pairs = job.live.iter().flat_map(|live| &live.pairs);
        pairs.for_each(|pair| builder.route(&mut layout, pair.path.as_deref()));
        let device = wiring.relay.take().expect("invariant: laid with the hosts");
        let alone: Vec<u64> =
            layout.links().map(|config| if ahead { least_delay(&config) } else { 0 }).collect();
        let way = |way: &[u32]| way.iter().map(|&link| alone[link as usize]).sum::<u64>();
        for group in 0..job.scenario.flows.len() {
            for side in 0..2 {
                let flows = shared.flows.iter().filter(|flow| flow.group == group);
                let least = flows.map(|flow| way(&layout.routes[flow.id as usize][side])).min();
                device.look_ahead(2 * group + side, least.unwrap_or(0))?;
            }
        }
        for (i, one) in layout.routes[shared.flows.len()..].iter().flatten().enumerate() {
            device.look_ahead(2 * job.scenario.flows.len() + i, way(one))?;
        }
        let mut links: Vec<_> = layout.links().map(|config| SoleLink::new(&config, job.seed)).collect();
        let mut alone = alone;
        lay_lines(job, shared, &device, &mut layout.routes, &mut links)?;
        alone.resize(links.len(), 0);
        let way = |way: &[u32]| way.iter().map(|&link| alone[link as usize]).sum::<u64>();
        let own = |(link, &least): (&SoleLink, &u64)| if link.passes_ahead() { least } else { 0 };
        let mut least: Vec<_> = links.iter().zip(&alone).map(|both| (own(both), u64::MAX)).collect();
        for route in layout.routes.iter().flatten() {
            for (i, &link) in route.iter().enumerate() {
                let rest = &mut least[link as usize].1;
                *rest = (*rest).min(way(&route[i + 1..]));
            }
        }
        let mut sources = vec![BTreeSet::new(); links.len()];
        for route in layout.routes.iter().flatten() {
            for (i, &link) in route.iter().enumerate() {
                sources[link as usize].insert(i.checked_sub(1).map(|before| route[before]));
            }
        }
        let one_link = |from: &BTreeSet<Option<u32>>| from.len() == 1 && !from.contains(&None);
        let told_ahead = links.iter().zip(&sources).map(|(link, from)| {
            link.takes_ahead() && one_link(from) && !job.scenario.record.drops // drops are recorded in order
        });
        let told_ahead = told_ahead.collect();
        let by_number = layout.kinds().any(|kind| kind.loss.looks_at_ordinals());
        Ok(Relay {
            device,
            zero: shared.zero,
            links,
            least,
            ahead,
            told_ahead,
            names: layout.links().map(|config| config.name).collect(),
            routes: layout.routes,
            plain: shared.flows.iter().map(|f| is_plain(&job.scenario.flows[f.group].workload)).collect(),
            sent: Vec::new(),
            verdicts: Vec::new(),
            pairs: job.scenario.flows.len(),
            connections: BTreeMap::new(),
            numbered: 0,
            counts: job.scenario.record.drops || by_number || job.scenario.record.measures(),
            seed: job.seed,
            framing: job.scenario.network.framing_bytes,
            entered: 0,
            drops: job.scenario.record.drops.then(Vec::new),
            gauges: None,
        })
    }

    /// Descriptor that is readable when there are new packets for the links to process.
    pub fn fd(&self) -> RawFd {
        self.device.fd()
    }

    /// Time by which [`Relay::advance`] must be called next for the links' own events, ns.
    pub fn next_event(&self) -> u64 {
        let due = self.links.iter().zip(&self.least).map(|(link, &(own, rest))| {
            let next = link.next_event();
            let departs = link.first().is_none_or(|(t, _)| t != next);
            next.0.saturating_add(if departs { own.saturating_add(rest) } else { rest })
        });
        let held = self.sent.first().map(|sent| sent.t - self.zero);
        due.chain(held).min().unwrap_or(u64::MAX)
    }

    /// Take all packets sent by hosts, and the restarts of loss processes. Counters are read at the instant
    /// `reading`; packets sent in response to a delivery at that instant wait for the next call.
    pub fn collect(&mut self, shared: &Shared, reading: u64) -> Result<()> {
        let mut sent = std::mem::take(&mut self.sent);
        let held = sent.len();
        while self.device.take(&mut sent)? {}
        let answers = |sent: &Sent| sent.after > 0 && sent.t == self.zero + reading;
        let mut later: Vec<Sent> = sent[held..].iter().copied().filter(answers).collect();
        let mut at = 0;
        sent.retain(|sent| {
            at += 1;
            at <= held || !answers(sent)
        });
        // within one nanosecond, packets sent by timers come first, in host order, then responses in the order of the
        // deliveries
        sent.sort_by_key(|sent| (sent.t, sent.after, if sent.after > 0 { 0 } else { sent.host }));
        let mut restarts = shared.take_restarts().into_iter().peekable();
        for sent in &sent {
            let now = sent.t.saturating_sub(self.zero);
            while let Some(restart) = restarts.next_if(|restart| restart.t <= now) {
                self.restart_losses(restart);
            }
            self.advance_before(now + u64::from(sent.after));
            self.enter(now, sent);
        }
        restarts.for_each(|restart| self.restart_losses(restart));
        self.advance_before(shared.now());
        sent.clear();
        sent.append(&mut later);
        self.sent = sent;
        Ok(())
    }

    /// Process every event up to `now` in time order, and report the results to the device.
    pub fn advance(&mut self, now: u64) -> Result<()> {
        self.advance_before(now + 1);
        self.tell()
    }

    /// Report the deliveries up to `until` that can no longer change.
    pub fn tell_ahead(&mut self, until: u64) -> Result<()> {
        let mut moved = self.ahead;
        while std::mem::take(&mut moved) {
            for link in 0..self.links.len() {
                while let Some((t, packet)) = self.links[link].first() {
                    let next = self.after(link as u32, packet);
                    if t.0 > until || next.is_some_and(|next| !self.told_ahead[next as usize]) {
                        break;
                    }
                    let packet = self.links[link].pop();
                    match next {
                        Some(next) => self.offer(t, next, packet),
                        None => self.deliver(t, link as u32, &packet),
                    }
                    moved = true;
                }
            }
        }
        self.tell()
    }

    /// Next link on a packet's path; `None` after the last one.
    fn after(&self, link: u32, packet: &Packet) -> Option<u32> {
        let way = &self.routes[packet.flow as usize][usize::from(!packet.forward)];
        let at = way.iter().position(|&l| l == link).expect("invariant: it came this way");
        way.get(at + 1).copied()
    }

    fn tell(&mut self) -> Result<()> {
        self.device.put(&self.verdicts)?;
        self.verdicts.clear();
        Ok(())
    }

    /// Process every event before `limit` in time order.
    fn advance_before(&mut self, limit: u64) {
        loop {
            let Some((t, link)) = self.links.iter().zip(0..).map(|(l, i)| (l.next_event(), i)).min() else {
                return;
            };
            if t.0 >= limit || t == Time::NEVER {
                return;
            }
            let packet = self.links[link].poll(t);
            self.head_drops(t, link as u32);
            if let Some(packet) = packet {
                match self.after(link as u32, &packet) {
                    Some(next) => self.offer(t, next, packet),
                    None => self.deliver(t, link as u32, &packet),
                }
            }
        }
    }

    /// A link: its queue and its counters.
    pub fn link(&mut self, link: usize) -> &mut SoleLink {
        &mut self.links[link]
    }

    fn restart_losses(&mut self, restart: Restart) {
        self.advance_before(restart.t);
        let seed = Stream::new(self.seed, &format!("fetch.{}", restart.idx)).next_u64();
        for way in &self.routes[restart.flow as usize] {
            for &link in way {
                self.links[link as usize].restart_loss(seed);
            }
        }
    }

    fn enter(&mut self, now: u64, sent: &Sent) {
        let forward = sent.host.is_multiple_of(2);
        self.entered += 1;
        let Some((flow, conn, content, ecn)) = self.read(forward, sent) else {
            self.decide(0, sent.packet, 0, Fate::Lost);
            return;
        };
        let more = sent.segments.saturating_sub(1);
        let bytes = match more {
            0 => sent.len + self.framing,
            more => content.charge(self.framing, more),
        };
        let packet = Packet { header: content, flow, conn, bytes, forward, ecn, more };
        if let Some(gauges) = self.gauges_of(flow) {
            gauges.depart(Time(now), &packet);
        }
        self.offer(Time(now), self.routes[flow as usize][usize::from(!forward)][0], packet);
    }

    /// Delay gauges, if delays are recorded and the flow is not a program's.
    fn gauges_of(&mut self, flow: u32) -> Option<&mut Gauges> {
        self.gauges.as_mut().filter(|_| (flow as usize) < self.plain.len())
    }

    /// Flow, connection number, and the packet fields read by links.
    fn read(&mut self, forward: bool, sent: &Sent) -> Option<(u32, u32, Content, Ecn)> {
        let flows = self.plain.len();
        if let Some(pair) = usize::from(sent.host / 2).checked_sub(self.pairs) {
            return Some(self.read_unknown((flows + pair) as u32, forward, sent));
        }
        let ends = |source: u16, target: u16| {
            let (ours, peer) = if forward { (source, target) } else { (target, source) };
            let flow = ours.checked_sub(SENDER_PORT).filter(|flow| (*flow as usize) < flows)?;
            Some((flow as u32, peer))
        };
        // The packet's name in the kernel goes into a field that links do not read: a datagram's time, or a segment's
        // sequence number.
        if let Some(udp) = Udp::parse(sent.head()) {
            let (flow, peer) = ends(udp.source, udp.target)?;
            let len = sent.len as usize - UDP_IP_BYTES as usize;
            let mut datagram = wire::decode(udp.payload, len, self.plain[flow as usize])?;
            match &mut datagram {
                Datagram::Data(data) => data.sent = Time(sent.packet),
                Datagram::Report(report) => report.held = Span(sent.packet),
                Datagram::Opaque(_) => return None, // decode() returns no opaque packet
            }
            let conn = self.connection((flow, peer, 0, 0), false).number;
            return Some((flow, conn, Content::Datagram(datagram), udp.ecn));
        }
        let header = Header::parse(sent.head())?;
        let (flow, peer) = ends(header.source, header.target)?;
        let (conn, segment) = self.segment((flow, peer, 0, 0), forward, &header, sent);
        Some((flow, conn, segment, header.ecn))
    }

    /// Read a program's packet: TCP headers are parsed, any other content is opaque.
    fn read_unknown(&mut self, flow: u32, forward: bool, sent: &Sent) -> (u32, u32, Content, Ecn) {
        let seen = packet::Ends::of(sent.head());
        let (ours, peer) = if forward { (seen.source, seen.target) } else { (seen.target, seen.source) };
        let key = (flow, peer, ours, seen.protocol);
        let v6 = packet::ip_version(sent.head()) == 6;
        // Differs: the device can set CE only in IPv4 headers, so links treat IPv6 packets as not ECN-capable, and drop instead of marking.
        let ecn = if v6 { Ecn::NotEct } else { seen.ecn };
        if let Some(header) = Header::parse(sent.head()).filter(|_| seen.whole) {
            let (conn, segment) = self.segment(key, forward, &header, sent);
            return (flow, conn, segment, ecn);
        }
        let conn = self.connection(key, false).number;
        let header = if v6 { packet::V6 as u32 } else { 20 };
        let header = header + if seen.protocol == libc::IPPROTO_UDP as u8 { 8 } else { 0 };
        let opaque = Opaque {
            number: sent.packet,
            len: sent.len.saturating_sub(header),
            ecn,
            header: header as u8,
            ..Opaque::default()
        };
        (flow, conn, Content::Datagram(Datagram::Opaque(opaque)), ecn)
    }

    /// Connection number, and the segment as seen by links.
    fn segment(&mut self, key: Key, forward: bool, header: &Header, sent: &Sent) -> (u32, Content) {
        let (conn, seg_no, rexmit) = self.count(key, forward, header, sent);
        let (ack, wnd) = self.connection(key, false).offers[usize::from(!forward)].read(header);
        let seg = Segment { seq: sent.packet, ack, wnd, seg_no, rexmit, ..header.segment() };
        (conn, seg.into())
    }

    /// Connection between these ends; with `opens` a new one replaces it.
    fn connection(&mut self, key: Key, opens: bool) -> &mut Connection {
        let connection = self.connections.entry(key).or_default();
        if opens || connection.number == 0 {
            self.numbered += 1;
            *connection = Connection { number: self.numbered, ..Connection::default() };
        }
        connection
    }

    /// Connection number, segment ordinal, and transmission count of a data segment, counted as in the simulator: those
    /// of its first segment, if there are several.
    fn count(&mut self, key: Key, forward: bool, header: &Header, sent: &Sent) -> (u32, u32, u8) {
        let counts = self.counts;
        let opens = header.syn && header.flags & Flags::ACK.0 == 0;
        let connection = self.connection(key, opens);
        let number = connection.number;
        if header.len == 0 || !counts {
            return (number, 0, 0);
        }
        let count = &mut connection.counts[usize::from(!forward)];
        let (seg_no, rexmit) = count.see(header.seq);
        for more in 1..sent.segments {
            count.see(header.seq.wrapping_add(u32::from(more) * u32::from(sent.segment)));
        }
        if count.seen.len() > REMEMBERED {
            // The older half is removed by ordinal, because sequence numbers wrap.
            let least = count.next - REMEMBERED as u32 / 2;
            count.seen.retain(|_, (number, _)| *number > least);
        }
        (number, seg_no, rexmit)
    }

    fn offer(&mut self, t: Time, link: u32, packet: Packet) {
        if let Some((refused, reason)) = self.links[link as usize].refuse(t, packet) {
            self.drop(t, link, refused, reason);
        }
        self.head_drops(t, link);
    }

    fn head_drops(&mut self, t: Time, link: u32) {
        while let Some((packet, reason)) = self.links[link as usize].take_head_drops() {
            self.drop(t, link, packet, reason);
        }
    }

    fn drop(&mut self, t: Time, link: u32, packet: Packet, reason: Refused) {
        self.decide(0, name(&packet), 0, Fate::Lost);
        if let Some(gauges) = self.gauges_of(packet.flow) {
            gauges.lose(t, &packet);
        }
        if let Some(drops) = &mut self.drops {
            drops.push(Dropped { t: t.0, link, packet, reason });
        }
    }

    fn deliver(&mut self, t: Time, link: u32, packet: &Packet) {
        if let Some(gauges) = self.gauges_of(packet.flow) {
            gauges.arrive(t, packet);
        }
        let fate = if packet.ecn == Ecn::Ce { Fate::Marked } else { Fate::Delivered };
        self.decide(self.zero + t.0, name(packet), link, fate);
    }

    fn decide(&mut self, t: u64, packet: u64, order: u32, what: Fate) {
        self.verdicts.push(Verdict { t, packet, order, what });
    }
}

/// Put the line of each host's own device in front of its flows' links, behind all links in number. A device transmits
/// one packet at a time, and a packet is noticed when its transmission starts.
fn lay_lines(
    job: &Job,
    shared: &Shared,
    device: &Device,
    routes: &mut [[Vec<u32>; 2]],
    links: &mut Vec<SoleLink>,
) -> Result<()> {
    let framing = job.scenario.network.framing_bytes;
    for (group, host) in job.hosts.iter().enumerate() {
        for (side, card) in host.cards.iter().enumerate().filter(|(_, card)| card.line > 0) {
            device.set_line(2 * group + side, card.line, framing)?;
            let line = links.len() as u32;
            links.push(SoleLink::new(&LinkConfig::new("line", Rate(card.line), Span::ZERO), job.seed));
            let own = shared.flows.iter().filter(|flow| flow.group == group);
            own.for_each(|flow| routes[flow.id as usize][side].insert(0, line));
        }
    }
    Ok(())
}

/// Minimum delay of a link after the end of a transmission, ns. netem's jitter also shortens a delay.
fn least_delay(link: &LinkConfig) -> u64 {
    let varies = link.capacity.is_some() || link.reorder.is_some() || link.netem_jitter.is_some();
    if varies {
        0
    } else {
        link.delay.0
    }
}

/// Name of a packet in the kernel.
fn name(packet: &Packet) -> u64 {
    match packet.header {
        Content::Tcp(segment) => segment.seq,
        Content::Datagram(Datagram::Data(data)) => data.sent.0,
        Content::Datagram(Datagram::Report(report)) => report.held.0,
        Content::Datagram(Datagram::Opaque(opaque)) => opaque.number,
    }
}

/// Maximum number of segments remembered per direction: more than any window.
const REMEMBERED: usize = 1 << 17;
