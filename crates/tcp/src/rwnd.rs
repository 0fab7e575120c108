//! Receive window and its autotuning: dynamic right-sizing as in Linux (`tcp_rcv_space_adjust`, `tcp_rcvbuf_grow`,
//! `tcp_grow_window`; Fisk and Feng 2001). Once per RTT the buffer is set to twice the bytes that the application read,
//! and more while that number grows. The offered window then opens by two segments per segment received, as far as the
//! memory of the segment permits. The buffer is a limit of memory (`memory.rs`); the window may use the fraction of it
//! that arriving segments have been seen to fill with payload (Linux `scaling_ratio`). `receiver/queues.rs` handles a
//! full buffer.

mod rtt;

use ackclock_core::{Span, Time};

use crate::config::Config;
use crate::memory::{PacketMemory, Share};

/// Estimate of the peer's segment size before the first segment (Linux TCP_MSS_DEFAULT).
pub const FIRST_MSS: u32 = 536;

/// Lower bound of that estimate (Linux TCP_MIN_MSS).
pub const LEAST_MSS: u32 = 88;

/// Lower bound of the window limit that SO_RCVBUF sets (half of Linux SOCK_MIN_RCVBUF), bytes.
const LEAST_CLAMP: u64 = 1_152;

/// Offered windows: the right edge of the last one, the furthest right edge, and the window of the last header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edges {
    right: u64,
    furthest: u64,
    told: u64,
}

// Length: the rules share the fields, and each of them is short.
/// Receive window of one endpoint, bytes.
#[derive(Clone, Debug)]
pub struct ReceiveWindow {
    /// Current limit on the offered window (Linux `rcv_ssthresh`).
    threshold: u64,
    /// Limit to which `threshold` may grow (Linux `window_clamp`).
    clamp: u64,
    /// Maximum of `clamp`, as configured.
    widest: u64,
    /// Memory available to packets (Linux `sk_rcvbuf`), and the maximum to which it may grow.
    buffer: u64,
    most: u64,
    /// Fraction of memory that counts as window.
    share: Share,
    /// Memory used by a packet of the size last measured; the window for the whole buffer; and the window that remains
    /// with one such packet in the buffer.
    segment: u64,
    all: u64,
    beside_one: u64,
    /// Upper limit on the offered window while one packet of `segment` bytes is buffered, and half the maximum window,
    /// below which receive space is tight.
    opens_to: u64,
    half: u64,
    /// Segment size with which the ratio was measured (Linux `rcv_mss`).
    rcv_mss: u32,
    /// Payload of the packet with which the ratio was measured.
    packet: u32,
    overhead: u32,
    kept: PacketMemory,
    /// Multi-segment packets arrive as they were sent.
    whole: bool,
    /// Bytes by which one segment opens the window: two full segments, options included (Linux 2 x `advmss`).
    step: u32,
    /// First window, offered in the handshake.
    first: u32,
    /// Right edge of the last window, and the furthest one so far. An edge moves back if windows may shrink
    /// or memory has run out.
    right: u64,
    furthest: u64,
    /// The offered window may shrink (Linux `tcp_shrink_window`).
    shrinks: bool,
    /// Windows are rounded up to the unit of the header, and never shrink.
    rounds_up: bool,
    /// Window offered by the last ACK (Linux `rcv_wnd`).
    told: u64,
    /// Eight times the receiver's own RTT estimate, us (Linux `rcv_rtt_est`).
    rtt_8: u64,
    last_ts_ecr: u32,
    /// Offset at which the window offered at `windows_since`, us, is used up; zero before the first data.
    window_ends: u64,
    windows_since: u64,
    space: u64,
    measured_from: u64,
    /// Time of the last measurement of reads, whole us as on Linux's clock.
    measured_us: u64,
    /// Unit of the header's window field minus one, and the field's maximum.
    unit: u32,
    header_max: u32,
    /// Memory in use by data that the application has not read or that is out of order, bytes (Linux `sk_rmem_alloc`).
    held: u64,
}

/// Smallest shift with which 16 bits can express this buffer (RFC 7323 §2.3: at most 14).
pub(crate) fn window_scale(buffer: u64) -> u8 {
    (0..14).find(|&s| 65_535u64 << s >= buffer).unwrap_or(14)
}

impl ReceiveWindow {
    /// Return a window that starts with the profile's first offer.
    pub fn new(config: &Config) -> ReceiveWindow {
        let first = (config.receiving.initial_rwnd as u64).min(config.receiving.receive_buffer);
        let window = config.receiving.first_buffer.max(first);
        let advmss = config.payload() as u64;
        let share = Share::default();
        let (widest, most) = match config.receiving.receive_memory {
            0 => (
                config.receiving.receive_buffer,
                config.switches.packet_memory.full().needed(config.receiving.receive_buffer),
            ),
            memory => (u64::MAX, memory),
        };
        // One segment of the first buffer is reserved (Linux `tcp_init_buffer_space`).
        let clamp = window.saturating_sub(advmss).max(2 * advmss).min(window);
        let mut made = ReceiveWindow {
            threshold: first.min(clamp),
            clamp,
            widest,
            buffer: share.memory(window),
            most,
            share,
            segment: 0,
            all: 0,
            beside_one: 0,
            opens_to: 0,
            half: 0,
            rcv_mss: FIRST_MSS,
            packet: FIRST_MSS,
            overhead: 40 + 12 * config.timestamps as u32,
            kept: config.switches.packet_memory,
            whole: config.whole_packets,
            step: 2 * config.payload(),
            first: first as u32, // first window of the profile, or less
            right: 0,
            furthest: 0,
            shrinks: config.receiving.shrink_window,
            rounds_up: false,
            told: first,
            rtt_8: 0,
            last_ts_ecr: 0,
            window_ends: 0,
            windows_since: 0,
            space: (10 * advmss).min(first),
            measured_from: 1,
            measured_us: 0,
            unit: (1 << window_scale(config.receiving.receive_buffer)) - 1,
            header_max: u32::MAX,
            held: 0,
        };
        made.rounds_up = made.unit > 0 && !made.shrinks;
        made.work_out();
        made
    }

    /// Set the first window, before anything has been sent.
    #[cold]
    pub fn offer_first(&mut self, bytes: u64) {
        (self.first, self.told) = (bytes as u32, bytes); // set by a profile, so it fits
        self.threshold = bytes.min(self.clamp);
        self.space = (5 * self.step as u64).min(bytes); // ten segments, since `step` is two
    }

    #[cold]
    fn work_out(&mut self) {
        self.segment = self.kept.of(self.packet, self.overhead);
        self.all = self.share.window(self.buffer);
        self.beside_one = self.share.window(self.buffer.saturating_sub(self.segment));
        self.bound(self.clamp);
    }

    /// Set the limit on the offered window.
    fn bound(&mut self, clamp: u64) {
        self.clamp = clamp;
        self.opens_to = clamp.min(self.beside_one);
        self.half = clamp.min(self.all) / 2;
    }

    /// Start measuring reads at the end of the handshake.
    pub fn begin(&mut self, now: Time) {
        self.measured_us = now.0 / 1_000;
    }

    /// The receiver's own RTT estimate, and the bytes read in one RTT.
    pub fn measured(&self) -> (Span, u64) {
        (Span::from_us(self.rtt_8 >> 3), self.space)
    }

    /// Current limit on the offered window (Linux `rcv_ssthresh`).
    pub fn offered(&self) -> u64 {
        self.threshold
    }

    /// Right edge of the last offered window.
    pub fn right_edge(&self) -> u64 {
        self.right
    }

    /// Furthest right edge of all windows offered so far (Linux `rcv_mwnd_seq`).
    pub fn furthest_edge(&self) -> u64 {
        self.furthest
    }

    /// Return the windows offered so far.
    pub fn edges(&self) -> Edges {
        Edges { right: self.right, furthest: self.furthest, told: self.told }
    }

    /// Restore previously offered windows.
    pub fn set_edges(&mut self, Edges { right, furthest, told }: Edges) {
        (self.right, self.furthest, self.told) = (right, furthest, told);
    }

    /// Return the window for the next header, and record it as offered.
    #[inline]
    pub fn advertise(&mut self, rcv_nxt: u64) -> u32 {
        if self.right == 0 {
            self.right = rcv_nxt + self.first as u64;
        } else {
            // An unchanged window is rounded up again (Linux `tcp_select_window`).
            let now = match self.shrinks && self.unit > 0 {
                false => self.round_up(self.right.saturating_sub(rcv_nxt)),
                true => 0,
            };
            self.right = rcv_nxt + self.offer().max(now);
        }
        self.furthest = self.furthest.max(self.right);
        self.told = self.right - rcv_nxt;
        self.told.min(self.header_max as u64) as u32
    }

    /// Whether the next header offers the same window, unless data arrives or is read first.
    #[inline]
    pub fn repeats(&self) -> bool {
        self.rounds_up && self.right > 0
    }

    /// Record a zero window, offered because there was no memory for a packet (Linux ICSK_ACK_NOMEM).
    pub fn advertise_none(&mut self, rcv_nxt: u64) {
        (self.right, self.told) = (rcv_nxt, 0);
        self.furthest = self.furthest.max(rcv_nxt);
    }

    /// Maximum number of bytes by which rounding to the header's unit changes a window.
    pub fn rounding(&self) -> u64 {
        self.unit as u64
    }

    /// Window offered by the last ACK.
    pub fn told(&self) -> u64 {
        self.told
    }

    /// Whether an ACK sent now would offer at least as much as the last one (Linux `__tcp_ack_snd_check`).
    pub fn keeps(&self) -> bool {
        self.offer() >= self.told
    }

    /// Window that the free part of the buffer allows (Linux `tcp_space`).
    #[inline]
    fn room(&self, held: u64) -> u64 {
        match held {
            held if held == self.segment => self.beside_one,
            0 => self.all,
            held => self.share.window(self.buffer.saturating_sub(held)),
        }
    }

    /// Round up to a multiple of the header's unit.
    #[inline]
    fn round_up(&self, window: u64) -> u64 {
        (window + self.unit as u64) & !(self.unit as u64)
    }

    /// Window to offer now (Linux `__tcp_select_window`), rounded up to the header's unit. Without a unit it is a
    /// multiple of the segment size, unless the last offer still fits. The last sixteenth of the buffer is never offered.
    #[inline]
    fn offer(&self) -> u64 {
        let free = self.room(self.held);
        if self.rounds_up && free >= self.half {
            return self.round_up(free.min(self.threshold));
        }
        self.offer_of_little(free)
    }

    /// Window to offer if less than half of the buffer is free, or if windows are not rounded up.
    #[inline(never)]
    fn offer_of_little(&self, mut free: u64) -> u64 {
        let all = self.all;
        let full = self.clamp.min(all);
        let mss = (self.rcv_mss as u64).min(full);
        let unit = self.unit as u64;
        if self.shrinks && unit > 0 {
            free &= !unit;
            if free < full / 2 && (free < all / 16 || free < mss || free <= unit) {
                return 0;
            }
            return free.min(self.round_up(self.threshold));
        }
        if free < full / 2 {
            free &= !unit;
            if free < all / 16 || free < mss {
                return 0;
            }
        }
        free = free.min(self.threshold);
        if unit > 0 || mss == 0 {
            return self.round_up(free);
        }
        if self.told + mss <= free || self.told > free {
            return free / mss * mss;
        }
        if mss == full && free > self.told + full / 2 {
            free
        } else {
            self.told
        }
    }

    /// Whether less than half of the buffer is free: windows are then rounded down, and quick ACKs end (Linux
    /// `__tcp_select_window`).
    #[inline]
    pub fn is_tight(&self) -> bool {
        self.held > 0 && self.room(self.held) < self.half
    }

    /// Update the ratio from the peer's segments, which have `mss` bytes and arrive in packets of `len` bytes
    /// (Linux `tcp_measure_rcv_mss`).
    #[cold]
    pub fn measure_share(&mut self, mss: u32, len: u32) {
        (self.rcv_mss, self.packet) = (mss, len);
        let share = Share::of(len, self.kept.of(len, self.overhead));
        let before = std::mem::replace(&mut self.share, share);
        self.work_out();
        if share != before {
            self.bound(self.all.min(self.widest));
            self.space = self.space.min(self.clamp);
        }
    }

    /// Set SO_RCVBUF, the buffer's memory limit, which then stops growing (Linux `tcp_set_window_clamp`).
    pub fn set_buffer(&mut self, memory: u64) {
        (self.buffer, self.most) = (memory, memory);
        self.work_out();
        let before = self.clamp;
        self.bound(self.all.max(LEAST_CLAMP));
        self.threshold = match self.clamp < before {
            true => self.threshold.min(self.clamp),
            false => self.threshold.max(self.told.min(self.clamp)),
        };
    }

    /// Set the segment size without changing the ratio.
    pub fn expect(&mut self, len: u32) {
        (self.rcv_mss, self.packet) = (len, len);
        self.work_out();
    }

    /// Apply the negotiated options, which determine the header length.
    pub fn negotiated(&mut self, timestamps: bool) {
        self.overhead = 40 + 12 * timestamps as u32;
        self.work_out();
    }

    /// Memory used by a packet with `len` bytes of payload.
    #[inline]
    pub fn packet_memory(&self, len: u32) -> u64 {
        match len == self.packet {
            true => self.segment,
            false => self.kept.of(len, self.overhead),
        }
    }

    /// Bytes of the next packet that can be appended to a packet's payload.
    pub fn room_behind(&self, len: u32) -> u32 {
        self.kept.room_behind(len, self.overhead)
    }

    /// See [`PacketMemory::pieces`].
    pub fn pieces(&self, start: u64, len: u32) -> u32 {
        self.kept.pieces(start, len, self.rcv_mss, self.whole)
    }

    /// Fraction of memory that counts as window.
    pub fn share(&self) -> Share {
        self.share
    }

    /// Whether `held` bytes of memory fit into the buffer.
    pub fn fits(&self, held: u64) -> bool {
        held <= self.buffer
    }

    /// Whether `held` bytes of memory leave no room in the buffer.
    pub fn is_full(&self, held: u64) -> bool {
        held >= self.buffer
    }

    /// An eighth of the buffer, bytes of memory.
    pub fn eighth(&self) -> u64 {
        self.buffer / 8
    }

    /// Memory used by this many payload bytes, in packets of the measured size plus a remainder.
    #[inline]
    pub fn memory(&self, bytes: u64) -> u64 {
        match bytes {
            0 => 0,
            bytes if bytes == self.packet as u64 => self.segment,
            bytes => self.memory_of(bytes),
        }
    }

    fn memory_of(&self, bytes: u64) -> u64 {
        let packet = self.packet as u64;
        let rest = (bytes % packet) as u32;
        let whole = bytes / packet * self.segment;
        whole + if rest > 0 { self.kept.of(rest, self.overhead) } else { 0 }
    }

    /// Process an arrival with `held` bytes of memory in use. If the buffer is exceeded, it grows up to its maximum; if that does not
    /// suffice, the window is reduced to two segments (Linux `tcp_clamp_window`). True if the buffer was exceeded, which ends quick ACKs.
    #[inline]
    pub fn overflows(&mut self, held: u64) -> bool {
        if held <= self.buffer {
            return false;
        }
        self.buffer = self.buffer.max(held.min(self.most));
        self.work_out();
        if held > self.buffer {
            self.threshold = self.clamp.min(self.step as u64);
        }
        true
    }

    /// Set the memory in use.
    #[inline]
    pub fn take(&mut self, bytes: u64) {
        self.held = bytes;
    }

    /// Set the memory in use. True if the window is now at least twice as large as the one offered, which
    /// triggers an ACK (Linux `tcp_cleanup_rbuf`).
    pub fn hold(&mut self, bytes: u64, rcv_nxt: u64) -> bool {
        self.held = bytes;
        let now = self.right.saturating_sub(rcv_nxt);
        2 * now <= self.clamp && self.offer() >= (2 * now).max(1)
    }

    /// Set the windows that a header can express: multiples of the unit with window scaling, 16-bit values without.
    pub fn fit_header(&mut self, shift: Option<u8>) {
        match shift {
            Some(shift) => self.unit = (1 << shift) - 1,
            None => (self.unit, self.header_max) = (0, 65_535),
        }
        self.rounds_up = self.unit > 0 && !self.shrinks;
    }

    /// Measure reads after the application has read up to `to`. `queued`: in-order bytes that it has not
    /// read; `beyond`: extent of the out-of-order data.
    #[inline]
    pub fn on_drained(&mut self, now: Time, to: u64, queued: u64, beyond: u64) {
        if !self.is_measure_due(now) {
            return;
        }
        let copied = (to - self.measured_from).saturating_sub(queued);
        if copied > self.space {
            self.widen(copied, beyond);
        }
        self.measured_from = to;
        self.measured_us = now.0 / 1_000;
    }

    /// Whether an RTT has passed since reads were last measured.
    #[inline]
    pub fn is_measure_due(&self, now: Time) -> bool {
        self.rtt_8 != 0 && now.0 / 1_000 - self.measured_us >= self.rtt_8 >> 3
    }

    /// Enlarge the buffer so that out-of-order data fits in addition to the reads. `beyond`: bytes from the
    /// in-order data to the end of the out-of-order data.
    pub fn on_gathered(&mut self, beyond: u64) {
        self.widen(self.space, beyond);
    }

    /// Enlarge the buffer for reads of `space` bytes per RTT (Linux `tcp_rcvbuf_grow`), less if the RTT is below 1 ms (`tcp_rcvbuf_low_rtt`).
    fn widen(&mut self, space: u64, beyond: u64) {
        const LOW_RTT: u64 = 1_000;
        let (window, rtt) = (2 * space, self.rtt_8 >> 3);
        let grow = if rtt < LOW_RTT {
            window * rtt / LOW_RTT
        } else {
            2 * window * (space - self.space.min(space)) / self.space.max(1)
        };
        self.space = space;
        let buffer = self.share.memory(window + grow + beyond).min(self.most);
        if buffer > self.buffer {
            self.buffer = buffer;
            self.work_out();
            self.bound(self.all.min(self.widest));
        }
    }

    /// Open the window on arrival of a segment, by less if the segment wastes memory. `held`: memory in use.
    /// True if the window opened (Linux `tcp_grow_window`).
    #[inline]
    pub fn on_segment(&mut self, len: u32, held: u64) -> bool {
        let room = match held == self.segment {
            true => self.opens_to,
            false => self.clamp.min(self.room(held)),
        };
        if self.threshold >= room {
            return false;
        }
        let step = match self.share.window(self.memory(len as u64)) {
            charged if charged <= len as u64 => self.step as u64,
            charged => self.step_of(len, charged / 2),
        };
        if step == 0 {
            return false;
        }
        self.threshold = (self.threshold + step.max(2 * len as u64)).min(room);
        true
    }

    /// Step for a segment that wastes memory. The smaller the window is compared with its maximum, the
    /// more waste is tolerated (Linux `__tcp_grow_window`).
    #[cold]
    fn step_of(&self, len: u32, mut charged: u64) -> u64 {
        let mut window = self.share.window(self.most) / 2;
        while self.threshold <= window {
            if charged <= len as u64 {
                return 2 * self.rcv_mss as u64;
            }
            (charged, window) = (charged / 2, window / 2);
        }
        0
    }
}
