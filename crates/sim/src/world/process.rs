//! An end as a process of its host: its work, and the events for which it waits.

use std::collections::VecDeque;

use ackclock_core::{Packet, Time};

/// An end on its host.
#[derive(Clone)]
pub(super) struct Process {
    pub host: u32,
    /// Packets that arrived and have not been processed.
    pub inbox: VecDeque<Packet>,
    /// End of its present work.
    pub free_at: Time,
    pub state: Blocked,
    /// Whether there may be something to send.
    pub sends: bool,
    /// Whether its last work was to send a packet, which took time.
    pub sent: bool,
    /// Whether the application has to be notified when everything is sent.
    pub tell: bool,
    /// Whether it waits busily.
    pub busy: bool,
}

/// Reason why a process with work waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Blocked {
    /// Nothing.
    No,
    /// A time.
    Until(Time),
    /// Waits for its turn.
    InTurn,
}

impl Process {
    /// Return a process without work.
    pub fn new(host: u32, busy: bool) -> Process {
        Process {
            host,
            inbox: VecDeque::new(),
            free_at: Time::ZERO,
            state: Blocked::No,
            sends: false,
            sent: false,
            tell: false,
            busy,
        }
    }

    /// Time of its next check, if its transport has this deadline.
    #[inline]
    pub fn deadline(&self, transport: Time) -> Time {
        match self.state {
            Blocked::No => transport.max(self.free_at),
            Blocked::Until(t) => t,
            Blocked::InTurn => Time::NEVER,
        }
    }
}
