//! CHOKe: RED that punishes the flows that fill the queue. While the mean queue is above `min`, each arrival is
//! compared with a waiting packet drawn at random; if both belong to the same connection, both are dropped. A flow
//! with a large share of the queue is often compared with itself, so no per-flow state is needed.
//!
//! Source: R. Pan, B. Prabhakar, K. Psounis, "CHOKe, a stateless active queue management scheme for approximating fair
//! bandwidth allocation", INFOCOM 2000, figure 1; the probability is RED's (Floyd and Jacobson 1993, figure 2).
//!
//! | variable | meaning |
//! |---|---|
//! | `avg` | mean queue, packets: an exponentially weighted moving average with weight `weight`, over arrivals |
//! | `count` | packets since RED's last drop while `avg` is above `min` |
//!
//! Differs: idle time alone does not reduce `avg`; each arrival that finds no packet waiting does. Above `max` every
//! arrival is dropped, as in the paper: this is not gentle RED.

use std::collections::VecDeque;

use ackclock_core::packet::Load;
use ackclock_core::rng::threshold;
use ackclock_core::schema::{Limit, Refusal, Takes};
use ackclock_core::{table, Packet, Span, Stream, Time};

use super::ledger::{Holding, Ledger};
use super::red::thresholds;
use super::{Discipline, Refused, Served};
use crate::pool::{PacketId, Pool};
use crate::qdisc::{refused, Qdisc};

table! {
    /// CHOKe (Pan, Prabhakar and Psounis 2000): RED that penalises the connections that fill the queue.
    /// Each arriving packet is compared with a randomly chosen one in the queue. If both belong to the same connection,
    /// both are dropped.
    pub struct ChokeParams "choke" {
        /// Maximum length of the queue: packets or multiples of the bandwidth-delay product.
        limit: u32 = Takes::PacketLimit;
        /// Mean queue length at which comparisons and drops begin (min_th).
        min: f64 = Takes::MeanPackets;
        /// Mean queue length at which the drop probability reaches `max_p` (max_th). Above it every arriving packet is
        /// dropped.
        max: f64 = Takes::MeanPackets;
        /// Drop probability at a mean queue of `max`.
        max_p: f64 = Takes::Share, 0.1;
        /// Weight of one arrival in the moving average of the queue length (w_q).
        weight: f64 = Takes::Share, 0.002;
    }
    rules |red, rules| thresholds(red.min, red.max, red.limit, rules)
}

impl Discipline for ChokeParams {
    type Queue = Box<Choke>;

    fn queue(self, stream: impl FnOnce() -> Stream) -> Box<Choke> {
        Box::new(Choke::new(self, stream()))
    }

    fn limit(&self) -> Option<Limit> {
        Some(Limit::Packets(self.limit))
    }

    fn qdisc(&self, _: Span) -> Result<Qdisc, Refusal> {
        Err(refused("kind", "\"choke\""))
    }
}

#[derive(Clone)]
struct Held {
    arrival: Time,
    packet: Packet,
}

#[derive(Clone)]
pub(crate) struct Choke {
    params: ChokeParams,
    stream: Stream,
    avg: f64,
    count: i64,
    /// Packets in order of arrival. A packet dropped from the middle leaves a hole, so that no other packet has to
    /// move. The head is never a hole.
    ring: VecDeque<Option<Held>>,
    holes: usize,
    ledger: Ledger,
}

impl Choke {
    pub(crate) fn new(params: ChokeParams, stream: Stream) -> Choke {
        Choke {
            params,
            stream,
            avg: 0.0,
            count: -1,
            ring: VecDeque::new(),
            holes: 0,
            ledger: Ledger::default(),
        }
    }

    /// Add an arrival. Returns false if the queue is full. Drops by CHOKe are reported by [`Choke::take_head_drop`].
    pub(crate) fn enqueue(&mut self, now: Time, packet: Packet, must_wait: bool) -> bool {
        self.avg += self.params.weight * (self.ledger.packets as f64 - self.avg);
        if let Some(met) = self.meets_its_own(&packet) {
            let Held { arrival, packet: victim } =
                self.ring[met].take().expect("invariant: a packet was drawn");
            self.ledger.leaves(victim.segments(), now - arrival);
            self.holes += 1;
            self.close_holes();
            self.ledger.drop(now, victim, Refused::Aqm);
            self.ledger.drop(now, packet, Refused::Aqm);
            return true;
        }
        if self.drops_early() {
            self.ledger.drop(now, packet, Refused::Aqm);
            return true;
        }
        if must_wait && self.ledger.packets + packet.segments() > self.params.limit {
            return false;
        }
        self.ledger.packets += packet.segments();
        self.ring.push_back(Some(Held { arrival: now, packet }));
        self.ledger.waits(must_wait);
        true
    }

    /// Return the index of a waiting packet drawn at random, if it belongs to the same connection as the arrival.
    fn meets_its_own(&mut self, packet: &Packet) -> Option<usize> {
        if self.avg <= self.params.min || self.ledger.packets == 0 {
            return None;
        }
        // at most half of the ring is holes: two draws on average
        let at = std::iter::repeat_with(|| self.stream.below(self.ring.len() as u64) as usize)
            .find(|&at| self.ring[at].is_some())?;
        self.ring[at].as_ref().filter(|held| held.packet.conn == packet.conn).map(|_| at)
    }

    /// Decide at random whether non-gentle RED drops an arrival.
    fn drops_early(&mut self) -> bool {
        let ChokeParams { min, max, max_p, .. } = self.params;
        if self.avg <= min {
            self.count = -1;
            return false;
        }
        if self.avg > max {
            self.count = 0;
            return true;
        }
        self.count += 1;
        let p_b = max_p * (self.avg - min) / (max - min);
        let room = 1.0 - self.count as f64 * p_b;
        let p_a = if room > p_b { p_b / room } else { 1.0 };
        let drops = self.stream.chance(threshold(p_a));
        if drops {
            self.count = 0;
        }
        drops
    }

    /// Return the packet to transmit at `now`, and its wait.
    pub(crate) fn dequeue(&mut self, now: Time) -> Option<(Packet, Span)> {
        let Held { arrival, packet } = self.ring.pop_front()?.expect("invariant: no hole at the head");
        self.close_holes();
        self.ledger.leaves(packet.segments(), now - arrival);
        Some((packet, now - arrival))
    }

    /// Remove holes at the head, and all holes once they outnumber the packets: at most one packet is moved per drop.
    fn close_holes(&mut self) {
        while self.ring.front().is_some_and(Option::is_none) {
            self.ring.pop_front();
            self.holes -= 1;
        }
        if 2 * self.holes > self.ring.len() {
            self.ring.retain(Option::is_some);
            self.holes = 0;
        }
    }
}

impl Holding for Choke {
    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    fn hold(&mut self, pool: &mut Pool, now: Time, id: PacketId, _: Load, must_wait: bool) -> bool {
        let accepted = self.enqueue(now, pool[id], must_wait);
        if accepted {
            pool.release(id); // copied into the queue
        }
        accepted
    }

    fn serve(&mut self, pool: &mut Pool, now: Time) -> Option<Served> {
        let (packet, waited) = self.dequeue(now)?;
        Some(Served { id: pool.insert(&packet), load: packet.load(), waited })
    }

    fn head_arrival(&self) -> Option<Time> {
        self.ring.front()?.as_ref().map(|held| held.arrival)
    }

    fn waiting(&self, now: Time) -> u128 {
        let so_far = |h: &Held| now.since(h.arrival).0 as u128 * h.packet.segments() as u128;
        self.ring.iter().flatten().map(so_far).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choke(limit: u32, min: f64, max: f64, max_p: f64, weight: f64) -> Choke {
        Choke::new(ChokeParams { limit, min, max, max_p, weight }, Stream::new(1, "test"))
    }

    fn packet(conn: u32) -> Packet {
        Packet { conn, bytes: 1500, forward: true, ..Packet::default() }
    }

    #[test]
    fn below_min_it_is_a_fifo_and_nobody_is_compared() {
        let mut queue = choke(5, 100.0, 200.0, 1.0, 1.0);
        assert!((0..5).all(|conn| queue.enqueue(Time(conn), packet(conn as u32), true)));
        assert!(!queue.enqueue(Time(5), packet(0), true), "the limit holds");
        let out: Vec<u32> = (0..5).map(|t| queue.dequeue(Time(10 + t)).expect("held").0.conn).collect();
        assert_eq!(out, [0, 1, 2, 3, 4]);
        assert!(queue.dequeue(Time(20)).is_none() && queue.take_head_drop().is_none());
        // five packets that arrived at 0..4 left at 10..14
        assert_eq!(queue.figures(Time(20)), (50, 5, 0, 0));
    }

    #[test]
    fn a_packet_that_meets_its_own_connection_goes_with_it() {
        let mut queue = choke(1000, 0.5, 1000.0, 0.0, 1.0);
        assert!(queue.enqueue(Time(0), packet(7), true), "no packet to be compared with");
        assert!(queue.enqueue(Time(1), packet(7), true));
        let dropped: Vec<_> = std::iter::from_fn(|| queue.take_head_drop()).collect();
        assert_eq!(dropped.len(), 2, "the only one that waits was met");
        assert!(dropped.iter().all(|&(_, p, why)| p.conn == 7 && why == Refused::Aqm));
        assert_eq!((queue.len(), queue.head_arrival()), (0, None));
    }

    #[test]
    fn above_max_every_arrival_is_dropped() {
        let mut queue = choke(1000, 1.0, 3.0, 0.0, 1.0);
        let kept = (0..10).filter(|&conn| {
            queue.enqueue(Time(0), packet(conn), true);
            queue.take_head_drop().is_none()
        });
        assert_eq!(kept.count(), 4, "the fifth finds four, more than max");
    }

    /// Oracle: a plain list from which the same packets are removed. No packet is lost in a hole, and the order is
    /// kept.
    #[test]
    fn holes_are_not_seen() {
        let mut queue = choke(60, 5.0, 50.0, 0.1, 0.05);
        let (mut plain, mut pick) = (Vec::new(), Stream::new(9, "arrivals"));
        let (mut sent, mut pairs) = (0, 0);
        for t in 0..20_000u32 {
            let conn = if pick.below(2) == 0 { 0 } else { 1 + pick.below(8) as u32 };
            let full = plain.len() == 60;
            let entered = queue.enqueue(Time(t as u64), Packet { flow: t, ..packet(conn) }, true);
            let drops: Vec<Packet> =
                std::iter::from_fn(|| queue.take_head_drop()).map(|(_, p, _)| p).collect();
            match drops.as_slice() {
                [] if entered => plain.push(t),
                [] => assert!(full),
                [own] => assert_eq!(own.flow, t),
                [victim, own] => {
                    assert_eq!((victim.conn, own.flow), (conn, t));
                    let at = plain.iter().position(|&waiting| waiting == victim.flow).expect("it waited");
                    plain.remove(at);
                    pairs += 1;
                }
                _ => panic!("three drops at once"),
            }
            assert_eq!(queue.len() as usize, plain.len());
            assert!(2 * queue.holes <= queue.ring.len());
            if t % 3 < 2 && !plain.is_empty() {
                sent += 1;
                assert_eq!(queue.dequeue(Time(t as u64)).expect("it waits").0.flow, plain.remove(0));
            }
        }
        assert!(sent > 8_000 && pairs > 100, "{sent} {pairs}");
    }

    /// The paper's result (figure 3): an unresponsive sender at twice the link's rate gets far less than with a plain
    /// FIFO or RED, without any per-flow state.
    #[test]
    fn a_flow_that_fills_the_queue_is_held_down() {
        let share = |compare: bool| {
            let mut queue = choke(200, 20.0, 100.0, 0.02, 0.002);
            let mut pick = Stream::new(5, "arrivals");
            let mut out = [0u32; 2];
            for t in 0..200_000u64 {
                // per slot, two packets of the unresponsive sender and one of thirty others arrive, and one packet is
                // sent
                for conn in [0, 1 + pick.below(30) as u32, 0] {
                    let seen = if compare { conn } else { 1000 + (t % 900) as u32 };
                    queue.enqueue(Time(t), Packet { flow: conn, ..packet(seen) }, true);
                }
                while queue.take_head_drop().is_some() {}
                if let Some((p, _)) = queue.dequeue(Time(t)) {
                    out[(p.flow != 0) as usize] += 1;
                }
            }
            out[0] as f64 / (out[0] + out[1]) as f64
        };
        let (choked, blind) = (share(true), share(false));
        assert!(blind > 0.6, "without comparisons it takes what it sends: {blind}");
        assert!(choked < 0.45, "with them less than half: {choked}");
    }
}
