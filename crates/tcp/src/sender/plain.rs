//! Reasons that forbid trains (see `train.rs`): conditions that must be checked before every new segment. The code that creates a reason notes it,
//! and removes it when it is over; [`Sender::recount_reasons`] evaluates all of them again. A feature that acts on each new segment is a reason with
//! a name here, of which [`Sender::leave`] knows nothing else.

use ackclock_core::trace::CaState;

use super::device::Takes;
use super::Sender;
use crate::config::{Config, MtuProbing};

/// Reasons, a bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Reasons(u8);

impl Reasons {
    /// Data leaves from buffers, in packets of several segments.
    pub const BUFFERS: Reasons = Reasons(1);
    /// A line is written for each segment.
    pub const TRACED: Reasons = Reasons(1 << 1);
    /// The path's MTU is being probed.
    pub const MTU_SEARCH: Reasons = Reasons(1 << 2);
    /// The first burst has its own bound, or TCP_INFO's counters are kept: settings of the connection.
    pub const SETTINGS: Reasons = Reasons(1 << 3);
    /// The state is Disorder, without limited transmit: SACKs release nothing.
    pub const DISORDER: Reasons = Reasons(1 << 4);
    /// The next new segment carries CWR.
    pub const CWR: Reasons = Reasons(1 << 5);
    /// The device, or the queue before it, may refuse a packet.
    pub const DEVICE: Reasons = Reasons(1 << 6);
    /// Headers carry the counters of accurate ECN.
    pub const ACCURATE_ECN: Reasons = Reasons(1 << 7);

    /// Reasons of a new sender.
    pub fn of(config: &Config) -> Reasons {
        let mut reasons = Reasons::default();
        reasons.set(Reasons::BUFFERS, config.buffers.is_some());
        reasons.set(Reasons::SETTINGS, config.switches.first_burst_cap > 0 || config.ledger);
        reasons.set(Reasons::MTU_SEARCH, config.switches.mtu_probing != MtuProbing::Off);
        reasons
    }

    /// Whether there is no reason.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Set or clear the reason.
    #[inline]
    pub fn set(&mut self, reason: Reasons, holds: bool) {
        self.0 = self.0 & !reason.0 | if holds { reason.0 } else { 0 };
    }
}

impl Sender {
    /// Evaluate all reasons anew.
    ///
    /// # Panics
    ///
    /// If they differ from those that were noted.
    pub(crate) fn recount_reasons(&self) {
        let mut reasons = Reasons::of(&self.config);
        reasons.set(Reasons::MTU_SEARCH, self.mtu_search.is_some() || self.half_window.is_some());
        reasons.set(Reasons::TRACED, self.trace.is_on());
        let waits = self.ca_state == CaState::Disorder && !self.config.limited_transmit;
        reasons.set(Reasons::DISORDER, waits);
        reasons.set(Reasons::CWR, self.ecn.cwr_due);
        reasons.set(Reasons::DEVICE, self.patience.device != Takes::All);
        reasons.set(Reasons::ACCURATE_ECN, self.ecn.accurate);
        assert_eq!(self.reasons, reasons, "reasons against trains");
    }
}
