//! Junctions: a link that several other links feed gathers their packets and takes them in order of arrival.
//!
//! The effect of a packet on such a link cannot be observed before the packet has crossed it, unless link counters
//! are read. A packet in transit to the link therefore needs no event. It is appended to a list, which is sorted in
//! event order (see `agenda`) before packets are taken from it. One event takes all packets that have arrived; it
//! fires 1 ns before the effect of the first one could be observed.

use ackclock_core::packet::Load;
use ackclock_core::prefetch::prefetch_all;
use ackclock_core::{Span, Time};
use ackclock_net::PacketId;

use super::ahead::Source;
use super::next::MEETS;
use super::{LinkSlot, Net};
use crate::world::agenda::{KIND_BITS, MEETING};
use crate::world::World;

/// Minimum delay of a link that gathers packets. With a shorter one, an event would find few packets.
const LEAST_DELAY: Span = Span(100_000);

impl World {
    /// Process all arrivals at junctions that precede the current event, which was scheduled at `since` and reads
    /// links.
    pub fn catch_up_with_links(&mut self, since: Time) {
        self.net.catch_up(self.now, since);
    }
}

impl Net {
    /// Find the links that gather packets from several links. Each of these must know the departure of a packet as
    /// soon as it accepts the packet.
    pub(super) fn look_for_junctions(&mut self, sources: &[Source]) {
        debug_assert!(self.junctions.iter().all(|junction| junction.packets().next().is_none()));
        let may_gather = |(source, slot): (&Source, &LinkSlot)| *source == Source::Links && slot.may_gather();
        let mut gathers: Vec<bool> = match self.shortcuts.junctions {
            true => sources.iter().zip(&self.links).map(may_gather).collect(),
            false => vec![false; self.links.len()],
        };
        for slot in &mut self.links {
            let tells = !slot.link.drops_from_head();
            for hop in slot.next.hops(&mut self.tables).filter(|hop| hop.is_link()) {
                gathers[hop.link() as usize] &= tells && hop.is_alone();
            }
        }
        self.junctions.clear();
        self.junction_of.clear();
        for link in (0..gathers.len()).filter(|&link| gathers[link]) {
            self.junction_of.resize(link, 0);
            self.junction_of.push(self.junctions.len() as u32);
            self.junctions.push(Junction::new(link as u32, self.links[link].link.seen_after()[0]));
        }
        for slot in &mut self.links {
            for hop in slot.next.hops(&mut self.tables).filter(|hop| hop.is_link()) {
                hop.0 |= if gathers[hop.link() as usize] { MEETS } else { 0 };
            }
        }
    }

    /// Add a packet that `link` delivers to a junction at `at`.
    #[inline(always)]
    pub(super) fn meet(
        &mut self,
        number: usize,
        since: Time,
        at: Time,
        link: u32,
        packet: (PacketId, usize, Load),
    ) {
        let junction = &mut self.junctions[number];
        junction.expect(since, at, link, packet);
        if at < junction.armed {
            self.arm_junction(number, at);
        }
    }

    /// Schedule an event for the junction, before the effect of an arrival at `at` can be observed.
    #[inline(never)]
    fn arm_junction(&mut self, number: usize, at: Time) {
        let junction = &mut self.junctions[number];
        junction.armed = at;
        let due = junction.unseen_at(at);
        self.agenda.add(due, (number as u32) << KIND_BITS | MEETING);
    }

    /// Process the event of a junction: take the arrivals before `now`.
    pub(in crate::world) fn junction_event(&mut self, now: Time, number: usize) {
        let junction = &mut self.junctions[number];
        if junction.armed != Time::NEVER && junction.unseen_at(junction.armed) == now {
            junction.armed = Time::NEVER;
            self.take_what_came(number, Time(now.0 - 1), Time::NEVER);
        }
    }

    /// Take all arrivals at junctions before `at`, and those at `at` whose own `since` is not later than `since`.
    pub(in crate::world) fn catch_up(&mut self, at: Time, since: Time) {
        (0..self.junctions.len()).for_each(|number| self.take_what_came(number, at, since));
    }

    /// Take past arrivals early if there are many, while recently freed memory is still in the caches, and prefetch
    /// the memory for the next packets.
    pub(in crate::world) fn catch_up_soon(&mut self, now: Time) {
        for number in 0..self.junctions.len() {
            let junction = &mut self.junctions[number];
            let next = &self.links[junction.link as usize].next;
            for coming in junction.foresee(0) {
                next.prefetch(coming.way as usize, &self.tables);
            }
            for coming in junction.foresee(1) {
                let hop = next.of(coming.way as usize, &self.tables);
                self.links.get(hop.link() as usize).into_iter().for_each(prefetch_all);
            }
            if now.0 > 0 && junction.has_come(now) {
                self.take_what_came(number, Time(now.0 - 1), Time::NEVER);
            }
        }
    }

    fn take_what_came(&mut self, number: usize, at: Time, since: Time) {
        let junction = &mut self.junctions[number];
        let link = junction.link;
        let (all, mut came) = junction.begin();
        for coming in &all[came..] {
            if coming.at > at || coming.at == at && coming.since > since {
                break;
            }
            self.offer(coming.at, link, coming.id, coming.way as usize, coming.load);
            came += 1;
        }
        let junction = &mut self.junctions[number];
        let next = junction.end(all, came);
        if next < junction.armed {
            self.arm_junction(number, next);
        }
    }
}

impl LinkSlot {
    /// Whether the link may gather packets, and so lag behind the current time.
    fn may_gather(&self) -> bool {
        let link = &self.link;
        link.takes_ahead() && !link.holds() && link.seen_after()[0] >= LEAST_DELAY
    }
}

/// Packet in transit to a junction.
#[derive(Clone, Copy)]
struct Coming {
    at: Time,
    since: Time,
    /// Number of the link that delivers the packet.
    from: u32,
    id: PacketId,
    way: u32,
    load: Load,
}

impl Coming {
    /// Whether this arrival's event would come before that of `other`.
    #[inline]
    fn before(&self, other: &Coming) -> bool {
        self.at < other.at || self.at == other.at && (self.since, self.from) < (other.since, other.from)
    }
}

/// Link at which paths merge, with the packets in transit to it.
#[derive(Clone)]
pub(super) struct Junction {
    link: u32,
    /// Arrival that the pending event covers: the event fires before the effect of that arrival can be observed.
    armed: Time,
    /// Minimum time to cross the link.
    delay: Span,
    coming: Vec<Coming>,
    /// Number of packets at the start of the list that have already been taken.
    came: usize,
    /// Number of packets at the start of the list that are sorted.
    sorted: usize,
    /// Number of packets at the start of the list that have been prefetched in the first round, and in the second.
    foreseen: [usize; 2],
}

/// Distances of the two prefetches, in packets beyond the current one.
const FORESEEN: [usize; 2] = [64, 32];

impl Junction {
    fn new(link: u32, delay: Span) -> Junction {
        Junction { link, armed: Time::NEVER, delay, coming: Vec::new(), came: 0, sorted: 0, foreseen: [0; 2] }
    }

    /// Add a packet that link `from` delivers at `at`. Its event would be ordered as if it were added at `since`.
    #[inline]
    fn expect(&mut self, since: Time, at: Time, from: u32, (id, way, load): (PacketId, usize, Load)) {
        self.coming.push(Coming { at, since, from, id, way: way as u32, load });
    }

    /// Whether a packet has arrived before `now`, judging by the unsorted list.
    #[inline]
    fn has_come(&self, now: Time) -> bool {
        self.coming.get(self.came).is_some_and(|coming| coming.at < now)
    }

    /// Packets to prefetch next, in the first or the second round.
    #[inline]
    fn foresee(&mut self, time: usize) -> &[Coming] {
        let until = (self.came + FORESEEN[time]).min(self.coming.len());
        let from = std::mem::replace(&mut self.foreseen[time], until).max(self.came);
        self.coming.get(from..until).unwrap_or_default()
    }

    /// Last instant at which the effect of a packet that arrives at `at` cannot be observed yet.
    #[inline]
    fn unseen_at(&self, at: Time) -> Time {
        Time(at.0 + self.delay.0 - 1)
    }

    /// Sort the list and return it, with the number of packets already taken. [`Junction::end`] puts it back.
    fn begin(&mut self) -> (Vec<Coming>, usize) {
        self.sort();
        (std::mem::take(&mut self.coming), self.came)
    }

    /// Put the list back after its first `came` packets have been taken. Return the time of the next arrival, or
    /// `Time::NEVER`. Taken packets are removed once they fill half of the list.
    fn end(&mut self, mut all: Vec<Coming>, mut came: usize) -> Time {
        if 2 * came >= all.len() {
            all.drain(..came);
            self.foreseen = self.foreseen.map(|foreseen| foreseen.saturating_sub(came));
            self.sorted -= std::mem::take(&mut came);
        }
        (self.coming, self.came) = (all, came);
        self.coming.get(came).map_or(Time::NEVER, |coming| coming.at)
    }

    /// Packets in transit: time of arrival, source link, and packet.
    pub(super) fn packets(&self) -> impl Iterator<Item = (Time, u32, PacketId)> + '_ {
        self.coming[self.came..].iter().map(|coming| (coming.at, coming.from, coming.id))
    }

    /// Sort the packets added since the last call; the sort is stable. Each link adds its packets in order, so
    /// insertion sort is usually cheap. If it takes too many steps, the list is sorted as a whole.
    fn sort(&mut self) {
        let all = &mut self.coming[self.came..];
        let mut steps = 8 * all.len();
        for i in (self.sorted - self.came).max(1)..all.len() {
            if !all[i].before(&all[i - 1]) {
                continue;
            }
            let (new, mut place) = (all[i], i);
            while place > 0 && new.before(&all[place - 1]) {
                all[place] = all[place - 1];
                place -= 1;
            }
            all[place] = new;
            if i - place > steps {
                all.sort_by_key(|coming| (coming.at, coming.since, coming.from));
                break;
            }
            steps -= i - place;
        }
        self.sorted = self.coming.len();
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::Packet;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Oracle: a sorted list of events. Packets are taken in its order, whenever the junction catches up.
        #[test]
        fn packets_leave_in_the_order_of_events(
            steps in prop::collection::vec((0u64..40, 0u64..5, 0u32..4, any::<bool>()), 1..300),
        ) {
            let (mut junction, mut slow, mut now) = (Junction::new(0, Span(1)), Vec::new(), 0);
            for (i, (ahead, since, from, takes)) in steps.into_iter().enumerate() {
                let load = Packet::default().load();
                junction.expect(Time(since), Time(now + ahead), from, (PacketId::of(i as u32), 0, load));
                slow.push((now + ahead, since, from, i as u32));
                if takes {
                    let (all, from) = junction.begin();
                    let came = |coming: &&Coming| (coming.at.0, coming.since.0) <= (now, 2);
                    let taken: Vec<_> = all[from..].iter().take_while(came).map(|c| (c.at.0, c.id.number())).collect();
                    slow.sort();
                    let due = slow.iter().take_while(|&&(at, since, ..)| (at, since) <= (now, 2)).count();
                    let expected: Vec<_> = slow.drain(..due).map(|(at, _, _, i)| (at, i)).collect();
                    prop_assert_eq!(&taken, &expected);
                    prop_assert_eq!(junction.end(all, from + due), slow.first().map_or(Time::NEVER, |&(at, ..)| Time(at)));
                    prop_assert_eq!(junction.packets().count(), slow.len());
                    now += 17;
                }
            }
        }
    }
}
