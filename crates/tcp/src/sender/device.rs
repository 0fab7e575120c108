//! Answers of the device below a sender to its packets.

/// Packets that the device accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Takes {
    /// Every packet.
    #[default]
    All,
    /// None, and the sender is told so.
    Nothing,
    /// Packets up to the room of its queue, at which the sender looks (see `small_queues.rs`).
    Some,
}
