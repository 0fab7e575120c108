//! A unidirectional link: loss model -> queue -> rate -> propagation delay (-> jitter, aggregation, reordering),
//! in this order.
//!
//! Speed: where the queue decides on arrival, so does the transmitter. A packet that is accepted at `now` starts its
//! transmission at max(now, `busy_until`) and leaves the far end one transmission time and the delay later:
//! [`Link::take`] tells when. The caller puts it on the wire ([`Link::put`]), and the only event left is its delivery;
//! or, where the next link has no other source, passes it on at once, and there is none. CoDel and
//! FQ-CoDel drop at departure: such a link holds its packets, and has an event for each departure too, unless the next
//! arrival comes first. A link with netem's limit hands a packet on when its transmission starts (see
//! `queue/netem_limit.rs`).
//!
//! An offer or a poll at `now` takes everything before and at `now` into account: a transmission that ends, or a place
//! that becomes free, in this very nanosecond does so first. Hence equal times have one outcome only.
//!
//! Length: one packet's way through the features of a link, in their order.

use ahead::Ahead;
use asking::ask;
pub use config::{LinkConfig, LinkParams};
pub use counters::{Counters, Underway};
use crowd::Crowd;
use extras::Extras;
pub use film::Leg;
pub use merging::Merging;
pub use rest::Recipe;
use rest::{rest_of, Rest};
pub use sole::SoleLink;

use std::sync::Arc;

use ackclock_core::packet::{Ecn, Load};
use ackclock_core::{Packet, Rate, Span, Stream, Time};

use crate::ecn_fault::Place;
use crate::pool::{PacketId, Pool};
use crate::queue::{Admission, Arrival, Queue, Refused};
use crate::reorder::Chooser;
use crate::transmitter::Transmitter;

/// A unidirectional link. Its packets are in a pool shared with others, the same one at every call; see
/// [`SoleLink`] for a link with packets of its own.
#[derive(Clone)]
#[repr(C)] // in this order, so that a packet like the last one, that finds no packet waiting, touches the first 48 bytes only
pub struct Link {
    kind: Kind,
    /// Whether there may be unreported lost or refused packets, or a copy: a card in front of the link
    /// merges, or packets are duplicated or damaged.
    tells: bool,
    ahead: Ahead,
    /// Packets on its wire.
    on_wire: u32,
    busy_until: Time,
    delay: Span,
    transmitter: Transmitter,
    recipe: Arc<Recipe>,
    /// Parts that a plain link allocates on demand: most access links of many flows never need them.
    rest: Option<Box<Rest>>,
}

/// Checks that a packet meets on its way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A fixed rate and delay behind a drop-tail queue.
    Plain,
    /// Checks of a queue that holds its packets.
    Holding,
    /// Anything else.
    More,
}

impl Link {
    /// An idle link at the start of a run. Its random streams are those of `<name>.loss`, `<name>.queue`,
    /// `<name>.jitter`, `<name>.netem-jitter`, `<name>.reorder`, `<name>.duplicate`, `<name>.corrupt`, `<name>.wifi`, `<name>.ecn-fault` and
    /// `<name>.outage` in a run with this seed.
    pub fn new(config: &LinkConfig, seed: u64) -> Link {
        Link::made_by(&Recipe::of(config), config, seed)
    }

    /// Return a link by a recipe shared with equal links.
    pub fn made_by(recipe: &Arc<Recipe>, config: &LinkConfig, seed: u64) -> Link {
        let stream = |part: &str| component_stream(seed, &config.name, part);
        let extras = Extras::new(config, stream);
        let mut queue = Queue::new(&config.queue, || stream("queue"));
        if let (Queue::DropTail(queue), Some(_)) = (&mut queue, &config.merging) {
            queue.count_packets();
        }
        debug_assert_eq!(queue.holds(), config.queue.holds());
        let kind = match queue {
            _ if extras.is_some() => Kind::More,
            Queue::DropTail(_) => Kind::Plain,
            _ if queue.holds() => Kind::Holding,
            _ => Kind::More,
        };
        Link {
            tells: config.merging.is_some() || config.duplicate > 0.0 || config.corrupt > 0.0,
            kind,
            ahead: Ahead::of(config),
            on_wire: 0,
            busy_until: Time::ZERO,
            delay: config.delay,
            transmitter: Transmitter::default(),
            recipe: recipe.clone(),
            rest: (kind != Kind::Plain).then(|| Rest::new(queue, extras)),
        }
    }

    /// Check every feature for each packet, which changes only the time that it takes.
    pub fn ask_for_everything(&mut self) {
        self.rest();
        self.kind = Kind::More;
    }

    /// Store waiting packets one by one, which takes longer and changes nothing else.
    pub fn store_single_packets(&mut self) {
        self.crowd().backlog.store_single_packets();
    }

    /// Rate of the link; infinite where it varies.
    pub fn rate(&self) -> Rate {
        match self.capacity() {
            None => self.recipe.rate,
            Some(_) => Rate::INFINITE,
        }
    }

    /// Whether it could not follow its schedule: see [`MOST_PHASES`](crate::capacity::MOST_PHASES).
    pub fn is_lost(&self) -> bool {
        self.capacity().is_some_and(|capacity| capacity.is_lost())
    }

    /// Whether packets may be offered ahead of time, if they arrive in order: nothing here depends on the
    /// clock, and nothing restarts.
    pub fn takes_ahead(&self) -> bool {
        self.ahead.takes
    }

    /// Whether a packet may be passed on as soon as its departure is known: nothing overtakes or replaces it,
    /// nothing counts the packets on the wire, and no other event of the link depends on it.
    pub fn passes_ahead(&self) -> bool {
        self.ahead.passes
    }

    /// A packet arrives at the near end. `now` never decreases from call to call. Afterwards [`Link::next_event`]
    /// may be earlier than before. A packet that is refused stays the caller's.
    #[inline]
    pub fn offer(&mut self, pool: &mut Pool, now: Time, id: PacketId) -> Result<(), Refused> {
        let load = pool[id].load();
        if let Some(delivery) = self.take(pool, now, id, load)? {
            self.put(pool, now, id, delivery);
        }
        Ok(())
    }

    /// Offer a packet without the last step: returns its departure from the far end. The packet then belongs
    /// to the caller, for [`Link::put`], or to be passed on ahead of time. `None`: the link holds it.
    #[inline(always)]
    pub fn take(
        &mut self,
        pool: &mut Pool,
        now: Time,
        id: PacketId,
        load: Load,
    ) -> Result<Option<Time>, Refused> {
        match self.kind {
            Kind::Plain => self.take_plainly(now, load).map(Some),
            _ => self.take_otherwise(pool, now, id, load),
        }
    }

    /// [`Link::take`] for a link with only a drop-tail queue and a fixed rate and delay.
    #[inline(always)]
    fn take_plainly(&mut self, now: Time, load: Load) -> Result<Time, Refused> {
        let start = now.max(self.busy_until);
        if start > now && !self.waits_plainly(now, load) {
            return Err(Refused::QueueFull);
        }
        let tally = self.transmitter.tally(&self.recipe.rate, load);
        tally.count();
        self.busy_until = start + tally.tx();
        Ok(self.busy_until + self.delay)
    }

    /// The link is busy: return whether the packet waits; otherwise there is no room.
    #[inline(always)]
    fn waits_plainly(&mut self, now: Time, load: Load) -> bool {
        let start = self.busy_until;
        let as_before = match self.rest.as_deref_mut() {
            Some(Rest { queue: Queue::DropTail(queue), crowd, .. }) => {
                crowd.wait_as_before(queue, now, start, load)
            }
            _ => false,
        };
        as_before || self.waits_as_nobody_before(now, load)
    }

    /// `take` for any packet.
    #[inline(never)]
    fn waits_as_nobody_before(&mut self, now: Time, load: Load) -> bool {
        let Rest { queue, crowd, .. } = rest_of(&mut self.rest, &self.recipe);
        let Queue::DropTail(queue) = queue else { unreachable!("invariant: a plain link's") };
        let waits = queue.has_room(now, load, &mut crowd.backlog);
        if waits {
            crowd.wait(now, self.busy_until, load);
        } else {
            crowd.refuse(load);
            self.transmitter.others().arrive(load);
        }
        waits
    }

    #[inline(never)]
    fn take_otherwise(
        &mut self,
        pool: &mut Pool,
        now: Time,
        id: PacketId,
        load: Load,
    ) -> Result<Option<Time>, Refused> {
        if self.kind == Kind::Holding {
            self.transmitter.others().arrive(load);
            return self.take_held(pool, now, id, load);
        }
        if self.tells {
            return self.take_and_tell(pool, now, id, load);
        }
        self.take_behind_card(pool, now, id, load)
    }

    /// [`Link::take`] for a card that merges, or duplicated or damaged packets.
    fn take_and_tell(
        &mut self,
        pool: &mut Pool,
        now: Time,
        id: PacketId,
        load: Load,
    ) -> Result<Option<Time>, Refused> {
        if self.extras().is_some_and(|extras| extras.card.is_some()) {
            self.reach_card(pool, now, id);
            return Ok(None);
        }
        let taken = self.take_behind_card(pool, now, id, load)?;
        match taken {
            // the copy follows; damage is noticed at departure
            Some(delivery)
                if self.extras().is_some_and(|extras| extras.owes() || extras.damage.is_some()) =>
            {
                self.put(pool, now, id, delivery);
                Ok(None)
            }
            taken => Ok(taken),
        }
    }

    /// [`Link::take`] for a link with any features, behind its card.
    fn take_behind_card(
        &mut self,
        pool: &mut Pool,
        now: Time,
        id: PacketId,
        load: Load,
    ) -> Result<Option<Time>, Refused> {
        self.transmitter.others().arrive(load);
        let rest = rest_of(&mut self.rest, &self.recipe);
        if let Some(extras) = &mut rest.extras {
            let lost = extras.loses(now, &pool[id]);
            if lost && !extras.doubles() {
                rest.crowd.rare().dropped_loss += load.segments() as u64;
                return Err(Refused::Loss);
            }
            if extras.asks && ask(extras, &mut rest.crowd, pool, now, id, lost) {
                rest.crowd.rare().dropped_loss += load.segments() as u64;
                return Err(Refused::Loss);
            }
            if let Some(faulty) = &mut extras.ecn_fault {
                pool[id].ecn = faulty.pass(Place::Before, pool[id].ecn);
            }
        }
        if rest.queue.holds() {
            return self.take_held(pool, now, id, load);
        }
        let thinner = rest.extras.as_mut().and_then(|extras| extras.thinner.as_mut());
        if thinner.is_some_and(|thinner| thinner.replaces(pool, now, id)) {
            rest.crowd.refuse(load);
            return Err(Refused::Aqm);
        }
        let busy_until = self.busy_until;
        let tx = match rest.capacity() {
            None => self.transmitter.time(&self.recipe.rate, load),
            Some(capacity) => capacity.typical(now, load.bytes()),
        };
        let Rest { queue, crowd, wire, .. } = rest;
        let admission = match queue {
            Queue::DropTail(_) if busy_until <= now => Admission::Accept,
            Queue::DropTail(queue) => match queue.has_room(now, load, &mut crowd.backlog) {
                true => Admission::Accept,
                false => Admission::Refuse(Refused::QueueFull),
            },
            queue => {
                crowd.backlog.advance(now);
                let (backlog, on_wire) = (&crowd.backlog, self.on_wire);
                queue.admit(&Arrival { now, packet: &pool[id], tx, busy_until, backlog, wire, on_wire, pool })
            }
        };
        match admission {
            Admission::Accept => {}
            Admission::Mark => {
                pool[id].ecn = Ecn::Ce;
                crowd.rare().marked += load.segments() as u64;
            }
            Admission::Refuse(why) => {
                crowd.refuse(load);
                return Err(why);
            }
        }
        let (start, end) = self.transmit(now.max(busy_until), load);
        let rest = self.rest();
        if let Some(thinner) = rest.extras.as_mut().and_then(|extras| extras.thinner.as_mut()) {
            thinner.note(pool, now, id, start);
        }
        if start > now {
            rest.crowd.wait(now, start, load);
        }
        let hands_down = matches!(rest.queue, Queue::NetemLimit(_));
        Ok(self.send(pool, [now, now], id, if hands_down { start } else { end }))
    }

    /// Put a packet on the wire that was taken at `offered` and leaves the far end at `delivery`.
    #[inline]
    pub fn put(&mut self, pool: &mut Pool, offered: Time, id: PacketId, delivery: Time) {
        self.on_wire += 1;
        let rest = self.rest();
        rest.wire.push(pool, id, delivery, offered);
        rest.next = rest.next.min(delivery);
    }

    /// Whether nothing is on the wire.
    #[inline]
    pub fn is_clear(&self) -> bool {
        self.on_wire == 0
    }

    /// The earliest instant at which [`Link::poll`] has work; `Time::NEVER` if the link is empty.
    #[inline]
    pub fn next_event(&self) -> Time {
        self.rest.as_ref().map_or(Time::NEVER, |rest| rest.next)
    }

    /// Time of this link's pending event in the event queue; [`Time::NEVER`] if there is none.
    #[inline]
    pub fn armed(&self) -> Time {
        self.rest.as_ref().map_or(Time::NEVER, |rest| rest.armed)
    }

    /// Note it.
    #[inline]
    pub fn set_armed(&mut self, at: Time) {
        self.rest().armed = at;
    }

    /// Time at which the next packet to leave was offered.
    #[inline]
    pub fn next_offered(&self, pool: &Pool) -> Time {
        self.rest.as_ref().map_or(Time::NEVER, |rest| rest.wire.next(pool).1)
    }

    /// Return the next packet that leaves the far end at or before `now`. `None`: nothing now, although
    /// [`Link::next_event`] may have moved, because a departure was due.
    #[inline]
    pub fn poll(&mut self, pool: &mut Pool, now: Time) -> Option<PacketId> {
        if now < self.next_event() {
            return None;
        }
        if self.tells {
            self.hand_on(pool, now);
        }
        if self.holds() {
            self.serve(pool, now);
        }
        // a card may have to be called again at this very instant, when everything arriving at it is there
        let due = if self.tells { self.rest().wire.next(pool).0 } else { self.next_event() };
        let id = (due <= now && due != Time::NEVER).then(|| self.pop(pool))?;
        if self.tells {
            return self.first_whole(pool, now, id);
        }
        Some(id)
    }

    /// The packet on the wire that leaves next, and its time.
    #[inline]
    pub fn first<'a>(&self, pool: &'a Pool) -> Option<(Time, &'a Packet)> {
        self.rest.as_ref()?.wire.first(pool)
    }

    /// Take the packet that leaves next.
    #[inline(always)]
    pub fn pop(&mut self, pool: &mut Pool) -> PacketId {
        let id = self.pop_ahead(pool);
        self.renew_next(pool);
        id
    }

    /// `take` for callers that call [`Link::renew_next`] before anything else of the link.
    #[inline(always)]
    pub fn pop_ahead(&mut self, pool: &mut Pool) -> PacketId {
        self.on_wire -= 1;
        self.rest().wire.pop(pool).expect("invariant: there is one")
    }

    /// Recompute the next event.
    #[inline]
    pub fn renew_next(&mut self, pool: &Pool) {
        if let Some(rest) = &mut self.rest {
            rest.next = rest.wire.next(pool).0;
        }
        if self.holds() || self.tells {
            self.renew_next_with_more(pool);
        }
    }

    /// Recompute the next event of a link that has more than those of the wire.
    fn renew_next_with_more(&mut self, pool: &Pool) {
        let others = self.next_departure().min(self.card_due());
        let rest = self.rest();
        rest.next = rest.wire.next(pool).0.min(others);
    }

    /// Hosts of the flows: numbers of the sending and the receiving host.
    pub fn learn_hosts(&mut self, hosts: &[[u32; 2]]) {
        if let Some(rest) = &mut self.rest {
            rest.queue.learn_hosts(hosts);
        }
    }

    /// Restart the loss model as if no packet had come yet, with the loss stream of a link of this name in a run with this seed:
    /// fetch by fetch, two arms of a comparison meet the same losses (common random numbers).
    pub fn restart_loss(&mut self, name: &str, seed: u64) {
        if let Some(extras) = self.extras_mut() {
            extras.loss.restart(component_stream(seed, name, "loss"));
        }
    }

    /// Start a transmission as soon as possible from `earliest` on; returns its start and end.
    #[inline]
    fn transmit(&mut self, earliest: Time, load: Load) -> (Time, Time) {
        let (start, end) = match self.rest.as_deref_mut().and_then(|rest| rest.extras.as_deref_mut()) {
            None => (earliest, earliest + self.transmitter.time(&self.recipe.rate, load)),
            Some(extras) => {
                let outages = extras.outages.as_mut();
                let earliest = outages.map_or(earliest, |outages| outages.start(earliest));
                match &mut extras.capacity {
                    None => (earliest, earliest + self.transmitter.time(&self.recipe.rate, load)),
                    Some(capacity) => capacity.transmit(earliest, load.bytes()),
                }
            }
        };
        self.transmitter.others().send(load, end - start);
        self.busy_until = end;
        (start, end)
    }

    /// Fix the delivery of a packet in flight from `leaves` on and return it. `None`: it is held back, and on
    /// the wire already. It arrived at the link, then was offered to the wire.
    #[inline]
    fn send(
        &mut self,
        pool: &mut Pool,
        [arrived, offered]: [Time; 2],
        id: PacketId,
        leaves: Time,
    ) -> Option<Time> {
        let (delay, waiting) = (self.delay, self.on_wire);
        let Some(extras) = self.extras_mut() else { return Some(leaves + delay) };
        let mut delivery = match &mut extras.capacity {
            None => leaves + delay,
            Some(capacity) => capacity.delivery(leaves),
        };
        if let Some(jitter) = &mut extras.netem_jitter {
            delivery = jitter.apply(leaves, delivery);
        }
        if let Some(jitter) = &mut extras.jitter {
            delivery = jitter.apply(delivery);
        }
        if let Some(wifi) = &mut extras.wifi {
            delivery = wifi.apply(delivery);
        }
        if let Some(aggregate) = &mut extras.aggregate {
            delivery = aggregate.apply(delivery);
        }
        if let Some(faulty) = &mut extras.ecn_fault {
            pool[id].ecn = faulty.pass(Place::After, pool[id].ecn);
        }
        let extra = extras.late.take().or_else(|| extras.reorder.as_mut().and_then(Chooser::extra_delay));
        if let Some(film) = &mut extras.film {
            let delivery = delivery + extra.unwrap_or(Span::ZERO);
            film.note(&pool[id], [arrived, leaves, delivery]);
        }
        let overtaking = extras.netem_jitter.as_mut().filter(|jitter| jitter.overtakes());
        let behind = overtaking.map(|jitter| jitter.place(id, delivery, waiting));
        if extra.is_none() && behind.is_none() {
            return Some(delivery);
        }
        delivery += extra.unwrap_or(Span::ZERO);
        self.on_wire += 1;
        let rest = self.rest();
        match behind {
            Some(behind) => rest.wire.put_behind(pool, behind, id, delivery, offered),
            None => rest.wire.push_late(pool, id, delivery, offered),
        }
        rest.next = rest.next.min(delivery);
        None
    }

    /// Start of a transmission that may begin from `earliest` on.
    #[inline]
    fn start_of(&self, earliest: Time) -> Time {
        let outages = self.extras().and_then(|extras| extras.outages.as_ref());
        let earliest = outages.map_or(earliest, |outages| outages.start_at(earliest));
        self.capacity().map_or(earliest, |capacity| capacity.start(earliest))
    }
}

/// The random stream of a part of a link.
fn component_stream(seed: u64, link: &str, part: &str) -> Stream {
    Stream::new(seed, &format!("{link}.{part}"))
}

mod ahead;
mod asking;
mod config;
mod counters;
mod crowd;
mod extras;
mod faulty;
mod film;
mod held;
mod merging;
mod rest;
mod sole;
#[cfg(test)]
mod tests;
