//! Everything between the hosts: links, the next hop after each link, and dropped packets.
//!
//! If the departure time of a packet from its link is known, the packet is passed on to the next link at once,
//! without an event. This requires that the next link has no other source and reads no clock ([`Link::takes_ahead`]):
//! it then gets its packets in order, only earlier. A link never runs beyond the horizon, the next time at which link
//! counters are read, so the counters are right at that time. A queue that holds its packets may also lag behind: it
//! computes past departures when the next packet arrives, or before its state can be observed. A link at which paths
//! merge may lag behind as well: see `junction`.

use std::rc::Rc;
use std::sync::Arc;

use ackclock_core::packet::Load;
use ackclock_core::{FlowId, Packet, Span, Stream, Time};
use ackclock_net::host::Departures;
use ackclock_net::{Link, LinkConfig, PacketId, Pool, Recipe, Refused, Underway};

mod ahead;
mod counted;
mod film;
mod junction;
mod next;
#[cfg(test)]
mod tests;

use super::agenda::{Agenda, ARRIVAL, CROSSING, KIND_BITS, LINK};
use super::World;
use crate::transport::Freight;
use crate::world::gauges::Gauges;
use crate::world::layout::Layout;
use crate::world::names::Names;
use crate::world::shortcuts::Shortcuts;
use junction::Junction;
use next::{Hop, Next, Tables};

/// Dropped packet.
#[derive(Clone, Copy, Debug)]
pub struct Dropped {
    /// Time of the drop.
    pub t: Time,
    /// Link number.
    pub link: u32,
    /// The dropped packet.
    pub packet: Packet,
    /// Reason for the drop.
    pub reason: Refused,
}

impl World {
    /// Add the paths of the next flow (flows are numbered from 0): links forward and back, none of them empty, no
    /// link twice.
    pub(super) fn add_route(&mut self, forward: &[u32], backward: &[u32]) {
        let flow = self.net.origins.len();
        let line = self.net.links[forward[0] as usize].link.rate();
        self.net.origins.push(Origin { first: [backward[0], forward[0]], departures: Departures::new(line) });
        for (direction, way) in [backward, forward].into_iter().enumerate() {
            for (i, &link) in way.iter().enumerate() {
                let next = way.get(i + 1).map_or(Hop::ARRIVED, |&next| Hop(next));
                self.net.links[link as usize].next.learn(2 * flow + direction, next, &mut self.net.tables);
            }
        }
        (self.net.knows_sources, self.net.horizon) = (false, Time::ZERO);
    }

    /// Pass the hosts of the flows to the links, whose queues may share the rate between hosts: for each flow, the
    /// numbers of the sending and the receiving host.
    pub fn tell_hosts(&mut self, hosts: &Rc<[[u32; 2]]>) {
        self.net.links.iter_mut().for_each(|slot| slot.link.learn_hosts(hosts));
    }

    /// Declare that link counters are not read before `at`, so the network may run ahead up to that time.
    pub fn look_at_links_next(&mut self, at: Time) {
        self.next_look = at;
        self.set_horizon();
    }

    pub(super) fn set_horizon(&mut self) {
        self.net.horizon = match self.links_may_stand() {
            true => Time::ZERO,
            false => self.next_look.min(self.until + Span(1)),
        };
    }

    /// Whether a host may freeze the links.
    pub(super) fn links_may_stand(&self) -> bool {
        self.hosts.as_ref().is_some_and(|hosts| hosts.links_may_stand())
    }

    /// Restart the loss models on both paths of `flow` with the `k`-th seed. The layout has announced it
    /// ([`Layout::losses_restart`]).
    pub fn restart_losses(&mut self, flow: FlowId, k: u32) {
        let seed = Stream::new(self.seed, &format!("fetch.{k}")).next_u64();
        for direction in [0, 1] {
            let mut hop = Hop(self.net.origins[flow as usize].first[direction]);
            while hop.is_link() {
                let slot = &mut self.net.links[hop.link() as usize];
                slot.link.restart_loss(&self.net.names.of(hop.link() as usize), seed);
                hop = slot.next.of(2 * flow as usize + direction, &self.net.tables);
            }
        }
    }
}

/// Everything between the hosts.
#[derive(Clone)]
pub(super) struct Net {
    pub(super) links: Vec<LinkSlot>,
    /// Names of the links, shared by copies of the network.
    pub(super) names: Rc<Names>,
    tables: Tables,
    /// Packets in the network.
    pub(super) pool: Pool,
    /// Time up to which links may run ahead.
    pub(super) horizon: Time,
    /// Whether [`Net::look_for_sources`] has run since the last path was added.
    knows_sources: bool,
    pub(super) agenda: Agenda,
    junctions: Vec<Junction>,
    /// Index of each link's junction; ends with the last link that has one.
    junction_of: Vec<u32>,
    /// First links and departures of each flow.
    pub(super) origins: Vec<Origin>,
    pub(super) framing_bytes: u32,
    /// Shortcuts in use; trains are disabled if packets are captured.
    pub(super) shortcuts: Shortcuts,
    pub(super) drops: Option<Vec<Dropped>>,
    pub(super) gauges: Option<Box<Gauges>>,
    pub(super) freight: Freight,
}

/// Source of a flow's packets.
#[derive(Clone)]
pub(super) struct Origin {
    /// First links of the return path and of the forward path.
    pub(super) first: [u32; 2],
    pub(super) departures: Departures,
}

/// Properties that all packets of a train share on their path.
#[derive(Clone, Copy, Default)]
pub(super) struct Journey {
    /// First link of the path.
    pub(super) first: u32,
    /// See [`way`].
    pub(super) way: usize,
    pub(super) load: Load,
}

/// Record that a train of `length` packets leaves its host, where `packet` is their shared part. Return the
/// properties of the train.
#[inline(always)]
pub(super) fn set_out(origins: &mut [Origin], now: Time, packet: &Packet, length: u32) -> Journey {
    let origin = &mut origins[packet.flow as usize];
    if packet.forward && packet.header.payload() > 0 {
        origin.departures.add(now, packet.bytes, length);
    }
    Journey { first: origin.first[packet.forward as usize], way: way(packet), load: packet.load() }
}

impl Net {
    /// Create the links of this network, without any paths.
    pub(super) fn new(
        layout: &mut Layout,
        framing_bytes: u32,
        seed: u64,
        drops: bool,
        shortcuts: Shortcuts,
    ) -> Net {
        let recipes: Vec<_> = layout.kinds().map(Recipe::of).collect();
        let links = layout.links().zip(layout.numbers_of_kinds());
        let mut links: Vec<_> = links
            .map(|(config, kind)| LinkSlot::new(&recipes[kind as usize], &config, seed, shortcuts))
            .collect();
        links.iter_mut().filter(|_| layout.losses_restart).for_each(|slot| slot.link.expect_restarts());
        Net {
            links,
            names: Rc::new(layout.take_names()),
            tables: Tables::new(),
            pool: Pool::default(),
            horizon: Time::ZERO,
            knows_sources: false,
            agenda: Agenda::default(),
            junctions: Vec::new(),
            junction_of: Vec::new(),
            origins: Vec::new(),
            framing_bytes,
            shortcuts,
            drops: drops.then(Vec::new),
            gauges: None,
            freight: Freight::default(),
        }
    }

    /// Packets whose departure from a link is known: departure time, link number, and packet.
    pub(super) fn packets(&self) -> impl Iterator<Item = (Time, u32, PacketId)> + '_ {
        self.agenda.packets().chain(self.junctions.iter().flat_map(Junction::packets))
    }

    /// Per link, the packets in transit whose departure is known.
    fn underway(&self) -> Vec<Underway> {
        let mut underway = vec![Underway::default(); self.links.len()];
        for (_, link, id) in self.packets() {
            let (packet, sum) = (&self.pool[id], &mut underway[link as usize]);
            sum.segments += packet.segments() as u64;
            sum.bytes += packet.bytes as u64;
        }
        underway
    }

    /// Send a packet from its host.
    pub(super) fn send(&mut self, now: Time, packet: &Packet) {
        *self.pool.vacant() = *packet;
        let Journey { first, way, load } = set_out(&mut self.origins, now, packet, 1);
        self.depart(now, first, way, load);
    }

    /// Send a train of packets from one host. `common` is their shared part, and `next` turns a copy of it into the
    /// next packet.
    #[inline(never)]
    pub(super) fn send_train(
        &mut self,
        now: Time,
        common: &Packet,
        length: u32,
        mut next: impl FnMut(&mut Packet),
    ) {
        let journey = set_out(&mut self.origins, now, common, length);
        for _ in 0..length {
            let (id, packet) = self.pool.copy(common);
            next(packet);
            self.go(now, id, journey);
        }
    }

    /// Send the packet in the pool's vacant slot from its host.
    #[inline(never)]
    pub(super) fn depart(&mut self, now: Time, first: u32, way: usize, load: Load) {
        let id = self.pool.take_in();
        self.go(now, id, Journey { first, way, load });
    }

    #[inline(always)]
    fn go(&mut self, now: Time, id: PacketId, journey: Journey) {
        if let Some(gauges) = &mut self.gauges {
            gauges.depart(now, &self.pool[id]);
        }
        self.offer(now, journey.first, id, journey.way, journey.load);
    }

    /// Offer a packet to the next link; see [`Net::offer`].
    #[inline(never)]
    fn pass_on(&mut self, now: Time, link: u32, id: PacketId) {
        let packet = &self.pool[id];
        self.offer(now, link, id, way(packet), packet.load());
    }

    /// Offer a packet to a link that it reaches at `at`, and pass it on from link to link as far as departure times
    /// are known.
    #[inline(always)]
    fn offer(&mut self, mut at: Time, mut link: u32, id: PacketId, way: usize, load: Load) {
        let (links, horizon) = (&mut self.links[..], self.horizon);
        loop {
            let slot = &mut links[link as usize];
            let delivery = match slot.link.take(&mut self.pool, at, id, load) {
                Ok(Some(delivery)) => delivery,
                Ok(None) => return self.is_held(at, link),
                Err(reason) => return self.is_refused(at, link, id, reason),
            };
            let next = slot.next.of(way, &self.tables);
            if next.is_ahead() && delivery < horizon && slot.link.is_clear() {
                (at, link) = (delivery, next.link());
                continue;
            }
            if next.is_alone() {
                let since = at.max(std::mem::replace(&mut slot.last, delivery));
                return self.travel(since, delivery, link, next, (id, way, load));
            }
            slot.link.put(&mut self.pool, at, id, delivery); // the packet waits for the link's event
            return slot.arm(at, link, &mut self.agenda);
        }
    }

    /// Put a packet in transit from `link` to `next`, which it reaches at `at`. Its event is ordered as if it were
    /// added at `since`.
    #[inline(always)]
    fn travel(&mut self, since: Time, at: Time, link: u32, next: Hop, packet: (PacketId, usize, Load)) {
        let (id, mut kind) = (packet.0, ARRIVAL);
        if next.is_link() {
            if next.meets() {
                let number = self.junction_of[next.link() as usize];
                return self.meet(number as usize, since, at, link, packet);
            }
            self.pool.send_to(id, next.link());
            kind = CROSSING;
        }
        self.agenda.add_of_link(since, at, link, id.number() << KIND_BITS | kind);
    }

    /// Offer a packet to the link it has reached.
    #[inline(always)]
    pub(super) fn cross(&mut self, now: Time, id: PacketId) {
        let packet = &self.pool[id];
        self.offer(now, self.pool.goes_to(id), id, way(packet), packet.load());
    }

    /// Update the events of a link that has queued a packet at `at`.
    #[inline(never)]
    fn is_held(&mut self, at: Time, link: u32) {
        self.run_ahead(link);
        let slot = &mut self.links[link as usize];
        slot.arm_at(slot.due(self.horizon), at, link, &mut self.agenda);
        self.tell_head_drops(link);
    }

    #[inline(never)]
    fn is_refused(&mut self, t: Time, link: u32, id: PacketId, reason: Refused) {
        if self.drops.is_some() || self.gauges.is_some() || self.freight.held() > 0 {
            self.tell_of_refused(t, link, id, reason);
        }
        self.pool.release(id); // the packet is usually not read here, and may no longer be in the cache
        self.run_ahead(link);
        let slot = &mut self.links[link as usize];
        slot.arm_at(slot.due(self.horizon), t, link, &mut self.agenda);
        self.tell_head_drops(link);
    }

    #[inline(never)]
    fn tell_of_refused(&mut self, t: Time, link: u32, id: PacketId, reason: Refused) {
        let packet = self.pool[id];
        self.freight.lose(&packet);
        if let Some(gauges) = &mut self.gauges {
            gauges.lose(t, &packet);
        }
        if let Some(drops) = &mut self.drops {
            drops.push(Dropped { t, link, packet, reason });
        }
    }

    /// Process a link's event at `now`. Return the packet if it reaches its host.
    #[inline]
    pub(super) fn link_event(&mut self, now: Time, link: u32) -> Option<PacketId> {
        let slot = &mut self.links[link as usize];
        let Some(id) = slot.link.poll(&mut self.pool, now) else {
            self.queue_moves_on(now, link);
            return None;
        };
        let next = slot.next.of(way(&self.pool[id]), &self.tables);
        slot.rearm(now, link, self.horizon, &self.pool, &mut self.agenda);
        self.tell_head_drops(link);
        if !next.is_link() {
            return Some(id);
        }
        self.pass_on(now, next.link(), id);
        self.run_ahead(link);
        None
    }

    /// Process a link event at which no packet left the link: a transmission began, or the event fired too early.
    #[inline(never)]
    fn queue_moves_on(&mut self, now: Time, link: u32) {
        self.run_ahead(link);
        self.links[link as usize].rearm(now, link, self.horizon, &self.pool, &mut self.agenda);
        self.tell_head_drops(link);
    }

    /// Pass on the packets on a link's wire whose departure times are known.
    #[inline]
    fn run_ahead(&mut self, link: u32) {
        let slot = &self.links[link as usize];
        if slot.next.ahead && !slot.link.is_clear() {
            self.pass_on_all(link);
        }
    }

    #[inline(never)]
    fn pass_on_all(&mut self, link: u32) {
        loop {
            let slot = &mut self.links[link as usize];
            let told = slot.link.first(&self.pool).and_then(|(delivery, packet)| {
                let next = slot.next.of(way(packet), &self.tables);
                (delivery < self.horizon && next.is_ahead()).then_some((delivery, next))
            });
            let Some((delivery, next)) = told else { return slot.link.renew_next(&self.pool) };
            let id = slot.link.pop_ahead(&mut self.pool);
            self.pass_on(delivery, next.link(), id);
        }
    }

    #[inline]
    fn tell_head_drops(&mut self, link: u32) {
        if self.links[link as usize].link.has_head_drops() {
            self.write_down_head_drops(link);
        }
    }

    /// Forward the copies of packets duplicated by a link.
    fn pass_copies(&mut self, link: u32) {
        while let Some((at, mut copy)) = self.links[link as usize].link.take_copy() {
            self.freight.copy(&mut copy);
            if let Some(gauges) = &mut self.gauges {
                gauges.depart(at, &copy);
            }
            let id = self.pool.insert(&copy);
            self.pass_on(at, link, id);
        }
    }

    /// Record the packets that an AQM has dropped from the head of its queue, and forward duplicates.
    #[inline(never)]
    fn write_down_head_drops(&mut self, link: u32) {
        self.pass_copies(link);
        while let Some((t, packet, reason)) = self.links[link as usize].link.take_head_drops() {
            self.freight.lose(&packet);
            if let Some(gauges) = &mut self.gauges {
                gauges.lose(t, &packet);
            }
            if let Some(drops) = &mut self.drops {
                drops.push(Dropped { t, link, packet, reason });
            }
        }
    }
}

#[derive(Clone)]
#[repr(C, align(64))] // two cache lines; the first has the fields that every packet uses
pub(super) struct LinkSlot {
    next: Next,
    /// Departure time of the last packet with its own event.
    last: Time,
    /// The link, which also stores the time of its pending event (`armed`).
    pub(super) link: Link,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(std::mem::size_of::<LinkSlot>() == 128, "there are four for each flow");

impl LinkSlot {
    fn new(recipe: &Arc<Recipe>, config: &LinkConfig, seed: u64, shortcuts: Shortcuts) -> LinkSlot {
        let mut link = Link::made_by(recipe, config, seed);
        if !shortcuts.links {
            link.ask_for_everything();
        }
        if !shortcuts.runs {
            link.store_single_packets();
        }
        let next = Next::none(link.passes_ahead());
        LinkSlot { last: Time::ZERO, next, link }
    }

    /// Ensure that an event is pending at or before the link's next action.
    #[inline]
    fn arm(&mut self, now: Time, link: u32, agenda: &mut Agenda) {
        self.arm_at(self.link.next_event(), now, link, agenda);
    }

    /// Ensure that an event is pending at or before `due`.
    #[inline]
    fn arm_at(&mut self, due: Time, now: Time, link: u32, agenda: &mut Agenda) {
        let due = due.max(now);
        if due < self.link.armed() {
            self.link.set_armed(due);
            agenda.add_of_link(now, due, link, link << KIND_BITS | LINK);
        }
    }

    /// Time of the link's next event. A packet that has left a holding queue can be observed only after it has
    /// crossed the link, and earlier departures can be computed at the next arrival. The event may therefore be later
    /// than the departure, unless counters are read in between.
    #[inline]
    fn due(&self, horizon: Time) -> Time {
        let next = self.link.next_event();
        if self.next.told_late && self.link.is_clear() {
            let [earliest, latest] = self.link.seen_after();
            if next + latest < horizon {
                return next + earliest;
            }
        }
        next
    }

    /// Schedule the next event of a link whose event has fired.
    #[inline]
    fn rearm(&mut self, now: Time, link: u32, horizon: Time, pool: &Pool, agenda: &mut Agenda) {
        let armed = self.due(horizon).max(now); // packets may be overdue after the links were frozen
        self.link.set_armed(armed);
        if armed != Time::NEVER {
            let since = self.link.next_offered(pool).max(now);
            agenda.add_of_link(since, armed, link, link << KIND_BITS | LINK);
        }
    }
}

/// Index of a packet's path: twice the flow, plus one in the forward direction.
#[inline]
fn way(packet: &Packet) -> usize {
    2 * packet.flow as usize + packet.forward as usize
}

/// Maximum number of links: a link number must fit into an event id.
pub const MAX_LINKS: usize = 1 << 22;
