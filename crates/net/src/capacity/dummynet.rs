//! A pipe of FreeBSD's dummynet (Rizzo, CCR 1997; ipfw(8)). The pipe acts only at the clock ticks of its host: each
//! tick credits the queue with the bytes that the rate allows per tick, and the packets covered by the credit are
//! sent together. A limit of N packets therefore lets at most N packets through per tick, however evenly they arrive.
//!
//! There are two generations. Up to FreeBSD 8.0 (`ip_dummynet.c`, `ready_event`) a packet waits until the credit
//! covers it, and a queue that becomes empty loses its remaining credit. Since 8.1 (`ip_dn_io.c`, `serve_sched`) a
//! packet is sent while the credit is not negative, and the remaining credit serves packets that arrive before the
//! next tick. Both hand packets to a delay line, which is also emptied at ticks.
//!
//! Differs: a packet that arrives at the instant of a tick can still use it (as for a Mahimahi trace). The clock
//! starts with the run. `burst` (8.1), credit saved while the pipe is idle, is zero, which is its default.

use std::cmp::Ordering;

use ackclock_core::schema::{DURATION, FLAG};
use ackclock_core::{table, Rate, Span, Time};

table! {
    /// A pipe of FreeBSD's dummynet: at each clock tick it releases the packets that the rate allows for one tick.
    pub struct DummynetParams "dummynet" {
        /// Period of the clock (1 ms for `kern.hz` = 1000).
        tick: Span = DURATION, Span::from_ms(1);
        /// Whether credit unused at a tick is available to packets that arrive before the next tick (FreeBSD 8.1 and
        /// later) or is lost (earlier versions).
        keeps_credit: bool = FLAG, false;
    }
}

/// Credit in bit x ns/s, so that a tick adds an integer (rate x tick).
type Credit = i128;

#[derive(Clone)]
pub(crate) struct Dummynet {
    tick: u64,
    keeps_credit: bool,
    rate: Rate,
    delay: Span,
    latest: Departure,
}

/// Tick at which a packet leaves the queue, and the credit after it.
#[derive(Clone, Copy)]
struct Departure {
    tick: u64,
    credit: Credit,
}

impl Dummynet {
    pub(crate) fn new(params: &DummynetParams, rate: Rate, delay: Span) -> Dummynet {
        assert!(params.tick > Span::ZERO, "invariant: checked with the scenario");
        let latest = Departure { tick: 0, credit: 0 };
        Dummynet { tick: params.tick.0, keeps_credit: params.keeps_credit, rate, delay, latest }
    }

    /// Transmission time of a packet, without the wait for a tick.
    pub(crate) fn typical(&self, bytes: u32) -> Span {
        self.rate.tx_time(bytes)
    }

    /// Time at which a queue that holds its packets releases one that may be sent no earlier than `earliest`.
    pub(crate) fn start(&self, earliest: Time) -> Time {
        self.instant(self.departure(earliest, 1).tick).max(earliest)
    }

    /// Send a packet no earlier than `earliest`. Returns the time at which it leaves the queue.
    pub(crate) fn transmit(&mut self, earliest: Time, bytes: u32) -> Time {
        self.latest = self.departure(earliest, bytes);
        self.instant(self.latest.tick).max(earliest)
    }

    /// Arrival time at the far end of the last packet sent, which left the queue at `end`.
    pub(crate) fn delivery(&self, end: Time) -> Time {
        let due = Time(self.instant(self.latest.tick).0.saturating_add(self.delay.0));
        due.round_up(Span(self.tick)).max(end)
    }

    fn departure(&self, earliest: Time, bytes: u32) -> Departure {
        let Departure { tick, credit } = self.found(earliest.0.div_ceil(self.tick).saturating_sub(1));
        let size = bytes as Credit * 8_000_000_000;
        let missing = if self.keeps_credit { -credit } else { size - credit };
        let ticks = self.ticks_for(missing);
        Departure { tick: tick.saturating_add(ticks), credit: credit + ticks as Credit * self.gain() - size }
    }

    /// State of the pipe for a packet that arrives after tick `now` and before the next one.
    fn found(&self, now: u64) -> Departure {
        let Departure { tick, credit } = self.latest;
        // the new pipe is busy until its debt is paid, the old one until its queue is empty
        let ticks = if self.keeps_credit { self.ticks_for(-credit) } else { 0 };
        let idle = tick.saturating_add(ticks);
        match idle.cmp(&now) {
            Ordering::Greater => self.latest,
            Ordering::Equal if self.keeps_credit => {
                Departure { tick: now, credit: credit + ticks as Credit * self.gain() }
            }
            _ => Departure { tick: now, credit: 0 },
        }
    }

    fn ticks_for(&self, missing: Credit) -> u64 {
        ((missing.max(0) + self.gain() - 1) / self.gain()) as u64
    }

    fn gain(&self) -> Credit {
        self.rate.0 as Credit * self.tick as Credit
    }

    fn instant(&self, tick: u64) -> Time {
        Time(tick.saturating_mul(self.tick))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CapacityConfig, CodelParams, LinkConfig, QueueConfig, SoleLink};
    use ackclock_core::Packet;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    const MS: u64 = 1_000_000;

    fn link(keeps_credit: bool, rate: Rate, queue: QueueConfig) -> SoleLink {
        let capacity =
            Some(CapacityConfig::Dummynet(DummynetParams { tick: Span::from_ms(1), keeps_credit }));
        SoleLink::new(&LinkConfig { capacity, queue, ..LinkConfig::new("l", rate, Span::from_us(2_500)) }, 1)
    }

    /// Offer packets, each given as a time (ns) and a size (bytes). Returns the delivery times (ns); `None` for
    /// dropped packets.
    fn deliveries(link: &mut SoleLink, offers: &[(u64, u32)]) -> Vec<Option<u64>> {
        let taken: Vec<bool> = offers
            .iter()
            .map(|&(at, bytes)| link.offer(Time(at), Packet { bytes, ..Packet::default() }).is_ok())
            .collect();
        let mut found = Vec::new();
        while link.next_event() != Time::NEVER {
            let now = link.next_event();
            found.extend(std::iter::from_fn(|| link.poll(now)).map(|_| now.0));
        }
        let mut found = found.into_iter();
        taken.iter().map(|&taken| taken.then(|| found.next().expect("delivered"))).collect()
    }

    /// Oracle: FreeBSD's loops, tick by tick, with a FIFO of `limit` packets and credit in bits.
    fn oracle(
        keeps_credit: bool,
        bits_per_tick: i64,
        limit: usize,
        offers: &[(u64, u32)],
    ) -> Vec<Option<u64>> {
        let (mut queue, mut left) = (VecDeque::new(), vec![None; offers.len()]);
        let (mut tick, mut credit, mut active, mut idle_since) = (0u64, 0i64, false, 0u64);
        let mut next = 0;
        let serve =
            |queue: &mut VecDeque<usize>, credit: &mut i64, tick: u64, left: &mut Vec<Option<u64>>| {
                while let Some(&i) = queue.front() {
                    let size = offers[i].1 as i64 * 8;
                    if if keeps_credit { *credit < 0 } else { *credit < size } {
                        break;
                    }
                    *credit -= size;
                    left[i] = Some(tick);
                    queue.pop_front();
                }
            };
        while next < offers.len() || !queue.is_empty() {
            while next < offers.len() && (offers[next].0 <= (tick + 1) * MS) {
                if queue.len() >= limit {
                    next += 1;
                    continue;
                }
                queue.push_back(next);
                next += 1;
                if !active && (queue.len() == 1) {
                    if !keeps_credit || idle_since < tick {
                        credit = 0;
                    }
                    serve(&mut queue, &mut credit, tick, &mut left);
                    idle_since = tick;
                    active = if keeps_credit { credit < 0 } else { !queue.is_empty() };
                }
            }
            tick += 1;
            if active {
                credit += bits_per_tick;
                serve(&mut queue, &mut credit, tick, &mut left);
                active = if keeps_credit { credit < 0 } else { !queue.is_empty() };
                idle_since = tick;
            }
        }
        // 2.5 ms of delay with a 1 ms clock; no packet is delivered before its arrival
        left.iter().map(|tick| tick.map(|tick| (tick + 3) * MS)).collect()
    }

    proptest! {
        #[test]
        fn departures_are_those_of_the_sources_tick_by_tick(
            keeps_credit: bool,
            mbit in 1u64..200,
            limit in 1u32..12,
            gaps in prop::collection::vec((0u64..2 * MS, 40u32..1600), 1..120),
            burst in 1usize..12,
        ) {
            // several packets at once, then a gap; never at a tick, for which the FreeBSD sources define no order
            let mut at = 500;
            let mut offers = Vec::new();
            for (i, &(gap, bytes)) in gaps.iter().enumerate() {
                at += if i % burst == 0 { gap / 1000 * 1000 } else { 0 };
                offers.push((at, bytes));
            }
            let mut link = link(keeps_credit, Rate(mbit * 1_000_000), QueueConfig::packets(limit));
            let expected = oracle(keeps_credit, mbit as i64 * 1000, limit as usize, &offers);
            prop_assert_eq!(deliveries(&mut link, &offers), expected);
        }
    }

    #[test]
    fn a_limit_of_packets_caps_the_rate_at_so_many_a_tick_unless_credit_is_kept() {
        // evenly spaced at the link rate: 8.33 packets of 1500 bytes per ms at 100 Mb/s
        let offers: Vec<(u64, u32)> = (0..8_333).map(|i| (i * 120_000, 1500)).collect();
        let passed = |keeps_credit: bool, limit: u32| {
            let mut link = link(keeps_credit, Rate(100_000_000), QueueConfig::packets(limit));
            deliveries(&mut link, &offers).iter().flatten().count()
        };
        assert_eq!([1, 4, 6].map(|limit| passed(false, limit) / 1000), [1, 4, 6]);
        assert_eq!(passed(false, 9), 8_333);
        // except at the first tick, before which there is no credit
        assert_eq!([1, 4, 6].map(|limit| 8_333 - passed(true, limit)), [7, 4, 2]);
    }

    #[test]
    fn a_queue_that_holds_its_packets_gets_the_same_rate() {
        for keeps_credit in [false, true] {
            let offers: Vec<(u64, u32)> = (0..1000).map(|_| (0, 1500)).collect();
            let fifo = deliveries(&mut link(keeps_credit, Rate(10_000_000), QueueConfig::UNLIMITED), &offers);
            let codel = QueueConfig::Codel(CodelParams {
                limit: None,
                target: Span::from_secs(9),
                interval: Span::from_secs(9),
                ecn: false,
                ce_threshold: None,
            });
            let held = deliveries(&mut link(keeps_credit, Rate(10_000_000), codel), &offers);
            assert_eq!(held, fifo);
        }
    }
}
