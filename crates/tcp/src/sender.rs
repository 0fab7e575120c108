//! The sending half. [`Sender::on_ack`] is the function to read first: it processes one ACK from start to end.
//!
//! Names are those of the RFCs and of Linux. Windows are counted in segments. A decision that Linux makes in
//! one function is made in one function here, so that a trace can be compared with the kernel's ACK by ACK.
//!
//! Each mechanism has its own file and a struct with a small interface:
//!
//! | mechanism | struct | file |
//! |---|---|---|
//! | data written by the application; Nagle's rule | `Stream`; with buffers `SendQueue`, `Writer` | `stream.rs`; `push.rs`, `writer.rs` |
//! | choice and transmission of the next segment | `Intent`, `NextSeg` | `intent.rs`, `next_seg.rs`, `transmit.rs`, `packets.rs` |
//! | loss detection | `Rack`, `Dupthresh` | `detection.rs`, `rack.rs`, `dupthresh.rs` |
//! | congestion states; undo of spurious reductions | `Undo` | `state.rs`, `undo.rs` |
//! | the peer's window | | `peer_window.rs` |
//! | timers and probes | `Timer`, `LossProbe`, `WindowProbes`, `Patience`, `MtuSearch` | `timers.rs`, `loss_probe.rs`, `window_probe.rs`, `patience.rs`, `mtu_probe.rs` |
//! | first slow start; window validation; pacing; delivery rate | `StartUp`, `Usage`, `Pacer`, `DeliveryRate` | `start_up.rs`, `validation.rs`, `pacing.rs`, `delivery.rs` |
//! | new data sent in trains | `Reasons` | `plain.rs`, `train.rs` |
//! | causes that limit the sender | `Limits`, `Chrono` | `limits.rs`, `chrono.rs` |
//! | traces | `Trace`, `VarsTrace` | `trace.rs`, `vars.rs` |
//!
//! Length: the fields of the sender and the life of one ACK stand on one page.

mod accurate;
mod chrono;
mod control;
mod delivery;
mod detection;
mod device;
mod dupthresh;
mod ecn;
mod intent;
mod limits;
mod loss_probe;
mod mtu_probe;
mod next_seg;
mod pacing;
mod packets;
mod path_mtu;
mod patience;
mod peer_window;
mod plain;
mod push;
mod queries;
mod rack;
mod record;
mod resting;
mod round;
mod scoring;
mod send_buffer;
mod small_queues;
mod start_up;
mod state;
mod stream;
mod timers;
mod trace;
mod train;
mod transmit;
mod undo;
mod validation;
mod vars;
mod window_probe;
mod writer;

use std::rc::Rc;

use ackclock_cc::{AckSample, CongestionControl, Controller, Rule, SlowStart, StartRule, Window};
use ackclock_core::trace::CaState;
use ackclock_core::{FlowId, Segment, Span, Time};

use crate::config::{Config, RtoStyle};
use crate::rtt::Rtt;
use crate::scoreboard::Scoreboard;
use crate::stats::Stats;
use crate::ticks::Ticks;
use accurate::{Feedback, Progress};
use delivery::DeliveryRate;
use dupthresh::Dupthresh;
use ecn::EcnSender;
use intent::{Intent, Next};
use limits::Limits;
pub use limits::{Held, Hold};
use loss_probe::LossProbe;
use mtu_probe::MtuSearch;
use next_seg::NextSeg;
use pacing::Pacer;
use patience::Patience;
use peer_window::HalfWindow;
use plain::Reasons;
use push::SendQueue;
use rack::Rack;
pub use record::{AckNews, Occasion, Record, Repair, Timers, Windows};
use send_buffer::SendBuffer;
use small_queues::HostQueue;
use start_up::StartUp;
use stream::Stream;
use timers::{Timer, TimerKind};
pub use trace::Trace;
pub use transmit::Leaving;
use undo::Undo;
use validation::Usage;
pub use vars::{VarsRow, VarsTrace};
use window_probe::WindowProbes;

/// Linux TCP_TIMEOUT_MIN: floor of PTO slack and reordering timer, ticks.
const TIMEOUT_MIN_TICKS: u64 = 2;

/// Effects of one ACK, filled in while it is processed.
#[derive(Default)]
struct AckWork {
    una_advanced: bool,
    data_acked: bool,
    data_sacked: bool,
    retrans_data_acked: bool,
    orig_sack_acked: bool,
    dsack: bool,
    dsack_tlp: bool,
    /// The ACK acknowledges data up to the end of a probe that retransmitted old data, and nothing beyond it.
    probe_acked: bool,
    /// The ACK is not a duplicate: it carries data, may update the window, or was overtaken by a later ACK.
    not_dup: bool,
    /// Linux FLAG_SLOWPATH.
    slow_path: bool,
    set_timer: bool,
    lost_retrans: bool,
    newly_acked: u32,
    /// Segments of `newly_acked` that an earlier ACK had SACKed.
    sacked_before: u32,
    newly_sacked: u32,
    /// Segments counted as delivered because of duplicate ACKs, on a connection without SACK.
    dups_counted: u32,
    first_ackt: Option<Time>,
    last_ackt: Option<Time>,
    first_sackt: Option<Time>,
    last_sackt: Option<Time>,
    /// Lowest segment number that was delivered out of order.
    reord: Option<u64>,
    /// `delivered` when the newest segment covered by the ACK was sent.
    prior_delivered: Option<u64>,
    rtt: Option<Span>,
}

impl AckWork {
    /// Whether the ACK is a duplicate: it acknowledges nothing new, carries no data and leaves the window unchanged
    /// (RFC 5681 §2; Linux `num_dupack`). The definition of RFC 6675 §2 is kept separately, in `data_sacked`.
    fn is_dup(&self) -> bool {
        !self.una_advanced && !self.not_dup
    }
}

/// Sender state before an ACK is applied.
struct Prior {
    snd_una: u64,
    delivered: u64,
    lost: u64,
    outstanding: u32,
    pipe: u32,
    cwnd: u32,
}

/// Sender state of one endpoint.
#[derive(Clone)]
pub struct Sender {
    config: Rc<Config>,
    /// Payload of a full segment, bytes.
    pub smss: u32,
    /// Both ends agreed on SACK.
    sack: bool,

    /// cwnd, ssthresh and pacing rate. The controller and the recovery rule set them.
    pub window: Window,
    cc: Controller,
    /// The controller sets the window itself, also during recovery.
    controls: bool,
    /// The controller may request a reduction.
    reduces: bool,
    /// The controller is notified of each lost segment.
    losses: bool,
    rule: Rule,
    slow_start: StartRule,
    start_up: StartUp,
    usage: Usage,
    /// Delivery-rate estimator; `None` if the controller does not need it.
    rates: Option<Box<DeliveryRate>>,
    /// Pacing clock; `None` if neither pacing nor packet sizes need a rate.
    pacer: Option<Box<Pacer>>,

    /// Outstanding segments.
    pub board: Scoreboard,
    /// RTT and RTO.
    pub rtt: Rtt,
    /// First unacknowledged offset.
    pub snd_una: u64,
    /// Next offset to send.
    pub snd_nxt: u64,
    /// The peer's receive window, bytes.
    pub snd_wnd: u64,
    /// SND.WL1: sequence number of the segment that last updated `snd_wnd`.
    snd_wl1: u64,
    /// Segments delivered so far. Linux also counts the SYN (`tcp_clean_rtx_queue`, and `tcp_rcv_state_process` for a SYN-ACK).
    pub delivered: u64,
    /// Loss marks so far; a segment marked twice counts twice.
    lost: u64,

    /// Data written by the application.
    pub stream: Stream,
    /// Send queue; `None` if data is only a byte count, without buffers.
    queue: Option<Box<SendQueue>>,
    buffer: Option<SendBuffer>,
    intent: Intent,
    next_seg: NextSeg,
    /// Arrival time of the last ACK, exact and as rounded by [`Sender::clock`].
    heard: (Time, Time),
    /// Reasons why new data may not be sent in trains.
    reasons: Reasons,
    /// Offset and number (low 32 bits) of the next segment of the train that is being sent.
    train: (u64, u32),

    /// Congestion state.
    pub ca_state: CaState,
    /// RecoveryPoint of RFC 6675 §5: the state ends when this offset is acknowledged.
    high_seq: u64,
    rack: Rack,
    /// Loss detection by counting.
    pub dupthresh: Dupthresh,
    undo: Undo,
    /// F-RTO is in progress (RFC 5682).
    frto: bool,
    /// ECN state.
    pub ecn: EcnSender,
    /// The peer's ECN counters; `None` unless accurate ECN was agreed on.
    pub(crate) feedback: Option<Box<Feedback>>,
    /// `smss` plus the payload bytes reserved for the AccECN option and SACK blocks (Linux `mss_cache`).
    /// Controllers and rates use it as the size of a segment.
    mss_cache: u32,

    timer: Timer,
    loss_probe: LossProbe,
    /// Zero-window probes.
    pub window_probes: WindowProbes,
    /// Limits beyond which the sender gives up the connection.
    pub patience: Patience,
    /// Path MTU search; `None` if probing is off.
    mtu_search: Option<Box<MtuSearch>>,
    /// Limit on the segment size; `None` unless the peer's first window was smaller than two segments.
    half_window: Option<Box<HalfWindow>>,
    /// Queue of the host's device; `None` if the host has none.
    host_queue: Option<Box<HostQueue>>,

    /// Time spent waiting, by cause; `None` unless requested.
    limits: Option<Box<Limits>>,

    /// Counters for the summary.
    pub stats: Stats,
    /// Trace of this sender.
    pub trace: Trace,
}

impl Sender {
    /// Return a sender in the state before its handshake.
    pub fn new(flow: FlowId, responder: bool, config: &Rc<Config>) -> Sender {
        let needs = config.sending.controller.needs();
        let rtt = Rtt::new(
            config.timers.rto_style,
            config.timers.initial_rto,
            config.timers.min_rto,
            config.timers.max_rto,
            config.tick(),
        );
        let slow_start = config.slow_start();
        Sender {
            smss: config.payload(),
            window: Window { ssthresh: config.switches.initial_ssthresh, ..Window::new(config.sending.iw) },
            controls: needs.control,
            reduces: needs.reduces,
            losses: needs.losses,
            rates: needs.keeps_rates().then(|| Box::new(DeliveryRate::new(needs.watches_application))),
            rule: config.loss.rule.clone(),
            board: Scoreboard::default(),
            rtt,
            snd_una: 1,
            snd_nxt: 1,
            snd_wnd: 0,
            snd_wl1: responder as u64, // sequence number of the segment that established the connection: the ACK of the SYN-ACK, or the SYN-ACK
            stream: Stream::new(config.switches.nodelay, config.switches.cork),
            queue: config
                .sending
                .buffers
                .map(|buffers| Box::new(SendQueue::new(&buffers, Ticks::of(config)))),
            buffer: config.sending.writer.filter(|_| config.sending.buffers.is_none()).map(SendBuffer::new),
            sack: config.sack,
            pacer: Pacer::wanted(config, needs.pacing, slow_start.paces()),
            slow_start,
            start_up: if needs.control { StartUp::Known } else { StartUp::Goes },
            cc: config.sending.controller.make(),
            ecn: EcnSender::default(),
            feedback: None,
            mss_cache: config.payload(),
            ca_state: CaState::Open,
            high_seq: 0,
            undo: Undo::default(),
            frto: false,
            loss_probe: LossProbe::default(),
            rack: Rack::default(),
            delivered: 0,
            lost: 0,
            dupthresh: Dupthresh::new(config),
            next_seg: NextSeg::default(),
            timer: Timer::new(Ticks::of(config)),
            intent: Intent::default(),
            heard: (Time::ZERO, Time::ZERO),
            train: (0, 0),
            window_probes: WindowProbes::default(),
            patience: Patience::default(),
            reasons: Reasons::of(config),
            mtu_search: MtuSearch::new(config, !responder),
            half_window: None,
            host_queue: None,
            usage: Usage::default(),
            limits: None,
            stats: Stats::default(),
            trace: Trace::new(flow, responder),
            config: config.clone(),
        }
    }

    /// Reset to a new connection, reusing the memory of this one.
    pub fn renew(&mut self, flow: FlowId, responder: bool, config: &Rc<Config>) {
        let (board, buffer) = (std::mem::take(&mut self.board), self.buffer.take());
        *self = Sender::new(flow, responder, config);
        self.board = board.renewed();
        if let (Some(new), Some(old)) = (&mut self.buffer, buffer) {
            new.take_over(old);
        }
    }

    /// Seed the controller's random numbers.
    pub fn seed(&mut self, seed: u64) {
        self.cc.seed(seed);
    }

    /// Complete the handshake with the options that both sides support, the peer's window, and the payload
    /// and option bytes of a segment.
    pub fn established(
        &mut self,
        now: Time,
        wnd: u32,
        sack: bool,
        (smss, options): (u32, u32),
        rtt: Option<Span>,
    ) {
        self.snd_wnd = wnd as u64;
        self.open_queue(now, wnd as u64);
        if let Some(buffer) = &mut self.buffer {
            buffer.offered(wnd as u64);
        }
        self.sack &= sack;
        self.resize_segments(smss);
        self.delivered = u64::from(self.config.timers.rto_style == RtoStyle::Linux);
        self.begin_mtu_search(now, options);
        self.fit_into_half_window(wnd as u64, options);
        self.usage.begin(now);
        match rtt {
            Some(rtt) => {
                self.rtt.update_min(rtt);
                self.rtt.sample(rtt, self.snd_una, self.snd_nxt);
            }
            None => self.rtt.fall_back(self.config.timers.fallback_rto),
        }
        if let (Some(rtt), (_, false)) = (rtt, self.trace.whose()) {
            self.cc.on_syn_acked(rtt);
        }
        self.cc.on_start(&mut self.window, now, self.rtt.srtt(), self.mss_cache);
        self.begin_pacing(rtt);
        self.expand_buffer();
        self.expand_stream(now);
        self.intent.push();
    }

    /// Timestamp value of the host's clock: 1 ms per unit, never zero.
    #[inline]
    pub fn ts(&self, now: Time) -> u32 {
        self.config.timestamp(now)
    }

    /// Time as seen by RTT samples, RACK and controllers. Linux counts whole microseconds (`tcp_mstamp`), so
    /// an RTT is the difference between two rounded times.
    #[inline]
    fn clock(&self, now: Time) -> Time {
        match self.config.timers.rto_style {
            RtoStyle::Linux => Time(now.0.saturating_sub((now.0 + self.config.timers.tick_phase) % 1_000)),
            RtoStyle::Rfc6298 => now,
        }
    }

    /// Process the ACK of a segment. If nothing is outstanding and nothing new is acknowledged, only the
    /// window and ECN marks are read.
    #[inline(always)]
    pub fn hear(&mut self, now: Time, seg: &Segment) {
        if self.board.packets_out() > 0 || seg.ack != self.snd_una || !seg.sack.is_empty() {
            return self.on_ack(now, seg);
        }
        let slow_path = seg.len > 0 || seg.wnd as u64 != self.snd_wnd;
        self.begin_event(now);
        self.hear_window(seg);
        if self.ecn.accurate {
            self.hear_marks(seg, self.standing());
        }
        self.cc.on_idle(self.clock(now), self.snd_una, slow_path);
        if self.has_new_data() {
            self.intent.push();
        }
        if self.timer.waits_for(TimerKind::Probe) {
            self.on_probe_ack(now);
        }
    }

    /// Return the counters before an ACK is applied.
    #[inline]
    fn prior(&self) -> Prior {
        Prior {
            snd_una: self.snd_una,
            delivered: self.delivered,
            lost: self.lost,
            outstanding: self.board.packets_out(),
            pipe: self.board.pipe(),
            cwnd: self.window.cwnd,
        }
    }

    /// Whether the ACK does nothing but acknowledge at least one segment, in state Open, with no SACK, mark or probe to
    /// consider and nothing recorded.
    #[inline(always)]
    fn is_plain_ack(&self, seg: &Segment) -> bool {
        let quiet = self.reasons.is_empty() & self.sack & !self.ecn.echo & !self.loss_probe.is_out();
        quiet
            && self.ca_state == CaState::Open
            && self.board.sacked_out == 0
            && seg.sack.is_empty()
            && seg.ack <= self.snd_nxt
            && self.board.head().is_some_and(|head| head.end <= seg.ack)
    }

    /// Process one ACK. Most are plain.
    #[inline(always)]
    fn on_ack(&mut self, now: Time, seg: &Segment) {
        match self.is_plain_ack(seg) {
            true => self.process_ack::<true>(now, seg),
            false => self.process_ack::<false>(now, seg),
        }
    }

    /// Process one ACK: validation, scoreboard, RTT, loss detection and state, exactly one window rule,
    /// timers, one trace record. (Linux `tcp_ack`.) `PLAIN`, here and below: [`Sender::is_plain_ack`].
    #[inline(never)]
    fn process_ack<const PLAIN: bool>(&mut self, now: Time, seg: &Segment) {
        let overtaken = !PLAIN && seg.ack < self.snd_una && (seg.sack.is_empty() || !self.sack);
        if !PLAIN && seg.ack > self.snd_nxt || overtaken {
            return; // acknowledges data that was never sent, or nothing new
        }
        self.stats.acks_received += 1;
        let prior = self.prior();
        let expected = seg.sack.is_empty() && seg.wnd as u64 == self.snd_wnd && !self.ecn.echo;
        let mut w = AckWork { slow_path: !expected, ..AckWork::default() };
        if PLAIN || seg.ack > self.snd_una {
            self.patience.timeouts = 0;
        }
        if PLAIN || seg.ack >= self.snd_una {
            w.not_dup = self.hear_window(seg) | (seg.seq_len() > 0);
        } else {
            w.not_dup = true;
        }

        let clock = self.clock(now);
        self.heard = (now, clock);
        self.begin_event(now);
        let prior_sacked_end = self.board.sacked_end();
        if !PLAIN && !seg.sack.is_empty() && self.sack {
            self.process_sack(clock, seg, prior.snd_una, &mut w);
        }
        // An overtaken ACK still marks the segments that it SACKs and may start a recovery. Linux counts
        // nothing as delivered, takes no RTT sample and does not change the window (`tcp_ack`, label old_ack).
        let old = !PLAIN && seg.ack < self.snd_una;
        if old {
            self.delivered = prior.delivered;
        } else {
            self.clean_rtx_queue::<PLAIN>(clock, seg, prior_sacked_end, &mut w);
            self.update_rtt(clock, seg, &mut w);
            self.update_reo_wnd(&w);
            if !PLAIN && self.ecn.accurate {
                let progress = Progress {
                    snd_una: prior.snd_una,
                    delivered: prior.delivered,
                    forward: w.data_acked || w.data_sacked,
                    sacked: w.data_sacked || self.board.sacked_out > 0,
                    slow_path: w.slow_path,
                };
                self.hear_marks(seg, progress);
            }
        }
        let mut sample = AckSample::from(self.arrival(clock, &prior, &w));
        self.cc.on_sample(&mut self.window, &sample);
        self.sample_slow_start(&sample);

        let mut settled = self.lost == prior.lost;
        if !PLAIN && self.loss_probe.is_out() {
            self.process_tlp_ack(now, seg.ack, &mut w);
            settled = false;
        }
        self.intent.set(Next::New);
        let dubious = w.data_sacked
            || w.dsack
            || self.ecn.echo
            || !(w.not_dup || w.data_acked)
            || self.ca_state != CaState::Open;
        let mut entering = false;
        // with nothing outstanding, even an ECN mark says nothing about the path (Linux `tcp_ack`, no_queue)
        let concerns = self.board.packets_out() > 0 || w.una_advanced || w.dsack;
        if !PLAIN && dubious && (concerns || self.ca_state != CaState::Open) {
            entering = self.fast_retrans_alert(now, seg, prior.snd_una, &sample, &mut w);
            settled = false;
        }
        if PLAIN || w.set_timer {
            self.set_xmit_timer(now);
        }

        // With nothing outstanding, a late DSACK can only undo a reduction (Linux `tcp_ack`, no_queue).
        if PLAIN || !old && prior.outstanding > 0 {
            if !settled {
                self.renew_sample(&mut sample, &prior);
            }
            self.control_window::<PLAIN>(&mut sample, entering, &w);
        }
        self.look_at_slow_start(clock, None);
        self.update_pacing();
        if !PLAIN && self.queue.is_some() {
            self.note_freed(now, w.newly_acked > 0);
        }
        if let Some(buffer) = &mut self.buffer {
            buffer.look();
        }
        self.trace.ack_done();
        if !PLAIN && self.trace.is_on() {
            self.record_ack(now, seg, prior, &w);
        }
        if let Some(vars) = &mut self.trace.vars {
            vars.record(now, self.stats.acks_received as u32, &self.window, &self.cc);
        }
    }
}
