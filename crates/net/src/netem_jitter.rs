//! Jitter of Linux netem: drawn around the delay from a distribution, with netem's correlation. Packets overtake each
//! other as in netem's queue, which is ordered by the time of delivery; behind a rate they keep their order.
//!
//! Source: Linux 6.x sch_netem (`tabledist`, `get_crandom`, `tfifo_enqueue`), paraphrased. Tables with 4,096 entries
//! in units of 1/8192 of the deviation, netem's format, are computed from the distributions' formulas; iproute2's
//! files are not used (decision 0065). Differs: the random numbers come from one of our streams. A link
//! with a rate delays packets after their transmission, unless `before_rate` is set; netem always delays them before.

use std::collections::VecDeque;
use std::sync::OnceLock;

use ackclock_core::schema::{Takes, DURATION, FLAG};
use ackclock_core::{choice, table, Span, Stream, Time};

use crate::pool::PacketId;
use crate::qdisc;

table! {
    /// Jitter of Linux netem (`delay TIME JITTER CORRELATION distribution NAME`): the delay of each packet is drawn
    /// around the link's `delay`.
    /// The delay is at least zero. On a link without a rate, packets overtake each other. On a link with a rate or a
    /// capacity they keep their order. For overtaking behind a rate, put the jitter on a separate link, e.g. `egress`.
    pub struct NetemJitter "netem-jitter" {
        /// Deviation: half the range of "uniform", the unit of the other distributions.
        deviation: Span = DURATION;
        /// Distribution. "normal": cut off at 4 deviations. "pareto": shape 3, moved by its mean; most packets are early, few are late by up to
        /// 4 deviations. "paretonormal": a quarter of "normal" and three quarters of "pareto".
        distribution: Shape = Shape::TAKES, Shape::Uniform;
        /// Correlation of successive draws of netem's generator. As in Linux, it applies to numbers that are then taken
        /// modulo the range, so the delays themselves are only weakly correlated.
        correlation: f64 = Takes::Share, 0.0;
        /// With a rate: packets are delayed before their transmission, as by netem with `delay` and `rate` in one
        /// discipline, whose limit is a queue of kind "netem-limit". Otherwise they are delayed after it.
        before_rate: bool = FLAG, false;
    }
}

/// netem's distributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Uniform over the range.
    Uniform,
    /// Normal.
    Normal,
    /// Pareto with shape 3, shifted by its mean.
    Pareto,
    /// Mixture of normal and Pareto.
    Paretonormal,
}

choice! { Shape: Uniform "uniform", Normal "normal", Pareto "pareto", Paretonormal "paretonormal" }

impl Shape {
    /// Quantiles in 1/8192 of the deviation; `None` for the uniform distribution, which needs no table.
    pub fn table(self) -> Option<&'static [i16]> {
        static TABLES: [OnceLock<Vec<i16>>; 3] = [const { OnceLock::new() }; 3];
        let which = match self {
            Shape::Uniform => return None,
            Shape::Normal => 0,
            Shape::Pareto => 1,
            Shape::Paretonormal => 2,
        };
        Some(TABLES[which].get_or_init(|| self.quantiles()))
    }

    fn quantiles(self) -> Vec<i16> {
        let mut low = -MOST;
        let of = |k: usize| {
            let wanted = (k as f64 + 0.5) / ENTRIES as f64;
            let mut high = MOST;
            // quantiles ascend, so the previous one is a lower bound
            while high - low > 1.0 / (4.0 * SCALE as f64) {
                let middle = (low + high) / 2.0;
                if self.below(middle) < wanted {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            libm::rint(high * SCALE as f64).clamp(i16::MIN as f64, i16::MAX as f64) as i16
        };
        (0..ENTRIES).map(of).collect()
    }

    /// Probability of a draw below `x` deviations.
    fn below(self, x: f64) -> f64 {
        let normal = || 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
        // mean 3/2, variance 3/4: netem scales by the variance, not by its root
        let pareto = || {
            let value = x * 0.75 + 1.5;
            if value <= 1.0 {
                0.0
            } else {
                1.0 - 1.0 / (value * value * value)
            }
        };
        match self {
            Shape::Uniform => (x + 1.0) / 2.0,
            Shape::Normal => normal(),
            Shape::Pareto => pareto(),
            Shape::Paretonormal => 0.25 * normal() + 0.75 * pareto(),
        }
    }
}

impl NetemJitter {
    /// Maximum delay that the jitter adds.
    pub fn longest(&self) -> Span {
        let times = if self.distribution == Shape::Uniform { 1 } else { 4 };
        Span(self.deviation.0.saturating_mul(times))
    }

    /// Return the same jitter for the kernel's netem.
    pub fn netem(&self) -> qdisc::Jitter {
        let mut words = qdisc::time(self.deviation.0);
        if self.correlation > 0.0 {
            words += &format!(" {}%", qdisc::general(100.0 * self.correlation, 7));
        }
        words += match self.distribution {
            Shape::Uniform => "",
            Shape::Normal => " distribution normal",
            Shape::Pareto => " distribution pareto",
            Shape::Paretonormal => " distribution paretonormal",
        };
        let (rho, table) = (self.rho(), self.distribution.table());
        qdisc::Jitter { deviation_ns: self.deviation.0, rho, table, words }
    }

    /// Correlation in 2^-32, netem's unit.
    pub fn rho(&self) -> u32 {
        qdisc::share(self.correlation)
    }
}

/// Jitter state.
#[derive(Clone)]
pub(crate) struct Drawn {
    deviation: u64,
    table: Option<&'static [i16]>,
    /// Correlation in 2^-32.
    rho: u32,
    last: u32,
    stream: Stream,
    /// Whether packets are delayed before their transmission.
    pub(crate) before_rate: bool,
    /// Latest delivery so far, if packets keep their order.
    latest: Time,
    /// Packets on the wire in order of delivery; `None` if packets keep their order.
    order: Option<VecDeque<(Time, PacketId)>>,
}

impl Drawn {
    /// Return the state for a link; `None` without jitter. `overtakes`: the link has no rate.
    pub(crate) fn new(config: Option<&NetemJitter>, overtakes: bool, stream: Stream) -> Option<Drawn> {
        let config = config?;
        Some(Drawn {
            deviation: config.deviation.0,
            table: config.distribution.table(),
            rho: config.rho(),
            last: 0,
            stream,
            before_rate: config.before_rate,
            latest: Time::ZERO,
            order: overtakes.then(VecDeque::new),
        })
    }

    /// Whether packets overtake one another.
    pub(crate) fn overtakes(&self) -> bool {
        self.order.is_some()
    }

    /// Return the delivery time of a packet whose transmission ends at `leaves` and which would be delivered at
    /// `undisturbed`.
    pub(crate) fn apply(&mut self, leaves: Time, undisturbed: Time) -> Time {
        let moved = undisturbed.0 as i128 + self.offset() as i128;
        let last = Time::NEVER.0 as i128 - 1; // last possible delivery time
        let delivery =
            if leaves == Time::NEVER { leaves } else { Time(moved.clamp(leaves.0 as i128, last) as u64) };
        if self.overtakes() {
            return delivery;
        }
        self.latest = self.latest.max(delivery);
        self.latest
    }

    /// Insert a packet into `waiting`, in order of delivery. Returns its predecessor, if any.
    pub(crate) fn place(&mut self, id: PacketId, delivery: Time, waiting: u32) -> Option<PacketId> {
        let order = self.order.as_mut().expect("invariant: packets overtake");
        let gone = order.len() - waiting as usize; // packets delivered in the meantime
        order.drain(..gone);
        let at = order.partition_point(|&(due, _)| due <= delivery);
        order.insert(at, (delivery, id));
        at.checked_sub(1).map(|before| order[before].1)
    }

    /// Draw a correlated number (Linux `get_crandom`).
    fn number(&mut self) -> u32 {
        let value = (self.stream.next_u64() >> 32) as u32;
        if self.rho == 0 {
            return value;
        }
        let rho = self.rho as u128 + 1;
        self.last = ((value as u128 * ((1 << 32) - rho) + self.last as u128 * rho) >> 32) as u32;
        self.last
    }

    /// Draw an offset from the delay, in ns (Linux `tabledist`).
    fn offset(&mut self) -> i64 {
        let deviation = self.deviation as i64;
        match self.table {
            // Differs: the range may exceed 2^32 ns, where Linux truncates it
            None if self.deviation > u32::MAX as u64 / 2 => {
                self.stream.below(2 * self.deviation) as i64 - deviation
            }
            None => (self.number() as u64 % (2 * self.deviation)) as i64 - deviation,
            Some(table) => scaled(deviation, table[self.number() as usize % table.len()]),
        }
    }
}

/// Number of entries in netem's tables.
const ENTRIES: usize = 4096;
/// Table units per deviation: NETEM_DIST_SCALE.
const SCALE: i64 = 8192;
/// Range of a table of 16-bit numbers, in deviations.
const MOST: f64 = 4.0;

/// Multiply the deviation by an entry of a table; halves are rounded away from zero, as in Linux.
fn scaled(deviation: i64, entry: i16) -> i64 {
    let (scale, product) = (SCALE as i128, deviation as i128 * entry as i128);
    ((product + product.signum() * (scale / 2)) / scale) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LinkConfig, SoleLink};
    use ackclock_core::{Packet, Rate};

    const MS: u64 = 1_000_000;

    fn drawn(distribution: Shape, correlation: f64) -> Vec<f64> {
        let config = NetemJitter { deviation: Span(MS), distribution, correlation, before_rate: false };
        let mut jitter = Drawn::new(Some(&config), true, Stream::new(3, "test")).expect("given");
        (0..100_000).map(|_| jitter.offset() as f64 / MS as f64).collect()
    }

    fn moments(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let square = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / values.len() as f64;
        (mean, libm::sqrt(square))
    }

    /// Kolmogorov-Smirnov distance to the formula. With 1e5 draws it exceeds 0.0052 in 1 % of cases; a table of 4,096
    /// entries adds 0.0001.
    fn distance(shape: Shape, values: &mut [f64]) -> f64 {
        values.sort_by(f64::total_cmp);
        let n = values.len() as f64;
        let inner = values.iter().enumerate().filter(|(_, v)| v.abs() < 3.99);
        inner.map(|(k, &v)| (shape.below(v) - k as f64 / n).abs()).fold(0.0, f64::max)
    }

    /// Departure of netem's queue (`netem_enqueue`): behind the last packet, or when the packet's own delay is over.
    #[test]
    fn before_a_rate_packets_are_delayed_and_then_transmitted_as_by_netem() {
        let jitter = NetemJitter {
            deviation: Span(4 * MS),
            distribution: Shape::Normal,
            correlation: 0.0,
            before_rate: true,
        };
        let config = LinkConfig {
            netem_jitter: Some(jitter.clone()),
            queue: crate::QueueConfig::NetemLimit(crate::queue::NetemLimitParams { limit: 12 }),
            ..LinkConfig::new("l", Rate(12_000_000), Span(10 * MS))
        };
        let mut link = SoleLink::new(&config, 5);
        let stream = Stream::new(5, "l.netem-jitter");
        let mut drawn = Drawn::new(Some(&jitter), false, stream).expect("given");
        let (mut inside, mut refused) = (Vec::<u64>::new(), 0);
        for n in 0..2_000u64 {
            let now = n * 700_000 / 1000 * 1000;
            while link.poll(Time(now)).is_some() {}
            inside.retain(|&leaves| leaves > now);
            let taken = link.offer(Time(now), Packet { bytes: 1500, ..Packet::default() }).is_ok();
            assert_eq!(taken, inside.len() < 12, "packet {n}");
            refused += !taken as u32;
            if taken {
                let ready = (now as i64 + (10 * MS) as i64 + drawn.offset()).max(now as i64) as u64;
                let last = inside.last().copied().unwrap_or(0);
                inside.push(ready.max(last) + MS);
            }
            assert_eq!(link.next_event(), inside.first().map_or(Time::NEVER, |&at| Time(at)), "packet {n}");
        }
        assert!(refused > 100, "the limit matters");
    }

    #[test]
    fn draws_follow_the_formulas() {
        for (shape, mean, deviation) in [
            (Shape::Uniform, 0.0, 0.5774),
            (Shape::Normal, 0.0, 1.0),
            // moments with values cut off at 4 deviations: 1 in 91 draws of the Pareto distribution exceeds them
            (Shape::Pareto, -0.0329, 0.8209),
            (Shape::Paretonormal, -0.0247, 0.8692),
        ] {
            let mut values = drawn(shape, 0.0);
            let found = moments(&values);
            assert!(
                (found.0 - mean).abs() < 0.01 && (found.1 - deviation).abs() < 0.01,
                "{shape:?}: {found:?}"
            );
            let apart = distance(shape, &mut values);
            assert!(apart < 0.006, "{shape:?}: {apart}");
        }
    }

    #[test]
    fn correlation_is_that_of_the_generator() {
        let config = NetemJitter {
            deviation: Span(MS),
            distribution: Shape::Normal,
            correlation: 0.5,
            before_rate: false,
        };
        let mut jitter = Drawn::new(Some(&config), true, Stream::new(3, "test")).expect("given");
        let numbers: Vec<f64> = (0..100_000).map(|_| jitter.number() as f64).collect();
        let (mean, deviation) = moments(&numbers);
        let along: f64 = numbers.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>();
        let found = along / (deviation * deviation * numbers.len() as f64);
        assert!((found - 0.5).abs() < 0.01, "{found}");
    }

    fn arrivals(rate: Rate) -> Vec<(u64, u32)> {
        let netem_jitter = Some(NetemJitter {
            deviation: Span(5 * MS),
            distribution: Shape::Normal,
            correlation: 0.0,
            before_rate: false,
        });
        let mut link =
            SoleLink::new(&LinkConfig { netem_jitter, ..LinkConfig::new("l", rate, Span(20 * MS)) }, 1);
        let mut got = Vec::new();
        for conn in 0..2000u32 {
            let now = conn as u64 * MS;
            while link.next_event() <= Time(now) {
                let at = link.next_event();
                got.extend(link.poll(at).map(|packet| (at.0, packet.conn)));
            }
            link.offer(Time(now), Packet { bytes: 1000, conn, ..Packet::default() }).expect("no limit");
        }
        while link.next_event() != Time::NEVER {
            let at = link.next_event();
            got.extend(link.poll(at).map(|packet| (at.0, packet.conn)));
        }
        got
    }

    #[test]
    fn packets_overtake_without_a_rate_and_keep_their_order_with_one() {
        let free = arrivals(Rate::INFINITE);
        assert_eq!(free.len(), 2000);
        assert!(free.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        let overtaken = free.windows(2).filter(|pair| pair[0].1 > pair[1].1).count();
        assert!((600..1000).contains(&overtaken), "{overtaken}");
        let mut late: Vec<f64> =
            free.iter().map(|&(at, conn)| (at - conn as u64 * MS) as f64 / MS as f64).collect();
        let (mean, deviation) = moments(&late);
        late.sort_by(f64::total_cmp);
        assert!((mean - 20.0).abs() < 0.4 && (deviation - 5.0).abs() < 0.3, "{mean} {deviation}");
        let paced = arrivals(Rate(100_000_000));
        assert!(paced.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 < pair[1].1));
    }

    #[test]
    fn a_delay_is_never_below_zero() {
        let config = NetemJitter {
            deviation: Span(9 * MS),
            distribution: Shape::Uniform,
            correlation: 0.0,
            before_rate: false,
        };
        let mut jitter = Drawn::new(Some(&config), true, Stream::new(3, "test")).expect("given");
        let at = |jitter: &mut Drawn| jitter.apply(Time(100 * MS), Time(101 * MS)).0;
        let all: Vec<u64> = (0..1000).map(|_| at(&mut jitter)).collect();
        assert!(all.iter().all(|at| (100 * MS..=110 * MS).contains(at)));
        assert!(all.iter().filter(|&&at| at == 100 * MS).count() > 300);
    }
}
