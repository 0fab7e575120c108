//! TCP small queues: a sender keeps only a limited amount of data in the queue of its own host, a millisecond's
//! worth at the pacing rate and at least two packets, and resumes when the queue releases a packet. (Linux
//! `tcp_small_queue_check`, `tcp_wfree`, `tcp_tsq_write`.) If the host has no queue, nothing is limited.
//!
//! | variable | meaning |
//! |---|---|
//! | `charged` | memory of the packets in the queue, bytes (Linux `sk_wmem_alloc`) |
//! | `throttled` | the sender has stopped because of the limit (TSQ_THROTTLED) |
//! | `paces` | the queue delays packets until their departure times (SK_PACING_FQ): the sender stamps them and does not wait |
//! | `held` | data of the packets in the queue: it is not retransmitted before it has left (`skb_still_in_host_queue`) |

use std::collections::VecDeque;

use ackclock_core::trace::CaState;
use ackclock_core::Time;

use super::device::Takes;
use super::intent::Next;
use super::pacing::Pacer;
use super::timers::TimerKind;
use super::Sender;

/// Linux `sk_pacing_shift`: the limit is 1/1024 s of the pacing rate.
const PACING_SHIFT: u32 = 10;

/// Queue of the host's device, as seen by the sender.
#[derive(Clone, Debug)]
pub(super) struct HostQueue {
    charged: u64,
    /// Offsets of the queued packets' data: start and end.
    held: VecDeque<(u64, u64)>,
    throttled: bool,
    paces: bool,
    /// The queue is full.
    full: bool,
    /// Packets refused by the full queue since the last call of `take_refused`.
    refused: u32,
    /// Limit on `charged`, bytes (Linux `tcp_limit_output_bytes`); `None`: the sender ignores the length of the queue.
    most: Option<u64>,
}

impl HostQueue {
    /// Whether a packet of `truesize` bytes has to wait at pacing rate `rate`, bytes/s. The limit is
    /// multiplied by 2 to the power of `factor`, which is 1 for a retransmission.
    fn defers(&self, truesize: u64, rate: u64, factor: u32) -> bool {
        let Some(most) = self.most else { return false };
        let limit = (2 * truesize).max(rate >> PACING_SHIFT).min(most) << factor;
        self.charged + 1 > limit // Linux counts the socket itself as one byte
    }
}

impl Sender {
    /// Put packets into a queue of the host, which may pace them. A sender without small queues notices
    /// neither its length nor a drop, as if the queue belonged to the next machine.
    pub fn queue_behind(&mut self, paces: bool) {
        let most = self.config.sending.small_queues;
        if most.is_none() && !paces {
            return;
        }
        let queue = HostQueue {
            charged: 0,
            held: VecDeque::new(),
            throttled: false,
            paces,
            full: false,
            refused: 0,
            most,
        };
        self.host_queue = Some(Box::new(queue));
        self.set_device(Takes::Some);
        let config = self.config.sending.pacing;
        let pacer = self.pacer.get_or_insert_with(|| Box::new(Pacer::new(config)));
        if paces {
            pacer.leave_to_the_host();
        }
    }

    /// Departure time of the next packet: `now` unless the host's queue does the pacing.
    pub fn departure(&self, now: Time) -> Time {
        match (&self.host_queue, &self.pacer) {
            (Some(queue), Some(pacer)) if queue.paces => pacer.next.max(now),
            _ => now,
        }
    }

    /// Set whether the host's queue is full.
    pub fn set_queue_full(&mut self, full: bool) {
        if let Some(queue) = &mut self.host_queue {
            queue.full = full && queue.most.is_some();
        }
    }

    /// Return the number of packets refused by the full queue since the last call.
    pub fn take_refused(&mut self) -> u32 {
        self.host_queue.as_mut().map_or(0, |queue| std::mem::take(&mut queue.refused))
    }

    /// Charge a packet carrying `payload` bytes from offset `start` that has entered the host's queue.
    pub fn queued(&mut self, start: u64, payload: u32) {
        let truesize = self.truesize(payload);
        if let Some(queue) = &mut self.host_queue {
            queue.charged += truesize;
            if payload > 0 {
                queue.held.push_back((start, start + payload as u64));
            }
        }
    }

    /// Release the charge of a packet that has left the host's queue. Returns whether the sender was throttled.
    pub fn left_queue(&mut self, start: u64, payload: u32) -> bool {
        let truesize = self.truesize(payload);
        let Some(queue) = &mut self.host_queue else { return false };
        queue.charged -= truesize;
        if let Some(at) = queue.held.iter().position(|held| payload > 0 && held.0 == start) {
            queue.held.remove(at);
        }
        let waited = std::mem::replace(&mut queue.throttled, false);
        if waited {
            self.push_on();
        }
        waited
    }

    /// Resume sending after a wait for the host or the pacing clock (Linux `tcp_tsq_write`).
    #[inline]
    pub(super) fn push_on(&mut self) {
        self.intent.push();
        if self.ca_state >= CaState::Recovery && self.board.lost_out > self.board.retrans_out {
            self.intent.set(Next::LostThenNew);
        }
    }

    /// Whether the device accepts a packet of new data: the host's queue is neither too long nor full.
    #[cold]
    pub(super) fn device_takes(&mut self, now: Time, len: u32) -> bool {
        if self.patience.device == Takes::Some && self.queue_defers(len, 0) {
            return false;
        }
        if self.device_refuses() {
            if let Some(queue) = &mut self.host_queue {
                queue.refused += 1;
            }
            self.on_refusal(now, TimerKind::None);
            return false;
        }
        true
    }

    /// Whether the device refuses every packet now.
    pub(super) fn device_refuses(&self) -> bool {
        match self.patience.device {
            Takes::All => false,
            Takes::Nothing => true,
            Takes::Some => self.host_queue.as_ref().is_some_and(|queue| queue.full),
        }
    }

    /// Whether the retransmission of the segment at `start` has to wait for the host's queue.
    #[inline]
    pub(super) fn retransmission_waits(&mut self, start: u64, len: u32) -> bool {
        self.patience.device == Takes::Some
            && !self.within_packet(start)
            && (self.device_refuses() || self.queue_defers(len, 1) || self.still_queued(start))
    }

    /// Whether the byte at `start` still waits in the host's queue, so that it is not sent again (Linux
    /// `skb_still_in_host_queue`). The sender goes on when the queue releases a packet.
    pub(super) fn still_queued(&mut self, start: u64) -> bool {
        let Some(queue) = self.host_queue.as_mut().filter(|queue| queue.most.is_some()) else { return false };
        let waits = queue.held.iter().any(|held| (held.0..held.1).contains(&start));
        queue.throttled |= waits;
        waits
    }

    #[cold]
    fn queue_defers(&mut self, len: u32, factor: u32) -> bool {
        let (truesize, rate, alone) = (self.truesize(len), self.pacing_rate().0, self.one_packet_out());
        let Some(queue) = &mut self.host_queue else { return false };
        queue.throttled |= !alone && queue.defers(truesize, rate, factor);
        queue.throttled
    }

    /// Whether at most one packet is unacknowledged, so that the queue cannot be long (Linux
    /// `tcp_rtx_queue_empty_or_single_skb`).
    fn one_packet_out(&self) -> bool {
        match &self.queue {
            None => self.board.packets_out() <= 1,
            Some(queue) => queue.packets_out(self.snd_una) <= 1,
        }
    }

    /// Memory used by a packet, bytes (Linux `truesize`); a packet without data counts as zero.
    fn truesize(&self, payload: u32) -> u64 {
        match payload {
            0 => 0,
            payload => (payload + self.config.sending.buffer_overhead) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(charged: u64, most: Option<u64>) -> HostQueue {
        HostQueue {
            charged,
            held: VecDeque::new(),
            throttled: false,
            paces: false,
            full: false,
            refused: 0,
            most,
        }
    }

    /// Return the largest charge at which a packet of this size may still be sent.
    fn greatest(truesize: u64, rate: u64, most: u64, factor: u32) -> u64 {
        (0..1 << 20)
            .take_while(|&charged| !queue(charged, Some(most)).defers(truesize, rate, factor))
            .last()
            .unwrap()
    }

    #[test]
    fn a_millisecond_or_two_packets_may_wait_tcp_small_queue_check() {
        assert_eq!(greatest(2280, 1_000_000, 4 << 20, 0), 4559, "two packets, slow");
        assert_eq!(greatest(2280, 15_000_000, 4 << 20, 0), 14_647, "15 MB/s in 1/1024 s");
        assert_eq!(greatest(2280, 15_000_000, 10_000, 0), 9_999, "tcp_limit_output_bytes");
        assert_eq!(greatest(2280, 15_000_000, 10_000, 1), 19_999, "a retransmission");
        assert_eq!(greatest(2280, u64::MAX, 100_000, 0), 99_999, "no rate is known");
        assert!(!queue(1 << 40, None).defers(2280, 1, 0), "the sender does not look at the queue");
    }
}
