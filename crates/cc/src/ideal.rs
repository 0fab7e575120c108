//! Ideal path of RFC 6937 §3.1: the segments that each recovery rule sends, ACK by ACK, without other influences. It
//! runs the real [`Rule`]s and is used to check the tables in the RFCs.
//!
//! Sources: RFC 6937 §3.1 and RFC 9937 §8 (setting); RFC 6675 §4-5 (loss detection, pipe, NextSeg, rescue
//! retransmission); RFC 3042 (limited transmit).
//!
//! The sender uses whole segments, with `cwnd` = FlightSize = pipe = W, evenly spaced over one RTT. The path is a FIFO
//! with an RTT of 1 and no queue. Each arriving segment triggers one ACK with complete SACK information.
//! Retransmissions are never lost.
//!
//! Differs: cwnd does not grow outside recovery, and there are no timers. The table ends where a sender would wait for
//! its RTO.

mod sender;

use ackclock_core::trace::{CaState, RuleVars};

use self::sender::Sender;
use crate::recovery::Rule;

/// Episode settings.
#[derive(Clone, Debug)]
pub struct IdealConfig {
    /// The recovery rule.
    pub rule: Rule,
    /// W: cwnd, FlightSize and pipe at the start, segments; at least 1.
    pub window: u32,
    /// Segments whose first transmission is lost, numbered from 0; may include new segments (W and above).
    pub lost: Vec<u32>,
    /// Lost ACKs, each identified by the 0-based number of the transmission that triggers it.
    pub lost_acks: Vec<u32>,
    /// Target window, segments; `None` uses max(W / 2, 2).
    pub ssthresh: Option<u32>,
    /// Minimum window of rate halving, segments; `None` uses ssthresh.
    pub min_cwnd: Option<u32>,
    /// Denominator that replaces PRR's own (for instance W, without limited-transmit segments); `None` keeps it.
    pub recover_fs: Option<u32>,
    /// Whether the application has more than the first W segments to send.
    pub more_data: bool,
    /// Whether new segments may be sent on duplicate ACKs before recovery.
    pub limited_transmit: bool,
    /// Maximum number of ACKs in a run.
    pub max_acks: u32,
}

impl IdealConfig {
    /// Settings used in the RFCs: bulk data, limited transmit, no overrides, no losses.
    pub fn new(rule: Rule, window: u32) -> IdealConfig {
        IdealConfig {
            rule,
            window,
            lost: Vec::new(),
            lost_acks: Vec::new(),
            ssthresh: None,
            min_cwnd: None,
            recover_fs: None,
            more_data: true,
            limited_transmit: true,
            max_acks: 100_000,
        }
    }
}

/// One table row: one ACK.
#[derive(Clone, Debug, PartialEq)]
pub struct IdealRow {
    /// Arrival time in RTTs since the first transmission.
    pub time_rtts: f64,
    /// 0-based number of the transmission that triggered the ACK ("ack#" in the published tables).
    pub ack: u32,
    /// Segment carried by this transmission.
    pub trigger: u32,
    /// Whether this transmission was a retransmission.
    pub trigger_is_retransmission: bool,
    /// snd_una after the ACK, segments.
    pub snd_una: u32,
    /// DeliveredData, segments.
    pub delivered: u32,
    /// Number of segments newly considered lost.
    pub newly_lost: u32,
    /// State after the ACK: Open, Disorder or Recovery.
    pub state: CaState,
    /// cwnd after the ACK, segments.
    pub cwnd: u32,
    /// Target window, segments; infinite before recovery.
    pub ssthresh: u32,
    /// pipe after the ACK, before sending, segments.
    pub pipe: u32,
    /// Number of new segments sent.
    pub sent_new: u32,
    /// Number of segments retransmitted.
    pub sent_retransmissions: u32,
    /// Segments sent, in the notation of the tables: "N", "R", "2R", "2R+N", "·" for none.
    pub sent: String,
    /// Which terms of PRR's reduction bound are equal to sndcnt, if sndcnt is above 0: s, b, d (RFC 6937 §3.1). Empty
    /// otherwise.
    pub rb: String,
    /// Rule variables after the ACK, before sending; defaults outside recovery.
    pub rule: RuleVars,
}

/// Summary of an episode; all zero if recovery was never entered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IdealSummary {
    /// Whether recovery was entered.
    pub entered: bool,
    /// Whether recovery ended with a full ACK; otherwise the sender would wait for its RTO.
    pub completed: bool,
    /// Time in RTTs from the entering ACK to the ACK that ends recovery (or the last one).
    pub recovery_rtts: f64,
    /// pipe on the entering ACK, before sending, segments.
    pub pipe_at_entry: u32,
    /// Target window, segments.
    pub ssthresh: u32,
    /// pipe after the ACK that ends recovery, before sending, segments.
    pub pipe_at_exit: u32,
    /// cwnd before the ACK that ends recovery, segments.
    pub cwnd_before_exit: u32,
    /// cwnd after the ACK that ends recovery, segments.
    pub cwnd_after_exit: u32,
    /// Number of segments sent on the entering ACK.
    pub burst_at_entry: u32,
    /// Maximum number of segments sent on one ACK in recovery, except the ACK that ends it.
    pub max_burst: u32,
    /// Number of segments sent on the ACK that ends recovery.
    pub burst_at_exit: u32,
    /// Number of segments retransmitted in the episode.
    pub retransmissions: u32,
}

/// Rows of all ACKs up to the one that ends recovery, and the summary.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IdealTable {
    /// One row per ACK.
    pub rows: Vec<IdealRow>,
    /// Episode summary.
    pub summary: IdealSummary,
}

/// Run one episode.
pub fn run(config: &IdealConfig) -> IdealTable {
    Sender::new(config).run()
}

#[cfg(test)]
mod tests {
    use super::sender::sent_string;
    use super::*;

    fn table(rule: &str, window: u32, lost: &[u32]) -> IdealTable {
        let rule = Rule::by_name(rule).expect("registered");
        run(&IdealConfig { lost: lost.to_vec(), ..IdealConfig::new(rule, window) })
    }

    #[test]
    fn without_loss_there_is_no_recovery() {
        let t = table("rfc6675", 20, &[]);
        assert_eq!(t.summary, IdealSummary::default());
        assert_eq!(t.rows.len(), 1);
        assert_eq!(t.rows[0].sent, "N");
    }

    #[test]
    fn too_few_segments_wait_for_the_rto() {
        let rule = Rule::by_name("rfc6675").expect("registered");
        let t = run(&IdealConfig { lost: vec![0], more_data: false, ..IdealConfig::new(rule, 3) });
        assert!(!t.summary.entered);
        assert_eq!(t.rows.len(), 2);
    }

    #[test]
    fn rescue_retransmission_repairs_a_lost_tail() {
        // RFC 6675 NextSeg rule 4: no segment above 19 exists, so 19 is sent once 0 is acknowledged
        let rule = Rule::by_name("rfc6675").expect("registered");
        let t = run(&IdealConfig { lost: vec![0, 19], more_data: false, ..IdealConfig::new(rule, 20) });
        assert!(t.summary.completed);
        assert_eq!(t.summary.retransmissions, 2);
    }

    #[test]
    fn an_ack_loss_merges_two_acks() {
        let rule = Rule::by_name("prr-ssrb").expect("registered");
        let t = run(&IdealConfig { lost: vec![0], lost_acks: vec![5], ..IdealConfig::new(rule, 20) });
        let row = t.rows.iter().find(|r| r.ack == 6).expect("row");
        assert_eq!(row.delivered, 2);
        assert!(t.rows.iter().all(|r| r.ack != 5));
    }

    #[test]
    fn sent_is_spelled_as_in_the_rfc() {
        for (new, rtx, want) in [(0, 0, "·"), (1, 0, "N"), (0, 7, "7R"), (1, 2, "2R+N"), (3, 1, "R+3N")] {
            assert_eq!(sent_string(new, rtx), want);
        }
    }
}
