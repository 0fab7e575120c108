//! A unidirectional link: loss model -> queue -> rate -> propagation delay (-> jitter, aggregation, reordering), in
//! this order.
//!
//! Speed: if the queue decides on arrival, the link can also compute the departure on arrival. A packet accepted at
//! `now` starts its transmission at max(now, `busy_until`) and is delivered one transmission time plus the delay
//! later; [`Link::take`] returns that time. The caller then puts the packet on the wire ([`Link::put`]), which leaves
//! one event, the delivery. If the next link has no other source, the caller passes the packet on at once, without
//! any event. CoDel and FQ-CoDel drop at departure: such a link holds its packets and also needs an event for each
//! departure, unless the next arrival precedes it. A link with netem's limit forwards a packet when its transmission
//! starts (see `queue/netem_limit.rs`).
//!
//! An offer or a poll at `now` accounts for everything up to and including `now`: a transmission that ends, or a
//! queue slot that becomes free, in the same nanosecond does so first. Events at equal times therefore have exactly
//! one outcome.
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

/// A unidirectional link. Its packets are stored in a shared pool, which must be the same one at every call.
/// [`SoleLink`] is a link with its own packets.
#[derive(Clone)]
#[repr(C)] // ordered so that a packet of the same size as the last, if none waits, touches only the first 48 bytes
pub struct Link {
    kind: Kind,
    /// Whether the link may have a copy, or a lost or refused packet, to report: a NIC in front of it merges packets,
    /// or packets are duplicated or damaged.
    tells: bool,
    ahead: Ahead,
    /// Packets on the wire.
    on_wire: u32,
    busy_until: Time,
    delay: Span,
    transmitter: Transmitter,
    recipe: Arc<Recipe>,
    /// Parts that a plain link allocates on demand. Most access links of many flows never need them.
    rest: Option<Box<Rest>>,
}

/// Code path that packets take.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A fixed rate and delay behind a drop-tail queue.
    Plain,
    /// Plain link behind a loss model.
    Lossy,
    /// A queue that holds its packets, and no rare features.
    Holding,
    /// Any other link.
    More,
}

impl Link {
    /// Return an idle link at the start of a run. Its random streams are named `<name>.loss`, `<name>.queue`,
    /// `<name>.jitter`, `<name>.netem-jitter`, `<name>.reorder`, `<name>.duplicate`, `<name>.corrupt`, `<name>.wifi`,
    /// `<name>.ecn-fault` and `<name>.outage` and derived from `seed`.
    pub fn new(config: &LinkConfig, seed: u64) -> Link {
        Link::made_by(&Recipe::of(config), config, seed)
    }

    /// Return a link that shares `recipe` with other links of the same configuration.
    pub fn made_by(recipe: &Arc<Recipe>, config: &LinkConfig, seed: u64) -> Link {
        let stream = |part: &str| component_stream(seed, &config.name, part);
        let extras = Extras::new(config, stream);
        let mut queue = Queue::new(&config.queue, || stream("queue"));
        if let (Queue::DropTail(queue), Some(_)) = (&mut queue, &config.merging) {
            queue.count_packets();
        }
        debug_assert_eq!(queue.holds(), config.queue.holds());
        let kind = match queue {
            _ if Extras::exceed_losses(config) => Kind::More,
            Queue::DropTail(_) if extras.is_some() => Kind::Lossy,
            Queue::DropTail(_) => Kind::Plain,
            _ if extras.is_some() => Kind::More,
            _ if queue.holds() => Kind::Holding,
            _ => Kind::More,
        };
        Link {
            tells: config.merging.is_some()
                || config.duplicate > 0.0
                || config.corrupt > 0.0
                || extras.as_ref().is_some_and(|extras| extras.delays_first()),
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

    /// Check every feature for each packet: slower, with the same results.
    pub fn ask_for_everything(&mut self) {
        self.rest();
        self.kind = Kind::More;
    }

    /// Store waiting packets one by one: slower, with the same results.
    pub fn store_single_packets(&mut self) {
        self.crowd().backlog.store_single_packets();
    }

    /// Link rate; infinite if the rate varies.
    pub fn rate(&self) -> Rate {
        match self.capacity() {
            None => self.recipe.rate,
            Some(_) => Rate::INFINITE,
        }
    }

    /// Whether the link could not follow its schedule; see [`MOST_PHASES`](crate::capacity::MOST_PHASES).
    pub fn is_lost(&self) -> bool {
        self.capacity().is_some_and(|capacity| capacity.is_lost())
    }

    /// Whether packets may be offered ahead of time, if they are offered in order: no feature of the link depends on
    /// the clock, and none restarts.
    pub fn takes_ahead(&self) -> bool {
        self.ahead.takes
    }

    /// Declare that the loss model may restart: packets have to be offered in time.
    pub fn expect_restarts(&mut self) {
        self.ahead.takes &= self.extras().is_none();
    }

    /// Whether a packet may be passed on as soon as its departure is known: no packet overtakes or replaces it, no
    /// limit counts the packets on the wire, and no other event of the link depends on it.
    pub fn passes_ahead(&self) -> bool {
        self.ahead.passes
    }

    /// Offer a packet at the near end. `now` must not decrease from call to call. Afterwards [`Link::next_event`] may
    /// be earlier than before. A refused packet still belongs to the caller.
    #[inline]
    pub fn offer(&mut self, pool: &mut Pool, now: Time, id: PacketId) -> Result<(), Refused> {
        let load = pool[id].load();
        if let Some(delivery) = self.take(pool, now, id, load)? {
            self.put(pool, now, id, delivery);
        }
        Ok(())
    }

    /// Offer a packet without putting it on the wire. Returns its departure from the far end; the caller then owns
    /// the packet and either calls [`Link::put`] or passes it on ahead of time. `None`: the link keeps the packet.
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
            Kind::Lossy => self.take_unless_lost(now, &pool[id], load).map(Some),
            _ => self.take_otherwise(pool, now, id, load),
        }
    }

    /// [`Link::take`] for a link that is plain behind its loss model.
    #[inline(never)]
    fn take_unless_lost(&mut self, now: Time, packet: &Packet, load: Load) -> Result<Time, Refused> {
        let rest = rest_of(&mut self.rest, &self.recipe);
        if rest.extras.as_mut().is_some_and(|extras| extras.loss.drops(now, packet)) {
            rest.crowd.rare().dropped_loss += load.segments() as u64;
            self.transmitter.others().arrive(load);
            return Err(Refused::Loss);
        }
        self.take_plainly(now, load)
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

    /// Return whether the packet can wait behind a busy link; false if the queue is full.
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

    /// Slow form of `waits_plainly`, for any packet.
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
        self.take_behind_card::<false>(pool, now, id, load)
    }

    /// [`Link::take`] for a link with a merging NIC, or with duplicated or damaged packets.
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
        let taken = match self.extras().is_some_and(Extras::delays_first) {
            false => self.take_behind_card::<false>(pool, now, id, load),
            true => self.take_behind_card::<true>(pool, now, id, load),
        }?;
        match taken {
            // the copy is offered next; damage is detected at departure
            Some(delivery)
                if self.extras().is_some_and(|extras| extras.owes() || extras.damage.is_some()) =>
            {
                self.put(pool, now, id, delivery);
                Ok(None)
            }
            taken => Ok(taken),
        }
    }

    /// [`Link::take`] for a link with any features, behind its NIC. `FIRST`: see [`Extras::delays_first`].
    fn take_behind_card<const FIRST: bool>(
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
        let ready = if FIRST { self.ready_at(now) } else { now };
        let (start, end) = self.transmit(ready.max(busy_until), load);
        let rest = self.rest();
        if let Some(thinner) = rest.extras.as_mut().and_then(|extras| extras.thinner.as_mut()) {
            thinner.note(pool, now, id, start);
        }
        if start > now {
            rest.crowd.wait(now, start, load);
        }
        let hands_down = matches!(rest.queue, Queue::NetemLimit(_)) && !FIRST;
        Ok(self.send(pool, [now, now], id, if hands_down { start } else { end }))
    }

    /// Put on the wire a packet that was taken at `offered` and departs from the far end at `delivery`.
    #[inline]
    pub fn put(&mut self, pool: &mut Pool, offered: Time, id: PacketId, delivery: Time) {
        self.on_wire += 1;
        let rest = self.rest();
        rest.wire.push(pool, id, delivery, offered);
        rest.next = rest.next.min(delivery);
    }

    /// Whether the wire is empty.
    #[inline]
    pub fn is_clear(&self) -> bool {
        self.on_wire == 0
    }

    /// Time at which [`Link::poll`] will next have work; `Time::NEVER` if the link is empty.
    #[inline]
    pub fn next_event(&self) -> Time {
        self.rest.as_ref().map_or(Time::NEVER, |rest| rest.next)
    }

    /// Time of this link's pending event in the event queue; [`Time::NEVER`] if there is none.
    #[inline]
    pub fn armed(&self) -> Time {
        self.rest.as_ref().map_or(Time::NEVER, |rest| rest.armed)
    }

    /// Record the time of the pending event.
    #[inline]
    pub fn set_armed(&mut self, at: Time) {
        self.rest().armed = at;
    }

    /// Time at which the packet that departs next was offered.
    #[inline]
    pub fn next_offered(&self, pool: &Pool) -> Time {
        self.rest.as_ref().map_or(Time::NEVER, |rest| rest.wire.next(pool).1)
    }

    /// Return the next packet that departs from the far end at or before `now`. After `None`, [`Link::next_event`]
    /// may still have changed, because a transmission has started.
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
        // a NIC may have more packets to forward at this instant, once all that arrive at it are there
        let due = if self.tells { self.rest().wire.next(pool).0 } else { self.next_event() };
        let id = (due <= now && due != Time::NEVER).then(|| self.pop(pool))?;
        if self.tells {
            return self.first_whole(pool, now, id);
        }
        Some(id)
    }

    /// Return the packet on the wire that departs next, and its departure time.
    #[inline]
    pub fn first<'a>(&self, pool: &'a Pool) -> Option<(Time, &'a Packet)> {
        self.rest.as_ref()?.wire.first(pool)
    }

    /// Take the packet that departs next.
    #[inline(always)]
    pub fn pop(&mut self, pool: &mut Pool) -> PacketId {
        let id = self.pop_ahead(pool);
        self.renew_next(pool);
        id
    }

    /// Like `pop`, for callers that call [`Link::renew_next`] before any other method of the link.
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

    /// Recompute the next event of a link with events beyond those of the wire.
    fn renew_next_with_more(&mut self, pool: &Pool) {
        let others = self.next_departure().min(self.card_due());
        let rest = self.rest();
        rest.next = rest.wire.next(pool).0.min(others);
    }

    /// Set the host numbers of each flow: sender, receiver.
    pub fn learn_hosts(&mut self, hosts: &[[u32; 2]]) {
        if let Some(rest) = &mut self.rest {
            rest.queue.learn_hosts(hosts);
        }
    }

    /// Restart the loss model as at the start of a run, with the loss stream of a link called `name` in a run with
    /// this seed. Both arms of a comparison then see the same losses, fetch by fetch (common random numbers).
    pub fn restart_loss(&mut self, name: &str, seed: u64) {
        if let Some(extras) = self.extras_mut() {
            extras.loss.restart(component_stream(seed, name, "loss"));
        }
    }

    /// Start a transmission as soon as possible, but not before `earliest`. Returns its start and end.
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

    /// Compute the delivery of a packet whose transmission ends at `leaves`. `None`: the packet is reordered and
    /// already on the wire. `arrived` is its arrival time at the link, `offered` the time at which it was offered to
    /// the wire.
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
        match &mut extras.netem_jitter {
            Some(jitter) if jitter.before_rate => delivery = leaves,
            Some(jitter) => delivery = jitter.apply(leaves, delivery),
            None => {}
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

    /// Time before which an arriving packet is not transmitted: netem delays it first, if it does so before the rate.
    #[inline]
    fn ready_at(&mut self, now: Time) -> Time {
        let delay = self.delay;
        let jitter = self.extras_mut().and_then(|extras| extras.netem_jitter.as_mut());
        jitter.filter(|jitter| jitter.before_rate).map_or(now, |jitter| jitter.apply(now, now + delay))
    }

    /// Start of a transmission that may begin no earlier than `earliest`.
    #[inline]
    fn start_of(&self, earliest: Time) -> Time {
        let outages = self.extras().and_then(|extras| extras.outages.as_ref());
        let earliest = outages.map_or(earliest, |outages| outages.start_at(earliest));
        self.capacity().map_or(earliest, |capacity| capacity.start(earliest))
    }
}

/// Random stream of one part of a link.
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
