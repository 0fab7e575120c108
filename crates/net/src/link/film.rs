//! Times at which each packet crossed a link, for a drawing of the path. A filmed link takes no shortcuts,
//! and carries the same packets.

use ackclock_core::packet::{Ecn, Header};
use ackclock_core::{Packet, Time};

use super::Link;

/// A packet on a link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Leg {
    /// Arrival at the link, where it waits.
    pub arrived: Time,
    /// Departure of its last bit for the far end; behind netem's limit, of the first one.
    pub leaves: Time,
    /// Arrival at the far end.
    pub delivery: Time,
    /// Flow of the packet.
    pub flow: u32,
    /// Connection of the packet.
    pub conn: u32,
    /// Whether it travels with the data.
    pub forward: bool,
    /// Number of the segment or datagram, from 1; 0 for a packet without data.
    pub seg_no: u32,
    /// Number of its transmission: 0 is the first.
    pub rexmit: u8,
    /// Acknowledgment number of a TCP packet without data; else 0.
    pub ack: u64,
    /// Whether it is marked.
    pub marked: bool,
}

/// Packets that crossed a link since a time.
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
    /// Record the packets on the link from this time on; called before the first packet arrives.
    pub fn film(&mut self, from: Time) {
        self.extras_or_none().film = Some(Film { from, legs: Vec::new() });
        self.ask_for_everything();
        self.ahead.takes = false;
    }

    /// Legs noted since the last call, in the order in which packets left.
    pub fn take_legs(&mut self) -> Vec<Leg> {
        let film = self.extras_mut().and_then(|extras| extras.film.as_mut());
        film.map(|film| std::mem::take(&mut film.legs)).unwrap_or_default()
    }
}
