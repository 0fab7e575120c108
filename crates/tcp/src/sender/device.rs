//! Answers of the device below a sender to its packets.

/// Packets that the device accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Takes {
    /// Every packet.
    #[default]
    All,
    /// No packet, and the sender is notified.
    Nothing,
    /// Packets up to the room of its queue, which the sender checks (see `small_queues.rs`).
    Some,
}
