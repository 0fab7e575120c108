//! Startup and Drain: double the rate each round until the pipe is full, then empty the queue that this left
//! (draft-ietf-ccwg-bbr §5.3.1, §5.3.2).

use ackclock_core::trace::CaState;

use super::model::too_high;
use super::{AckSample, Bbr3, RateSample, State};
use crate::window::Window;

/// §5.3.1.2: the rate still grows if it is greater by a quarter.
const FULL_BW_GROWTH: f64 = 1.25;
/// §5.3.1.2: rounds without such growth that mean a full pipe.
const FULL_BW_ROUNDS: u8 = 3;
/// BBR.StartupFullLossCnt (§5.3.1.3): loss events of a round that mean a full pipe.
const FULL_LOSS_EVENTS: u32 = 6;

/// Whether the pipe is full (§5.3.1.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// BBR.full_bw: the rate that the next one is compared with.
    bw: f64,
    /// BBR.full_bw_count: rounds without growth.
    count: u8,
    /// BBR.full_bw_now: this probe has filled the pipe.
    pub now: bool,
    /// BBR.full_bw_reached: the pipe was full once; Startup is over.
    pub reached: bool,
}

impl FullPipe {
    /// BBRResetFullBW.
    pub fn reset(&mut self, bw: f64) {
        (self.bw, self.count, self.now) = (bw, 0, false);
    }
}

impl Bbr3 {
    /// BBRCheckFullBWReached.
    pub(super) fn check_full_pipe(&mut self, rate: &RateSample, bw: f64) {
        let full = &mut self.full_pipe;
        if full.now || rate.is_app_limited {
            return;
        }
        if bw >= full.bw * FULL_BW_GROWTH {
            return full.reset(bw);
        }
        if self.rounds.round_start {
            full.count += 1;
            full.now = full.count >= FULL_BW_ROUNDS;
            full.reached |= full.now;
        }
    }

    /// BBRCheckStartupHighLoss, BBRCheckStartupDone: the rate no longer grows, or a round of recovery was lossy.
    pub(super) fn check_startup_done(&mut self, ack: &AckSample, rate: &RateSample) {
        if self.state != State::Startup {
            return;
        }
        let lossy = self.bounds.loss_round_start
            && ack.ca_state == CaState::Recovery
            && self.bounds.loss_events >= FULL_LOSS_EVENTS
            && too_high(rate);
        if lossy && !self.full_pipe.reached {
            self.full_pipe.reached = true;
            self.bounds.inflight_longterm = self.bdp(self.max_bw(), 1.0).max(self.bounds.inflight_latest);
        }
        if self.full_pipe.reached {
            self.state = State::Drain; // BBREnterDrain
        }
    }

    /// BBRCheckDrainDone: no more in flight than the path holds without a queue.
    pub(super) fn check_drain_done(&mut self, window: &Window, ack: &AckSample) {
        if self.state == State::Drain && f64::from(ack.in_flight) <= self.inflight(1.0, window, ack.smss) {
            self.start_down(ack.now);
        }
    }
}
