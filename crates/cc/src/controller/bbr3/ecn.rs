//! Reactions to ECN marks, as the kernel's v3 has them (`bbr_update_ecn_alpha`, `bbr_adapt_lower_bounds`); the draft specifies none. Marks are those
//! of an exact echo: DCTCP's or AccECN's.
//!
//! | rule | when |
//! |---|---|
//! | the path is eligible | its least RTT was at most 5 ms once |
//! | `alpha` += (CE share of the round - `alpha`) / 16, from 1 | each round |
//! | Startup ends | two rounds in a row with half of the segments marked |
//! | a probe is too high | more than half of the sample's segments marked |
//! | `inflight_shortterm` x (1 - `alpha` / 3) | a round with marks, outside probes |
//! | a new probe at once, its first step half of `inflight_longterm` | the marks of this cycle have stopped, and it saw no loss |

use super::flavour::Ratio;
use super::{AckSample, Bbr3, RateSample};

/// Shares are 1/256.
const UNIT: u32 = 256;
/// Largest minimum RTT with which the path is eligible, us.
const MAX_RTT_US: u64 = 5_000;
/// Gain of `alpha`: 1/16.
const ALPHA_GAIN: u32 = UNIT / 16;
/// Share of `alpha` by which the bound falls.
const FACTOR: u32 = 85;
/// Share of marks that is too high.
const THRESH: u32 = UNIT / 2;
/// Rounds of such a share that end Startup.
const FULL_ROUNDS: u8 = 2;
/// First step of the probe after marks, share of `inflight_longterm`.
const REPROBE_GAIN: Ratio = Ratio::new(1, 2);

/// Marks seen, if the controller reacts to them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// The controller heeds marks.
    pub on: bool,
    /// The path is short enough.
    pub eligible: bool,
    /// EWMA of the share of marked segments, 1/256.
    pub alpha: u32,
    /// Whether the round, and the cycle, have seen a mark.
    pub in_round: bool,
    pub in_cycle: bool,
    startup_rounds: u8,
    /// Counters since the round began.
    delivered: u32,
    delivered_ce: u32,
}

impl Marks {
    pub fn new(on: bool) -> Marks {
        Marks {
            on,
            eligible: false,
            alpha: UNIT,
            in_round: false,
            in_cycle: false,
            startup_rounds: 0,
            delivered: 0,
            delivered_ce: 0,
        }
    }

    /// Whether the share of marks in the sample exceeds what a probe tolerates.
    pub fn too_high(&self, rate: &RateSample) -> bool {
        self.eligible
            && rate.delivered_ce > Ratio::new(u64::from(THRESH), u64::from(UNIT)).of_volume(rate.delivered)
    }

    /// Share of a bound that remains after a round with marks.
    pub fn keeps(&self) -> Ratio {
        let cut = (self.alpha * FACTOR) / UNIT;
        Ratio::new(u64::from(UNIT - cut), u64::from(UNIT))
    }
}

impl Bbr3 {
    /// Process an ACK with a rate sample: counts, and at the start of a round `alpha`. Returns whether
    /// Startup has seen too many marks.
    pub(super) fn update_marks(&mut self, ack: &AckSample) -> bool {
        let m = &mut self.marks;
        if !m.on {
            return false;
        }
        m.eligible |= self.rtt.min_rtt <= MAX_RTT_US;
        m.delivered += ack.delivered;
        m.delivered_ce += ack.delivered_ce;
        if m.eligible && ack.delivered_ce > 0 {
            (m.in_round, m.in_cycle) = (true, true);
        }
        if !self.rounds.round_start || m.delivered == 0 {
            return false;
        }
        let share = (u64::from(m.delivered_ce) * u64::from(UNIT) / u64::from(m.delivered)) as u32;
        (m.delivered, m.delivered_ce) = (0, 0);
        m.alpha = ((UNIT - ALPHA_GAIN) * m.alpha / UNIT + ALPHA_GAIN * share / UNIT).min(UNIT);
        m.startup_rounds =
            if m.eligible && share >= THRESH { m.startup_rounds + 1 } else { 0 }.min(FULL_ROUNDS);
        m.startup_rounds == FULL_ROUNDS
    }

    /// Rounds of growth to begin the next probe with, if marks kept the flow low and have stopped.
    pub(super) fn reprobe_after_marks(&self, ack: &AckSample) -> Option<u32> {
        let ceased = self.marks.in_cycle
            && !self.bounds.loss_in_cycle
            && ack.ca_state == ackclock_core::trace::CaState::Open;
        let first = REPROBE_GAIN.of_volume(self.bounds.inflight_longterm);
        ceased.then(|| first.max(1).ilog2())
    }
}
