//! TCP small queues: a sender leaves only so much in its own host's queue, a millisecond's worth at the pacing rate and two
//! packets at least, and goes on when the queue lets a packet go. (Linux `tcp_small_queue_check`, `tcp_wfree`,
//! `tcp_tsq_write`.) Where the host has no queue of its own, nothing ever waits, and none of this is asked.
//!
//! | variable | meaning |
//! |---|---|
//! | `charged` | memory of the packets that the queue holds, bytes (Linux `sk_wmem_alloc`) |
//! | `throttled` | the sender stopped because of it (TSQ_THROTTLED) |
//! | `paces` | the queue holds packets until they are due (SK_PACING_FQ): the sender stamps them and does not wait |
//!
//! Differs: a segment of which a copy still waits may be sent again (Linux `skb_still_in_host_queue` would not).

use ackclock_core::trace::CaState;
use ackclock_core::Time;

use super::device::Takes;
use super::intent::Next;
use super::pacing::Pacer;
use super::timers::TimerKind;
use super::Sender;

/// Linux `sk_pacing_shift`: 1/1024 s.
const PACING_SHIFT: u32 = 10;

/// The host's own queue, as the sender knows it.
#[derive(Clone, Debug)]
pub(super) struct HostQueue {
    charged: u64,
    throttled: bool,
    paces: bool,
    /// The host's queue is full.
    full: bool,
    /// Packets that found the queue full, since the last call of `take_refused`.
    refused: u32,
    /// Limit of charged memory (Linux `tcp_limit_output_bytes`); `None`: the sender ignores the queue.
    most: Option<u64>,
}

impl HostQueue {
    /// Whether a packet of `truesize` has to wait, for a sender with this pacing rate, bytes/s. `factor`:
    /// twice as much for a retransmission, as a power of 2.
    fn defers(&self, truesize: u64, rate: u64, factor: u32) -> bool {
        let Some(most) = self.most else { return false };
        let limit = (2 * truesize).max(rate >> PACING_SHIFT).min(most) << factor;
        self.charged + 1 > limit // Linux counts the socket itself as one byte
    }
}

impl Sender {
    /// Packets wait in a queue of the host, which may pace them. A sender without small queues notices neither their number
    /// nor a drop, as if the queue were in the next machine.
    pub fn queue_behind(&mut self, paces: bool) {
        let most = self.config.small_queues;
        if most.is_none() && !paces {
            return;
        }
        self.host_queue =
            Some(Box::new(HostQueue { charged: 0, throttled: false, paces, full: false, refused: 0, most }));
        self.set_device(Takes::Some);
        let config = self.config.pacing;
        let pacer = self.pacer.get_or_insert_with(|| Box::new(Pacer::new(config)));
        if paces {
            pacer.leave_to_the_host();
        }
    }

    /// Departure of the next packet, if the host's queue does the pacing.
    pub fn departure(&self, now: Time) -> Time {
        match (&self.host_queue, &self.pacer) {
            (Some(queue), Some(pacer)) if queue.paces => pacer.next.max(now),
            _ => now,
        }
    }

    /// Whether the host's queue has no room for the next packet.
    pub fn set_queue_full(&mut self, full: bool) {
        if let Some(queue) = &mut self.host_queue {
            queue.full = full && queue.most.is_some();
        }
    }

    /// Return the packets that found the queue full, since the last call.
    pub fn take_refused(&mut self) -> u32 {
        self.host_queue.as_mut().map_or(0, |queue| std::mem::take(&mut queue.refused))
    }

    /// A packet with `payload` bytes went into the host's queue.
    pub fn queued(&mut self, payload: u32) {
        let truesize = self.truesize(payload);
        if let Some(queue) = &mut self.host_queue {
            queue.charged += truesize;
        }
    }

    /// The packet left the host's queue. Returns whether the sender waited for that.
    pub fn left_queue(&mut self, payload: u32) -> bool {
        let truesize = self.truesize(payload);
        let Some(queue) = &mut self.host_queue else { return false };
        queue.charged -= truesize;
        let waited = std::mem::replace(&mut queue.throttled, false);
        if waited {
            self.push_on();
        }
        waited
    }

    /// The wait that delayed the sender has ended (Linux `tcp_tsq_write`).
    #[inline]
    pub(super) fn push_on(&mut self) {
        self.intent.push();
        if self.ca_state >= CaState::Recovery && self.board.lost_out > self.board.retrans_out {
            self.intent.set(Next::LostThenNew);
        }
    }

    /// Whether the device accepts a packet of new data; the host's queue may be too long, or full.
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

    /// Whether the device refuses everything now.
    pub(super) fn device_refuses(&self) -> bool {
        match self.patience.device {
            Takes::All => false,
            Takes::Nothing => true,
            Takes::Some => self.host_queue.as_ref().is_some_and(|queue| queue.full),
        }
    }

    /// Whether the retransmission of the segment at `start` waits for the host's queue.
    #[inline]
    pub(super) fn retransmission_waits(&mut self, start: u64, len: u32) -> bool {
        self.patience.device == Takes::Some
            && !self.within_packet(start)
            && (self.device_refuses() || self.queue_defers(len, 1))
    }

    #[cold]
    fn queue_defers(&mut self, len: u32, factor: u32) -> bool {
        let (truesize, rate, alone) = (self.truesize(len), self.pacing_rate().0, self.one_packet_out());
        let Some(queue) = &mut self.host_queue else { return false };
        queue.throttled |= !alone && queue.defers(truesize, rate, factor);
        queue.throttled
    }

    /// Whether at most one packet is unacknowledged: then the queue cannot be long (Linux
    /// `tcp_rtx_queue_empty_or_single_skb`).
    fn one_packet_out(&self) -> bool {
        match &self.queue {
            None => self.board.packets_out() <= 1,
            Some(queue) => queue.packets_out(self.snd_una) <= 1,
        }
    }

    /// Memory of a packet (Linux `truesize`); one without data takes next to nothing.
    fn truesize(&self, payload: u32) -> u64 {
        match payload {
            0 => 0,
            payload => (payload + self.config.buffer_overhead) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(charged: u64, most: Option<u64>) -> HostQueue {
        HostQueue { charged, throttled: false, paces: false, full: false, refused: 0, most }
    }

    /// Return the largest charge at which a packet of this size still leaves.
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
