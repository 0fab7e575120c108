//! The model of the path: round trips counted by packets, the greatest delivery rate, bounds that losses teach, and how
//! far ACKs are aggregated (draft-ietf-ccwg-bbr §5.5).

use ackclock_core::Time;

use super::{AckSample, Bbr3, Cycle, RateSample, State};
use crate::window::Window;

/// BBR.Beta (§2): share that a short-term bound keeps in a round with losses, as CUBIC's window does.
pub(super) const BETA: f64 = 0.7;

/// BBR.LossThresh (§2): losses of a round trip that a probe tolerates.
const LOSS_THRESH: f64 = 0.02;

/// BBR.ExtraAckedFilterLen (§2), rounds; the two halves of our filter hold five to ten.
const EXTRA_ACKED_ROUNDS: u32 = 5;

/// Round trips counted by packets (§5.5.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    /// C.delivered, segments.
    pub delivered: u64,
    /// BBR.next_round_delivered: what is sent from now on ends the round when it is acknowledged.
    pub next_round_delivered: u64,
    /// BBR.round_start: this ACK begins a round.
    pub round_start: bool,
}

impl Rounds {
    /// An ACK delivers segments; whether it begins a round is not known yet.
    pub fn deliver(&mut self, segments: u32) {
        self.delivered += u64::from(segments);
        self.round_start = false;
    }

    /// BBRStartRound.
    pub fn start(&mut self) {
        self.next_round_delivered = self.delivered;
    }
}

/// What losses teach about how much may be in flight (§5.5.10), and the signals that they are judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// BBR.bw_shortterm: bound of the rate, from losses since the last probe.
    pub bw_shortterm: f64,
    /// BBR.inflight_shortterm: the same of the volume in flight.
    pub inflight_shortterm: f64,
    /// BBR.inflight_longterm: volume at which a probe met losses beyond the threshold.
    pub inflight_longterm: f64,
    /// BBR.bw_latest and BBR.inflight_latest: greatest rate and volume delivered in this loss round.
    pub bw_latest: f64,
    pub inflight_latest: f64,
    /// BBR.loss_round_delivered: the loss round ends when what is sent from now on is acknowledged.
    pub loss_round_delivered: u64,
    /// BBR.loss_round_start: this ACK begins a loss round.
    pub loss_round_start: bool,
    /// BBR.loss_in_round: the loss round has seen a loss.
    pub loss_in_round: bool,
    /// BBR.loss_events_in_round.
    pub loss_events: u32,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            bw_shortterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            inflight_longterm: f64::INFINITY,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            loss_round_delivered: 0,
            loss_round_start: false,
            loss_in_round: false,
            loss_events: 0,
        }
    }
}

impl Bounds {
    /// BBRResetShortTermModel.
    pub fn reset_shortterm(&mut self) {
        self.bw_shortterm = f64::INFINITY;
        self.inflight_shortterm = f64::INFINITY;
    }

    /// BBRResetCongestionSignals.
    pub fn reset_signals(&mut self) {
        self.loss_in_round = false;
        self.bw_latest = 0.0;
        self.inflight_latest = 0.0;
    }

    /// BBRInitLowerBounds and BBRLossLowerBounds: a round with losses lowers the bounds, to no less than it delivered.
    fn lower(&mut self, max_bw: f64, cwnd: u32) {
        if self.bw_shortterm.is_infinite() {
            self.bw_shortterm = max_bw;
        }
        if self.inflight_shortterm.is_infinite() {
            self.inflight_shortterm = f64::from(cwnd);
        }
        self.bw_shortterm = self.bw_latest.max(BETA * self.bw_shortterm);
        self.inflight_shortterm = self.inflight_latest.max(BETA * self.inflight_shortterm);
    }

    /// BBRAdvanceLatestDeliverySignals: the next loss round begins with this sample.
    pub fn advance(&mut self, rate: &RateSample, bw: f64) {
        if self.loss_round_start {
            self.loss_in_round = false;
            self.loss_events = 0;
            self.bw_latest = bw;
            self.inflight_latest = f64::from(rate.delivered);
        }
    }
}

/// How far ACKs come in bunches (§5.5.9): segments acknowledged beyond what the rate explains.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aggregation {
    /// BBR.extra_acked_interval_start.
    epoch_stamp: Time,
    /// BBR.extra_acked_delivered since then.
    epoch_acked: f64,
    /// BBR.ExtraACKedFilter: the greatest of this half and of the one before.
    extra_acked: [f64; 2],
    /// Rounds of this half.
    rounds: u32,
}

impl Default for Aggregation {
    fn default() -> Aggregation {
        Aggregation { epoch_stamp: Time::ZERO, epoch_acked: 0.0, extra_acked: [0.0; 2], rounds: 0 }
    }
}

impl Aggregation {
    /// A new interval begins.
    pub fn restart(&mut self, now: Time) {
        (self.epoch_stamp, self.epoch_acked) = (now, 0.0);
    }

    /// BBR.extra_acked.
    pub fn extra_acked(&self) -> f64 {
        self.extra_acked[0].max(self.extra_acked[1])
    }
}

/// IsInflightTooHigh: losses since the segment's transmission exceed the threshold's share of what was in flight then.
pub(super) fn too_high(rate: &RateSample) -> bool {
    f64::from(rate.lost) > f64::from(rate.tx_in_flight) * LOSS_THRESH
}

impl Bbr3 {
    /// BBR.max_bw (§5.5.2).
    pub(super) fn max_bw(&self) -> f64 {
        self.bw_filter[0].max(self.bw_filter[1])
    }

    /// BBR.bw: the rate in use, BBRBoundBWForModel.
    pub(super) fn bw(&self) -> f64 {
        self.max_bw().min(self.bounds.bw_shortterm)
    }

    /// Whether losses are what a probe looks for, and not a reason to lower the short-term bounds (§5.5.10.3).
    fn is_probing_bw(&self) -> bool {
        matches!(self.state, State::Startup | State::ProbeBw(Cycle::Refill | Cycle::Up))
    }

    /// BBRUpdateRound, BBRUpdateMaxBw, BBRUpdateLatestDeliverySignals and BBRUpdateCongestionSignals.
    pub(super) fn update_congestion_signals(
        &mut self,
        window: &Window,
        ack: &AckSample,
        rate: &RateSample,
        bw: f64,
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
        bounds.inflight_latest = bounds.inflight_latest.max(f64::from(rate.delivered));
        bounds.loss_round_start = rate.prior_delivered >= bounds.loss_round_delivered;
        if ack.newly_lost > 0 {
            bounds.loss_in_round = true;
            bounds.loss_events += 1;
        }
        if bounds.loss_round_start {
            bounds.loss_round_delivered = self.rounds.delivered;
            if bounds.loss_in_round && lowers {
                bounds.lower(max_bw, window.cwnd); // BBRAdaptLowerBoundsFromCongestion
            }
        }
    }

    /// BBRUpdateACKAggregation.
    pub(super) fn update_aggregation(&mut self, window: &Window, ack: &AckSample) {
        let bw = self.bw();
        let a = &mut self.aggregation;
        if self.rounds.round_start {
            a.rounds += 1;
            if a.rounds >= EXTRA_ACKED_ROUNDS {
                a.rounds = 0;
                a.extra_acked = [0.0, a.extra_acked[0]];
            }
        }
        let mut expected = bw * ack.now.since(a.epoch_stamp).as_secs();
        if a.epoch_acked <= expected {
            a.restart(ack.now);
            expected = 0.0;
        }
        a.epoch_acked += f64::from(ack.delivered);
        let extra = (a.epoch_acked - expected).min(f64::from(window.cwnd));
        a.extra_acked[0] = a.extra_acked[0].max(extra);
    }
}
