//! Gains, pacing rate and congestion window, derived from model and mode. Rates are in segments per us times 2^24,
//! gains in units of 1/256.

use ackclock_core::trace::CaState;
use ackclock_core::Span;

use super::probe_bw::CYCLE;
use super::{AckSample, Bbr, Mode};
use crate::window::Window;

/// Linux `BW_SCALE`, `BW_UNIT`.
pub(super) const BW_SCALE: u32 = 24;
pub(super) const BW_UNIT: u64 = 1 << BW_SCALE;
/// Linux `BBR_UNIT`.
pub(super) const UNIT: u64 = 256;
/// 2 / ln 2, the smallest gain that doubles the rate each round (Linux `bbr_high_gain`).
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
/// Inverse of the high gain: drains in one round the queue that Startup built (Linux `bbr_drain_gain`).
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// Allows for a round of delayed or aggregated ACKs (Linux `bbr_cwnd_gain`).
const CWND_GAIN: u64 = UNIT * 2;
/// Pacing stays 1 % below the estimated rate so that queues drain (Linux `bbr_pacing_margin_percent`).
const MARGIN_PERCENT: u64 = 1;
/// Linux `bbr_cwnd_min_target`, segments.
pub(super) const MIN_CWND: u32 = 4;
/// Linux `TCP_INIT_CWND`, segments.
const INIT_CWND: u32 = 10;
/// Maximum time for which aggregated ACKs are added to cwnd: 100 ms at the estimated rate (Linux
/// `bbr_extra_acked_max_us`).
const EXTRA_MAX_US: u64 = 100_000;
/// Rate in bytes/s below which a packet carries a single segment (Linux `bbr_min_tso_rate`).
pub(super) const SLOW: u32 = 1_200_000 / 8;

/// Pacing rate in bytes/s: rate times gain, less the margin (Linux `bbr_rate_bytes_per_sec`).
pub(super) fn pacing_rate(bw: u64, gain: u64, smss: u32) -> u64 {
    let rate = (bw.saturating_mul(u64::from(smss)).saturating_mul(gain)) / UNIT;
    rate.saturating_mul(10_000 * (100 - MARGIN_PERCENT)) >> BW_SCALE
}

impl Bbr {
    /// Pacing gain and cwnd gain (Linux `bbr_update_gains`).
    pub(super) fn gains(&self) -> (u64, u64) {
        match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.long_term.used => (UNIT, CWND_GAIN),
            Mode::ProbeBw => (CYCLE[self.cycle_idx], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        }
    }

    /// Number of segments in one TSO burst at this pacing rate (Linux `bbr_tso_segs_goal`). The value is cached because
    /// the rate seldom changes and the division would dominate the cost of an ACK.
    fn burst(&self, window: &Window, smss: u32) -> u32 {
        let rate = window.pacing_rate;
        let (known, burst) = self.burst.get();
        if known == rate {
            return burst;
        }
        let least = if rate < u64::from(SLOW) { 1 } else { 2 };
        let burst = ((rate >> 10).min(65_535 - 320) / u64::from(smss.max(1))).clamp(least, 0x7f) as u32;
        self.burst.set((rate, burst));
        burst
    }

    /// Linux `bbr_bdp`.
    fn bdp(&self, bw: u64, gain: u64) -> u64 {
        if self.rtt.min_rtt == u64::MAX {
            return u64::from(INIT_CWND);
        }
        (bw.saturating_mul(self.rtt.min_rtt).saturating_mul(gain) / UNIT).div_ceil(BW_UNIT)
    }

    /// Linux `bbr_quantization_budget`: add three bursts, round up to an even number, and add two segments while
    /// probing.
    fn with_budget(&self, cwnd: u64, window: &Window, smss: u32) -> u64 {
        let cwnd = (cwnd + 3 * u64::from(self.burst(window, smss)) + 1) & !1;
        cwnd + 2 * u64::from(self.mode == Mode::ProbeBw && self.cycle_idx == 0)
    }

    /// Linux `bbr_inflight`.
    pub(super) fn inflight(&self, bw: u64, gain: u64, window: &Window, smss: u32) -> u64 {
        self.with_budget(self.bdp(bw, gain), window, smss)
    }

    /// Segments still in flight when the pacer next allows a transmission, assuming delivery at the rate in use (Linux
    /// `bbr_packets_in_net_at_edt`).
    pub(super) fn in_net(&self, in_flight: u32, window: &Window, ack: &AckSample) -> u64 {
        let next = if self.pacing_gain > UNIT { u64::from(self.burst(window, ack.smss)) } else { 0 };
        let gone = self.bw_in_use().saturating_mul(ack.departs_in.as_us()) >> BW_SCALE;
        (u64::from(in_flight) + next).saturating_sub(gone)
    }

    /// Linux `bbr_set_pacing_rate`: in Startup the rate never falls.
    pub(super) fn set_pacing(&mut self, window: &mut Window, ack: &AckSample) {
        if !self.has_seen_rtt && ack.srtt > Span::ZERO {
            self.has_seen_rtt = true;
            self.pace_from_rtt(window, ack.srtt, ack.smss);
        }
        self.pace_at(window, self.pacing_gain, ack.smss);
    }

    /// Set the pacing rate from the rate in use, unless that would lower it in Startup.
    pub(super) fn pace_at(&self, window: &mut Window, gain: u64, smss: u32) {
        let rate = pacing_rate(self.bw_in_use(), gain, smss);
        if self.full_pipe.reached || rate > window.pacing_rate {
            window.pacing_rate = rate;
        }
    }

    /// Linux `bbr_init_pacing_rate_from_rtt`: one cwnd per RTT, or per millisecond until an RTT is known.
    pub(super) fn pace_from_rtt(&self, window: &mut Window, srtt: Span, smss: u32) {
        let us = if srtt > Span::ZERO { srtt.as_us().max(1) } else { 1_000 };
        let bw = u64::from(window.cwnd.max(1)) * BW_UNIT / us;
        window.pacing_rate = pacing_rate(bw, HIGH_GAIN, smss);
    }

    /// Linux `bbr_set_cwnd_to_recover_or_restore`: conserve packets in the first round of recovery, and restore cwnd at
    /// its end. Return whether packets are being conserved.
    fn recover_or_restore(&mut self, cwnd: &mut u32, ack: &AckSample) -> bool {
        let (before, state) = (self.prev_state, ack.ca_state);
        self.prev_state = state;
        *cwnd = cwnd.saturating_sub(ack.newly_lost).max(1);
        if state == CaState::Recovery && before != CaState::Recovery {
            self.packet_conservation = true;
            self.rounds.next_delivered = self.rounds.delivered;
            *cwnd = ack.in_flight + ack.delivered;
        } else if before >= CaState::Recovery && state < CaState::Recovery {
            *cwnd = (*cwnd).max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        if self.packet_conservation {
            *cwnd = (*cwnd).max(ack.in_flight + ack.delivered);
        }
        self.packet_conservation
    }

    /// Linux `bbr_set_cwnd`.
    pub(super) fn set_cwnd(&mut self, window: &mut Window, ack: &AckSample) {
        let mut cwnd = window.cwnd;
        if ack.delivered > 0 && !self.recover_or_restore(&mut cwnd, ack) {
            let bw = self.bw_in_use();
            let mut target = self.bdp(bw, self.cwnd_gain);
            if self.full_pipe.reached {
                let most = bw.saturating_mul(EXTRA_MAX_US) >> BW_SCALE;
                target += u64::from(self.aggregation.extra_acked()).min(most);
            }
            let target = self.with_budget(target, window, ack.smss).min(u64::from(u32::MAX)) as u32;
            if self.full_pipe.reached {
                cwnd = cwnd.saturating_add(ack.delivered).min(target);
            } else if cwnd < target || self.rounds.delivered < u64::from(INIT_CWND) {
                cwnd = cwnd.saturating_add(ack.delivered);
            }
            cwnd = cwnd.max(MIN_CWND);
        }
        window.cwnd = cwnd.min(window.cwnd_clamp);
        if self.mode == Mode::ProbeRtt {
            window.cwnd = window.cwnd.min(MIN_CWND);
        }
    }
}
