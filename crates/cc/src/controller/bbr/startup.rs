//! Startup and Drain: double the rate each round until it no longer grows, then empty the resulting queue.

use super::gains::UNIT;
use super::{AckSample, Bbr, Mode, RateSample};
use crate::window::Window;

/// Rounds without growth that mean a full pipe (Linux `bbr_full_bw_cnt`).
const FULL_BW_ROUNDS: u8 = 3;

/// Whether the pipe is full.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// The rate that the next one is compared with.
    pub bw: u64,
    /// Rounds without growth.
    pub count: u8,
    /// The pipe was full once; Startup is over.
    pub reached: bool,
}

impl Bbr {
    /// Linux `bbr_check_full_bw_reached`: the rate grows as long as it is greater by a quarter (`bbr_full_bw_thresh`).
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

    /// Linux `bbr_check_drain`: enter Drain when the pipe is full, leave it when no more is in flight than
    /// the path holds.
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
