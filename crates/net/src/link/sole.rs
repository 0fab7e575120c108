//! A link with its own packets, for programs that have one link and no world around it.

use ackclock_core::{Packet, Rate, Time};

use super::{Counters, Link, LinkConfig, Underway};
use crate::pool::Pool;
use crate::queue::Refused;

/// A [`Link`] with the packets on it.
pub struct SoleLink {
    link: Link,
    pool: Pool,
    name: Box<str>,
}

impl SoleLink {
    /// See [`Link::new`].
    pub fn new(config: &LinkConfig, seed: u64) -> SoleLink {
        SoleLink { link: Link::new(config, seed), pool: Pool::default(), name: config.name.as_str().into() }
    }

    /// See [`Link::offer`].
    pub fn offer(&mut self, now: Time, packet: Packet) -> Result<(), Refused> {
        self.refuse(now, packet).map_or(Ok(()), |(_, why)| Err(why))
    }

    /// Offer a packet; returns the refused packet, if any. With thinned ACKs, this can be an older packet that the
    /// new one has replaced.
    pub fn refuse(&mut self, now: Time, packet: Packet) -> Option<(Packet, Refused)> {
        let refused = self.pass(now, packet);
        if self.link.has_head_drops() {
            while let Some((now, copy)) = self.link.take_copy() {
                if let Some((packet, why)) = self.pass(now, copy) {
                    self.link.refused_unseen(now, packet, why);
                }
            }
        }
        refused
    }

    fn pass(&mut self, now: Time, packet: Packet) -> Option<(Packet, Refused)> {
        let id = self.pool.insert(&packet);
        let why = self.link.offer(&mut self.pool, now, id).err()?;
        Some((self.pool.remove(id), why))
    }

    /// See [`Link::poll`].
    pub fn poll(&mut self, now: Time) -> Option<Packet> {
        self.link.poll(&mut self.pool, now).map(|id| self.pool.remove(id))
    }

    /// Return the packet on the wire that departs next, and its time; `None` if another packet could still precede it
    /// ([`Link::passes_ahead`]).
    pub fn first(&self) -> Option<(Time, &Packet)> {
        self.link.passes_ahead().then(|| self.link.first(&self.pool)).flatten()
    }

    /// Take the packet that departs next, even ahead of time.
    pub fn pop(&mut self) -> Packet {
        let id = self.link.pop(&mut self.pool);
        self.pool.remove(id)
    }

    /// See [`Link::takes_ahead`], for a queue that decides on arrival.
    pub fn takes_ahead(&self) -> bool {
        self.link.takes_ahead() && !self.link.drops_from_head()
    }

    /// See [`Link::passes_ahead`].
    pub fn passes_ahead(&self) -> bool {
        self.link.passes_ahead()
    }

    /// See [`Link::next_event`].
    pub fn next_event(&self) -> Time {
        self.link.next_event()
    }

    /// See [`Link::take_head_drops`], at the time of the call.
    pub fn take_head_drops(&mut self) -> Option<(Packet, Refused)> {
        self.link.take_head_drops().map(|(_, packet, why)| (packet, why))
    }

    /// See [`Link::waiting`].
    pub fn waiting(&mut self, now: Time) -> u32 {
        self.link.waiting(&mut self.pool, now)
    }

    /// See [`Link::counters`].
    pub fn counters(&mut self, now: Time) -> Counters {
        self.link.counters(&mut self.pool, now, Underway::default())
    }

    /// See [`Link::count_from`].
    pub fn count_from(&mut self, now: Time) {
        self.link.count_from(&mut self.pool, now, Underway::default());
    }

    /// See [`Link::restart_loss`].
    pub fn restart_loss(&mut self, seed: u64) {
        self.link.restart_loss(&self.name, seed);
    }

    /// The link's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// See [`Link::rate`].
    pub fn rate(&self) -> Rate {
        self.link.rate()
    }
}
