//! Words of the trace: events, states, branches of recovery rules; and the summary of one recovery. The line itself is the TCP sender's
//! (`Record` of `ackclock_tcp`).

use crate::packet::FlowId;
use crate::time::{Span, Time};

/// Occasion of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Event {
    /// An ACK was processed.
    #[default]
    Ack,
    /// A new segment left.
    Send,
    /// A segment was retransmitted.
    Rtx,
    /// The retransmission timer expired.
    Rto,
    /// A tail loss probe left (RFC 8985 §7).
    Tlp,
    /// RACK's reordering timer expired (RFC 8985 §6.3).
    ReoTimer,
    /// Fast recovery began.
    Enter,
    /// Fast recovery ended.
    Exit,
    /// A reduction of the window was taken back.
    Undo,
}

impl Event {
    /// Column spelling, indexed by discriminant.
    pub const NAMES: [&'static str; 9] =
        ["ack", "send", "rtx", "rto", "tlp", "reo_timer", "enter", "exit", "undo"];
}

/// Congestion state, with Linux's names and numbers (tcpi_ca_state).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(u8)]
pub enum CaState {
    /// Nothing unusual.
    #[default]
    Open,
    /// SACKs or duplicate ACKs, no loss inferred yet.
    Disorder,
    /// The window is being reduced because of ECN or local congestion.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After an RTO.
    Loss,
}

impl CaState {
    /// Column spelling, indexed by discriminant.
    pub const NAMES: [&'static str; 5] = ["Open", "Disorder", "CWR", "Recovery", "Loss"];
}

/// Branch of the recovery rule that set the window on an ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Branch {
    /// Not in recovery, or the rule has no branches.
    #[default]
    None,
    /// PRR, pipe above ssthresh: the proportional part.
    Proportional,
    /// PRR, pipe at or below ssthresh: the reduction bound.
    Bound,
    /// PRR: one segment leaves although the formula gives none.
    Forced,
    /// Rate halving: one segment less on every second ACK.
    Decrement,
    /// Rate halving: cwnd is held at pipe + 1.
    Clamp,
    /// cwnd stays as it is.
    Hold,
}

impl Branch {
    /// Column spelling, indexed by discriminant.
    pub const NAMES: [&'static str; 7] = ["", "prop", "bound", "forced", "rh_dec", "rh_clamp", "hold"];
}

/// A recovery rule's variables after an ACK; which of them mean something depends on the rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleVars {
    /// Branch taken.
    pub branch: Branch,
    /// sndcnt, segments that the rule allows on this ACK.
    pub sndcnt: u32,
    /// prr_delivered, segments.
    pub prr_delivered: u32,
    /// prr_out, segments.
    pub prr_out: u32,
    /// RecoverFS (or prior_cwnd in Linux), segments.
    pub recover_fs: u32,
}

/// Why an episode of recovery ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ExitCause {
    /// The recovery point was acknowledged.
    FullAck,
    /// The retransmission timer expired.
    Rto,
    /// The reduction was taken back.
    Undo,
    /// The run ended first.
    RunEnd,
}

impl ExitCause {
    /// Column spelling, indexed by discriminant.
    pub const NAMES: [&'static str; 4] = ["full_ack", "rto", "undo", "run_end"];
}

/// Summary of one episode of fast recovery.
#[derive(Clone, Copy, Debug)]
pub struct RecoverySummary {
    /// Connection.
    pub flow: FlowId,
    /// Sender is the connection's responder.
    pub responder: bool,
    /// Entry.
    pub t_enter: Time,
    /// Exit.
    pub t_exit: Time,
    /// pipe at entry, before the rule acts, segments.
    pub pipe_enter: u32,
    /// Target window, segments.
    pub ssthresh: u32,
    /// W: cwnd just before entry.
    pub cwnd_enter: u32,
    /// Segments marked lost in the episode.
    pub losses: u32,
    /// Retransmissions sent in the episode.
    pub retransmits: u32,
    /// Retransmissions that were lost in turn.
    pub lost_retransmits: u32,
    /// Maximum number of segments sent on one ACK.
    pub max_burst: u32,
    /// ACKs processed in the episode.
    pub acks: u32,
    /// cwnd just before the exit rule.
    pub cwnd_before_exit: u32,
    /// cwnd just after it.
    pub cwnd_after_exit: u32,
    /// pipe at exit, before sending.
    pub pipe_exit: u32,
    /// Smoothed RTT at entry.
    pub srtt: Span,
    /// Cause of the end.
    pub cause: ExitCause,
}
