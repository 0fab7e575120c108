//! Gains, pacing rate and congestion window, derived from model and state (draft-ietf-ccwg-bbr §5.6). All volumes are
//! whole segments, because a window could never reach a bound with a fraction.

use ackclock_core::trace::CaState;
use ackclock_core::Span;

use super::flavour::{Ratio, PROBE_RTT_CWND_GAIN};
use super::{AckSample, Bbr3, Constants, Cycle, Flavour, State, UNBOUNDED};
use crate::window::Window;

/// Rates are in segments per us times 2^24.
pub(super) const BW_SCALE: u32 = 24;
pub(super) const BW_UNIT: u64 = 1 << BW_SCALE;
/// BBR.DefaultCwndGain (§2): allows for a round of delayed or aggregated ACKs.
const CWND_GAIN: Ratio = Ratio::new(2, 1);
/// Pacing gain and cwnd gain in ProbeBW_UP (§5.6.1).
const UP_PACING_GAIN: Ratio = Ratio::new(5, 4);
const UP_CWND_GAIN: Ratio = Ratio::new(9, 4);
/// BBR.PacingMarginPercent (§2): pacing stays 1 % below the estimated rate so that queues drain.
const MARGIN_PERCENT: u64 = 1;
/// BBR.MinPipeCwnd (§5.6.4.3), segments.
pub(super) const MIN_PIPE_CWND: u32 = 4;
/// Maximum TSO packet size that Linux uses for this goal (GSO_LEGACY_MAX_SIZE), less headers, bytes.
const TSO_MAX: u64 = 65_536 - 1 - 320;
/// Linux `tcp_min_tso_segs`.
const MIN_TSO_SEGMENTS: u64 = 2;
/// InitialCwnd (§5.6.4.1), segments.
const INIT_CWND: u32 = 10;

impl State {
    /// Pacing gain and cwnd gain (§5.6.1).
    pub(super) fn gains(self, c: &Constants) -> (Ratio, Ratio) {
        match self {
            State::Startup => (c.startup_pacing_gain, CWND_GAIN),
            State::Drain => (c.drain_pacing_gain, CWND_GAIN),
            State::ProbeBw(Cycle::Down) => (c.down_pacing_gain, CWND_GAIN),
            State::ProbeBw(Cycle::Cruise | Cycle::Refill) => (Ratio::ONE, CWND_GAIN),
            State::ProbeBw(Cycle::Up) => (UP_PACING_GAIN, UP_CWND_GAIN),
            State::ProbeRtt => (Ratio::ONE, c.probe_rtt_cwnd_gain),
        }
    }
}

/// Pacing rate in bytes/s: rate times gain, less the margin.
fn pacing_rate(bw: u64, gain: Ratio, smss: u32) -> u64 {
    let rate = gain.of(bw.saturating_mul(u64::from(smss)));
    (rate.saturating_mul(10_000 * (100 - MARGIN_PERCENT)) >> BW_SCALE).max(1)
}

impl Bbr3 {
    /// BBRInitPacingRate (§5.6.2): one initial window per RTT, or per millisecond until an RTT is known.
    pub(super) fn pace_from_rtt(&self, window: &mut Window, srtt: Span, smss: u32) {
        let us = if srtt > Span::ZERO { srtt.as_us().max(1) } else { 1_000 };
        let bw = u64::from(window.cwnd.max(1)) * BW_UNIT / us;
        window.pacing_rate = pacing_rate(bw, self.c.startup_pacing_gain, smss);
    }

    /// BBRBDPMultiple (§5.6.4.2), segments, rounded up.
    pub(super) fn bdp(&self, bw: u64, gain: Ratio) -> u32 {
        if self.rtt.min_rtt == u64::MAX {
            return self.unknown_bdp();
        }
        gain.of(bw.saturating_mul(self.rtt.min_rtt)).div_ceil(BW_UNIT).min(MOST) as u32
    }

    /// Value used as the BDP until an RTT is known, segments.
    fn unknown_bdp(&self) -> u32 {
        match self.flavour {
            Flavour::Draft06 => INIT_CWND,
            Flavour::LinuxV3 => self.first_cwnd,
        }
    }

    /// BBRQuantizationBudget (§5.6.4.2): at least three bursts of the pacer, plus two segments while probing.
    pub(super) fn quantized(&self, inflight: u32, window: &Window, smss: u32) -> u32 {
        let inflight = inflight.max(3 * self.burst(window.pacing_rate, smss)).max(MIN_PIPE_CWND);
        inflight + if self.state == State::ProbeBw(Cycle::Up) { 2 } else { 0 }
    }

    /// Maximum burst at `rate` (bytes/s), segments: BBR.send_quantum (§5.6.3), or TSO's goal (Linux
    /// `bbr_tso_segs_goal`), which is 1/1024 s at the rate plus 64 KiB halved for each 512 us of the minimum RTT.
    pub(super) fn burst(&self, rate: u64, smss: u32) -> u32 {
        let smss = u64::from(smss.max(1));
        let segments = match self.flavour {
            Flavour::Draft06 => ((rate / 1000).min(65_536) / smss).max(2),
            Flavour::LinuxV3 => {
                let halvings = self.rtt.min_rtt / 512;
                let short_path = if halvings < 32 { 65_536_u64 >> halvings } else { 0 };
                (((rate >> 10) + short_path).min(TSO_MAX) / smss).max(MIN_TSO_SEGMENTS)
            }
        };
        segments as u32
    }

    /// BBRInflight (§5.6.4.2).
    pub(super) fn inflight(&self, bw: u64, window: &Window, smss: u32) -> u32 {
        self.quantized(self.bdp(bw, Ratio::ONE), window, smss)
    }

    /// BDP as used for a bound; in the flavour `linux-v3` it includes room for bursts (Linux `bbr_inflight`).
    pub(super) fn bound_of_path(&self, bw: u64, window: &Window) -> u32 {
        match self.flavour {
            Flavour::Draft06 => self.bdp(bw, Ratio::ONE),
            Flavour::LinuxV3 => self.inflight(bw, window, self.smss),
        }
    }

    /// BBRTargetInflight (§5.3.3.6).
    pub(super) fn target_inflight(&self, window: &Window) -> u32 {
        self.bound_of_path(self.bw(), window).min(window.cwnd)
    }

    /// Volume in flight used to decide phase changes (§5.3.3). Linux estimates the volume at the moment the pacer
    /// allows the next transmission (`bbr_packets_in_net_at_edt`).
    pub(super) fn in_net(&self, in_flight: u32, ack: &AckSample, smss: u32, rate: u64) -> u32 {
        if self.flavour == Flavour::Draft06 {
            return ack.in_flight;
        }
        let next = if self.pacing_gain.is_above_one() { self.burst(rate, smss) } else { 0 };
        let gone = self.bw().saturating_mul(ack.departs_in.as_us()) >> BW_SCALE;
        (in_flight + next).saturating_sub(gone.min(MOST) as u32)
    }

    /// BBRInflightWithHeadroom (§5.3.3.6).
    pub(super) fn inflight_with_headroom(&self) -> u32 {
        let longterm = self.bounds.inflight_longterm;
        if longterm == UNBOUNDED {
            return UNBOUNDED;
        }
        let headroom = self.c.headroom.of_volume(longterm).max(1);
        longterm.saturating_sub(headroom).max(MIN_PIPE_CWND)
    }

    /// BBRProbeRTTCwnd (§5.6.4.5).
    pub(super) fn probe_rtt_cwnd(&self) -> u32 {
        self.bdp(self.bw(), PROBE_RTT_CWND_GAIN).max(MIN_PIPE_CWND)
    }

    /// BBRSetPacingRateWithGain, applied to the rate in use.
    pub(super) fn paced_at(&self, gain: Ratio, smss: u32) -> u64 {
        pacing_rate(self.bw(), gain, smss)
    }

    /// BBRSetPacingRate (§5.6.2): in Startup the rate never falls.
    pub(super) fn set_pacing(&mut self, window: &mut Window, ack: &AckSample) {
        if !self.has_seen_rtt && ack.srtt > Span::ZERO {
            self.has_seen_rtt = true;
            self.pace_from_rtt(window, ack.srtt, ack.smss);
        }
        let rate = self.paced_at(self.pacing_gain, ack.smss);
        if self.bw() > 0 && (self.full_pipe.reached || rate > window.pacing_rate) {
            window.pacing_rate = rate;
        }
    }

    /// BBRSetCwnd (§5.6.4.6).
    pub(super) fn set_cwnd(&mut self, window: &mut Window, ack: &AckSample) {
        let mut cwnd = self.modulated_for_recovery(window.cwnd, ack);
        self.prev_state = ack.ca_state;
        let max_inflight = self.bdp(self.bw(), self.cwnd_gain).saturating_add(self.extra_acked());
        let max_inflight = self.quantized(max_inflight, window, ack.smss);
        if self.full_pipe.reached {
            cwnd = cwnd.saturating_add(ack.delivered).min(max_inflight);
        } else if cwnd < max_inflight || self.rounds.delivered < u64::from(INIT_CWND) {
            cwnd = cwnd.saturating_add(ack.delivered);
        }
        cwnd = cwnd.max(MIN_PIPE_CWND);
        if self.state == State::ProbeRtt {
            cwnd = cwnd.min(self.probe_rtt_cwnd()); // BBRBoundCwndForProbeRTT, §5.6.4.5
        }
        window.cwnd = cwnd.min(self.cwnd_bound()).min(window.cwnd_clamp);
    }

    /// BBRModulateCwndForRecovery (§5.6.4.4): subtract losses, and restore cwnd at the end of recovery.
    fn modulated_for_recovery(&self, mut cwnd: u32, ack: &AckSample) -> u32 {
        if ack.newly_lost > 0 && ack.ca_state >= CaState::Recovery {
            cwnd = cwnd.saturating_sub(ack.newly_lost).max(1);
        }
        if self.prev_state >= CaState::Recovery && ack.ca_state < CaState::Recovery {
            cwnd = cwnd.max(self.prior_cwnd);
        }
        cwnd
    }

    /// BBRBoundCwndForModel (§5.6.4.7).
    pub(super) fn cwnd_bound(&self) -> u32 {
        let cap = match self.state {
            State::ProbeBw(Cycle::Cruise) | State::ProbeRtt => self.inflight_with_headroom(),
            State::ProbeBw(_) => self.bounds.inflight_longterm,
            _ => UNBOUNDED,
        };
        cap.min(self.bounds.inflight_shortterm).max(MIN_PIPE_CWND)
    }
}

/// Maximum number of segments in a volume, such that the sum of two does not overflow.
const MOST: u64 = 1 << 30;
