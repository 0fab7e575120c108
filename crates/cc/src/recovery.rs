//! Recovery rules: the contract, the closed set, and the registry of names. A rule is pure arithmetic in segments. It
//! determines cwnd on each ACK of an episode; the sender transmits while pipe < cwnd.

mod freebsd_4;
mod prr;
mod rate_halving;
mod rfc6675;

use ackclock_core::trace::RuleVars;

pub use freebsd_4::FreeBsd4;
pub use prr::{ForcedRetransmit, Prr, PrrBound, PrrExit, PrrParams, RecoverFs};
pub use rate_halving::RateHalving;
pub use rfc6675::Rfc6675;

/// Sender state at the start of recovery, after the entering ACK has been applied to the scoreboard.
#[derive(Clone, Copy, Debug)]
pub struct RecoveryEntry {
    /// cwnd before entry (W).
    pub cwnd: u32,
    /// Target window chosen by the controller.
    pub ssthresh: u32,
    /// snd_nxt - snd_una, limited-transmit segments included.
    pub flight_size: u32,
    /// Segments SACKed in total, including those of the entering ACK.
    pub sacked: u32,
    /// Segments newly SACKed by the entering ACK.
    pub newly_sacked: u32,
    /// Segments that the entering ACK newly acknowledged cumulatively.
    pub newly_acked: u32,
    /// Minimum window for rate halving (the controller's `min_cwnd` hook).
    pub min_cwnd: u32,
}

/// One ACK in recovery, including the entering ACK, after it has been applied to the scoreboard.
#[derive(Clone, Copy, Debug)]
pub struct RecoveryAck {
    /// DeliveredData: segments cumulatively acknowledged plus the change in SACKed segments.
    pub delivered: u32,
    /// pipe after this ACK, before sending.
    pub pipe: u32,
    /// cwnd before this ACK.
    pub cwnd: u32,
    /// Target window.
    pub ssthresh: u32,
    /// Whether snd_una advanced.
    pub una_advanced: bool,
    /// Segments newly marked lost by this ACK, including lost retransmissions.
    pub newly_lost: u32,
    /// Whether this ACK entered recovery.
    pub entering: bool,
    /// Whether the ACK made progress in the sense of Linux 2.6 `tcp_cwnd_down`: it acknowledged or SACKed data, carries
    /// a DSACK, or is a duplicate ACK of a flow without SACK.
    pub progress: bool,
}

/// Sender state when a full ACK ends recovery.
#[derive(Clone, Copy, Debug)]
pub struct RecoveryExit {
    /// cwnd before the exit rule.
    pub cwnd: u32,
    /// Target window.
    pub ssthresh: u32,
    /// pipe after the ACK that ends recovery.
    pub pipe: u32,
    /// Whether the episode has been undone; the sender has already restored cwnd and ssthresh.
    pub undone: bool,
}

/// The contract of a recovery rule.
pub trait RecoveryRule {
    /// Process the start of recovery (or CWR). Called before the entering ACK's `on_ack`.
    fn enter(&mut self, entry: &RecoveryEntry);

    /// Return cwnd after this ACK, in segments; the sender transmits while pipe < cwnd.
    fn on_ack(&mut self, ack: &RecoveryAck) -> u32;

    /// Count transmitted segments, new or retransmitted.
    fn on_sent(&mut self, segments: u32);

    /// Return cwnd after the full ACK that ends recovery, in segments.
    fn exit(&mut self, exit: &RecoveryExit) -> u32;

    /// Whether the first retransmission is sent regardless of pipe and cwnd (RFC 6675 §5 step 4.3).
    fn forces_first_retransmit(&self) -> bool {
        false
    }

    /// Variables for the trace.
    fn vars(&self) -> RuleVars {
        RuleVars::default()
    }
}

/// All built-in rules.
#[allow(missing_docs, reason = "each variant holds the rule of its name")]
#[derive(Clone, Debug)]
pub enum Rule {
    Rfc6675(Rfc6675),
    FreeBsd4(FreeBsd4),
    RateHalving(RateHalving),
    Prr(Prr),
}

/// Name and one-line description of each built-in rule.
pub const REGISTRY: &[(&str, &str)] = &[
    ("rfc6675", "RFC 6675 (and 3517): cwnd = ssthresh at once, send while pipe < cwnd"),
    (
        "freebsd-4",
        "FreeBSD 4 (NewReno): cwnd = ssthresh, but at the end at most the data in flight plus one segment",
    ),
    ("rate-halving", "Linux rate halving (kernels up to 3.1): one segment per two ACKs"),
    ("prr-ub", "PRR with the unlimited reduction bound (RFC 6937 reference)"),
    ("prr-crb", "PRR with the conservative reduction bound (RFC 6937)"),
    ("prr-ssrb", "PRR with the slow-start reduction bound (RFC 6937)"),
    ("prr-rfc9937", "PRR of RFC 9937: conservative, slow start on SafeACKs, cwnd = ssthresh at the end"),
    ("prr-linux-3.2", "PRR as in Linux 3.2: prior_cwnd, slow-start bound"),
    ("prr-linux-6", "PRR as in Linux 6 and 7: prior_cwnd, SafeACK, forced first retransmit"),
];

impl Rule {
    /// Return the rule called `name`, if there is one.
    pub fn by_name(name: &str) -> Option<Rule> {
        Some(match name {
            "rfc6675" => Rule::Rfc6675(Rfc6675),
            "freebsd-4" => Rule::FreeBsd4(FreeBsd4),
            "rate-halving" => Rule::RateHalving(RateHalving::default()),
            "prr-ub" => Rule::Prr(Prr::new(PrrParams::UB)),
            "prr-crb" => Rule::Prr(Prr::new(PrrParams::CRB)),
            "prr-ssrb" => Rule::Prr(Prr::new(PrrParams::SSRB)),
            "prr-rfc9937" => Rule::Prr(Prr::new(PrrParams::RFC9937)),
            "prr-linux-3.2" => Rule::Prr(Prr::new(PrrParams::LINUX_3_2)),
            "prr-linux-6" => Rule::Prr(Prr::new(PrrParams::LINUX_6)),
            _ => return None,
        })
    }
}

macro_rules! dispatch {
    ($self:ident, $r:ident => $e:expr) => {
        match $self {
            Rule::Rfc6675($r) => $e,
            Rule::FreeBsd4($r) => $e,
            Rule::RateHalving($r) => $e,
            Rule::Prr($r) => $e,
        }
    };
}

impl RecoveryRule for Rule {
    fn enter(&mut self, entry: &RecoveryEntry) {
        dispatch!(self, r => r.enter(entry))
    }
    fn on_ack(&mut self, ack: &RecoveryAck) -> u32 {
        dispatch!(self, r => r.on_ack(ack))
    }
    #[inline]
    fn on_sent(&mut self, segments: u32) {
        dispatch!(self, r => r.on_sent(segments))
    }
    fn exit(&mut self, exit: &RecoveryExit) -> u32 {
        dispatch!(self, r => r.exit(exit))
    }
    fn forces_first_retransmit(&self) -> bool {
        dispatch!(self, r => r.forces_first_retransmit())
    }
    fn vars(&self) -> RuleVars {
        dispatch!(self, r => r.vars())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_registered_name_is_known() {
        for (name, _) in REGISTRY {
            assert!(Rule::by_name(name).is_some(), "{name}");
        }
        assert!(Rule::by_name("prr").is_none());
    }

    #[test]
    fn only_rules_that_hold_ssthresh_force_the_first_retransmission_past_the_window() {
        for (name, _) in REGISTRY {
            let rule = Rule::by_name(name).expect("registered");
            assert_eq!(rule.forces_first_retransmit(), matches!(*name, "rfc6675" | "freebsd-4"), "{name}");
        }
    }
}
