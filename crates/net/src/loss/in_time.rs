//! Gilbert-Elliott loss in time: a channel that stays in the good and the bad state for random times, whether or not
//! packets are sent. A burst ends while a sender waits; in the model with one step per packet (`gilbert_elliott.rs`)
//! it lasts until enough packets have been sent.
//!
//! Sources: as for `gilbert_elliott.rs`; with exponential times it is the continuous-time Markov chain (the on-off
//! channel).
//!
//! At the first packet the state is drawn from the stationary distribution, and the time left in it from the
//! residual-time distribution. The fraction of time in the bad state is therefore bad / (good + bad), for short
//! transfers as well.

use ackclock_core::rng::threshold;
use ackclock_core::schema::{Takes, Unit};
use ackclock_core::{table, Distribution, Span, Stream, Time};

use super::AppliesTo;

table! {
    /// Gilbert-Elliott model in time: the duration of each state is drawn, independently of the packets.
    pub struct InTimeParams "gilbert-elliott-in-time" {
        /// Time spent in the good state: a duration, or a distribution of durations. Exponential distributions for both
        /// states give a Markov chain.
        good: Distribution = Takes::DrawnOr(Unit::Duration, 0);
        /// Time spent in the bad state: a duration, or a distribution of durations.
        bad: Distribution = Takes::DrawnOr(Unit::Duration, 0);
        /// Loss probability in the bad state.
        loss_bad: f64 = Takes::Share, 1.0;
        /// Loss probability in the good state.
        loss_good: f64 = Takes::Share, 0.0;
        /// Packets to which the model applies; others pass.
        applies_to: AppliesTo = AppliesTo::TAKES, AppliesTo::All;
    }
    rules |params, rules| {
        if params.good.mean() + params.bad.mean() < LEAST_CYCLE_S {
            rules.refuse("good", "stays that with those in the bad state last 1 us on average, or longer");
        }
    }
}

#[derive(Clone)]
pub(crate) struct InTime {
    /// Distributions of the time spent in the good state and in the bad state.
    stays: [Distribution; 2],
    losses: [u64; 2],
    start_bad: u64,
    bad: bool,
    /// End of the time in the current state; `None` before the first packet.
    until: Option<Time>,
    states: Stream,
    packets: Stream,
}

impl InTime {
    pub(crate) fn new(params: &InTimeParams, stream: Stream) -> InTime {
        let (good, bad) = (params.good.mean(), params.bad.mean());
        let mut model = InTime {
            stays: [params.good.clone(), params.bad.clone()],
            losses: [threshold(params.loss_good), threshold(params.loss_bad)],
            start_bad: threshold(bad / (good + bad)),
            bad: false,
            until: None,
            states: stream.clone(),
            packets: stream.clone(),
        };
        model.restart(stream);
        model
    }

    /// Decide at random whether a packet that arrives at `now` is lost. Packets have a separate random stream, so
    /// their number does not affect the states.
    #[inline]
    pub(crate) fn drops(&mut self, now: Time) -> bool {
        let mut until = match self.until {
            Some(until) => until,
            None => {
                self.bad = self.states.chance(self.start_bad);
                now + stay(self.stays[self.bad as usize].remainder(&mut self.states))
            }
        };
        while until <= now {
            self.bad = !self.bad;
            until += stay(self.stays[self.bad as usize].draw(&mut self.states));
        }
        self.until = Some(until);
        self.packets.chance(self.losses[self.bad as usize])
    }

    pub(crate) fn restart(&mut self, mut stream: Stream) {
        (self.packets, self.states) = (stream.branch(), stream);
        self.until = None;
    }
}

fn stay(seconds: f64) -> Span {
    Span(libm::rint(seconds.clamp(0.0, LONGEST_S) * 1e9) as u64)
}

/// Minimum mean length of a good and a bad state together, s. The states of a long pause are stepped through one by
/// one.
const LEAST_CYCLE_S: f64 = 1e-6;
/// Maximum time spent in a state, s: eleven days.
const LONGEST_S: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn params(good: f64, bad: f64) -> InTimeParams {
        InTimeParams {
            good: Distribution::Exponential { mean: good },
            bad: Distribution::Exponential { mean: bad },
            loss_bad: 1.0,
            loss_good: 0.0,
            applies_to: AppliesTo::All,
        }
    }

    fn fates(params: &InTimeParams, seed: u64, every: u64, n: u64) -> Vec<bool> {
        let mut model = InTime::new(params, Stream::new(seed, "test"));
        (0..n).map(|k| model.drops(Time(k * every))).collect()
    }

    #[test]
    fn the_share_of_time_and_the_length_of_bursts_are_those_asked_for() {
        let fate = fates(&params(0.98, 0.02), 1, MS, 500_000);
        let lost = fate.iter().filter(|&&lost| lost).count() as f64;
        assert!((lost / 5e5 - 0.02).abs() < 0.003, "{lost}");
        // bursts of 20 ms, sampled every ms: geometric, with survival probability exp(-1/20)
        let bursts = fate.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        let expected = 1.0 / (1.0 - libm::exp(-1.0 / 20.0));
        assert!((lost / bursts / expected - 1.0).abs() < 0.1, "{}", lost / bursts);
    }

    #[test]
    fn states_pass_whether_packets_come_or_not() {
        let fixed = InTimeParams {
            good: Distribution::Constant { value: 0.030 },
            bad: Distribution::Constant { value: 0.010 },
            ..params(1.0, 1.0)
        };
        let often = fates(&fixed, 5, MS, 400);
        let seldom = fates(&fixed, 5, 40 * MS, 10);
        assert!(seldom.iter().enumerate().all(|(k, &lost)| lost == often[40 * k]));
        assert_eq!(often.iter().filter(|&&lost| lost).count(), 100, "of each 40 ms 10 are bad");
    }

    #[test]
    fn the_first_packet_meets_the_stationary_distribution() {
        let lost = (0..10_000).filter(|&seed| fates(&params(0.3, 0.1), seed, MS, 1)[0]).count();
        assert!((2350..2650).contains(&lost), "{lost}");
    }

    #[test]
    fn a_restart_repeats_what_its_stream_says_from_the_next_packet_on() {
        let mut model = InTime::new(&params(0.01, 0.01), Stream::new(1, "a"));
        let at = |model: &mut InTime, from: u64| -> Vec<bool> {
            model.restart(Stream::new(9, "b"));
            (0..200).map(|k| model.drops(Time(from + k * MS))).collect()
        };
        let first = at(&mut model, 0);
        assert_eq!(at(&mut model, 77_777 * MS), first);
        assert!(first.contains(&true) && first.contains(&false));
    }

    #[test]
    fn a_packet_in_a_state_is_lost_with_its_probability() {
        let leaky = InTimeParams { loss_bad: 0.5, loss_good: 0.1, ..params(0.05, 0.05) };
        let lost = fates(&leaky, 2, MS / 10, 200_000).iter().filter(|&&lost| lost).count();
        assert!((lost as f64 / 2e5 - 0.3).abs() < 0.03, "{lost}");
    }
}
