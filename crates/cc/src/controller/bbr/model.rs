//! Model of the path: packet-timed round trips, the maximum delivery rate over ten of them, and the extent of ACK
//! aggregation.

use ackclock_core::{Span, Time};

use super::gains::{BW_SCALE, BW_UNIT};
use super::{AckSample, Bbr};
use crate::window::Window;

/// Length of the max-rate filter, rounds (Linux `bbr_bw_rtts`).
const BW_ROUNDS: u64 = 10;
/// Length of each half of the extra-ACK filter, rounds (Linux `bbr_extra_acked_win_rtts`).
const EXTRA_ROUNDS: u32 = 5;
/// Number of segments after which an epoch restarts (Linux `bbr_ack_epoch_acked_reset_thresh`), and the 20-bit maximum
/// of its counter.
const EPOCH_RESET: u64 = 1 << 20;
const EPOCH_MOST: u64 = 0xf_ffff;

/// Packet-timed round trips.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    /// Segments delivered so far.
    pub delivered: u64,
    /// Delivered count that ends the round, once the segments sent from now on are acknowledged (Linux
    /// `next_rtt_delivered`).
    pub next_delivered: u64,
    /// Number of rounds so far (Linux `rtt_cnt`).
    pub count: u64,
    /// Whether this ACK starts a round.
    pub round_start: bool,
}

/// ACK aggregation: segments acknowledged beyond the number expected from the rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aggregation {
    /// Start of the epoch, and the number of segments acknowledged since.
    pub epoch_stamp: Time,
    pub epoch_acked: u64,
    /// Maximum excess in each half of the filter, segments.
    extra_acked: [u32; 2],
    idx: usize,
    rounds: u32,
}

impl Default for Aggregation {
    fn default() -> Aggregation {
        Aggregation { epoch_stamp: Time::ZERO, epoch_acked: 0, extra_acked: [0; 2], idx: 0, rounds: 0 }
    }
}

impl Aggregation {
    /// Return the maximum excess, segments (Linux `bbr_extra_acked`).
    pub fn extra_acked(&self) -> u32 {
        self.extra_acked[0].max(self.extra_acked[1])
    }
}

impl Bbr {
    /// Linux `bbr_update_bw`. Application-limited samples are used only if they are not below the maximum.
    pub(super) fn update_bw(&mut self, ack: &AckSample) {
        self.rounds.round_start = false;
        let Some(rate) = ack.rate.as_ref().filter(|rate| rate.interval > Span::ZERO) else { return };
        if rate.prior_delivered >= self.rounds.next_delivered {
            self.rounds.next_delivered = self.rounds.delivered;
            self.rounds.count += 1;
            self.rounds.round_start = true;
            self.packet_conservation = false;
        }
        self.sample_long_term(ack.newly_lost > 0, rate.is_app_limited);
        let bw = u64::from(rate.delivered) * BW_UNIT / rate.interval.as_us().max(1);
        if !rate.is_app_limited || bw >= self.bw.get() {
            self.bw.update(BW_ROUNDS, self.rounds.count, bw);
        }
    }

    /// Linux `bbr_update_ack_aggregation`.
    pub(super) fn update_extra_acked(&mut self, window: &Window, ack: &AckSample) {
        if ack.delivered == 0 || ack.rate.is_none_or(|rate| rate.interval == Span::ZERO) {
            return;
        }
        if self.rounds.round_start {
            self.aggregation.rounds += 1;
            if self.aggregation.rounds >= EXTRA_ROUNDS {
                self.aggregation.rounds = 0;
                self.aggregation.idx ^= 1;
                self.aggregation.extra_acked[self.aggregation.idx] = 0;
            }
        }
        let expected = |bw: u64, since: Span| bw.saturating_mul(since.as_us()) >> BW_SCALE;
        let mut due = expected(self.bw_in_use(), ack.now.since(self.aggregation.epoch_stamp));
        if self.aggregation.epoch_acked <= due
            || self.aggregation.epoch_acked + u64::from(ack.delivered) >= EPOCH_RESET
        {
            self.aggregation.epoch_acked = 0;
            self.aggregation.epoch_stamp = ack.now;
            due = 0;
        }
        self.aggregation.epoch_acked =
            (self.aggregation.epoch_acked + u64::from(ack.delivered)).min(EPOCH_MOST);
        let extra = (self.aggregation.epoch_acked - due).min(u64::from(window.cwnd)) as u32;
        let slot = &mut self.aggregation.extra_acked[self.aggregation.idx];
        *slot = (*slot).max(extra);
    }
}
