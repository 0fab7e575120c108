//! Minimum RTT and ProbeRTT. If the minimum has not been observed again for ten seconds, the flow keeps four segments
//! in flight for 200 ms and at least one round, so that queues drain and the minimum can be measured.

use ackclock_core::Time;

use super::gains::MIN_CWND;
use super::{AckSample, Bbr, Mode};
use crate::window::Window;

/// Linux `bbr_min_rtt_win_sec`.
const MIN_RTT_WINDOW_MS: u64 = 10_000;
/// Linux `bbr_probe_rtt_mode_ms`.
const PROBE_RTT_MS: u64 = 200;

/// Linux checks these times in 1 ms ticks.
fn ticks(now: Time) -> u64 {
    now.0 / 1_000_000
}

/// Minimum RTT, and state of ProbeRTT.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    /// Minimum RTT, us; `u64::MAX` before the first sample.
    pub min_rtt: u64,
    pub min_rtt_stamp: Time,
    /// Whether the flow was in ProbeRTT at this ACK.
    pub looking: bool,
    /// Tick after which ProbeRTT may end; `None` while too much is in flight.
    done: Option<u64>,
    /// One round has passed in ProbeRTT.
    round_done: bool,
}

impl Default for MinRtt {
    fn default() -> MinRtt {
        MinRtt { min_rtt: u64::MAX, min_rtt_stamp: Time::ZERO, looking: false, done: None, round_done: false }
    }
}

impl Bbr {
    /// Linux `bbr_update_min_rtt`. The RTT sample of a delayed ACK does not replace an expired minimum unless it is
    /// lower.
    pub(super) fn update_min_rtt(&mut self, window: &mut Window, ack: &AckSample) {
        let expired = ticks(ack.now) > ticks(self.rtt.min_rtt_stamp) + MIN_RTT_WINDOW_MS;
        if let Some(rtt) = ack.rtt {
            let delayed = ack.rate.is_some_and(|rate| rate.is_ack_delayed);
            if rtt.as_us() < self.rtt.min_rtt || (expired && !delayed) {
                self.rtt.min_rtt = rtt.as_us();
                self.rtt.min_rtt_stamp = ack.now;
            }
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(window.cwnd);
            self.rtt.done = None;
        }
        self.rtt.looking = self.mode == Mode::ProbeRtt;
        if self.rtt.looking {
            self.probe_rtt(window, ack);
        }
        if ack.rate.is_some_and(|rate| rate.delivered > 0) {
            self.idle_restart = false;
        }
    }

    fn probe_rtt(&mut self, window: &mut Window, ack: &AckSample) {
        match self.rtt.done {
            None if ack.in_flight <= MIN_CWND => {
                self.rtt.done = Some(ticks(ack.now) + PROBE_RTT_MS);
                self.rtt.round_done = false;
                self.rounds.next_delivered = self.rounds.delivered;
            }
            Some(_) => {
                self.rtt.round_done |= self.rounds.round_start;
                if self.rtt.round_done {
                    self.check_probe_rtt_done(window, ack.now);
                }
            }
            None => {}
        }
    }

    /// Linux `bbr_check_probe_rtt_done`, `bbr_reset_mode`.
    pub(super) fn check_probe_rtt_done(&mut self, window: &mut Window, now: Time) {
        if self.rtt.done.is_none_or(|done| ticks(now) <= done) {
            return;
        }
        self.rtt.min_rtt_stamp = now;
        window.cwnd = window.cwnd.max(self.prior_cwnd);
        match self.full_pipe.reached {
            true => self.enter_probe_bw(),
            false => self.mode = Mode::Startup,
        }
    }
}
