//! One round of sending from buffers: its position, and its treatment of small segments.

/// Position of the sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub una: u64,
    pub nxt: u64,
    pub smss: u64,
}

/// Treatment of small segments in the current round of sending.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Round {
    /// Nagle's rule applies.
    #[default]
    Plain,
    /// All leave (Linux TCP_NAGLE_PUSH).
    All,
    /// They wait: MSG_MORE.
    Corked,
    /// Only one packet leaves (Linux `tcp_push_one`).
    One,
    /// After the packet of `One` has left.
    Over,
}
