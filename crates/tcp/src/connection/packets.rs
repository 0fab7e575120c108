//! Packets of several segments (TSO).

use ackclock_core::{Segment, Time};

use super::Connection;
use crate::sender::Sender;

impl Connection {
    /// Packets of several segments leave as segments: the card cuts them up.
    pub fn cut_packets(&mut self) {
        self.cuts = true;
    }

    /// With TSO several segments leave as one packet: add to `packet`, the last one polled, the segments that
    /// belong to it. Returns their number.
    #[inline]
    pub fn complete_packet(&mut self, now: Time, packet: &mut Segment) -> u16 {
        match self.continues() {
            false => 0,
            true => self.append_segments(now, packet),
        }
    }

    #[cold]
    fn append_segments(&mut self, now: Time, packet: &mut Segment) -> u16 {
        let mut more = 0;
        while !self.cuts && self.continues() {
            let Some(next) = self.poll_transmit(now) else { break };
            debug_assert_eq!(
                next.seq,
                packet.seq + packet.len as u64,
                "{packet:?} {next:?} {:?}",
                self.info()
            );
            packet.len += next.len;
            packet.flags |= next.flags;
            more += 1;
        }
        more
    }

    /// Whether the last polled segment and the next one belong to one packet for the device (TSO); only known
    /// for data sent from buffers.
    pub fn continues(&self) -> bool {
        self.sender.now().is_some_and(Sender::continues)
    }
}
