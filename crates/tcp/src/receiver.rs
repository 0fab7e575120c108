//! The receiving half: reassembly, and content and timing of ACKs.
//!
//! Delayed ACKs follow RFC 1122/5681 or Linux (`__tcp_ack_snd_check`: quick ACKs at the start, adaptive timeout, an
//! immediate ACK when a gap closes, compression of duplicate ACKs after the first three). SACK blocks follow RFC 2018,
//! with the block of the latest arrival first; DSACK follows RFC 2883. The window grows by autotuning (`rwnd.rs`).
//! While it grows, Linux acknowledges every segment, hence its early ACK trains.

mod accurate;
mod acks;
mod cheats;
mod ecn;
mod headers;
mod queues;
mod reading;
mod reassembly;
mod resting;
mod slow;
#[cfg(test)]
mod tests;

use std::num::NonZeroU64;

use ackclock_core::prefetch::prefetch_all;
use ackclock_core::{Segment, Span, Time};

use crate::config::{Config, DelayedAck};
use crate::rwnd::{ReceiveWindow, FIRST_MSS, LEAST_MSS};
use crate::ticks::Ticks;
pub(crate) use accurate::{first_option, Accurate};
use acks::{Acknowledging, Sizes};
use cheats::Cheats;
use ecn::Marks;
use headers::Stamps;
use queues::Last;
use reading::Reader;
use reassembly::Reassembly;
pub(crate) use resting::Resting;
pub use slow::ReadingPace;

/// Minimum payload, bytes, of a segment that opens the window (Linux `tcp_event_data_recv`).
const SMALLEST_TO_GROW: u32 = 128;

/// Receiver state of one endpoint. Offsets are those of [`Segment`].
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Next offset expected in order.
    pub rcv_nxt: u64,
    /// The next segment needs only the fast path of [`Receiver::on_data`] (Linux `pred_flags`): ACKs follow
    /// Linux, no data is out of order, and in-order data is read at once. Recomputed after every other
    /// segment. Code outside [`Receiver::on_other_data`] that sets `early` or `optimist`, or opens gaps, must
    /// clear it.
    is_plain: bool,
    /// The configuration permits the fast path.
    predicts: bool,
    /// Headers are written by [`Receiver::stamp_otherwise`].
    stamps_otherwise: bool,
    assembly: Reassembly,
    pub(crate) acks: Acknowledging,
    pub(crate) marks: Marks,
    reader: Reader,
    pub(crate) stamps: Stamps,
    pub(crate) sizes: Sizes,
    window: ReceiveWindow,
    cheats: Cheats,
}

impl Receiver {
    /// Prefetch the ranges that the next arrival reads.
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.assembly.out_of_order.front().into_iter().for_each(prefetch_all);
    }

    /// Return the receiver for one end of a connection, in its state before the handshake.
    pub fn of_end(config: &Config, responder: bool) -> Receiver {
        let ticks = Ticks::of(config);
        match responder && config.switches.response_carries_ack {
            true => {
                Receiver::new(&config.clone().with(|set| set.receiving.delayed_ack = DelayedAck::Rfc), ticks)
            }
            false => Receiver::new(config, ticks),
        }
    }

    /// Return a receiver without any data.
    pub fn new(config: &Config, ticks: Ticks) -> Receiver {
        Receiver {
            rcv_nxt: 0,
            is_plain: false,
            predicts: config.receiving.predicts && !config.switches.quickack,
            stamps_otherwise: config.sending.controller.needs().exact_ecn
                || config.switches.ack_splits > 1
                || config.receiving.optimistic_acks.is_some(),
            assembly: Reassembly::new(config),
            acks: Acknowledging::new(config, ticks),
            marks: Marks::new(config),
            reader: Reader::new(config),
            stamps: Stamps { on: config.timestamps, recent: 0, now: 0 },
            sizes: Sizes { rcv_mss: FIRST_MSS, short: 0, advmss: config.payload(), most: config.payload() },
            window: ReceiveWindow::new(config),
            cheats: Cheats::new(config),
        }
    }

    /// Apply the options that the handshake agreed on.
    pub fn negotiated(&mut self, sack: bool, timestamps: bool) {
        self.assembly.sack &= sack;
        // Option bytes that were not negotiated are available to the payload.
        let options = 12 * (self.stamps.on && !timestamps) as u32;
        self.sizes.most = self.sizes.most.saturating_add(options);
        self.sizes.advmss += options;
        self.stamps.on &= timestamps;
        self.window.negotiated(self.stamps.on);
    }

    /// Start at the end of the handshake. Inter-arrival times are measured from here (Linux
    /// `tcp_finish_connect`: `lrcvtime`). The first estimate of the peer's segment size is at most `smss`, the payload of
    /// the segments that this end sends (`tcp_initialize_rcv_mss`): only a segment as large as the estimate measures the RTT.
    pub fn begin(&mut self, now: Time, smss: u32) {
        self.acks.last_data = now;
        self.window.begin(now);
        let smss = smss.min((self.window.told() / 2).min(FIRST_MSS.into()) as u32).max(LEAST_MSS);
        if self.acks.mode == DelayedAck::Linux && smss < self.sizes.rcv_mss {
            self.sizes.rcv_mss = smss;
            self.window.expect(smss);
        }
        self.begin_reading(now);
    }

    /// Account for the peer's SYN, which has offset 0.
    pub fn on_syn(&mut self) {
        self.rcv_nxt = 1;
        self.acks.rcv_wup = 1;
    }

    /// Whether the peer's FIN has been received in order.
    pub fn fin_received(&self) -> bool {
        self.assembly.fin_at.is_some_and(|at| self.rcv_nxt > at.get())
    }

    /// Payload bytes received in order.
    #[inline]
    pub fn received(&self) -> u64 {
        self.rcv_nxt.saturating_sub(1) - self.fin_received() as u64
    }

    /// Payload bytes received out of order.
    pub fn behind_gaps(&self) -> u64 {
        self.assembly.bytes()
    }

    /// Bytes counted as received in order although a cheating receiver never received them.
    pub fn concealed(&self) -> u64 {
        self.cheats.optimist.as_ref().map_or(0, |optimist| optimist.concealed())
    }

    /// Set the unit of windows from the scaling option. Without scaling the header field has 16 bits; with scaling
    /// a window is a multiple of the unit.
    pub fn fit_header(&mut self, shift: Option<u8>) {
        self.window.fit_header(shift);
    }

    /// Amount by which an offered window may shrink because header fields are rounded, bytes.
    pub fn rounding(&self) -> u64 {
        self.window.rounding()
    }

    /// `rcv_nxt` when the last ACK was sent.
    pub fn last_ack(&self) -> u64 {
        self.acks.rcv_wup
    }

    /// Right edge of the last offered window.
    pub fn right_edge(&self) -> u64 {
        self.window.right_edge()
    }

    /// Whether the segment ends within the window. A FIN may exceed it by one, and data may exceed it if the
    /// application has read everything (Linux `tcp_sequence`).
    pub fn is_in_window(&self, seg: &Segment) -> bool {
        let right = self.window.furthest_edge().max(self.rcv_nxt);
        seg.seq + seg.len as u64 <= right || (seg.seq <= right && self.reader.read == self.received())
    }

    /// Set the first window, before anything is sent.
    pub fn offer_first(&mut self, bytes: u64) {
        self.window.offer_first(bytes);
    }

    /// Set SO_RCVBUF, bytes of memory.
    pub fn set_buffer(&mut self, memory: u64) {
        self.window.set_buffer(memory);
    }

    /// Answer a segment whose payload lies outside the window, with a DSACK if it is a duplicate
    /// (Linux `tcp_send_dupack`).
    pub fn on_outside(&mut self, seg: &Segment) {
        let end = (seg.seq + seg.seq_len()).min(self.rcv_nxt);
        if seg.seq < self.rcv_nxt {
            self.enter_quickack();
            self.assembly.dsack = self.assembly.reports().then_some((seg.seq, end));
        }
        self.acks.now = true; // this ACK does not use up one of the remaining quick ACKs
    }

    /// Estimate of the peer's segment size, bytes.
    pub fn rcv_mss(&self) -> u32 {
        self.sizes.rcv_mss
    }

    /// ACK timeout (ATO), the receiver's own RTT estimate, and the bytes read by the application in one RTT, for TCP_INFO.
    pub fn pace(&self) -> (Span, Span, u64) {
        let (rtt, space) = self.window.measured();
        (self.acks.ato, rtt, space)
    }

    /// Current limit on the offered window, bytes (Linux `rcv_ssthresh`).
    pub fn offered(&self) -> u64 {
        self.window.offered()
    }

    /// Process a segment that occupies sequence space. The connection's smoothed RTT and RTO limit the ACK
    /// delay; `ts_now` is the timestamp clock.
    pub fn on_data(&mut self, now: Time, seg: &Segment, srtt: Span, rto: Span, ts_now: u32) {
        self.stamps.now = ts_now;
        self.drain_before(now);
        self.remember_stamp(seg);
        let crowd = self.acks.last_data == now;
        if !self.is_plain || seg.seq != self.rcv_nxt || crowd || seg.flags.has(ackclock_core::Flags::FIN) {
            return self.on_other_data(now, seg, srtt, rto);
        }
        let reads = self.accept::<true>(now, seg, seg.seq + seg.len as u64, rto);
        self.decide::<true>(now, srtt);
        self.read_at_once::<true>(now, reads);
    }

    /// Process a segment that the fast path of `on_data` cannot handle.
    #[inline(never)]
    fn on_other_data(&mut self, now: Time, seg: &Segment, srtt: Span, rto: Span) {
        let (start, end) = (seg.seq, seg.seq + seg.seq_len());
        if self.acks.last_data != now || !self.reader.waits {
            self.reader.unread = 0;
        }
        if let Some(optimist) = &mut self.cheats.optimist {
            self.rcv_nxt = optimist.skip(self.rcv_nxt, start, end);
        }
        let mut fin_waits = false;
        if seg.flags.has(ackclock_core::Flags::FIN) {
            if end > self.rcv_nxt {
                self.assembly.fin_at = NonZeroU64::new(end - 1); // a FIN before rcv_nxt is ignored (Linux `tcp_data_queue` drops it)
            }
            let next = start <= self.rcv_nxt && end > self.rcv_nxt;
            let full = seg.len == 0 && self.right_edge() <= self.rcv_nxt;
            // The ACK of a FIN waits for the application's own FIN, unless that has already been sent (Linux `tcp_fin`:
            // pingpong mode).
            fin_waits = self.acks.mode == DelayedAck::Linux && !self.acks.closing && next && !full;
            if !fin_waits && (next || full || self.acks.mode != DelayedAck::Linux) {
                self.acks.now = true; // in Linux, a FIN after a gap is treated like data
            }
        }
        // A retransmission of old data, such as a tail loss probe, gives a sample too (Linux
        // `tcp_rcv_rtt_measure_ts` precedes `tcp_data_queue`).
        self.measure_rtt(seg, self.keeps_waiting());
        self.measure_later(now);
        let mut reads = None;
        let room_matters = self.reader.explicit || self.assembly.gathered > 0 || self.reader.unread > 0;
        if room_matters && end > self.rcv_nxt && !self.is_taken(seg) {
            if self.acks.pending {
                self.decide::<false>(now, srtt);
            }
            return;
        }
        if end <= self.rcv_nxt {
            // A spurious retransmission: report it at once (RFC 2883; Linux `tcp_data_queue`).
            self.assembly.dsack = self.assembly.reports().then_some((start, end));
            self.acks.pending = true;
            self.acks.now = true;
            self.enter_quickack();
        } else if start <= self.rcv_nxt {
            if start < self.rcv_nxt {
                self.assembly.dsack = self.assembly.reports().then_some((start, self.rcv_nxt));
            }
            if self.reader.explicit {
                self.enqueue(seg);
            }
            reads = self.accept::<false>(now, seg, end, rto);
        } else {
            self.acks.pending = true;
            self.measure_mss::<false>(seg);
            let waiting = self.received() - self.taken_at_once();
            let in_order = self.memory(waiting) - self.assembly.gathered;
            let before = self.assembly.gathered;
            let kept = self.insert(start, end);
            if self.reader.explicit {
                self.reserve(
                    self.window.packet_memory(seg.len),
                    self.assembly.gathered.saturating_sub(before),
                );
                self.doubt_memory();
            }
            if self.acks.early.is_some() {
                self.acks.decrement_quickack(&self.window);
                self.acks.acknowledged();
            }
            // Without SACK a window update would hide the duplicate ACK. Discarded data does not open the window.
            let grew = kept
                .is_some_and(|held| self.assembly.sack && self.window.on_segment(seg.len, in_order + held));
            if grew && self.acks.mode == DelayedAck::Linux {
                self.acks.quick |= 1;
            }
            self.window.hold(self.memory(waiting), self.rcv_nxt);
            self.window.on_gathered(self.assembly.beyond(self.rcv_nxt));
        }
        if fin_waits {
            self.acks.pingpong = true;
            self.assembly.dsack = None; // as Linux does
        }
        if self.acks.early.is_none() {
            self.decide::<false>(now, srtt);
        }
        self.read_at_once::<false>(now, reads);
        let keeps =
            self.reader.explicit || !self.assembly.out_of_order.is_empty() || self.acks.early.is_some();
        self.is_plain =
            self.predicts && self.acks.mode == DelayedAck::Linux && !keeps && self.cheats.optimist.is_none();
    }

    /// Accept a segment that extends the in-order data to `end`. Returns the end of the data to be read at once, if
    /// any.
    ///
    /// `PLAIN`, here and below: [`Receiver::is_plain`] is true.
    #[inline(always)]
    fn accept<const PLAIN: bool>(&mut self, now: Time, seg: &Segment, end: u64, rto: Span) -> Option<u64> {
        let (explicit_reads, linux) = (!PLAIN && self.reader.explicit, self.is_linux::<PLAIN>());
        let behind = !PLAIN && !explicit_reads && seg.seq == self.rcv_nxt;
        self.rcv_nxt = end;
        self.acks.pending = true;
        if PLAIN {
            self.measure_rtt(seg, false);
        }
        self.measure_mss::<PLAIN>(seg);
        if seg.len > 0 {
            self.window.measure_window(now, end);
        }
        let joined = if behind { self.join_unread(seg) } else { None };
        let arrived = joined.unwrap_or_else(|| self.window.packet_memory(seg.len));
        let taken = match explicit_reads {
            _ if PLAIN => arrived,
            true => self.memory(self.received() - self.reader.read),
            false => arrived + self.memory(0),
        };
        let grew = seg.len >= SMALLEST_TO_GROW && self.window.on_segment(seg.len, taken);
        if explicit_reads {
            self.window.hold(taken, self.rcv_nxt);
        }
        if linux && seg.len > 0 {
            self.acks.adapt_delay(now, rto, &self.window, self.sizes.rcv_mss); // a FIN gives no inter-arrival sample
            if grew {
                self.acks.quick |= 1; // Linux `tcp_grow_window`
            }
        }
        if PLAIN {
            self.window.take(arrived);
            (self.reader.unread, self.reader.first_unread) = (arrived, end);
            self.reader.last = Last::Alone(seg.len);
            return Some(end);
        }
        if joined.is_none() {
            self.reader.last = Last::Alone(seg.len);
        }
        let gap = !self.assembly.out_of_order.is_empty();
        let (buffer, memory) = if gap { self.close_gaps(seg) } else { (end, 0) };
        if explicit_reads {
            self.predict_memory(taken);
            self.wake_reader(now);
            return None;
        }
        let queued = self.rcv_nxt - end;
        if !linux {
            self.window.on_drained(now, end, queued, self.assembly.beyond(self.rcv_nxt));
        }
        if gap || linux {
            if self.reader.unread == 0 || (joined.is_some() && self.reader.first_unread == seg.seq) {
                self.reader.first_unread = buffer;
            }
            self.reader.unread += arrived + memory;
            self.window.take(self.memory(0));
            return Some(buffer);
        }
        None
    }

    #[inline(always)]
    fn is_linux<const PLAIN: bool>(&self) -> bool {
        PLAIN || self.acks.mode == DelayedAck::Linux
    }

    /// Memory used by out-of-order data and by `waiting` in-order bytes.
    #[inline]
    fn memory(&self, waiting: u64) -> u64 {
        let in_order = match self.reader.explicit {
            true => self.reader.unread_memory(),
            false => self.window.memory(waiting) + self.reader.unread,
        };
        in_order + self.assembly.gathered
    }

    /// Measure the RTT from a segment. `waits`: some in-order data has not been read yet.
    #[inline(always)]
    fn measure_rtt(&mut self, seg: &Segment, waits: bool) {
        self.window.measure_rtt(seg, self.stamps.now, self.sizes.rcv_mss, waits);
    }
}
