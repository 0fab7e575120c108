//! An application that reads slowly, by explicit calls at its own pace, and the memory that its socket reserves.

use ackclock_core::{Segment, Span, Time};

use super::Receiver;

/// Habit of an application that reads slowly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadingPace {
    /// Largest number of bytes in one read.
    pub most: u64,
    /// Time from the handshake to the first read.
    pub wait: Span,
    /// Time after each read.
    pub pause: Span,
    /// Time that each byte takes, as bytes per second; `None`: no time.
    pub rate: Option<u64>,
}

/// Unit in which a socket reserves memory, bytes (Linux PAGE_SIZE).
const PAGE: u64 = 4096;

impl ReadingPace {
    /// Time from a read of `bytes` to the next read.
    pub fn after(&self, bytes: u64) -> Span {
        let by_rate = |rate: u64| Span((bytes as u128 * 1_000_000_000 / rate.max(1) as u128) as u64);
        self.pause + self.rate.map_or(Span::ZERO, by_rate)
    }
}

/// An application that reads slowly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slow {
    pace: ReadingPace,
    /// Time of its next read.
    next: Time,
    /// Memory that the socket has reserved in pages and not yet used, bytes (Linux `sk_forward_alloc`).
    reserved: u64,
    /// A segment in order for which memory is reserved is taken without a look at the buffer's limit (Linux
    /// `pred_flags`).
    predicts: bool,
    /// Whether it has read the end of the stream.
    over: bool,
}

impl Slow {
    /// Give back whole pages of freed memory (Linux `sk_mem_reclaim`). A closed window ends the prediction.
    pub fn free(&mut self, bytes: u64, open: bool) {
        self.reserved = (self.reserved + bytes) % PAGE;
        self.predicts &= open;
    }
}

impl Receiver {
    /// Let the application read slowly from now on.
    pub(crate) fn read_slowly(&mut self, pace: ReadingPace) {
        (self.reader.explicit, self.is_plain) = (true, false);
        let slow = Slow { pace, next: Time::ZERO, reserved: 0, predicts: false, over: false };
        self.reader.waiting.get_or_insert_default().slow = Some(slow);
    }

    /// Whether a segment is taken whatever the buffer's limit is, because memory is reserved for it (Linux
    /// `tcp_rcv_established`).
    pub(super) fn has_reserved(&self, seg: &Segment) -> bool {
        let slow = self.reader.waiting.as_ref().and_then(|waiting| waiting.slow);
        let enough =
            slow.is_some_and(|slow| slow.predicts && self.window.packet_memory(seg.len) <= slow.reserved);
        enough && seg.seq == self.rcv_nxt && seg.len > 0 && self.assembly.out_of_order.is_empty()
    }

    /// Reserve memory for a packet in whole pages, and use `used` bytes of it (Linux `sk_rmem_schedule`,
    /// `sk_mem_charge`).
    pub(super) fn reserve(&mut self, packet: u64, used: u64) {
        if let Some(slow) = self.slow() {
            slow.reserved += packet.saturating_sub(slow.reserved).next_multiple_of(PAGE);
            slow.reserved = slow.reserved.saturating_sub(used);
        }
    }

    /// Decide whether the next segments may be taken without a look at the buffer's limit, after one that was looked at
    /// (Linux `tcp_fast_path_check`).
    pub(super) fn predict_memory(&mut self, taken: u64) {
        let predicts =
            self.assembly.out_of_order.is_empty() && self.window.told() > 0 && !self.window.is_full(taken);
        if let Some(slow) = self.slow() {
            slow.predicts |= predicts;
        }
    }

    /// Look at the limit of the buffer for the next segment: one was out of order, or the window is closed.
    pub(super) fn doubt_memory(&mut self) {
        if let Some(slow) = self.slow() {
            slow.predicts = false;
        }
    }

    fn slow(&mut self) -> Option<&mut Slow> {
        self.reader.waiting.as_mut()?.slow.as_mut()
    }

    /// The pace of a slow application.
    pub(super) fn reading_pace(&mut self) -> Option<ReadingPace> {
        self.slow().map(|slow| slow.pace)
    }

    /// Start the wait for the first read.
    pub(super) fn begin_reading(&mut self, now: Time) {
        if let Some(slow) = self.slow() {
            slow.next = now + slow.pace.wait;
        }
    }

    /// Wake an application that waits in a read for data or for the end of the stream.
    pub(super) fn wake_reader(&mut self, now: Time) {
        if !self.awaits_turn() {
            self.reader.turn_at = self.slow().map_or(Time::NEVER, |slow| slow.next.max(now));
        }
    }

    /// Whether a slow application has yet to read what has arrived.
    pub(crate) fn has_to_read(&self) -> bool {
        let slow = self.reader.waiting.as_ref().and_then(|waiting| waiting.slow);
        slow.is_some_and(|slow| !slow.over)
    }

    /// Let a slow application read once.
    #[cold]
    pub(super) fn read_in_turn(&mut self, now: Time, pace: ReadingPace) {
        let taken = self.read(now, pace.most);
        let next = now + pace.after(taken);
        let (empty, ended) = (self.reader.read == self.received(), self.fin_received());
        if !empty || (ended && taken > 0) {
            self.reader.turn_at = next;
        }
        if let Some(slow) = self.slow() {
            (slow.next, slow.over) = (next, ended && taken == 0);
        }
    }
}
