//! Where two descriptions of version 3 differ: the draft, and Google's kernel (branch v3 of `tcp_bbr`, integers of 1/256).
//!
//! | | draft-06 | linux-v3 |
//! |---|---|---|
//! | bounds of an undone loss | restored, and so is the state | restored |
//! | entering ProbeBW_CRUISE | nothing | the short-term bound falls to the long-term one |
//! | a delayed ACK after 10 s without a lower RTT | renews the least RTT | does not |
//! | three bursts of room | of `send_quantum` | of TSO's goal, which short paths raise |
//!
//! The other differences are numbers, below.

use ackclock_core::schema::FLAG;
use ackclock_core::{choice, table};

/// Whose description of version 3.
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

/// The numbers of a flavour. Gains and shares are fractions.
#[derive(Debug)]
pub(super) struct Constants {
    /// BBR.StartupPacingGain: 4 ln 2, the least gain that doubles the rate each round.
    pub startup_pacing_gain: f64,
    /// BBR.DrainPacingGain.
    pub drain_pacing_gain: f64,
    /// Drain ends after more rounds than this, however much is in flight (§5.3.2).
    pub drain_rounds: u32,
    /// Pacing gain of ProbeBW_DOWN.
    pub down_pacing_gain: f64,
    /// BBR.LossThresh: losses of a round trip that a probe tolerates.
    pub loss_thresh: f64,
    /// BBR.Beta: share that a short-term bound keeps in a round with losses, as CUBIC's window does.
    pub beta: f64,
    /// BBR.Headroom: share of `inflight_longterm` that a flow leaves to others while it cruises.
    pub headroom: f64,
    /// BBR.ExtraAckedFilterLen: rounds of a part of the filter, and how many parts.
    pub extra_acked_rounds: u32,
    pub extra_acked_parts: usize,
    /// Most that aggregation adds to cwnd, seconds of the rate.
    pub extra_acked_max: f64,
}

const DRAFT_06: Constants = Constants {
    startup_pacing_gain: 2.77,
    drain_pacing_gain: 0.5,
    drain_rounds: 3,
    down_pacing_gain: 0.9,
    loss_thresh: 0.02,
    beta: 0.7,
    headroom: 0.15,
    extra_acked_rounds: 1,
    extra_acked_parts: 10,
    extra_acked_max: f64::INFINITY,
};

const LINUX_V3: Constants = Constants {
    startup_pacing_gain: 710.0 / 256.0,
    drain_pacing_gain: 88.0 / 256.0,
    drain_rounds: u32::MAX,
    down_pacing_gain: 232.0 / 256.0,
    loss_thresh: 5.0 / 256.0,
    beta: 180.0 / 256.0,
    headroom: 38.0 / 256.0,
    extra_acked_rounds: 5,
    extra_acked_parts: 2,
    extra_acked_max: 0.1,
};

impl Flavour {
    /// Its numbers.
    pub(super) fn constants(self) -> &'static Constants {
        match self {
            Flavour::Draft06 => &DRAFT_06,
            Flavour::LinuxV3 => &LINUX_V3,
        }
    }
}
