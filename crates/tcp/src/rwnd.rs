//! The receive window and its growth: dynamic right-sizing, as Linux does it (`tcp_rcv_space_adjust`,
//! `tcp_rcvbuf_grow`, `tcp_grow_window`; Fisk and Feng 2001).
//!
//! Once per RTT the buffer is set to what the application drained, doubled, and doubled again while that grows; the
//! window offered then opens by two segments per segment received, as far as the segment itself leaves room in the
//! buffer. Differs: memory is counted in payload bytes, so the overhead of packet buffers (Linux `scaling_ratio`)
//! appears only where it changes: with the first full segment.

use ackclock_core::{Segment, Span, Time};

use crate::config::Config;
use crate::connection::window_scale;

/// Receive window of one endpoint, bytes.
#[derive(Debug)]
pub struct ReceiveWindow {
    /// Offered now (Linux `rcv_ssthresh`).
    threshold: u64,
    /// Bound of the offer (Linux `window_clamp`).
    clamp: u64,
    /// Bound of the bound.
    most: u64,
    /// By how much one segment opens the offer: two full ones, options included (Linux 2 x `advmss`).
    step: u64,
    /// The very first offer, in the handshake.
    first: u64,
    /// Right edge already offered; it never moves back.
    right: u64,
    /// Window of the last ACK (Linux `rcv_wnd`).
    told: u64,
    /// Eight times the receiver's own view of the RTT, us (Linux `rcv_rtt_est`).
    rtt_8: u64,
    last_ts_ecr: u32,
    space: u64,
    measured_from: u64,
    measured_at: Time,
    /// Unit of the header's window less one, and its greatest value.
    unit: u64,
    header_max: u64,
    /// Room of the buffer that is taken: by what waits for the application, or out of order.
    held: u64,
}

impl ReceiveWindow {
    /// A window that starts at the profile's first offer.
    pub fn new(config: &Config) -> ReceiveWindow {
        let first = (config.initial_rwnd as u64).min(config.receive_buffer);
        let buffer = config.first_buffer.max(first);
        let advmss = config.payload() as u64;
        ReceiveWindow {
            // One segment of the first buffer is set aside (Linux `tcp_init_buffer_space`).
            threshold: first.min(buffer.saturating_sub(advmss).max(2 * advmss)),
            // A full segment fills its buffer better than the first estimate assumes, so the bound opens a little
            // with the first one (Linux `tcp_measure_rcv_mss`: measured 160/256 to 162/256 instead of 1/2).
            clamp: (buffer * 5 / 4).min(config.receive_buffer),
            most: config.receive_buffer,
            step: 2 * advmss,
            first,
            right: 0,
            told: first,
            rtt_8: 0,
            last_ts_ecr: 0,
            space: (10 * advmss).min(first),
            measured_from: 1,
            measured_at: Time::ZERO,
            unit: (1 << window_scale(config.receive_buffer)) - 1,
            header_max: u32::MAX as u64,
            held: 0,
        }
    }

    /// The connection is established: what is drained is measured from now on.
    pub fn begin(&mut self, now: Time) {
        self.measured_at = now;
    }

    /// The receiver's own view of the RTT, and bytes drained in one of them.
    pub fn measured(&self) -> (Span, u64) {
        (Span::from_us(self.rtt_8 >> 3), self.space)
    }

    /// Bytes offered beyond what was received.
    pub fn offered(&self) -> u64 {
        self.threshold
    }

    /// Bound of all windows offered so far.
    pub fn right_edge(&self) -> u64 {
        self.right
    }

    /// The window to put into a header.
    #[inline]
    pub fn advertise(&mut self, rcv_nxt: u64) -> u32 {
        if self.right == 0 {
            self.right = rcv_nxt + self.first;
        } else {
            // An offer that stays is rounded up anew (Linux `tcp_select_window`).
            let now = (self.right.saturating_sub(rcv_nxt) + self.unit) & !self.unit;
            self.right = self.right.max(rcv_nxt + self.offer().max(now));
        }
        self.told = self.right - rcv_nxt;
        self.told.min(self.header_max) as u32
    }

    /// Window of the last ACK.
    pub fn told(&self) -> u64 {
        self.told
    }

    /// Whether an ACK now would offer as much as the last one did (Linux `__tcp_ack_snd_check`).
    pub fn keeps(&self) -> bool {
        self.offer() >= self.told
    }

    /// Linux `__tcp_select_window`: rounded up to the header's unit; what waits for the application takes room, and the
    /// last sixteenth of the buffer is never offered.
    fn offer(&self) -> u64 {
        let mut room = self.threshold;
        if self.held > 0 {
            let mut free = self.clamp.saturating_sub(self.held);
            if self.is_tight() {
                free &= !self.unit;
            }
            room = if free < self.clamp / 16 { 0 } else { room.min(free) };
        }
        (room + self.unit) & !self.unit
    }

    /// Less than half of the buffer is free: windows are rounded down, and quick ACKs end (Linux `__tcp_select_window`).
    pub fn is_tight(&self) -> bool {
        2 * self.held > self.clamp
    }

    /// So much room is taken. True if that leaves a window at least twice as wide as the one offered,
    /// which is worth an ACK (Linux `tcp_cleanup_rbuf`).
    pub fn hold(&mut self, bytes: u64, rcv_nxt: u64) -> bool {
        self.held = bytes;
        let now = self.right.saturating_sub(rcv_nxt);
        let offer = self.offer();
        2 * now <= self.clamp && offer > 0 && offer >= 2 * now
    }

    /// What the header can express: with window scaling multiples of its unit, without it 16 bits.
    pub fn fit_header(&mut self, shift: Option<u8>) {
        match shift {
            Some(shift) => self.unit = (1 << shift) - 1,
            None => (self.unit, self.header_max) = (0, 65_535),
        }
    }

    /// The receiver's own view of the RTT: a full segment that echoes a new timestamp, older than a tick of its clock (Linux
    /// `tcp_rcv_rtt_measure_ts`, `tcp_rcv_rtt_update`): gain 1/8 upwards, unless data waits for the application; at
    /// once downwards.
    #[inline]
    pub fn measure_rtt(&mut self, seg: &Segment, ts_now: u32, rcv_mss: u32, waits: bool) {
        if !seg.has_ts || seg.ts_ecr == 0 || seg.ts_ecr == self.last_ts_ecr {
            return;
        }
        self.last_ts_ecr = seg.ts_ecr;
        let sample = 1_000 * ts_now.saturating_sub(seg.ts_ecr) as u64;
        if seg.len < rcv_mss || sample == 0 {
            return;
        }
        if self.rtt_8 == 0 || 8 * sample < self.rtt_8 {
            self.rtt_8 = 8 * sample;
        } else if !waits {
            self.rtt_8 += sample - (self.rtt_8 >> 3);
        }
    }

    /// The application read up to `to`; `queued` bytes more wait for its next read, `beyond` out of order.
    #[inline]
    pub fn on_drained(&mut self, now: Time, to: u64, queued: u64, beyond: u64) {
        let passed = now.0 / 1_000 - self.measured_at.0 / 1_000; // us, of a clock that counts them
        if self.rtt_8 == 0 || passed < self.rtt_8 >> 3 {
            return;
        }
        let copied = (to - self.measured_from).saturating_sub(queued);
        if copied > self.space {
            self.widen(copied, beyond);
        }
        self.measured_from = to;
        self.measured_at = now;
    }

    /// A segment arrived out of order: what lies up to its end, `beyond`, needs room beside what the application drains.
    pub fn on_gathered(&mut self, beyond: u64) {
        self.widen(self.space, beyond);
    }

    /// Linux `tcp_rcvbuf_grow`: the application drains `space` in one RTT.
    fn widen(&mut self, space: u64, beyond: u64) {
        let window = 2 * space;
        let grow = 2 * window * (space - self.space) / self.space.max(1);
        self.clamp = self.clamp.max((window + grow + beyond).min(self.most));
        self.space = space;
    }

    /// A segment arrived: open the window towards its bound. True if it opened. So much room of
    /// the buffer is taken.
    #[inline]
    pub fn on_segment(&mut self, len: u32, held: u64) -> bool {
        let room = self.clamp.saturating_sub(held);
        if self.threshold >= room || len < 128 {
            return false;
        }
        self.threshold = (self.threshold + self.step.max(2 * len as u64)).min(room);
        true
    }
}

/// What payload takes of the window: a buffer of 2304 bytes counts 2304 x 160/256 = 1440 for 1448 (Linux `truesize`,
/// `tcp_win_from_space`).
pub fn charge(bytes: u64) -> u64 {
    bytes - bytes / 181
}
