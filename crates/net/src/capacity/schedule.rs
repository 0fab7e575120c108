//! Rate, delay and loss that change in steps: at listed times, or drawn at fixed intervals.
//!
//! A transmission in progress continues at the new rate when the rate changes. A packet gets the delay in effect when
//! its transmission ends, and the loss probability in effect when it arrives. Differs: a packet that would overtake
//! its predecessor because the delay has decreased is delivered together with it (dummynet keeps the order, netem
//! does not). Use `reorder` for deliberate reordering.

use std::sync::Arc;

use ackclock_core::rng::threshold;
use ackclock_core::schema::{Rules, Takes, Unit, DURATION, DURATION_OR_ZERO};
use ackclock_core::{table, Distribution, Rate, Span, Stream, Time};

table! {
    /// Rate, delay and loss change at listed times, once or in a cycle.
    /// Until the first change, the link's own keys apply.
    pub struct ScheduleParams "schedule" {
        /// The changes, in chronological order.
        steps: Vec<Step> = Takes::List(&Takes::Table(Step::TABLE), 1);
        /// Period of the cycle. At the end of each period the link's own keys apply again. Default: the last step
        /// applies until the end of the run.
        repeat: Option<Span> = DURATION;
    }
    rules ScheduleParams::judge_order
}

table! {
    /// A change of the link. A key that is not given leaves its quantity unchanged.
    pub struct Step "step" {
        /// Time of the change, from the start of the run or, with `repeat`, of the cycle.
        at: Span = DURATION_OR_ZERO;
        /// Transmission rate. Zero stops transmission.
        rate: Option<Rate> = Takes::Rate(0);
        /// One-way propagation delay. Packets keep their order when it decreases.
        delay: Option<Span> = DURATION_OR_ZERO;
        /// Probability that an arriving packet is lost, in addition to the link's own `loss`.
        loss: Option<f64> = Takes::Share;
    }
}

table! {
    /// Rate, delay and loss are drawn anew at fixed intervals.
    /// A quantity without a distribution keeps the link's own value.
    pub struct RandomParams "random" {
        /// Length of the intervals.
        every: Span = DURATION;
        /// Rate.
        rate: Option<Distribution> = Takes::Drawn(Unit::Rate);
        /// One-way propagation delay. Packets keep their order when it decreases.
        delay: Option<Distribution> = Takes::Drawn(Unit::Duration);
        /// Probability that an arriving packet is lost, in addition to the link's own `loss`.
        loss: Option<Distribution> = Takes::Drawn(Unit::Share);
    }
}

impl ScheduleParams {
    /// Check that steps are in chronological order and that a cycle ends after the last one.
    fn judge_order(&self, rules: &mut Rules) {
        let late = self.steps.windows(2).position(|pair| pair[1].at <= pair[0].at);
        if let Some(i) = late {
            return rules.refuse(&format!("steps.{}.at", i + 1), "a time after that of the step before");
        }
        let last = self.steps.len() - 1;
        if self.repeat.is_some_and(|repeat| repeat <= self.steps[last].at) {
            let at = rules.shown(&format!("steps.{last}.at"));
            rules.refuse("repeat", format_args!("a time after the last step, {at}"));
        }
    }

    /// Return the steps for a link of this rate and delay, with no value missing and the first step at zero.
    fn laid(&self, rate: Rate, delay: Span) -> Vec<Laid> {
        let mut all = vec![Laid { at: Span::ZERO, rate, delay, loss: 0.0 }];
        for step in &self.steps {
            let before = all[all.len() - 1];
            let next = Laid {
                at: step.at,
                rate: step.rate.unwrap_or(before.rate),
                delay: step.delay.unwrap_or(before.delay),
                loss: step.loss.unwrap_or(before.loss),
            };
            match next.at > before.at {
                true => all.push(next),
                false => all[0] = next, // the first step, at zero
            }
        }
        all
    }
}

/// Settings that apply from `at` on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Laid {
    at: Span,
    rate: Rate,
    delay: Span,
    loss: f64,
}

/// Settings that apply up to `until`.
#[derive(Clone, Copy, Debug)]
struct Phase {
    until: Time,
    rate: Rate,
    delay: Span,
    loss: u64,
}

#[derive(Clone)]
enum Source {
    Steps { steps: Arc<[Laid]>, repeat: Option<Span>, next: usize, cycle: Time },
    Random { every: Span, rate: Rate, delay: Span, drawn: [Option<(Distribution, Stream)>; 3] },
}

/// Maximum number of phases that one packet may cross. Beyond that the schedule is abandoned: no further change
/// applies, and the run is reported as void at its end.
pub const MOST_PHASES: u32 = 1 << 26;

#[derive(Clone)]
pub(crate) struct Schedule {
    /// Phase of the latest arrival.
    here: Walk,
    /// Phase at the end of the last transmission. Stored because finding it again could take any number of steps.
    there: Walk,
    stream: Stream,
    last_delivery: Time,
}

impl Schedule {
    /// Return a schedule with changes at listed times.
    pub(crate) fn listed(
        params: &ScheduleParams,
        rate: Rate,
        delay: Span,
        stream: impl Fn(&str) -> Stream,
    ) -> Schedule {
        let steps = params.laid(rate, delay).into();
        let source = Source::Steps { steps, repeat: params.repeat, next: 0, cycle: Time::ZERO };
        Schedule::of(source, stream)
    }

    /// Return a schedule with random changes at fixed intervals.
    pub(crate) fn random(
        params: &RandomParams,
        rate: Rate,
        delay: Span,
        stream: impl Fn(&str) -> Stream,
    ) -> Schedule {
        // one stream per quantity, so that changing one distribution does not affect the values of the others
        let own = |d: &Option<Distribution>, part| d.clone().map(|d| (d, stream(part)));
        let drawn = [own(&params.rate, "rate"), own(&params.delay, "delay"), own(&params.loss, "loss_share")];
        Schedule::of(Source::Random { every: params.every, rate, delay, drawn }, stream)
    }

    fn of(source: Source, stream: impl Fn(&str) -> Stream) -> Schedule {
        let here = Walk::new(source);
        Schedule { there: here.clone(), here, stream: stream("schedule"), last_delivery: Time::ZERO }
    }

    /// Whether a packet that arrives at `now` is lost.
    pub(crate) fn drops(&mut self, now: Time) -> bool {
        self.here.advance(now);
        let loss = self.here.phase.loss;
        loss > 0 && self.stream.chance(loss)
    }

    /// Rate at `now`, at least 1 bit/s.
    pub(crate) fn rate(&mut self, now: Time) -> Rate {
        self.here.advance(now);
        Rate(self.here.phase.rate.0.max(1))
    }

    /// Return the end of a transmission that begins at `start`; `Time::NEVER` if the rate remains zero.
    pub(crate) fn transmit(&mut self, start: Time, bytes: u32) -> Time {
        let walk = &mut self.there;
        let (mut at, mut bit_ns) = (start, bytes as u128 * 8_000_000_000);
        for _ in 0..MOST_PHASES {
            if at == Time::NEVER {
                return at;
            }
            walk.advance(at);
            let phase = &walk.phase;
            if phase.rate == Rate::INFINITE {
                return at;
            }
            let rate = phase.rate.0 as u128;
            let left = (phase.until - at).0 as u128;
            let needed = (bit_ns + rate / 2).checked_div(rate); // like Rate::tx_time
            if let Some(needed) = needed.filter(|&needed| needed <= left) {
                return at + Span(needed as u64);
            }
            bit_ns = bit_ns.saturating_sub(rate * left);
            at = phase.until;
        }
        walk.give_up();
        Time::NEVER
    }

    /// Return the arrival time at the far end of the last packet transmitted, whose transmission ends at `end`.
    pub(crate) fn delivery(&mut self, end: Time) -> Time {
        self.last_delivery = self.last_delivery.max(end + self.there.phase.delay);
        self.last_delivery
    }

    /// Whether the schedule has been abandoned.
    pub(crate) fn is_lost(&self) -> bool {
        self.here.lost || self.there.lost
    }
}

/// Position in the sequence of phases.
#[derive(Clone)]
struct Walk {
    source: Source,
    phase: Phase,
    lost: bool,
}

impl Walk {
    fn new(source: Source) -> Walk {
        let nothing = Phase { until: Time::ZERO, rate: Rate::INFINITE, delay: Span::ZERO, loss: 0 };
        let mut walk = Walk { source, phase: nothing, lost: false };
        walk.step();
        walk
    }

    /// Advance to the phase of `now`; never moves back.
    fn advance(&mut self, now: Time) {
        if self.phase.until > now {
            return;
        }
        for _ in 0..MOST_PHASES {
            self.step();
            if self.phase.until > now {
                return;
            }
        }
        self.give_up();
    }

    fn give_up(&mut self) {
        self.lost = true;
        self.phase.until = Time::NEVER;
    }

    /// Advance to the next phase.
    fn step(&mut self) {
        self.phase = match &mut self.source {
            Source::Steps { steps, repeat, next, cycle } => {
                let step = steps[*next];
                let until = match (steps.get(*next + 1), *repeat) {
                    (Some(following), _) => *cycle + following.at,
                    (None, Some(period)) => *cycle + period,
                    (None, None) => Time::NEVER,
                };
                *next += 1;
                if *next == steps.len() {
                    (*next, *cycle) = (0, until);
                }
                Phase { until, rate: step.rate, delay: step.delay, loss: threshold(step.loss) }
            }
            Source::Random { every, rate, delay, drawn } => {
                let [rates, delays, losses] = drawn;
                let draw = |d: &mut Option<(Distribution, Stream)>| d.as_mut().map(|(d, s)| d.draw(s));
                Phase {
                    until: self.phase.until + *every,
                    rate: draw(rates).map_or(*rate, |bps| Rate((bps as u64).clamp(1, u64::MAX - 1))),
                    delay: draw(delays).map_or(*delay, |s| Span((s.clamp(0.0, 3600.0) * 1e9) as u64)),
                    loss: draw(losses).map_or(0, |p| threshold(p.min(1.0))),
                }
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CapacityConfig, LinkConfig, SoleLink};
    use ackclock_core::Packet;
    use proptest::prelude::*;

    const MBIT: u64 = 1_000_000;

    fn step(ms: u64, mbit: u64, delay_ms: u64, loss: f64) -> Step {
        let (rate, delay) = (Some(Rate(mbit * MBIT)), Some(Span::from_ms(delay_ms)));
        Step { at: Span::from_ms(ms), rate, delay, loss: Some(loss) }
    }

    fn link(steps: &[Step], repeat: Option<Span>) -> SoleLink {
        let capacity = Some(CapacityConfig::Schedule(ScheduleParams { steps: steps.to_vec(), repeat }));
        SoleLink::new(&LinkConfig { capacity, ..LinkConfig::new("l", Rate(1), Span::ZERO) }, 1)
    }

    fn deliveries(link: &mut SoleLink) -> Vec<u64> {
        let mut all = Vec::new();
        while link.next_event() != Time::NEVER {
            let now = link.next_event();
            all.extend(std::iter::from_fn(|| link.poll(now)).map(|_| now.0 / 1000));
        }
        all
    }

    #[test]
    fn a_transmission_goes_on_at_the_new_rate_and_order_is_kept() {
        // At 12 Mb/s a packet takes 1 ms. On the second link, the rate becomes 1 Mb/s and the delay drops from 20 ms
        // to zero at 2.5 ms.
        let mut link = link(&[step(0, 12, 20, 0.0), step(3, 12, 20, 0.0)], None);
        let packet = Packet { bytes: 1500, ..Packet::default() };
        for _ in 0..3 {
            link.offer(Time::ZERO, packet).expect("no limit");
        }
        assert_eq!(deliveries(&mut link), [21_000, 22_000, 23_000]);

        let mut changing = super::tests::link(
            &[step(0, 12, 20, 0.0), Step { at: Span::from_us(2_500), ..step(0, 1, 0, 0.0) }],
            None,
        );
        for _ in 0..4 {
            changing.offer(Time::ZERO, packet).expect("no limit");
        }
        // third packet: the first half at 12 Mb/s, then 6000 bits at 1 Mb/s take 6 ms; it ends at 8.5 ms and is
        // delivered with the second packet (22 ms), not ahead of it
        assert_eq!(deliveries(&mut changing), [21_000, 22_000, 22_000, 22_000]);
        for i in 0..2 {
            changing.offer(Time(1_000_000_000 + i), packet).expect("no limit");
        }
        assert_eq!(deliveries(&mut changing), [1_012_000, 1_024_000]);
    }

    #[test]
    fn outages_end_or_last() {
        let packet = Packet { bytes: 1500, ..Packet::default() };
        let mut cyclic = link(&[step(0, 12, 0, 0.0), step(10, 0, 0, 0.0)], Some(Span::from_ms(50)));
        for _ in 0..12 {
            cyclic.offer(Time::ZERO, packet).expect("no limit");
        }
        let expected: Vec<u64> = (1..=10).chain(51..=52).map(|ms| ms * 1000).collect();
        assert_eq!(deliveries(&mut cyclic), expected);

        let mut dead = link(&[step(0, 12, 0, 0.0), step(10, 0, 0, 0.0)], None);
        for _ in 0..12 {
            dead.offer(Time::ZERO, packet).expect("no limit");
        }
        assert_eq!(deliveries(&mut dead).len(), 10);
        assert_eq!(dead.counters(Time(1_000_000_000)).held, 2);
    }

    #[test]
    fn the_loss_is_that_of_the_arrival() {
        let mut link = link(&[step(0, 100, 0, 1.0), step(10, 100, 0, 0.0), step(20, 100, 0, 0.5)], None);
        let packet = Packet { bytes: 100, ..Packet::default() };
        let mut lost = [0; 3];
        for i in 0..3000u64 {
            lost[(i / 1000) as usize] += link.offer(Time(i * 10_000), packet).is_err() as u32;
        }
        assert_eq!(lost[..2], [1000, 0]);
        assert!((430..570).contains(&lost[2]), "{lost:?}");
        assert_eq!(link.counters(Time(30_000_000)).dropped_loss, lost.iter().sum::<u32>() as u64);
    }

    #[test]
    fn values_are_drawn_anew_at_intervals_and_apart() {
        let rate = Distribution::Uniform { low: 10e6, high: 100e6 };
        let delay = Distribution::Uniform { low: 0.01, high: 0.1 };
        let rates = |delay: Option<Distribution>| {
            let params =
                RandomParams { every: Span::from_secs(5), rate: Some(rate.clone()), delay, loss: None };
            let mut schedule =
                Schedule::random(&params, Rate(1), Span::ZERO, |part| Stream::new(7, &format!("l.{part}")));
            (0..200u64).map(|i| schedule.rate(Time(i * 1_000_000_000)).0).collect::<Vec<_>>()
        };
        let with = rates(Some(delay));
        assert_eq!(with, rates(None), "one more distribution leaves the others' values");
        assert!(with
            .chunks(5)
            .all(|c| c.iter().all(|r| *r == c[0] && (10_000_000..100_000_000).contains(r))));
        assert!(with.chunks(5).zip(with.chunks(5).skip(1)).all(|(a, b)| a[0] != b[0]));
    }

    proptest! {
        /// A schedule whose steps change nothing behaves as a constant link.
        #[test]
        fn equal_steps_are_a_constant_link(
            rate in 1_000_000u64..10_000_000_000,
            delay in 0u64..100_000,
            at in prop::collection::vec(1u64..100_000, 0..20),
            arrivals in prop::collection::vec((0u64..20_000, 40u32..1600), 1..100),
        ) {
            let mut times: Vec<u64> = at.into_iter().chain([0]).collect();
            times.sort_unstable();
            times.dedup();
            let steps: Vec<Step> = times
                .iter()
                .map(|&at| Step { at: Span(at), rate: Some(Rate(rate)), delay: Some(Span(delay)), loss: None })
                .collect();
            let plain = LinkConfig::new("l", Rate(rate), Span(delay));
            let params = ScheduleParams { steps, repeat: Some(Span(150_000)) };
            let capacity = Some(CapacityConfig::Schedule(params));
            let mut a = SoleLink::new(&plain, 1);
            let mut b = SoleLink::new(&LinkConfig { capacity, ..plain }, 1);
            let mut t = 0;
            for (gap, bytes) in arrivals {
                t += gap;
                let packet = Packet { bytes, ..Packet::default() };
                prop_assert_eq!(a.offer(Time(t), packet), b.offer(Time(t), packet));
                // because of rounding, a transmission split by a change may end a nanosecond earlier or later
                prop_assert!(a.next_event().0.abs_diff(b.next_event().0) <= 2);
            }
        }
    }
}
