//! A link behind a router whose NIC merges segments (GRO): consecutive segments of one interrupt travel on as one
//! packet. The link's loss model, queue and rate then see multi-segment packets: one draw decides the fate of all
//! segments, and drop-tail's limit counts the packet once, as Linux's queueing disciplines do. Merged packets are not
//! split after the link, as between network namespaces and virtual machines.
//!
//! The NIC is the one that hosts use ([`Ring`]); packets count as arrivals when it forwards them.

use ackclock_core::schema::{Takes, DURATION_OR_ZERO};
use ackclock_core::{table, Span, Time};

use super::Link;
use crate::host::{Batching, GroConfig, Ring};
use crate::pool::{PacketId, Pool};

table! {
    /// The NIC of a router that merges consecutive segments (generic receive offload, GRO).
    /// The link behind it drops and queues a packet of several segments as a whole.
    pub struct Merging "merging" {
        /// Minimum time between two interrupts of the NIC. With "0 s" it merges only packets that arrive at the same
        /// instant.
        receive_interval: Span = DURATION_OR_ZERO, Span::ZERO;
        /// Time after which the kernel polls the NIC again without an interrupt; until then GRO may hold packets (Linux
        /// `gro_flush_timeout`).
        gro_flush_timeout: Span = DURATION_OR_ZERO, Span::ZERO;
        /// With `gro_flush_timeout`: number of consecutive empty polls after which the NIC may interrupt again (Linux
        /// `napi_defer_hard_irqs`).
        napi_defer_hard_irqs: u32 = Takes::Whole(0, 1_000_000), 0;
    }
    rules |card, rules| {
        if card.napi_defer_hard_irqs > 0 && card.gro_flush_timeout == Span::ZERO {
            rules.refuse("napi_defer_hard_irqs", "0 without gro_flush_timeout");
        }
    }
}

/// State of the NIC in front of a link.
#[derive(Clone)]
pub(super) struct Card {
    ring: Ring,
    due: Time,
}

impl Card {
    pub fn new(config: &Merging) -> Card {
        let gro = GroConfig {
            flush_timeout: config.gro_flush_timeout,
            defer_hard_irqs: config.napi_defer_hard_irqs,
        };
        let batching = Batching { interval: config.receive_interval, gro: Some(gro), ..Batching::NONE };
        let ring = Ring::new(batching).expect("invariant: a card that merges lets packets wait");
        Card { ring, due: Time::NEVER }
    }
}

impl Link {
    /// Hand a packet to the router's NIC.
    pub(super) fn reach_card(&mut self, pool: &mut Pool, now: Time, id: PacketId) {
        let packet = pool.remove(id);
        if let Some(card) = self.card_mut() {
            card.due = card.ring.push(now, packet).unwrap_or(card.due);
            let due = card.due;
            let rest = self.rest();
            rest.next = rest.next.min(due);
        }
    }

    /// Let the NIC forward the packets that are due at `now`.
    pub(super) fn hand_on(&mut self, pool: &mut Pool, now: Time) {
        let Some(card) = self.card_mut().filter(|card| card.due <= now) else { return };
        let (packets, again) = card.ring.begin(card.due); // on time, unless the links have been paused
        card.due = again.unwrap_or(Time::NEVER);
        for _ in 0..packets {
            let Some(card) = self.card_mut() else { return };
            let packet = card.ring.take();
            let id = pool.insert(&packet);
            match self.take_behind_card::<false>(pool, now, id, packet.load()) {
                Ok(Some(delivery)) => self.put(pool, now, id, delivery),
                Ok(None) => {}
                Err(reason) => {
                    pool.release(id);
                    self.refused_unseen(now, packet, reason);
                }
            }
        }
        self.renew_next(pool);
    }

    /// Time at which the NIC next forwards packets; `Time::NEVER` if it is empty.
    pub(super) fn card_due(&self) -> Time {
        self.extras().and_then(|extras| extras.card.as_ref()).map_or(Time::NEVER, |card| card.due)
    }

    fn card_mut(&mut self) -> Option<&mut Card> {
        self.extras_mut()?.card.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::{AppliesTo, BernoulliParams, LossConfig};
    use crate::queue::QueueConfig;
    use crate::{LinkConfig, Refused, SoleLink};
    use ackclock_core::{Flags, Header, Packet, Rate, Segment};

    const SIZE: u32 = 1448;

    fn data(number: u64) -> Packet {
        let seg =
            Segment { seq: 1 + number * SIZE as u64, len: SIZE, flags: Flags::ACK, ..Segment::default() };
        Packet { header: Header::Tcp(seg), bytes: 1514, forward: true, ..Packet::default() }
    }

    fn merging(receive_interval: Span, gro_flush_timeout: Span) -> Option<Merging> {
        Some(Merging { receive_interval, gro_flush_timeout, napi_defer_hard_irqs: 0 })
    }

    /// Return the time and segment count of each delivery.
    fn deliveries(link: &mut SoleLink) -> Vec<(u64, u32)> {
        let mut out = Vec::new();
        while link.next_event() != Time::NEVER {
            let at = link.next_event();
            out.extend(link.poll(at).map(|packet| (at.0, packet.segments())));
        }
        out
    }

    #[test]
    fn what_comes_together_crosses_the_link_as_one_packet() {
        let rate = Rate(1_000_000_000); // 12112 ns per segment
        let config =
            LinkConfig { merging: merging(Span::ZERO, Span::ZERO), ..LinkConfig::new("l", rate, Span(100)) };
        let mut link = SoleLink::new(&config, 1);
        for n in 0..4 {
            link.offer(Time(1000), data(n)).unwrap();
        }
        assert_eq!(deliveries(&mut link), [(1000 + 4 * 12_112 + 100, 4)]);
        let interval = LinkConfig { merging: merging(Span(500), Span::ZERO), ..config };
        let mut link = SoleLink::new(&interval, 1);
        let mut out = Vec::new();
        for n in 0..6 {
            let at = Time(1000 + 100 * n);
            while link.next_event() < at {
                let due = link.next_event();
                out.extend(link.poll(due).map(|packet| packet.segments()));
            }
            link.offer(at, data(n)).unwrap();
        }
        out.extend(deliveries(&mut link).iter().map(|&(_, segments)| segments));
        assert_eq!(out, [1, 5], "the first interrupts at once");
    }

    /// One draw per packet: packets of ten merged segments are lost as often as single segments, and each such loss
    /// takes all ten.
    #[test]
    fn one_draw_decides_about_a_merged_packet() {
        let loss = LossConfig::Bernoulli(BernoulliParams { p: 0.1, applies_to: AppliesTo::All });
        let config = LinkConfig {
            loss,
            merging: merging(Span::ZERO, Span::ZERO),
            ..LinkConfig::new("l", Rate::INFINITE, Span::ZERO)
        };
        let mut link = SoleLink::new(&config, 1);
        for burst in 0..5_000 {
            for n in 0..10 {
                link.offer(Time(1000 * burst), data(10 * burst + n)).unwrap();
            }
            for (_, segments) in deliveries(&mut link) {
                assert_eq!(segments, 10);
            }
        }
        let mut refused = 0;
        while let Some((packet, reason)) = link.take_head_drops() {
            assert_eq!((packet.segments(), reason), (10, Refused::Loss));
            refused += 10;
        }
        let counters = link.counters(Time(1_000_000_000));
        assert_eq!((counters.arrivals, counters.dropped_loss), (50_000, refused));
        assert!((4_300..5_700).contains(&counters.dropped_loss), "{}", counters.dropped_loss);
    }

    #[test]
    fn drop_tail_counts_a_merged_packet_once() {
        let queue = QueueConfig::packets(2);
        let config = LinkConfig {
            queue,
            merging: merging(Span::ZERO, Span::ZERO),
            ..LinkConfig::new("l", Rate(10_000_000), Span::ZERO)
        };
        let mut link = SoleLink::new(&config, 1);
        let mut out = Vec::new();
        for burst in 0..5 {
            for n in 0..10 {
                link.offer(Time(burst), data(10 * burst + n)).unwrap();
            }
            while link.next_event() <= Time(burst) {
                let due = link.next_event();
                out.extend(link.poll(due).map(|packet| packet.segments()));
            }
        }
        out.extend(deliveries(&mut link).iter().map(|&(_, segments)| segments));
        assert_eq!(out, [10, 10, 10], "one in transmission and two that wait");
        let counters = link.counters(Time(1_000_000_000));
        assert_eq!((counters.arrivals, counters.delivered, counters.dropped_queue), (50, 30, 20));
        assert_eq!(std::iter::from_fn(|| link.take_head_drops()).count(), 2);
    }

    #[test]
    fn what_is_held_for_a_time_counts_when_it_is_handed_on() {
        let config = LinkConfig {
            merging: merging(Span::ZERO, Span::from_us(100)),
            ..LinkConfig::new("l", Rate::INFINITE, Span::ZERO)
        };
        let mut link = SoleLink::new(&config, 1);
        link.offer(Time(900_000), data(0)).unwrap();
        assert_eq!(link.counters(Time(950_000)).arrivals, 0);
        assert_eq!(deliveries(&mut link), [(1_000_000, 1)], "the tick of the kernel's clock is over");
        assert_eq!(link.counters(Time(2_000_000)).delivered, 1);
    }
}
