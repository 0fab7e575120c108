//! Responses of the device below a sender to its packets.

/// Packets that the device accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Takes {
    /// Every packet.
    #[default]
    All,
    /// No packet. The sender is notified of each refusal.
    Nothing,
    /// Packets as long as its queue has room, which the sender checks (see `small_queues.rs`).
    Some,
}
