//! The receiving half: reassembly, what to acknowledge and when.
//!
//! Delayed ACKs follow RFC 1122/5681 or Linux (`__tcp_ack_snd_check`: quick ACKs at the start, adaptive timeout, an
//! ACK at once when a gap closes, compression of duplicate ACKs after the first three). SACK blocks: RFC 2018, the
//! block of the latest arrival first; DSACK: RFC 2883. The window grows by receive-buffer autotuning (`window.rs`),
//! and while it grows Linux acknowledges every segment: that is what makes its early ACK trains.

use ackclock_core::{SackBlock, SackList, Segment, Span, Time};
use smallvec::SmallVec;

use crate::config::{Config, DelayedAck};
use crate::rwnd::ReceiveWindow;
use crate::ticks::Ticks;

/// Linux TCP_MAX_QUICKACKS.
const MAX_QUICKACKS: u32 = 16;
/// Linux TCP_FASTRETRANS_THRESH: duplicate ACKs sent at once before compression begins.
const UNCOMPRESSED_DUPACKS: u8 = 3;
/// Linux TCP_NUM_SACKS: blocks remembered; with timestamps one fewer fits the header.
const NUM_SACKS: usize = 4;
/// Linux tcp_comp_sack_nr: duplicate ACKs held back at most.
const COMPRESSED_MAX: u8 = 44;
/// Linux tcp_comp_sack_delay_ns and tcp_comp_sack_slack_ns.
const COMPRESS_DELAY: Span = Span::from_ms(1);
const COMPRESS_SLACK: Span = Span::from_us(100);
/// Linux TCP_DELACK_MAX.
const DELACK_MAX: Span = Span::from_ms(200);

/// Exact echo of marks: each ACK tells the mark of what it acknowledges (RFC 8257 §3.2).
#[derive(Clone, Copy, Debug, Default)]
struct ExactEcho {
    /// DCTCP.CE: whether the last data segment was marked.
    ce: bool,
    /// An ACK that must leave first: number, and the mark of what it acknowledges.
    before: Option<(u64, bool)>,
}

/// Receiver state of one endpoint. Offsets as in [`Segment`].
#[derive(Debug)]
pub struct Receiver {
    mode: DelayedAck,
    delack_timeout: Span,
    compression: bool,
    sack: bool,
    timestamps: bool,
    ticks: Ticks,
    /// Next offset expected in order.
    pub rcv_nxt: u64,
    /// rcv_nxt when the last ACK left.
    rcv_wup: u64,
    /// Received out of order: ascending, disjoint ranges.
    out_of_order: Vec<(u64, u64)>,
    /// Blocks to report, latest first.
    sacks: SmallVec<[(u64, u64); NUM_SACKS]>,
    /// Blocks about to be forgotten while ACKs are held back: an ACK of their own leaves first.
    early: Option<SackList>,
    dsack: Option<(u64, u64)>,
    fin_at: Option<u64>,
    /// Timestamp to echo.
    pub ts_recent: u32,
    ts_now: u32,
    rcv_mss: u32,
    window: ReceiveWindow,
    /// Reads are calls; how far they came.
    explicit_reads: bool,
    read: u64,
    /// A pushed segment waits for its reader.
    pushed: bool,
    /// Greatest segment that one packet brings, where a device puts several into one.
    pub segment_limit: u32,
    /// The application closed: a FIN is answered at once.
    pub closing: bool,
    fin_waits: bool,
    report_duplicates: bool,
    /// Every ACK carries ECE until the peer answers with CWR (RFC 3168 §6.1.3).
    pub echo_marks: bool,
    exact: Option<ExactEcho>,
    ato: Span,
    last_data: Time,
    quick: u32,
    pingpong: bool,
    pending: bool,
    /// An ACK must leave with this input's output.
    now: bool,
    delack_at: Time,
    compressed: u8,
    dup_acks: u8,
    compressed_nxt: u64,
    compress_soft: Time,
    compress_hard: Time,
}

impl Receiver {
    /// Nothing received yet.
    pub fn new(config: &Config, ticks: Ticks) -> Receiver {
        Receiver {
            mode: config.delayed_ack,
            delack_timeout: config.delack_timeout,
            compression: config.sack_compression,
            sack: config.sack,
            timestamps: config.timestamps,
            ticks,
            rcv_nxt: 0,
            rcv_wup: 0,
            out_of_order: Vec::new(),
            sacks: SmallVec::new(),
            early: None,
            dsack: None,
            fin_at: None,
            ts_recent: 0,
            ts_now: 0,
            rcv_mss: 536,
            window: ReceiveWindow::new(config),
            explicit_reads: config.explicit_reads,
            read: 0,
            pushed: false,
            segment_limit: u32::MAX,
            closing: false,
            fin_waits: false,
            report_duplicates: config.dsack,
            echo_marks: false,
            exact: config.exact_ecn.then(ExactEcho::default),
            ato: Span::ZERO,
            last_data: Time::ZERO,
            quick: 0,
            pingpong: false,
            pending: false,
            now: false,
            delack_at: Time::NEVER,
            compressed: 0,
            dup_acks: 0,
            compressed_nxt: 0,
            compress_soft: Time::NEVER,
            compress_hard: Time::NEVER,
        }
    }

    /// The handshake settled what both sides can do.
    pub fn negotiated(&mut self, sack: bool, timestamps: bool) {
        self.sack &= sack;
        self.timestamps &= timestamps;
    }

    /// The peer's SYN took offset 0.
    pub fn on_syn(&mut self) {
        self.rcv_nxt = 1;
        self.rcv_wup = 1;
    }

    /// Whether the peer's FIN was received in order.
    pub fn fin_received(&self) -> bool {
        self.fin_at.is_some_and(|at| self.rcv_nxt > at)
    }

    /// Payload bytes received in order.
    #[inline]
    pub fn received(&self) -> u64 {
        self.rcv_nxt.saturating_sub(1) - self.fin_received() as u64
    }

    /// Without window scaling the header has 16 bits; with it, the window is a multiple of its unit.
    pub fn fit_header(&mut self, shift: Option<u8>) {
        self.window.fit_header(shift);
    }

    /// The application takes up to `bytes`; how many it got. A read may send an ACK (Linux `tcp_cleanup_rbuf`).
    pub fn read(&mut self, now: Time, bytes: u64) -> u64 {
        let taken = bytes.min(self.received() - self.read);
        self.read += taken;
        self.window.on_drained(now, 1 + self.read, self.beyond());
        if self.window.hold(self.received() - self.read, self.rcv_nxt) && taken > 0 && !self.fin_received() {
            self.ack_now();
        }
        if self.mode == DelayedAck::Linux && self.pending {
            let empty = self.read == self.received() && self.out_of_order.is_empty();
            let full = self.rcv_nxt - self.rcv_wup > self.rcv_mss as u64;
            if full || (taken > 0 && self.pushed && !self.pingpong && empty) {
                self.now = true;
            }
        }
        self.pushed &= self.read < self.received();
        taken
    }

    /// rcv_nxt when the last ACK left.
    pub fn last_ack(&self) -> u64 {
        self.rcv_wup
    }

    /// Bound of all windows offered so far.
    pub fn right_edge(&self) -> u64 {
        self.window.right_edge()
    }

    /// PAWS: the segment's timestamp is older than the latest one (RFC 7323 §5.3).
    pub fn is_old_stamp(&self, seg: &Segment) -> bool {
        self.timestamps && seg.has_ts && (self.ts_recent.wrapping_sub(seg.ts_val) as i32) > 0
    }

    /// The segment does not reach beyond the window; a FIN may by its one number, and so may the rest if nothing waits
    /// to be read (Linux `tcp_sequence`).
    pub fn is_in_window(&self, seg: &Segment) -> bool {
        let right = self.right_edge().max(self.rcv_nxt);
        seg.seq + seg.len as u64 <= right || (seg.seq <= right && self.read == self.received())
    }

    /// A segment with payload from outside the window: an ACK, with a report if it is a duplicate (Linux
    /// `tcp_send_dupack`).
    pub fn on_outside(&mut self, seg: &Segment) {
        let end = (seg.seq + seg.seq_len()).min(self.rcv_nxt);
        if seg.seq < self.rcv_nxt {
            self.enter_quickack();
            self.dsack = self.reports().then_some((seg.seq, end));
        }
        self.ack_now();
    }

    /// Payload bytes taken by the application.
    pub fn taken(&self) -> u64 {
        self.read
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

    /// A mark of congestion arrived, or the peer's word that it reduced (Linux `tcp_ecn_check_ce`,
    /// `tcp_ecn_accept_cwr`).
    pub fn on_marks(&mut self, ce: bool, cwr: bool, data: bool) {
        if let Some(exact) = &mut self.exact {
            if data && exact.ce != ce {
                // the state changes: what waits for an ACK is acknowledged with the former one (RFC 8257 §3.2)
                exact.before = self.pending.then_some((self.rcv_nxt, exact.ce));
                exact.ce = ce;
                self.now = true;
            }
            return;
        }
        if cwr {
            self.echo_marks = false;
            if data {
                self.now = true;
                self.pending = true;
            }
        }
        if ce && !self.echo_marks {
            self.echo_marks = true;
            self.quick = self.quick.max(2);
            self.pingpong = false;
            self.ato = self.delack_timeout;
        }
    }

    /// A segment that takes sequence space arrived. The connection's smoothed RTT and RTO bound the delay of ACKs;
    /// `ts_now` is the timestamp clock.
    pub fn on_data(&mut self, now: Time, seg: &Segment, srtt: Span, rto: Span, ts_now: u32) {
        self.ts_now = ts_now;
        let (start, end) = (seg.seq, seg.seq + seg.seq_len());
        if self.timestamps && start <= self.rcv_wup && seg.has_ts {
            self.ts_recent = seg.ts_val;
        }
        if seg.flags.has(ackclock_core::Flags::FIN) {
            self.fin_at = Some(end - 1);
            let next = start <= self.rcv_nxt && end > self.rcv_nxt;
            let full = seg.len == 0 && self.right_edge() <= self.rcv_nxt;
            if self.explicit_reads && !self.closing && next && !full {
                self.fin_waits = true; // for the application's own FIN (Linux `tcp_fin`: pingpong mode)
            } else {
                self.now = true;
            }
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
            self.rcv_nxt = end;
            self.pending = true;
            self.on_in_order(now, seg, rto);
            if !self.out_of_order.is_empty() {
                self.close_gaps();
            }
        } else {
            self.pending = true;
            self.insert(start, end);
            if self.sack {
                self.window.on_segment(seg.len); // without SACK a window update would hide the duplicate ACK
            }
        }
        if std::mem::take(&mut self.fin_waits) {
            self.pingpong = true;
            self.dsack = None; // as Linux does
        }
        self.decide(now, seg, srtt);
    }

    /// Pure ACKs and data alike carry a timestamp to remember.
    #[inline]
    pub fn on_pure_ack(&mut self, seg: &Segment) {
        if self.timestamps && seg.has_ts && seg.seq <= self.rcv_wup {
            self.ts_recent = seg.ts_val;
        }
    }

    /// The application sent data: an exchange of requests and answers delays its ACKs (Linux pingpong mode).
    pub fn on_data_sent(&mut self, now: Time) {
        if self.ato > Span::ZERO && now.since(self.last_data) < self.ato && self.last_data > Time::ZERO {
            self.pingpong = true;
        }
    }

    fn on_in_order(&mut self, now: Time, seg: &Segment, rto: Span) {
        self.rcv_mss = self.rcv_mss.max(seg.len.min(self.segment_limit));
        self.window.measure_rtt(seg, self.ts_now);
        let grew = self.window.on_segment(seg.len);
        if self.explicit_reads {
            self.window.hold(self.received() - self.read, self.rcv_nxt);
        } else {
            self.window.on_drained(now, self.rcv_nxt, self.beyond());
        }
        if self.mode != DelayedAck::Linux {
            return;
        }
        if seg.len == 0 {
            return; // a FIN tells nothing of the pace
        }
        if self.ato == Span::ZERO {
            self.ato = self.delack_timeout;
            self.incr_quickack();
        } else {
            let gap = now.since(self.last_data);
            let min = self.delack_timeout;
            if gap <= min / 2 {
                self.ato = self.ato / 2 + min / 2;
            } else if gap < self.ato {
                self.ato = (self.ato / 2 + gap).min(rto);
            } else if gap > rto {
                self.incr_quickack();
            }
        }
        self.last_data = now;
        if grew {
            self.quick |= 1; // Linux `tcp_grow_window`
        }
    }

    /// Bytes from rcv_nxt to the end of what arrived out of order.
    fn beyond(&self) -> u64 {
        self.out_of_order.last().map_or(0, |r| r.1 - self.rcv_nxt)
    }

    fn incr_quickack(&mut self) {
        let quick =
            (self.window.offered() / (2 * self.rcv_mss.max(1) as u64)).clamp(2, MAX_QUICKACKS as u64) as u32;
        self.quick = self.quick.max(quick);
    }

    fn reports(&self) -> bool {
        self.sack && self.report_duplicates
    }

    fn enter_quickack(&mut self) {
        if self.mode == DelayedAck::Linux {
            self.incr_quickack();
            self.pingpong = false;
            self.ato = self.delack_timeout;
        }
    }

    fn close_gaps(&mut self) {
        let mut filled = 0;
        let arrived = self.rcv_nxt;
        while let Some(&(start, end)) = self.out_of_order.get(filled) {
            if start > self.rcv_nxt {
                break;
            }
            if start < arrived && self.dsack.is_none() && self.reports() {
                self.dsack = Some((start, end.min(arrived))); // it came a second time (Linux `tcp_ofo_queue`)
            }
            self.rcv_nxt = self.rcv_nxt.max(end);
            filled += 1;
        }
        self.out_of_order.drain(..filled);
        let rcv_nxt = self.rcv_nxt;
        self.sacks.retain(|b| b.1 > rcv_nxt);
        if self.out_of_order.is_empty() {
            self.now = true; // RFC 5681 §4.2: at once when a gap is filled
        }
    }

    fn insert(&mut self, start: u64, end: u64) {
        let i = self.out_of_order.partition_point(|r| r.1 < start);
        let mut j = i;
        let (mut s, mut e) = (start, end);
        while j < self.out_of_order.len() && self.out_of_order[j].0 <= end {
            let known = self.out_of_order[j];
            if known.0 <= start && end <= known.1 {
                self.dsack = self.reports().then_some((start, end));
                self.now = true;
            }
            s = s.min(known.0);
            e = e.max(known.1);
            j += 1;
        }
        if (i, j) == (i, i + 1) {
            self.out_of_order[i] = (s, e); // the common case: the run grows
        } else {
            self.out_of_order.splice(i..j, [(s, e)]);
        }
        // RFC 2018 §4: the block that holds the latest arrival goes first.
        let before = self.sacks.len();
        self.sacks.retain(|b| b.1 < s || b.0 > e);
        if self.sacks.len() == NUM_SACKS {
            if before == NUM_SACKS && self.compressed > 0 {
                self.early = Some(self.sack_list()); // Linux `tcp_sack_compress_send_ack`
                self.acknowledged();
            }
            self.sacks.pop();
        }
        self.sacks.insert(0, (s, e));
    }

    /// Linux `__tcp_ack_snd_check`, or the RFC's rules.
    fn decide(&mut self, now: Time, seg: &Segment, srtt: Span) {
        let gap = !self.out_of_order.is_empty();
        let full_frames = self.rcv_nxt - self.rcv_wup > self.rcv_mss as u64;
        match self.mode {
            DelayedAck::Off => self.now = true,
            DelayedAck::Rfc => {
                if full_frames
                    || gap
                    || self.dsack.is_some()
                    || self.rcv_nxt - self.rcv_wup >= 2 * self.rcv_mss as u64
                {
                    self.now = true;
                } else if self.delack_at == Time::NEVER {
                    self.delack_at = now + self.delack_timeout;
                }
            }
            DelayedAck::Linux => {
                // The application reads at once; a short pushed segment is acknowledged on that read.
                let pushed = seg.len > 0
                    && seg.len < self.rcv_mss
                    && seg.flags.has(ackclock_core::Flags::PSH)
                    && !gap
                    && !self.pingpong
                    && !self.explicit_reads;
                self.pushed |= seg.len > 0 && seg.flags.has(ackclock_core::Flags::PSH);
                if full_frames || (self.quick > 0 && !self.pingpong) || pushed {
                    self.now = true;
                }
                if self.now {
                    return;
                }
                if !gap {
                    self.delay(now, srtt);
                } else {
                    self.compress(now);
                }
            }
        }
    }

    fn delay(&mut self, now: Time, srtt: Span) {
        let mut ato = self.ato;
        if ato > self.delack_timeout {
            let mut max = if self.pingpong { DELACK_MAX } else { Span::from_ms(500) };
            if srtt > Span::ZERO {
                max = max.min(srtt.max(self.delack_timeout));
            }
            ato = ato.min(max);
        }
        let at = self.ticks.expiry(now, ato.min(DELACK_MAX));
        if self.delack_at != Time::NEVER && self.delack_at <= now + ato / 4 {
            self.now = true;
            return;
        }
        self.delack_at = self.delack_at.min(at);
    }

    fn compress(&mut self, now: Time) {
        if !self.compression || !self.sack || self.compressed >= COMPRESSED_MAX {
            self.now = true;
            return;
        }
        if self.compressed_nxt != self.rcv_nxt {
            self.compressed_nxt = self.rcv_nxt;
            self.dup_acks = 0;
        }
        if self.dup_acks < UNCOMPRESSED_DUPACKS {
            self.dup_acks += 1;
            self.now = true;
            return;
        }
        self.compressed += 1;
        if self.compress_soft == Time::NEVER {
            self.compress_soft = now + COMPRESS_DELAY;
            self.compress_hard = self.compress_soft + COMPRESS_SLACK;
        } else if now >= self.compress_soft {
            // A range timer fires with the first interrupt after its soft expiry; an arrival is one.
            self.now = true;
        }
    }

    /// Earliest deadline of this half.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.delack_at.min(self.compress_hard)
    }

    /// Timers that are due make an ACK due.
    pub fn on_timer(&mut self, now: Time, rto: Span) {
        if self.delack_at <= now {
            self.delack_at = Time::NEVER;
            if self.pending {
                if self.pingpong {
                    self.pingpong = false;
                    self.ato = self.delack_timeout;
                } else {
                    self.ato = (self.ato * 2).min(rto);
                }
                self.now = true;
            }
        }
        if self.compress_hard <= now {
            self.now = true;
        }
    }

    /// Whether a pure ACK must leave now.
    #[inline]
    pub fn ack_due(&self) -> bool {
        self.now || self.early.is_some() || self.exact.is_some_and(|e| e.before.is_some())
    }

    /// Make an ACK due now (handshake, challenge).
    pub fn ack_now(&mut self) {
        self.pending = true;
        self.now = true;
    }

    /// Fill in ACK number, window, SACK blocks and timestamp echo; the segment acknowledges, so nothing is due.
    #[inline]
    pub fn stamp(&mut self, seg: &mut Segment) {
        seg.ack = self.rcv_nxt;
        seg.wnd = self.window.advertise(self.rcv_nxt);
        if let Some(exact) = &mut self.exact {
            let before = exact.before.take();
            if before.map_or(exact.ce, |(_, ce)| ce) {
                seg.flags |= ackclock_core::Flags::ECE;
            }
            if let Some((ack, _)) = before {
                seg.ack = ack;
                if self.timestamps {
                    seg.ts_ecr = self.ts_recent;
                }
                return; // what is due for the latest arrival is still due
            }
        }
        if self.echo_marks {
            seg.flags |= ackclock_core::Flags::ECE;
        }
        if self.timestamps {
            seg.ts_ecr = self.ts_recent;
        }
        if let Some(early) = self.early.take() {
            seg.sack = early;
            return; // what is due for the latest arrival is still due
        }
        if self.sack && (!self.sacks.is_empty() || self.dsack.is_some()) {
            seg.sack = self.sack_list();
        }
        self.dsack = None;
        self.rcv_wup = self.rcv_nxt;
        if self.quick > 0 && self.pending {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = self.delack_timeout;
            }
        }
        self.pending = false;
        self.now = false;
        self.acknowledged();
    }

    /// An ACK leaves: nothing is held back any more.
    #[inline]
    fn acknowledged(&mut self) {
        self.delack_at = Time::NEVER;
        self.compressed = 0;
        self.compress_soft = Time::NEVER;
        self.compress_hard = Time::NEVER;
    }

    fn sack_list(&self) -> SackList {
        let most = if self.timestamps { 3 } else { 4 };
        let base = self.rcv_nxt as i64;
        let block =
            |b: &(u64, u64)| SackBlock { start: (b.0 as i64 - base) as i32, end: (b.1 as i64 - base) as i32 };
        let mut list = SackList::default();
        for b in self.dsack.iter().chain(self.sacks.iter()).take(most) {
            list.push(block(b));
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::Flags;

    /// RFC 8257 §3.2: an ACK speaks for segments of one kind only; what waited is acknowledged when the kind changes.
    #[test]
    fn exact_echo_never_mixes_marked_and_unmarked() {
        let config = Config {
            exact_ecn: true,
            delayed_ack: DelayedAck::Rfc,
            ..Config::profile("rfc").expect("known")
        };
        let mut receiver = Receiver::new(&config, Ticks::new(Span::ZERO, 0));
        receiver.on_syn();
        let smss = 1000;
        let mut acks = Vec::new();
        // marks of ten segments that arrive one by one
        for (i, ce) in
            [false, false, false, true, true, true, true, false, true, true].into_iter().enumerate()
        {
            let seg = Segment {
                seq: 1 + i as u64 * smss,
                len: smss as u32,
                flags: Flags::ACK,
                ..Segment::default()
            };
            receiver.on_marks(ce, false, true);
            receiver.on_data(Time(i as u64 * 1_000), &seg, Span::ZERO, Span::from_secs(1), 1);
            while receiver.ack_due() {
                let mut ack = Segment { flags: Flags::ACK, ..Segment::default() };
                receiver.stamp(&mut ack);
                acks.push((ack.ack / smss, ack.flags.has(Flags::ECE)));
            }
        }
        // in pairs while the mark stays, at once where it changes; the tenth waits for its timer
        let want = [(2, false), (3, false), (4, true), (6, true), (7, true), (8, false), (9, true)];
        assert_eq!(acks, want);
    }
}
