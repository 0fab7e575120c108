//! Kinds of segments of one direction, and their counts.

/// Kind of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Segment without data that acknowledges nothing new.
    Bare,
    /// New data.
    Data,
    /// Retransmission of unacknowledged data.
    Retransmission,
    /// Retransmission of data that had already been acknowledged.
    Needless,
    /// Data overtaken by later data on the path.
    Late,
    /// Keep-alive or window probe.
    Probe,
    /// Acknowledgment of new data.
    Ack,
    /// Duplicate acknowledgment.
    Duplicate,
    /// Window update without other information.
    Window,
    /// SYN, with or without ACK.
    Syn,
    /// RST.
    Reset,
    /// SACK block, as a separate event.
    Sack,
    /// DSACK block, as a separate event.
    Dsack,
}

/// Names of the kinds, in order.
pub const KINDS: [&str; 13] = [
    "bare",
    "data",
    "retransmission",
    "needless",
    "late",
    "probe",
    "ack",
    "duplicate",
    "window",
    "syn",
    "reset",
    "sack",
    "dsack",
];

/// Counts for one direction. A segment is a packet as sent on the wire: a captured packet of several segments (above
/// the NIC) counts as that many segments.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    /// Captured packets.
    pub packets: u64,
    /// Segments with data or FIN.
    pub segments: u64,
    /// Bytes of data, each counted once.
    pub bytes: i64,
    /// Retransmitted segments.
    pub retransmitted: u64,
    /// Unnecessary retransmissions.
    pub spurious: u64,
    /// Retransmitted bytes.
    pub retransmitted_bytes: i64,
    /// Segments overtaken by later ones.
    pub reordered: u64,
    /// Segments sent once but reported by a DSACK: the network duplicated them.
    pub duplicated: u64,
    /// Bytes that were acknowledged but never captured.
    pub unseen_bytes: i64,
    /// Duplicate ACKs from the other side.
    pub duplicate_acks: u64,
    /// Segments that fill the other side's window.
    pub window_full: u64,
    /// Number of times the other side closed its window.
    pub zero_windows: u64,
    /// Segments with a CE mark.
    pub ce: u64,
    /// Segments by which the other side echoes a mark (ECE).
    pub ece: u64,
    /// Retransmitted SYNs.
    pub syn_again: u64,
    /// Maximum number of bytes in flight.
    pub most_in_flight: i64,
    /// Bytes of data before the first ACK of data.
    pub first_flight: i64,
    /// Number of RTT samples.
    pub rtts: u64,
    /// Sum of the RTT samples, nanoseconds.
    pub rtt_sum_ns: i128,
    /// Minimum RTT, nanoseconds.
    pub rtt_min_ns: i64,
    /// Maximum RTT, nanoseconds.
    pub rtt_max_ns: i64,
    /// Times of the first and the last segment with data, nanoseconds since 1970; `None` without data.
    pub data_ns: Option<(i64, i64)>,
    /// Minimum and maximum window advertised by the other side after the handshake, bytes; `None` without one.
    pub window: Option<(u64, u64)>,
}
