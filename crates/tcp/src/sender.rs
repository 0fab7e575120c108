//! The sending half. [`Sender::on_ack`] is the page to read: the life of one ACK.
//!
//! Names are those of the RFCs and of Linux. Windows are counted in segments. What Linux decides in one function is
//! decided in one function here, so that a trace can be held against the kernel's ACK by ACK.
//!
//! Each mechanism has a file, and there a struct with a small face:
//!
//! | what | struct | file |
//! |---|---|---|
//! | what the application wrote; Nagle | `Stream`; with buffers `SendQueue`, `Writer` | `stream.rs`; `push.rs`, `writer.rs` |
//! | what leaves next, and how | `Intent`, `NextSeg` | `intent.rs`, `next_seg.rs`, `transmit.rs`, `packets.rs` |
//! | losses | `Rack`, `Dupthresh` | `detection.rs`, `rack.rs`, `dupthresh.rs` |
//! | congestion states; reductions that were a mistake | `Undo` | `state.rs`, `undo.rs` |
//! | the peer's window | | `peer_window.rs` |
//! | timers and probes | `Timer`, `LossProbe`, `WindowProbes`, `Patience`, `MtuSearch` | `timers.rs`, `loss_probe.rs`, `window_probe.rs`, `patience.rs`, `mtu_probe.rs` |
//! | how the first slow start ended; windows that are not filled; pacing; rates | `StartUp`, `Usage`, `Pacer`, `DeliveryRate` | `start_up.rs`, `validation.rs`, `pacing.rs`, `delivery.rs` |
//! | whether new data may leave in trains | `Reasons` | `plain.rs`, `train.rs` |
//! | what holds it back | `Limits`, `Chrono` | `limits.rs`, `chrono.rs` |
//! | what is written down | `Trace`, `VarsTrace` | `trace.rs`, `vars.rs` |
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
    /// The ACK reaches the end of a probe of old data, and reports nothing else.
    probe_acked: bool,
    /// The ACK carries data, or offers another window.
    not_dup: bool,
    /// Linux FLAG_SLOWPATH.
    slow_path: bool,
    set_timer: bool,
    lost_retrans: bool,
    newly_acked: u32,
    /// Segments of `newly_acked` that an earlier ACK had SACKed.
    sacked_before: u32,
    newly_sacked: u32,
    /// Segments that duplicate ACKs without SACK report as delivered.
    dups_counted: u32,
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

impl AckWork {
    /// A duplicate ACK: it acknowledges nothing new, carries no data and leaves the window unchanged (RFC
    /// 5681 §2; Linux `num_dupack`). RFC 6675 §2's definition is separate: `data_sacked`.
    fn is_dup(&self) -> bool {
        !self.una_advanced && !self.not_dup
    }
}

/// State of the sender before an ACK.
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
    /// SACK was agreed on.
    sack: bool,

    /// cwnd, ssthresh and pacing rate, which controller and rule set.
    pub window: Window,
    cc: Controller,
    /// The controller sets the window by itself.
    controls: bool,
    /// The controller may request a reduction.
    reduces: bool,
    /// The controller is notified of each lost segment.
    losses: bool,
    rule: Rule,
    slow_start: StartRule,
    start_up: StartUp,
    usage: Usage,
    /// Present where the controller needs delivery rates.
    rates: Option<Box<DeliveryRate>>,
    /// Present where a pacing rate is of interest.
    pacer: Option<Box<Pacer>>,

    /// Outstanding segments.
    pub board: Scoreboard,
    /// RTT and RTO.
    pub rtt: Rtt,
    /// First unacknowledged offset.
    pub snd_una: u64,
    /// Next offset to send.
    pub snd_nxt: u64,
    /// The peer's window, bytes.
    pub snd_wnd: u64,
    /// Number of the segment that offered it.
    snd_wl1: u64,
    /// Segments delivered; Linux counts the SYN among them (`tcp_clean_rtx_queue`, and `tcp_rcv_state_process` for a SYN-ACK).
    pub delivered: u64,
    /// Loss marks so far; a segment marked twice counts twice.
    lost: u64,

    /// Data that the application wrote.
    pub stream: Stream,
    /// Present where data is sent from buffers.
    queue: Option<Box<SendQueue>>,
    buffer: Option<SendBuffer>,
    intent: Intent,
    next_seg: NextSeg,
    /// Arrival of the last ACK, and the same time as [`Sender::clock`] rounds it.
    heard: (Time, Time),
    /// Reasons that forbid a train.
    reasons: Reasons,
    /// Offset and number (low 32 bits) of the next segment of the train that is leaving.
    train: (u64, u32),

    /// Congestion state.
    pub ca_state: CaState,
    /// The state ends when this offset is acknowledged (RecoveryPoint of RFC 6675 §5).
    high_seq: u64,
    rack: Rack,
    /// Losses by counting.
    pub dupthresh: Dupthresh,
    undo: Undo,
    /// F-RTO is under way (RFC 5682).
    frto: bool,
    /// Marks of congestion.
    pub ecn: EcnSender,
    /// The peer's counters of marks, where accurate ECN was agreed on.
    pub(crate) feedback: Option<Box<Feedback>>,
    /// `smss`, and the payload that gives way to the option of accurate ECN (Linux `mss_cache`): controllers and rates take segments to
    /// be as large.
    mss_cache: u32,

    timer: Timer,
    loss_probe: LossProbe,
    /// Probes of a closed window.
    pub window_probes: WindowProbes,
    /// Limits after which it gives up.
    pub patience: Patience,
    /// Present if the path's MTU is probed.
    mtu_search: Option<Box<MtuSearch>>,
    /// Present if the peer's first window held less than two segments.
    half_window: Option<Box<HalfWindow>>,
    /// Present if the host has a queue of its own.
    host_queue: Option<Box<HostQueue>>,

    /// Time by cause of waiting, if requested.
    limits: Option<Box<Limits>>,

    /// Running sums.
    pub stats: Stats,
    /// Lines for the trace.
    pub trace: Trace,
}

impl Sender {
    /// A sender before its handshake.
    pub fn new(flow: FlowId, responder: bool, config: &Rc<Config>) -> Sender {
        let needs = config.controller.needs();
        let rtt =
            Rtt::new(config.rto_style, config.initial_rto, config.min_rto, config.max_rto, config.tick());
        let slow_start = config.slow_start();
        Sender {
            smss: config.payload(),
            window: Window { ssthresh: config.switches.initial_ssthresh, ..Window::new(config.iw) },
            controls: needs.control,
            reduces: needs.reduces,
            losses: needs.losses,
            rates: needs.keeps_rates().then(|| Box::new(DeliveryRate::new(needs.watches_application))),
            rule: config.rule.clone(),
            board: Scoreboard::default(),
            rtt,
            snd_una: 1,
            snd_nxt: 1,
            snd_wnd: 0,
            snd_wl1: responder as u64, // segment that made the connection: the ACK of its SYN-ACK, or the SYN-ACK
            stream: Stream::new(config.switches.nodelay, config.switches.cork),
            queue: config.buffers.map(|buffers| Box::new(SendQueue::new(&buffers, Ticks::of(config)))),
            buffer: config.writer.filter(|_| config.buffers.is_none()).map(SendBuffer::new),
            sack: config.sack,
            pacer: Pacer::wanted(config, needs.pacing, slow_start.paces()),
            slow_start,
            start_up: if needs.control { StartUp::Known } else { StartUp::Goes },
            cc: config.controller.make(),
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

    /// Make the sender of another connection in the memory of this one.
    pub fn renew(&mut self, flow: FlowId, responder: bool, config: &Rc<Config>) {
        let (board, buffer) = (std::mem::take(&mut self.board), self.buffer.take());
        *self = Sender::new(flow, responder, config);
        self.board = board.renewed();
        if let (Some(new), Some(old)) = (&mut self.buffer, buffer) {
            new.take_over(old);
        }
    }

    /// The seed of the controller's random numbers.
    pub fn seed(&mut self, seed: u64) {
        self.cc.seed(seed);
    }

    /// The handshake is complete: features of both sides, the peer's window, the payload of a segment and the
    /// room for its options.
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
        self.delivered = u64::from(self.config.rto_style == RtoStyle::Linux);
        self.begin_mtu_search(now, options);
        self.fit_into_half_window(wnd as u64, options);
        self.usage.begin(now);
        match rtt {
            Some(rtt) => {
                self.rtt.update_min(rtt);
                self.rtt.sample(rtt, self.snd_una, self.snd_nxt);
            }
            None => self.rtt.fall_back(self.config.fallback_rto),
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

    /// Value of the timestamp clock: 1 ms, never zero.
    #[inline]
    pub fn ts(&self, now: Time) -> u32 {
        self.config.timestamp(now)
    }

    /// The clock that RTTs, RACK and controllers see: Linux counts whole microseconds (`tcp_mstamp`), so an RTT is the
    /// difference of two rounded times.
    #[inline]
    fn clock(&self, now: Time) -> Time {
        match self.config.rto_style {
            RtoStyle::Linux => Time(now.0.saturating_sub((now.0 + self.config.tick_phase) % 1_000)),
            RtoStyle::Rfc6298 => now,
        }
    }

    /// Process the acknowledgement of a segment. With nothing outstanding, as in a receiver's half, only the
    /// window is new.
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

    /// Return the state before an ACK.
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

    /// The life of one ACK: validate, scoreboard, RTT, loss detection and state, exactly one window rule, timers,
    /// one trace record. (Linux `tcp_ack`.)
    fn on_ack(&mut self, now: Time, seg: &Segment) {
        let overtaken = seg.ack < self.snd_una && (seg.sack.is_empty() || !self.sack);
        if seg.ack > self.snd_nxt || overtaken {
            return; // acknowledges what was never sent, or nothing new
        }
        self.stats.acks_received += 1;
        let prior = self.prior();
        let expected = seg.sack.is_empty() && seg.wnd as u64 == self.snd_wnd && !self.ecn.echo;
        let mut w = AckWork { slow_path: !expected, ..AckWork::default() };
        if seg.ack > self.snd_una {
            self.patience.timeouts = 0;
        }
        if seg.ack >= self.snd_una {
            w.not_dup = self.hear_window(seg) | (seg.seq_len() > 0);
        } else {
            w.not_dup = true;
        }

        let clock = self.clock(now);
        self.heard = (now, clock);
        self.begin_event(now);
        let prior_sacked_end = self.board.sacked_end();
        if !seg.sack.is_empty() && self.sack {
            self.process_sack(clock, seg, prior.snd_una, &mut w);
        }
        // An overtaken ACK marks the segments that it SACKs and may start a recovery. Linux counts nothing as
        // delivered, takes no sample and leaves the window alone (`tcp_ack`, its path for old ACKs).
        let old = seg.ack < self.snd_una;
        if old {
            self.delivered = prior.delivered;
        } else {
            self.clean_rtx_queue(clock, seg, prior_sacked_end, &mut w);
            self.update_rtt(clock, seg, &mut w);
            self.update_reo_wnd(&w);
            if self.ecn.accurate {
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
        if self.loss_probe.is_out() {
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
        // with nothing outstanding even a marked ACK shows nothing about the path (Linux `tcp_ack`, no_queue)
        let concerns = self.board.packets_out() > 0 || w.una_advanced || w.dsack;
        if dubious && (concerns || self.ca_state != CaState::Open) {
            entering = self.fast_retrans_alert(now, seg, prior.snd_una, &sample, &mut w);
            settled = false;
        }
        if w.set_timer {
            self.set_xmit_timer(now);
        }

        // With nothing outstanding a late DSACK may only undo a reduction (Linux `tcp_ack`, no_queue).
        if !old && prior.outstanding > 0 {
            if !settled {
                self.renew_sample(&mut sample, &prior);
            }
            self.control_window(&mut sample, entering, &w);
        }
        self.look_at_slow_start(clock, None);
        self.update_pacing();
        if self.queue.is_some() {
            self.note_freed(now, w.newly_acked > 0);
        }
        if let Some(buffer) = &mut self.buffer {
            buffer.look();
        }
        self.trace.ack_done();
        if self.trace.is_on() {
            self.record_ack(now, seg, prior, &w);
        }
        if let Some(vars) = &mut self.trace.vars {
            vars.record(now, self.stats.acks_received as u32, &self.window, &self.cc);
        }
    }
}
