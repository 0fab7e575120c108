//! Model of the path: packet-timed round trips, the maximum delivery rate, bounds derived from losses, and the extent
//! of ACK aggregation (draft-ietf-ccwg-bbr §5.5).

use ackclock_core::Time;

use super::flavour::Ratio;
use super::gains::{BW_SCALE, BW_UNIT};
use super::{AckSample, Bbr3, Cycle, Flavour, Marks, RateSample, State, NO_RATE, UNBOUNDED};
use crate::window::Window;

/// Number of segments after which an aggregation interval restarts (Linux `bbr_ack_epoch_acked_reset_thresh`).
const EPOCH_RESET: u64 = 1 << 20;
/// Maximum number of parts of the aggregation filter.
const MAX_PARTS: usize = 10;

/// Packet-timed round trips (§5.5.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    /// C.delivered, segments.
    pub delivered: u64,
    /// BBR.next_round_delivered: the round ends when data sent from now on is acknowledged.
    pub next_round_delivered: u64,
    /// BBR.round_start: this ACK starts a round.
    pub round_start: bool,
}

impl Rounds {
    /// Count the segments delivered by an ACK; the connection's total in a rate sample takes precedence. `round_start`
    /// is cleared until the sample has been examined.
    pub fn deliver(&mut self, ack: &AckSample) {
        let so_far = self.delivered + u64::from(ack.delivered);
        self.delivered = ack.rate.map_or(so_far, |rate| rate.total_delivered);
        self.round_start = false;
    }

    /// BBRStartRound.
    pub fn start(&mut self) {
        self.next_round_delivered = self.delivered;
    }
}

/// Bounds on the volume in flight that are derived from losses (§5.5.10), and the loss signals behind them. Volumes are
/// whole segments, like cwnd, because `inflight_longterm` rises only when cwnd has reached it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// BBR.bw_shortterm: bound on the rate, from losses since the last probe.
    pub bw_shortterm: u64,
    /// BBR.inflight_shortterm: bound on the volume in flight, from losses since the last probe.
    pub inflight_shortterm: u32,
    /// BBR.inflight_longterm: volume in flight at which the losses of a probe exceeded the threshold.
    pub inflight_longterm: u32,
    /// BBR.bw_latest and BBR.inflight_latest: maximum rate and volume delivered in this loss round.
    pub bw_latest: u64,
    pub inflight_latest: u32,
    /// BBR.loss_round_delivered: the loss round ends when data sent from now on is acknowledged.
    pub loss_round_delivered: u64,
    /// BBR.loss_round_start: this ACK starts a loss round.
    pub loss_round_start: bool,
    /// BBR.loss_in_round: the loss round has seen a loss.
    pub loss_in_round: bool,
    /// Whether the probing cycle has seen a loss.
    pub loss_in_cycle: bool,
    /// BBR.loss_events_in_round.
    pub loss_events: u32,
}

impl Bounds {
    /// Initial state. In the kernel's flavour the first loss round ends when the first flight after the SYN is
    /// acknowledged.
    pub fn new(flavour: Flavour) -> Bounds {
        Bounds {
            bw_shortterm: NO_RATE,
            inflight_shortterm: UNBOUNDED,
            inflight_longterm: UNBOUNDED,
            bw_latest: 0,
            inflight_latest: 0,
            loss_round_delivered: if flavour == Flavour::LinuxV3 { 2 } else { 0 },
            loss_round_start: false,
            loss_in_round: false,
            loss_in_cycle: false,
            loss_events: 0,
        }
    }

    /// BBRResetShortTermModel.
    pub fn reset_shortterm(&mut self) {
        self.bw_shortterm = NO_RATE;
        self.inflight_shortterm = UNBOUNDED;
    }

    /// BBRResetCongestionSignals.
    pub fn reset_signals(&mut self) {
        self.loss_in_round = false;
        self.loss_in_cycle = false;
        self.bw_latest = 0;
        self.inflight_latest = 0;
    }

    /// BBRNoteLoss: the first loss starts a loss round of one round trip, so that the whole flight is assessed
    /// together.
    pub fn note_loss(&mut self, delivered: u64) {
        if !self.loss_in_round {
            self.loss_round_delivered = delivered;
        }
        self.loss_in_round = true;
        self.loss_in_cycle = true;
    }

    /// BBRInitLowerBounds and BBRLossLowerBounds: a round with losses reduces the bounds, but not below the volume and
    /// rate delivered in it. Marks reduce the volume bound in proportion to the fraction of segments marked. The lower
    /// of the two results is used.
    pub(super) fn lower(&mut self, max_bw: u64, cwnd: u32, beta: Ratio, marks: &Marks) {
        if self.inflight_shortterm == UNBOUNDED {
            self.inflight_shortterm = cwnd;
        }
        let mut by_marks = UNBOUNDED;
        if marks.in_round {
            by_marks = marks.keeps().of_volume(self.inflight_shortterm);
        }
        if self.loss_in_round {
            if self.bw_shortterm == NO_RATE {
                self.bw_shortterm = max_bw;
            }
            self.bw_shortterm = self.bw_latest.max(beta.of(self.bw_shortterm)).max(1);
            self.inflight_shortterm = self.inflight_latest.max(beta.of_volume(self.inflight_shortterm));
        }
        self.inflight_shortterm = self.inflight_shortterm.min(by_marks);
    }

    /// BBRAdvanceLatestDeliverySignals: this sample starts the next loss round.
    pub fn advance(&mut self, rate: &RateSample, bw: u64) {
        if self.loss_round_start {
            self.loss_in_round = false;
            self.loss_events = 0;
            self.bw_latest = bw;
            self.inflight_latest = rate.delivered;
        }
    }
}

/// ACK aggregation (§5.5.9): segments acknowledged beyond the number expected from the rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aggregation {
    /// BBR.extra_acked_interval_start.
    epoch_stamp: Time,
    /// BBR.extra_acked_delivered: segments delivered in the interval.
    epoch_acked: u64,
    /// BBR.ExtraACKedFilter: maximum excess in each part of the filter. A part covers a number of rounds; `at` is the
    /// index of the current part.
    parts: [u32; MAX_PARTS],
    len: usize,
    at: usize,
    /// Rounds in the current part.
    rounds: u32,
}

impl Aggregation {
    /// Create a filter of `len` parts.
    pub fn new(len: usize) -> Aggregation {
        Aggregation { epoch_stamp: Time::ZERO, epoch_acked: 0, parts: [0; MAX_PARTS], len, at: 0, rounds: 0 }
    }

    /// Start a new interval.
    pub fn restart(&mut self, now: Time) {
        (self.epoch_stamp, self.epoch_acked) = (now, 0);
    }

    /// Count a round; after `rounds` of them the oldest part is replaced.
    fn advance(&mut self, rounds: u32) {
        self.rounds += 1;
        if self.rounds >= rounds {
            self.rounds = 0;
            self.at = (self.at + 1) % self.len;
            self.parts[self.at] = 0;
        }
    }
}

impl Bbr3 {
    /// IsInflightTooHigh: the losses since the segment's transmission, or the marks, exceed their threshold.
    pub(super) fn too_high(&self, rate: &RateSample) -> bool {
        self.too_many_lost(rate.lost, rate.tx_in_flight) || self.marks.too_high(rate)
    }

    /// Return the delivery rate of a sample, segments per us times 2^24.
    pub(super) fn sample_bw(&self, rate: &RateSample) -> u64 {
        let (volume, us) = (u64::from(rate.delivered) * BW_UNIT, rate.interval.as_us().max(1));
        match self.flavour {
            Flavour::Draft06 => volume / us,
            Flavour::LinuxV3 => volume.div_ceil(us),
        }
    }

    /// BBR.extra_acked.
    pub(super) fn extra_acked(&self) -> u32 {
        let seen = self.aggregation.parts.iter().copied().max().unwrap_or(0);
        let most = self.bw().saturating_mul(self.c.extra_acked_max_us) >> BW_SCALE;
        if self.c.extra_acked_max_us == u64::MAX {
            seen
        } else {
            u64::from(seen).min(most) as u32
        }
    }

    /// BBR.max_bw (§5.5.2).
    pub(super) fn max_bw(&self) -> u64 {
        self.bw_filter[0].max(self.bw_filter[1])
    }

    /// BBRAdvanceMaxBwFilter (§5.5.4): end a cycle. A cycle without samples is not counted, because the maximum rate
    /// would be lost.
    pub(super) fn advance_bw_filter(&mut self) {
        if self.bw_filter[0] > 0 {
            self.bw_filter = [0, self.bw_filter[0]];
        }
    }

    /// BBR.bw: rate in use (BBRBoundBWForModel).
    pub(super) fn bw(&self) -> u64 {
        self.max_bw().min(self.bounds.bw_shortterm)
    }

    /// Whether losses are an expected result of probing, so that they do not reduce the short-term bounds (§5.5.10.3).
    pub(super) fn is_probing_bw(&self) -> bool {
        matches!(self.state, State::Startup | State::ProbeBw(Cycle::Refill | Cycle::Up))
    }

    /// BBRUpdateRound, BBRUpdateMaxBw, BBRUpdateLatestDeliverySignals and BBRUpdateCongestionSignals.
    pub(super) fn update_congestion_signals(
        &mut self,
        window: &Window,
        ack: &AckSample,
        rate: &RateSample,
        bw: u64,
    ) {
        self.rounds.round_start = rate.prior_delivered >= self.rounds.next_round_delivered;
        if self.rounds.round_start {
            self.rounds.start();
            self.probe.rounds_since_probe += 1;
        }
        if bw >= self.max_bw() || !rate.is_app_limited {
            self.bw_filter[0] = self.bw_filter[0].max(bw);
        }
        let max_bw = self.max_bw();
        let lowers = !self.is_probing_bw();
        let bounds = &mut self.bounds;
        bounds.bw_latest = bounds.bw_latest.max(bw);
        bounds.inflight_latest = bounds.inflight_latest.max(rate.delivered);
        bounds.loss_round_start = rate.prior_delivered >= bounds.loss_round_delivered;
        bounds.loss_events += u32::from(ack.newly_lost > 0);
        if bounds.loss_round_start {
            bounds.loss_round_delivered = self.rounds.delivered;
            if (bounds.loss_in_round || self.marks.in_round) && lowers {
                // BBRAdaptLowerBoundsFromCongestion
                bounds.lower(max_bw, window.cwnd, self.c.beta, &self.marks);
            }
            self.marks.in_round = false;
        }
    }

    /// BBRUpdateACKAggregation. In Startup a part lasts one round; the draft then keeps only that round.
    pub(super) fn update_aggregation(&mut self, window: &Window, ack: &AckSample) {
        let bw = self.bw();
        let startup = !self.full_pipe.reached;
        let a = &mut self.aggregation;
        if self.rounds.round_start {
            if startup && self.flavour == Flavour::Draft06 {
                a.parts[a.at] = 0;
            } else {
                a.advance(if startup { 1 } else { self.c.extra_acked_rounds });
            }
        }
        let mut expected = bw.saturating_mul(ack.now.since(a.epoch_stamp).as_us()) >> BW_SCALE;
        if a.epoch_acked <= expected || a.epoch_acked + u64::from(ack.delivered) >= EPOCH_RESET {
            a.restart(ack.now);
            expected = 0;
        }
        a.epoch_acked += u64::from(ack.delivered);
        let extra = (a.epoch_acked - expected).min(u64::from(window.cwnd)) as u32;
        a.parts[a.at] = a.parts[a.at].max(extra);
    }
}
