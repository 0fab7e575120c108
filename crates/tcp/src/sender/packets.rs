//! Packets of several segments (TSO): how many segments one packet for the device holds, and its PSH. Only for those
//! who look at packets: a simulation sends segments. (Linux `tcp_write_xmit`, `tcp_tso_autosize`,
//! `tcp_mss_split_point`.)

use super::Sender;
use crate::scoreboard::{FIN, LOST, RETRANS, SACKED};

/// Linux `sk_gso_max_size`, bytes: 64 KiB less room for headers.
const MAX_PACKET: u64 = 65_536 - 321;
/// Linux `tcp_tso_rtt_log`: a quarter of a millisecond of RTT halves what a packet may hold beyond one millisecond's worth.
const RTT_LOG: u32 = 9;

impl Sender {
    /// Whether the segment sent last is continued by the next one, in one packet.
    pub fn continues(&self) -> bool {
        self.queue.as_ref().is_some_and(|q| q.segment_end < q.packet_end)
    }

    /// A segment of `len` new bytes is about to leave: it may begin a packet. (Linux marks packets of more than one
    /// segment with PSH, so that the receiver's GRO passes them on: `__tcp_transmit_skb`.)
    pub(super) fn begin_packet(&mut self, len: u32, probe: bool) {
        let start = self.snd_nxt;
        if self.queue.as_ref().is_none_or(|q| q.continues_at(start)) {
            return;
        }
        let one = start + len as u64;
        let end = if probe { one } else { self.packet_end(start).max(one) };
        let (una, smss) = (self.snd_una, self.smss as u64);
        let Some(queue) = &mut self.queue else { return };
        queue.sent_up_to(end, una);
        (queue.packet_end, queue.packet_pushes) = (end, end - start > smss);
    }

    /// Segment `n` is about to be sent again, `alone` or with what follows it: what left as one packet and was lost
    /// leaves as one packet again (Linux `tcp_xmit_retransmit_queue`, `__tcp_retransmit_skb`).
    pub(super) fn begin_retransmission(&mut self, n: u64, alone: bool) {
        let start = self.board.get(n).start();
        let Some(queue) = self.queue.as_ref().filter(|q| !q.continues_at(start)) else { return };
        let together = queue.sent_in(start);
        let quota = self.window.cwnd.saturating_sub(self.board.pipe()).max(1) as u64;
        let most = if alone { 1 } else { quota.min(self.tso_segments()) };
        let lost = |n: u64| self.board.get(n).flags & (LOST | RETRANS | SACKED) == LOST;
        let last = (n + 1..self.board.next.min(n + most))
            .take_while(|&n| lost(n) && self.board.get(n).end <= together)
            .last()
            .unwrap_or(n);
        let end = self.board.get(last).end - self.board.get(last).is(FIN) as u64;
        let queue = self.queue.as_mut().expect("invariant: seen above");
        (queue.packet_end, queue.packet_pushes) = (end, last > n);
    }

    fn packet_end(&self, start: u64) -> u64 {
        let buffer = self.queue.as_ref().and_then(|q| q.buffer_at(start));
        let Some((end, last)) = buffer else { return start };
        let smss = self.smss as u64;
        let cwnd = self.window.cwnd;
        // At least two packets in flight.
        let quota = (cwnd / 2).max(1).min(cwnd.saturating_sub(self.board.pipe()));
        let most = (quota as u64).min(self.tso_segments()) * smss;
        let window = (self.snd_una + self.snd_wnd).saturating_sub(start);
        let needed = (end - start).min(window);
        if most <= needed || (most <= window && !last) {
            return start + most.min(end - start);
        }
        let partial = needed % smss;
        if partial != 0 && !self.fin_wanted && self.waits_for_more(self.board.packets_out()) {
            return start + needed - partial;
        }
        start + needed
    }

    /// Linux `tcp_tso_autosize`: what a millisecond takes at the pacing rate, more on short paths, at least
    /// `tcp_min_tso_segs`.
    fn tso_segments(&self) -> u64 {
        let srtt = self.rtt.srtt().as_us() as u128;
        let percent = if self.window.cwnd < self.window.ssthresh / 2 { 200 } else { 120 };
        let out = self.window.cwnd.max(self.board.packets_out()) as u128;
        let rate = match srtt {
            0 => u64::MAX as u128,
            srtt => self.smss as u128 * out * percent * 10_000 / srtt,
        };
        let halvings = self.rtt.min_rtt().as_us() >> RTT_LOG;
        let near = if halvings < 32 { MAX_PACKET >> halvings } else { 0 };
        let bytes = (rate >> 10) + near as u128;
        (bytes.min(MAX_PACKET as u128) as u64 / self.smss as u64).max(self.config.min_tso_segments as u64)
    }
}
