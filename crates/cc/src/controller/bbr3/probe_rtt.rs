//! Minimum RTT and ProbeRTT. If the minimum has not been observed again for five seconds, the flow briefly keeps little
//! in flight, so that queues drain and the minimum can be measured (draft-ietf-ccwg-bbr §5.3.4, §5.5.5).

use ackclock_core::{Span, Time};

use super::{AckPhase, AckSample, Bbr3, State};
use crate::window::Window;

/// BBR.MinRTTFilterLen (§2).
const MIN_RTT_FILTER: Span = Span::from_secs(10);
/// BBR.ProbeRTTInterval (§2): minimum time from the last observation of the minimum RTT to ProbeRTT.
const PROBE_RTT_INTERVAL: Span = Span::from_secs(5);
/// BBR.ProbeRTTDuration (§2): minimum time with little in flight; at least one round must pass too.
const PROBE_RTT_DURATION: Span = Span::from_ms(200);

/// Minimum RTTs over two time windows, us (`u64::MAX` before the first sample), and state of ProbeRTT.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    /// BBR.min_rtt: minimum over ten seconds, used by the model.
    pub min_rtt: u64,
    pub min_rtt_stamp: Time,
    /// BBR.probe_rtt_min_delay: minimum over five seconds; ProbeRTT starts when it expires.
    pub probe_rtt_min: u64,
    pub probe_rtt_min_stamp: Time,
    /// BBR.probe_rtt_expired.
    pub expired: bool,
    /// Whether the flow was in ProbeRTT at this ACK.
    pub looking: bool,
    /// BBR.probe_rtt_done_stamp.
    pub done: Option<Time>,
    /// BBR.probe_rtt_round_done.
    pub round_done: bool,
}

impl Default for MinRtt {
    fn default() -> MinRtt {
        MinRtt {
            min_rtt: u64::MAX,
            min_rtt_stamp: Time::ZERO,
            probe_rtt_min: u64::MAX,
            probe_rtt_min_stamp: Time::ZERO,
            expired: false,
            looking: false,
            done: None,
            round_done: false,
        }
    }
}

impl MinRtt {
    /// Use the handshake's RTT as the first sample.
    pub fn start(&mut self, srtt: Span) {
        (self.min_rtt, self.probe_rtt_min) = (srtt.as_us(), srtt.as_us());
    }

    /// Start both time windows.
    pub fn stamp(&mut self, now: Time) {
        (self.min_rtt_stamp, self.probe_rtt_min_stamp) = (now, now);
    }
}

impl Bbr3 {
    /// BBRUpdateMinRTT (§5.3.4.3).
    pub(super) fn update_min_rtt(&mut self, ack: &AckSample) {
        let r = &mut self.rtt;
        r.expired = ack.now > r.probe_rtt_min_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = ack.rtt.map(Span::as_us) {
            if rtt < r.probe_rtt_min || r.expired {
                r.probe_rtt_min = rtt;
                r.probe_rtt_min_stamp = ack.now;
            }
        }
        let expired = ack.now > r.min_rtt_stamp + MIN_RTT_FILTER;
        if r.probe_rtt_min < r.min_rtt || expired {
            r.min_rtt = r.probe_rtt_min;
            r.min_rtt_stamp = r.probe_rtt_min_stamp;
        }
    }

    /// BBRCheckProbeRTT (§5.3.4.4).
    pub(super) fn check_probe_rtt(&mut self, window: &mut Window, ack: &AckSample) {
        if self.state != State::ProbeRtt && self.rtt.expired && !self.idle_restart {
            self.save_cwnd(window.cwnd); // BBREnterProbeRTT
            self.state = State::ProbeRtt;
            self.rtt.done = None;
            self.probe.ack_phase = AckPhase::ProbeStopping;
            self.rounds.start();
        }
        self.rtt.looking = self.state == State::ProbeRtt;
        if self.rtt.looking {
            self.handle_probe_rtt(window, ack);
        }
        if ack.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// BBRHandleProbeRTT: once little is in flight, wait for 200 ms and at least one round.
    fn handle_probe_rtt(&mut self, window: &mut Window, ack: &AckSample) {
        match self.rtt.done {
            None if ack.in_flight <= self.probe_rtt_cwnd() => {
                self.rtt.done = Some(ack.now + PROBE_RTT_DURATION);
                self.rtt.round_done = false;
                self.rounds.start();
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

    /// BBRCheckProbeRTTDone.
    pub(super) fn check_probe_rtt_done(&mut self, window: &mut Window, now: Time) {
        if self.rtt.done.is_some_and(|done| now > done) {
            self.exit_probe_rtt(window, now);
        }
    }

    /// BBRExitProbeRTT: return to cruising, or to Startup if the pipe was never full.
    fn exit_probe_rtt(&mut self, window: &mut Window, now: Time) {
        self.rtt.probe_rtt_min_stamp = now;
        window.cwnd = window.cwnd.max(self.prior_cwnd); // BBRRestoreCwnd
        self.bounds.reset_shortterm();
        if self.full_pipe.reached {
            self.start_down(now);
            self.start_cruise();
        } else {
            self.state = State::Startup;
        }
    }
}
