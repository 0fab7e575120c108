//! What the device below a sender does with its packets.

/// What the device takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Takes {
    /// Whatever comes.
    #[default]
    All,
    /// Nothing, and it says so.
    Nothing,
    /// It has a queue that the sender looks at: see `small_queues.rs`.
    Some,
}
