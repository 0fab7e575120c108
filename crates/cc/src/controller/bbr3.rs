//! BBR, version 3: the model of version 1, bounded by losses. Long-term and short-term bounds limit the volume in
//! flight, and the size and spacing of probes allow coexistence with loss-based flows.
//!
//! Source: draft-ietf-ccwg-bbr §2 (variables and constants) and §5 (algorithm). Names are the draft's; comments give
//! the draft's name of each function. The arithmetic uses integers as in Linux: rates in segments per us times 2^24,
//! times in us, volumes in whole segments, gains and ratios as fractions. Every volume that is compared with cwnd can
//! therefore be reached by cwnd.
//!
//! | idea | file | draft |
//! |---|---|---|
//! | model: rounds, rate, bounds derived from losses, ACK aggregation | `model.rs` | §5.5.1-5.5.4, §5.5.9, §5.5.10 |
//! | Startup and Drain: when the pipe is full | `startup.rs` | §5.3.1, §5.3.2 |
//! | ProbeBW: down, cruise, refill, up | `probe_bw.rs` | §5.3.3, §5.5.10 |
//! | ProbeRTT and the minimum RTT | `probe_rtt.rs` | §5.3.4, §5.5.5 |
//! | gains, pacing rate, cwnd | `gains.rs` | §5.6 |
//! | reactions to ECN marks | `ecn.rs` | none |
//! | handling of each segment marked lost | `losses.rs` | §5.5.10.2 |
//! | constants of the draft and of Google's kernel | `flavour.rs` | §2 |
//! | order of operations in that kernel | `kernel.rs` | none |
//!
//! Differs: in Startup, an ACK that reports losses is one loss event.

mod ecn;
mod flavour;
mod gains;
mod kernel;
mod losses;
mod model;
mod probe_bw;
mod probe_rtt;
mod startup;

use ackclock_core::trace::CaState;
use ackclock_core::{Span, Stream, Time};

use self::ecn::Marks;
pub(super) use self::flavour::Bbr3Options;
use self::flavour::{Constants, Flavour, Ratio};
use self::gains::BW_UNIT;
use self::losses::LostSegment;
use self::model::{Aggregation, Bounds, Rounds};
use self::probe_bw::{AckPhase, Cycle, Probe};
use self::probe_rtt::MinRtt;
use self::startup::FullPipe;
use super::{AckSample, CongestionControl, Needs, RateSample};
use crate::window::Window;

/// Maximum initial window that is stored, segments (Linux: seven bits).
const MOST_FIRST_CWND: u32 = 0x7f;
/// Sentinels for a volume and a rate without a bound.
const UNBOUNDED: u32 = u32::MAX;
const NO_RATE: u64 = u64::MAX;

/// BBR.state (§5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Startup,
    Drain,
    ProbeBw(Cycle),
    ProbeRtt,
}

/// BBRv3.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    flavour: Flavour,
    c: &'static Constants,
    state: State,
    /// BBR.pacing_gain and BBR.cwnd_gain of the current state.
    pacing_gain: Ratio,
    cwnd_gain: Ratio,
    rounds: Rounds,
    /// BBR.MaxBwFilter (§5.5.3): maximum rates in the current and the previous probing cycle.
    bw_filter: [u64; 2],
    bounds: Bounds,
    aggregation: Aggregation,
    full_pipe: FullPipe,
    probe: Probe,
    marks: Marks,
    undo: Undo,
    rtt: MinRtt,
    /// BBR.prior_cwnd: the cwnd to restore after recovery or ProbeRTT.
    prior_cwnd: u32,
    /// Initial window, segments.
    first_cwnd: u32,
    /// Congestion state at the last ACK.
    prev_state: CaState,
    /// BBR.idle_restart: set when an idle flow starts to send again, until a segment is delivered (§5.4).
    idle_restart: bool,
    /// The window has reached the size given by the model (Linux `try_fast_path`).
    settled: bool,
    /// The pacing rate is based on a measured RTT rather than on the initial 1 ms guess (§5.6.2).
    has_seen_rtt: bool,
    /// Payload of a segment, bytes; used only for the trace.
    smss: u32,
    stream: Stream,
}

/// State before a loss, restored by an undo (BBRSaveStateUponLoss).
#[derive(Clone, Copy, Debug)]
struct Undo {
    state: State,
    full_pipe_reached: bool,
    bw_shortterm: u64,
    inflight_shortterm: u32,
    inflight_longterm: u32,
}

impl Bbr3 {
    /// Create the controller with the parameters of a scenario.
    pub(super) fn new(options: &Bbr3Options) -> Bbr3 {
        let c = options.flavour.constants();
        let (pacing_gain, cwnd_gain) = State::Startup.gains(c);
        Bbr3 {
            flavour: options.flavour,
            c,
            state: State::Startup,
            pacing_gain,
            cwnd_gain,
            rounds: Rounds::default(),
            bw_filter: [0; 2],
            bounds: Bounds::new(options.flavour),
            aggregation: Aggregation::new(c.extra_acked_parts),
            full_pipe: FullPipe::default(),
            probe: Probe::default(),
            marks: Marks::new(options.ecn),
            undo: Undo {
                state: State::Startup,
                full_pipe_reached: false,
                bw_shortterm: NO_RATE,
                inflight_shortterm: UNBOUNDED,
                inflight_longterm: UNBOUNDED,
            },
            rtt: MinRtt::default(),
            prior_cwnd: 0,
            first_cwnd: 0,
            prev_state: CaState::Open,
            idle_restart: false,
            settled: false,
            has_seen_rtt: false,
            smss: 0,
            stream: Stream::new(0, "bbr3"),
        }
    }

    /// BBRSaveCwnd: store cwnd before recovery or ProbeRTT, or its maximum since.
    fn save_cwnd(&mut self, cwnd: u32) {
        let steady = self.prev_state < CaState::Recovery && self.state != State::ProbeRtt;
        self.prior_cwnd = if steady { cwnd } else { self.prior_cwnd.max(cwnd) };
    }

    /// BBRUpdateModelAndState (§5.2.3): the part that needs a rate sample.
    fn update_model(&mut self, window: &mut Window, ack: &AckSample, rate: &RateSample) {
        let bw = self.sample_bw(rate);
        self.update_congestion_signals(window, ack, rate, bw);
        self.update_aggregation(window, ack);
        self.check_full_pipe(rate, bw);
        self.check_startup_done(window, ack, rate);
        self.check_drain_done(window, ack);
        self.update_cycle(window, ack, rate, bw);
        self.bounds.advance(rate, bw);
    }
}

impl CongestionControl for Bbr3 {
    /// BBROnInit (§5.2.1).
    fn on_start(&mut self, window: &mut Window, now: Time, srtt: Span, smss: u32) {
        if srtt > Span::ZERO {
            self.rtt.start(srtt);
            self.has_seen_rtt = true;
        }
        self.rtt.stamp(now);
        self.aggregation.restart(now);
        self.smss = smss;
        self.first_cwnd = window.cwnd.min(MOST_FIRST_CWND);
        self.pace_from_rtt(window, srtt, smss);
    }

    fn on_ack(&mut self, _window: &mut Window, _ack: &AckSample) {}

    /// Recovery begins: cwnd is saved, and later modulated in `set_cwnd`, rather than reduced to a threshold.
    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        self.save_cwnd(window.cwnd);
        self.undo = Undo {
            state: self.state,
            full_pipe_reached: self.full_pipe.reached,
            bw_shortterm: self.bounds.bw_shortterm,
            inflight_shortterm: self.bounds.inflight_shortterm,
            inflight_longterm: self.bounds.inflight_longterm,
        };
        window.ssthresh
    }

    /// BBRUpdateOnACK (§5.2.3): update the model, then everything derived from it.
    fn on_control(&mut self, window: &mut Window, ack: &AckSample) {
        self.smss = ack.smss;
        self.rounds.deliver(ack);
        self.bounds.loss_round_start = false;
        if self.flavour == Flavour::LinuxV3 {
            return self.control_as_linux(window, ack);
        }
        if let Some(rate) = ack.rate.filter(|rate| rate.interval > Span::ZERO) {
            self.update_model(window, ack, &rate);
        }
        self.update_min_rtt(ack);
        self.check_probe_rtt(window, ack);
        (self.pacing_gain, self.cwnd_gain) = self.state.gains(self.c);
        self.set_pacing(window, ack);
        self.set_cwnd(window, ack);
    }

    fn on_totals(&mut self, delivered: u64, _lost: u64, _delivered_time: Time) {
        self.rounds.delivered = delivered;
    }

    /// BBRHandleLostPacket (§5.5.10.2; Linux `bbr_skb_marked_lost`).
    fn on_lost(
        &mut self,
        window: &mut Window,
        now: Time,
        delivered: u64,
        lost: u32,
        tx_in_flight: u32,
        is_app_limited: bool,
    ) {
        self.rounds.delivered = delivered;
        self.judge_lost(window, now, LostSegment { lost, tx_in_flight, is_app_limited });
    }

    /// Linux `bbr_run_loss_probe_recovery`: a tail loss probe repaired the loss of one segment. The draft has no
    /// counterpart.
    fn on_repaired(&mut self, window: &mut Window, now: Time, delivered: u64, is_app_limited: bool) {
        self.rounds.delivered = delivered;
        if self.flavour == Flavour::LinuxV3 {
            self.judge_repaired(window, now, is_app_limited);
        }
    }

    /// Linux `bbr_set_state`; the draft only records the state. In the flavour `linux-v3` the short-term bound is set
    /// to the window before the timeout, and cwnd is restored when the repair is complete.
    fn on_state(&mut self, window: &mut Window, state: CaState, _now: Time) {
        let linux = self.flavour == Flavour::LinuxV3;
        if state == CaState::Loss {
            self.prev_state = CaState::Loss;
            if linux {
                self.full_pipe.reset(0);
                if !self.is_probing_bw() && self.bounds.inflight_shortterm == UNBOUNDED {
                    self.bounds.inflight_shortterm = window.cwnd.max(self.prior_cwnd);
                }
            }
        } else if linux && self.prev_state == CaState::Loss {
            window.cwnd = window.cwnd.max(self.prior_cwnd);
            self.settled = false;
        }
    }

    /// BBRHandleSpuriousLossDetection: restore the bounds to their values before the losses. The draft also returns to
    /// Startup or to a probe that the losses ended. A return to Startup restores `full_pipe.reached`, because Startup
    /// would otherwise end again at once.
    fn undo_cwnd(&mut self, window: &Window) -> u32 {
        let undo = self.undo;
        self.bounds.loss_in_round = false;
        self.full_pipe.reset(0);
        self.bounds.bw_shortterm = self.bounds.bw_shortterm.max(undo.bw_shortterm);
        self.bounds.inflight_shortterm = self.bounds.inflight_shortterm.max(undo.inflight_shortterm);
        self.bounds.inflight_longterm = self.bounds.inflight_longterm.max(undo.inflight_longterm);
        if self.flavour == Flavour::Draft06 && self.state != State::ProbeRtt && self.state != undo.state {
            match undo.state {
                State::Startup => {
                    self.state = State::Startup;
                    self.full_pipe.reached = undo.full_pipe_reached;
                }
                State::ProbeBw(Cycle::Up) => self.start_refill(0),
                _ => {}
            }
        }
        self.settled = false;
        match self.flavour {
            Flavour::Draft06 => window.cwnd.max(self.prior_cwnd),
            Flavour::LinuxV3 => self.prior_cwnd,
        }
    }

    /// BBRHandleRestartFromIdle (§5.4).
    fn on_tx_start(&mut self, window: &mut Window, now: Time, idle: Span, _snd_nxt: u64) {
        if idle == Span::ZERO {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.state {
            State::ProbeBw(_) if self.bw() > 0 => window.pacing_rate = self.paced_at(Ratio::ONE, self.smss),
            State::ProbeRtt => self.check_probe_rtt_done(window, now),
            _ => {}
        }
    }

    /// In ProbeRTT the few segments in flight do not reflect the path's rate (§5.3.4.4).
    fn holds_back(&mut self) -> bool {
        self.rtt.looking
    }

    fn needs(&self) -> Needs {
        Needs {
            control: true,
            own_start: true,
            rate: true,
            pacing: true,
            seed: true,
            exact_ecn: self.marks.on,
            l4s: false,
            watches_application: true,
            losses: true,
            buffer_windows: 3,
            vars: &[
                "estimate_bps",
                "min_rtt_s",
                "mode",
                "pacing_gain",
                "cwnd_gain",
                "inflight_longterm",
                "inflight_shortterm",
            ],
            ..Needs::default()
        }
    }

    fn seed(&mut self, seed: u64) {
        let name = match self.flavour {
            Flavour::Draft06 => "bbr3",
            Flavour::LinuxV3 => "bbr", // name of Google's module in Linux
        };
        self.stream = Stream::new(seed, name);
    }

    fn vars(&self, values: &mut [f64]) {
        let mode = match self.state {
            State::Startup => 0.0,
            State::Drain => 1.0,
            State::ProbeBw(cycle) => 2.0 + cycle as u8 as f64 / 10.0,
            State::ProbeRtt => 3.0,
        };
        let volume = |x: u32| if x == UNBOUNDED { f64::NAN } else { f64::from(x) };
        let rtt = if self.rtt.min_rtt == u64::MAX { f64::NAN } else { self.rtt.min_rtt as f64 * 1e-6 };
        let all = [
            self.bw() as f64 / BW_UNIT as f64 * 1e6 * 8.0 * f64::from(self.smss),
            rtt,
            mode,
            self.pacing_gain.as_f64(),
            self.cwnd_gain.as_f64(),
            volume(self.bounds.inflight_longterm),
            volume(self.bounds.inflight_shortterm),
        ];
        for (value, known) in values.iter_mut().zip(all) {
            *value = known;
        }
    }
}

#[cfg(test)]
mod tests;
