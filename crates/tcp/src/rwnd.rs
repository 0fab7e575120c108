//! The receive window and its growth: dynamic right-sizing, as Linux does it (`tcp_rcv_space_adjust`, `tcp_rcvbuf_grow`,
//! `tcp_grow_window`; Fisk and Feng 2001). Once per RTT the buffer is set to what the application drained, doubled, and doubled again
//! while that grows; the window offered then opens by two segments per segment received, as far as the segment itself leaves room in
//! the buffer. The buffer is memory (`memory.rs`); the window may take the share of it that segments were seen to fill with payload
//! (Linux `scaling_ratio`). What happens when it runs out is in `receiver/queues.rs`.

mod rtt;

use ackclock_core::{Span, Time};

use crate::config::Config;
use crate::memory::{PacketMemory, Share};

/// Estimate of the peer's segment size before the first segment (Linux TCP_MSS_DEFAULT).
pub const FIRST_MSS: u32 = 536;

/// The window may always be bounded by this much (half of Linux SOCK_MIN_RCVBUF).
const LEAST_CLAMP: u64 = 1_152;

/// Offered windows: the right edge now and the furthest, and the window of the last header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edges {
    right: u64,
    furthest: u64,
    told: u64,
}

// Length: the rules share the fields, and none of them is long.
/// Receive window of one endpoint, bytes.
#[derive(Clone, Debug)]
pub struct ReceiveWindow {
    /// Offered now (Linux `rcv_ssthresh`).
    threshold: u64,
    /// Bound of the offer (Linux `window_clamp`).
    clamp: u64,
    /// Bound of the bound, as requested.
    widest: u64,
    /// Memory that packets may take (Linux `sk_rcvbuf`), and the limit of its growth.
    buffer: u64,
    most: u64,
    /// Share of memory that counts as window.
    share: Share,
    /// Memory of a packet of the size last measured; the windows that the whole buffer holds, and what one such packet leaves of it.
    segment: u64,
    all: u64,
    beside_one: u64,
    /// How far the offer opens while one such segment is held, and half of the greatest offer: less room than that is little.
    opens_to: u64,
    half: u64,
    /// Size of the segments that the share was measured with (Linux `rcv_mss`).
    rcv_mss: u32,
    /// Payload of the packet that it was measured with.
    packet: u32,
    overhead: u32,
    kept: PacketMemory,
    /// Packets of several segments arrive as they were sent.
    whole: bool,
    /// Bytes by which one segment opens the offer: two full segments, options included (Linux 2 x `advmss`).
    step: u32,
    /// The very first offer, in the handshake.
    first: u32,
    /// Right edge offered now, and the largest ever. An edge moves back if windows may shrink, or if memory
    /// ran out.
    right: u64,
    furthest: u64,
    /// The offer may shrink (Linux `tcp_shrink_window`).
    shrinks: bool,
    /// Windows are rounded up and never shrink.
    rounds_up: bool,
    /// Window of the last ACK (Linux `rcv_wnd`).
    told: u64,
    /// Eight times the receiver's own RTT estimate, us (Linux `rcv_rtt_est`).
    rtt_8: u64,
    last_ts_ecr: u32,
    /// The window offered at `windows_since`, us, is full when this is received; zero before the first data.
    window_ends: u64,
    windows_since: u64,
    space: u64,
    measured_from: u64,
    /// Measured round trip in whole us, as Linux's clock counts.
    measured_us: u64,
    /// Unit of the header's window less one, and its greatest value.
    unit: u32,
    header_max: u32,
    /// Memory in use: by data that waits for the application, or out of order (Linux `sk_rmem_alloc`).
    held: u64,
}

/// Minimum shift that lets 16 bits express this buffer (RFC 7323 §2.3: at most 14).
pub(crate) fn window_scale(buffer: u64) -> u8 {
    (0..14).find(|&s| 65_535u64 << s >= buffer).unwrap_or(14)
}

impl ReceiveWindow {
    /// A window that starts at the profile's first offer.
    pub fn new(config: &Config) -> ReceiveWindow {
        let first = (config.initial_rwnd as u64).min(config.receive_buffer);
        let window = config.first_buffer.max(first);
        let advmss = config.payload() as u64;
        let share = Share::default();
        let (widest, most) = match config.receive_memory {
            0 => (config.receive_buffer, config.switches.packet_memory.full().needed(config.receive_buffer)),
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
            first: first as u32, // the profile's, or less
            right: 0,
            furthest: 0,
            shrinks: config.shrink_window,
            rounds_up: false,
            told: first,
            rtt_8: 0,
            last_ts_ecr: 0,
            window_ends: 0,
            windows_since: 0,
            space: (10 * advmss).min(first),
            measured_from: 1,
            measured_us: 0,
            unit: (1 << window_scale(config.receive_buffer)) - 1,
            header_max: u32::MAX,
            held: 0,
        };
        made.rounds_up = made.unit > 0 && !made.shrinks;
        made.work_out();
        made
    }

    /// The very first offer, before anything was sent.
    #[cold]
    pub fn offer_first(&mut self, bytes: u64) {
        (self.first, self.told) = (bytes as u32, bytes); // a profile's
        self.threshold = bytes.min(self.clamp);
        self.space = (5 * self.step as u64).min(bytes); // ten segments
    }

    #[cold]
    fn work_out(&mut self) {
        self.segment = self.kept.of(self.packet, self.overhead);
        self.all = self.share.window(self.buffer);
        self.beside_one = self.share.window(self.buffer.saturating_sub(self.segment));
        self.bound(self.clamp);
    }

    /// Bound the offer.
    fn bound(&mut self, clamp: u64) {
        self.clamp = clamp;
        self.opens_to = clamp.min(self.beside_one);
        self.half = clamp.min(self.all) / 2;
    }

    /// The connection is established: drained bytes are measured from now on.
    pub fn begin(&mut self, now: Time) {
        self.measured_us = now.0 / 1_000;
    }

    /// The receiver's own RTT estimate, and bytes drained in one RTT.
    pub fn measured(&self) -> (Span, u64) {
        (Span::from_us(self.rtt_8 >> 3), self.space)
    }

    /// Bytes offered beyond what was received.
    pub fn offered(&self) -> u64 {
        self.threshold
    }

    /// Bound of the window offered last.
    pub fn right_edge(&self) -> u64 {
        self.right
    }

    /// Bound of all windows offered so far (Linux `rcv_mwnd_seq`).
    pub fn furthest_edge(&self) -> u64 {
        self.furthest
    }

    /// Offered windows so far.
    pub fn edges(&self) -> Edges {
        Edges { right: self.right, furthest: self.furthest, told: self.told }
    }

    /// Restore windows that were offered before.
    pub fn set_edges(&mut self, Edges { right, furthest, told }: Edges) {
        (self.right, self.furthest, self.told) = (right, furthest, told);
    }

    /// Return the window for a header.
    #[inline]
    pub fn advertise(&mut self, rcv_nxt: u64) -> u32 {
        if self.right == 0 {
            self.right = rcv_nxt + self.first as u64;
        } else {
            // An unchanged offer is rounded up again (Linux `tcp_select_window`).
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

    /// Whether the same window is offered again while nothing arrives and nothing is read.
    #[inline]
    pub fn repeats(&self) -> bool {
        self.rounds_up && self.right > 0
    }

    /// An arriving packet found no memory: the header says zero (Linux ICSK_ACK_NOMEM).
    pub fn advertise_none(&mut self, rcv_nxt: u64) {
        (self.right, self.told) = (rcv_nxt, 0);
        self.furthest = self.furthest.max(rcv_nxt);
    }

    /// Greatest number of bytes that rounding to the header's unit takes.
    pub fn rounding(&self) -> u64 {
        self.unit as u64
    }

    /// Window of the last ACK.
    pub fn told(&self) -> u64 {
        self.told
    }

    /// Whether an ACK now would offer as much as the last one did (Linux `__tcp_ack_snd_check`).
    pub fn keeps(&self) -> bool {
        self.offer() >= self.told
    }

    /// Window that the free part of the buffer makes (Linux `tcp_space`).
    #[inline]
    fn room(&self, held: u64) -> u64 {
        match held {
            held if held == self.segment => self.beside_one,
            0 => self.all,
            held => self.share.window(self.buffer.saturating_sub(held)),
        }
    }

    /// A multiple of the header's unit.
    #[inline]
    fn round_up(&self, window: u64) -> u64 {
        (window + self.unit as u64) & !(self.unit as u64)
    }

    /// Linux `__tcp_select_window`: rounded up to the header's unit. Without one, a multiple of the segment size, if it is
    /// not what was told already. The last sixteenth of the buffer is never offered.
    #[inline]
    fn offer(&self) -> u64 {
        let free = self.room(self.held);
        if self.rounds_up && free >= self.half {
            return self.round_up(free.min(self.threshold));
        }
        self.offer_of_little(free)
    }

    /// Offer where `free` is less than half, or windows are not rounded up.
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

    /// Less than half of the buffer is free: windows are rounded down, and quick ACKs end (Linux
    /// `__tcp_select_window`).
    #[inline]
    pub fn is_tight(&self) -> bool {
        self.held > 0 && self.room(self.held) < self.half
    }

    /// The peer's segments have `mss` bytes and arrive in packets of `len`: their fill of memory gives the
    /// window's share of it (Linux `tcp_measure_rcv_mss`).
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

    /// SO_RCVBUF of a connection: set the buffer's memory, which then stops growing (Linux
    /// `tcp_set_window_clamp`).
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

    /// Set the length of segments; the share stays.
    pub fn expect(&mut self, len: u32) {
        (self.rcv_mss, self.packet) = (len, len);
        self.work_out();
    }

    /// Options that were not agreed on take no memory.
    pub fn negotiated(&mut self, timestamps: bool) {
        self.overhead = 40 + 12 * timestamps as u32;
        self.work_out();
    }

    /// Memory of one packet.
    #[inline]
    pub fn packet_memory(&self, len: u32) -> u64 {
        match len == self.packet {
            true => self.segment,
            false => self.kept.of(len, self.overhead),
        }
    }

    /// Bytes of the next packet that may be copied behind a packet's payload.
    pub fn room_behind(&self, len: u32) -> u32 {
        self.kept.room_behind(len, self.overhead)
    }

    /// See [`PacketMemory::pieces`].
    pub fn pieces(&self, start: u64, len: u32) -> u32 {
        self.kept.pieces(start, len, self.rcv_mss, self.whole)
    }

    /// Share of memory that is the window's.
    pub fn share(&self) -> Share {
        self.share
    }

    /// Set the size of the buffer.
    pub fn fits(&self, held: u64) -> bool {
        held <= self.buffer
    }

    /// An eighth of the buffer.
    pub fn eighth(&self) -> u64 {
        self.buffer / 8
    }

    /// Memory of this many bytes, in packets of the measured size and a remainder.
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

    /// A segment arrives, `held` being taken. A buffer that is over full grows to that, while it may; and the window opens
    /// no further (Linux `tcp_clamp_window`). True if so: quick ACKs end.
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

    /// Memory is taken, `bytes` in all.
    #[inline]
    pub fn take(&mut self, bytes: u64) {
        self.held = bytes;
    }

    /// Memory is taken, `bytes` in all. True if that leaves a window at least twice as wide as the one offered, which is worth an ACK (Linux
    /// `tcp_cleanup_rbuf`).
    pub fn hold(&mut self, bytes: u64, rcv_nxt: u64) -> bool {
        self.held = bytes;
        let now = self.right.saturating_sub(rcv_nxt);
        2 * now <= self.clamp && self.offer() >= (2 * now).max(1)
    }

    /// Windows that the header can express: with window scaling multiples of its unit, without it 16 bits.
    pub fn fit_header(&mut self, shift: Option<u8>) {
        match shift {
            Some(shift) => self.unit = (1 << shift) - 1,
            None => (self.unit, self.header_max) = (0, 65_535),
        }
        self.rounds_up = self.unit > 0 && !self.shrinks;
    }

    /// The application has read up to `to`; `queued` more bytes wait for its next read, `beyond` out of
    /// order.
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

    /// An RTT has passed since the application's reads were last measured.
    #[inline]
    pub fn is_measure_due(&self, now: Time) -> bool {
        self.rtt_8 != 0 && now.0 / 1_000 - self.measured_us >= self.rtt_8 >> 3
    }

    /// A segment arrived out of order: the data up to its end, `beyond`, needs room besides what the
    /// application drains.
    pub fn on_gathered(&mut self, beyond: u64) {
        self.widen(self.space, beyond);
    }

    /// Linux `tcp_rcvbuf_grow`: the application drains `space` in one RTT. Below 1 ms the growth is less (`tcp_rcvbuf_low_rtt`).
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

    /// A segment arrived: open the window towards its bound, by less if the segment fills its memory badly. True if it
    /// opened. So much memory is taken (Linux `tcp_grow_window`).
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

    /// The smaller the window is compared with the largest one, the worse a segment may fill its memory
    /// (Linux `__tcp_grow_window`).
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
