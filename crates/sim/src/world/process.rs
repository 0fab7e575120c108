//! An end as a process of its host: what it has to do, and what it waits for.

use std::collections::VecDeque;

use ackclock_core::{Packet, Time};

/// An end on its host.
#[derive(Clone)]
pub(super) struct Process {
    pub host: u32,
    /// Packets that came and have not been looked at.
    pub inbox: VecDeque<Packet>,
    /// End of its present work.
    pub free_at: Time,
    pub state: Blocked,
    /// There may be something to send.
    pub sends: bool,
    /// Whether its last work was to send a packet, which took time.
    pub sent: bool,
    /// The application is to be told when all is sent.
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
    /// With nothing to do.
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

    /// When it is to be looked at, if its transport has this deadline.
    #[inline]
    pub fn deadline(&self, transport: Time) -> Time {
        match self.state {
            Blocked::No => transport.max(self.free_at),
            Blocked::Until(t) => t,
            Blocked::InTurn => Time::NEVER,
        }
    }
}
