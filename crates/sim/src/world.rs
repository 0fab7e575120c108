//! The world: links, endpoints, the clock, and the only event loop.
//!
//! The event queue contains one entry per packet whose next stop is a host or a link shared by several paths, one
//! entry per other busy link, and at most two entries per endpoint (its timer, re-armed lazily). The packets
//! themselves are stored in a pool.

mod agenda;
mod asking;
mod ends;
mod foresight;
pub mod gauges;
mod hosted;
pub mod layout;
pub(crate) mod names;
mod net;
mod process;
pub mod shortcuts;

use ackclock_core::{Digest, FlowId, Packet, Stream, Time};
use ackclock_net::host::Departures;
use ackclock_net::PacketId;
use ackclock_tcp::Halves;

use crate::capture::{Captured, Noted};
use crate::transport::{Freight, Transport};
use crate::world::layout::Layout;
use crate::world::shortcuts::Shortcuts;
use agenda::{ARRIVAL, CROSSING, KIND_BITS, KIND_MASK, LINK, MEETING, NEWS, TICK, TIMER, WAKE};
use ends::{end_index, End, Slot, SLOT_MASK};
use hosted::Hosts;
use net::Net;

pub use crate::transport::{RECEIVER, SENDER};
pub use ends::{ConnId, MAX_SLOTS};
pub use hosted::{HOST_TICKS, MAX_HOSTS};
pub use net::{Dropped, MAX_LINKS};

/// The applications on the hosts, called after the protocol has processed an event.
pub trait Application {
    /// A packet arrived, or a timer expired, at a watched end of `conn`.
    fn progress(&mut self, world: &mut World, conn: ConnId, flow: FlowId, host: usize);
    /// A wake-up of `flow` is due. Also called for wake-ups that a later one has replaced.
    fn wake(&mut self, world: &mut World, flow: FlowId);
    /// The recurring event `what` is due.
    fn tick(&mut self, world: &mut World, what: u32);
}

/// Per-packet records written by the world.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sinks {
    /// Host whose packets are captured; `None` = no capture.
    pub capture: Option<u8>,
    /// Whether dropped packets are recorded.
    pub drops: bool,
}

/// Links, endpoints and clock of one run.
#[derive(Clone)]
pub struct World {
    now: Time,
    seed: u64,
    digest: Digest,
    net: Net,
    ends: Vec<Option<End>>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Halves of closed connections, kept so that new connections can reuse their memory.
    over: Vec<Halves>,
    opened: u32,
    captured: Option<Noted>,
    /// Whether packets are captured or measured.
    takes_notes: bool,
    /// Fields that the packets of a train share; scratch space for the train being sent.
    common: Packet,
    /// End of the current call to [`World::run`], and next time at which link counters are read.
    until: Time,
    next_look: Time,
    /// The imperfect hosts; `None` if all hosts are perfect.
    hosts: Option<Box<Hosts>>,
}

impl World {
    /// Return a world with this network, whose flows have no connections yet.
    pub fn new(
        mut layout: Layout,
        framing_bytes: u32,
        seed: u64,
        sinks: Sinks,
        shortcuts: Shortcuts,
    ) -> World {
        let trains = sinks.capture.is_none();
        let shortcuts = Shortcuts { trains: shortcuts.trains && trains, ..shortcuts };
        let mut world = World {
            now: Time::ZERO,
            seed,
            digest: Digest::default(),
            net: Net::new(&mut layout, framing_bytes, seed, sinks.drops, shortcuts),
            ends: Vec::new(),
            slots: Vec::new(),
            free: Vec::new(),
            over: Vec::new(),
            opened: 0,
            captured: sinks.capture.map(Noted::at),
            takes_notes: sinks.capture.is_some(),
            common: Packet::default(),
            until: Time::ZERO,
            next_look: Time::NEVER,
            hosts: None,
        };
        world.expect(layout.routes.len());
        for [forward, backward] in &layout.routes {
            world.add_route(forward, backward);
        }
        world
    }

    /// Use this storage for the bytes of external stacks' datagrams; packets carry only an index into it.
    pub fn carry(&mut self, freight: &Freight) {
        self.net.freight = freight.clone();
    }

    /// First impossible report of an external stack, or `None`.
    pub fn fault(&self) -> Option<String> {
        self.net.freight.fault()
    }

    /// Number of external stacks' datagrams whose bytes are stored.
    pub fn freight(&self) -> usize {
        self.net.freight.held()
    }

    /// Reserve memory for `flows` flows with at least one connection each.
    fn expect(&mut self, flows: usize) {
        self.ends.reserve_exact(2 * flows);
        self.slots.reserve_exact(flows);
        self.net.origins.reserve_exact(flows);
    }

    /// Process at most `most` events up to and including `end`. Return true once none are left and the clock is at
    /// `end`.
    pub fn run(&mut self, app: &mut impl Application, end: Time, most: u32) -> bool {
        self.until = end;
        self.net.look_for_sources(self.links_may_stand());
        self.set_horizon();
        let step = self.foresees().unwrap_or(most);
        let mut left = most;
        while left > 0 {
            if step < most {
                self.foresee();
            }
            for _ in 0..step.min(left) {
                let Some((t, id)) = self.net.agenda.begin(end) else {
                    self.now = end;
                    self.net.catch_up(end, Time::NEVER);
                    return true;
                };
                self.happens(app, t, id);
            }
            left = left.saturating_sub(step);
        }
        false
    }

    /// Dispatch an event.
    #[inline(always)]
    fn happens(&mut self, app: &mut impl Application, t: Time, id: u32) {
        self.now = t;
        let index = (id >> KIND_BITS) as usize;
        match id & KIND_MASK {
            ARRIVAL => self.arrive(app, PacketId::of(index as u32)),
            CROSSING => self.net.cross(t, PacketId::of(index as u32)),
            LINK => self.link_event(app, index),
            TIMER => self.timer_event(app, index),
            MEETING => self.net.junction_event(t, index),
            WAKE => app.wake(self, index as FlowId),
            NEWS => self.tell(app, index),
            _ if index >= HOST_TICKS as usize => self.host_event(app, index - HOST_TICKS as usize),
            _ => app.tick(self, index as u32),
        }
    }

    /// Current time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Digest of all packets that reached a host so far.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Names of up to `most` links with work due now.
    pub fn due_links(&self, most: usize) -> Vec<String> {
        let links = &self.net.links;
        let packets = self.net.packets().filter(|&(at, ..)| at <= self.now).map(|(_, link, _)| link as usize);
        let mut due: Vec<usize> =
            packets.chain((0..links.len()).filter(|&i| links[i].link.armed() <= self.now)).collect();
        due.sort_unstable();
        due.dedup();
        due.iter().take(most).map(|&i| self.net.names.of(i)).collect()
    }

    /// Name of a link that could not follow its capacity schedule, or `None`.
    pub fn lost_link(&self) -> Option<String> {
        self.net.links.iter().position(|slot| slot.link.is_lost()).map(|i| self.net.names.of(i))
    }

    /// Names of the links, by number.
    pub fn link_names(&self) -> Vec<String> {
        (0..self.links()).map(|i| self.net.names.of(i)).collect()
    }

    /// Number of links.
    pub fn links(&self) -> usize {
        self.net.links.len()
    }

    /// Return the seed for a component of this run.
    pub fn seed_of(&self, name: &str) -> u64 {
        Stream::new(self.seed, name).next_u64()
    }

    /// Schedule a wake-up of `flow` at `at`.
    pub fn wake(&mut self, flow: FlowId, at: Time) {
        let id = flow << KIND_BITS | WAKE;
        match at > self.now {
            true => self.net.agenda.add_timer(at, flow, SENDER, None, id),
            false => self.net.agenda.add(self.now, id),
        }
    }

    /// Set the group of each flow; flows of one group share their hosts.
    pub fn tell_groups(&mut self, groups: &[u32]) {
        self.net.agenda.tell_groups(groups);
    }

    /// Schedule the recurring event `what` at `at`.
    pub fn tick(&mut self, what: u32, at: Time) {
        self.net.agenda.add(at, what << KIND_BITS | TICK);
    }

    /// Configure an end. Nothing is sent and no host is involved, so observers can use this without changing a run.
    pub fn set_up(&mut self, conn: ConnId, host: usize, how: impl FnOnce(&mut Transport)) {
        how(&mut self.end_at(end_index(conn, host)).transport);
    }

    /// Let the application act on one end, then send everything the end has to send.
    pub fn act(&mut self, conn: ConnId, host: usize, action: impl FnOnce(&mut Transport, Time)) {
        let index = end_index(conn, host);
        let now = self.now;
        action(&mut self.ends[index].as_mut().expect("invariant: open").transport, now);
        self.flush(index);
    }

    /// Departure times of the flow's data at its host.
    pub fn departures(&self, flow: FlowId) -> &Departures {
        &self.net.origins[flow as usize].departures
    }

    /// Take the rows of dropped packets; empty unless they are recorded.
    pub fn take_drops(&mut self) -> Vec<Dropped> {
        let mut drops = self.net.drops.take().unwrap_or_default();
        drops.sort_by_key(|dropped| (dropped.t, dropped.link)); // links may be ahead of each other in time
        drops
    }

    /// Take the captured packets; empty unless they are captured.
    pub fn take_captured(&mut self) -> Vec<Captured> {
        self.captured.take().map(Noted::into_packets).unwrap_or_default()
    }

    /// Process a link's event: a packet leaves the link, or its queue starts another transmission.
    #[inline]
    fn link_event(&mut self, app: &mut impl Application, index: usize) {
        let now = self.now;
        let slot = &mut self.net.links[index];
        if slot.link.armed() != now {
            return; // replaced by an earlier event
        }
        if let Some(open) = self.hosts.as_mut().and_then(|hosts| hosts.links_stand_until(now)) {
            slot.link.set_armed(open);
            let link = index as u32;
            self.net.agenda.add_of_link(now, open, link, link << KIND_BITS | LINK);
            return;
        }
        if let Some(id) = self.net.link_event(now, index as u32) {
            self.arrive_from_wire(app, id);
        }
    }

    /// Deliver a packet taken from a link's wire by an event.
    #[inline(never)]
    fn arrive_from_wire(&mut self, app: &mut impl Application, id: PacketId) {
        self.arrive(app, id);
    }

    /// Deliver a packet to its end, and send the response.
    #[inline(always)]
    fn arrive(&mut self, app: &mut impl Application, id: PacketId) {
        let now = self.now;
        let packet = &self.net.pool[id];
        let conn = packet.conn;
        let host = if packet.forward { RECEIVER } else { SENDER };
        let index = 2 * (conn & SLOT_MASK) as usize + host;
        let Some(end) = self.ends[index].as_mut().filter(|end| end.conn == conn) else {
            return self.vanish(id);
        };
        if end.process.is_some() {
            return self.reach_host(app, index, id);
        }
        match self.takes_notes {
            false => end.receive(now, packet, &mut self.digest),
            true => {
                self.net.gauges.iter_mut().for_each(|gauges| gauges.arrive(now, packet));
                end.receive_noted(
                    now,
                    host,
                    packet,
                    &mut self.digest,
                    &mut self.captured,
                    &mut self.net.gauges,
                );
            }
        }
        self.net.pool.release(id);
        if !end.transport.has_nothing(now) {
            end.send(now, index, &mut self.net, &mut self.common, &mut self.captured);
        }
        if let Some(deadline) = end.sooner() {
            let reads = deadline == now && self.net.shortcuts.turns && end.transport.reads_later();
            if reads && self.net.agenda.is_over() {
                end.armed[1] = Time::NEVER; // as if an event had been scheduled and had fired
                return self.take_turn(app, index);
            }
            end.arm_at(deadline, index, &mut self.net.agenda);
        }
        if end.tells() && !end.transport.reads_later() {
            if end.transport.learns_later() && !(self.net.shortcuts.turns && self.net.agenda.is_over()) {
                return self.net.agenda.add(now, (index as u32) << KIND_BITS | NEWS);
            }
            let flow = end.flow;
            app.progress(self, ConnId(conn), flow, host);
        }
    }

    /// Notify the application of an end, after all packets of this instant (in Linux a process runs after the
    /// softirq).
    #[inline(never)]
    fn tell(&mut self, app: &mut impl Application, index: usize) {
        let Some(end) = self.ends[index].as_ref().filter(|end| end.tells()) else { return };
        let (conn, flow) = (ConnId(end.conn), end.flow);
        app.progress(self, conn, flow, index & 1);
    }

    /// Discard a packet of a closed connection; nothing is sent in response.
    #[cold]
    #[inline(never)]
    fn vanish(&mut self, id: PacketId) {
        let packet = self.net.pool.remove(id);
        self.net.freight.lose(&packet);
        self.net.gauges.iter_mut().for_each(|gauges| gauges.arrive(self.now, &packet));
    }

    /// Process an endpoint's timer event; the timer may have been re-armed since.
    fn timer_event(&mut self, app: &mut impl Application, index: usize) {
        let now = self.now;
        let Some(end) = self.ends[index].as_mut().filter(|end| end.armed[0] == now) else {
            return; // replaced by another event, or left over from an earlier connection
        };
        end.armed = [end.armed[1], Time::NEVER];
        if !end.is_due(now) {
            end.arm(index, &mut self.net.agenda);
            return; // the deadline has moved since the event was scheduled
        }
        if end.process.is_some() {
            return self.run_process(app, index);
        }
        self.timer_expires(app, index);
    }

    /// Let the application of an end read, without an event.
    #[inline(never)]
    fn take_turn(&mut self, app: &mut impl Application, index: usize) {
        self.timer_expires(app, index);
    }

    /// Process the expired timer of an endpoint.
    #[inline(always)]
    fn timer_expires(&mut self, app: &mut impl Application, index: usize) {
        let now = self.now;
        let end = self.end_at(index);
        end.transport.on_timer(now);
        let (conn, flow) = (ConnId(end.conn), end.flow);
        // A paced sender has a timer event for every packet. Unwatched ends therefore report only failures.
        let tells = end.tells() || end.transport.has_failed();
        self.flush(index);
        if tells {
            app.progress(self, conn, flow, index & 1);
        }
    }

    /// Send all packets an end has to send, and keep its timer armed.
    #[inline(never)]
    fn flush(&mut self, index: usize) {
        let end = self.ends[index].as_mut().expect("invariant: open");
        match &end.process {
            None => end.answer(self.now, index, &mut self.net, &mut self.common, &mut self.captured),
            Some(_) => self.wake_process(index),
        }
    }
}
