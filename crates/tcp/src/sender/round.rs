//! One round of sending from buffers: where it stands, and how it treats small segments.

/// Where the sender stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub una: u64,
    pub nxt: u64,
    pub smss: u64,
}

/// How the round of sending under way treats small segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Round {
    /// By Nagle's rule.
    #[default]
    Plain,
    /// All leave (Linux TCP_NAGLE_PUSH).
    All,
    /// They wait: MSG_MORE.
    Corked,
    /// One packet leaves and no more (Linux `tcp_push_one`).
    One,
    /// The packet of `One` has left.
    Over,
}
