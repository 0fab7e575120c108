//! Exactly one rule sets the window: the controller by itself, the recovery rule, or the controller's growth.

use ackclock_cc::{AckSample, CongestionControl, Controller, RecoveryAck, RecoveryRule};
use ackclock_core::trace::CaState;
use ackclock_core::Time;

use super::{AckWork, Sender};

impl Sender {
    /// What the controller is told first; loss detection adds to it.
    #[inline]
    pub(super) fn sample(
        &self,
        now: Time,
        prior_in_flight: u32,
        prior_una: u64,
        delivered: u32,
        w: &AckWork,
    ) -> AckSample {
        AckSample {
            now,
            acked: delivered,
            delivered,
            acked_bytes: self.snd_una - prior_una,
            newly_lost: 0,
            rtt: w.rtt,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            prior_in_flight,
            in_flight: self.board.pipe(),
            snd_una: self.snd_una,
            snd_nxt: self.snd_nxt,
            cwnd_limited: self.cwnd_limited(),
            paced: self.paced(),
            smss: self.smss,
            ece: self.ecn.echo,
            delivered_ce: if self.ecn.echo { delivered } else { 0 },
            ca_state: self.ca_state,
            is_dup: !w.una_advanced && !w.not_dup,
            slow_path: w.slow_path,
            rate: None,
        }
    }

    /// Kernels before 2015 counted ACKs where RFC 5681 allows segments; CUBIC corrected for delayed ACKs by itself.
    fn counts_acks(&self) -> bool {
        self.config.count_acks && (self.window.in_slow_start() || matches!(self.cc, Controller::Reno(_)))
    }

    /// Exactly one rule sets the window (Linux `tcp_cong_control`).
    pub(super) fn control_window(&mut self, sample: &mut AckSample, entering: bool, w: &AckWork) {
        let (delivered, newly_lost) = (sample.delivered, sample.newly_lost);
        sample.in_flight = self.board.pipe();
        sample.ca_state = self.ca_state;
        sample.is_dup = w.is_dup;
        sample.delivered_ce = if sample.ece { delivered } else { 0 };
        if self.rates.is_some() {
            self.sample_rate(sample);
        }
        if self.controls {
            self.cc.on_control(&mut self.window, sample);
        } else if matches!(self.ca_state, CaState::Recovery | CaState::Cwr) {
            self.window.cwnd = self.rule.on_ack(&RecoveryAck {
                delivered,
                pipe: self.board.pipe(),
                cwnd: self.window.cwnd,
                ssthresh: self.window.ssthresh,
                una_advanced: w.una_advanced,
                newly_lost,
                entering,
                progress: w.data_acked || w.data_sacked || w.dsack || (!self.sack && w.is_dup),
            });
        } else {
            let reordered = self.reordering > self.config.dup_thresh;
            let grows = if reordered { w.data_acked || w.data_sacked } else { w.data_acked };
            if grows && delivered > 0 {
                sample.acked = if self.counts_acks() { 1 } else { delivered };
                self.cc.on_ack(&mut self.window, sample);
                self.cwnd_stamp = sample.now;
            }
        }
    }
}
