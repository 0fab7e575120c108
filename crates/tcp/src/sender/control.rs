//! Window update by exactly one rule: the controller itself, the recovery rule, or the controller's growth.

use ackclock_cc::{AckSample, Arrival, CongestionControl, Controller, RecoveryAck, RecoveryRule, SlowStart};
use ackclock_core::trace::CaState;
use ackclock_core::Time;

use super::{AckWork, Prior, Sender};
use crate::stats::SlowStartEnd;

impl Sender {
    /// Reason why the controller cannot be copied; `None` if it can.
    pub fn cannot_copy(&self) -> Option<String> {
        match &self.cc {
            Controller::Custom(own) => own.copied().err(),
            _ => None,
        }
    }

    /// Return the ACK as seen by the controller before loss detection.
    #[inline(always)]
    pub(super) fn arrival(&self, now: Time, prior: &Prior, w: &AckWork) -> Arrival {
        let delivered = (self.delivered - prior.delivered) as u32;
        Arrival {
            now,
            newly_acked: delivered,
            newly_acked_ce: self.ecn.marked(delivered),
            since_sent: self.since_sent(),
            covered: w.newly_acked,
            sacked: self.board.sacked_out,
            acked_bytes: self.snd_una - prior.snd_una,
            rtt: w.rtt,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            prior_in_flight: prior.pipe,
            left_in_flight: self.board.pipe(),
            snd_una: self.snd_una,
            snd_nxt: self.snd_nxt,
            cwnd_limited: self.cwnd_limited(),
            window_held: self.usage.is_held(),
            paced: self.paced(),
            departs_in: self.departs_in(),
            smss: self.mss_cache,
            ece: self.ecn.echo,
            prior_state: self.ca_state,
            is_dup: w.is_dup(),
            slow_path: w.slow_path,
        }
    }

    /// Pass the samples used by the controller to the slow-start algorithm.
    #[inline(always)]
    pub(super) fn sample_slow_start(&mut self, arrival: &Arrival) {
        if !self.slow_start.looks_away() {
            self.sample_for_slow_start(arrival);
        }
    }

    #[inline(never)]
    fn sample_for_slow_start(&mut self, arrival: &Arrival) {
        let rtt = arrival.rtt.filter(|_| self.cc.heeds_rtt(arrival.now));
        let ssthresh = self.window.ssthresh;
        self.slow_start.on_sample(&mut self.window, arrival, rtt);
        if self.window.ssthresh != ssthresh {
            self.look_at_slow_start(arrival.now, Some(SlowStartEnd::Rule));
        }
    }

    /// Whether growth counts ACKs, as kernels before 2015 did, instead of segments as in RFC 5681. CUBIC's curve corrected for delayed ACKs;
    /// its estimate of Reno's window did not, and handles this separately ([`counts_acks`](ackclock_cc::controller::Shared::counts_acks)).
    fn counts_acks(&self) -> bool {
        self.config.sending.count_acks
            && (self.window.in_slow_start() || matches!(self.cc, Controller::Reno(_)))
    }

    /// Update the sample after loss detection.
    #[inline(never)]
    pub(super) fn renew_sample(&self, sample: &mut AckSample, prior: &Prior) {
        let delivered = (self.delivered - prior.delivered) as u32;
        let newly_lost = (self.lost - prior.lost) as u32;
        (sample.acked, sample.delivered, sample.newly_lost) = (delivered, delivered, newly_lost);
        sample.delivered_ce = self.ecn.marked(delivered);
        sample.in_flight = self.board.pipe();
        sample.ca_state = self.ca_state;
    }

    /// Set the window by exactly one rule (Linux `tcp_cong_control`). `entering`: this ACK began a recovery.
    #[inline(always)]
    pub(super) fn control_window<const PLAIN: bool>(
        &mut self,
        sample: &mut AckSample,
        entering: bool,
        w: &AckWork,
    ) {
        let (delivered, newly_lost) = (sample.delivered, sample.newly_lost);
        // An undo may have changed the window since the ACK arrived; Linux checks at the time of growth.
        sample.arrival.cwnd_limited = self.cwnd_limited();
        sample.arrival.window_held = self.usage.is_held();
        if self.rates.is_some() {
            sample.rate = self.sample_rate(sample, w.probe_acked);
        }
        if self.controls {
            self.cc.on_control(&mut self.window, sample);
            if self.cc.holds_back() {
                self.mark_app_limited();
            }
        } else if !PLAIN && matches!(self.ca_state, CaState::Recovery | CaState::Cwr) {
            let cwnd = self.rule.on_ack(&RecoveryAck {
                delivered,
                pipe: self.board.pipe(),
                cwnd: self.window.cwnd,
                ssthresh: self.window.ssthresh,
                una_advanced: w.una_advanced,
                newly_lost,
                entering,
                progress: w.data_acked || w.data_sacked || w.dsack || (!self.sack && w.is_dup()),
            });
            self.window.cwnd = cwnd.min(self.slow_start.most());
            // CWR can last until nothing is outstanding. A cwnd of zero would then have to wait for the window probe (the CRB
            // of RFC 6937 allows no segment while prr_out exceeds prr_delivered; Linux warns about it, `tcp_snd_cwnd_set`).
            if self.board.packets_out() == 0 {
                self.window.cwnd = self.window.cwnd.max(1);
            }
        } else {
            let reordered = self.dupthresh.degree() > self.config.loss.dup_thresh;
            let grows = w.data_acked || !PLAIN && reordered && w.data_sacked;
            if grows && delivered > 0 {
                if self.counts_acks() {
                    sample.acked = 1;
                }
                if let Some(acked) = self.slow_start.growth(&mut self.window, sample) {
                    sample.acked = acked;
                    self.cc.on_ack(&mut self.window, sample);
                    if self.reduces && self.cc.reduces() {
                        self.enter_cwr(sample.now);
                    }
                }
                self.usage.window_changed(sample.now);
            }
        }
    }
}
