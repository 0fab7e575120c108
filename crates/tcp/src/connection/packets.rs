//! Multi-segment packets (TSO).

use ackclock_core::{Segment, Time};

use super::Connection;
use crate::sender::Sender;

impl Connection {
    /// Let the NIC split packets, so that segments are sent one by one.
    pub fn cut_packets(&mut self) {
        self.cuts = true;
    }

    /// Append to `packet`, the last segment polled, the segments sent in the same packet (TSO). Returns the
    /// number of appended segments.
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

    /// Whether the last polled segment and the next one belong to one packet for the device (TSO). Only for
    /// data sent from buffers.
    pub fn continues(&self) -> bool {
        self.sender.now().is_some_and(Sender::continues)
    }
}
