//! ProbeBW: a cycle of eight phases, each about one minimum RTT long. The first phase paces a quarter above the
//! estimated rate to probe for more, the second a quarter below to drain the resulting queue, and the other six at the
//! estimated rate.

use super::gains::UNIT;
use super::{AckSample, Bbr, Mode};
use crate::window::Window;

/// Pacing gains of the phases (Linux `bbr_pacing_gain`).
pub(super) const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Number of phases in which a cycle may start: all but the draining one (Linux `bbr_cycle_rand`).
const RANDOM_PHASES: u64 = 7;

impl Bbr {
    /// Linux `bbr_advance_cycle_phase`.
    fn advance_cycle(&mut self) {
        self.cycle_idx = (self.cycle_idx + 1) % CYCLE.len();
        self.cycle_stamp = self.totals.delivered_time;
    }

    /// Linux `bbr_update_cycle_phase`, `bbr_is_next_cycle_phase`: a phase lasts one minimum RTT. The probing phase is
    /// extended until a loss occurs or the target volume is in flight. The draining phase ends early once the queue is
    /// empty.
    pub(super) fn update_cycle(&mut self, window: &Window, ack: &AckSample) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let full_length = self.totals.delivered_time.since(self.cycle_stamp).as_us() > self.rtt.min_rtt;
        let (bw, gain) = (self.bw.get(), self.pacing_gain);
        let next = if gain == UNIT {
            full_length
        } else {
            let in_net = self.in_net(ack.prior_in_flight, window, ack);
            if gain > UNIT {
                full_length && (ack.newly_lost > 0 || in_net >= self.inflight(bw, gain, window, ack.smss))
            } else {
                full_length || in_net <= self.inflight(bw, UNIT, window, ack.smss)
            }
        };
        if next {
            self.advance_cycle();
        }
    }

    /// Linux `bbr_reset_probe_bw_mode`.
    pub(super) fn enter_probe_bw(&mut self) {
        self.mode = Mode::ProbeBw;
        self.cycle_idx = CYCLE.len() - 1 - self.stream.below(RANDOM_PHASES) as usize;
        self.advance_cycle();
    }
}
