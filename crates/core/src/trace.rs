//! Vocabulary of the trace: events, states, branches of recovery rules, and the summary of one recovery episode. The
//! row itself is `Record` of `ackclock_tcp`.

use crate::packet::FlowId;
use crate::time::{Span, Time};

/// Event that caused a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Event {
    /// An ACK was processed.
    #[default]
    Ack,
    /// A new segment was sent.
    Send,
    /// A segment was retransmitted.
    Rtx,
    /// The retransmission timer expired.
    Rto,
    /// A tail loss probe was sent (RFC 8985 §7).
    Tlp,
    /// RACK's reordering timer expired (RFC 8985 §6.3).
    ReoTimer,
    /// Fast recovery began.
    Enter,
    /// Fast recovery ended.
    Exit,
    /// A window reduction was undone.
    Undo,
}

impl Event {
    /// Names in the tables, indexed by discriminant.
    pub const NAMES: [&'static str; 9] =
        ["ack", "send", "rtx", "rto", "tlp", "reo_timer", "enter", "exit", "undo"];
}

/// Congestion state, with Linux's names and numbers (tcpi_ca_state).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(u8)]
pub enum CaState {
    /// Normal operation.
    #[default]
    Open,
    /// SACKs or duplicate ACKs have arrived, but no loss is inferred yet.
    Disorder,
    /// The window is being reduced because of ECN or local congestion.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// Loss recovery after an RTO.
    Loss,
}

impl CaState {
    /// Names in the tables, indexed by discriminant.
    pub const NAMES: [&'static str; 5] = ["Open", "Disorder", "CWR", "Recovery", "Loss"];
}

/// Branch of the recovery rule that determined the window on an ACK.
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
    /// PRR: one segment is sent although the formula allows none.
    Forced,
    /// Rate halving: cwnd is reduced by one segment on every second ACK.
    Decrement,
    /// Rate halving: cwnd is limited to pipe + 1.
    Clamp,
    /// cwnd is unchanged.
    Hold,
}

impl Branch {
    /// Names in the tables, indexed by discriminant.
    pub const NAMES: [&'static str; 7] = ["", "prop", "bound", "forced", "rh_dec", "rh_clamp", "hold"];
}

/// Variables of a recovery rule after an ACK. Which of them are valid depends on the rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleVars {
    /// Branch taken on this ACK.
    pub branch: Branch,
    /// sndcnt: segments permitted by the rule on this ACK.
    pub sndcnt: u32,
    /// prr_delivered, segments.
    pub prr_delivered: u32,
    /// prr_out, segments.
    pub prr_out: u32,
    /// RecoverFS (prior_cwnd in Linux), segments.
    pub recover_fs: u32,
}

/// Reason why a recovery episode ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ExitCause {
    /// The recovery point was acknowledged.
    FullAck,
    /// The retransmission timer expired.
    Rto,
    /// The window reduction was undone.
    Undo,
    /// The run ended during recovery.
    RunEnd,
}

impl ExitCause {
    /// Names in the tables, indexed by discriminant.
    pub const NAMES: [&'static str; 4] = ["full_ack", "rto", "undo", "run_end"];
}

/// Summary of one episode of fast recovery.
#[derive(Clone, Copy, Debug)]
pub struct RecoverySummary {
    /// Flow of the connection.
    pub flow: FlowId,
    /// Whether the sender is the responder of the connection.
    pub responder: bool,
    /// Time of entry.
    pub t_enter: Time,
    /// Time of exit.
    pub t_exit: Time,
    /// pipe at entry, before the rule acts, segments.
    pub pipe_enter: u32,
    /// Target window, segments.
    pub ssthresh: u32,
    /// W: cwnd just before entry, segments.
    pub cwnd_enter: u32,
    /// Segments marked lost in the episode.
    pub losses: u32,
    /// Retransmissions sent in the episode.
    pub retransmits: u32,
    /// Retransmissions that were themselves lost.
    pub lost_retransmits: u32,
    /// Maximum number of segments sent on one ACK.
    pub max_burst: u32,
    /// ACKs processed in the episode.
    pub acks: u32,
    /// cwnd just before the exit rule, segments.
    pub cwnd_before_exit: u32,
    /// cwnd just after the exit rule, segments.
    pub cwnd_after_exit: u32,
    /// pipe at exit, before anything is sent, segments.
    pub pipe_exit: u32,
    /// Smoothed RTT at entry.
    pub srtt: Span,
    /// Reason for the exit.
    pub cause: ExitCause,
}
