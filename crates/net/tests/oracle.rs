//! FIFO links against a slow, obvious queue that is simulated event by event: identical fates, deliveries at the same
//! nanosecond, and identical sums. CoDel with a target that is never exceeded also behaves as a FIFO.

use std::collections::VecDeque;

use ackclock_core::{Packet, Rate, Span, Time};
use ackclock_net::{
    CodelParams, DropTailParams, Limit, LinkConfig, NetemLimitParams, QueueConfig, Refused, SoleLink,
};
use proptest::prelude::*;

/// Server with a queue in front and a delay line behind, advanced from event to event.
struct Oracle {
    rate: Rate,
    delay: u64,
    queue: QueueConfig,
    now: u64,
    waiting: VecDeque<Packet>,
    /// Packet in transmission, and the end of its transmission.
    sending: Option<(Packet, u64)>,
    delay_line: VecDeque<(Packet, u64)>,
    delivered: Vec<(u64, u32)>,
    area: u128,
    max: u32,
    busy: u64,
}

impl Oracle {
    fn new(config: &LinkConfig) -> Oracle {
        Oracle {
            rate: config.rate,
            delay: config.delay.0,
            queue: config.queue.clone(),
            now: 0,
            waiting: VecDeque::new(),
            sending: None,
            delay_line: VecDeque::new(),
            delivered: Vec::new(),
            area: 0,
            max: 0,
            busy: 0,
        }
    }

    /// Process all events up to and including `t`.
    fn advance(&mut self, t: u64) {
        loop {
            let end = self.sending.map_or(u64::MAX, |s| s.1);
            let arrival = self.delay_line.front().map_or(u64::MAX, |d| d.1);
            let event = end.min(arrival);
            self.pass_time(event.min(t));
            if event > t {
                return;
            }
            if end == event {
                let (packet, _) = self.sending.take().expect("ends");
                if !self.hands_down() {
                    self.delay_line.push_back((packet, end + self.delay));
                }
                self.start();
            } else {
                let (packet, at) = self.delay_line.pop_front().expect("arrives");
                self.delivered.push((at, packet.conn));
            }
        }
    }

    fn pass_time(&mut self, t: u64) {
        self.area += self.waiting.len() as u128 * (t - self.now) as u128;
        if self.sending.is_some() {
            self.busy += t - self.now;
        }
        self.now = t;
    }

    fn start(&mut self) {
        if let Some(packet) = self.waiting.pop_front() {
            self.sending = Some((packet, self.now + self.rate.tx_time(packet.bytes).0));
            if self.hands_down() {
                self.delay_line.push_back((packet, self.now + self.delay));
            }
        }
    }

    /// Whether a packet is forwarded when its transmission starts.
    fn hands_down(&self) -> bool {
        matches!(self.queue, QueueConfig::NetemLimit(_))
    }

    fn offer(&mut self, t: u64, packet: Packet) -> Result<(), Refused> {
        self.advance(t);
        let idle = self.sending.is_none();
        let bytes: u64 = self.waiting.iter().map(|p| p.bytes as u64).sum();
        let fits = match self.queue {
            QueueConfig::DropTail(DropTailParams { limit: None }) => true,
            QueueConfig::DropTail(DropTailParams { limit: Some(Limit::Packets(n)) })
            | QueueConfig::Codel(CodelParams { limit: Some(n), .. }) => {
                idle || self.waiting.len() < n as usize
            }
            QueueConfig::DropTail(DropTailParams { limit: Some(Limit::Bytes(n)) }) => {
                idle || bytes + packet.bytes as u64 <= n
            }
            QueueConfig::Codel(_) => true,
            QueueConfig::NetemLimit(NetemLimitParams { limit }) => {
                self.waiting.len() + self.delay_line.len() < limit as usize
            }
            _ => unreachable!("not a plain FIFO"),
        };
        if !fits {
            return Err(Refused::QueueFull);
        }
        self.waiting.push_back(packet);
        if idle {
            self.start();
            self.advance(t);
        }
        self.max = self.max.max(self.waiting.len() as u32);
        Ok(())
    }
}

fn fifo() -> impl Strategy<Value = QueueConfig> {
    let packets = || prop::option::of(0u32..12);
    prop_oneof![
        packets().prop_map(|limit| QueueConfig::drop_tail(limit.map(Limit::Packets))),
        (0u64..20_000).prop_map(|bytes| QueueConfig::drop_tail(Some(Limit::Bytes(bytes)))),
        (0u32..30).prop_map(|limit| QueueConfig::NetemLimit(NetemLimitParams { limit })),
        packets().prop_map(|limit| {
            let interval = Span::from_ms(100);
            QueueConfig::Codel(CodelParams {
                limit,
                target: Span::MAX,
                interval,
                ecn: false,
                ce_threshold: None,
            })
        }),
    ]
}

fn rate() -> impl Strategy<Value = Rate> {
    // 8 Gb/s: one byte per ns, so that many events fall on the same nanosecond.
    prop_oneof![
        Just(Rate(8_000_000_000)),
        Just(Rate::INFINITE),
        (1_000_000u64..20_000_000_000).prop_map(Rate)
    ]
}

/// Inter-arrival gaps, often zero and often equal to transmission times, with packet sizes.
fn arrivals() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let gap = prop_oneof![Just(0), Just(66), Just(1514), 0u64..3000, 0u64..100_000];
    let bytes = prop_oneof![Just(1514u32), Just(66), Just(0), 1u32..1600];
    prop::collection::vec((gap, bytes), 1..200)
}

/// Poll all deliveries up to and including `t`, as the world does: event by event.
fn poll_until(link: &mut SoleLink, t: u64, out: &mut Vec<(u64, u32)>) {
    while link.next_event() <= Time(t) && link.next_event() != Time::NEVER {
        let now = link.next_event();
        out.extend(std::iter::from_fn(|| link.poll(now)).map(|p| (now.0, p.conn)));
    }
}

proptest! {
    #[test]
    fn computed_departures_equal_simulated_ones(
        queue in fifo(),
        rate in rate(),
        delay in prop_oneof![Just(0u64), 0u64..50_000],
        arrivals in arrivals(),
        poll_first in any::<bool>(),
    ) {
        let config = LinkConfig { queue, ..LinkConfig::new("l", rate, Span(delay)) };
        let (mut link, mut oracle) = (SoleLink::new(&config, 1), Oracle::new(&config));
        let mut delivered = Vec::new();
        let mut t = 0;
        for (conn, &(gap, bytes)) in arrivals.iter().enumerate() {
            t += gap;
            let packet = Packet { conn: conn as u32, bytes, ..Packet::default() };
            // Deliveries of the same nanosecond may be taken before or after the offer.
            poll_until(&mut link, if poll_first { t } else { t.saturating_sub(1) }, &mut delivered);
            prop_assert_eq!(link.offer(Time(t), packet), oracle.offer(t, packet), "packet {}", conn);
            oracle.advance(t);
            prop_assert_eq!(link.waiting(Time(t)) as usize, oracle.waiting.len());
            let counters = link.counters(Time(t));
            let mean = if t == 0 { 0.0 } else { oracle.area as f64 / t as f64 };
            prop_assert_eq!(counters.mean_packets, mean);
            prop_assert_eq!(counters.max_packets, oracle.max);
            prop_assert_eq!(counters.busy, Span(oracle.busy));
        }
        poll_until(&mut link, t + 1_000_000_000, &mut delivered);
        oracle.advance(t + 1_000_000_000);
        prop_assert_eq!(&delivered, &oracle.delivered);
        let counters = link.counters(Time(t + 1_000_000_000));
        prop_assert_eq!(counters.delivered as usize, delivered.len());
        prop_assert_eq!(counters.held, 0);
        prop_assert_eq!(link.next_event(), Time::NEVER);
    }
}
