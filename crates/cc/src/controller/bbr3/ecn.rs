//! Reactions to ECN marks as in the kernel's v3 (`bbr_update_ecn_alpha`, `bbr_adapt_lower_bounds`); the draft specifies
//! none. They require exact feedback of marks, as with DCTCP or AccECN.
//!
//! | rule | when |
//! |---|---|
//! | the path is eligible | once its minimum RTT has been at most 5 ms |
//! | `alpha` += (CE fraction of the round - `alpha`) / 16, from 1 | each round |
//! | Startup ends | after two successive rounds with at least half of the segments marked |
//! | a probe is too high | if more than half of the sample's segments are marked |
//! | `inflight_shortterm` x (1 - `alpha` / 3) | after a round with marks, except in probes |
//! | a new probe starts at once, its first step half of `inflight_longterm` | if the cycle has seen marks but no loss, in state Open |

use super::flavour::Ratio;
use super::{AckSample, Bbr3, RateSample};

/// Unit of fractions: 1/256.
const UNIT: u32 = 256;
/// Maximum minimum RTT of an eligible path, us.
const MAX_RTT_US: u64 = 5_000;
/// Gain of `alpha`: 1/16.
const ALPHA_GAIN: u32 = UNIT / 16;
/// Fraction of `alpha` by which the bound is reduced.
const FACTOR: u32 = 85;
/// Fraction of segments marked above which a probe is too high.
const THRESH: u32 = UNIT / 2;
/// Number of successive rounds with at least that fraction marked that ends Startup.
const FULL_ROUNDS: u8 = 2;
/// First step of a probe after marks, as a fraction of `inflight_longterm`.
const REPROBE_GAIN: Ratio = Ratio::new(1, 2);

/// State of the ECN reaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// Whether the controller reacts to marks.
    pub on: bool,
    /// Whether the path's minimum RTT makes it eligible.
    pub eligible: bool,
    /// EWMA of the fraction of segments marked, in units of 1/256.
    pub alpha: u32,
    /// Whether a mark has been seen in this round, and in this cycle.
    pub in_round: bool,
    pub in_cycle: bool,
    startup_rounds: u8,
    /// Segments delivered and segments marked since the round began.
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

    /// Return whether the fraction of segments marked in the sample is too high for a probe.
    pub fn too_high(&self, rate: &RateSample) -> bool {
        self.eligible
            && rate.delivered_ce > Ratio::new(u64::from(THRESH), u64::from(UNIT)).of_volume(rate.delivered)
    }

    /// Return the fraction of a bound that is kept after a round with marks.
    pub fn keeps(&self) -> Ratio {
        let cut = (self.alpha * FACTOR) / UNIT;
        Ratio::new(u64::from(UNIT - cut), u64::from(UNIT))
    }
}

impl Bbr3 {
    /// Process an ACK with a rate sample: count marks, and update `alpha` at the start of a round. Return whether
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

    /// Return the round of growth at which a new probe starts, if the cycle has seen marks but no loss and the state
    /// is Open.
    pub(super) fn reprobe_after_marks(&self, ack: &AckSample) -> Option<u32> {
        let ceased = self.marks.in_cycle
            && !self.bounds.loss_in_cycle
            && ack.ca_state == ackclock_core::trace::CaState::Open;
        let first = REPROBE_GAIN.of_volume(self.bounds.inflight_longterm);
        ceased.then(|| first.max(1).ilog2())
    }
}
