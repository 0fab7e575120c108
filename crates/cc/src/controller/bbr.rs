//! BBR, version 1: a model of the path (maximum delivery rate over ten rounds, minimum RTT over ten seconds) sets the
//! pacing rate and the window; losses have little influence.
//!
//! Sources: Cardwell et al., "BBR: congestion-based congestion control" (ACM Queue 2016); integer arithmetic of Linux
//! `tcp_bbr`. Rates are in segments per us times 2^24, gains in units of 1/256.
//!
//! | idea | file |
//! |---|---|
//! | the model: rounds, `bw`, extra ACKs | `model.rs` |
//! | policers | `long_term.rs` |
//! | Startup and Drain: when the pipe is full | `startup.rs` |
//! | ProbeBW: the cycle of gains | `probe_bw.rs` |
//! | ProbeRTT and `min_rtt` | `probe_rtt.rs` |
//! | gains, pacing rate, cwnd | `gains.rs` |

mod gains;
mod long_term;
mod model;
mod probe_bw;
mod probe_rtt;
mod startup;

use std::cell::Cell;

use ackclock_core::trace::CaState;
use ackclock_core::{Span, Stream, Time};

use self::gains::{BW_UNIT, UNIT};
use self::long_term::{LongTerm, Totals};
use self::model::{Aggregation, Rounds};
use self::probe_rtt::MinRtt;
use self::startup::FullPipe;
use super::minmax::RunningMax;
use super::{AckSample, CongestionControl, Needs, RateSample};
use crate::window::Window;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// BBRv1.
#[derive(Clone, Debug)]
pub struct Bbr {
    mode: Mode,
    /// Pacing gain in the current mode, in units of 1/256.
    pacing_gain: u64,
    cwnd_gain: u64,
    rounds: Rounds,
    /// Maximum delivery rate over ten rounds, segments per us times 2^24.
    bw: RunningMax,
    long_term: LongTerm,
    /// Connection counters at the last ACK or timeout.
    totals: Totals,
    aggregation: Aggregation,
    full_pipe: FullPipe,
    rtt: MinRtt,
    /// Current phase of ProbeBW and its start.
    cycle_idx: usize,
    cycle_stamp: Time,
    /// First round of recovery, with packet conservation: one segment is sent per segment delivered.
    packet_conservation: bool,
    /// Congestion state at the last ACK.
    prev_state: CaState,
    /// cwnd to restore after recovery or ProbeRTT.
    prior_cwnd: u32,
    /// Set when an idle flow starts to send again, until a segment is delivered.
    idle_restart: bool,
    /// The pacing rate is based on a measured RTT rather than on the initial 1 ms guess.
    has_seen_rtt: bool,
    /// Payload of a segment, bytes; used only for the trace.
    smss: u32,
    /// Cached pacing rate and its burst size in segments.
    burst: Cell<(u64, u32)>,
    stream: Stream,
}

impl Default for Bbr {
    fn default() -> Bbr {
        let mut bbr = Bbr {
            mode: Mode::Startup,
            pacing_gain: UNIT,
            cwnd_gain: UNIT,
            rounds: Rounds::default(),
            bw: RunningMax::default(),
            long_term: LongTerm::default(),
            totals: Totals::default(),
            aggregation: Aggregation::default(),
            full_pipe: FullPipe::default(),
            rtt: MinRtt::default(),
            cycle_idx: 0,
            cycle_stamp: Time::ZERO,
            packet_conservation: false,
            prev_state: CaState::Open,
            prior_cwnd: 0,
            idle_restart: false,
            has_seen_rtt: false,
            smss: 0,
            burst: Cell::new((0, 1)),
            stream: Stream::new(0, "bbr"),
        };
        (bbr.pacing_gain, bbr.cwnd_gain) = bbr.gains();
        bbr
    }
}

impl Bbr {
    /// Update the counters for this ACK. A rate sample carries the connection's exact totals.
    #[inline]
    fn count(&mut self, ack: &AckSample) {
        self.totals.delivered += u64::from(ack.delivered);
        self.totals.lost += u64::from(ack.newly_lost);
        if let Some(rate) = &ack.rate {
            (self.totals.delivered, self.totals.lost) = (rate.total_delivered, rate.total_lost);
        }
        if ack.delivered > 0 {
            self.totals.delivered_time = ack.now;
        }
        self.rounds.delivered = self.totals.delivered;
    }

    /// Linux `bbr_save_cwnd`: store cwnd before recovery or ProbeRTT, or its maximum since.
    fn save_cwnd(&mut self, cwnd: u32) {
        self.prior_cwnd = match self.prev_state < CaState::Recovery && self.mode != Mode::ProbeRtt {
            true => cwnd,
            false => self.prior_cwnd.max(cwnd),
        };
    }
}

impl CongestionControl for Bbr {
    /// Linux `bbr_init`.
    fn on_start(&mut self, window: &mut Window, now: Time, srtt: Span, smss: u32) {
        if srtt > Span::ZERO {
            self.rtt.min_rtt = srtt.as_us();
            self.has_seen_rtt = true;
        }
        self.rtt.min_rtt_stamp = now;
        self.aggregation.epoch_stamp = now;
        self.smss = smss;
        self.pace_from_rtt(window, srtt, smss);
    }

    fn on_ack(&mut self, _window: &mut Window, _ack: &AckSample) {}

    /// Linux `bbr_ssthresh`: recovery begins; cwnd is saved and not reduced to a threshold.
    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        self.save_cwnd(window.cwnd);
        window.ssthresh
    }

    /// Linux `bbr_main`: update the model, then everything derived from it.
    fn on_control(&mut self, window: &mut Window, ack: &AckSample) {
        self.count(ack);
        self.smss = ack.smss;
        self.update_bw(ack);
        self.update_extra_acked(window, ack);
        self.update_cycle(window, ack);
        self.check_full_bw(ack.rate.as_ref());
        self.check_drain(window, ack);
        self.update_min_rtt(window, ack);
        (self.pacing_gain, self.cwnd_gain) = self.gains();
        self.set_pacing(window, ack);
        self.set_cwnd(window, ack);
    }

    /// Linux `bbr_set_state`: after an RTO, search for the full pipe again.
    fn on_state(&mut self, _window: &mut Window, state: CaState, _now: Time) {
        if state == CaState::Loss {
            self.prev_state = CaState::Loss;
            self.full_pipe.bw = 0;
            self.rounds.round_start = true;
            self.sample_long_term(true, false); // a timeout counts as a loss
        }
    }

    fn on_totals(&mut self, delivered: u64, lost: u64, delivered_time: Time) {
        self.totals = Totals { delivered, lost, delivered_time };
        self.rounds.delivered = delivered;
    }

    /// Linux `bbr_undo_cwnd`.
    fn undo_cwnd(&mut self, window: &Window) -> u32 {
        self.full_pipe.bw = 0;
        self.full_pipe.count = 0;
        self.long_term.reset(&self.totals);
        window.cwnd
    }

    /// Linux `bbr_cwnd_event`: after an idle period, pacing resumes at the estimated rate.
    fn on_tx_start(&mut self, window: &mut Window, now: Time, idle: Span, _snd_nxt: u64) {
        if idle == Span::ZERO {
            return;
        }
        self.idle_restart = true;
        self.aggregation.epoch_stamp = now;
        self.aggregation.epoch_acked = 0;
        match self.mode {
            Mode::ProbeBw => self.pace_at(window, UNIT, self.smss),
            Mode::ProbeRtt => self.check_probe_rtt_done(window, now),
            _ => {}
        }
    }

    /// Rate samples taken in ProbeRTT do not reflect the path's capacity (Linux sets `app_limited`).
    fn holds_back(&mut self) -> bool {
        self.rtt.looking
    }

    fn seed(&mut self, seed: u64) {
        self.stream = Stream::new(seed, "bbr");
    }

    fn needs(&self) -> Needs {
        Needs {
            control: true,
            own_start: true,
            rate: true,
            pacing: true,
            seed: true,
            buffer_windows: 3,
            slow_packets: gains::SLOW,
            vars: &["estimate_bps", "min_rtt_s", "mode", "pacing_gain", "cwnd_gain"],
            ..Needs::default()
        }
    }

    fn vars(&self, values: &mut [f64]) {
        let gain = |g: u64| g as f64 / UNIT as f64;
        let rtt = if self.rtt.min_rtt == u64::MAX { f64::NAN } else { self.rtt.min_rtt as f64 * 1e-6 };
        let bps = self.bw_in_use() as f64 / BW_UNIT as f64 * 1e6 * 8.0 * f64::from(self.smss);
        let all = [bps, rtt, self.mode as u8 as f64, gain(self.pacing_gain), gain(self.cwnd_gain)];
        for (value, known) in values.iter_mut().zip(all) {
            *value = known;
        }
    }
}

#[cfg(test)]
mod tests;
