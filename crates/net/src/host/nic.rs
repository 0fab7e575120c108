//! The NIC: received packets wait for an interrupt, and sent packets are batched.
//!
//! Receiving: interrupts are at least `interval` apart (Intel's ITR, interrupts per second, is 1 / interval). A NIC
//! that has been quiet for longer interrupts at once. Packets that arrive before the next interrupt wait for it and
//! are handed over back to back.
//!
//! Sending: an interval works in the same way, as for a driver that hands over its ring periodically. With a batch of
//! n packets, none is sent until n packets wait or the oldest has waited for `flush` (segmentation offload, batched
//! reports). A batch is sent at one instant; the first link is the line, whose rate spreads it.
//!
//! With GRO (`gro.rs`) a hand-over is a poll: its packets are merged, and more polls may follow without an interrupt.

use std::collections::VecDeque;

use ackclock_core::{Packet, Span, Time};

use super::gro::{Gro, GroConfig};

/// Conditions under which packets are handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// Minimum time between two hand-overs; zero = none.
    pub interval: Span,
    /// Number of packets handed over together; 1 = no batching.
    pub packets: u32,
    /// Maximum time for which the oldest packet waits for a full batch.
    pub flush: Span,
    /// GRO settings; `None` = packets are not merged.
    pub gro: Option<GroConfig>,
}

impl Batching {
    /// Immediate hand-over of every packet.
    pub const NONE: Batching = Batching { interval: Span::ZERO, packets: 1, flush: Span::ZERO, gro: None };
}

/// Packets waiting in one direction.
#[derive(Clone)]
pub(crate) struct Ring {
    config: Batching,
    waiting: VecDeque<Packet>,
    /// Packets of the current hand-over.
    ready: VecDeque<Packet>,
    gro: Option<Gro>,
    /// Whether interrupts are disabled: polls follow without them, and packets wait for the next poll.
    masked: bool,
    /// Time of the current poll, which runs after all other events of that instant.
    settled: Time,
    last: Time,
    due: Time,
    sums: RingSums,
}

/// Ring traffic.
#[derive(Clone, Copy, Debug, Default)]
pub struct RingSums {
    /// Hand-overs of at least one packet.
    pub times: u64,
    /// Packets in all hand-overs.
    pub packets: u64,
    /// Maximum number of packets in one hand-over.
    pub largest: u32,
    /// Packets after merging; equal to `packets` if the NIC does not merge.
    pub merged: u64,
}

impl Ring {
    /// Return a ring; `None` if packets would never wait.
    pub(crate) fn new(config: Batching) -> Option<Ring> {
        (config.interval > Span::ZERO || config.packets > 1 || config.gro.is_some()).then(|| Ring {
            config,
            waiting: VecDeque::new(),
            ready: VecDeque::new(),
            gro: config.gro.map(Gro::new),
            masked: false,
            settled: Time::NEVER,
            last: Time::ZERO,
            due: Time::NEVER,
            sums: RingSums::default(),
        })
    }

    /// Add a packet. Returns the time at which the ring must be emptied, if it has changed; it replaces any earlier
    /// time.
    pub(crate) fn push(&mut self, now: Time, packet: Packet) -> Option<Time> {
        self.waiting.push_back(packet);
        let full = self.waiting.len() as u32 >= self.config.packets;
        let ready = if full { now } else { now + self.config.flush };
        let due = match self.sums.times {
            0 => ready,
            _ => ready.max(self.last + self.config.interval),
        };
        let sooner = due < self.due && !self.masked;
        if sooner {
            self.due = due;
        }
        sooner.then_some(due)
    }

    /// Start a hand-over at `now`. Returns the number of packets, zero if none is due, and the time of the next
    /// hand-over, if known. [`Ring::take`] returns the packets.
    pub(crate) fn begin(&mut self, now: Time) -> (u32, Option<Time>) {
        if self.due != now {
            return (0, None);
        }
        // A packet that arrives in the same nanosecond as a poll belongs to that poll. Responses to packets that a
        // poll has released arrive at such times. In the kernel, the timer that delivers such a packet was armed
        // before the NIC's timer, so it fires first.
        if self.gro.is_some() && std::mem::replace(&mut self.settled, now) != now {
            return (0, Some(now));
        }
        self.due = Time::NEVER;
        let packets = self.waiting.len() as u32;
        if packets > 0 {
            self.last = now;
            self.sums.times += 1;
            self.sums.packets += packets as u64;
            self.sums.largest = self.sums.largest.max(packets);
        }
        match &mut self.gro {
            None => std::mem::swap(&mut self.waiting, &mut self.ready),
            Some(gro) => {
                let (again, interrupts) = gro.poll(now, &mut self.waiting, &mut self.ready);
                self.masked = !interrupts;
                self.due = again.unwrap_or(Time::NEVER);
            }
        }
        let handed = self.ready.len() as u32;
        self.sums.merged += handed as u64;
        (handed, Some(self.due).filter(|&due| due != Time::NEVER))
    }

    /// Return the next packet of the current hand-over.
    pub(crate) fn take(&mut self) -> Packet {
        self.ready.pop_front().expect("invariant: as many as begin said")
    }

    /// Traffic so far.
    pub(crate) fn sums(&self) -> RingSums {
        self.sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Hand-over times, and the packet numbers in each hand-over.
    fn play(config: Batching, arrivals: &[u64]) -> Vec<(u64, Vec<u32>)> {
        let mut ring = Ring::new(config).expect("has an effect");
        let (mut due, mut out) = (Vec::<Time>::new(), Vec::new());
        let mut empty = |ring: &mut Ring, due: &mut Vec<Time>, until: Time| {
            due.sort();
            while due.first().is_some_and(|&t| t <= until) {
                let now = due.remove(0);
                let (packets, _) = ring.begin(now);
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

    /// Full frames (1538 bytes on the wire) at 1 Gb/s: an ITR of 8000 gives batches of 10.2 packets, 20000 gives 4.1,
    /// and 2000 gives 40.6. A tenth of the rate gives a tenth (PCC fact sheet, section 5.2).
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
            let config = Batching { interval: Span(interval.max((packets == 1) as u64)), packets, flush: Span(flush), gro: None };
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
