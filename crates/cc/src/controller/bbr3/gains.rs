//! What follows from model and state: gains, pacing rate and congestion window (draft-ietf-ccwg-bbr §5.6).

use ackclock_core::trace::CaState;
use ackclock_core::Span;

use super::probe_rtt::PROBE_RTT_CWND_GAIN;
use super::{AckSample, Bbr3, Constants, Cycle, Flavour, State};
use crate::window::Window;

/// BBR.DefaultCwndGain (§2): room for a round of ACKs that are late or aggregated.
const CWND_GAIN: f64 = 2.0;
/// BBR.PacingMarginPercent (§2): pacing stays 1 % below the rate, so that queues shrink.
const MARGIN: f64 = 0.99;
/// BBR.MinPipeCwnd (§5.6.4.3), segments.
pub(super) const MIN_PIPE_CWND: u32 = 4;
/// Largest packet that Linux hands to TSO for this goal (GSO_LEGACY_MAX_SIZE), less headers: bytes.
const TSO_MAX: u64 = 65_536 - 1 - 320;
/// InitialCwnd (§5.6.4.1), segments.
const INIT_CWND: u64 = 10;

impl State {
    /// Gains of pacing and of cwnd (§5.6.1).
    pub(super) fn gains(self, c: &Constants) -> (f64, f64) {
        match self {
            State::Startup => (c.startup_pacing_gain, CWND_GAIN),
            State::Drain => (c.drain_pacing_gain, CWND_GAIN),
            State::ProbeBw(Cycle::Down) => (c.down_pacing_gain, CWND_GAIN),
            State::ProbeBw(Cycle::Cruise | Cycle::Refill) => (1.0, CWND_GAIN),
            State::ProbeBw(Cycle::Up) => (1.25, 2.25),
            State::ProbeRtt => (1.0, PROBE_RTT_CWND_GAIN),
        }
    }
}

impl Bbr3 {
    /// BBRInitPacingRate (§5.6.2): the initial window each RTT, or each millisecond while none is known.
    pub(super) fn pace_from_rtt(&self, window: &mut Window, srtt: Span, smss: u32) {
        let rtt = if srtt > Span::ZERO { srtt.as_secs() } else { 0.001 };
        let bw = f64::from(window.cwnd.max(1)) / rtt;
        window.pacing_rate = (self.c.startup_pacing_gain * bw * f64::from(smss) * MARGIN) as u64;
    }

    /// BBRBDPMultiple (§5.6.4.2).
    pub(super) fn bdp(&self, bw: f64, gain: f64) -> f64 {
        if self.rtt.min_rtt.is_infinite() {
            return INIT_CWND as f64;
        }
        libm::ceil(gain * bw * self.rtt.min_rtt)
    }

    /// BBRQuantizationBudget (§5.6.4.2): room for three bursts of the pacer, and two segments more in a probe.
    fn quantized(&self, inflight: f64, window: &Window, smss: u32) -> f64 {
        let inflight = inflight.max(3.0 * self.burst(window.pacing_rate, smss)).max(f64::from(MIN_PIPE_CWND));
        inflight + if self.state == State::ProbeBw(Cycle::Up) { 2.0 } else { 0.0 }
    }

    /// Segments that may leave at once at `rate`, bytes/s: BBR.send_quantum (§5.6.3), or TSO's goal (Linux
    /// `bbr_tso_segs_goal`): 1/1024 s of the rate, and 64 KiB halved for each 512 us of the least RTT.
    pub(super) fn burst(&self, rate: u64, smss: u32) -> f64 {
        let smss = u64::from(smss.max(1));
        let segments = match self.flavour {
            Flavour::Draft06 => ((rate / 1000).min(65_536) / smss).max(2),
            Flavour::LinuxV3 => {
                let halvings = (self.rtt.min_rtt * 1e6 / 512.0).min(64.0) as u32;
                let short_path = if halvings < 32 { 65_536_u64 >> halvings } else { 0 };
                let least = if rate < 1_200_000 / 8 { 1 } else { 2 };
                (((rate >> 10) + short_path).min(TSO_MAX) / smss).max(least)
            }
        };
        segments as f64
    }

    /// BBRInflight (§5.6.4.2).
    pub(super) fn inflight(&self, gain: f64, window: &Window, smss: u32) -> f64 {
        self.quantized(self.bdp(self.max_bw(), gain), window, smss)
    }

    /// BBRTargetInflight (§5.3.3.6).
    pub(super) fn target_inflight(&self, window: &Window) -> f64 {
        self.bdp(self.bw(), 1.0).min(f64::from(window.cwnd))
    }

    /// BBRInflightWithHeadroom (§5.3.3.6).
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        let longterm = self.bounds.inflight_longterm;
        if longterm.is_infinite() {
            return f64::INFINITY;
        }
        let headroom = (self.c.headroom * longterm).max(1.0);
        (longterm - headroom).max(f64::from(MIN_PIPE_CWND))
    }

    /// BBRSetPacingRate (§5.6.2): in Startup the rate only rises.
    pub(super) fn set_pacing(&mut self, window: &mut Window, ack: &AckSample) {
        if !self.has_seen_rtt && ack.srtt > Span::ZERO {
            self.has_seen_rtt = true;
            self.pace_from_rtt(window, ack.srtt, ack.smss);
        }
        let rate = (self.pacing_gain * self.bw() * MARGIN * f64::from(ack.smss)) as u64;
        if self.bw() > 0.0 && (self.full_pipe.reached || rate > window.pacing_rate) {
            window.pacing_rate = rate.max(1);
        }
    }

    /// BBRSetCwnd (§5.6.4.6).
    pub(super) fn set_cwnd(&mut self, window: &mut Window, ack: &AckSample) {
        let mut cwnd = self.modulated_for_recovery(window.cwnd, ack);
        let max_inflight = self.bdp(self.bw(), self.cwnd_gain) + self.extra_acked();
        let max_inflight = self.quantized(max_inflight, window, ack.smss).min(1e9) as u32;
        if self.full_pipe.reached {
            cwnd = cwnd.saturating_add(ack.delivered).min(max_inflight);
        } else if cwnd < max_inflight || self.rounds.delivered < INIT_CWND {
            cwnd = cwnd.saturating_add(ack.delivered);
        }
        cwnd = cwnd.max(MIN_PIPE_CWND);
        if self.state == State::ProbeRtt {
            cwnd = cwnd.min(self.probe_rtt_cwnd()); // BBRBoundCwndForProbeRTT, §5.6.4.5
        }
        window.cwnd = cwnd.min(self.cwnd_bound()).min(window.cwnd_clamp);
    }

    /// BBRModulateCwndForRecovery (§5.6.4.4): less what was lost; at the end of recovery cwnd is as before.
    fn modulated_for_recovery(&mut self, mut cwnd: u32, ack: &AckSample) -> u32 {
        if ack.newly_lost > 0 && ack.ca_state >= CaState::Recovery {
            cwnd = cwnd.saturating_sub(ack.newly_lost).max(1);
        }
        if self.prev_state >= CaState::Recovery && ack.ca_state < CaState::Recovery {
            cwnd = cwnd.max(self.prior_cwnd);
        }
        self.prev_state = ack.ca_state;
        cwnd
    }

    /// BBRBoundCwndForModel (§5.6.4.7).
    fn cwnd_bound(&self) -> u32 {
        let cap = match self.state {
            State::ProbeBw(Cycle::Cruise) | State::ProbeRtt => self.inflight_with_headroom(),
            State::ProbeBw(_) => self.bounds.inflight_longterm,
            _ => f64::INFINITY,
        };
        cap.min(self.bounds.inflight_shortterm).max(f64::from(MIN_PIPE_CWND)).min(1e9) as u32
    }
}
