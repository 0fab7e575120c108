//! Reasons that forbid trains (see `train.rs`): conditions that must be checked before every new segment. The code that
//! causes a reason sets it, and clears it afterwards; [`Sender::recount_reasons`] evaluates all of them again. A feature
//! that acts on each new segment is a named reason here, and [`Sender::leave`] needs to know nothing else of it.

use ackclock_core::trace::CaState;

use super::device::Takes;
use super::Sender;
use crate::config::{Config, MtuProbing};

/// Set of reasons, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Reasons(u8);

impl Reasons {
    /// Data is sent from buffers, in multi-segment packets.
    pub const BUFFERS: Reasons = Reasons(1);
    /// Each segment is recorded in the trace.
    pub const TRACED: Reasons = Reasons(1 << 1);
    /// The segment size may change: the path MTU is being probed, or the peer's window was small.
    pub const MTU_SEARCH: Reasons = Reasons(1 << 2);
    /// A setting forbids trains: the first burst has its own limit, or TCP_INFO's counters are recorded.
    pub const SETTINGS: Reasons = Reasons(1 << 3);
    /// The state is Disorder without limited transmit, so SACKs release no new data.
    pub const DISORDER: Reasons = Reasons(1 << 4);
    /// The next new segment carries CWR.
    pub const CWR: Reasons = Reasons(1 << 5);
    /// The device, or the queue in front of it, may refuse a packet.
    pub const DEVICE: Reasons = Reasons(1 << 6);
    /// Headers carry the AccECN ACE field.
    pub const ACCURATE_ECN: Reasons = Reasons(1 << 7);

    /// Return the reasons of a new sender.
    pub fn of(config: &Config) -> Reasons {
        let mut reasons = Reasons::default();
        reasons.set(Reasons::BUFFERS, config.sending.buffers.is_some());
        reasons.set(Reasons::SETTINGS, config.switches.first_burst_cap > 0 || config.ledger);
        reasons.set(Reasons::MTU_SEARCH, config.switches.mtu_probing != MtuProbing::Off);
        reasons
    }

    /// Whether the set is empty.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Set the reason if it `holds`, else clear it.
    #[inline]
    pub fn set(&mut self, reason: Reasons, holds: bool) {
        self.0 = self.0 & !reason.0 | if holds { reason.0 } else { 0 };
    }
}

impl Sender {
    /// Check the recorded reasons against a full evaluation.
    ///
    /// # Panics
    ///
    /// If the two differ.
    pub(crate) fn recount_reasons(&self) {
        let mut reasons = Reasons::of(&self.config);
        reasons.set(Reasons::MTU_SEARCH, self.mtu_search.is_some() || self.half_window.is_some());
        reasons.set(Reasons::TRACED, self.trace.is_on());
        let waits = self.ca_state == CaState::Disorder && !self.config.loss.limited_transmit;
        reasons.set(Reasons::DISORDER, waits);
        reasons.set(Reasons::CWR, self.ecn.cwr_due);
        reasons.set(Reasons::DEVICE, self.patience.device != Takes::All);
        reasons.set(Reasons::ACCURATE_ECN, self.ecn.accurate);
        assert_eq!(self.reasons, reasons, "reasons against trains");
    }
}
