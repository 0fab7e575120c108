//! The world: links, endpoints, the clock, and the only event loop.
//!
//! The event queue holds one entry per busy link and at most two per endpoint (its timer, re-armed lazily), never
//! packets: those lie in the links' rings. An event takes the top entry's place; whatever it schedules first is
//! written over that entry, so that a link passing a packet on costs one sift instead of a pop and a push.

mod hosted;

use ackclock_core::datagram::DatagramEndpoint;
use ackclock_core::event::MAX_EVENT_ID;
use ackclock_core::packet::Ecn;
use ackclock_core::{Digest, EventQueue, FlowId, Header, Packet, Stream, Time};
use ackclock_net::host::Departures;
use ackclock_net::{Link, LinkConfig, Refused};
use ackclock_tcp::Connection;

use crate::capture::Captured;
use crate::transport::{Transport, TransportConfig};
use hosted::{Hosts, Process};

pub use hosted::{HOST_TICKS, MAX_HOSTS};

/// The host that sends the data: packets on their way forward leave here.
pub const SENDER: usize = 0;
/// The host that receives the data.
pub const RECEIVER: usize = 1;

/// A connection of the run: its slot, and above it a generation that tells it from earlier holders of the slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnId(u32);

impl ConnId {
    /// Tells it from all that are open.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// What runs on the hosts. The world calls it after the protocol has answered.
pub trait Application {
    /// Something arrived or expired at a watched end of `conn`.
    fn progress(&mut self, world: &mut World, conn: ConnId, flow: FlowId, host: usize);
    /// A wake-up of `flow` is due; superseded ones come, too.
    fn wake(&mut self, world: &mut World, flow: FlowId);
    /// A recurring event is due.
    fn tick(&mut self, world: &mut World, what: u32);
}

/// A packet that a link refused.
#[derive(Clone, Copy, Debug)]
pub struct Dropped {
    /// When.
    pub t: Time,
    /// Where.
    pub link: u32,
    /// What.
    pub packet: Packet,
    /// Why.
    pub reason: Refused,
}

/// What the world writes down of single packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sinks {
    /// Every packet at the hosts.
    pub capture: Option<u8>,
    /// Every dropped packet.
    pub drops: bool,
}

/// Links, endpoints and clock of one run.
pub struct World {
    now: Time,
    seed: u64,
    digest: Digest,
    net: Net,
    ends: Vec<Option<End>>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    opened: u32,
    captured: Option<(u8, Vec<Captured>)>,
    /// Hosts that are not perfect, if there are any.
    hosts: Option<Box<Hosts>>,
}

impl World {
    /// A world with these links and no flow.
    pub fn new(links: &[LinkConfig], framing_bytes: u32, seed: u64, sinks: Sinks) -> World {
        let links = links
            .iter()
            .map(|config| LinkSlot { link: Link::new(config, seed), armed: Time::NEVER, next: Next::Unused })
            .collect::<Vec<_>>();
        World {
            now: Time::ZERO,
            seed,
            digest: Digest::default(),
            net: Net {
                agenda: Agenda { queue: EventQueue::with_capacity(2 * links.len() + 64), vacant: false },
                links,
                origins: Vec::new(),
                framing_bytes,
                drops: sinks.drops.then(Vec::new),
            },
            ends: Vec::new(),
            slots: Vec::new(),
            free: Vec::new(),
            opened: 0,
            captured: sinks.capture.map(|host| (host, Vec::new())),
            hosts: None,
        }
    }

    /// Lay the way of the next flow (they count from 0): links forward and back, neither empty, none twice.
    pub fn add_route(&mut self, forward: &[u32], backward: &[u32]) {
        let flow = self.net.origins.len();
        let line = self.net.links[forward[0] as usize].link.rate();
        self.net.origins.push(Origin { first: [backward[0], forward[0]], departures: Departures::new(line) });
        for (direction, way) in [backward, forward].into_iter().enumerate() {
            for (i, &link) in way.iter().enumerate() {
                let next = way.get(i + 1).copied().unwrap_or(ARRIVED);
                self.net.links[link as usize].next.learn(2 * flow + direction, next);
            }
        }
    }

    /// Process every event up to and including `end`.
    pub fn run(&mut self, app: &mut impl Application, end: Time) {
        while let Some((t, id)) = self.net.agenda.queue.peek() {
            if t > end {
                break;
            }
            self.now = t;
            self.net.agenda.vacant = true;
            let index = (id >> KIND_BITS) as usize;
            match id & KIND_MASK {
                LINK => self.link_event(app, index),
                TIMER => self.timer_event(app, index),
                WAKE => app.wake(self, index as FlowId),
                _ if index >= HOST_TICKS as usize => self.host_event(app, index - HOST_TICKS as usize),
                _ => app.tick(self, index as u32),
            }
            self.net.agenda.settle();
        }
        self.now = end;
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// What has happened so far.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Number of links.
    pub fn links(&self) -> usize {
        self.net.links.len()
    }

    /// A link, to read its counters.
    pub fn link(&mut self, link: usize) -> &mut Link {
        &mut self.net.links[link].link
    }

    /// Restart the loss models on the way of `flow`, as the `k`-th of their sequences.
    pub fn restart_losses(&mut self, flow: FlowId, k: u32) {
        let seed = Stream::new(self.seed, &format!("fetch.{k}")).next_u64();
        for direction in [0, 1] {
            let mut link = self.net.origins[flow as usize].first[direction];
            while link != ARRIVED {
                let slot = &mut self.net.links[link as usize];
                slot.link.restart_loss(seed);
                link = slot.next.of(2 * flow as usize + direction);
            }
        }
    }

    /// The seed of a component of this run.
    pub fn seed_of(&self, name: &str) -> u64 {
        Stream::new(self.seed, name).next_u64()
    }

    /// Wake `flow` at `at`.
    pub fn wake(&mut self, flow: FlowId, at: Time) {
        self.net.agenda.add(at.max(self.now), flow << KIND_BITS | WAKE);
    }

    /// Call back for `what` at `at`.
    pub fn tick(&mut self, what: u32, at: Time) {
        self.net.agenda.add(at, what << KIND_BITS | TICK);
    }

    /// A new connection of `flow`, opened from `initiator`; both ends are watched.
    pub fn open(&mut self, flow: FlowId, initiator: usize, config: &TransportConfig, traced: bool) -> ConnId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.ends.extend([None, None]);
            self.slots.len() as u32 - 1
        });
        assert!(slot < MAX_SLOTS, "invariant: builds are limited to {MAX_SLOTS} flows");
        let conn = ConnId((self.slots[slot as usize].generation as u32) << SLOT_BITS | slot);
        let pair = Transport::pair(config, flow, initiator, self.seed);
        for (host, mut transport) in pair.into_iter().enumerate() {
            transport.set_trace(traced && host == SENDER);
            let process = self.hosts.as_deref().and_then(|hosts| hosts.process(flow, host, &mut transport));
            self.ends[2 * slot as usize + host] = Some(End {
                armed: [Time::NEVER; 2],
                flow,
                conn: conn.0,
                ordinal: self.opened,
                watched: true,
                transport,
                process,
            });
        }
        self.opened += 1;
        conn
    }

    /// Take a connection out of the world; packets of it that are still on their way vanish on arrival.
    pub fn retire(&mut self, conn: ConnId) -> [Transport; 2] {
        let slot = conn.0 & SLOT_MASK;
        let ends = [SENDER, RECEIVER].map(|host| {
            let end = self.ends[2 * slot as usize + host].take().expect("invariant: retired once");
            debug_assert_eq!(end.conn, conn.0);
            if let Some(process) = end.process {
                self.leave(process.host, 2 * slot as usize + host);
            }
            end.transport
        });
        let generation = &mut self.slots[slot as usize].generation;
        *generation = (*generation + 1) & GENERATION_MASK;
        self.free.push(slot);
        ends
    }

    /// What the flow and its workload noted about a connection, so that neither has to search for it.
    #[inline]
    pub fn notes(&mut self, conn: ConnId) -> &mut Notes {
        &mut self.slots[(conn.0 & SLOT_MASK) as usize].notes
    }

    /// One end of a connection.
    #[inline]
    pub fn transport(&self, conn: ConnId, host: usize) -> &Transport {
        &self.end(conn, host).transport
    }

    /// One end of a TCP connection.
    #[inline]
    pub fn tcp(&self, conn: ConnId, host: usize) -> &Connection {
        self.transport(conn, host).tcp().expect("invariant: asked by workloads that run over TCP only")
    }

    /// Payload bytes that have verifiably arrived: those acknowledged, or, where nobody acknowledges, those received.
    pub fn delivered(&self, conn: ConnId) -> u64 {
        Transport::delivered([SENDER, RECEIVER].map(|host| self.transport(conn, host)))
    }

    /// Whether anything happening at this end is reported to the application.
    pub fn watch(&mut self, conn: ConnId, host: usize, watched: bool) {
        let index = end_index(conn, host);
        self.ends[index].as_mut().expect("invariant: open").watched = watched;
    }

    /// Let the application act on one end, then send what the end has to send.
    pub fn act(&mut self, conn: ConnId, host: usize, action: impl FnOnce(&mut Transport, Time)) {
        let index = end_index(conn, host);
        let now = self.now;
        action(&mut self.ends[index].as_mut().expect("invariant: open").transport, now);
        self.flush(index);
    }

    /// Whether connections may be opened that nothing else limits.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty() || self.slots.len() < MAX_SLOTS as usize / 2
    }

    /// When the data of a flow left its host.
    pub fn departures(&self, flow: FlowId) -> &Departures {
        &self.net.origins[flow as usize].departures
    }

    /// Connections open now, and slots ever used.
    pub fn occupancy(&self) -> (usize, usize) {
        (self.slots.len() - self.free.len(), self.slots.len())
    }

    /// Rows of dropped packets, if they were asked for.
    pub fn take_drops(&mut self) -> Vec<Dropped> {
        self.net.drops.take().unwrap_or_default()
    }

    /// Captured packets, if they were asked for.
    pub fn take_captured(&mut self) -> Vec<Captured> {
        self.captured.take().map(|(_, packets)| packets).unwrap_or_default()
    }

    fn end(&self, conn: ConnId, host: usize) -> &End {
        let end = self.ends[end_index(conn, host)].as_ref().expect("invariant: open");
        debug_assert_eq!(end.conn, conn.0);
        end
    }

    /// A link has something to do: a packet leaves it, or its queue moves on.
    #[inline]
    fn link_event(&mut self, app: &mut impl Application, index: usize) {
        let now = self.now;
        let slot = &mut self.net.links[index];
        if slot.armed != now {
            return; // superseded by an earlier entry
        }
        if let Some(open) = self.hosts.as_mut().and_then(|hosts| hosts.links_stand_until(now)) {
            slot.armed = open;
            self.net.agenda.add(open, (index as u32) << KIND_BITS | LINK);
            return;
        }
        let packet = slot.link.poll(now);
        slot.armed = slot.link.next_event().max(now); // where links have stood still, packets are overdue
        if slot.armed != Time::NEVER {
            self.net.agenda.add(slot.armed, (index as u32) << KIND_BITS | LINK);
        }
        self.net.collect_head_drops(now, index);
        let Some(packet) = packet else { return };
        let next = self.net.links[index].next.of(2 * packet.flow as usize + packet.forward as usize);
        if next == ARRIVED {
            self.arrive(app, &packet);
        } else {
            self.net.offer(now, next, packet);
        }
    }

    /// A packet reaches its host.
    #[inline]
    fn arrive(&mut self, app: &mut impl Application, packet: &Packet) {
        let host = if packet.forward { RECEIVER } else { SENDER };
        let index = 2 * (packet.conn & SLOT_MASK) as usize + host;
        let Some(end) = self.ends[index].as_mut().filter(|end| end.conn == packet.conn) else {
            return; // a closed connection answers nothing
        };
        if end.process.is_some() {
            return self.reach_host(app, index, packet);
        }
        self.deliver(index, packet);
        let end = self.ends[index].as_ref().expect("invariant: found above");
        let (flow, watched) = (end.flow, end.watched);
        self.flush(index);
        if watched {
            app.progress(self, ConnId(packet.conn), flow, host);
        }
    }

    /// An end gets a packet.
    #[inline]
    fn deliver(&mut self, index: usize, packet: &Packet) {
        let host = index & 1;
        let end = self.ends[index].as_mut().expect("invariant: open");
        let header = (packet.header.payload() as u64) << 32 ^ (packet.conn as u64);
        self.digest.fold(self.now.0 ^ header.rotate_left(20));
        match &packet.header {
            Header::Tcp(seg) => self.digest.fold(seg.seq ^ seg.ack.rotate_left(32)),
            Header::Datagram(datagram) => {
                datagram.fingerprint().iter().for_each(|&word| self.digest.fold(word))
            }
        }
        if let Some((at, captured)) = &mut self.captured {
            if *at == host as u8 {
                let (flow, conn) = (end.flow, end.ordinal);
                captured.push(Captured { t: self.now, host: *at, flow, conn, packet: *packet });
            }
        }
        end.transport.on_packet(self.now, packet);
    }

    /// An endpoint's timer may be due.
    fn timer_event(&mut self, app: &mut impl Application, index: usize) {
        let now = self.now;
        let Some(end) = self.ends[index].as_mut().filter(|end| end.armed[0] == now) else {
            return; // superseded, or of an earlier connection
        };
        end.armed = [end.armed[1], Time::NEVER];
        if end.deadline() > now {
            end.arm(index, &mut self.net.agenda);
            return; // the deadline moved on since the entry was made
        }
        if end.process.is_some() {
            return self.run_process(app, index);
        }
        end.transport.on_timer(now);
        let (conn, flow) = (ConnId(end.conn), end.flow);
        self.flush(index);
        app.progress(self, conn, flow, index & 1);
    }

    /// Send what an end has to send and keep its timer armed.
    #[inline]
    fn flush(&mut self, index: usize) {
        let end = self.ends[index].as_mut().expect("invariant: open");
        if end.process.is_some() {
            return self.wake_process(index);
        }
        let way = Way {
            now: self.now,
            flow: end.flow,
            conn: end.conn,
            ordinal: end.ordinal,
            host: (index & 1) as u8,
            first: self.net.origins[end.flow as usize].first[(index & 1 == SENDER) as usize],
        };
        // a loop for each, so that a segment is written once, where it goes
        match &mut end.transport {
            Transport::Tcp(tcp) => {
                while let Some(seg) = tcp.poll_transmit(way.now) {
                    let (bytes, ecn) = (seg.ip_bytes(), tcp.mark_of(&seg));
                    way.send(&mut self.net, &mut self.captured, Header::Tcp(seg), bytes, ecn);
                }
            }
            Transport::Datagram(datagrams) => {
                while let Some(datagram) = datagrams.poll_transmit(way.now) {
                    let bytes = datagram.ip_bytes();
                    let header = Header::Datagram(datagram);
                    way.send(&mut self.net, &mut self.captured, header, bytes, Ecn::NotEct);
                }
            }
        }
        end.arm(index, &mut self.net.agenda);
    }

    #[inline]
    fn end_at(&mut self, index: usize) -> &mut End {
        self.ends[index].as_mut().expect("invariant: open")
    }
}

/// Where the packets of one end go.
#[derive(Clone, Copy)]
struct Way {
    now: Time,
    flow: FlowId,
    conn: u32,
    ordinal: u32,
    host: u8,
    first: u32,
}

impl Way {
    #[inline(always)]
    fn send(
        self,
        net: &mut Net,
        captured: &mut Option<(u8, Vec<Captured>)>,
        header: Header,
        bytes: u32,
        ecn: Ecn,
    ) {
        let Way { now, flow, conn, ordinal, host, first } = self;
        let bytes = bytes + net.framing_bytes;
        let packet = Packet { header, flow, conn, bytes, forward: host as usize == SENDER, ecn };
        if let Some((at, captured)) = captured {
            if *at == host {
                captured.push(Captured { t: now, host, flow, conn: ordinal, packet });
            }
        }
        net.note_departure(now, &packet);
        net.offer(now, first, packet);
    }
}

/// Everything between the hosts.
struct Net {
    links: Vec<LinkSlot>,
    agenda: Agenda,
    /// By flow.
    origins: Vec<Origin>,
    framing_bytes: u32,
    drops: Option<Vec<Dropped>>,
}

/// Where the packets of a flow come from.
struct Origin {
    /// The first link of its way back and of its way forward.
    first: [u32; 2],
    departures: Departures,
}

impl Net {
    /// A packet leaves its host.
    fn depart(&mut self, now: Time, packet: Packet) {
        self.note_departure(now, &packet);
        let first = self.origins[packet.flow as usize].first[packet.forward as usize];
        self.offer(now, first, packet);
    }

    #[inline]
    fn note_departure(&mut self, now: Time, packet: &Packet) {
        if packet.forward && packet.header.payload() > 0 {
            self.origins[packet.flow as usize].departures.add(now, packet.bytes);
        }
    }

    #[inline]
    fn offer(&mut self, now: Time, link: u32, packet: Packet) {
        let slot = &mut self.links[link as usize];
        let outcome = slot.link.offer(now, packet);
        let next = slot.link.next_event().max(now);
        if next < slot.armed {
            slot.armed = next;
            self.agenda.add(next, link << KIND_BITS | LINK);
        }
        if let (Err(reason), Some(drops)) = (outcome, &mut self.drops) {
            drops.push(Dropped { t: now, link, packet, reason });
        }
        self.collect_head_drops(now, link as usize);
    }

    /// Write down what an AQM dropped from the head of its queue.
    #[inline]
    fn collect_head_drops(&mut self, now: Time, link: usize) {
        while let Some((packet, reason)) = self.links[link].link.take_head_drops() {
            if let Some(drops) = &mut self.drops {
                drops.push(Dropped { t: now, link: link as u32, packet, reason });
            }
        }
    }
}

struct LinkSlot {
    link: Link,
    /// Time of the link's entry in the queue.
    armed: Time,
    next: Next,
}

/// Where packets go behind a link, by way: twice the flow, plus one if forward. Packets carry no position: one that
/// is not written to between two links is copied without a stall.
enum Next {
    Unused,
    /// All ways lead there.
    Same(u32),
    /// Ways part.
    ByWay(Vec<u32>),
}

impl Next {
    #[inline]
    fn of(&self, way: usize) -> u32 {
        match self {
            Next::Same(next) => *next,
            Next::ByWay(table) => table[way],
            Next::Unused => unreachable!("invariant: packets come only where ways lead"),
        }
    }

    /// `way` goes on to `next`.
    fn learn(&mut self, way: usize, next: u32) {
        match self {
            Next::Unused => *self = Next::Same(next),
            Next::Same(same) if *same == next => {}
            Next::Same(same) => {
                // ways before this one that come here at all go on to `same`
                let mut table = vec![*same; way];
                table.push(next);
                *self = Next::ByWay(table);
            }
            Next::ByWay(table) => {
                table.resize(way.max(table.len()), ARRIVED);
                table.push(next);
            }
        }
    }
}

/// Where others keep what they know about a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Notes {
    /// Position among the open connections of its flow.
    pub place: u32,
    /// Position in a table of the workload.
    pub entry: u32,
}

/// A place for a connection, used again and again.
#[derive(Default)]
struct Slot {
    generation: u16,
    notes: Notes,
}

/// One end of a connection.
struct End {
    transport: Transport,
    /// Times of its entries in the queue, the earlier first. When the deadline moves ahead of the entry, a second one
    /// goes in front; a third would make the last one forgotten, and it dies on arrival.
    armed: [Time; 2],
    flow: FlowId,
    conn: u32,
    ordinal: u32,
    watched: bool,
    /// What it is on a host that is not perfect.
    process: Option<Box<Process>>,
}

impl End {
    /// When its timer is to fire.
    #[inline]
    fn deadline(&self) -> Time {
        let deadline = self.transport.next_deadline();
        match &self.process {
            None => deadline,
            Some(process) => process.deadline(deadline),
        }
    }

    /// The next packet that it sends, noted where packets are captured.
    fn next_packet(
        &mut self,
        now: Time,
        side: usize,
        framing_bytes: u32,
        captured: &mut Option<(u8, Vec<Captured>)>,
    ) -> Option<Packet> {
        let (header, ip_bytes, ecn) = match &mut self.transport {
            Transport::Tcp(tcp) => {
                let seg = tcp.poll_transmit(now)?;
                (Header::Tcp(seg), seg.ip_bytes(), tcp.mark_of(&seg))
            }
            Transport::Datagram(datagrams) => {
                let datagram = datagrams.poll_transmit(now)?;
                (Header::Datagram(datagram), datagram.ip_bytes(), Ecn::NotEct)
            }
        };
        let bytes = ip_bytes + framing_bytes;
        let packet = Packet { header, flow: self.flow, conn: self.conn, bytes, forward: side == SENDER, ecn };
        if let Some((at, captured)) = captured {
            if *at == side as u8 {
                let (flow, conn) = (self.flow, self.ordinal);
                captured.push(Captured { t: now, host: *at, flow, conn, packet });
            }
        }
        Some(packet)
    }

    /// See that an entry at or ahead of the deadline is in the queue.
    #[inline]
    fn arm(&mut self, index: usize, agenda: &mut Agenda) {
        let deadline = self.deadline();
        if deadline < self.armed[0] {
            self.armed = [deadline, self.armed[0]];
            agenda.add(deadline, (index as u32) << KIND_BITS | TIMER);
        }
    }
}

/// The event queue, whose top entry is vacant while its event is processed.
struct Agenda {
    queue: EventQueue,
    vacant: bool,
}

impl Agenda {
    #[inline]
    fn add(&mut self, at: Time, id: u32) {
        debug_assert!(id <= MAX_EVENT_ID);
        if self.vacant {
            self.vacant = false;
            self.queue.replace_top(at, id);
        } else {
            self.queue.push(at, id);
        }
    }

    /// The event is processed: drop its entry if nothing took its place.
    #[inline]
    fn settle(&mut self) {
        if self.vacant {
            self.vacant = false;
            self.queue.pop();
        }
    }
}

#[inline]
fn end_index(conn: ConnId, host: usize) -> usize {
    2 * (conn.0 & SLOT_MASK) as usize + host
}

/// End of a way.
const ARRIVED: u32 = u32::MAX;

const KIND_BITS: u32 = 2;
const KIND_MASK: u32 = (1 << KIND_BITS) - 1;
const LINK: u32 = 0;
const TIMER: u32 = 1;
const WAKE: u32 = 2;
const TICK: u32 = 3;

const SLOT_BITS: u32 = 20;
const SLOT_MASK: u32 = (1 << SLOT_BITS) - 1;
const GENERATION_MASK: u16 = (1 << (32 - SLOT_BITS)) - 1;

/// Most connections open at a time.
pub const MAX_SLOTS: u32 = 1 << SLOT_BITS;
/// Most links: their number must fit an event id.
pub const MAX_LINKS: usize = 1 << 22;
