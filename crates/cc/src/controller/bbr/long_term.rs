//! Detection of a token-bucket policer (Linux `bbr_lt_bw_sampling`). Two successive intervals with the same delivery
//! rate, each with losses of a fifth of the delivered data, indicate a policer. The flow then paces for 48 rounds at
//! that rate instead of at the maximum observed rate, which is inflated by the tokens in the bucket.

use ackclock_core::Time;

use super::gains::{pacing_rate, BW_UNIT, UNIT};
use super::{Bbr, Mode};

/// Minimum length of an interval, rounds (Linux `bbr_lt_intvl_min_rtts`), and maximum length, four times that.
const MIN_ROUNDS: u32 = 4;
const MAX_ROUNDS: u32 = 4 * MIN_ROUNDS;
/// Ratio of lost to delivered segments that ends an interval, in units of 1/256 (Linux `bbr_lt_loss_thresh`).
const LOSS_THRESH: u64 = 50;
/// Two intervals agree if their rates differ by at most an eighth, or by at most 500 bytes/s (Linux `bbr_lt_bw_ratio`,
/// `bbr_lt_bw_diff`).
const RATIO: u64 = UNIT / 8;
const DIFF: u64 = 4_000 / 8;
/// Number of rounds for which the policer's rate is used (Linux `bbr_lt_bw_max_rtts`).
const HOLDS_ROUNDS: u32 = 48;

/// Policer detection state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LongTerm {
    /// The policer's rate is in use (Linux `lt_use_bw`).
    pub used: bool,
    /// Rate of the last interval, or of the policer, segments per us times 2^24.
    pub bw: u64,
    /// An interval is in progress.
    sampling: bool,
    /// Rounds since the interval began, or since the policer's rate has been in use.
    rounds: u32,
    /// Start of the interval, ms, and the connection's counters at that time.
    since_ms: u64,
    delivered: u64,
    lost: u64,
}

/// Connection counters.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub delivered: u64,
    pub lost: u64,
    /// Time of the last delivery (Linux `delivered_mstamp`).
    pub delivered_time: Time,
}

impl LongTerm {
    /// Linux `bbr_reset_lt_bw_sampling_interval`.
    fn begin_interval(&mut self, totals: &Totals) {
        self.since_ms = totals.delivered_time.0 / 1_000_000;
        (self.delivered, self.lost, self.rounds) = (totals.delivered, totals.lost, 0);
    }

    /// Linux `bbr_reset_lt_bw_sampling`.
    pub fn reset(&mut self, totals: &Totals) {
        (self.used, self.bw, self.sampling) = (false, 0, false);
        self.begin_interval(totals);
    }

    /// Linux `bbr_lt_bw_interval_done`.
    fn end_interval(&mut self, bw: u64, totals: &Totals, smss: u32) {
        let before = self.bw;
        if before > 0 {
            let diff = bw.abs_diff(before);
            if diff.saturating_mul(UNIT) <= RATIO.saturating_mul(before)
                || pacing_rate(diff, UNIT, smss) <= DIFF
            {
                (self.bw, self.used, self.rounds) = (bw.midpoint(before), true, 0);
                return;
            }
        }
        self.bw = bw;
        self.begin_interval(totals);
    }
}

impl Bbr {
    /// Linux `bbr_lt_bw_sampling`. `losses`: this ACK or timeout marked segments lost.
    pub(super) fn sample_long_term(&mut self, losses: bool, is_app_limited: bool) {
        let totals = self.totals;
        if self.long_term.used {
            if self.mode == Mode::ProbeBw && self.rounds.round_start {
                self.long_term.rounds += 1;
                if self.long_term.rounds >= HOLDS_ROUNDS {
                    self.long_term.reset(&totals);
                    self.enter_probe_bw();
                }
            }
            return;
        }
        let lt = &mut self.long_term;
        if !lt.sampling {
            if !losses {
                return;
            }
            lt.begin_interval(&totals);
            lt.sampling = true;
        }
        if is_app_limited {
            return lt.reset(&totals);
        }
        lt.rounds += u32::from(self.rounds.round_start);
        if lt.rounds < MIN_ROUNDS {
            return;
        }
        if lt.rounds > MAX_ROUNDS {
            return lt.reset(&totals);
        }
        if !losses {
            return; // an interval ends with a loss, when the bucket is empty
        }
        let (lost, delivered) = (totals.lost - lt.lost, totals.delivered - lt.delivered);
        if delivered == 0 || lost * UNIT < LOSS_THRESH * delivered {
            return;
        }
        let ms = (totals.delivered_time.0 / 1_000_000).saturating_sub(lt.since_ms);
        if ms < 1 {
            return;
        }
        if ms >= u64::from(u32::MAX) / 1_000 {
            return lt.reset(&totals);
        }
        lt.end_interval(delivered * BW_UNIT / (ms * 1_000), &totals, self.smss);
    }

    /// Return the rate in use (Linux `bbr_bw`).
    #[inline]
    pub(super) fn bw_in_use(&self) -> u64 {
        if self.long_term.used {
            self.long_term.bw
        } else {
            self.bw.get()
        }
    }
}
