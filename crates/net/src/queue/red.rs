//! RED: drops (or marks) arriving packets at random, with a probability that grows with the average queue length, so
//! that a queue signals congestion before it is full.
//!
//! Sources: S. Floyd, V. Jacobson, "Random Early Detection gateways for congestion avoidance", IEEE/ACM ToN 1(4), 1993,
//! figure 2 for the algorithm; S. Floyd, "Recommendation on using the gentle variant of RED", 2000: between max_th
//! and 2 max_th the probability rises from max_p to 1 instead of jumping to 1.
//!
//! | variable | meaning |
//! |---|---|
//! | `avg` | average queue length, packets, an exponentially weighted moving average with weight `w_q` |
//! | `count` | packets since the last drop while `avg` is above `min_th`, -1 below it |
//! | `p_b` | probability for the current `avg`; `p_a` = p_b / (1 - count p_b) spaces the drops uniformly |
//! | `q_time` | start of the idle time, here the end of the last transmission |
//! | `s` | typical transmission time, here that of the largest packet so far |
//!
//! Differs: the queue is idle when the transmitter is, not when no packet waits (the packet in transmission is not
//! part of the queue). A packet that finds the queue full updates the average before it is dropped. With `ecn`, marks
//! replace drops only below 2 max_th; above it packets are dropped (RFC 3168 §7).

use ackclock_core::rng::threshold;
use ackclock_core::schema::{Limit, Refusal, Rules, Takes, FLAG};
use ackclock_core::{table, Span, Stream};

use super::linux_red::LinuxRedOptions;
use super::{ecn_capable, Admission, Arrival, Discipline, Refused};
use crate::qdisc::{general, refused, share, Qdisc, FULL_FRAME};

table! {
    /// Gentle RED (Floyd and Jacobson 1993): drops packets with a probability that rises with the mean queue length.
    pub struct RedParams "red" {
        /// Maximum length of the queue: packets or multiples of the bandwidth-delay product.
        limit: u32 = Takes::PacketLimit;
        /// Mean queue length at which drops begin (min_th).
        min: f64 = Takes::MeanPackets;
        /// Mean queue length at which the drop probability reaches `max_p` (max_th). Above it the probability rises
        /// linearly, to 1 at twice `max`.
        max: f64 = Takes::MeanPackets;
        /// Drop probability at a mean queue of `max`.
        max_p: f64 = Takes::Share, 0.1;
        /// Weight of one arrival in the moving average of the queue length (w_q).
        weight: f64 = Takes::Share, 0.002;
        /// Mark ECN-capable packets instead of dropping them.
        ecn: bool = FLAG, false;
    }
    rules |red, rules| thresholds(red.min, red.max, red.limit, rules)
}

impl Discipline for RedParams {
    type Queue = Box<Red>;

    fn queue(self, stream: impl FnOnce() -> Stream) -> Box<Red> {
        Box::new(Red::new(self, stream()))
    }

    fn limit(&self) -> Option<Limit> {
        Some(Limit::Packets(self.limit))
    }

    /// Return Linux `sch_red`, which counts bytes and needs a weight that is a power of 1/2.
    fn qdisc(&self, _: Span) -> Result<Qdisc, Refusal> {
        let wlog = (1..32u8).find(|&n| libm::fabs(libm::ldexp(self.weight, n as i32) - 1.0) < 0.05);
        let wlog = wlog.ok_or_else(|| {
            let weight = general(self.weight, 6);
            refused("weight", format_args!("{weight}, which is no power of 1/2 (the kernel's)"))
        })?;
        let bytes = |packets: f64| libm::rint(packets * FULL_FRAME as f64) as u32;
        Ok(LinuxRedOptions {
            limit: self.limit.saturating_mul(FULL_FRAME),
            min: bytes(self.min),
            max: bytes(self.max),
            max_p: share(self.max_p),
            wlog,
            ecn: self.ecn,
            harddrop: false,
            adaptive: false,
        }
        .qdisc())
    }
}

/// Check RED's thresholds: `min` is below `max` and not above the limit.
pub(super) fn thresholds(min: f64, max: f64, limit: u32, rules: &mut Rules) {
    if min >= max {
        let max = rules.shown("max");
        rules.refuse("min", format_args!("less than max, {max}"));
    }
    if min > limit as f64 {
        let min = rules.shown("min");
        rules.refuse("limit", format_args!("at least min, {min}"));
    }
}

#[derive(Clone)]
pub(crate) struct Red {
    parameters: RedParams,
    avg: f64,
    count: i64,
    s: Span,
    stream: Stream,
}

/// Signal required by the average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    None,
    Early,
    Forced,
}

impl Red {
    pub(crate) fn new(parameters: RedParams, stream: Stream) -> Red {
        Red { parameters, avg: 0.0, count: -1, s: Span::ZERO, stream }
    }

    pub(crate) fn admit(&mut self, arrival: &Arrival) -> Admission {
        self.update_average(arrival);
        let full = arrival.backlog.len() + arrival.packet.segments() > self.parameters.limit
            && !arrival.finds_link_idle();
        match self.signal() {
            Signal::Early if !(self.parameters.ecn && ecn_capable(arrival.packet)) => {
                Admission::Refuse(Refused::Aqm)
            }
            Signal::Forced => Admission::Refuse(Refused::Aqm),
            _ if full => Admission::Refuse(Refused::QueueFull),
            Signal::Early => Admission::Mark,
            Signal::None => Admission::Accept,
        }
    }

    /// Update the average at an arrival. After an idle time in which m packets could have been sent, it shrinks by a
    /// factor of `(1 - w_q)^m`.
    fn update_average(&mut self, arrival: &Arrival) {
        self.s = self.s.max(arrival.tx);
        let w_q = self.parameters.weight;
        if !arrival.finds_link_idle() {
            self.avg += w_q * (arrival.backlog.len() as f64 - self.avg);
        } else if self.avg > 0.0 {
            let q_time = arrival.busy_until;
            let m = (arrival.now - q_time).0 as f64 / self.s.0.max(1) as f64;
            self.avg *= libm::pow(1.0 - w_q, m);
        }
    }

    fn signal(&mut self) -> Signal {
        let RedParams { min: min_th, max: max_th, max_p, .. } = self.parameters;
        if self.avg < min_th {
            self.count = -1;
            return Signal::None;
        }
        let p_b = if self.avg < max_th {
            max_p * (self.avg - min_th) / (max_th - min_th)
        } else if self.avg < 2.0 * max_th {
            max_p + (1.0 - max_p) * (self.avg - max_th) / max_th
        } else {
            self.count = 0;
            return Signal::Forced;
        };
        self.count += 1;
        let room = 1.0 - self.count as f64 * p_b;
        let p_a = if room > p_b { p_b / room } else { 1.0 };
        if !self.stream.chance(threshold(p_a)) {
            return Signal::None;
        }
        self.count = 0;
        Signal::Early
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Pool;
    use crate::queue::backlog::Backlog;
    use crate::wire::Wire;
    use ackclock_core::packet::Ecn;
    use ackclock_core::packet::{Class, Load};
    use ackclock_core::{Packet, Time};

    fn red(ecn: bool) -> Red {
        let parameters = RedParams { limit: 100, min: 5.0, max: 15.0, max_p: 0.1, weight: 0.002, ecn };
        Red::new(parameters, Stream::new(1, "test"))
    }

    /// Offer one packet to a link that has been idle since `idle_since`, or else has `waiting` packets.
    fn admit(red: &mut Red, idle_since: Option<Time>, waiting: u32, ecn: Ecn) -> Admission {
        let now = Time(1_000_000_000);
        let mut backlog = Backlog::default();
        backlog.expect(now, waiting);
        (0..waiting).for_each(|_| backlog.push(now + Span(1), Span(1), Load::new(Class::Data, 1, 1500)));
        let packet = Packet { bytes: 1500, ecn, ..Packet::default() };
        let busy_until = idle_since.unwrap_or(now + Span(1));
        let tx = Span::from_ms(1);
        red.admit(&Arrival {
            now,
            packet: &packet,
            tx,
            busy_until,
            backlog: &backlog,
            wire: &Wire::default(),
            on_wire: 0,
            pool: &Pool::default(),
        })
    }

    /// Fraction of `n` packets signalled while the average stays at `avg`.
    fn share(avg: f64, n: u32) -> f64 {
        let mut red = red(false);
        let signalled = (0..n).filter(|_| {
            red.avg = avg;
            red.signal() != Signal::None
        });
        signalled.count() as f64 / f64::from(n)
    }

    #[test]
    fn probability_follows_the_average() {
        assert_eq!(share(4.99, 1000), 0.0);
        // Gaps are uniform on 1..1/p_b - 1, hence on average 1 / (2 p_b) packets (figure 2 counts from one).
        for (avg, p_b) in [(6.0, 0.01), (10.0, 0.05), (14.0, 0.09), (15.0 + 15.0 * 0.1 / 0.9, 0.2)] {
            let got = share(avg, 400_000);
            assert!((got / (2.0 * p_b) - 1.0).abs() < 0.15, "{avg}: {got}");
        }
        assert_eq!(share(30.0, 1000), 1.0);
    }

    #[test]
    fn gaps_between_drops_are_uniform() {
        let mut red = red(false);
        let mut gaps = [0u32; 64];
        let mut gap = 0;
        for _ in 0..500_000 {
            red.avg = 10.0; // p_b = 0.05: gaps 1..=19 equally likely
            gap += 1;
            if red.signal() == Signal::Early {
                gaps[gap] += 1;
                gap = 0;
            }
        }
        assert!(gaps[20..].iter().all(|&g| g == 0), "{gaps:?}");
        let mean = gaps.iter().sum::<u32>() as f64 / 19.0;
        assert!(gaps[1..20].iter().all(|&g| (g as f64 / mean - 1.0).abs() < 0.1), "{gaps:?}");
    }

    #[test]
    fn average_is_weighted_and_decays_over_idle_time() {
        let mut red = red(false);
        admit(&mut red, None, 10, Ecn::NotEct);
        assert_eq!(red.avg, 0.02);
        admit(&mut red, None, 10, Ecn::NotEct);
        assert!((red.avg - 0.03996).abs() < 1e-12);
        // Idle for 500 ms, long enough to send 500 packets.
        red.avg = 4.0;
        admit(&mut red, Some(Time(500_000_000)), 0, Ecn::NotEct);
        assert!((red.avg - 4.0 * 0.998f64.powi(500)).abs() < 1e-9);
    }

    #[test]
    fn ecn_marks_below_twice_max_th_and_the_limit_holds() {
        let first_signal = |ecn: bool, packet: Ecn, avg: f64| {
            let mut red = red(ecn);
            let signals = std::iter::repeat_with(|| {
                red.avg = avg;
                admit(&mut red, None, avg as u32, packet)
            });
            signals.take(200).find(|&v| v != Admission::Accept)
        };
        assert_eq!(first_signal(true, Ecn::Ect0, 12.0), Some(Admission::Mark));
        assert_eq!(first_signal(true, Ecn::NotEct, 12.0), Some(Admission::Refuse(Refused::Aqm)));
        assert_eq!(first_signal(false, Ecn::Ect0, 12.0), Some(Admission::Refuse(Refused::Aqm)));
        assert_eq!(first_signal(true, Ecn::Ect0, 31.0), Some(Admission::Refuse(Refused::Aqm)));
        let mut red = red(false);
        assert_eq!(admit(&mut red, None, 99, Ecn::NotEct), Admission::Accept);
        assert_eq!(admit(&mut red, None, 100, Ecn::NotEct), Admission::Refuse(Refused::QueueFull));
    }
}
