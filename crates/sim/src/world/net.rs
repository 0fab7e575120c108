//! Everything between the hosts: links, where packets go behind each, and what they refuse.
//!
//! A packet whose time of leaving a link is known is passed on to the next link at once, without an event, where that
//! link has no other source and looks at no clock ([`Link::takes_ahead`]): it gets its packets in order, only sooner.
//! Up to the horizon, the next instant at which somebody looks at links: what they count is true then. A queue that holds its
//! packets may also be behind the time: what left it is told when the next packet comes, or before somebody could see it.

use std::rc::Rc;

use ackclock_core::packet::Load;
use ackclock_core::{FlowId, Packet, Span, Stream, Time};
use ackclock_net::host::Departures;
use ackclock_net::{Counters, Link, LinkConfig, PacketId, Pool, Refused, Underway};

mod next;
#[cfg(test)]
mod tests;

use super::agenda::{Agenda, ARRIVAL, CROSSING, KIND_BITS, LINK};
use super::World;
use crate::performance::Gauges;
use next::{Hop, Next, AHEAD, ALONE};

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

impl World {
    /// Lay the way of the next flow (they count from 0): links forward and back, neither empty, none twice.
    pub fn add_route(&mut self, forward: &[u32], backward: &[u32]) {
        let flow = self.net.origins.len();
        let line = self.net.links[forward[0] as usize].link.rate();
        self.net.origins.push(Origin { first: [backward[0], forward[0]], departures: Departures::new(line) });
        for (direction, way) in [backward, forward].into_iter().enumerate() {
            self.net.links[way[0] as usize].learn_source(Source::Several);
            for (i, &link) in way.iter().enumerate() {
                let next = way.get(i + 1).map_or(Hop::ARRIVED, |&next| Hop(next));
                self.net.links[link as usize].next.learn(2 * flow + direction, next);
                if let Some(&next) = way.get(i + 1) {
                    self.net.links[next as usize].learn_source(Source::Link(link));
                }
            }
        }
        (self.net.knows_sources, self.net.horizon) = (false, Time::ZERO);
    }

    /// Tell links that share by hosts who lives where: by flow, numbers of the sending and the receiving host.
    pub fn tell_hosts(&mut self, hosts: &Rc<[[u32; 2]]>) {
        self.net.links.iter_mut().for_each(|slot| slot.link.learn_hosts(hosts));
    }

    /// Measure delays, round-trip times and losses of each flow; called after the last way is laid.
    pub fn measure(&mut self, from: Time) {
        self.net.gauges = Some(Box::new(Gauges::new(from, self.net.origins.len())));
    }

    /// What was measured.
    pub fn gauges(&self) -> Option<&Gauges> {
        self.net.gauges.as_deref()
    }

    /// Packets that wait at a link.
    pub fn waiting(&mut self, link: usize) -> u32 {
        self.net.links[link].link.waiting(&mut self.net.pool, self.now)
    }

    /// The sums of every link, each in a box of its own: of many links they fit into the room that connections have left, where
    /// a vector would not.
    pub fn link_counters(&mut self) -> Vec<Box<Counters>> {
        let underway = self.net.underway();
        let links = self.net.links.iter_mut().zip(underway);
        let count = |(slot, underway): (&mut LinkSlot, Underway)| {
            Box::new(slot.link.counters(&mut self.net.pool, self.now, underway))
        };
        links.map(count).collect()
    }

    /// Nobody asks for links any more: give back their room, which tables may need.
    pub fn forget_links(&mut self) {
        self.net.links = Vec::new();
    }

    /// Links start counting anew.
    pub fn count_links_from_now(&mut self) {
        let underway = self.net.underway();
        for (slot, underway) in self.net.links.iter_mut().zip(underway) {
            slot.link.count_from(&mut self.net.pool, self.now, underway);
        }
    }

    /// Nobody will look at links before `at`: up to there the network may be ahead of the time.
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

    /// Whether a machine may stop its links.
    pub(super) fn links_may_stand(&self) -> bool {
        #[cfg(test)]
        if tests::NOTHING_AHEAD.get() {
            return true;
        }
        self.hosts.as_ref().is_some_and(|hosts| hosts.links_may_stand())
    }

    /// Restart the loss models on the way of `flow`, as the `k`-th of their sequences.
    pub fn restart_losses(&mut self, flow: FlowId, k: u32) {
        let seed = Stream::new(self.seed, &format!("fetch.{k}")).next_u64();
        for direction in [0, 1] {
            let mut hop = Hop(self.net.origins[flow as usize].first[direction]);
            while hop.is_link() {
                let slot = &mut self.net.links[hop.link() as usize];
                slot.link.restart_loss(seed);
                hop = slot.next.of(2 * flow as usize + direction);
            }
        }
    }
}

/// Everything between the hosts.
pub(super) struct Net {
    pub(super) links: Vec<LinkSlot>,
    /// The packets on them.
    pub(super) pool: Pool,
    /// Nothing from here on is computed ahead.
    pub(super) horizon: Time,
    /// [`Net::look_for_sources`] was called since the last way was laid.
    knows_sources: bool,
    pub(super) agenda: Agenda,
    /// By flow.
    pub(super) origins: Vec<Origin>,
    pub(super) framing_bytes: u32,
    pub(super) drops: Option<Vec<Dropped>>,
    pub(super) gauges: Option<Box<Gauges>>,
}

/// Where the packets of a flow come from.
pub(super) struct Origin {
    /// The first link of its way back and of its way forward.
    pub(super) first: [u32; 2],
    pub(super) departures: Departures,
}

impl Net {
    /// These links, on no way yet.
    pub(super) fn new(links: &[LinkConfig], framing_bytes: u32, seed: u64, drops: bool) -> Net {
        Net {
            links: links.iter().map(|config| LinkSlot::new(config, seed)).collect(),
            pool: Pool::default(),
            horizon: Time::ZERO,
            knows_sources: false,
            agenda: Agenda::default(),
            origins: Vec::new(),
            framing_bytes,
            drops: drops.then(Vec::new),
            gauges: None,
        }
    }

    /// All ways are laid: note at each hop how packets go on.
    pub(super) fn look_for_sources(&mut self, may_stand: bool) {
        if std::mem::replace(&mut self.knows_sources, true) {
            return;
        }
        let mut takes: Vec<bool> = self.links.iter().map(LinkSlot::takes_ahead).collect();
        self.look_for_queues_told_late(&mut takes);
        for slot in &mut self.links {
            for hop in slot.next.hops() {
                let how = match slot.passes_ahead && !may_stand {
                    true if hop.is_link() && takes[hop.link() as usize] => AHEAD,
                    true => ALONE,
                    false => 0,
                };
                *hop = Hop(hop.link() | how);
            }
        }
    }

    /// By link: packets that have their own events and have not left it yet.
    fn underway(&self) -> Vec<Underway> {
        let mut underway = vec![Underway::default(); self.links.len()];
        for (_, link, id) in self.agenda.packets() {
            let (packet, sum) = (&self.pool[id], &mut underway[link as usize]);
            sum.segments += packet.segments() as u64;
            sum.bytes += packet.bytes as u64;
        }
        underway
    }

    /// Find queues that may be told late what leaves them, the last on a way first, and add those that get packets ahead of
    /// time to the links of which that is known.
    fn look_for_queues_told_late(&mut self, takes: &mut [bool]) {
        let holds = |slot: &LinkSlot| slot.link.takes_ahead() && slot.link.holds();
        let mut open: Vec<usize> = (0..takes.len()).filter(|&link| holds(&self.links[link])).collect();
        open.iter().for_each(|&link| takes[link] = false);
        loop {
            let before = open.len();
            open.retain(|&link| {
                let slot = &mut self.links[link];
                slot.told_late = !slot.next.ends
                    && slot.next.hops().all(|hop| !hop.is_link() || takes[hop.link() as usize]);
                takes[link] = slot.told_late && slot.takes_ahead();
                !slot.told_late
            });
            if open.len() == before {
                return;
            }
        }
    }

    /// A packet leaves its host.
    pub(super) fn send(&mut self, now: Time, packet: &Packet) {
        *self.pool.vacant() = *packet;
        self.depart(now);
    }

    /// The packet in the pool's vacant place leaves its host.
    #[inline(always)]
    pub(super) fn depart(&mut self, now: Time) {
        let (id, packet) = self.pool.take_in();
        let (way, load) = (way(packet), packet.load());
        let origin = &mut self.origins[packet.flow as usize];
        if packet.forward && packet.header.payload() > 0 {
            origin.departures.add(now, packet.bytes);
        }
        let first = origin.first[packet.forward as usize];
        if let Some(gauges) = &mut self.gauges {
            gauges.depart(now, packet);
        }
        self.offer(now, first, id, way, load);
    }

    /// [`Net::offer`], from one link to the next.
    #[inline(never)]
    fn pass_on(&mut self, now: Time, link: u32, id: PacketId) {
        let packet = &self.pool[id];
        self.offer(now, link, id, way(packet), packet.load());
    }

    /// A packet reaches a link at `at`, and those behind it as far as can be told.
    #[inline(always)]
    fn offer(&mut self, mut at: Time, mut link: u32, id: PacketId, way: usize, load: Load) {
        loop {
            let slot = &mut self.links[link as usize];
            let delivery = match slot.link.take(&mut self.pool, at, id, &load) {
                Ok(Some(delivery)) => delivery,
                Ok(None) => return self.is_held(at, link),
                Err(reason) => return self.is_refused(at, link, id, reason),
            };
            let next = slot.next.of(way);
            if next.is_alone() {
                slot.link.pass(&load);
                let since = at.max(std::mem::replace(&mut slot.last, delivery));
                return self.travel(since, delivery, link, next, id);
            }
            if delivery >= self.horizon || !next.is_ahead() || !slot.link.is_clear() {
                slot.link.put(&mut self.pool, at, id, delivery); // it travels, until an event
                return slot.arm(at, link, &mut self.agenda);
            }
            slot.link.pass(&load);
            (at, link) = (delivery, next.link());
        }
    }

    /// A packet is on its way from `link` to `next`, which it reaches at `at`; its event is in the place that it would get if it were
    /// added at `since`.
    #[inline(always)]
    fn travel(&mut self, since: Time, at: Time, link: u32, next: Hop, id: PacketId) {
        let kind = if next.is_link() { CROSSING } else { ARRIVAL };
        self.pool.send_to(id, next.link());
        self.agenda.add_of_link(since, at, link, id.number() << KIND_BITS | kind);
    }

    /// A packet reaches the link that it goes to.
    #[inline(always)]
    pub(super) fn cross(&mut self, now: Time, id: PacketId) {
        let packet = &self.pool[id];
        self.offer(now, self.pool.goes_to(id), id, way(packet), packet.load());
    }

    /// A link holds a packet that reached it at `at`.
    #[inline(never)]
    fn is_held(&mut self, at: Time, link: u32) {
        self.run_ahead(link);
        let slot = &mut self.links[link as usize];
        slot.arm_at(slot.due(self.horizon), at, link, &mut self.agenda);
        self.tell_head_drops(link);
    }

    #[inline(never)]
    fn is_refused(&mut self, t: Time, link: u32, id: PacketId, reason: Refused) {
        let packet = self.pool.remove(id);
        if let Some(gauges) = &mut self.gauges {
            gauges.lose(t, &packet);
        }
        if let Some(drops) = &mut self.drops {
            drops.push(Dropped { t, link, packet, reason });
        }
        self.run_ahead(link);
        let slot = &mut self.links[link as usize];
        slot.arm_at(slot.due(self.horizon), t, link, &mut self.agenda);
        self.tell_head_drops(link);
    }

    /// A link has something to do at `now`: the packet that reaches its host, if one does.
    #[inline]
    pub(super) fn link_event(&mut self, now: Time, link: u32) -> Option<PacketId> {
        let slot = &mut self.links[link as usize];
        let Some(id) = slot.link.poll(&mut self.pool, now) else {
            self.queue_moves_on(now, link);
            return None;
        };
        let next = slot.next.of(way(&self.pool[id]));
        slot.rearm(now, link, self.horizon, &self.pool, &mut self.agenda);
        self.tell_head_drops(link);
        if !next.is_link() {
            return Some(id);
        }
        self.pass_on(now, next.link(), id);
        self.run_ahead(link);
        None
    }

    /// No packet left a link that has something to do: a transmission began, or the entry came too early.
    #[inline(never)]
    fn queue_moves_on(&mut self, now: Time, link: u32) {
        self.run_ahead(link);
        self.links[link as usize].rearm(now, link, self.horizon, &self.pool, &mut self.agenda);
        self.tell_head_drops(link);
    }

    /// Pass on what is on the wire of a link, as far as can be told.
    #[inline]
    fn run_ahead(&mut self, link: u32) {
        let slot = &self.links[link as usize];
        if slot.passes_ahead && !slot.link.is_clear() {
            self.pass_on_all(link);
        }
    }

    #[inline(never)]
    fn pass_on_all(&mut self, link: u32) {
        loop {
            let slot = &mut self.links[link as usize];
            let told = slot.link.first(&self.pool).and_then(|(delivery, packet)| {
                let next = slot.next.of(way(packet));
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

    /// Write down what an AQM dropped from the head of its queue.
    #[inline(never)]
    fn write_down_head_drops(&mut self, link: u32) {
        while let Some((t, packet, reason)) = self.links[link as usize].link.take_head_drops() {
            if let Some(gauges) = &mut self.gauges {
                gauges.lose(t, &packet);
            }
            if let Some(drops) = &mut self.drops {
                drops.push(Dropped { t, link, packet, reason });
            }
        }
    }
}

#[repr(C, align(64))] // what every packet touches comes first, on whole cache lines
pub(super) struct LinkSlot {
    /// Time of the link's entry in the queue.
    pub(super) armed: Time,
    next: Next,
    /// When the last packet with an event of its own leaves it.
    last: Time,
    /// See [`Link::passes_ahead`].
    passes_ahead: bool,
    /// Its queue holds packets, and they go on to links that take them ahead of time: see [`LinkSlot::due`].
    told_late: bool,
    pub(super) link: Link,
    source: Source,
}

impl LinkSlot {
    fn new(config: &LinkConfig, seed: u64) -> LinkSlot {
        let link = Link::new(config, seed);
        let passes_ahead = link.passes_ahead();
        LinkSlot {
            armed: Time::NEVER,
            last: Time::ZERO,
            next: Next::NONE,
            source: Source::None,
            passes_ahead,
            told_late: false,
            link,
        }
    }

    /// Packets come from there.
    fn learn_source(&mut self, source: Source) {
        self.source = match self.source {
            Source::None => source,
            known if known == source => source,
            _ => Source::Several,
        };
    }

    /// Whether it may get packets ahead of time: see [`Link::takes_ahead`]; and all of them come from one link.
    fn takes_ahead(&self) -> bool {
        matches!(self.source, Source::Link(_)) && self.link.takes_ahead()
    }

    /// See that an entry at or ahead of what the link does next is in the queue.
    #[inline]
    fn arm(&mut self, now: Time, link: u32, agenda: &mut Agenda) {
        self.arm_at(self.link.next_event(), now, link, agenda);
    }

    /// See that an entry at `due` or ahead of it is in the queue.
    #[inline]
    fn arm_at(&mut self, due: Time, now: Time, link: u32, agenda: &mut Agenda) {
        let due = due.max(now);
        if due < self.armed {
            self.armed = due;
            agenda.add_of_link(now, due, link, link << KIND_BITS | LINK);
        }
    }

    /// When the link must do what it does next. A packet that leaves a queue which held it is seen when it has crossed the
    /// link, and the next arrival tells what left before it: so there is time, as long as nobody looks.
    #[inline]
    fn due(&self, horizon: Time) -> Time {
        let next = self.link.next_event();
        if self.told_late && self.link.is_clear() {
            let [earliest, latest] = self.link.seen_after();
            if next + latest < horizon {
                return next + earliest;
            }
        }
        next
    }

    /// The entry is used up: make the next one.
    #[inline]
    fn rearm(&mut self, now: Time, link: u32, horizon: Time, pool: &Pool, agenda: &mut Agenda) {
        self.armed = self.due(horizon).max(now); // where links have stood still, packets are overdue
        if self.armed != Time::NEVER {
            let since = self.link.next_offered(pool).max(now);
            agenda.add_of_link(since, self.armed, link, link << KIND_BITS | LINK);
        }
    }
}

/// Where the packets of a link come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    None,
    Link(u32),
    /// Hosts, or more than one link.
    Several,
}

/// The way that a packet takes.
#[inline]
fn way(packet: &Packet) -> usize {
    2 * packet.flow as usize + packet.forward as usize
}

/// Most links: their number must fit an event id.
pub const MAX_LINKS: usize = 1 << 22;
