//! Linux RED (`sch_red`): counts bytes, without the gentle variant, with marks, `harddrop`, `nodrop` and an
//! adaptive drop probability.
//!
//! Source: Linux 7.3 `net/sched/sch_red.c`, `include/net/red.h`; conversion of arguments by `tc red`. The adaptation
//! is that of S. Floyd, R. Gummadi, S. Shenker, "Adaptive RED", 2001, without its choice of weight and thresholds.
//!
//! | variable | meaning |
//! |---|---|
//! | `qavg` | mean of the bytes that wait at each arrival, with `wlog` fraction bits |
//! | `wlog` | each arrival has the weight 2^-wlog |
//! | `max_p` | drop probability at `max`, in 2^-32; adapted every 504 ms if `adaptive` |
//! | `r` | drawn uniformly from [0, (max - min) / max_p) after each signal |
//! | `count` | packets since the last signal; the next one follows when count (qavg - min) reaches `r` |
//!
//! Above `max` every packet is signalled: by a mark with `ecn` and without `harddrop`, otherwise by a drop.
//!
//! Linux adapts every HZ / 2 ticks. Its timer wheel has a granularity of 8 ms at that distance, so with 1 ms ticks
//! the period is 504 ms.
//!
//! Differs: the phase of the adaptation timer before the run is unknown, so the timer starts with the run, as if `tc`
//! installed RED at that moment.
//!
//! Length: the mechanism, its form in the kernel and in `tc`, and the search for its weight, which tests take apart.

use ackclock_core::schema::words::rate as rate_in_words;
use ackclock_core::schema::{Limit, Refusal, Rules, Takes, COUNT, FLAG, RATE, SIZE};
use ackclock_core::{table, Rate, Span, Stream, Time};

use super::{ecn_capable, Admission, Arrival, Discipline, Refused};
use crate::qdisc::{general, refused, Qdisc, FULL_FRAME};

table! {
    /// RED as in Linux: counts bytes, signals every packet above `max`, and can adapt its probability.
    /// A signal is a mark or a drop.
    pub struct LinuxRedParams "linux-red" {
        /// Maximum length of the queue.
        limit: u64 = SIZE;
        /// Mean queue length at which signals begin. Default: a third of `max`.
        min: Option<u64> = SIZE;
        /// Mean queue length above which every packet is signalled. Default: a quarter of `limit`.
        max: Option<u64> = SIZE;
        /// Probability of a signal at a mean queue of `max`; with `adaptive`, its initial value.
        probability: f64 = Takes::Share, 0.02;
        /// Assumed packet size. The weight of the moving average and the duration of idle periods in packets are
        /// computed from it.
        avpkt: u64 = SIZE, 1000;
        /// Burst of packets that passes without a signal; the weight of the moving average is computed from it.
        /// Default: (2 min + max) / (3 avpkt).
        burst: Option<u32> = COUNT;
        /// Rate at which the mean decays while the queue is empty. Default: the mean does not decay, as below a shaper
        /// (HTB), which never requests a packet from an empty queue.
        bandwidth: Option<Rate> = RATE;
        /// Mark ECN-capable packets instead of dropping them.
        ecn: bool = FLAG, false;
        /// With `ecn`: above `max`, also drop ECN-capable packets.
        harddrop: bool = FLAG, false;
        /// With `ecn`: RED does not drop packets that are not ECN-capable.
        nodrop: bool = FLAG, false;
        /// Adjust the probability every 504 ms to keep the mean queue between 40 and 60 % of the way from `min` to
        /// `max`.
        adaptive: bool = FLAG, false;
    }
    rules LinuxRedParams::judge_thresholds
}

/// Options of `sch_red`.
pub(super) struct LinuxRedOptions {
    pub limit: u32,
    pub min: u32,
    pub max: u32,
    /// Maximum probability, in 2^-32.
    pub max_p: u32,
    pub wlog: u8,
    pub ecn: bool,
    pub harddrop: bool,
    pub adaptive: bool,
}

impl LinuxRedOptions {
    /// Return these options for netlink and `tc`. `tc` takes a burst, from which it derives the weight.
    pub fn qdisc(&self) -> Qdisc {
        let flags = self.ecn as u8 | (self.harddrop as u8) << 1 | (self.adaptive as u8) << 2;
        let mut parameters: Vec<u8> =
            [self.limit, self.min, self.max].into_iter().flat_map(u32::to_ne_bytes).collect();
        parameters.extend([self.wlog, 0, 10, flags]); // Plog is superseded by MAX_P; no idle damping table
        let parameters: [u8; 16] = parameters.try_into().expect("invariant: sixteen bytes");
        let burst = tc_burst(self.wlog, self.min as f64 / FULL_FRAME as f64);
        let words = format!(
            "limit {} min {} max {} probability {} avpkt {FULL_FRAME} burst {burst} bandwidth {{bits}}bit{}{}{}",
            self.limit,
            self.min,
            self.max,
            general(self.max_p as f64 / 4_294_967_296.0, 6),
            if self.ecn { " ecn" } else { "" },
            if self.harddrop { " harddrop" } else { "" },
            if self.adaptive { " adaptive" } else { "" },
        );
        Qdisc::new("red")
            .row(1, parameters, "")
            .row(2, [0u8; 256], "")
            .row(3, self.max_p, "")
            .renews(self.adaptive)
            .says(&words)
    }
}

impl Discipline for LinuxRedParams {
    type Queue = Box<LinuxRed>;

    fn queue(self, stream: impl FnOnce() -> Stream) -> Box<LinuxRed> {
        Box::new(LinuxRed::new(self, stream()))
    }

    fn limit(&self) -> Option<Limit> {
        Some(Limit::Bytes(self.limit))
    }

    /// Return Linux `sch_red` with these parameters.
    fn qdisc(&self, _: Span) -> Result<Qdisc, Refusal> {
        if let Some(rate) = self.bandwidth {
            return Err(refused("bandwidth", format_args!("{:?}", rate_in_words(rate.0))));
        }
        if self.nodrop {
            return Err(refused("nodrop", true));
        }
        let (min, max) = self.band();
        let fits = |bytes: u64| bytes.min(u32::MAX as u64) as u32;
        Ok(LinuxRedOptions {
            limit: fits(self.limit),
            min: fits(min),
            max: fits(max),
            max_p: self.max_p(),
            wlog: self.wlog()?,
            ecn: self.ecn,
            harddrop: self.harddrop,
            adaptive: self.adaptive,
        }
        .qdisc())
    }
}

/// Return the weight that `tc red` computes for a burst and a `min` in packets: the smallest w with burst + 1 - min
/// <= (1 - (1 - 2^-w)^burst) 2^w.
fn tc_wlog(burst: u32, min: f64) -> Option<u8> {
    let room = burst as f64 + 1.0 - min;
    (1..32u8).find(|&w| {
        let weight = libm::ldexp(1.0, -(w as i32));
        room <= (1.0 - libm::pow(1.0 - weight, burst as f64)) / weight
    })
}

/// Return the smallest burst for which `tc red` computes at least this weight, with a `min` in packets.
fn tc_burst(wlog: u8, min: f64) -> u32 {
    const MOST: u32 = 100_000;
    let first = (libm::ceil(min) as u32).max(1);
    (first..MOST).find(|&burst| tc_wlog(burst, min).is_none_or(|found| found >= wlog)).unwrap_or(MOST)
}

impl LinuxRedParams {
    /// `min` and `max` in bytes, with their defaults.
    pub fn band(&self) -> (u64, u64) {
        let max = self.max.unwrap_or(self.limit / 4);
        (self.min.unwrap_or(max / 3), max)
    }

    fn burst(&self) -> u32 {
        let (min, max) = self.band();
        self.burst.unwrap_or(((2 * min + max) / (3 * self.avpkt.max(1))).min(u32::MAX as u64) as u32)
    }

    fn judge_thresholds(&self, rules: &mut Rules) {
        let (min, max) = (self.min.unwrap_or(0), self.max.unwrap_or(u64::MAX));
        if min >= max {
            let max = rules.shown("max");
            return rules.refuse("min", format_args!("less than max, {max}"));
        }
        if min > self.limit {
            let min = rules.shown("min");
            return rules.refuse("limit", format_args!("at least min, {min}"));
        }
        if let Err(refusal) = self.wlog() {
            rules.refuse_as(&refusal.key, refusal.found, refusal.allowed);
        }
    }

    /// Return the weight that `tc` computes; see `tc_wlog`.
    pub fn wlog(&self) -> Result<u8, Refusal> {
        let (min, max) = self.band();
        if min >= max || max > self.limit {
            let found = format!("min {min}, max {max} and limit {} bytes", self.limit);
            return Err(Refusal::new(found, "min below max, max not above limit").within("max"));
        }
        if self.nodrop && !self.ecn {
            return Err(Refusal::new("true without ecn", "nodrop with ecn").within("nodrop"));
        }
        let (burst, least) = (self.burst(), min as f64 / self.avpkt as f64);
        let wlog = tc_wlog(burst, least).filter(|_| burst as f64 >= least);
        // the kernel stores the scaled thresholds in 32 bits
        wlog.filter(|&w| max << w < 1 << 31).ok_or_else(|| {
            let allowed = "a burst above min / avpkt, such that max times 2^wlog is below 2^31";
            Refusal::new(format!("burst {burst} with min {min} and avpkt {} bytes", self.avpkt), allowed)
                .within("burst")
        })
    }

    /// `max_p` in 2^-32.
    pub fn max_p(&self) -> u32 {
        libm::rint(self.probability * 4_294_967_296.0).min(u32::MAX as f64) as u32
    }
}

#[derive(Clone)]
pub(crate) struct LinuxRed {
    parameters: LinuxRedParams,
    min: u64,
    max: u64,
    wlog: u8,
    idle: Option<Damping>,
    qavg: u64,
    count: i64,
    r: u64,
    max_p: u32,
    /// max_p / (max - min), at least 1. Rounded down initially, to the nearest after an adaptation.
    per_byte: u64,
    /// Time of the next adaptation of `max_p`; NEVER without `adaptive`.
    adapts: Time,
    stream: Stream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    None,
    Early,
    Forced,
}

impl LinuxRed {
    pub(crate) fn new(parameters: LinuxRedParams, stream: Stream) -> LinuxRed {
        let wlog = parameters.wlog().expect("invariant: refused before a link is made");
        let (min, max) = parameters.band();
        LinuxRed {
            idle: parameters.bandwidth.map(|rate| Damping::new(wlog, rate.tx_time(parameters.avpkt as u32))),
            min,
            max,
            wlog,
            qavg: 0,
            count: -1,
            r: 0,
            max_p: parameters.max_p(),
            per_byte: (parameters.max_p() as u64 / (max - min)).max(1),
            adapts: if parameters.adaptive { Time(ADAPTS.0) } else { Time::NEVER },
            stream,
            parameters,
        }
    }

    pub(crate) fn admit(&mut self, arrival: &Arrival) -> Admission {
        let idle_since = arrival.finds_link_idle().then_some(arrival.busy_until);
        self.adapt(arrival.now, idle_since);
        self.qavg = match (idle_since, &self.idle) {
            (Some(since), Some(damping)) => damping.after(self.qavg, arrival.now - since),
            _ => self.qavg + arrival.backlog.bytes() - (self.qavg >> self.wlog),
        };
        let LinuxRedParams { ecn, harddrop, nodrop, limit, .. } = self.parameters;
        let signal = self.signal();
        let mark = match signal {
            Signal::None => false,
            _ if !ecn || (harddrop && signal == Signal::Forced) => return Admission::Refuse(Refused::Aqm),
            _ if ecn_capable(arrival.packet) => true,
            _ if nodrop => false,
            _ => return Admission::Refuse(Refused::Aqm),
        };
        let full = arrival.backlog.bytes() + arrival.packet.bytes as u64 > limit;
        match mark {
            _ if full && !arrival.finds_link_idle() => Admission::Refuse(Refused::QueueFull),
            true => Admission::Mark,
            false => Admission::Accept,
        }
    }

    /// Return the signal for an arrival (Linux `red_action`).
    fn signal(&mut self) -> Signal {
        if self.qavg < self.min << self.wlog {
            self.count = -1;
            return Signal::None;
        }
        if self.qavg >= self.max << self.wlog {
            self.count = -1;
            return Signal::Forced;
        }
        self.count += 1;
        let above = (self.qavg - (self.min << self.wlog)) >> self.wlog;
        if self.count == 0 {
            self.r = self.draw();
            return Signal::None;
        }
        if above.saturating_mul(self.count as u64) < self.r {
            return Signal::None;
        }
        self.count = 0;
        self.r = self.draw();
        Signal::Early
    }

    /// Draw uniformly from [0, (max - min) / max_p).
    fn draw(&mut self) -> u64 {
        (self.stream.next_u64() >> 32) / self.per_byte
    }

    /// Perform the adaptations due by `now` (Linux `red_adaptative_algo`).
    fn adapt(&mut self, now: Time, idle_since: Option<Time>) {
        while self.adapts <= now {
            let at = self.adapts;
            let idle = idle_since.filter(|&since| since <= at);
            let qavg = match (idle, &self.idle) {
                (Some(since), Some(damping)) => damping.after(self.qavg, at - since),
                _ => self.qavg,
            } >> self.wlog;
            let before = self.max_p;
            self.move_to(qavg);
            self.adapts = at + ADAPTS;
            if self.max_p == before && qavg == 0 {
                // nothing changes until a packet arrives
                let periods = (now - at).0 / ADAPTS.0;
                self.adapts = at + Span(periods * ADAPTS.0) + ADAPTS;
            }
        }
    }

    fn move_to(&mut self, qavg: u64) {
        let fifth = (self.max - self.min) / 5;
        if qavg > self.min + 3 * fifth && self.max_p <= MOST_P {
            self.max_p += LARGEST_STEP.min(self.max_p / 4);
        } else if qavg < self.min + 2 * fifth && self.max_p >= LEAST_P {
            self.max_p = self.max_p / 10 * 9;
        }
        let delta = self.max - self.min;
        self.per_byte = ((self.max_p as u64 + delta / 2) / delta).max(1);
    }
}

/// Decay of the mean queue length over an idle time, as a table of shifts (`tc`: `tc_red_eval_idle_damping`).
#[derive(Clone)]
struct Damping {
    shifts: [u8; 256],
    cell_log: u32,
}

impl Damping {
    fn new(wlog: u8, packet: Span) -> Damping {
        let us = packet.0.max(1) as f64 / 1000.0;
        let per_us = -libm::log(1.0 - libm::ldexp(1.0, -(wlog as i32))) / us;
        let cell_log = (0..31).find(|&c| 31.0 / per_us / libm::ldexp(1.0, c) < 512.0).unwrap_or(31) as u32;
        let mut shifts = [31; 256];
        shifts[0] = 0;
        for (i, shift) in shifts.iter_mut().enumerate().take(255).skip(1) {
            *shift = (libm::ldexp(i as f64, cell_log as i32) * per_us).min(31.0) as u8;
        }
        Damping { shifts, cell_log }
    }

    /// Return the mean queue length after an idle time (Linux `red_calc_qavg_from_idle_time`).
    fn after(&self, qavg: u64, idle: Span) -> u64 {
        let us = idle.as_us().min(255 << self.cell_log);
        match self.shifts[(us >> self.cell_log) as usize & 255] {
            0 => {
                let falls = (qavg as u128 * us as u128) >> self.cell_log;
                qavg - (falls as u64).min(qavg - (qavg >> 1))
            }
            shift => qavg >> shift,
        }
    }
}

/// Linux HZ / 2 on a timer wheel with a granularity of 8 ms: armed at a multiple of 8 ms, the timer expires at the
/// first multiple after 500 ms.
const ADAPTS: Span = Span::from_ms(504);
/// Linux MAX_P_MIN (RED_ONE_PERCENT, to the nearest), MAX_P_MAX and the maximum of MAX_P_ALPHA, in 2^-32.
const LEAST_P: u32 = 42_949_673;
const MOST_P: u32 = 50 * LEAST_P;
const LARGEST_STEP: u32 = LEAST_P;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Pool;
    use crate::queue::backlog::Backlog;
    use crate::wire::Wire;
    use ackclock_core::packet::Ecn;
    use ackclock_core::packet::{Class, Load};
    use ackclock_core::Packet;

    /// The fact sheet's vector: min 30000, max 90000, 1000-byte packets, a burst of 55.
    fn parameters() -> LinuxRedParams {
        LinuxRedParams {
            limit: 400_000,
            min: Some(30_000),
            max: Some(90_000),
            probability: 0.02,
            avpkt: 1000,
            burst: Some(55),
            bandwidth: None,
            ecn: false,
            harddrop: false,
            nodrop: false,
            adaptive: false,
        }
    }

    fn red(change: impl Fn(&mut LinuxRedParams)) -> LinuxRed {
        let mut parameters = parameters();
        change(&mut parameters);
        LinuxRed::new(parameters, Stream::new(1, "test"))
    }

    /// Offer one packet to a queue with `waiting` 1000-byte packets.
    fn admit(red: &mut LinuxRed, now: Time, waiting: u32, ecn: Ecn) -> Admission {
        let mut backlog = Backlog::default();
        backlog.expect(now, waiting);
        (0..waiting).for_each(|_| backlog.push(now + Span(1), Span(1), Load::new(Class::Data, 1, 1000)));
        let packet = Packet { bytes: 1000, ecn, ..Packet::default() };
        let (wire, pool) = (Wire::default(), Pool::default());
        let tx = Span::from_ms(1);
        let busy_until = now + Span(1);
        red.admit(&Arrival {
            now,
            packet: &packet,
            tx,
            busy_until,
            backlog: &backlog,
            wire: &wire,
            on_wire: 0,
            pool: &pool,
        })
    }

    #[test]
    fn the_weight_is_that_of_tc() {
        assert_eq!(parameters().wlog().unwrap(), 5);
        assert_eq!(LinuxRedParams { burst: None, ..parameters() }.burst(), 50);
        let defaults = LinuxRedParams { min: None, max: None, ..parameters() };
        assert_eq!(defaults.band(), (33_333, 100_000));
        assert!(LinuxRedParams { burst: Some(10), ..parameters() }.wlog().is_err());
        assert!(LinuxRedParams { min: Some(90_000), ..parameters() }.wlog().is_err());
        assert!(LinuxRedParams { nodrop: true, ..parameters() }.wlog().is_err());
    }

    /// Vectors of the L4S fact sheet, section 5: percentages after each period with the mean above, below and inside
    /// the band.
    #[test]
    fn the_probability_adapts_in_linux_steps() {
        let after = |qavg: u64, n: usize| -> Vec<f64> {
            let mut red = red(|p| p.adaptive = true);
            let mut step = || {
                red.move_to(qavg);
                (red.max_p as f64 / 4_294_967_296.0 * 1e5).round() / 1e3
            };
            (0..n).map(|_| step()).collect()
        };
        assert_eq!(after(66_001, 5), [2.5, 3.125, 3.906, 4.883, 5.883]);
        assert_eq!(after(53_999, 3), [1.8, 1.62, 1.458]);
        assert_eq!(after(60_000, 2), [2.0, 2.0]);
        let ends = |qavg| *after(qavg, 200).last().unwrap();
        assert!(ends(80_000) > 50.0 && ends(80_000) < 51.01);
        assert!(ends(0) < 1.0 && ends(0) > 0.89);
    }

    #[test]
    fn it_adapts_every_504_ms_whoever_asks_when() {
        let at = |times: &[u64]| {
            let mut red = red(|p| p.adaptive = true);
            red.qavg = 80_000 << 5;
            for &ms in times {
                red.adapt(Time(ms * 1_000_000), None);
            }
            red.max_p
        };
        assert_eq!(at(&[503]), parameters().max_p());
        assert_eq!(at(&[504, 900, 1008, 1511, 1512]), at(&[1700]));
        assert_ne!(at(&[504, 900, 1008, 1511]), at(&[1700]));
        let mut idle = red(|p| p.adaptive = true);
        idle.adapt(Time(u64::MAX / 4), None); // terminates, although 10^10 periods have passed
        assert!(idle.max_p < LEAST_P);
    }

    #[test]
    fn signals_come_as_often_as_the_mean_asks() {
        // u is uniform, and a signal follows at count >= u / p: intervals average 1 / (2 p) packets
        let share = |avg: u64| {
            let mut red = red(|_| {});
            let n = 400_000;
            let signals = (0..n).filter(|_| {
                red.qavg = avg << 5;
                red.signal() == Signal::Early
            });
            signals.count() as f64 / n as f64
        };
        assert_eq!(share(29_999), 0.0);
        for (avg, p) in [(45_000, 0.005), (60_000, 0.01), (84_000, 0.018)] {
            assert!((share(avg) / (2.0 * p) - 1.0).abs() < 0.03, "{avg}: {}", share(avg));
        }
    }

    #[test]
    fn above_max_all_are_marked_or_dropped() {
        let verdict = |change: fn(&mut LinuxRedParams), waiting: u32, ecn: Ecn| {
            let mut red = red(change);
            (red.qavg, red.count) = ((waiting as u64 * 1000) << 5, -1);
            let all: Vec<_> = (0..50).map(|_| admit(&mut red, Time(1), waiting, ecn)).collect();
            assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
            all[0]
        };
        let (drop, full) = (Admission::Refuse(Refused::Aqm), Admission::Refuse(Refused::QueueFull));
        assert_eq!(verdict(|_| {}, 100, Ecn::Ect0), drop);
        assert_eq!(verdict(|p| p.ecn = true, 100, Ecn::Ect0), Admission::Mark);
        assert_eq!(verdict(|p| p.ecn = true, 100, Ecn::NotEct), drop);
        assert_eq!(verdict(|p| (p.ecn, p.harddrop) = (true, true), 100, Ecn::Ect0), drop);
        assert_eq!(verdict(|p| (p.ecn, p.nodrop) = (true, true), 100, Ecn::NotEct), Admission::Accept);
        assert_eq!(verdict(|p| p.ecn = true, 400, Ecn::Ect0), full);
        assert_eq!(verdict(|_| {}, 20, Ecn::Ect0), Admission::Accept);
    }

    #[test]
    fn the_mean_is_a_fixed_point_number_that_falls_while_idle() {
        let mut red = red(|_| {});
        admit(&mut red, Time(1), 32, Ecn::NotEct);
        assert_eq!(red.qavg, 32_000);
        admit(&mut red, Time(1), 32, Ecn::NotEct);
        assert_eq!(red.qavg, 32_000 + 32_000 - 1000);
        // 1000 bytes at 8 Mbit/s take 1 ms, so after m ms the mean should have decayed to (31/32)^m, or e^(-m/31.5).
        // `tc` uses that exponent for a table of shifts, which gives 2^(-m/31.5).
        let damping = Damping::new(5, Span::from_ms(1));
        for (ms, left) in [(16, 1), (34, 1), (65, 2), (110, 3), (320, 10)] {
            assert_eq!(damping.after(1 << 20, Span::from_ms(ms)), 1 << (20 - left), "{ms} ms");
        }
        assert_eq!(damping.after(1 << 20, Span::ZERO), 1 << 20);
        assert_eq!(damping.after(1 << 20, Span::from_secs(100)), 0);
    }
}
