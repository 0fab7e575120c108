//! Times at which each packet crossed a link, for a drawing of the path. A filmed link takes no shortcuts but carries
//! the same packets.

use ackclock_core::packet::{Ecn, Header};
use ackclock_core::{Packet, Time};

use super::Link;

/// Passage of one packet over a link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Leg {
    /// Arrival at the link's queue.
    pub arrived: Time,
    /// End of the packet's transmission; behind netem's limit, its start.
    pub leaves: Time,
    /// Arrival at the far end.
    pub delivery: Time,
    /// Flow to which the packet belongs.
    pub flow: u32,
    /// Connection to which the packet belongs.
    pub conn: u32,
    /// Whether the packet travels in the direction of the data.
    pub forward: bool,
    /// Segment or datagram number, starting at 1; 0 for a packet without data.
    pub seg_no: u32,
    /// Transmission number: 0 for the first.
    pub rexmit: u8,
    /// Acknowledgment number of a TCP packet without data; 0 otherwise.
    pub ack: u64,
    /// Whether the packet carries a CE mark.
    pub marked: bool,
}

/// Packets that crossed a link after a given time.
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
    /// Record the packets on the link from this time on. Must be called before the first packet arrives.
    pub fn film(&mut self, from: Time) {
        self.extras_or_none().film = Some(Film { from, legs: Vec::new() });
        self.ask_for_everything();
        self.ahead.takes = false;
    }

    /// Return the legs recorded since the last call, in order of transmission.
    pub fn take_legs(&mut self) -> Vec<Leg> {
        let film = self.extras_mut().and_then(|extras| extras.film.as_mut());
        film.map(|film| std::mem::take(&mut film.legs)).unwrap_or_default()
    }
}
