//! The sending half. [`Sender::on_ack`] is the page to read: the life of one ACK.
//!
//! Names are those of the RFCs and of Linux. Windows are counted in segments. What Linux decides in one function is
//! decided in one function here, so that a trace can be held against the kernel's ACK by ACK.

use ackclock_cc::{
    AckSample, CongestionControl, Controller, RecoveryAck, RecoveryEntry, RecoveryExit, RecoveryRule, Rule,
    Window,
};
use ackclock_core::trace::{CaState, Event, ExitCause, Record, RecoverySummary};
use ackclock_core::{Flags, FlowId, Segment, Span, Time};

use crate::config::{Config, Detection, EarlyRetransmit};
use crate::connection::Stats;
use crate::rtt::Rtt;
use crate::scoreboard::{Marked, Scoreboard, EVER_RETRANS, FIN, LOST, RETRANS, SACKED};
use crate::ticks::Ticks;

/// Linux TCP_RACK_RECOVERY_THRESH (RFC 8985 §6.2 step 4): recoveries without DSACK until reo_wnd shrinks again.
const REO_WND_PERSIST: u8 = 16;
/// Linux sysctl tcp_max_reordering.
const MAX_REORDERING: u32 = 300;
/// Linux TCP_TIMEOUT_MIN: floor of PTO slack and reordering timer, ticks.
const TIMEOUT_MIN_TICKS: u64 = 2;

/// What the one timer of a sender waits for (Linux icsk_pending).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimerKind {
    /// Nothing.
    None,
    /// Retransmission timeout.
    Rto,
    /// Tail loss probe.
    Tlp,
    /// RACK's reordering window.
    Reorder,
    /// Delayed early retransmit.
    Early,
}

/// What may leave besides new data (Linux REXMIT_*).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rexmit {
    None,
    /// Segments marked lost.
    Lost,
    /// New data first (F-RTO), then segments marked lost.
    New,
}

/// What one ACK did; filled in while it is processed.
#[derive(Default)]
struct AckWork {
    una_advanced: bool,
    data_acked: bool,
    data_sacked: bool,
    retrans_data_acked: bool,
    orig_sack_acked: bool,
    dsack: bool,
    dsack_tlp: bool,
    is_dup: bool,
    not_dup: bool,
    set_timer: bool,
    lost_retrans: bool,
    newly_acked: u32,
    newly_sacked: u32,
    first_ackt: Option<Time>,
    last_ackt: Option<Time>,
    first_sackt: Option<Time>,
    last_sackt: Option<Time>,
    /// Lowest segment number that shows reordering.
    reord: Option<u64>,
    /// Delivered count when the newest segment covered was sent.
    prior_delivered: Option<u64>,
    rtt: Option<Span>,
}

/// RACK's state (RFC 8985 §5.2; Linux `tp->rack`).
#[derive(Default, Debug)]
struct Rack {
    xmit: Time,
    end_seq: u64,
    rtt: Span,
    advanced: bool,
    reord_seen: bool,
    reo_wnd_mult: u32,
    reo_wnd_persist: u8,
    dsack_seen: bool,
    last_delivered: u64,
}

/// Sender state of one endpoint.
pub struct Sender {
    flow: FlowId,
    responder: bool,
    config: Config,
    ticks: Ticks,
    smss: u32,
    /// Window, controller and rule.
    pub window: Window,
    cc: Controller,
    rule: Rule,
    /// Outstanding segments.
    pub board: Scoreboard,
    /// Estimator.
    pub rtt: Rtt,

    /// First unacknowledged offset.
    pub snd_una: u64,
    /// Next offset to send.
    pub snd_nxt: u64,
    snd_wnd: u64,
    /// Offset after the last byte the application wrote.
    write_end: u64,
    fin_wanted: bool,
    fin_sent: bool,
    small_end: u64,
    sack: bool,

    /// Congestion state.
    pub ca_state: CaState,
    high_seq: u64,
    undo_marker: Option<u64>,
    undo_retrans: i64,
    retrans_stamp: Option<u32>,
    prior_ssthresh: u32,
    frto: bool,
    retransmits: u32,
    tlp_high_seq: Option<u64>,
    tlp_retrans: bool,
    rack: Rack,
    reordering: u32,
    delivered: u64,
    lost: u64,
    dup_acks: u32,
    /// Every segment below it was looked at by dupthresh/FACK marking.
    mark_ptr: u64,
    rexmit_hint: u64,
    high_rxt: u64,
    rescued: bool,

    timer: TimerKind,
    deadline: Time,

    rexmit: Rexmit,
    push: bool,
    pushed: bool,
    force_head: bool,
    force_probe: bool,
    burst: u32,

    is_cwnd_limited: bool,
    max_packets_out: u32,
    cwnd_usage_seq: u64,
    cwnd_used: u32,
    cwnd_stamp: Time,
    last_sent: Time,

    /// Running sums.
    pub stats: Stats,
    /// Per-ACK trace, when wanted.
    pub records: Option<Box<Vec<Record>>>,
    /// Finished episodes of recovery.
    pub recoveries: Vec<RecoverySummary>,
    episode: Option<Box<RecoverySummary>>,
    /// Gave up.
    pub failed: bool,
}

impl Sender {
    /// A sender before its handshake.
    pub fn new(flow: FlowId, responder: bool, config: &Config, ticks: Ticks) -> Sender {
        let cc = Controller::by_name_with(&config.congestion_control, config.beta_permille, config.hystart)
            .expect("invariant: the caller checked the controller's name");
        let rule = Rule::by_name(&config.recovery).expect("invariant: the caller checked the rule's name");
        let rtt =
            Rtt::new(config.rto_style, config.initial_rto, config.min_rto, config.max_rto, config.tick());
        Sender {
            flow,
            responder,
            ticks,
            smss: config.payload(),
            window: Window::new(config.iw),
            cc,
            rule,
            board: Scoreboard::default(),
            rtt,
            snd_una: 1,
            snd_nxt: 1,
            snd_wnd: 0,
            write_end: 1,
            fin_wanted: false,
            fin_sent: false,
            small_end: 0,
            sack: config.sack,
            ca_state: CaState::Open,
            high_seq: 0,
            undo_marker: None,
            undo_retrans: 0,
            retrans_stamp: None,
            prior_ssthresh: 0,
            frto: false,
            retransmits: 0,
            tlp_high_seq: None,
            tlp_retrans: false,
            rack: Rack { reo_wnd_mult: 1, ..Rack::default() },
            reordering: config.dup_thresh,
            delivered: 0,
            lost: 0,
            dup_acks: 0,
            mark_ptr: 0,
            rexmit_hint: 0,
            high_rxt: 0,
            rescued: false,
            timer: TimerKind::None,
            deadline: Time::NEVER,
            rexmit: Rexmit::None,
            push: false,
            pushed: false,
            force_head: false,
            force_probe: false,
            burst: 0,
            is_cwnd_limited: false,
            max_packets_out: 0,
            cwnd_usage_seq: 1,
            cwnd_used: 0,
            cwnd_stamp: Time::ZERO,
            last_sent: Time::ZERO,
            stats: Stats::default(),
            records: None,
            recoveries: Vec::new(),
            episode: None,
            failed: false,
            config: config.clone(),
        }
    }

    /// The handshake is over: what both sides can do, the peer's window, the segment size.
    pub fn established(&mut self, now: Time, wnd: u32, sack: bool, smss: u32, rtt: Option<Span>) {
        self.snd_wnd = wnd as u64;
        self.sack &= sack;
        self.smss = self.smss.min(smss);
        self.cwnd_stamp = now;
        self.last_sent = now;
        match rtt {
            Some(rtt) => {
                self.rtt.update_min(rtt);
                self.rtt.sample(rtt, self.snd_una, self.snd_nxt);
            }
            None => self.rtt.fall_back(self.config.fallback_rto),
        }
        self.push = true;
    }

    /// More than one SYN was lost: start from one segment (RFC 5681 §3.1; Linux `tcp_init_transfer`).
    pub fn start_from_one(&mut self) {
        self.window.cwnd = 1;
    }

    /// The application wrote `bytes`.
    pub fn write(&mut self, bytes: u64) {
        self.write_end = self.write_end.saturating_add(bytes);
        self.push = true;
    }
    /// The application has nothing more to write than what was sent.
    pub fn stop_writing(&mut self) {
        self.write_end = self.snd_nxt;
    }
    /// FIN after all written data.
    pub fn close(&mut self) {
        self.fin_wanted = true;
        self.push = true;
    }
    /// Whether our FIN was acknowledged.
    pub fn fin_acked(&self) -> bool {
        self.fin_sent && self.board.packets_out() == 0
    }
    /// Whether a FIN was sent.
    pub fn fin_sent(&self) -> bool {
        self.fin_sent
    }
    /// Payload bytes cumulatively acknowledged.
    pub fn acked(&self) -> u64 {
        self.snd_una - 1 - self.fin_acked() as u64
    }
    /// Deadline of the timer.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.deadline
    }
    /// RACK's reordering degree, for TCP_INFO.
    pub fn reordering(&self) -> u32 {
        self.reordering
    }
    /// Peer's window.
    pub fn snd_wnd(&self) -> u64 {
        self.snd_wnd
    }
    /// Peer's window on its SYN.
    pub fn set_snd_wnd(&mut self, wnd: u32) {
        self.snd_wnd = wnd as u64;
    }
    fn note_hystart_exit(&mut self) {
        if let Some((_, cwnd)) = self.cc.hystart_exit() {
            self.stats.hystart_exits += 1;
            self.stats.hystart_exit_cwnd = cwnd;
        }
    }
    /// Payload bytes that the application wrote so far.
    pub fn written(&self) -> u64 {
        self.write_end - 1
    }

    /// Value of the timestamp clock: 1 ms, never zero.
    #[inline]
    pub fn ts(&self, now: Time) -> u32 {
        ((now.0 + self.config.tick_phase) / 1_000_000) as u32 + 1
    }

    // ---------------------------------------------------------------------------------------------- one ACK

    /// The life of one ACK: validate, scoreboard, RTT, loss detection and state, exactly one window rule, timers,
    /// one trace record. (Linux `tcp_ack`.)
    pub fn on_ack(&mut self, now: Time, seg: &Segment) {
        if self.board.packets_out() == 0 && seg.ack == self.snd_una {
            self.snd_wnd = seg.wnd as u64; // a receiver's half: nothing outstanding, nothing to learn
            self.push |= self.has_new_data();
            return;
        }
        if seg.ack > self.snd_nxt {
            return; // acknowledges what was never sent
        }
        self.stats.acks_received += 1;
        let (prior_una, prior_delivered, prior_lost) = (self.snd_una, self.delivered, self.lost);
        let prior_pipe = self.board.pipe();
        let cwnd_before = self.window.cwnd;
        let mut w = AckWork::default();
        if seg.ack > self.snd_una {
            self.retransmits = 0;
        }
        if seg.ack >= self.snd_una {
            w.not_dup = seg.len > 0 || seg.wnd as u64 != self.snd_wnd;
            self.snd_wnd = seg.wnd as u64;
        }

        let prior_sacked_end = self.board.sacked_end();
        if !seg.sack.is_empty() && self.sack {
            self.process_sack(now, seg, prior_una, &mut w);
        }
        self.clean_rtx_queue(now, seg, prior_sacked_end, &mut w);
        self.update_rtt(now, seg, &mut w);
        let sample = self.sample(now, prior_pipe, &w);
        let ssthresh = self.window.ssthresh;
        self.cc.on_sample(&mut self.window, &sample);
        if self.window.ssthresh != ssthresh {
            self.note_hystart_exit();
        }

        if self.tlp_high_seq.is_some() {
            self.process_tlp_ack(now, seg.ack, &w);
        }
        w.is_dup = w.data_sacked || (!w.una_advanced && !w.not_dup && self.board.packets_out() > 0);
        self.rexmit = Rexmit::None;
        let dubious =
            w.data_sacked || w.dsack || !(w.not_dup || w.data_acked) || self.ca_state != CaState::Open;
        let mut entering = false;
        if dubious && (self.board.packets_out() > 0 || w.una_advanced || self.ca_state != CaState::Open) {
            entering = self.fast_retrans_alert(now, seg, prior_una, &mut w);
        }
        if w.set_timer {
            self.set_xmit_timer(now);
        }

        let delivered = (self.delivered - prior_delivered) as u32;
        let newly_lost = (self.lost - prior_lost) as u32;
        self.control_window(&sample, delivered, newly_lost, entering, &w);
        self.update_reo_wnd(&w);
        self.push = true;
        self.burst = 0;
        if let Some(e) = &mut self.episode {
            e.acks += 1;
        }
        if self.records.is_some() {
            self.record_ack(now, seg, cwnd_before, prior_pipe, prior_una, delivered, newly_lost, &w);
        }
    }

    /// Apply SACK blocks (RFC 2018, RFC 2883 for a DSACK in front).
    fn process_sack(&mut self, now: Time, seg: &Segment, prior_una: u64, w: &mut AckWork) {
        let abs = |edge: i32| (seg.ack as i64 + edge as i64).max(0) as u64;
        for (i, block) in seg.sack.as_slice().iter().enumerate() {
            let (start, end) = (abs(block.start), abs(block.end));
            if i == 0 && self.is_dsack(seg, start, end) {
                self.on_dsack(start, end, prior_una, w);
                continue;
            }
            if start >= end || end > self.snd_nxt || end <= self.snd_una {
                continue;
            }
            let a = self.board.at_or_after(start.max(self.snd_una), self.smss);
            let mut b = self.board.at_or_after(end, self.smss);
            if b > a && self.board.get(b - 1).end > end {
                b -= 1; // a block that ends within a segment does not cover it
            }
            self.sack_range(now, a, b, w);
        }
        if let (Some(reord), true) = (w.reord, self.ca_state != CaState::Loss || self.undo_marker.is_some()) {
            self.check_reordering(reord, self.board.sacked_end());
            w.reord = None;
        }
    }

    fn is_dsack(&self, seg: &Segment, start: u64, end: u64) -> bool {
        if start < seg.ack {
            return true;
        }
        let second = seg.sack.as_slice().get(1);
        second.is_some_and(|s| {
            let base = seg.ack as i64;
            start as i64 >= base + s.start as i64 && end as i64 <= base + s.end as i64
        })
    }

    fn on_dsack(&mut self, start: u64, end: u64, prior_una: u64, w: &mut AckWork) {
        w.dsack = true;
        self.stats.dsacks_received += 1;
        self.rack.dsack_seen = true;
        if self.tlp_retrans && self.tlp_high_seq == Some(end) {
            w.dsack_tlp = true;
        }
        let Some(marker) = self.undo_marker else { return };
        if self.undo_retrans > 0 && end > marker {
            let segments = ((end - start).div_ceil(self.smss as u64)).max(1) as i64;
            if end <= prior_una {
                self.undo_retrans -= 1;
            } else {
                self.undo_retrans = (self.undo_retrans - segments).max(0);
            }
        }
        if start >= self.snd_una {
            let (a, b) = (self.board.at_or_after(start, self.smss), self.board.at_or_after(end, self.smss));
            for n in a..b {
                if self.board.get(n).is(RETRANS) {
                    self.board.get_mut(n).flags &= !RETRANS;
                    self.board.retrans_out -= 1;
                }
            }
        }
    }

    fn sack_range(&mut self, now: Time, a: u64, b: u64, w: &mut AckWork) {
        let (rack, rtt, high_seq, prior_end) =
            (&mut self.rack, &self.rtt, self.high_seq, self.board.sacked_end());
        let mut delivered = 0u32;
        self.board.add_sacked_range(a, b, |board, n| {
            let s = *board.get(n);
            if !board.mark_sacked(n) {
                return;
            }
            rack_advance(rack, rtt, now, s.is(EVER_RETRANS), s.end, s.xmit);
            if !s.is(EVER_RETRANS) {
                if n < prior_end {
                    w.reord = Some(w.reord.map_or(n, |r| r.min(n)));
                }
                w.orig_sack_acked |= s.end <= high_seq;
                w.first_sackt.get_or_insert(s.xmit);
                w.last_sackt = Some(s.xmit);
            }
            w.prior_delivered = Some(w.prior_delivered.unwrap_or(0).max(s.delivered as u64));
            delivered += 1;
        });
        if delivered > 0 {
            w.data_sacked = true;
            w.newly_sacked += delivered;
            self.delivered += delivered as u64;
        }
    }

    /// Remove what the ACK covers cumulatively (Linux `tcp_clean_rtx_queue`).
    fn clean_rtx_queue(&mut self, now: Time, seg: &Segment, prior_sacked_end: u64, w: &mut AckWork) {
        if seg.ack > self.snd_una {
            w.una_advanced = true;
        }
        let mut reord: Option<u64> = None;
        let mut acked_all = true;
        while let Some(head) = self.board.head() {
            if head.end > seg.ack {
                acked_all = false;
                break;
            }
            let n = self.board.first;
            let s = self.board.pop_head();
            w.newly_acked += 1;
            w.data_acked = true;
            if s.is(EVER_RETRANS) {
                w.retrans_data_acked |= s.is(RETRANS);
            } else if !s.is(SACKED) {
                w.first_ackt.get_or_insert(s.xmit);
                w.last_ackt = Some(s.xmit);
                reord.get_or_insert(n);
                w.orig_sack_acked |= s.end <= self.high_seq;
            }
            if !s.is(SACKED) && self.sack {
                self.delivered += 1;
                w.prior_delivered = Some(w.prior_delivered.unwrap_or(0).max(s.delivered as u64));
                let spurious = s.is(EVER_RETRANS) && self.echo_before(seg, self.ts(s.xmit));
                if !spurious {
                    rack_advance(&mut self.rack, &self.rtt, now, s.is(EVER_RETRANS), s.end, s.xmit);
                }
            }
        }
        self.snd_una = self.snd_una.max(seg.ack);
        if w.newly_acked > 0 {
            w.set_timer = true;
            if !self.sack {
                self.remove_emulated_sacks(w.newly_acked);
            } else if let Some(r) = reord {
                if r < prior_sacked_end {
                    self.check_reordering(r, prior_sacked_end);
                }
            }
        } else if let (Some(first), false, Some(head)) = (w.first_sackt, acked_all, self.board.head()) {
            // An RTT sample of data sent after the head's last transmission must not put the timeout off for ever.
            w.set_timer = now.since(first) > now.since(head.xmit);
        }
    }

    /// RTT samples: the oldest segment newly acknowledged, else SACKed, else the timestamp (Linux
    /// `tcp_ack_update_rtt`; Karn's rule).
    fn update_rtt(&mut self, now: Time, seg: &Segment, w: &mut AckWork) {
        let (mut rtt, mut newest) = (None, None);
        if let (Some(first), Some(last), false) = (w.first_ackt, w.last_ackt, w.retrans_data_acked) {
            rtt = Some(now - first);
            newest = Some(now - last);
        }
        if let (Some(first), Some(last)) = (w.first_sackt, w.last_sackt) {
            rtt = rtt.or(Some(now - first));
            newest = Some(now - last);
        }
        if rtt.is_none() && w.data_acked && seg.has_ts && seg.ts_ecr > 0 {
            let ms = self.ts(now).saturating_sub(seg.ts_ecr);
            rtt = Some(Span::from_ms(ms as u64).max(Span::from_us(1)));
            newest = rtt;
        }
        w.rtt = newest;
        if let Some(rtt) = rtt {
            if let Some(newest) = newest {
                self.rtt.update_min(newest);
            }
            self.rtt.sample(rtt, self.snd_una, self.snd_nxt);
            self.stats.rtt_sum_ns += rtt.0 as u128;
            self.stats.rtt_samples += 1;
        }
    }

    fn sample(&self, now: Time, prior_in_flight: u32, w: &AckWork) -> AckSample {
        AckSample {
            now,
            acked: 0,
            rtt: w.rtt,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            prior_in_flight,
            snd_una: self.snd_una,
            snd_nxt: self.snd_nxt,
            cwnd_limited: self.cwnd_limited(),
            paced: false,
            smss: self.smss,
        }
    }

    /// The congestion state machine (Linux `tcp_fastretrans_alert`). True if this ACK enters recovery.
    fn fast_retrans_alert(&mut self, now: Time, seg: &Segment, prior_una: u64, w: &mut AckWork) -> bool {
        let num_dupack = (!w.una_advanced && !w.not_dup) as u32;
        if !self.sack && self.board.packets_out() == 0 {
            self.board.set_emulated_sacked(0);
        }
        // States that end when high_seq is acknowledged.
        if self.ca_state == CaState::Open {
            self.retrans_stamp = None;
        } else if self.snd_una >= self.high_seq {
            match self.ca_state {
                CaState::Cwr if self.snd_una != self.high_seq => {
                    self.end_reduction(now, ExitCause::FullAck);
                    self.ca_state = CaState::Open;
                }
                CaState::Recovery => {
                    if !self.sack {
                        self.board.set_emulated_sacked(0);
                    }
                    let undone = self.try_undo_recovery(now, seg);
                    if !undone && self.holds_for_non_sack() {
                        return false;
                    }
                    if !undone {
                        self.end_reduction(now, ExitCause::FullAck);
                    }
                    self.ca_state = CaState::Open;
                }
                _ => {}
            }
        }
        match self.ca_state {
            CaState::Recovery => {
                if !w.una_advanced {
                    self.add_emulated_sack(num_dupack);
                } else if self.try_undo_partial(now, seg, w, prior_una) {
                    return false;
                }
                if self.try_undo_dsack(now) {
                    self.try_keep_open();
                }
                self.identify_loss(now, w);
                if self.ca_state != CaState::Recovery {
                    if !self.time_to_recover() {
                        return false;
                    }
                    self.enter_recovery(now, w);
                    self.rexmit = Rexmit::Lost;
                    return true;
                }
            }
            CaState::Loss => {
                self.process_loss(now, seg, num_dupack, w);
                self.identify_loss(now, w);
                if !(self.ca_state == CaState::Open || w.lost_retrans) || self.ca_state == CaState::Loss {
                    return false;
                }
                return self.try_enter(now, w);
            }
            _ => {
                if !self.sack {
                    if w.una_advanced {
                        self.board.set_emulated_sacked(0);
                    }
                    self.add_emulated_sack(num_dupack);
                }
                self.count_dup_acks(w);
                if self.ca_state <= CaState::Disorder {
                    self.try_undo_dsack(now);
                }
                self.identify_loss(now, w);
                return self.try_enter(now, w);
            }
        }
        self.rexmit = Rexmit::Lost;
        false
    }

    fn try_enter(&mut self, now: Time, w: &AckWork) -> bool {
        if !self.time_to_recover() {
            if self.ca_state != CaState::Cwr {
                self.try_keep_open();
            }
            return false;
        }
        self.enter_recovery(now, w);
        self.rexmit = Rexmit::Lost;
        true
    }

    /// RFC 6675 §2, §5: a duplicate ACK reports something new; a cumulative advance resets the count.
    fn count_dup_acks(&mut self, w: &AckWork) {
        if w.una_advanced {
            self.dup_acks = 0;
        }
        if w.data_sacked {
            self.dup_acks += 1;
        }
    }

    /// Exactly one rule sets the window (Linux `tcp_cong_control`).
    fn control_window(
        &mut self,
        sample: &AckSample,
        delivered: u32,
        newly_lost: u32,
        entering: bool,
        w: &AckWork,
    ) {
        if matches!(self.ca_state, CaState::Recovery | CaState::Cwr) {
            self.window.cwnd = self.rule.on_ack(&RecoveryAck {
                delivered,
                pipe: self.board.pipe(),
                cwnd: self.window.cwnd,
                ssthresh: self.window.ssthresh,
                una_advanced: w.una_advanced,
                newly_lost,
                entering,
                progress: w.data_acked || w.data_sacked || w.dsack || (!self.sack && w.is_dup),
            });
        } else {
            let reordered = self.reordering > self.config.dup_thresh;
            let grows = if reordered { w.data_acked || w.data_sacked } else { w.data_acked };
            if grows && delivered > 0 {
                self.cc.on_ack(&mut self.window, &AckSample { acked: delivered, ..*sample });
                self.cwnd_stamp = sample.now;
            }
        }
    }

    // ------------------------------------------------------------------------------------------ loss detection

    /// Mark what this ACK shows to be lost.
    fn identify_loss(&mut self, now: Time, w: &mut AckWork) {
        if self.board.packets_out() == 0 {
            return;
        }
        let prior_retrans = self.board.retrans_out;
        if !self.sack {
            self.mark_newreno(w.una_advanced);
        } else {
            match self.config.detection {
                Detection::Rack => {
                    if self.rack.advanced {
                        self.rack.advanced = false;
                        if let Some(wait) = self.rack_detect(now) {
                            let slack = self.ticks.span(TIMEOUT_MIN_TICKS);
                            self.arm(
                                TimerKind::Reorder,
                                self.ticks.expiry(now, (wait + slack).min(self.rtt.rto())),
                            );
                            w.set_timer = false;
                        }
                    }
                }
                Detection::Fack => {
                    let fackets = self.board.sacked_end() - self.board.first;
                    if self.board.sacked_out > 0
                        && (fackets > self.reordering as u64 || self.board.lost_out > 0)
                    {
                        let count = fackets.saturating_sub(self.reordering as u64).max(1);
                        self.mark_up_to(self.board.first + count);
                    }
                    if self.ca_state == CaState::Recovery {
                        self.mark_lost_retransmits();
                    }
                }
                Detection::Dupthresh => {
                    if let Some(top) = self.board.kth_highest_sacked(self.reordering as u64) {
                        self.mark_up_to(top);
                    } else if self.dup_acks >= self.reordering && self.ca_state < CaState::Recovery {
                        self.mark_up_to(self.board.first + 1);
                    }
                }
            }
        }
        self.early_retransmit(now);
        w.lost_retrans |= prior_retrans > self.board.retrans_out;
    }

    fn time_to_recover(&self) -> bool {
        self.board.lost_out > 0
    }

    /// RACK (RFC 8985 §6.2 step 5). Returns how long to wait for the newest segment that may yet be reordered.
    fn rack_detect(&mut self, now: Time) -> Option<Span> {
        let reo_wnd = self.reo_wnd();
        let mut wait = Span::ZERO;
        let mut cursor = self.board.oldest_sent();
        while let Some(n) = cursor {
            let s = *self.board.get(n);
            cursor = self.board.sent_after(n);
            if !sent_after(self.rack.xmit, self.rack.end_seq, s.xmit, s.end) {
                break;
            }
            let due = s.xmit + self.rack.rtt + reo_wnd;
            if due <= now {
                self.mark_lost(n);
            } else {
                wait = wait.max(due - now);
            }
        }
        (wait > Span::ZERO).then_some(wait)
    }

    /// RFC 8985 §6.2 step 4; Linux `tcp_rack_reo_wnd`.
    fn reo_wnd(&self) -> Span {
        let at_dupthresh = self.board.sacked_out >= self.reordering;
        if !self.rack.reord_seen && (self.ca_state >= CaState::Recovery || at_dupthresh) {
            return Span::ZERO;
        }
        ((self.rtt.min_rtt() / 4) * self.rack.reo_wnd_mult as u64).min(self.rtt.srtt())
    }

    fn update_reo_wnd(&mut self, w: &AckWork) {
        if !self.rack.dsack_seen && self.rack.reo_wnd_persist > 0 {
            return;
        }
        let Some(prior_delivered) = w.prior_delivered else { return };
        if prior_delivered < self.rack.last_delivered {
            self.rack.dsack_seen = false;
        }
        if self.rack.dsack_seen {
            self.rack.reo_wnd_mult = (self.rack.reo_wnd_mult + 1).min(255);
            self.rack.dsack_seen = false;
            self.rack.last_delivered = self.delivered;
            self.rack.reo_wnd_persist = REO_WND_PERSIST;
        } else if self.rack.reo_wnd_persist == 0 {
            self.rack.reo_wnd_mult = 1;
        }
    }

    /// Mark every un-SACKed segment below number `end`; the mark pointer makes each be looked at once.
    fn mark_up_to(&mut self, end: u64) {
        let from = self.mark_ptr.max(self.board.first);
        for n in from..end.min(self.board.next) {
            if !self.board.get(n).is(LOST | SACKED) {
                self.mark_lost(n);
            }
        }
        self.mark_ptr = self.mark_ptr.max(end);
    }

    /// Lost retransmissions under FACK: something sent after the retransmission was SACKed (Linux 2.6.3x-4.x
    /// `tcp_mark_lost_retrans`; no allowance for reordering).
    fn mark_lost_retransmits(&mut self) {
        let sacked_end = self.board.sacked_end();
        let mut cursor = self.board.oldest_sent();
        while let Some(n) = cursor {
            let s = *self.board.get(n);
            cursor = self.board.sent_after(n);
            if s.is(RETRANS) {
                let next = self.board.first
                    + s.next_at_rexmit.wrapping_sub(self.board.first as u32) as i32 as i64 as u64;
                if (next as i64) >= sacked_end as i64 {
                    break;
                }
                if s.is(LOST) {
                    self.mark_lost(n);
                }
            } else if n >= sacked_end {
                break;
            }
        }
    }

    /// NewReno (RFC 6582; Linux `tcp_newreno_mark_lost`): the head, at dupthresh and on every partial ACK.
    fn mark_newreno(&mut self, una_advanced: bool) {
        let below = self.ca_state < CaState::Recovery && self.board.sacked_out >= self.reordering;
        let partial = self.ca_state == CaState::Recovery && una_advanced;
        if (below || partial) && !self.board.get(self.board.first).is(LOST) {
            self.mark_lost(self.board.first);
        }
    }

    /// RFC 5827, at once or a quarter of the RTT later.
    fn early_retransmit(&mut self, now: Time) {
        let outstanding = self.board.packets_out();
        let applies = self.config.early_retransmit != EarlyRetransmit::Off
            && self.ca_state <= CaState::Disorder
            && (2..=3).contains(&outstanding)
            && self.board.lost_out == 0
            && self.board.sacked_out + 1 >= outstanding
            && !self.has_new_data();
        if !applies {
            return;
        }
        if self.config.early_retransmit == EarlyRetransmit::Rfc5827 {
            self.mark_first_unsacked();
        } else if self.timer != TimerKind::Early {
            let delay = (self.rtt.srtt() / 4).max(self.ticks.span(TIMEOUT_MIN_TICKS));
            self.arm(TimerKind::Early, self.ticks.expiry(now, delay));
        }
    }

    fn mark_first_unsacked(&mut self) {
        if let Some(n) = (self.board.first..self.board.next).find(|&n| !self.board.get(n).is(SACKED)) {
            self.mark_lost(n);
        }
    }

    fn mark_lost(&mut self, n: u64) {
        let marked = self.board.mark_lost(n);
        if marked == Marked::No {
            return;
        }
        self.lost += 1;
        self.rexmit_hint = self.rexmit_hint.min(n);
        if marked == Marked::LostAgain {
            self.stats.lost_retransmits += 1;
        }
        if let Some(e) = &mut self.episode {
            e.losses += (marked == Marked::Lost) as u32;
            e.lost_retransmits += (marked == Marked::LostAgain) as u32;
        }
    }

    fn check_reordering(&mut self, low: u64, sacked_end: u64) {
        if low >= sacked_end {
            return;
        }
        let metric = (sacked_end - low) as u32;
        if metric > self.reordering && self.config.detection != Detection::Dupthresh {
            self.reordering = metric.min(MAX_REORDERING);
        }
        self.rack.reord_seen = true;
    }

    // Emulation of SACK counts from duplicate ACKs (Linux `tcp_add_reno_sack` and kin; RFC 9937 §6.2 without SACK).

    fn add_emulated_sack(&mut self, num_dupack: u32) {
        if self.sack || num_dupack == 0 {
            return;
        }
        let prior = self.board.sacked_out;
        let holes = self.board.lost_out.max(1).min(self.board.packets_out());
        let sacked = (prior + num_dupack).min(self.board.packets_out() - holes);
        self.board.set_emulated_sacked(sacked);
        self.delivered += sacked.saturating_sub(prior) as u64;
    }

    fn remove_emulated_sacks(&mut self, acked: u32) {
        let sacked = self.board.sacked_out;
        self.delivered += acked.saturating_sub(sacked).max(1) as u64;
        let left = sacked.saturating_sub(acked - 1);
        let holes = self.board.lost_out.max(1).min(self.board.packets_out());
        self.board.set_emulated_sacked(left.min(self.board.packets_out() - holes));
    }

    /// Without SACK the state is held until something above high_seq is acknowledged (RFC 6582 §3.2 step 1).
    fn holds_for_non_sack(&self) -> bool {
        !self.sack && self.snd_una == self.high_seq
    }

    // ----------------------------------------------------------------------------------- reductions and undo

    /// ssthresh as it would be remembered (Linux `tcp_current_ssthresh`).
    fn current_ssthresh(&self) -> u32 {
        if matches!(self.ca_state, CaState::Recovery | CaState::Cwr) {
            return self.window.ssthresh;
        }
        let cwnd = self.window.cwnd;
        self.window.ssthresh.max((cwnd >> 1) + (cwnd >> 2))
    }

    fn init_undo(&mut self) {
        self.undo_marker = Some(self.snd_una);
        self.undo_retrans = self.board.retrans_out as i64;
        if self.tlp_high_seq.is_some() && self.tlp_retrans {
            self.undo_retrans += 1;
        }
        if self.undo_retrans == 0 {
            self.undo_retrans = -1; // zero would mean: everything sent again was reported needless
        }
    }

    fn enter_recovery(&mut self, now: Time, w: &AckWork) {
        let pipe = self.board.pipe();
        let cwnd = self.window.cwnd;
        self.init_undo();
        if !matches!(self.ca_state, CaState::Cwr | CaState::Recovery) {
            self.prior_ssthresh = self.current_ssthresh();
            self.init_reduction(w.newly_acked, w.newly_sacked);
        }
        self.ca_state = CaState::Recovery;
        self.stats.recoveries += 1;
        self.high_rxt = self.board.first;
        self.rescued = false;
        self.force_head = self.rule.forces_first_retransmit();
        self.episode = Some(Box::new(RecoverySummary {
            flow: self.flow,
            responder: self.responder,
            t_enter: now,
            t_exit: now,
            pipe_enter: pipe,
            ssthresh: self.window.ssthresh,
            cwnd_enter: cwnd,
            losses: self.board.lost_out,
            retransmits: 0,
            lost_retransmits: 0,
            max_burst: 0,
            acks: 0,
            cwnd_before_exit: 0,
            cwnd_after_exit: 0,
            pipe_exit: 0,
            srtt: self.rtt.srtt(),
            cause: ExitCause::RunEnd,
        }));
        if self.records.is_some() {
            self.record(now, Event::Enter, self.snd_una, 0, 0);
        }
    }

    fn init_reduction(&mut self, newly_acked: u32, newly_sacked: u32) {
        let flight = self.board.packets_out();
        self.high_seq = self.snd_nxt;
        self.tlp_high_seq = None;
        self.window.cwnd_cnt = 0;
        self.window.prior_cwnd = self.window.cwnd;
        let cwnd = self.window.cwnd;
        self.window.ssthresh = self.cc.ssthresh(&self.window, flight);
        self.rule.enter(&RecoveryEntry {
            cwnd,
            ssthresh: self.window.ssthresh,
            flight_size: flight,
            sacked: self.board.sacked_out,
            newly_sacked,
            newly_acked,
            min_cwnd: self.cc.min_cwnd(self.window.ssthresh),
        });
    }

    /// The reduction is complete (Linux `tcp_end_cwnd_reduction`; the rule says with which cwnd).
    fn end_reduction(&mut self, now: Time, cause: ExitCause) {
        let before = self.window.cwnd;
        if self.window.ssthresh < Window::INFINITE {
            let exit = RecoveryExit {
                cwnd: before,
                ssthresh: self.window.ssthresh,
                pipe: self.board.pipe(),
                undone: false,
            };
            self.window.cwnd = self.rule.exit(&exit).max(1);
        }
        self.cwnd_stamp = now;
        self.undo_marker = None;
        self.finish_episode(now, before, cause);
    }

    fn finish_episode(&mut self, now: Time, cwnd_before: u32, cause: ExitCause) {
        let Some(mut e) = self.episode.take() else { return };
        e.t_exit = now;
        e.cwnd_before_exit = cwnd_before;
        e.cwnd_after_exit = self.window.cwnd;
        e.pipe_exit = self.board.pipe();
        e.cause = cause;
        self.recoveries.push(*e);
        if self.records.is_some() {
            self.record(now, Event::Exit, self.snd_una, 0, 0);
        }
    }

    /// The run is over: an episode under way gets its line too.
    pub fn finish(&mut self, now: Time) {
        self.finish_episode(now, self.window.cwnd, ExitCause::RunEnd);
    }

    /// TSecr older than `stamp`: the original arrived (Eifel, RFC 3522).
    fn echo_before(&self, seg: &Segment, stamp: u32) -> bool {
        seg.has_ts && seg.ts_ecr > 0 && seg.ts_ecr < stamp
    }

    /// Linux `tcp_packet_delayed`.
    fn packet_delayed(&self, seg: &Segment) -> bool {
        match self.retrans_stamp {
            Some(stamp) => self.echo_before(seg, stamp),
            None => true,
        }
    }

    fn may_undo(&self, seg: &Segment) -> bool {
        self.config.undo && self.undo_marker.is_some() && (self.undo_retrans == 0 || self.packet_delayed(seg))
    }

    fn undo_reduction(&mut self, now: Time, unmark: bool) {
        if unmark {
            self.board.unmark_all_lost();
            self.rexmit_hint = self.board.next;
            self.mark_ptr = self.board.first;
        }
        let before = self.window.cwnd;
        if self.prior_ssthresh > 0 {
            self.window.cwnd = self.cc.undo_cwnd(&self.window);
            self.window.ssthresh = self.window.ssthresh.max(self.prior_ssthresh);
        }
        self.cwnd_stamp = now;
        self.undo_marker = None;
        self.rack.advanced = true;
        self.stats.undos += 1;
        if self.ca_state == CaState::Recovery {
            self.finish_episode(now, before, ExitCause::Undo);
        }
        if self.records.is_some() {
            self.record(now, Event::Undo, self.snd_una, 0, 0);
        }
    }

    /// At the end of recovery: true if it was undone.
    fn try_undo_recovery(&mut self, now: Time, seg: &Segment) -> bool {
        if self.may_undo(seg) {
            self.undo_reduction(now, false);
            return true;
        }
        self.rack.reo_wnd_persist = self.rack.reo_wnd_persist.saturating_sub(1);
        false
    }

    /// A partial ACK that the original filled: stop retransmitting, undo when nothing sent again is in flight.
    fn try_undo_partial(&mut self, now: Time, seg: &Segment, w: &AckWork, _prior_una: u64) -> bool {
        if !(self.config.undo && w.una_advanced && self.undo_marker.is_some() && self.packet_delayed(seg)) {
            return false;
        }
        self.rack.reord_seen = true;
        if self.board.retrans_out > 0 {
            return true;
        }
        self.undo_reduction(now, true);
        self.ca_state = CaState::Open;
        self.try_keep_open();
        false
    }

    /// Every retransmission was reported needless by DSACK.
    fn try_undo_dsack(&mut self, now: Time) -> bool {
        if self.config.undo && self.undo_marker.is_some() && self.undo_retrans == 0 {
            self.rack.reo_wnd_persist = REO_WND_PERSIST.min(self.rack.reo_wnd_persist + 1);
            self.undo_reduction(now, false);
            self.ca_state = CaState::Open;
            return true;
        }
        false
    }

    fn try_undo_loss(&mut self, now: Time, seg: &Segment, frto: bool) -> bool {
        if !(self.config.undo && self.undo_marker.is_some() && frto) && !self.may_undo(seg) {
            return false;
        }
        self.undo_reduction(now, true);
        self.stats.spurious_rtos += frto as u64;
        self.retransmits = 0;
        if frto || self.sack {
            self.ca_state = CaState::Open;
        }
        true
    }

    /// An ACK in Loss: F-RTO (RFC 5682 §3.1 with SACK), undo, or the end of the episode.
    fn process_loss(&mut self, now: Time, seg: &Segment, num_dupack: u32, w: &AckWork) {
        let recovered = self.snd_una >= self.high_seq;
        if w.una_advanced && self.try_undo_loss(now, seg, false) {
            return;
        }
        if self.frto {
            // Step 3.b: data never retransmitted was delivered, so not everything was lost.
            if w.orig_sack_acked && self.try_undo_loss(now, seg, true) {
                return;
            }
            if self.snd_nxt > self.high_seq {
                if w.data_sacked || num_dupack > 0 {
                    self.frto = false; // step 3.a: the loss was real
                }
            } else if w.una_advanced && !recovered {
                self.high_seq = self.snd_nxt;
                if self.has_new_data() && self.window_room() {
                    self.rexmit = Rexmit::New; // step 2.b
                    return;
                }
                self.frto = false;
            }
        }
        if recovered {
            if !self.try_undo_recovery(now, seg) && self.holds_for_non_sack() {
                return;
            }
            self.ca_state = CaState::Open;
            self.undo_marker = None;
            return;
        }
        if !self.sack {
            if self.snd_nxt > self.high_seq {
                self.add_emulated_sack(num_dupack);
            } else if w.una_advanced {
                self.board.set_emulated_sacked(0);
            }
        }
        self.rexmit = Rexmit::Lost;
    }

    fn try_keep_open(&mut self) {
        let clear = self.board.sacked_out + self.board.lost_out + self.board.retrans_out == 0;
        if clear && !self.any_retrans_done() {
            self.retrans_stamp = None;
        }
        let state = if clear { CaState::Open } else { CaState::Disorder };
        if state != self.ca_state {
            self.ca_state = state;
            self.high_seq = self.snd_nxt;
        }
    }

    fn any_retrans_done(&self) -> bool {
        self.board.retrans_out > 0 || self.board.head().is_some_and(|h| h.is(EVER_RETRANS))
    }

    // ------------------------------------------------------------------------------------------------ timers

    fn arm(&mut self, kind: TimerKind, at: Time) {
        self.timer = kind;
        self.deadline = at;
    }

    fn disarm(&mut self) {
        self.arm(TimerKind::None, Time::NEVER);
    }

    /// After a cumulative ACK: a loss probe where allowed, else the RTO (Linux `tcp_set_xmit_timer`).
    fn set_xmit_timer(&mut self, now: Time) {
        if !self.schedule_probe(now, true) {
            self.rearm_rto(now);
        }
    }

    /// Time left until the head's RTO, counted from its last transmission.
    fn rto_left(&self, now: Time) -> Option<Span> {
        let head = self.board.head()?;
        let due = head.xmit + self.rtt.rto();
        (due > now).then(|| due - now)
    }

    fn rearm_rto(&mut self, now: Time) {
        if self.board.packets_out() == 0 {
            self.disarm();
            return;
        }
        let mut rto = self.rtt.rto();
        if matches!(self.timer, TimerKind::Reorder | TimerKind::Tlp | TimerKind::Early) {
            rto = self.rto_left(now).unwrap_or(Span(1));
        }
        self.arm(TimerKind::Rto, self.ticks.expiry(now, rto));
    }

    /// Tail loss probe (RFC 8985 §7.2; Linux `tcp_schedule_loss_probe`). `advancing`: the RTO would restart now.
    fn schedule_probe(&mut self, now: Time, advancing: bool) -> bool {
        if !self.config.tlp
            || self.board.packets_out() == 0
            || !self.sack
            || !matches!(self.ca_state, CaState::Open | CaState::Cwr)
            || self.timer == TimerKind::Early
        {
            return false;
        }
        let mut pto = if self.rtt.has_sample() {
            let srtt = self.rtt.srtt() * 2;
            if self.board.packets_out() == 1 {
                srtt + self.config.min_rto
            } else {
                srtt + self.ticks.span(TIMEOUT_MIN_TICKS)
            }
        } else {
            self.config.initial_rto
        };
        if advancing {
            pto = pto.min(self.rtt.rto());
        } else if let Some(left) = self.rto_left(now) {
            pto = pto.min(left);
        }
        self.arm(TimerKind::Tlp, self.ticks.expiry(now, pto));
        true
    }

    /// The timer may be due.
    pub fn on_timer(&mut self, now: Time) {
        if now < self.deadline {
            return;
        }
        let kind = self.timer;
        self.burst = 0;
        match kind {
            TimerKind::None => self.disarm(),
            TimerKind::Rto => self.on_rto(now),
            TimerKind::Tlp => self.on_probe_timer(now),
            TimerKind::Reorder => self.on_reorder_timer(now),
            TimerKind::Early => {
                self.disarm();
                self.mark_first_unsacked();
                if self.time_to_recover() {
                    self.recover_from_timer(now);
                }
                self.rearm_rto(now);
            }
        }
    }

    fn on_reorder_timer(&mut self, now: Time) {
        let (prior_pipe, prior_lost) = (self.board.pipe(), self.lost);
        self.timer = TimerKind::Reorder;
        self.rack_detect(now);
        if self.board.pipe() != prior_pipe || self.lost != prior_lost {
            self.recover_from_timer(now);
        }
        self.rearm_rto(now);
        if self.records.is_some() {
            self.record(now, Event::ReoTimer, self.snd_una, 0, 0);
        }
    }

    fn recover_from_timer(&mut self, now: Time) {
        if self.ca_state != CaState::Recovery {
            let newly_lost = self.board.lost_out;
            self.enter_recovery(now, &AckWork::default());
            let ack = RecoveryAck {
                delivered: 1, // Linux calls tcp_cwnd_reduction(sk, 1, ...) here
                pipe: self.board.pipe(),
                cwnd: self.window.cwnd,
                ssthresh: self.window.ssthresh,
                una_advanced: false,
                newly_lost,
                entering: true,
                progress: true,
            };
            self.window.cwnd = self.rule.on_ack(&ack);
        }
        self.rexmit = Rexmit::Lost;
        self.push = false;
    }

    fn on_probe_timer(&mut self, now: Time) {
        if self.tlp_high_seq.is_none() {
            self.force_probe = true;
        }
        // rearm_rto must count from the head's transmission if no probe leaves, from now if one does: see `probe`.
        if !self.force_probe {
            self.rearm_rto(now);
        } else {
            self.deadline = Time::NEVER;
        }
    }

    fn on_rto(&mut self, now: Time) {
        if self.board.packets_out() == 0 {
            self.disarm();
            return;
        }
        if self.retransmits >= self.config.data_retries as u32 {
            self.failed = true;
            self.disarm();
            return;
        }
        match self.ca_state {
            CaState::Open | CaState::Cwr => self.stats.rtos_open += 1,
            CaState::Disorder => self.stats.rtos_disorder += 1,
            CaState::Recovery => self.stats.rtos_recovery += 1,
            CaState::Loss => self.stats.rtos_loss += 1,
        }
        self.stats.rtos += 1;
        self.enter_loss(now);
        self.retransmits += 1;
        self.rtt.back_off();
        self.force_head = true;
        self.rexmit = Rexmit::Lost;
        self.push = false;
        self.arm(TimerKind::Rto, self.ticks.expiry(now, self.rtt.rto()));
        if self.records.is_some() {
            self.record(now, Event::Rto, self.snd_una, 0, 0);
        }
    }

    /// Linux `tcp_enter_loss`; RFC 5681 §3.1, RFC 6675 §5.1.
    fn enter_loss(&mut self, now: Time) {
        let new_recovery = self.ca_state < CaState::Recovery;
        let cwnd_before = self.window.cwnd;
        self.timeout_mark_lost(now);
        let first_of_window = self.ca_state <= CaState::Disorder
            || self.high_seq <= self.snd_una
            || (self.ca_state == CaState::Loss && self.retransmits == 0);
        if first_of_window {
            self.prior_ssthresh = self.current_ssthresh();
            self.window.prior_cwnd = self.window.cwnd;
            self.window.ssthresh = self.cc.ssthresh(&self.window, self.board.packets_out());
            self.cc.on_rto();
            self.init_undo();
        }
        self.window.cwnd = self.board.pipe() + 1;
        self.window.cwnd_cnt = 0;
        self.cwnd_stamp = now;
        if self.ca_state <= CaState::Disorder && self.board.sacked_out >= self.config.dup_thresh {
            self.reordering = self.reordering.min(self.config.dup_thresh);
        }
        self.finish_episode(now, cwnd_before, ExitCause::Rto);
        self.ca_state = CaState::Loss;
        self.high_seq = self.snd_nxt;
        self.tlp_high_seq = None;
        self.dup_acks = 0;
        self.frto = self.config.frto && (new_recovery || self.retransmits > 0);
    }

    fn timeout_mark_lost(&mut self, now: Time) {
        let first = self.board.first;
        if self.board.get(first).is(SACKED) {
            self.board.forget_sacks(); // the receiver reneged (RFC 2018 §8)
        }
        if !self.sack {
            self.board.set_emulated_sacked(0);
        }
        let spare_recent = self.sack && self.config.detection == Detection::Rack;
        for n in first..self.board.next {
            let s = self.board.get(n);
            if spare_recent && n != first && s.xmit + self.rack.rtt > now {
                continue; // RFC 8985 §6.3: sent too recently to be believed lost
            }
            self.mark_lost(n);
        }
        self.rexmit_hint = first;
        self.mark_ptr = self.board.next;
    }

    /// Linux `tcp_process_tlp_ack`; RFC 8985 §7.4.
    fn process_tlp_ack(&mut self, now: Time, ack: u64, w: &AckWork) {
        let Some(high) = self.tlp_high_seq else { return };
        if ack < high {
            return;
        }
        if !self.tlp_retrans || w.dsack_tlp {
            self.tlp_high_seq = None;
        } else if ack > high {
            // The probe repaired a loss that nobody else saw: reduce once.
            self.init_reduction(w.newly_acked, w.newly_sacked);
            self.ca_state = CaState::Cwr;
            self.end_reduction(now, ExitCause::FullAck);
            self.try_keep_open();
        } else if !(w.una_advanced || w.not_dup || w.data_sacked) {
            self.tlp_high_seq = None;
        }
    }

    // ----------------------------------------------------------------------------------------------- sending

    #[inline]
    fn has_new_data(&self) -> bool {
        self.snd_nxt < self.write_end || (self.fin_wanted && !self.fin_sent)
    }

    #[inline]
    fn window_room(&self) -> bool {
        self.snd_una + self.snd_wnd > self.snd_nxt
    }

    /// Next segment to leave, if any: lost ones first, then new data (RFC 6675 NextSeg).
    pub fn poll(&mut self, now: Time) -> Option<Segment> {
        if self.force_probe {
            self.force_probe = false;
            return self.probe(now);
        }
        if self.rexmit == Rexmit::Lost {
            if let Some(seg) = self.next_lost(now) {
                return Some(seg);
            }
            self.rexmit = Rexmit::None;
        }
        if self.push {
            if let Some(seg) = self.next_new(now, false) {
                return Some(seg);
            }
            self.after_push(now);
            if self.rexmit == Rexmit::New {
                self.rexmit = Rexmit::None;
                if self.snd_nxt <= self.high_seq {
                    self.frto = false;
                    self.rexmit = Rexmit::Lost;
                    return self.poll(now);
                }
            }
            if self.config.next_seg_rules && self.ca_state == CaState::Recovery && !self.has_new_data() {
                return self.next_seg_beyond(now);
            }
        }
        None
    }

    /// A segment marked lost and not yet sent again (NextSeg rule 1; Linux `tcp_xmit_retransmit_queue`).
    fn next_lost(&mut self, now: Time) -> Option<Segment> {
        let first = self.board.first;
        if self.force_head {
            self.force_head = false;
            if first < self.board.next {
                return Some(self.retransmit(now, first));
            }
        }
        if self.board.retrans_out >= self.board.lost_out || self.board.pipe() >= self.window.cwnd {
            return None;
        }
        let mut n = self.rexmit_hint.max(first);
        while n < self.board.next {
            let s = self.board.get(n);
            if s.flags & (LOST | RETRANS | SACKED) == LOST {
                self.rexmit_hint = n;
                return Some(self.retransmit(now, n));
            }
            n += 1;
        }
        self.rexmit_hint = n;
        None
    }

    /// NextSeg rules (3) and (4) of RFC 6675 §4: with no new data, what is not marked lost, then one rescue.
    fn next_seg_beyond(&mut self, now: Time) -> Option<Segment> {
        if self.board.pipe() >= self.window.cwnd {
            return None;
        }
        let from = self.high_rxt.max(self.board.first);
        if let Some(n) =
            (from..self.board.sacked_end()).find(|&n| !self.board.get(n).is(SACKED | EVER_RETRANS))
        {
            return Some(self.retransmit(now, n));
        }
        if !self.rescued {
            self.rescued = true;
            let last = (self.board.first..self.board.next).rev().find(|&n| !self.board.get(n).is(SACKED))?;
            return Some(self.retransmit(now, last));
        }
        None
    }

    fn retransmit(&mut self, now: Time, n: u64) -> Segment {
        if self.undo_retrans < 0 {
            self.undo_retrans = 0;
        }
        self.undo_retrans += 1;
        let stamp = self.ts(now);
        self.retrans_stamp.get_or_insert(stamp);
        self.high_rxt = self.high_rxt.max(n + 1);
        let is_head = n == self.board.first;
        let seg = self.resend(now, n, true);
        if matches!(self.ca_state, CaState::Recovery | CaState::Cwr) {
            self.rule.on_sent();
        }
        if is_head && self.timer != TimerKind::Reorder {
            self.arm(TimerKind::Rto, self.ticks.expiry(now, self.rtt.rto()));
        }
        seg
    }

    fn resend(&mut self, now: Time, n: u64, counts: bool) -> Segment {
        self.board.retransmitted(n, now, self.delivered as u32, counts);
        self.stats.retransmissions += 1;
        let s = *self.board.get(n);
        let seg = self.segment(now, n, s.start(), s.len - s.is(FIN) as u32, s.is(FIN), s.rexmit);
        self.count_burst();
        if let Some(e) = &mut self.episode {
            e.retransmits += 1;
        }
        if self.records.is_some() {
            let event = if counts { Event::Rtx } else { Event::Tlp };
            self.record(now, event, s.start(), s.len, n);
        }
        seg
    }

    /// New data, if window, receiver and Nagle (in Minshall's form) allow. `probe`: one segment beyond cwnd.
    fn next_new(&mut self, now: Time, probe: bool) -> Option<Segment> {
        let available = self.write_end.saturating_sub(self.snd_nxt);
        let fin_only = available == 0 && self.fin_wanted && !self.fin_sent;
        if available == 0 && !fin_only {
            return None;
        }
        let outstanding = self.board.packets_out();
        if outstanding == 0 {
            self.restart_after_idle(now);
        }
        let in_flight = if self.config.limited_transmit || self.ca_state != CaState::Disorder {
            self.board.pipe()
        } else {
            outstanding
        };
        if in_flight >= self.window.cwnd && !probe {
            return None;
        }
        let room = (self.snd_una + self.snd_wnd).saturating_sub(self.snd_nxt);
        let mut len = available.min(self.smss as u64);
        if len > room {
            if outstanding > 0 || room == 0 {
                return None;
            }
            len = room; // a receiver with less than a segment of room gets what fits
        }
        let len = len as u32;
        if len < self.smss && self.small_end > self.snd_una && !self.fin_wanted {
            return None; // Minshall: one small segment in flight at most
        }
        let fin = self.fin_wanted && !self.fin_sent && len as u64 == available;
        Some(self.send_new(now, len, fin))
    }

    fn send_new(&mut self, now: Time, len: u32, fin: bool) -> Segment {
        let start = self.snd_nxt;
        let prior_out = self.board.packets_out();
        self.snd_nxt += len as u64 + fin as u64;
        self.fin_sent |= fin;
        if len < self.smss && len > 0 {
            self.small_end = self.snd_nxt;
        }
        let n = self.board.next;
        self.board.push(self.snd_nxt, len + fin as u32, fin, now, self.delivered as u32);
        let seg = self.segment(now, n, start, len, fin, 0);
        if prior_out == 0 || self.timer == TimerKind::Tlp {
            self.rearm_rto(now);
        }
        if matches!(self.ca_state, CaState::Recovery | CaState::Cwr) {
            self.rule.on_sent();
        }
        self.pushed = true;
        self.last_sent = now;
        self.count_burst();
        if self.records.is_some() {
            self.record(now, Event::Send, start, len + fin as u32, n);
        }
        seg
    }

    fn count_burst(&mut self) {
        self.burst += 1;
        if let Some(e) = &mut self.episode {
            e.max_burst = e.max_burst.max(self.burst);
        }
    }

    #[inline]
    fn segment(&mut self, now: Time, n: u64, start: u64, len: u32, fin: bool, rexmit: u8) -> Segment {
        self.stats.data_segments_sent += (len > 0) as u64;
        let mut flags = Flags::ACK;
        if start + len as u64 == self.write_end {
            flags |= Flags::PSH;
        }
        if fin {
            flags |= Flags::FIN;
        }
        let ts_val = if self.config.timestamps { self.ts(now) } else { 0 };
        let seg_no = if len > 0 { (n + 1) as u32 } else { 0 };
        Segment {
            seq: start,
            len,
            flags,
            seg_no,
            rexmit,
            ts_val,
            has_ts: self.config.timestamps,
            ..Segment::default()
        }
    }

    /// The tail loss probe itself: new data if possible, else the last segment (Linux `tcp_send_loss_probe`).
    fn probe(&mut self, now: Time) -> Option<Segment> {
        self.tlp_retrans = false;
        self.timer = TimerKind::None;
        self.stats.tlps += 1;
        let mut seg = self.next_new(now, true);
        if seg.is_none() && self.board.packets_out() > 0 {
            self.tlp_retrans = true;
            seg = Some(self.resend(now, self.board.next - 1, false));
        }
        self.pushed = false;
        self.tlp_high_seq = Some(self.snd_nxt);
        self.timer = TimerKind::None;
        self.rearm_rto(now);
        seg
    }

    /// Slow start again after an idle period (Linux `tcp_slow_start_after_idle_check`, `tcp_cwnd_restart`).
    fn restart_after_idle(&mut self, now: Time) {
        let idle = now.since(self.last_sent);
        if self.last_sent == Time::ZERO || self.snd_nxt == 1 {
            return;
        }
        self.cc.on_tx_start(now, idle);
        let rto = self.rtt.rto();
        if !self.config.idle_restart || idle <= rto || rto == Span::ZERO {
            return;
        }
        let restart = self.config.iw.min(self.window.cwnd);
        self.window.ssthresh = self.current_ssthresh();
        let mut left = idle - rto;
        let mut cwnd = self.window.cwnd;
        while left > Span::ZERO && cwnd > restart {
            cwnd >>= 1;
            left = left.saturating_sub(rto);
        }
        self.window.cwnd = cwnd.max(restart);
        self.cwnd_stamp = now;
        self.cwnd_used = 0;
        self.last_sent = now;
    }

    /// Whether cwnd is what limits the sender (Linux `tcp_is_cwnd_limited`).
    #[inline]
    fn cwnd_limited(&self) -> bool {
        !self.config.cwnd_validation
            || self.is_cwnd_limited
            || (self.window.in_slow_start() && self.window.cwnd < 2 * self.max_packets_out)
    }

    /// A round of sending is over: probe timer, and cwnd validation (Linux end of `tcp_write_xmit`).
    fn after_push(&mut self, now: Time) {
        self.push = false;
        let sent = std::mem::take(&mut self.pushed);
        if sent {
            self.schedule_probe(now, false);
        }
        let limited = self.board.pipe() >= self.window.cwnd;
        if !(sent || (limited && self.has_new_data())) {
            return;
        }
        let packets_out = self.board.packets_out();
        if self.snd_una >= self.cwnd_usage_seq
            || limited
            || (!self.is_cwnd_limited && packets_out > self.max_packets_out)
        {
            self.is_cwnd_limited = limited;
            self.max_packets_out = packets_out;
            self.cwnd_usage_seq = self.snd_nxt;
        }
        if self.cwnd_limited() {
            self.cwnd_used = 0;
            self.cwnd_stamp = now;
            return;
        }
        self.cwnd_used = self.cwnd_used.max(packets_out);
        if self.config.idle_restart && now.since(self.cwnd_stamp) >= self.rtt.rto() {
            if self.ca_state == CaState::Open {
                let used = self.cwnd_used.max(self.config.iw);
                if used < self.window.cwnd {
                    self.window.ssthresh = self.current_ssthresh();
                    self.window.cwnd = (self.window.cwnd + used) >> 1;
                }
                self.cwnd_used = 0;
            }
            self.cwnd_stamp = now;
        }
    }

    // ------------------------------------------------------------------------------------------------- trace

    #[cold]
    fn record(&mut self, now: Time, event: Event, seq: u64, len: u32, n: u64) {
        let mut r = self.blank(now, event);
        r.seq = seq;
        r.len = len;
        if matches!(event, Event::Send | Event::Rtx | Event::Tlp) {
            r.seg_no = (n + 1) as u32;
            r.rexmit = self.board.get(n).rexmit;
        }
        if let Some(records) = &mut self.records {
            records.push(r);
        }
    }

    #[cold]
    #[allow(clippy::too_many_arguments)]
    fn record_ack(
        &mut self,
        now: Time,
        seg: &Segment,
        cwnd_before: u32,
        pipe_before: u32,
        prior_una: u64,
        delivered: u32,
        newly_lost: u32,
        w: &AckWork,
    ) {
        let mut r = self.blank(now, Event::Ack);
        r.seq = seg.ack;
        r.len = (self.snd_una - prior_una).min(u32::MAX as u64) as u32;
        r.seg_no = self.board.first as u32 + 1;
        r.sack_blocks = seg.sack.len() as u8;
        for (slot, b) in r.sack.iter_mut().zip(seg.sack.as_slice()) {
            *slot = ((seg.ack as i64 + b.start as i64) as u64, (seg.ack as i64 + b.end as i64) as u64);
        }
        r.dsack = w.dsack;
        r.is_dup = w.is_dup;
        r.newly_sacked = w.newly_sacked;
        r.delivered = delivered;
        r.newly_lost = newly_lost;
        r.safe_ack = w.una_advanced && newly_lost == 0;
        r.cwnd_before = cwnd_before;
        r.pipe_before = pipe_before;
        if let Some(records) = &mut self.records {
            records.push(r);
        }
    }

    fn blank(&self, now: Time, event: Event) -> Record {
        let finite = |s: Span| if s == Span::MAX { Span::ZERO } else { s };
        Record {
            t: now,
            flow: self.flow,
            responder: self.responder,
            event,
            ack_no: self.stats.acks_received as u32,
            seq: self.snd_una,
            len: 0,
            seg_no: 0,
            rexmit: 0,
            sack_blocks: 0,
            sack: [(0, 0); 3],
            dsack: false,
            is_dup: false,
            newly_sacked: 0,
            delivered: 0,
            newly_lost: 0,
            lost_retransmits: self.stats.lost_retransmits as u32,
            safe_ack: false,
            cwnd_before: self.window.cwnd,
            cwnd: self.window.cwnd,
            ssthresh: self.window.ssthresh,
            pipe_before: self.board.pipe(),
            pipe: self.board.pipe(),
            flight_size: self.board.packets_out(),
            sacked_out: self.board.sacked_out,
            lost_out: self.board.lost_out,
            retrans_out: self.board.retrans_out,
            rwnd: self.snd_wnd.min(u32::MAX as u64) as u32,
            ca_state: self.ca_state,
            recovery_point: self.high_seq,
            reordering: self.reordering,
            rule: self.rule.vars(),
            rto: self.rtt.rto(),
            backoff: self.rtt.backoff(),
            srtt: self.rtt.srtt(),
            rttvar: self.rtt.rttvar(),
            min_rtt: finite(self.rtt.min_rtt()),
            reo_wnd: if self.config.detection == Detection::Rack {
                finite(self.reo_wnd())
            } else {
                Span::ZERO
            },
            deadline: self.deadline,
        }
    }
}

/// Whether (t1, end1) was sent after (t2, end2); equal times are told apart by sequence (RFC 8985 §5.2).
#[inline]
fn sent_after(t1: Time, end1: u64, t2: Time, end2: u64) -> bool {
    t1 > t2 || (t1 == t2 && end1 > end2)
}

/// RFC 8985 §6.2 step 2: remember the newest segment delivered, unless the sample is ambiguous.
#[inline]
fn rack_advance(rack: &mut Rack, rtt: &Rtt, now: Time, rexmit: bool, end: u64, xmit: Time) {
    let sample = now - xmit;
    if rexmit && sample < rtt.min_rtt() {
        return;
    }
    rack.advanced = true;
    rack.rtt = sample;
    if sent_after(xmit, end, rack.xmit, rack.end_seq) {
        rack.xmit = xmit;
        rack.end_seq = end;
    }
}
