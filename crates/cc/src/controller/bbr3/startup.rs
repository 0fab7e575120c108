//! Startup and Drain: double the rate each round until the pipe is full, then drain the resulting queue
//! (draft-ietf-ccwg-bbr §5.3.1, §5.3.2).

use ackclock_core::trace::CaState;

use super::flavour::Ratio;
use super::{AckSample, Bbr3, RateSample, State};
use crate::window::Window;

/// §5.3.1.2: growth of the rate means an increase by at least a quarter.
const FULL_BW_GROWTH: Ratio = Ratio::new(5, 4);
/// §5.3.1.2: number of rounds without growth that indicates a full pipe.
const FULL_BW_ROUNDS: u8 = 3;
/// BBR.StartupFullLossCnt (§5.3.1.3): number of loss events in a round that indicates a full pipe.
const FULL_LOSS_EVENTS: u32 = 6;

/// Detection of a full pipe (§5.3.1.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// BBR.full_bw: rate against which the next samples are compared.
    bw: u64,
    /// BBR.full_bw_count: number of rounds without growth.
    count: u8,
    /// BBR.full_bw_now: this probe has filled the pipe.
    pub now: bool,
    /// BBR.full_bw_reached: the pipe has been full once, so Startup is over.
    pub reached: bool,
    /// Rounds since Drain began.
    drain_rounds: u32,
}

impl FullPipe {
    /// BBRResetFullBW.
    pub fn reset(&mut self, bw: u64) {
        (self.bw, self.count, self.now) = (bw, 0, false);
    }
}

impl Bbr3 {
    /// BBRCheckFullBWReached.
    pub(super) fn check_full_pipe(&mut self, rate: &RateSample, bw: u64) {
        let full = &mut self.full_pipe;
        if full.now || rate.is_app_limited {
            return;
        }
        if bw >= FULL_BW_GROWTH.of(full.bw) {
            return full.reset(bw);
        }
        if self.rounds.round_start {
            full.count += 1;
            full.now = full.count >= FULL_BW_ROUNDS;
            full.reached |= full.now;
        }
    }

    /// BBRCheckStartupHighLoss, BBRCheckStartupDone: leave Startup when the rate has stopped growing, a round in
    /// recovery had too many losses, or two successive rounds too many marks.
    pub(super) fn check_startup_done(&mut self, window: &mut Window, ack: &AckSample, rate: &RateSample) {
        let marked = self.update_marks(ack);
        if self.state != State::Startup {
            return;
        }
        let lossy = self.bounds.loss_round_start
            && ack.ca_state == CaState::Recovery
            && self.bounds.loss_events >= FULL_LOSS_EVENTS
            && self.too_high(rate);
        if (lossy || marked) && !self.full_pipe.reached {
            self.full_pipe.reached = true;
            let path = self.bound_of_path(self.max_bw(), window);
            self.bounds.inflight_longterm = path.max(self.bounds.inflight_latest);
        }
        if self.full_pipe.reached {
            self.state = State::Drain; // BBREnterDrain
            self.full_pipe.drain_rounds = 0;
            window.ssthresh = self.inflight(self.max_bw(), window, ack.smss); // informational: marks the end of Startup
        }
    }

    /// BBRCheckDrainDone: leave Drain when at most one BDP is in flight, or after the maximum number of rounds.
    pub(super) fn check_drain_done(&mut self, window: &Window, ack: &AckSample) {
        if self.state != State::Drain {
            return;
        }
        self.full_pipe.drain_rounds += u32::from(self.rounds.round_start);
        let in_net = self.in_net(ack.in_flight, ack, ack.smss, window.pacing_rate);
        let drained = in_net <= self.inflight(self.max_bw(), window, ack.smss);
        if drained || self.full_pipe.drain_rounds > self.c.drain_rounds {
            self.start_down(ack.now);
        }
    }
}
