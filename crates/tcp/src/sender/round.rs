//! State of one round of sending from buffers: sender offsets, and treatment of small segments.

/// Sender offsets and segment size.
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
    /// All small segments are sent (Linux TCP_NAGLE_PUSH).
    All,
    /// Small segments wait: MSG_MORE.
    Corked,
    /// Only one packet is sent (Linux `tcp_push_one`).
    One,
    /// The packet of `One` has been sent; no other follows.
    Over,
}
