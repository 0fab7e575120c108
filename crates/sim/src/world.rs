//! The world: links, endpoints, the clock, and the only event loop.
//!
//! The event queue holds the packets that are next to reach a host, or a link to which several ways lead; one entry per busy link
//! of other kinds, and at most two per endpoint (its timer, re-armed lazily). The packets themselves lie in a pool.

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

use crate::capture::{Captured, Noted};
use crate::transport::{Freight, Transport};
use crate::world::layout::Layout;
use crate::world::shortcuts::Shortcuts;
use agenda::{ARRIVAL, CROSSING, KIND_BITS, KIND_MASK, LINK, MEETING, TICK, TIMER, WAKE};
use ends::{end_index, End, Slot, SLOT_MASK};
use hosted::Hosts;
use net::Net;

pub use crate::transport::{RECEIVER, SENDER};
pub use ends::{ConnId, MAX_SLOTS};
pub use hosted::{HOST_TICKS, MAX_HOSTS};
pub use net::{Dropped, MAX_LINKS};

/// Application on the hosts. The world calls it after the protocol has answered.
pub trait Application {
    /// An arrival or expiry at a watched end of `conn`.
    fn progress(&mut self, world: &mut World, conn: ConnId, flow: FlowId, host: usize);
    /// A wake-up of `flow` is due; superseded ones are delivered, too.
    fn wake(&mut self, world: &mut World, flow: FlowId);
    /// A recurring event is due.
    fn tick(&mut self, world: &mut World, what: u32);
}

/// Records of single packets that the world makes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sinks {
    /// Every packet at the hosts.
    pub capture: Option<u8>,
    /// Every dropped packet.
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
    /// Ends of closed connections, whose memory the next ones reuse.
    over: Vec<Option<End>>,
    opened: u32,
    captured: Option<Noted>,
    /// Packets are captured, or measured.
    takes_notes: bool,
    /// Fields that the packets of a train share, while they leave.
    common: Packet,
    /// End of the current call to [`World::run`]; next time at which link counters are read.
    until: Time,
    next_look: Time,
    /// Imperfect hosts, if there are any.
    hosts: Option<Box<Hosts>>,
}

impl World {
    /// Return a world with this network and no flows yet.
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

    /// Storage for bytes to which packets carry only an index.
    pub fn carry(&mut self, freight: &Freight) {
        self.net.freight = freight.clone();
    }

    /// Impossible report of a foreign stack, if one was made.
    pub fn fault(&self) -> Option<String> {
        self.net.freight.fault()
    }

    /// Datagrams of others' stacks whose bytes wait.
    pub fn freight(&self) -> usize {
        self.net.freight.held()
    }

    /// Reserve room for `flows` flows with at least one connection each.
    fn expect(&mut self, flows: usize) {
        self.ends.reserve_exact(2 * flows);
        self.slots.reserve_exact(flows);
        self.net.origins.reserve_exact(flows);
    }

    /// Process events up to and including `end`, but no more than `most`; return whether that was all.
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

    /// An event is due.
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
            _ if index >= HOST_TICKS as usize => self.host_event(app, index - HOST_TICKS as usize),
            _ => app.tick(self, index as u32),
        }
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Digest of all packets so far.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Names of links that have work to do now, at most this many.
    pub fn due_links(&self, most: usize) -> Vec<String> {
        let links = &self.net.links;
        let packets = self.net.packets().filter(|&(at, ..)| at <= self.now).map(|(_, link, _)| link as usize);
        let mut due: Vec<usize> =
            packets.chain((0..links.len()).filter(|&i| links[i].link.armed() <= self.now)).collect();
        due.sort_unstable();
        due.dedup();
        due.iter().take(most).map(|&i| self.net.names.of(i)).collect()
    }

    /// A link that could not follow its schedule.
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

    /// Return the seed of a component of this run.
    pub fn seed_of(&self, name: &str) -> u64 {
        Stream::new(self.seed, name).next_u64()
    }

    /// Wake `flow` at `at`.
    pub fn wake(&mut self, flow: FlowId, at: Time) {
        let id = flow << KIND_BITS | WAKE;
        match at > self.now {
            true => self.net.agenda.add_timer(at, flow, SENDER, None, id),
            false => self.net.agenda.add(self.now, id),
        }
    }

    /// Groups of the flows: those of one share hosts.
    pub fn tell_groups(&mut self, groups: &[u32]) {
        self.net.agenda.tell_groups(groups);
    }

    /// Call back for `what` at `at`.
    pub fn tick(&mut self, what: u32, at: Time) {
        self.net.agenda.add(at, what << KIND_BITS | TICK);
    }

    /// Set up an end. Nothing is sent and no host is involved, so that observers do not change a run.
    pub fn set_up(&mut self, conn: ConnId, host: usize, how: impl FnOnce(&mut Transport)) {
        how(&mut self.end_at(end_index(conn, host)).transport);
    }

    /// Let the application act on one end, then send what the end has to send.
    pub fn act(&mut self, conn: ConnId, host: usize, action: impl FnOnce(&mut Transport, Time)) {
        let index = end_index(conn, host);
        let now = self.now;
        action(&mut self.ends[index].as_mut().expect("invariant: open").transport, now);
        self.flush(index);
    }

    /// Time when the data of a flow left its host.
    pub fn departures(&self, flow: FlowId) -> &Departures {
        &self.net.origins[flow as usize].departures
    }

    /// Rows of dropped packets, if requested.
    pub fn take_drops(&mut self) -> Vec<Dropped> {
        let mut drops = self.net.drops.take().unwrap_or_default();
        drops.sort_by_key(|dropped| (dropped.t, dropped.link)); // links may be ahead of one another
        drops
    }

    /// Captured packets, if requested.
    pub fn take_captured(&mut self) -> Vec<Captured> {
        self.captured.take().map(Noted::into_packets).unwrap_or_default()
    }

    /// A link has something to do: a packet leaves it, or its queue moves on.
    #[inline]
    fn link_event(&mut self, app: &mut impl Application, index: usize) {
        let now = self.now;
        let slot = &mut self.net.links[index];
        if slot.link.armed() != now {
            return; // superseded by an earlier entry
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

    /// A packet that waited for the clock reaches its host.
    #[inline(never)]
    fn arrive_from_wire(&mut self, app: &mut impl Application, id: PacketId) {
        self.arrive(app, id);
    }

    /// A packet reaches its host, and is answered.
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
                end.armed[1] = Time::NEVER; // as if it had an entry
                return self.take_turn(app, index);
            }
            end.arm_at(deadline, index, &mut self.net.agenda);
        }
        if end.tells() && !end.transport.reads_later() {
            let flow = end.flow;
            app.progress(self, ConnId(conn), flow, host);
        }
    }

    /// A packet reaches a closed connection, which answers nothing.
    #[cold]
    #[inline(never)]
    fn vanish(&mut self, id: PacketId) {
        let packet = self.net.pool.remove(id);
        self.net.freight.lose(&packet);
        self.net.gauges.iter_mut().for_each(|gauges| gauges.arrive(self.now, &packet));
    }

    /// An endpoint's timer may have expired.
    fn timer_event(&mut self, app: &mut impl Application, index: usize) {
        let now = self.now;
        let Some(end) = self.ends[index].as_mut().filter(|end| end.armed[0] == now) else {
            return; // superseded, or of an earlier connection
        };
        end.armed = [end.armed[1], Time::NEVER];
        if !end.is_due(now) {
            end.arm(index, &mut self.net.agenda);
            return; // the deadline moved on since the entry was made
        }
        if end.process.is_some() {
            return self.run_process(app, index);
        }
        self.timer_expires(app, index);
    }

    /// A reader has its turn.
    #[inline(never)]
    fn take_turn(&mut self, app: &mut impl Application, index: usize) {
        self.timer_expires(app, index);
    }

    /// An endpoint's timer is due.
    #[inline(always)]
    fn timer_expires(&mut self, app: &mut impl Application, index: usize) {
        let now = self.now;
        let end = self.end_at(index);
        end.transport.on_timer(now);
        let (conn, flow) = (ConnId(end.conn), end.flow);
        // A paced sender has a timer for every packet, so an unwatched end reports only failure.
        let tells = end.tells() || end.transport.has_failed();
        self.flush(index);
        if tells {
            app.progress(self, conn, flow, index & 1);
        }
    }

    /// Send what an end has to send and keep its timer armed.
    #[inline(never)]
    fn flush(&mut self, index: usize) {
        let end = self.ends[index].as_mut().expect("invariant: open");
        match &end.process {
            None => end.answer(self.now, index, &mut self.net, &mut self.common, &mut self.captured),
            Some(_) => self.wake_process(index),
        }
    }
}
