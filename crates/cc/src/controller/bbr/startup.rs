//! Startup and Drain: double the rate each round until it stops growing, then drain the resulting queue.

use super::gains::UNIT;
use super::{AckSample, Bbr, Mode, RateSample};
use crate::window::Window;

/// Number of rounds without growth that indicates a full pipe (Linux `bbr_full_bw_cnt`).
const FULL_BW_ROUNDS: u8 = 3;

/// Detection of a full pipe.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// Rate against which the next samples are compared.
    pub bw: u64,
    /// Number of successive rounds without growth.
    pub count: u8,
    /// The pipe has been full once, so Startup is over.
    pub reached: bool,
}

impl Bbr {
    /// Linux `bbr_check_full_bw_reached`: growth means an increase by at least a quarter (`bbr_full_bw_thresh`).
    pub(super) fn check_full_bw(&mut self, rate: Option<&RateSample>) {
        if self.full_pipe.reached || !self.rounds.round_start || rate.is_none_or(|rate| rate.is_app_limited) {
            return;
        }
        if self.bw.get() >= self.full_pipe.bw * 5 / 4 {
            self.full_pipe.bw = self.bw.get();
            self.full_pipe.count = 0;
            return;
        }
        self.full_pipe.count += 1;
        self.full_pipe.reached = self.full_pipe.count >= FULL_BW_ROUNDS;
    }

    /// Linux `bbr_check_drain`: enter Drain when the pipe is full; leave it when at most one BDP is in flight.
    pub(super) fn check_drain(&mut self, window: &mut Window, ack: &AckSample) {
        if self.mode == Mode::Startup && self.full_pipe.reached {
            self.mode = Mode::Drain;
            window.ssthresh = self.inflight(self.bw.get(), UNIT, window, ack.smss) as u32;
        }
        if self.mode == Mode::Drain
            && self.in_net(ack.in_flight, window, ack) <= self.inflight(self.bw.get(), UNIT, window, ack.smss)
        {
            self.enter_probe_bw();
        }
    }
}
