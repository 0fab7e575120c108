//! When each packet crossed a link, for whoever draws a path. A link that is filmed takes no short way, and carries what it would carry.

use ackclock_core::packet::{Ecn, Header};
use ackclock_core::{Packet, Time};

use super::Link;

/// A packet on a link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Leg {
    /// When it arrived at the link, where it waits.
    pub arrived: Time,
    /// When its last bit left for the far end; behind netem's limit, when the first one did.
    pub leaves: Time,
    /// When it reached the far end.
    pub delivery: Time,
    /// Its flow.
    pub flow: u32,
    /// Its connection.
    pub conn: u32,
    /// Whether it travels with the data.
    pub forward: bool,
    /// Of data, the number of its segment or datagram, from 1; of what has none, 0.
    pub seg_no: u32,
    /// Which transmission of it: 0 is the first.
    pub rexmit: u8,
    /// Of TCP without data, the acknowledgment number; else 0.
    pub ack: u64,
    /// Whether it is marked.
    pub marked: bool,
}

/// What a link has seen since a time.
#[derive(Clone)]
pub(super) struct Film {
    from: Time,
    pub(super) legs: Vec<Leg>,
}

impl Film {
    pub(super) fn note(&mut self, packet: &Packet, [arrived, leaves, delivery]: [Time; 3]) {
        if delivery < self.from {
            return;
        }
        let (seg_no, rexmit) = packet.header.ordinal();
        let ack = match &packet.header {
            Header::Tcp(segment) if segment.len == 0 => segment.ack,
            _ => 0,
        };
        let (flow, conn, forward, marked) = (packet.flow, packet.conn, packet.forward, packet.ecn == Ecn::Ce);
        self.legs.push(Leg { arrived, leaves, delivery, flow, conn, forward, seg_no, rexmit, ack, marked });
    }
}

impl Link {
    /// Note what is on the link from this time on; called before the first packet comes.
    pub fn film(&mut self, from: Time) {
        self.extras_or_none().film = Some(Film { from, legs: Vec::new() });
        self.ask_for_everything();
        self.ahead.takes = false;
    }

    /// What was noted since the last call, in the order in which packets left.
    pub fn take_legs(&mut self) -> Vec<Leg> {
        let film = self.extras_mut().and_then(|extras| extras.film.as_mut());
        film.map(|film| std::mem::take(&mut film.legs)).unwrap_or_default()
    }
}
