//! An end as a process of its host: its work, and the events that it waits for.

use std::collections::VecDeque;

use ackclock_core::{Packet, Time};

/// Process that runs an end on its host.
#[derive(Clone)]
pub(super) struct Process {
    pub host: u32,
    /// Packets that have arrived and are not processed yet.
    pub inbox: VecDeque<Packet>,
    /// Time at which the current work ends.
    pub free_at: Time,
    pub state: Blocked,
    /// Whether there may be packets to send.
    pub sends: bool,
    /// Whether the last step sent a packet that cost CPU time.
    pub sent: bool,
    /// Whether the application must be notified once everything has been sent.
    pub tell: bool,
    /// Whether the process busy-waits.
    pub busy: bool,
}

/// Reason why a process is blocked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Blocked {
    /// Not blocked.
    No,
    /// Blocked until this time.
    Until(Time),
    /// Blocked until the host gives it a core.
    InTurn,
}

impl Process {
    /// Return a process without pending work.
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

    /// Time of the next check, given the deadline of the transport.
    #[inline]
    pub fn deadline(&self, transport: Time) -> Time {
        match self.state {
            Blocked::No => transport.max(self.free_at),
            Blocked::Until(t) => t,
            Blocked::InTurn => Time::NEVER,
        }
    }
}
