//! Network between the two endpoints of these tests: one ackclock link per direction instead of a queue with a delay.
//!
//! Without `LINK` in the environment it behaves like the tests' own link: their latency, infinite rate, no loss. With
//! `LINK` set to the text of a link or the name of a preset that link is used, and the latency requested by a test is
//! ignored. `LINK_SEED` is the seed.

use std::{collections::VecDeque, env, mem, ops::Index};

use ackclock_link::{Ecn, Link, Packet};
use bytes::BytesMut;

use crate::{Duration, EcnCodepoint, Instant};

/// Time (send time while on the link, arrival time once received), ECN field, and UDP payload.
type Datagram = (Instant, Option<EcnCodepoint>, BytesMut);

/// Length of the IPv6 and UDP headers, bytes, which the tests do not count.
const HEADERS: usize = 48;

/// One direction. The link carries only numbers; the payloads are stored here.
pub(super) struct Wire {
    /// New packets enter the last link. Earlier links have a different latency and may still carry packets.
    links: Vec<Link>,
    latency: Duration,
    seed: u64,
    epoch: Instant,
    now: u64,
    sent: u64,
    /// Payloads on the link, in sending order. A packet that a test drops is removed here, and the number that the
    /// link delivers later is ignored.
    flying: VecDeque<(u64, Datagram)>,
}

impl Wire {
    /// Create an empty wire; the two directions have different seeds.
    pub(super) fn new(epoch: Instant, direction: u64) -> Self {
        let seed = env::var("LINK_SEED").map_or(0, |text| text.parse().expect("LINK_SEED: a whole number"));
        let seed = 2 * seed + direction;
        let latency = Duration::ZERO;
        let links = vec![link(latency, seed)];
        Self { links, latency, seed, epoch, now: 0, sent: 0, flying: VecDeque::new() }
    }

    /// Send a datagram into the link.
    pub(super) fn send(
        &mut self,
        now: Instant,
        latency: Duration,
        ecn: Option<EcnCodepoint>,
        bytes: BytesMut,
    ) {
        self.go_on(now);
        if latency != self.latency {
            self.latency = latency;
            self.links.push(link(latency, self.seed));
        }
        let packet = Packet {
            id: self.sent,
            bytes: (bytes.len() + HEADERS) as u32,
            ecn: Ecn::from_bits(ecn.map_or(0, |codepoint| codepoint as u8)),
            ..Packet::default()
        };
        let link = self.links.last_mut().expect("there is always one");
        if link.enqueue(self.now, packet).is_ok() {
            self.flying.push_back((self.sent, (now, ecn, bytes)));
        }
        self.sent += 1;
        self.forget_dropped();
    }

    /// Time of the link's next event; `None` while no datagram is on the link.
    pub(super) fn next_event(&self) -> Option<Instant> {
        if self.flying.is_empty() {
            return None;
        }
        let next = self.links.iter().filter_map(Link::next_event).min()?;
        Some(self.epoch + Duration::from_nanos(next))
    }

    /// Return the next datagram that has reached the far end by `now`, with its arrival time.
    pub(super) fn receive(&mut self, now: Instant) -> Option<Datagram> {
        self.go_on(now);
        loop {
            let first = self.links.iter_mut().min_by_key(|link| link.next_event().unwrap_or(u64::MAX))?;
            first.next_event().filter(|at| *at <= self.now)?;
            let arrived = first.dequeue(self.now);
            self.forget_dropped();
            let Some((at, packet)) = arrived else { continue };
            if let Some((_, ecn, bytes)) = self.take(packet.id) {
                let ecn = ecn.and_then(|_| EcnCodepoint::from_bits(packet.ecn as u8));
                return Some((self.epoch + Duration::from_nanos(at), ecn, bytes));
            }
        }
    }

    /// Take the oldest datagram off the link, for a test.
    pub(super) fn pop_front(&mut self) -> Option<Datagram> {
        let at = self.next_event()?;
        let (_, (_, ecn, bytes)) = self.flying.pop_front()?;
        Some((at, ecn, bytes))
    }

    /// Drop the newest datagram, for a test.
    pub(super) fn pop_back(&mut self) -> Option<Datagram> {
        Some(self.flying.pop_back()?.1)
    }

    /// Drop everything on the link, for a test.
    pub(super) fn clear(&mut self) {
        self.flying.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.flying.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.flying.len()
    }

    /// Advance the clock. Tests may step their clock back, but a link cannot go back in time.
    fn go_on(&mut self, now: Instant) {
        self.now = self.nanos(now).max(self.now);
    }

    fn nanos(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.epoch).as_nanos() as u64
    }

    fn take(&mut self, id: u64) -> Option<Datagram> {
        let at = self.flying.iter().position(|(own, _)| *own == id)?;
        Some(self.flying.remove(at)?.1)
    }

    fn forget_dropped(&mut self) {
        let mut links = mem::take(&mut self.links);
        for link in &mut links {
            while let Some((packet, _)) = link.take_dropped() {
                self.take(packet.id);
            }
        }
        self.links = links;
    }
}

impl Index<usize> for Wire {
    type Output = Datagram;

    fn index(&self, at: usize) -> &Datagram {
        &self.flying[at].1
    }
}

fn link(latency: Duration, seed: u64) -> Link {
    let text = env::var("LINK").unwrap_or_else(|_| format!("delay = '{} ns'", latency.as_nanos()));
    Link::new(&text, seed).unwrap_or_else(|mistake| panic!("LINK: {mistake}"))
}
