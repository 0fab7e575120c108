//! The receiving half: reassembly, what to acknowledge and when.
//!
//! Delayed ACKs follow RFC 1122/5681 or Linux (`__tcp_ack_snd_check`: quick ACKs at the start, adaptive timeout, an ACK at once when a
//! gap closes, compression of duplicate ACKs after the first three). SACK blocks: RFC 2018, the block of the latest arrival first; DSACK:
//! RFC 2883. The window grows by autotuning (`rwnd.rs`), and while it grows Linux acknowledges every segment: its early ACK trains.

mod accurate;
mod acks;
mod cheats;
mod ecn;
mod headers;
mod queues;
mod reading;
mod reassembly;
mod resting;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::num::NonZeroU64;

use ackclock_core::prefetch::prefetch_all;
use ackclock_core::{SackList, Segment, Span, Time};
use smallvec::SmallVec;

use crate::config::{Config, DelayedAck};
use crate::rwnd::{ReceiveWindow, FIRST_MSS};
use crate::ticks::Ticks;
pub(crate) use accurate::{first_option, Accurate};
use cheats::{Optimist, Split};
use ecn::ExactEcho;
use queues::{Run, Waiting};
pub(crate) use resting::Resting;

/// Linux TCP_NUM_SACKS: blocks remembered; with timestamps one fewer fits the header.
const NUM_SACKS: usize = 4;

/// A segment shorter than this does not open the window (Linux `tcp_event_data_recv`).
const SMALLEST_TO_GROW: u32 = 128;

/// Receiver state of one endpoint. Offsets as in [`Segment`].
#[derive(Clone, Debug)]
pub struct Receiver {
    mode: DelayedAck,
    delack_timeout: Span,
    delack_max: Span,
    compression: bool,
    sack: bool,
    timestamps: bool,
    ticks: Ticks,
    /// ACKs as Linux's, nothing waits out of order, and what comes in order is read at once: the next segment asks for no more than
    /// [`Receiver::on_data`] does itself (Linux `pred_flags`). Found out after every other segment: who sets `early` or `optimist`, or
    /// lets gaps open, anywhere but in [`Receiver::on_other_data`] must clear it.
    is_plain: bool,
    /// It may be, sometimes.
    predicts: bool,
    /// Next offset expected in order.
    pub rcv_nxt: u64,
    /// rcv_nxt when the last ACK left.
    rcv_wup: u64,
    /// Received out of order: ascending, disjoint runs.
    out_of_order: VecDeque<Run>,
    /// Memory of them.
    gathered: u64,
    /// In order and not read yet, where reads are calls.
    waiting: Option<Box<Waiting>>,
    /// See `reading`: the application has its turn behind all packets of an instant; when; memory that it has not read before that.
    waits: bool,
    turn_at: Time,
    unread: u64,
    /// Where the first buffer ends that it has not read.
    first_unread: u64,
    /// A packet found no memory, which the next ACK says.
    no_memory: bool,
    /// See [`Receiver::stamp_otherwise`].
    stamps_otherwise: bool,
    /// The application reads what came in order, after the ACK if one is due: since when, and where the first buffer ends.
    drains: Option<(Time, u64)>,
    /// Blocks to report, latest first, at most [`NUM_SACKS`]: one or two, as a rule.
    sacks: SmallVec<[(u64, u64); 2]>,
    /// Blocks and window of an ACK that was held back and leaves before the block of the latest arrival is its first.
    early: Option<Box<(SackList, u32)>>,
    dsack: Option<(u64, u64)>,
    fin_at: Option<NonZeroU64>,
    /// Timestamp to echo.
    pub ts_recent: u32,
    ts_now: u32,
    rcv_mss: u32,
    window: ReceiveWindow,
    /// Reads are calls; how far they came.
    explicit_reads: bool,
    read: u64,
    /// A pushed or short segment waits for its reader, or two (Linux ICSK_ACK_PUSHED, ICSK_ACK_PUSHED2).
    pushed: bool,
    pushed_twice: bool,
    /// Size of the last segment, if it was shorter than rcv_mss.
    short_size: u32,
    /// Payload of the segments that were asked for.
    advmss: u32,
    /// Greatest segment that one packet brings, where a device puts several into one.
    pub segment_limit: u32,
    /// The application closed: a FIN is answered at once.
    pub closing: bool,
    report_duplicates: bool,
    /// ECT came: whatever comes without it was sent again (RFC 3168 §6.1.5).
    saw_ect: bool,
    /// Every ACK carries ECE until the peer answers with CWR (RFC 3168 §6.1.3).
    pub echo_marks: bool,
    exact: Option<Box<ExactEcho>>,
    /// Counts marks, where accurate ECN was agreed on.
    pub(crate) accurate: Option<Box<Accurate>>,
    /// Cheats: ACKs in pieces, ACKs of what has not arrived, marks not echoed.
    split: Option<Box<Split>>,
    optimist: Option<Box<Optimist>>,
    hides_marks: bool,
    ato: Span,
    /// The ATO that segments in quick succession leave as it is.
    steady_ato: Span,
    last_data: Time,
    quick: u32,
    pingpong: bool,
    /// The application sets TCP_QUICKACK each time it has read.
    quickacks: bool,
    pending: bool,
    /// An ACK must leave with this input's output.
    now: bool,
    delack_at: Time,
    /// What that timer was set to, before the wheel rounded it.
    delack_set: Time,
    /// The timer of delayed ACKs runs until then: an ACK that left meanwhile does not stop it (Linux keeps the
    /// `timer_list`).
    delack_runs: Time,
    compressed: u8,
    dup_acks: u8,
    compressed_nxt: u64,
    compress_at: Time,
}

impl Receiver {
    /// What lies beside it will be read.
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.out_of_order.front().into_iter().for_each(prefetch_all);
    }

    /// Nothing received yet.
    pub fn new(config: &Config, ticks: Ticks) -> Receiver {
        Receiver {
            mode: config.delayed_ack,
            delack_timeout: config.delack_timeout,
            delack_max: acks::delack_max(config),
            compression: config.sack_compression,
            sack: config.sack,
            timestamps: config.timestamps,
            ticks,
            is_plain: false,
            predicts: config.predicts && !config.switches.quickack,
            rcv_nxt: 0,
            rcv_wup: 0,
            out_of_order: VecDeque::new(),
            gathered: 0,
            waiting: None,
            waits: config.application_waits,
            turn_at: Time::NEVER,
            unread: 0,
            first_unread: 0,
            no_memory: false,
            stamps_otherwise: config.controller.needs().exact_ecn
                || config.switches.ack_splits > 1
                || config.optimistic_acks.is_some(),
            drains: None,
            sacks: SmallVec::new(),
            early: None,
            dsack: None,
            fin_at: None,
            ts_recent: 0,
            ts_now: 0,
            rcv_mss: FIRST_MSS,
            window: ReceiveWindow::new(config),
            explicit_reads: config.explicit_reads,
            read: 0,
            pushed: false,
            pushed_twice: false,
            short_size: 0,
            advmss: config.payload(),
            segment_limit: config.payload(),
            closing: false,
            report_duplicates: config.dsack,
            saw_ect: false,
            echo_marks: false,
            split: Split::new(config.switches.ack_splits).map(Box::new),
            optimist: Optimist::new(config.optimistic_acks).map(Box::new),
            hides_marks: config.switches.hide_marks,
            exact: config.controller.needs().exact_ecn.then(Box::default),
            accurate: None,
            ato: Span::ZERO,
            steady_ato: acks::steady_ato(config.delack_timeout, ticks),
            last_data: Time::ZERO,
            quick: 0,
            pingpong: false,
            quickacks: config.switches.quickack,
            pending: false,
            now: false,
            delack_at: Time::NEVER,
            delack_set: Time::NEVER,
            delack_runs: Time::NEVER,
            compressed: 0,
            dup_acks: 0,
            compressed_nxt: 0,
            compress_at: Time::NEVER,
        }
    }

    /// The handshake settled what both sides can do.
    pub fn negotiated(&mut self, sack: bool, timestamps: bool) {
        self.sack &= sack;
        // Options that were not agreed on leave their room to the payload.
        let options = 12 * (self.timestamps && !timestamps) as u32;
        self.segment_limit = self.segment_limit.saturating_add(options);
        self.advmss += options;
        self.timestamps &= timestamps;
        self.window.negotiated(self.timestamps);
    }

    /// The handshake is over; the pace of data is measured from then (Linux `tcp_finish_connect`: `lrcvtime`).
    pub fn begin(&mut self, now: Time) {
        self.last_data = now;
        self.window.begin(now);
    }

    /// The peer's SYN took offset 0.
    pub fn on_syn(&mut self) {
        self.rcv_nxt = 1;
        self.rcv_wup = 1;
    }

    /// Whether the peer's FIN was received in order.
    pub fn fin_received(&self) -> bool {
        self.fin_at.is_some_and(|at| self.rcv_nxt > at.get())
    }

    /// Payload bytes received in order.
    #[inline]
    pub fn received(&self) -> u64 {
        self.rcv_nxt.saturating_sub(1) - self.fin_received() as u64
    }

    /// Payload bytes received behind a gap.
    pub fn behind_gaps(&self) -> u64 {
        self.out_of_order.iter().map(|run| run.end - run.start).sum()
    }

    /// Of those received in order, bytes that a receiver that cheats never had.
    pub fn concealed(&self) -> u64 {
        self.optimist.as_ref().map_or(0, |optimist| optimist.concealed())
    }

    /// Without window scaling the header has 16 bits; with it, the window is a multiple of its unit.
    pub fn fit_header(&mut self, shift: Option<u8>) {
        self.window.fit_header(shift);
    }

    /// By less than this a window may be smaller than it was only because headers round.
    pub fn rounding(&self) -> u64 {
        self.window.rounding()
    }

    /// rcv_nxt when the last ACK left.
    pub fn last_ack(&self) -> u64 {
        self.rcv_wup
    }

    /// Bound of the window offered last.
    pub fn right_edge(&self) -> u64 {
        self.window.right_edge()
    }

    /// The segment does not reach beyond the window; a FIN may by its one number, and so may the rest if nothing waits
    /// to be read (Linux `tcp_sequence`).
    pub fn is_in_window(&self, seg: &Segment) -> bool {
        let right = self.window.furthest_edge().max(self.rcv_nxt);
        seg.seq + seg.len as u64 <= right || (seg.seq <= right && self.read == self.received())
    }

    /// The very first window, before anything was sent.
    pub fn offer_first(&mut self, bytes: u64) {
        self.window.offer_first(bytes);
    }

    /// SO_RCVBUF of a connection, memory.
    pub fn set_buffer(&mut self, memory: u64) {
        self.window.set_buffer(memory);
    }

    /// A segment with payload from outside the window: an ACK, with a report if it is a duplicate (Linux
    /// `tcp_send_dupack`).
    pub fn on_outside(&mut self, seg: &Segment) {
        let end = (seg.seq + seg.seq_len()).min(self.rcv_nxt);
        if seg.seq < self.rcv_nxt {
            self.enter_quickack();
            self.dsack = self.reports().then_some((seg.seq, end));
        }
        self.now = true; // such an ACK is none of the quick ones that are left
    }

    /// Estimate of the peer's segment size.
    pub fn rcv_mss(&self) -> u32 {
        self.rcv_mss
    }

    /// Delay of ACKs, the receiver's own view of the RTT, bytes drained in one of them: for TCP_INFO.
    pub fn pace(&self) -> (Span, Span, u64) {
        let (rtt, space) = self.window.measured();
        (self.ato, rtt, space)
    }

    /// Bound of the window offered now.
    pub fn offered(&self) -> u64 {
        self.window.offered()
    }

    /// A segment that takes sequence space arrived. The connection's smoothed RTT and RTO bound the delay of ACKs;
    /// `ts_now` is the timestamp clock.
    pub fn on_data(&mut self, now: Time, seg: &Segment, srtt: Span, rto: Span, ts_now: u32) {
        self.ts_now = ts_now;
        self.drain_before(now);
        self.remember_stamp(seg);
        let crowd = self.last_data == now;
        if !self.is_plain || seg.seq != self.rcv_nxt || crowd || seg.flags.has(ackclock_core::Flags::FIN) {
            return self.on_other_data(now, seg, srtt, rto);
        }
        let reads = self.accept::<true>(now, seg, seg.seq + seg.len as u64, rto);
        self.decide::<true>(now, srtt);
        self.read_at_once::<true>(now, reads);
    }

    /// The same where more is to be thought of than the next segment.
    #[inline(never)]
    fn on_other_data(&mut self, now: Time, seg: &Segment, srtt: Span, rto: Span) {
        let (start, end) = (seg.seq, seg.seq + seg.seq_len());
        if self.last_data != now || !self.waits {
            self.unread = 0;
        }
        if let Some(optimist) = &mut self.optimist {
            self.rcv_nxt = optimist.skip(self.rcv_nxt, start, end);
        }
        let mut fin_waits = false;
        if seg.flags.has(ackclock_core::Flags::FIN) {
            if end > self.rcv_nxt {
                self.fin_at = NonZeroU64::new(end - 1); // one of before what was received is none (Linux `tcp_data_queue` drops it)
            }
            let next = start <= self.rcv_nxt && end > self.rcv_nxt;
            let full = seg.len == 0 && self.right_edge() <= self.rcv_nxt;
            // Its ACK waits for the application's own FIN, if there is still one to come (Linux `tcp_fin`: pingpong mode).
            fin_waits = self.mode == DelayedAck::Linux && !self.closing && next && !full;
            if !fin_waits && (next || full || self.mode != DelayedAck::Linux) {
                self.now = true; // beyond a hole it is data like any other to Linux
            }
        }
        // By what came before, too, as a probe for a lost tail does (Linux `tcp_rcv_rtt_measure_ts` comes before `tcp_data_queue`).
        self.measure_rtt(seg, self.keeps_waiting());
        self.measure_later(now);
        let mut reads = None;
        let room_matters = self.explicit_reads || self.gathered > 0 || self.unread > 0;
        if room_matters && end > self.rcv_nxt && !self.is_taken(seg) {
            if self.pending {
                self.decide::<false>(now, srtt);
            }
            return;
        }
        if end <= self.rcv_nxt {
            // A needless retransmission: report it, at once (RFC 2883; Linux `tcp_data_queue`).
            self.dsack = self.reports().then_some((start, end));
            self.pending = true;
            self.now = true;
            self.enter_quickack();
        } else if start <= self.rcv_nxt {
            if start < self.rcv_nxt {
                self.dsack = self.reports().then_some((start, self.rcv_nxt));
            }
            if self.explicit_reads {
                self.enqueue(seg);
            }
            reads = self.accept::<false>(now, seg, end, rto);
        } else {
            self.pending = true;
            self.measure_mss::<false>(seg);
            let waiting = self.received() - self.taken_at_once();
            let in_order = self.memory(waiting) - self.gathered;
            let kept = self.insert(start, end);
            if self.early.is_some() {
                self.decrement_quickack();
                self.acknowledged();
            }
            // Without SACK a window update would hide the duplicate ACK; what is thrown away opens nothing.
            let grew = kept.is_some_and(|held| self.sack && self.window.on_segment(seg.len, in_order + held));
            if grew && self.mode == DelayedAck::Linux {
                self.quick |= 1;
            }
            self.window.hold(self.memory(waiting), self.rcv_nxt);
            self.window.on_gathered(self.beyond());
        }
        if fin_waits {
            self.pingpong = true;
            self.dsack = None; // as Linux does
        }
        if self.early.is_none() {
            self.decide::<false>(now, srtt);
        }
        self.read_at_once::<false>(now, reads);
        let keeps = self.explicit_reads || !self.out_of_order.is_empty() || self.early.is_some();
        self.is_plain = self.predicts && self.mode == DelayedAck::Linux && !keeps && self.optimist.is_none();
    }

    /// A segment takes the stream up to `end`. Up to where the application reads at once, if it does.
    ///
    /// `PLAIN`, here and below: [`Receiver::is_plain`] holds.
    #[inline(always)]
    fn accept<const PLAIN: bool>(&mut self, now: Time, seg: &Segment, end: u64, rto: Span) -> Option<u64> {
        let (explicit_reads, linux) = (!PLAIN && self.explicit_reads, self.is_linux::<PLAIN>());
        self.rcv_nxt = end;
        self.pending = true;
        if PLAIN {
            self.measure_rtt(seg, false);
        }
        self.measure_mss::<PLAIN>(seg);
        if seg.len > 0 {
            self.window.measure_window(now, end);
        }
        let arrived = self.window.packet_memory(seg.len);
        let taken = match explicit_reads {
            _ if PLAIN => arrived,
            true => self.memory(self.received() - self.read),
            false => arrived + self.memory(0),
        };
        let grew = seg.len >= SMALLEST_TO_GROW && self.window.on_segment(seg.len, taken);
        if explicit_reads {
            self.window.hold(taken, self.rcv_nxt);
        }
        if linux && seg.len > 0 {
            self.adapt_delay(now, rto); // a FIN tells nothing of the pace
            if grew {
                self.quick |= 1; // Linux `tcp_grow_window`
            }
        }
        if PLAIN {
            self.window.take(arrived);
            (self.unread, self.first_unread) = (arrived, end);
            return Some(end);
        }
        let gap = !self.out_of_order.is_empty();
        let (buffer, memory) = if gap { self.close_gaps(seg) } else { (end, 0) };
        if explicit_reads {
            return None;
        }
        let queued = self.rcv_nxt - end;
        if !linux {
            self.window.on_drained(now, end, queued, self.beyond());
        }
        if gap || linux {
            if self.unread == 0 {
                self.first_unread = buffer;
            }
            self.unread += arrived + memory;
            self.window.take(self.memory(0));
            return Some(buffer);
        }
        None
    }

    #[inline(always)]
    fn is_linux<const PLAIN: bool>(&self) -> bool {
        PLAIN || self.mode == DelayedAck::Linux
    }

    /// Memory taken by what waits out of order, and by `waiting` bytes in order.
    #[inline]
    fn memory(&self, waiting: u64) -> u64 {
        let in_order = match self.explicit_reads {
            true => self.unread_memory(),
            false => self.window.memory(waiting) + self.unread,
        };
        in_order + self.gathered
    }

    /// `waits`: bytes in order wait for the application.
    #[inline(always)]
    fn measure_rtt(&mut self, seg: &Segment, waits: bool) {
        self.window.measure_rtt(seg, self.ts_now, self.rcv_mss, waits);
    }

    fn reports(&self) -> bool {
        self.sack && self.report_duplicates
    }
}
