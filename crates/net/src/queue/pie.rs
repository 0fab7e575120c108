//! PIE: keeps the queueing delay near a reference by dropping (or marking) arrivals at random with a probability that a
//! proportional-integral controller adjusts at fixed intervals.
//!
//! Source: RFC 8033 (Pan, Natarajan, Baker, White 2017), §4 and appendix A, also for the names.
//!
//! | variable | meaning |
//! |---|---|
//! | `drop_prob` | probability of a drop |
//! | `qdelay_old` | queueing delay at the last update |
//! | `burst_allowance` | remaining time without drops |
//! | `accu_prob` | sum of the probabilities since the last drop, which spreads drops out (§5.3) |
//!
//! The delay at an update is the time that the transmitter needs for all packets in the queue. That time is known
//! exactly, so no departure rate is estimated (§5.2). Updates are computed at the next arrival, since nothing else
//! changes between arrivals.

use ackclock_core::schema::{Limit, Refusal, Takes, DURATION, FLAG};
use ackclock_core::{table, Span, Stream, Time};

use super::{ecn_capable, Admission, Arrival, Discipline, Refused};
use crate::qdisc::{time, Qdisc, ENOUGH};

table! {
    /// PIE (RFC 8033): drops arriving packets at random to keep the queueing delay near a reference.
    pub struct PieParams "pie" {
        /// Maximum length of the queue: packets or multiples of the bandwidth-delay product. Default: unlimited.
        limit: Option<u32> = Takes::PacketLimit;
        /// Reference for the queueing delay (QDELAY_REF, §4.1).
        target: Span = DURATION, Span::from_ms(15);
        /// Interval at which the drop probability is adjusted (T_UPDATE, §4.2).
        update: Span = DURATION, Span::from_ms(15);
        /// Length of a burst that passes without drops (MAX_BURST, §4.4).
        max_burst: Span = DURATION, Span::from_ms(150);
        /// Mark ECN-capable packets instead of dropping them while the drop probability is at most 10 % (§5.1).
        ecn: bool = FLAG, false;
    }
}

impl Discipline for PieParams {
    type Queue = Box<Pie>;

    fn queue(self, stream: impl FnOnce() -> Stream) -> Box<Pie> {
        Box::new(Pie::new(self, stream()))
    }

    fn limit(&self) -> Option<Limit> {
        self.limit.map(Limit::Packets)
    }

    /// Return the arguments of `tc` for Linux `sch_pie`. The kernel's PIE has not been compared with this one, so the
    /// linux backend does not accept it.
    fn qdisc(&self, _: Span) -> Result<Qdisc, Refusal> {
        Ok(Qdisc::new("pie")
            .says(&format!("limit {}", self.limit.unwrap_or(ENOUGH)))
            .says(&format!("target {} tupdate {}", time(self.target.0), time(self.update.0)))
            .says(if self.ecn { "ecn" } else { "noecn" }))
    }
}

#[derive(Clone)]
pub(crate) struct Pie {
    params: PieParams,
    stream: Stream,
    drop_prob: f64,
    qdelay_old: Span,
    burst_allowance: Span,
    accu_prob: f64,
    /// Time of the next update.
    due: Time,
    /// Time at which the transmitter becomes idle, as of the last arrival.
    busy_until: Time,
}

impl Pie {
    pub(crate) fn new(params: PieParams, stream: Stream) -> Pie {
        Pie {
            stream,
            drop_prob: 0.0,
            qdelay_old: Span::ZERO,
            burst_allowance: params.max_burst,
            accu_prob: 0.0,
            due: Time::ZERO + params.update,
            busy_until: Time::ZERO,
            params,
        }
    }

    pub(crate) fn admit(&mut self, arrival: &Arrival) -> Admission {
        self.busy_until = arrival.busy_until;
        self.catch_up(arrival.now);
        let full =
            self.params.limit.is_some_and(|limit| arrival.backlog.len() + arrival.packet.segments() > limit);
        if full && !arrival.finds_link_idle() {
            self.accu_prob = 0.0;
            return Admission::Refuse(Refused::QueueFull);
        }
        if self.burst_allowance > Span::ZERO || !self.drop_early(arrival) {
            return Admission::Accept;
        }
        if self.params.ecn && self.drop_prob <= MARK_ECNTH && ecn_capable(arrival.packet) {
            return Admission::Mark;
        }
        Admission::Refuse(Refused::Aqm)
    }

    /// Decide at random whether to drop an arrival (§4.1, §5.3).
    fn drop_early(&mut self, arrival: &Arrival) -> bool {
        let half = Span(self.params.target.0 / 2);
        let light = self.qdelay_old < half && self.drop_prob < 0.2;
        if light || arrival.backlog.bytes() <= 2 * MEAN_PKTSIZE {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.drop_prob;
        if self.accu_prob < 0.85 {
            return false;
        }
        let drops = self.accu_prob >= 8.5 || self.stream.unit() < self.drop_prob;
        if drops {
            self.accu_prob = 0.0;
        }
        drops
    }

    /// Perform the updates due by `now`.
    fn catch_up(&mut self, now: Time) {
        while self.due <= now {
            let at = self.due;
            let at_rest = self.update(self.busy_until.since(at));
            self.due = at + self.params.update;
            if at_rest && self.due <= now {
                let missed = now.since(self.due).0 / self.params.update.0 + 1;
                self.due += self.params.update * missed;
            }
        }
    }

    /// Perform one update (§4.2, §4.3) with the delay at this time. Returns true if further updates change nothing
    /// until a packet arrives.
    fn update(&mut self, qdelay: Span) -> bool {
        let off = qdelay.as_secs() - self.params.target.as_secs();
        let growth = qdelay.as_secs() - self.qdelay_old.as_secs();
        let mut p = ALPHA * off + BETA * growth;
        p /= match self.drop_prob {
            x if x < 0.000_001 => 2048.0,
            x if x < 0.000_01 => 512.0,
            x if x < 0.000_1 => 128.0,
            x if x < 0.001 => 32.0,
            x if x < 0.01 => 8.0,
            x if x < 0.1 => 2.0,
            _ => 1.0,
        };
        if self.drop_prob >= 0.1 {
            p = p.min(0.02);
        }
        self.drop_prob += p;
        let idle = qdelay == Span::ZERO && self.qdelay_old == Span::ZERO;
        if idle {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        let qdelay_old = std::mem::replace(&mut self.qdelay_old, qdelay);
        self.burst_allowance = self.burst_allowance.saturating_sub(self.params.update);
        let half = Span(self.params.target.0 / 2);
        if self.drop_prob == 0.0 && qdelay < half && qdelay_old < half {
            self.burst_allowance = self.params.max_burst;
        }
        idle && self.drop_prob == 0.0
    }
}

/// Gains of §4.2, per second.
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
/// MEAN_PKTSIZE, bytes.
const MEAN_PKTSIZE: u64 = 1500;
/// Maximum drop probability at which packets are marked instead of dropped (MARK_ECNTH).
const MARK_ECNTH: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LinkConfig, QueueConfig, SoleLink};
    use ackclock_core::packet::Ecn;
    use ackclock_core::{Packet, Rate};

    fn params(ecn: bool) -> PieParams {
        PieParams {
            limit: None,
            target: Span::from_ms(15),
            update: Span::from_ms(15),
            max_burst: Span::from_ms(150),
            ecn,
        }
    }

    /// Offer a 1 Mbit/s link `percent` of its rate for 100 s. Returns the fraction of packets dropped or marked, and
    /// the mean wait in s.
    fn overload(percent: u64, ecn: bool) -> (f64, f64) {
        let queue = QueueConfig::Pie(params(ecn));
        let mut link =
            SoleLink::new(&LinkConfig { queue, ..LinkConfig::new("l", Rate(1_000_000), Span::ZERO) }, 1);
        let gap = 12_000_000 * 100 / percent;
        for i in 0..100_000_000_000 / gap {
            let now = Time(i * gap);
            while link.next_event() <= now {
                link.poll(link.next_event());
            }
            let mark = if ecn { Ecn::Ect0 } else { Ecn::NotEct };
            let _ = link.offer(now, Packet { bytes: 1500, ecn: mark, ..Packet::default() });
        }
        let c = link.counters(Time(100_000_000_000));
        ((c.dropped_queue + c.marked) as f64 / c.arrivals as f64, c.mean_wait_s)
    }

    #[test]
    fn holds_the_delay_near_its_reference_under_overload() {
        for percent in [105, 120, 150] {
            let (dropped, wait) = overload(percent, false);
            let excess = 1.0 - 100.0 / percent as f64;
            assert!((dropped - excess).abs() < 0.02, "{percent} %: {dropped}, not {excess}");
            assert!((0.008..0.04).contains(&wait), "{percent} %: {wait} s");
        }
        assert_eq!(overload(95, false).0, 0.0);
        assert!(overload(105, true).0 > 0.03, "marks");
    }

    #[test]
    fn a_first_burst_is_let_through() {
        let queue = QueueConfig::Pie(params(false));
        let mut link =
            SoleLink::new(&LinkConfig { queue, ..LinkConfig::new("l", Rate(1_000_000), Span::ZERO) }, 1);
        let burst =
            (0..100).filter(|_| link.offer(Time(1), Packet { bytes: 1500, ..Packet::default() }).is_ok());
        assert_eq!(burst.count(), 100);
    }

    /// Appendix A, computed by hand: delays of 30 ms at each update, from the initial state.
    #[test]
    fn the_probability_follows_the_control_law() {
        let mut pie = Pie::new(params(false), Stream::new(1, "test"));
        pie.update(Span::from_ms(30));
        // (0.125 * 0.015 + 1.25 * 0.030) / 2048
        assert!((pie.drop_prob - (0.001_875 + 0.0375) / 2048.0).abs() < 1e-12);
        let before = pie.drop_prob;
        pie.update(Span::from_ms(30));
        assert!((pie.drop_prob - before - 0.001_875 / 128.0).abs() < 1e-12, "{}", pie.drop_prob);
    }

    #[test]
    fn updates_made_up_for_are_those_that_were_due() {
        let (mut early, mut late) =
            (Pie::new(params(false), Stream::new(1, "t")), Pie::new(params(false), Stream::new(1, "t")));
        for pie in [&mut early, &mut late] {
            pie.busy_until = Time(400_000_000);
        }
        (0..3000).for_each(|ms| early.catch_up(Time(ms * 1_000_000)));
        late.catch_up(Time(2_999_000_000));
        assert_eq!(early.drop_prob.to_bits(), late.drop_prob.to_bits());
        assert_eq!((early.due, early.burst_allowance), (late.due, late.burst_allowance));
    }
}
