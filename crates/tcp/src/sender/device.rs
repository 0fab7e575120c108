//! How the device below a sender responds to its packets.

/// Which packets the device accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Takes {
    /// Every packet.
    #[default]
    All,
    /// No packet. The sender is notified of each refusal.
    Nothing,
    /// Any packet while its queue has room, which the sender checks (see `small_queues.rs`).
    Some,
}
