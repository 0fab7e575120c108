//! Ends of connections: their slots, and the transmission of their packets into the network.

use ackclock_core::{Digest, FlowId, Header, Packet, Span, Time};
use ackclock_tcp::{Connection, ReadingPace};

use super::agenda::{Agenda, KIND_BITS, TIMER};
use super::net::{set_out, Journey, Net};
use super::process::Process;
use super::{World, RECEIVER, SENDER};
use crate::capture::Noted;
use crate::transport::{Transport, TransportConfig};
use crate::world::gauges::Gauges;

/// Id of a connection: the slot number in the low bits, and above it a generation that distinguishes it from earlier
/// users of the slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnId(pub(super) u32);

impl ConnId {
    /// Number that is unique among the open connections.
    pub fn number(self) -> u32 {
        self.0
    }
}

impl World {
    /// Open a connection of `flow` from host `initiator`. Both ends are watched.
    pub fn open(&mut self, flow: FlowId, initiator: usize, config: &TransportConfig, traced: bool) -> ConnId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.ends.extend([None, None]);
            self.slots.len() as u32 - 1
        });
        assert!(slot < MAX_SLOTS, "invariant: builds are limited to {MAX_SLOTS} flows");
        let conn = ConnId((self.slots[slot as usize].generation as u32) << SLOT_BITS | slot);
        for host in [SENDER, RECEIVER] {
            let over = self.over.pop();
            let end = self.ends[2 * slot as usize + host].insert(End {
                armed: [Time::NEVER; 2],
                flow,
                conn: conn.0,
                ordinal: self.opened,
                told_from: 0,
                transport: Transport::new(config, flow, host, initiator, self.seed, over),
                process: None,
            });
            end.transport.set_trace(traced && host == SENDER);
            end.process =
                self.hosts.as_deref().and_then(|hosts| hosts.process(flow, host, &mut end.transport));
        }
        self.opened += 1;
        conn
    }

    /// Set the read pace of a new connection's applications, host by host.
    pub fn read_slowly(&mut self, conn: ConnId, pace: impl Fn(usize) -> Option<ReadingPace>) {
        for host in [SENDER, RECEIVER] {
            let end = self.end_at(end_index(conn, host));
            if let (Some(pace), Some(tcp)) = (pace(host), end.transport.tcp_mut()) {
                tcp.read_slowly(pace);
            }
        }
    }

    /// Both ends of an open connection, the sending one first.
    pub fn both(&mut self, conn: ConnId) -> [&mut Transport; 2] {
        let at = end_index(conn, SENDER);
        match &mut self.ends[at..at + 2] {
            [Some(sender), Some(receiver)] => [&mut sender.transport, &mut receiver.transport],
            _ => unreachable!("invariant: open"),
        }
    }

    /// Remove a connection. Its packets in flight are discarded on arrival, and later connections may reuse its
    /// memory.
    pub fn retire(&mut self, conn: ConnId) {
        let slot = conn.0 & SLOT_MASK;
        for host in [SENDER, RECEIVER] {
            let place = &mut self.ends[2 * slot as usize + host];
            let end = place.as_mut().expect("invariant: retired once");
            debug_assert_eq!(end.conn, conn.0);
            let process = end.process.take();
            let halves = place.take().and_then(|end| end.transport.into_halves());
            if self.over.len() < MOST_OVER {
                self.over.extend(halves);
            }
            if let Some(process) = process {
                self.leave(process.host, 2 * slot as usize + host);
            }
        }
        let generation = &mut self.slots[slot as usize].generation;
        *generation = (*generation + 1) & GENERATION_MASK;
        self.free.push(slot);
    }

    /// Indices that the flow and its workload store with a connection to save a search.
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

    /// Payload bytes known to have arrived: bytes acknowledged or, for transports without acknowledgments, bytes
    /// received.
    pub fn delivered(&self, conn: ConnId) -> u64 {
        Transport::delivered([SENDER, RECEIVER].map(|host| self.transport(conn, host)))
    }

    /// Set whether events at this end are reported to the application.
    pub fn watch(&mut self, conn: ConnId, host: usize, watched: bool) {
        self.end_at(end_index(conn, host)).told_from = if watched { 0 } else { NEVER_TOLD };
    }

    /// Report nothing to the application until this end has received `bytes` from the peer, the peer has closed, or
    /// the connection is over.
    pub fn watch_from(&mut self, conn: ConnId, host: usize, bytes: u64) {
        if self.net.shortcuts.tells {
            let offset = bytes.saturating_add(1).min(NEVER_TOLD as u64 - 1); // data starts at 1
            self.end_at(end_index(conn, host)).told_from = offset as u32;
        }
    }

    /// Whether another connection may be opened by a workload that sets no limit itself.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty() || self.slots.len() < MAX_SLOTS as usize / 2
    }

    /// Free the memory of all ends, which the tables may need. All connections must be retired.
    pub fn forget_ends(&mut self) {
        debug_assert!(self.ends.iter().all(Option::is_none));
        (self.ends, self.slots, self.free, self.over) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    }

    /// Number of open connections, and number of slots ever used.
    pub fn occupancy(&self) -> (usize, usize) {
        (self.slots.len() - self.free.len(), self.slots.len())
    }

    pub(super) fn end(&self, conn: ConnId, host: usize) -> &End {
        let end = self.ends[end_index(conn, host)].as_ref().expect("invariant: open");
        debug_assert_eq!(end.conn, conn.0);
        end
    }

    #[inline]
    pub(super) fn end_at(&mut self, index: usize) -> &mut End {
        self.ends[index].as_mut().expect("invariant: open")
    }
}

/// Indices that the flow and its workload store with a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Notes {
    /// Index among the open connections of its flow.
    pub place: u32,
    /// Index in a table of the workload.
    pub entry: u32,
}

/// Reusable slot of a connection.
#[derive(Clone, Default)]
pub(super) struct Slot {
    generation: u16,
    notes: Notes,
}

/// One end of a connection.
#[derive(Clone)]
pub(super) struct End {
    pub(super) transport: Transport,
    /// Times of this end's pending events, the earlier one first. If the deadline moves ahead of the pending event,
    /// another event is scheduled. Only two times are kept: an event whose time has been displaced is ignored when it
    /// fires.
    pub(super) armed: [Time; 2],
    pub(super) flow: FlowId,
    pub(super) conn: u32,
    pub(super) ordinal: u32,
    /// Offset of the peer's data from which the application is notified (see [`World::watch_from`]), or `NEVER_TOLD`.
    told_from: u32,
    /// State of the process that runs this end; `None` on a perfect host.
    pub(super) process: Option<Box<Process>>,
}

impl End {
    /// Number that is unique among all ends of the run.
    pub(super) fn key(&self, side: usize) -> u64 {
        (self.ordinal as u64) << 1 | side as u64
    }

    /// Whether the application is ever notified of events here.
    pub(super) fn is_watched(&self) -> bool {
        self.told_from != NEVER_TOLD
    }

    /// Whether the application has to be notified of what has happened at this end.
    #[inline(always)]
    pub(super) fn tells(&self) -> bool {
        self.is_watched() && self.transport.has_come_to(self.told_from as u64)
    }

    /// Whether the timer of this end has expired.
    #[inline]
    pub(super) fn is_due(&self, now: Time) -> bool {
        match &self.process {
            None => self.transport.is_due(now),
            Some(process) => process.deadline(self.transport.next_deadline()) <= now,
        }
    }

    /// Process a packet that has reached this end.
    #[inline(always)]
    pub(super) fn receive(&mut self, now: Time, packet: &Packet, digest: &mut Digest) {
        match (&mut self.transport, &packet.header) {
            (Transport::Tcp(tcp), Header::Tcp(seg)) => {
                digest.fold(arrival(now, packet.conn, seg.len));
                digest.fold(seg.seq ^ seg.ack.rotate_left(32));
                tcp.on_packet(now, seg, packet.ecn);
            }
            (Transport::Datagram(end), Header::Datagram(datagram)) => {
                digest.fold(arrival(now, packet.conn, packet.header.payload()));
                datagram.fingerprint().iter().for_each(|&word| digest.fold(word));
                end.arrive(now, datagram, packet.ecn);
            }
            _ => unreachable!("invariant: both ends of a flow speak the same transport"),
        }
    }

    /// Variant of `receive` for runs that capture or measure packets.
    #[inline(never)]
    pub(super) fn receive_noted(
        &mut self,
        now: Time,
        host: usize,
        packet: &Packet,
        digest: &mut Digest,
        captured: &mut Option<Noted>,
        gauges: &mut Option<Box<Gauges>>,
    ) {
        if let Some(captured) = captured {
            captured.reaches(now, host, self.flow, self.ordinal, packet);
        }
        match gauges {
            Some(gauges) if host == SENDER => {
                let (sum, n) = self.transport.rtt_samples();
                self.receive(now, packet, digest);
                let (sum_now, n_now) = self.transport.rtt_samples();
                for _ in n..n_now {
                    gauges.sample(now, self.flow, Span((sum_now - sum) as u64 / (n_now - n)));
                }
            }
            _ => self.receive(now, packet, digest),
        }
    }

    /// Send all packets that are ready and keep the timer armed, on a perfect host.
    #[inline(always)]
    pub(super) fn answer(
        &mut self,
        now: Time,
        index: usize,
        net: &mut Net,
        common: &mut Packet,
        captured: &mut Option<Noted>,
    ) {
        self.send(now, index, net, common, captured);
        self.arm(index, &mut net.agenda);
    }

    /// Send all packets that are ready.
    #[inline(always)]
    pub(super) fn send(
        &mut self,
        now: Time,
        index: usize,
        net: &mut Net,
        common: &mut Packet,
        captured: &mut Option<Noted>,
    ) {
        let framing_bytes = net.framing_bytes;
        loop {
            if net.shortcuts.trains {
                let length = self.begin_train(now, index & 1, framing_bytes, common);
                if length > 0 {
                    net.send_train(now, common, length, |packet| self.transport.next_of_train(packet));
                    if self.transport.ends_with_train(now) {
                        break;
                    }
                }
            }
            let pool = &mut net.pool;
            let sent = self.send_into(now, index & 1, framing_bytes, || pool.vacant(), captured);
            let Some((packet, more)) = sent else { break };
            let Journey { first, way, load } = set_out(&mut net.origins, now, packet, 1);
            net.depart(now, first, way, load);
            if !more {
                break;
            }
        }
    }

    /// Write the end's next packet into `place`, and capture it if packets are captured. Return the packet and
    /// whether more may follow, or `None` if nothing is sent.
    #[inline(always)]
    pub(super) fn send_into<'p>(
        &mut self,
        now: Time,
        side: usize,
        framing_bytes: u32,
        place: impl FnOnce() -> &'p mut Packet,
        captured: &mut Option<Noted>,
    ) -> Option<(&'p Packet, bool)> {
        let (packet, more) = self.transport.transmit_into(now, framing_bytes, place)?;
        (packet.flow, packet.conn, packet.forward) = (self.flow, self.conn, side == SENDER);
        if let Some(captured) = captured {
            captured.leaves(now, self.flow, self.ordinal, packet);
        }
        Some((packet, more))
    }

    /// Write the fields that the next packets share into `common`. Return the number of packets that can be sent as a
    /// train, or 0.
    #[inline(always)]
    pub(super) fn begin_train(
        &mut self,
        now: Time,
        side: usize,
        framing_bytes: u32,
        common: &mut Packet,
    ) -> u32 {
        let length = self.transport.begin_train(now, framing_bytes, common);
        if length > 0 {
            (common.flow, common.conn, common.forward) = (self.flow, self.conn, side == SENDER);
        }
        length
    }

    /// Ensure that an event is pending at or before the deadline.
    #[inline(always)]
    pub(super) fn arm(&mut self, index: usize, agenda: &mut Agenda) {
        if let Some(deadline) = self.sooner() {
            self.arm_at(deadline, index, agenda);
        }
    }

    /// The deadline, if it is before the pending event.
    #[inline(always)]
    pub(super) fn sooner(&self) -> Option<Time> {
        let deadline = match &self.process {
            None => self.transport.deadline_before(self.armed[0]),
            Some(process) => process.deadline(self.transport.next_deadline()),
        };
        (deadline < self.armed[0]).then_some(deadline)
    }

    /// Schedule a timer event at this deadline.
    #[inline(always)]
    pub(super) fn arm_at(&mut self, deadline: Time, index: usize, agenda: &mut Agenda) {
        self.armed = [deadline, self.armed[0]];
        let id = (index as u32) << KIND_BITS | TIMER;
        if self.process.is_some() || deadline <= agenda.now() {
            return agenda.add(deadline, id); // the application's turn, or work of an imperfect host
        }
        let wheel = self.transport.tcp().and_then(|tcp| tcp.on_wheel(agenda.now(), deadline));
        agenda.add_timer(deadline, self.flow, index & 1, wheel, id);
    }
}

/// Digest word for the arrival of a packet with this payload at its end.
#[inline]
fn arrival(now: Time, conn: u32, payload: u32) -> u64 {
    now.0 ^ ((payload as u64) << 32 ^ conn as u64).rotate_left(20)
}

#[inline]
pub(super) fn end_index(conn: ConnId, host: usize) -> usize {
    2 * (conn.0 & SLOT_MASK) as usize + host
}

const SLOT_BITS: u32 = 20;
pub(super) const SLOT_MASK: u32 = (1 << SLOT_BITS) - 1;
const GENERATION_MASK: u16 = (1 << (32 - SLOT_BITS)) - 1;

/// Value of `told_from` that disables notification.
const NEVER_TOLD: u32 = u32::MAX;

/// Maximum number of closed connections' ends whose halves are kept for reuse.
const MOST_OVER: usize = 1024;

/// Maximum number of open connections.
pub const MAX_SLOTS: u32 = 1 << SLOT_BITS;

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::super::net::{LinkSlot, Origin};
    use super::*;

    /// State of each flow of a crowd: `cargo test -p ackclock-sim sizes -- --nocapture` prints it.
    #[test]
    fn sizes_of_what_each_flow_needs_are_bounded() {
        let sizes = [
            ("end of a connection", size_of::<Option<End>>(), 208),
            ("slot of a connection", size_of::<Slot>(), 12),
            ("source of a flow's packets", size_of::<Origin>(), 96),
            ("link", size_of::<LinkSlot>(), 128),
        ];
        for (what, bytes, most) in sizes {
            println!("{what}: {bytes} bytes, at most {most}");
            assert!(bytes <= most, "{what}: {bytes} bytes, at most {most}");
        }
    }
}
