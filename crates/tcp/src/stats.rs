//! Counters of one endpoint: events, the end of its first slow start, and the causes that limit its sender.

use ackclock_core::{Span, Time};

/// Counters of one endpoint, in its role as sender unless stated otherwise.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "counters of events, by the name of the event")]
pub struct Stats {
    /// Data segments sent, including retransmissions.
    pub data_segments_sent: u64,
    pub retransmissions: u64,
    /// Retransmission timeouts, in total and by the state in which they occurred.
    pub rtos: u32,
    pub rtos_open: u32,
    pub rtos_disorder: u32,
    pub rtos_recovery: u32,
    pub rtos_loss: u32,
    pub tlps: u32,
    pub recoveries: u32,
    pub lost_retransmits: u32,
    pub undos: u32,
    pub spurious_rtos: u32,
    pub dsacks_received: u32,
    /// Number of times reordering was detected.
    pub reorderings: u32,
    /// End of the first slow start; `None` until it has ended.
    pub slow_start: Option<SlowStartExit>,
    pub rtt_sum_ns: u64,
    pub rtt_samples: u64,
    pub acks_received: u64,
}

impl Stats {
    /// Initial counters of a connection.
    pub const NONE: Stats = Stats {
        data_segments_sent: 0,
        retransmissions: 0,
        rtos: 0,
        rtos_open: 0,
        rtos_disorder: 0,
        rtos_recovery: 0,
        rtos_loss: 0,
        tlps: 0,
        recoveries: 0,
        lost_retransmits: 0,
        undos: 0,
        spurious_rtos: 0,
        dsacks_received: 0,
        reorderings: 0,
        slow_start: None,
        rtt_sum_ns: 0,
        rtt_samples: 0,
        acks_received: 0,
    };
}

impl Default for Stats {
    fn default() -> Stats {
        Stats::NONE
    }
}

/// Reason for the end of the first slow start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlowStartEnd {
    /// The slow-start algorithm ended slow start.
    Rule = 1,
    /// A loss was detected.
    Loss,
    /// An ECN mark arrived.
    Mark,
    /// The retransmission timer expired.
    Timeout,
    /// cwnd reached an earlier ssthresh, or the controller set ssthresh.
    Threshold,
}

impl SlowStartEnd {
    /// Names in the tables, by index; the first means none.
    pub const NAMES: [&'static str; 6] = ["", "rule", "loss", "mark", "timeout", "threshold"];
}

/// End of a connection's first slow start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlowStartExit {
    /// End time.
    pub at: Time,
    /// Reason for the end.
    pub by: SlowStartEnd,
    /// cwnd before the end, segments.
    pub cwnd: u32,
    /// ssthresh after the end, segments.
    pub ssthresh: u32,
    /// Segments marked lost until two round trips after the end.
    pub lost: u32,
}

/// Time for which each cause limited the sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Time with data to send or outstanding.
    pub busy: Span,
    /// Part of `busy` in which the receiver's window limited the sender.
    pub rwnd_limited: Span,
    /// Part of `busy` in which the send buffer limited the sender.
    pub sndbuf_limited: Span,
}
