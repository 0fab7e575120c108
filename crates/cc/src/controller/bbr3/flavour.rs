//! Differences between two descriptions of version 3: the draft, and Google's kernel (branch v3 of `tcp_bbr`, gains in
//! 1/256).
//!
//! | | draft-06 | linux-v3 |
//! |---|---|---|
//! | undo of a spurious loss | restores bounds and state; cwnd is the larger of the current and the saved one | restores the bounds; cwnd is the saved one |
//! | loss repaired by a tail loss probe | ignored | counts as a loss of the flight |
//! | application-limited ACK with a settled window and no loss in the round | processed like any other | not used for the model |
//! | ACK without a valid rate sample | does not advance the cycle | advances the cycle like an ACK without losses |
//! | limit that must be reached in a probe before the bound rises | cwnd, or half of cwnd in slow start | cwnd |
//! | times of the minimum RTT and of ProbeRTT | exact | ticks of 1 ms |
//! | loss round that ends with the ACK of a tail loss probe | processed like any other | keeps the latest delivery signals |
//! | entry into ProbeBW_CRUISE | does not change the bounds | lowers the short-term bound to the long-term one |
//! | RTT sample of a delayed ACK after the minimum RTT has expired | replaces the minimum | is ignored unless it is lower |
//! | burst size in the minimum of three bursts | `send_quantum` | TSO's goal, which is larger on short paths |
//! | rounding of rate samples | down | up, so that small rates can grow |
//! | volume that a probe compares with the long-term bound | in flight after the ACK | in flight before the ACK, less deliveries until the pacer sends again |
//! | target that limits the reduction of a bound and the rounds between probes | the BDP | the BDP, but at least three bursts |
//! | growth in Startup regardless of the model | until 10 segments are delivered | until cwnd is twice the initial window |
//! | entry into Drain | does not change the signals | resets the loss and mark signals of Startup |
//! | losses in recovery | reduce cwnd, which is restored at the end | do not reduce cwnd, which is restored after a timeout |
//! | timeout between probes | does not change the model | sets the short-term bound to the window before it and restarts the search for a full pipe |
//!
//! The remaining differences are constants, below.

use ackclock_core::schema::FLAG;
use ackclock_core::{choice, table};

/// Which description of version 3 to follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flavour {
    Draft06,
    LinuxV3,
}

choice! { Flavour: Draft06 "draft-06", LinuxV3 "linux-v3" }

table! {
    /// Options of `bbr3`.
    pub(crate) struct Bbr3Options "bbr3" {
        /// source of the constants and rules that differ: draft-ietf-ccwg-bbr-06, or the kernel's v3
        flavour: Flavour = Flavour::TAKES, Flavour::Draft06;
        /// request ECN and react to marks as the kernel's v3 does on paths with an RTT of at most 5 ms; the draft
        /// specifies no reaction to marks
        ecn: bool = FLAG, false;
    }
}

/// An exact gain or fraction: `num` / `den`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ratio {
    num: u64,
    den: u64,
}

impl Ratio {
    pub const ONE: Ratio = Ratio::new(1, 1);

    pub const fn new(num: u64, den: u64) -> Ratio {
        Ratio { num, den }
    }

    /// Return this fraction of `x`, rounded down.
    #[inline]
    pub fn of(self, x: u64) -> u64 {
        x.saturating_mul(self.num) / self.den
    }

    /// Return this fraction of a volume in whole segments, rounded down.
    #[inline]
    pub fn of_volume(self, segments: u32) -> u32 {
        self.of(u64::from(segments)).min(u64::from(u32::MAX)) as u32
    }

    /// Return this fraction of `x`, rounded up.
    pub fn of_rounded_up(self, x: u64) -> u64 {
        x.saturating_mul(self.num).div_ceil(self.den)
    }

    /// Return `x` / (1 - fraction), rounded down: the value that becomes `x` once this fraction is subtracted.
    pub fn rest_of(self, x: u64) -> u64 {
        x.saturating_mul(self.den) / (self.den - self.num)
    }

    pub fn is_above_one(self) -> bool {
        self.num > self.den
    }

    /// Approximate value for the trace.
    pub fn as_f64(self) -> f64 {
        self.num as f64 / self.den as f64
    }
}

/// Constants of one flavour.
#[derive(Debug)]
pub(super) struct Constants {
    /// BBR.StartupPacingGain: 4 ln 2, the smallest gain that doubles the rate each round.
    pub startup_pacing_gain: Ratio,
    /// BBR.DrainPacingGain.
    pub drain_pacing_gain: Ratio,
    /// Maximum number of rounds in Drain, regardless of the volume in flight (§5.3.2).
    pub drain_rounds: u32,
    /// Pacing gain of ProbeBW_DOWN.
    pub down_pacing_gain: Ratio,
    /// BBR.LossThresh: loss rate per round trip that a probe tolerates.
    pub loss_thresh: Ratio,
    /// BBR.Beta: fraction of a short-term bound that is kept after a round with losses, like CUBIC's beta.
    pub beta: Ratio,
    /// BBR.Headroom: fraction of `inflight_longterm` that a flow leaves unused while cruising.
    pub headroom: Ratio,
    /// BBR.ExtraAckedFilterLen: rounds per part of the filter, and number of parts.
    pub extra_acked_rounds: u32,
    pub extra_acked_parts: usize,
    /// Maximum contribution of ACK aggregation to cwnd, as time in us at the estimated rate.
    pub extra_acked_max_us: u64,
    /// cwnd gain during ProbeRTT. The draft uses BBR.ProbeRTTCwndGain; in both flavours cwnd is bounded by half of the
    /// BDP.
    pub probe_rtt_cwnd_gain: Ratio,
}

/// BBR.ProbeRTTCwndGain (§2): fraction of the BDP that ProbeRTT leaves in flight.
pub(super) const PROBE_RTT_CWND_GAIN: Ratio = Ratio::new(1, 2);

const DRAFT_06: Constants = Constants {
    startup_pacing_gain: Ratio::new(277, 100),
    drain_pacing_gain: Ratio::new(1, 2),
    drain_rounds: 3,
    down_pacing_gain: Ratio::new(9, 10),
    loss_thresh: Ratio::new(2, 100),
    beta: Ratio::new(7, 10),
    headroom: Ratio::new(15, 100),
    extra_acked_rounds: 1,
    extra_acked_parts: 10,
    extra_acked_max_us: u64::MAX,
    probe_rtt_cwnd_gain: PROBE_RTT_CWND_GAIN,
};

const LINUX_V3: Constants = Constants {
    startup_pacing_gain: Ratio::new(710, 256),
    drain_pacing_gain: Ratio::new(88, 256),
    drain_rounds: u32::MAX,
    down_pacing_gain: Ratio::new(232, 256),
    loss_thresh: Ratio::new(5, 256),
    beta: Ratio::new(180, 256),
    headroom: Ratio::new(38, 256),
    extra_acked_rounds: 5,
    extra_acked_parts: 2,
    extra_acked_max_us: 100_000,
    probe_rtt_cwnd_gain: Ratio::ONE,
};

impl Flavour {
    /// Return the constants of this flavour.
    pub(super) fn constants(self) -> &'static Constants {
        match self {
            Flavour::Draft06 => &DRAFT_06,
            Flavour::LinuxV3 => &LINUX_V3,
        }
    }
}
