//! The network card: packets that wait for an interrupt on their way in, and packets that leave in batches.
//!
//! Receiving: interrupts come at least `interval` apart (Intel's ITR, interrupts per second, is 1 / interval). One that
//! has been quiet for longer interrupts at once; packets that come before the next interrupt wait for it, and are
//! handed over back to back.
//!
//! Sending: with an interval, likewise, as when a driver hands over its ring at intervals; with a batch of n packets,
//! none leaves before n wait or the oldest has waited for `flush` (segmentation offload, reports in batches). A batch
//! leaves at one instant: the first link is the line that it leaves on, and spreads it by its rate.

use std::collections::VecDeque;

use ackclock_core::{Packet, Span, Time};

/// When packets are handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// Least time between two hand-overs; zero = none.
    pub interval: Span,
    /// Packets that are handed over together; 1 = at once.
    pub packets: u32,
    /// How long the oldest waits for that number.
    pub flush: Span,
}

impl Batching {
    /// Every packet at once.
    pub const NONE: Batching = Batching { interval: Span::ZERO, packets: 1, flush: Span::ZERO };
}

/// Packets that wait in one direction.
pub(crate) struct Ring {
    config: Batching,
    waiting: VecDeque<Packet>,
    last: Time,
    due: Time,
    handed_over: u64,
    interrupts: u64,
    largest: u32,
}

impl Ring {
    /// `None` if no packet would ever wait.
    pub(crate) fn new(config: Batching) -> Option<Ring> {
        (config.interval > Span::ZERO || config.packets > 1).then(|| Ring {
            config,
            waiting: VecDeque::new(),
            last: Time::ZERO,
            due: Time::NEVER,
            handed_over: 0,
            interrupts: 0,
            largest: 0,
        })
    }

    /// A packet comes. The time at which the ring wants to be emptied, if that is new: later ones supersede it.
    pub(crate) fn push(&mut self, now: Time, packet: Packet) -> Option<Time> {
        self.waiting.push_back(packet);
        let full = self.waiting.len() as u32 >= self.config.packets;
        let ready = if full { now } else { now + self.config.flush };
        let due = match self.interrupts {
            0 => ready,
            _ => ready.max(self.last + self.config.interval),
        };
        let sooner = due < self.due;
        if sooner {
            self.due = due;
        }
        sooner.then_some(due)
    }

    /// Whether the hand-over is due at `now`; it counts as done then, and [`Ring::take`] gives what is handed over.
    pub(crate) fn begin(&mut self, now: Time) -> u32 {
        if self.due != now {
            return 0;
        }
        self.due = Time::NEVER;
        self.last = now;
        self.interrupts += 1;
        let packets = self.waiting.len() as u32;
        self.handed_over += packets as u64;
        self.largest = self.largest.max(packets);
        packets
    }

    /// The next packet of a hand-over that has begun.
    pub(crate) fn take(&mut self) -> Packet {
        self.waiting.pop_front().expect("invariant: as many as begin said")
    }

    /// Hand-overs, packets handed over, most at a time.
    pub(crate) fn sums(&self) -> (u64, u64, u32) {
        (self.interrupts, self.handed_over, self.largest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Times of hand-overs and the numbers of the packets in each.
    fn play(config: Batching, arrivals: &[u64]) -> Vec<(u64, Vec<u32>)> {
        let mut ring = Ring::new(config).expect("has an effect");
        let (mut due, mut out) = (Vec::<Time>::new(), Vec::new());
        let mut empty = |ring: &mut Ring, due: &mut Vec<Time>, until: Time| {
            due.sort();
            while due.first().is_some_and(|&t| t <= until) {
                let now = due.remove(0);
                let packets = ring.begin(now);
                if packets > 0 {
                    out.push((now.0, (0..packets).map(|_| ring.take().conn).collect()));
                }
            }
        };
        for (i, &t) in arrivals.iter().enumerate() {
            empty(&mut ring, &mut due, Time(t.max(1) - 1));
            due.extend(ring.push(Time(t), Packet { conn: i as u32, ..Packet::default() }));
            empty(&mut ring, &mut due, Time(t));
        }
        empty(&mut ring, &mut due, Time(u64::MAX - 1));
        out
    }

    #[test]
    fn a_quiet_card_interrupts_at_once_and_a_busy_one_at_its_rate() {
        let config = Batching { interval: Span(125), ..Batching::NONE };
        let out = play(config, &[1000, 1010, 1020, 1130, 1200, 5000]);
        assert_eq!(out, [(1000, vec![0]), (1125, vec![1, 2]), (1250, vec![3, 4]), (5000, vec![5])]);
    }

    #[test]
    fn a_batch_leaves_when_it_is_full_or_old() {
        let config = Batching { packets: 3, flush: Span(100), ..Batching::NONE };
        let out = play(config, &[10, 20, 30, 40, 200, 210, 310]);
        assert_eq!(out, [(30, vec![0, 1, 2]), (140, vec![3]), (300, vec![4, 5]), (410, vec![6])]);
    }

    /// At 1 Gb/s of full frames, 1538 bytes on the wire, an ITR of 8000 makes batches of 10.2 packets, 20000 of 4.1,
    /// 2000 of 40.6; at a tenth of the rate a tenth (PCC sheet 5.2).
    #[test]
    fn frames_per_interrupt() {
        for (itr, frames) in [(2000, 40.6), (8000, 10.2), (20_000, 4.1)] {
            let arrivals: Vec<u64> = (0..20_000).map(|i| i * 12_304).collect();
            let config = Batching { interval: Span(1_000_000_000 / itr), ..Batching::NONE };
            let interrupts = play(config, &arrivals).len() as f64;
            assert!((20_000.0 / interrupts / frames - 1.0).abs() < 0.02, "{itr}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_order_is_kept(
            gaps in prop::collection::vec(0u64..500, 1..200), interval in 0u64..300, packets in 1u32..6, flush in 1u64..400,
        ) {
            let config = Batching { interval: Span(interval.max((packets == 1) as u64)), packets, flush: Span(flush) };
            let mut t = 0;
            let arrivals: Vec<u64> = gaps.iter().map(|gap| { t += gap; t }).collect();
            let out = play(config, &arrivals);
            let all: Vec<u32> = out.iter().flat_map(|(_, packets)| packets.clone()).collect();
            prop_assert_eq!(all, (0..arrivals.len() as u32).collect::<Vec<_>>());
            for (a, b) in out.iter().zip(&out[1..]) {
                prop_assert!(b.0 - a.0 >= interval.max(1));
            }
            for (at, packets) in &out {
                let oldest = arrivals[packets[0] as usize];
                prop_assert!(at - oldest <= flush + interval.max(1), "{} {}", at, oldest);
            }
        }
    }
}
