//! Kinds of segments of one direction, and their counts.

/// Kind of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Carries neither data nor news.
    Bare,
    /// Data that had not been seen.
    Data,
    /// Unacknowledged data sent again.
    Retransmission,
    /// Data again that had been acknowledged already.
    Needless,
    /// Data that others had overtaken on the way.
    Late,
    /// Probe of whether the peer is alive, or whether its window has opened.
    Probe,
    /// Acknowledges something new.
    Ack,
    /// Acknowledgment that repeats the one before.
    Duplicate,
    /// Opens or shuts the window, and no more.
    Window,
    /// SYN, with or without ACK.
    Syn,
    /// RST.
    Reset,
    /// A SACK block, of its own in a list of events.
    Sack,
    /// A DSACK block.
    Dsack,
}

/// Names of the kinds, in their order.
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

/// Counts of one direction. A segment is a packet as sent: a packet of several segments, as captured above the card, counts as that
/// many.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    /// Packets.
    pub packets: u64,
    /// Segments with data or FIN.
    pub segments: u64,
    /// Bytes of data, each once.
    pub bytes: i64,
    /// Segments sent again.
    pub retransmitted: u64,
    /// Retransmissions that were for nothing.
    pub spurious: u64,
    /// Bytes of data sent again.
    pub retransmitted_bytes: i64,
    /// Segments overtaken by others.
    pub reordered: u64,
    /// Segments sent once that a DSACK names: the network has duplicated them.
    pub duplicated: u64,
    /// Bytes that were acknowledged and never seen: the capture has missed them.
    pub unseen_bytes: i64,
    /// Duplicate ACKs from the other side.
    pub duplicate_acks: u64,
    /// Segments that reach the end of the other side's window.
    pub window_full: u64,
    /// Times that the other side has shut its window.
    pub zero_windows: u64,
    /// Segments with a mark of a router (CE).
    pub ce: u64,
    /// Segments by which the other side echoes a mark (ECE).
    pub ece: u64,
    /// SYNs sent again.
    pub syn_again: u64,
    /// Most bytes in flight.
    pub most_in_flight: i64,
    /// Bytes of data before the first ACK of data.
    pub first_flight: i64,
    /// Round trips that were measured.
    pub rtts: u64,
    /// Sum of the round trips, nanoseconds.
    pub rtt_sum_ns: i128,
    /// Shortest round trip, nanoseconds.
    pub rtt_min_ns: i64,
    /// Longest round trip, nanoseconds.
    pub rtt_max_ns: i64,
    /// Nanoseconds of the first and the last segment with data.
    pub data_ns: Option<(i64, i64)>,
    /// Smallest and largest window that the other side has offered after the handshake.
    pub window: Option<(u64, u64)>,
}
