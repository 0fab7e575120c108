//! Counters of one endpoint that only TCP_INFO reads: segments and bytes in both directions, and the times of
//! the latest ones. Kept on request; simulations have their own tables. Names are those of `tcp_info` (Linux
//! `tcp_get_info`).

use ackclock_core::{Flags, Segment, Time};

/// Counters and times for TCP_INFO.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the fields of Linux's `struct tcp_info`, by name")]
pub struct Ledger {
    pub segs_in: u64,
    pub segs_out: u64,
    pub data_segs_in: u64,
    pub data_segs_out: u64,
    /// Payload bytes sent, including retransmissions.
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
    /// Segments that arrived out of order.
    pub rcv_ooopack: u64,
    /// Times of the last data sent, data received and ACK received; initially the end of the handshake.
    pub last_data_sent: Time,
    pub last_data_recv: Time,
    pub last_ack_recv: Time,
}

impl Ledger {
    /// Set all times to the end of the handshake.
    pub fn begin(&mut self, now: Time) {
        (self.last_data_sent, self.last_data_recv, self.last_ack_recv) = (now, now, now);
    }

    /// Count an arriving segment; `rcv_nxt` is the next expected offset.
    pub fn received(&mut self, now: Time, seg: &Segment, rcv_nxt: u64) {
        self.segs_in += 1;
        if seg.flags.has(Flags::ACK) {
            self.last_ack_recv = now;
        }
        if seg.len > 0 {
            self.data_segs_in += 1;
            if seg.seq <= rcv_nxt {
                self.last_data_recv = now; // out-of-order data does not count (Linux `tcp_event_data_recv`)
            }
            self.rcv_ooopack += (seg.seq > rcv_nxt) as u64;
        }
    }

    /// Count a sent segment.
    pub fn sent(&mut self, now: Time, seg: &Segment) {
        // Linux sends a SYN-ACK before there is a socket that could count it.
        self.segs_out += !(seg.flags.has(Flags::SYN) && seg.flags.has(Flags::ACK)) as u64;
        if seg.len > 0 {
            self.data_segs_out += 1;
            self.bytes_sent += seg.len as u64;
            self.last_data_sent = now;
            if seg.rexmit > 0 {
                self.bytes_retrans += seg.len as u64;
            }
        }
    }
}
