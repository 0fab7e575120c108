//! Multi-segment packets (TSO): segments per packet handed to the device, TSO deferral, and PSH. Used only if
//! the scenario enables them; otherwise each segment is sent on its own. (Linux `tcp_write_xmit`,
//! `tcp_tso_autosize`, `tcp_mss_split_point`, `tcp_tso_should_defer`.)

use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};

use super::device::Takes;
use super::round::Round;
use super::Sender;
use crate::config::Tso;
use crate::scoreboard::{FIN, LOST, RETRANS, SACKED};

/// Linux `sk_gso_max_size`, bytes: 64 KiB minus the headers.
const MAX_PACKET: u64 = 65_536 - 321;
/// Linux `tcp_tso_rtt_log`: every 512 us of minimum RTT halve the bytes that a packet may carry beyond one millisecond's worth.
const RTT_LOG: u32 = 9;
/// Longest expected wait for an ACK that defers a packet. A sender that has been idle for this long does not defer either.
const DEFER_MOST: Span = Span::from_ms(1);
/// Linux `tcp_max_tso_deferred_mss`: a larger window, in segments, is used at once if `tcp_tso_win_divisor` is 0.
const DEFERRED_SEGMENTS: u64 = 3;

impl Sender {
    /// Whether the next segment belongs to the same packet as the last one sent.
    pub fn continues(&self) -> bool {
        self.queue.as_ref().is_some_and(|q| q.segment_end < q.packet_end)
    }

    /// Whether the segment at `start` continues the packet of the previous one, which has passed all checks.
    #[inline]
    pub(super) fn within_packet(&self, start: u64) -> bool {
        self.queue.as_ref().is_some_and(|q| q.continues_at(start))
    }

    /// Bytes of new data to send next: the next segment of a started packet, or the first one of a packet that may be sent now.
    /// (Linux marks packets of more than one segment with PSH, so that the receiver's GRO passes them on: `__tcp_transmit_skb`.)
    pub(super) fn next_of_packet(&mut self, now: Time, probe: bool) -> Option<u32> {
        let (start, smss) = (self.snd_nxt, self.smss as u64);
        let most = self.quota().min(self.tso_segments());
        let queue = self.queue.as_mut()?;
        if queue.continues_at(start) {
            return Some((queue.packet_end - start).min(smss) as u32);
        }
        // A FIN without data is a separate packet.
        let (end, last, record) = queue.buffer_at(start, most * smss).unwrap_or((start, true, false));
        let round = queue.round;
        if round == Round::Over {
            return None;
        }
        let room = (self.snd_una + self.snd_wnd).saturating_sub(start);
        let ready = end - start;
        let ends = self.stream.is_closed() && end == self.stream.end();
        if ready.min(smss) + (ends && ready <= smss) as u64 > room {
            self.queue.as_mut()?.rwnd_limited = true;
            return None;
        }
        let small_waits = !probe // Nagle's algorithm does not apply to a probe (Linux `tcp_send_loss_probe`)
            && match round {
                Round::Plain => self.waits_for_more(self.board.packets_out()),
                Round::Corked => true,
                _ => false,
            };
        if ready < smss && last && !ends && small_waits {
            return None;
        }
        let alone = probe || round == Round::One;
        if ready > smss && !alone && self.defers(now, ready, last, record || ends) {
            return None;
        }
        let length = if probe || ready <= smss {
            ready.min(smss)
        } else {
            split(most * smss, ready, room, smss, last, small_waits)
        };
        if self.patience.device != Takes::All && !self.device_takes(now, length as u32) {
            return None;
        }
        let una = self.snd_una;
        let queue = self.queue.as_mut()?;
        queue.begin(start, start + length, length > smss);
        if round == Round::One {
            queue.round = Round::Over;
        }
        queue.sent_up_to(now, start + length, una);
        Some(length.min(smss) as u32)
    }

    /// Prepare segment `n` for retransmission, `alone` or with the segments after it. Segments that were sent
    /// as one packet and lost are retransmitted as one packet (Linux `tcp_xmit_retransmit_queue`,
    /// `__tcp_retransmit_skb`). Returns the number to retransmit, which differs from `n` after a split.
    pub(super) fn begin_retransmission(&mut self, n: u64, alone: bool) -> u64 {
        let n = if self.mtu_search.is_some() { self.end_mtu_probe(n) } else { n };
        self.trim(n);
        let start = self.board.get(n).start();
        let Some(queue) = self.queue.as_ref().filter(|q| !q.continues_at(start)) else { return n };
        let together = queue.sent_in(start);
        let quota = self.window.cwnd.saturating_sub(self.board.pipe()).max(1) as u64;
        let most = if alone { 1 } else { quota.min(self.tso_segments()) };
        let lost = |n: u64| self.board.get(n).flags & (LOST | RETRANS | SACKED) == LOST;
        let last = (n + 1..self.board.next.min(n + most))
            .take_while(|&n| lost(n) && self.board.get(n).end <= together)
            .take_while(|&n| self.in_window(self.board.get(n).start()))
            .last()
            .unwrap_or(n);
        let end = self.board.get(last).end - self.board.get(last).is(FIN) as u64;
        let queue = self.queue.as_mut().expect("invariant: seen above");
        queue.begin(start, end, last > n);
        if start > self.snd_una {
            queue.cut_sent(start);
        }
        queue.cut_sent(end);
        n
    }

    /// Process an ACK that ends within the head. If the head lies in a multi-segment packet, the acknowledged
    /// part is cut off at once; a segment alone in its packet stays whole until it is retransmitted (Linux
    /// `tcp_tso_acked`, `__tcp_retransmit_skb`). `popped`: the ACK also covers segments before the head.
    #[cold]
    pub(super) fn on_ack_within(&mut self, popped: bool) {
        let (Some(queue), Some(head)) = (&self.queue, self.board.head()) else { return };
        let packet = queue.sent_in(head.start());
        if packet > head.end || (popped && queue.sent_in(head.start() - 1) == packet) {
            self.board.trim(self.board.first, self.snd_una);
        }
    }

    /// Cut off the acknowledged part of segment `n`, so that it is not retransmitted.
    pub(super) fn trim(&mut self, n: u64) {
        if self.board.packets_out() > 0 && self.board.get(n).start() < self.snd_una {
            self.board.trim(n, self.snd_una);
        }
    }

    fn tso(&self) -> Option<Tso> {
        self.config.sending.buffers.and_then(|buffers| buffers.tso)
    }

    /// Number of segments that cwnd allows for one packet, so that at least two packets are in flight (Linux
    /// `tcp_cwnd_test`).
    fn quota(&self) -> u64 {
        let cwnd = self.window.cwnd;
        (cwnd / 2).max(1).min(cwnd.saturating_sub(self.board.pipe())).max(1) as u64
    }

    /// Number of segments of one packet (Linux `tcp_tso_autosize`): a millisecond's worth at the pacing rate,
    /// more on short paths, and at least `tcp_min_tso_segs` or what the controller requests at this rate.
    fn tso_segments(&self) -> u64 {
        let Some(tso) = self.tso() else { return 1 };
        let halvings = self.rtt.min_rtt().as_us() >> RTT_LOG;
        let near = if halvings < 32 { MAX_PACKET >> halvings } else { 0 };
        let bytes = (self.pacing_rate().0 >> 10).saturating_add(near).min(MAX_PACKET);
        let least = match self.config.sending.controller.needs().slow_packets {
            0 => tso.min_segments,
            rate => 1 + (self.pacing_rate().0 >= rate as u64) as u32,
        };
        (bytes / self.smss as u64).max(least as u64)
    }

    /// Whether a packet of `ready` bytes should wait for an ACK that will soon allow a larger one. `last`:
    /// no data is queued after it; `complete`: it cannot grow.
    fn defers(&mut self, now: Time, ready: u64, last: bool, complete: bool) -> bool {
        // Linux requires more than 1 ms. On a real host the ACK expected after exactly 1 ms is later by the
        // host's processing time.
        let idle = self.pacer.as_ref().is_none_or(|p| p.next + DEFER_MOST <= now);
        let (Some(tso), Some(head)) = (self.tso(), self.board.head()) else { return false };
        if self.ca_state >= CaState::Recovery || idle {
            return false;
        }
        let smss = self.smss as u64;
        let send_win = (self.snd_una + self.snd_wnd).saturating_sub(self.snd_nxt);
        let cong_win = self.window.cwnd.saturating_sub(self.board.pipe()) as u64 * smss;
        let limit = send_win.min(cong_win);
        let enough = match tso.win_divisor as u64 {
            0 => limit > DEFERRED_SEGMENTS * smss,
            divisor => limit >= self.snd_wnd.min(self.window.cwnd as u64 * smss) / divisor,
        };
        if limit >= self.tso_segments() * smss || (!last && limit >= ready) || enough {
            return false;
        }
        let srtt = self.rtt.exact_srtt();
        let left = self.queue.as_ref().and_then(|queue| queue.left_at(self.snd_una));
        if left.unwrap_or(head.xmit) + srtt > now + DEFER_MOST.min(srtt / 2) {
            return false; // the ACK is not expected soon enough
        }
        let limited = limit <= ready;
        if let (true, Some(queue)) = (limited, &mut self.queue) {
            match cong_win < send_win {
                true => queue.cwnd_limited = true,
                false => queue.rwnd_limited = true,
            }
        }
        limited || !complete
    }
}

/// Size of a packet of at most `most` bytes, if `ready` bytes are queued and the receiver's window allows `room`. A partial segment at the end
/// is left out if small segments wait, also in the middle of the queue where the window ends, and before a FIN (Linux `tcp_mss_split_point`).
fn split(most: u64, ready: u64, room: u64, smss: u64, last: bool, small_waits: bool) -> u64 {
    let needed = ready.min(room);
    if most <= needed || (most <= room && !last) {
        return most.min(ready);
    }
    match needed % smss {
        partial if partial > 0 && small_waits => needed - partial,
        _ => needed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_stays_behind_while_a_small_segment_is_out_wherever_it_lies() {
        for last in [false, true] {
            let cut = |ready, room, small_waits| split(8_000, ready, room, 1_000, last, small_waits);
            assert_eq!((cut(20_000, 3_200, true), cut(20_000, 3_200, false)), (3_000, 3_200));
            assert_eq!((cut(20_000, 9_200, true), cut(20_000, 9_200, false)), (8_000, 8_000));
        }
        assert_eq!(split(8_000, 2_200, 9_000, 1_000, true, true), 2_000);
        assert_eq!(split(8_000, 2_200, 9_000, 1_000, false, true), 2_200, "it gets no more");
    }
}
