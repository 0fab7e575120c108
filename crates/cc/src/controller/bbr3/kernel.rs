//! Order of operations in Google's kernel (Linux `bbr_main` and its callees), where it differs from the draft's: ACKs
//! without a rate sample, application-limited flows, and times in ticks.

use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};

use super::probe_bw::AckPhase;
use super::{AckSample, Bbr3, RateSample, State};
use crate::window::Window;

/// Linux `bbr_min_rtt_win_sec`, `bbr_probe_rtt_win_ms`, `bbr_probe_rtt_mode_ms`; ticks.
const MIN_RTT_TICKS: u64 = 10_000;
const PROBE_RTT_TICKS: u64 = 5_000;
const PROBE_RTT_MODE_TICKS: u64 = 200;
/// Linux `bbr_full_loss_cnt`, and the counter's maximum.
const FULL_LOSS_EVENTS: u32 = 6;
const MOST_LOSS_EVENTS: u32 = 15;
/// Maximum of the counter of rounds since the last probe.
const MOST_ROUNDS: u32 = 255;

/// Linux checks some times in 1 ms ticks.
fn ticks(now: Time) -> u64 {
    now.0 / 1_000_000
}

/// Sample used for an ACK without a rate sample.
const NO_SAMPLE: RateSample = RateSample {
    delivered: 0,
    interval: Span::ZERO,
    send_elapsed: Span::ZERO,
    ack_elapsed: Span::ZERO,
    prior_delivered: 0,
    prior_time: Time::ZERO,
    total_delivered: 0,
    total_lost: 0,
    delivered_ce: 0,
    lost: 0,
    tx_in_flight: 0,
    is_app_limited: false,
    is_retrans: false,
    is_ack_delayed: false,
    is_probe_ack: false,
};

impl Bbr3 {
    /// Linux `bbr_main`.
    pub(super) fn control_as_linux(&mut self, window: &mut Window, ack: &AckSample) {
        let rate = ack.rate.unwrap_or(NO_SAMPLE);
        let valid = rate.interval > Span::ZERO;
        self.rounds.round_start = valid && rate.prior_delivered >= self.rounds.next_round_delivered;
        if self.rounds.round_start {
            self.rounds.start();
            self.probe.rounds_since_probe = (self.probe.rounds_since_probe + 1).min(MOST_ROUNDS);
        }
        if self.update_marks(ack) && !self.full_pipe.reached {
            self.queue_too_high_in_startup(window);
        }
        let bw = if valid { self.sample_bw(&rate) } else { 0 };
        let counts = valid && ack.delivered > 0;
        if counts {
            self.update_latest(&rate, bw);
        }
        let (skips, unchanged) = self.fast_path(window, ack, &rate, bw);
        if !unchanged {
            if !skips {
                if counts {
                    self.update_signals(window, ack, &rate, bw);
                    self.update_aggregation(window, ack);
                }
                self.check_losses_of_startup(window, ack, &rate);
                self.check_full_pipe(&rate, bw);
                self.check_drain_as_linux(window, ack);
                self.update_cycle(window, ack, &rate, bw);
                self.update_min_rtt_as_linux(window, ack, &rate);
            }
            (self.pacing_gain, self.cwnd_gain) = self.state.gains(self.c);
            self.set_pacing(window, ack);
            self.set_cwnd_as_linux(window, ack);
        }
        if self.bounds.loss_round_start && !rate.is_probe_ack {
            (self.bounds.bw_latest, self.bounds.inflight_latest) = (bw, rate.delivered);
        }
        self.prev_state = ack.ca_state;
        self.bounds.loss_in_cycle |= rate.lost > 0;
    }

    /// Linux `bbr_update_latest_delivery_signals`.
    fn update_latest(&mut self, rate: &RateSample, bw: u64) {
        let bounds = &mut self.bounds;
        bounds.bw_latest = bounds.bw_latest.max(bw);
        bounds.inflight_latest = bounds.inflight_latest.max(rate.delivered);
        if rate.prior_delivered >= bounds.loss_round_delivered {
            bounds.loss_round_delivered = self.rounds.delivered;
            bounds.loss_round_start = true;
        }
    }

    /// Linux `bbr_run_fast_path`: an application-limited sample below the rate, without losses or marks, does not
    /// update the model. Return whether the model is skipped, and whether the window and the pacing rate are skipped as
    /// well.
    fn fast_path(
        &mut self,
        window: &mut Window,
        ack: &AckSample,
        rate: &RateSample,
        bw: u64,
    ) -> (bool, bool) {
        let quiet = !self.bounds.loss_in_round && !self.marks.in_round;
        if !(self.settled && rate.is_app_limited && bw < self.max_bw() && quiet) {
            return (false, false);
        }
        let before = (self.mode(), self.rtt.min_rtt);
        self.check_drain_as_linux(window, ack);
        self.update_cycle(window, ack, rate, bw);
        self.update_min_rtt_as_linux(window, ack, rate);
        (true, (self.mode(), self.rtt.min_rtt) == before && self.settled)
    }

    /// Linux `bbr_mode`, which treats the phases of ProbeBW as one mode.
    fn mode(&self) -> u8 {
        match self.state {
            State::Startup => 0,
            State::Drain => 1,
            State::ProbeBw(_) => 2,
            State::ProbeRtt => 3,
        }
    }

    /// Linux `bbr_update_congestion_signals`. The losses that ended a probe were reset with it; the losses of this ACK
    /// set the flag again.
    fn update_signals(&mut self, window: &Window, ack: &AckSample, rate: &RateSample, bw: u64) {
        if !rate.is_app_limited || bw >= self.max_bw() {
            self.bw_filter[0] = self.bw_filter[0].max(bw);
        }
        self.bounds.loss_in_round |= ack.newly_lost > 0;
        if !self.bounds.loss_round_start {
            return;
        }
        if (self.bounds.loss_in_round || self.marks.in_round) && !self.is_probing_bw() {
            let max_bw = self.max_bw();
            self.bounds.lower(max_bw, window.cwnd, self.c.beta, &self.marks);
        }
        self.bounds.loss_in_round = false;
        self.marks.in_round = false;
    }

    /// Linux `bbr_handle_queue_too_high_in_startup`.
    fn queue_too_high_in_startup(&mut self, window: &Window) {
        self.full_pipe.reached = true;
        let path = self.bound_of_path(self.max_bw(), window);
        self.bounds.inflight_longterm = path.max(self.bounds.inflight_latest);
    }

    /// Linux `bbr_check_loss_too_high_in_startup`.
    fn check_losses_of_startup(&mut self, window: &Window, ack: &AckSample, rate: &RateSample) {
        if self.full_pipe.reached {
            return;
        }
        if ack.newly_lost > 0 {
            self.bounds.loss_events = (self.bounds.loss_events + 1).min(MOST_LOSS_EVENTS);
        }
        if !self.bounds.loss_round_start {
            return;
        }
        let many = self.bounds.loss_events >= FULL_LOSS_EVENTS && self.too_high(rate);
        if many && ack.ca_state == CaState::Recovery {
            self.queue_too_high_in_startup(window);
        } else {
            self.bounds.loss_events = 0;
        }
    }

    /// Linux `bbr_check_drain`.
    fn check_drain_as_linux(&mut self, window: &mut Window, ack: &AckSample) {
        if self.state == State::Startup && self.full_pipe.reached {
            self.state = State::Drain;
            window.ssthresh = self.inflight(self.max_bw(), window, ack.smss); // informational: marks the end of Startup
            self.forget_signals();
        }
        if self.state == State::Drain {
            let in_net = self.in_net(ack.in_flight, ack, ack.smss, window.pacing_rate);
            if in_net <= self.inflight(self.max_bw(), window, ack.smss) {
                self.start_down(ack.now);
            }
        }
    }

    /// Linux `bbr_update_min_rtt`: both filters, and ProbeRTT.
    fn update_min_rtt_as_linux(&mut self, window: &mut Window, ack: &AckSample, rate: &RateSample) {
        let now = ticks(ack.now);
        let r = &mut self.rtt;
        r.expired = now > ticks(r.probe_rtt_min_stamp) + PROBE_RTT_TICKS;
        if let Some(rtt) = ack.rtt.map(Span::as_us) {
            if rtt < r.probe_rtt_min || (r.expired && !rate.is_ack_delayed) {
                (r.probe_rtt_min, r.probe_rtt_min_stamp) = (rtt, ack.now);
            }
        }
        if r.probe_rtt_min <= r.min_rtt || now > ticks(r.min_rtt_stamp) + MIN_RTT_TICKS {
            (r.min_rtt, r.min_rtt_stamp) = (r.probe_rtt_min, r.probe_rtt_min_stamp);
        }
        if r.expired && !self.idle_restart && self.state != State::ProbeRtt {
            // Linux sets the mode before it saves the window, so the larger of both is kept
            self.state = State::ProbeRtt;
            self.save_cwnd(window.cwnd);
            self.rtt.done = None;
            self.probe.ack_phase = AckPhase::ProbeStopping;
            self.rounds.start();
        }
        self.rtt.looking = self.state == State::ProbeRtt;
        if self.rtt.looking {
            if self.rtt.done.is_none() {
                if ack.in_flight <= self.probe_rtt_cwnd() {
                    // the interval ends at the first ACK in a later tick
                    self.rtt.done = Some(Time((now + PROBE_RTT_MODE_TICKS + 1) * 1_000_000 - 1));
                    self.rtt.round_done = false;
                    self.rounds.start();
                }
            } else {
                self.rtt.round_done |= self.rounds.round_start;
                if self.rtt.round_done {
                    self.check_probe_rtt_done(window, ack.now);
                }
            }
        }
        if rate.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// Linux `bbr_set_cwnd`, `bbr_bound_cwnd_for_inflight_model`.
    fn set_cwnd_as_linux(&mut self, window: &mut Window, ack: &AckSample) {
        let mut cwnd = window.cwnd;
        if ack.delivered > 0 {
            let target = self.bdp(self.bw(), self.cwnd_gain).saturating_add(self.extra_acked());
            let target = self.quantized(target, window, ack.smss);
            self.settled = false;
            if self.full_pipe.reached {
                cwnd = cwnd.saturating_add(ack.delivered);
                self.settled = cwnd >= target;
                cwnd = cwnd.min(target);
            } else if cwnd < target || cwnd < 2 * self.first_cwnd {
                cwnd = cwnd.saturating_add(ack.delivered);
            } else {
                self.settled = true;
            }
            cwnd = cwnd.max(super::gains::MIN_PIPE_CWND);
        }
        cwnd = cwnd.min(window.cwnd_clamp);
        if self.state == State::ProbeRtt {
            cwnd = cwnd.min(self.probe_rtt_cwnd());
        }
        window.cwnd = cwnd.min(self.cwnd_bound());
    }
}
