//! Where two descriptions of version 3 differ: the draft, and Google's kernel (branch v3 of `tcp_bbr`, integers of 1/256).
//!
//! | | draft-06 | linux-v3 |
//! |---|---|---|
//! | bounds of an undone loss | restored, and so is the state; cwnd is the greater of both | restored; cwnd is what it was |
//! | a loss that a tail loss probe repaired | nothing | a loss of the flight |
//! | an application-limited ACK, the window settled, no loss in the round | as any other | teaches the model nothing |
//! | an ACK without a valid rate sample | leaves the cycle as it is | moves it on, as one that shows no loss |
//! | what holds the flow back, in a probe | cwnd, in slow start half of it | cwnd |
//! | times of the least RTT and of ProbeRTT | exact | ticks of 1 ms |
//! | an ACK of a tail loss probe ends a loss round | as any other | what was delivered before stays known |
//! | entering ProbeBW_CRUISE | nothing | the short-term bound falls to the long-term one |
//! | a delayed ACK after 10 s without a lower RTT | renews the least RTT | does not |
//! | three bursts of room | of `send_quantum` | of TSO's goal, which short paths raise |
//! | a rate sample that is no whole number | is rounded down | is rounded up, so that small rates can grow |
//! | what a probe compares with the long-term bound | what is in flight after the ACK | before it, less what is delivered until the pacer sends again |
//! | the target that a bound keeps a share of, and that limits rounds between probes | the BDP | and three bursts of room |
//! | Startup's growth without a model | until 10 segments are delivered | until cwnd is twice the first |
//! | entering Drain | nothing | forgets the losses and marks of Startup |
//! | losses in recovery | cwnd falls by them, and is restored at the end | nothing, but cwnd is restored after a timeout |
//! | a timeout between probes | nothing | the short-term bound is the window before it, and a full pipe is looked for anew |
//!
//! The other differences are numbers, below.

use ackclock_core::schema::FLAG;
use ackclock_core::{choice, table};

/// Description of version 3 that is followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flavour {
    Draft06,
    LinuxV3,
}

choice! { Flavour: Draft06 "draft-06", LinuxV3 "linux-v3" }

table! {
    /// Options of `bbr3`.
    pub(crate) struct Bbr3Options "bbr3" {
        /// constants and rules where they differ: those of draft-ietf-ccwg-bbr-06, or of the kernel's v3
        flavour: Flavour = Flavour::TAKES, Flavour::Draft06;
        /// ask for ECN and react to marks as the kernel's v3 does on paths of at most 5 ms; the draft says nothing
        /// about marks
        ecn: bool = FLAG, false;
    }
}

/// A gain or a share, exact: `num` / `den`.
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

    /// Return this share of `x`, rounded down.
    #[inline]
    pub fn of(self, x: u64) -> u64 {
        x.saturating_mul(self.num) / self.den
    }

    /// Return this share of a volume in whole segments, rounded down.
    #[inline]
    pub fn of_volume(self, segments: u32) -> u32 {
        self.of(u64::from(segments)).min(u64::from(u32::MAX)) as u32
    }

    /// The share of `x`, rounded up.
    pub fn of_rounded_up(self, x: u64) -> u64 {
        x.saturating_mul(self.num).div_ceil(self.den)
    }

    /// Return `x` / (1 - this), rounded down: the whole of which `x` is the rest.
    pub fn rest_of(self, x: u64) -> u64 {
        x.saturating_mul(self.den) / (self.den - self.num)
    }

    pub fn is_above_one(self) -> bool {
        self.num > self.den
    }

    /// Value for the trace.
    pub fn as_f64(self) -> f64 {
        self.num as f64 / self.den as f64
    }
}

/// The numbers of a flavour.
#[derive(Debug)]
pub(super) struct Constants {
    /// BBR.StartupPacingGain: 4 ln 2, the least gain that doubles the rate each round.
    pub startup_pacing_gain: Ratio,
    /// BBR.DrainPacingGain.
    pub drain_pacing_gain: Ratio,
    /// Drain ends after more rounds than this, regardless of the bytes in flight (§5.3.2).
    pub drain_rounds: u32,
    /// Pacing gain of ProbeBW_DOWN.
    pub down_pacing_gain: Ratio,
    /// BBR.LossThresh: losses of a round trip that a probe tolerates.
    pub loss_thresh: Ratio,
    /// BBR.Beta: share that a short-term bound keeps in a round with losses, as CUBIC's window does.
    pub beta: Ratio,
    /// BBR.Headroom: share of `inflight_longterm` that a flow leaves to others while it cruises.
    pub headroom: Ratio,
    /// BBR.ExtraAckedFilterLen: rounds of a part of the filter, and how many parts.
    pub extra_acked_rounds: u32,
    pub extra_acked_parts: usize,
    /// Maximum that aggregation adds to cwnd, us of the rate.
    pub extra_acked_max_us: u64,
    /// BBR.ProbeRTTCwndGain as the gain of cwnd while ProbeRTT lasts; the bound of ProbeRTT is half of the BDP in both.
    pub probe_rtt_cwnd_gain: Ratio,
}

/// BBR.ProbeRTTCwndGain (§2): share of the BDP that ProbeRTT leaves in flight.
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
    /// Constants of this flavour.
    pub(super) fn constants(self) -> &'static Constants {
        match self {
            Flavour::Draft06 => &DRAFT_06,
            Flavour::LinuxV3 => &LINUX_V3,
        }
    }
}
