//! Careful Resume: a connection jumps to half of the window that an earlier one had on the same path, and retreats at
//! once if the path has changed.
//!
//! Source: RFC 9959. The saved parameters come from the scenario and never expire. Windows and PipeSize are in
//! segments.
//!
//! | phase | window | next |
//! |---|---|---|
//! | Reconnaissance | slow start | IW acknowledged, RTT as saved, and more data to send: Unvalidated |
//! | Unvalidated | half of the saved window, paced over the RTT | window sent, first of it acknowledged, or one RTT passed: Validating; Normal if little was sent |
//! | Validating | slow start | the last unvalidated segment acknowledged: Normal |
//! | Retreat | at most half of PipeSize, no growth | the last unvalidated segment acknowledged: Normal, ssthresh half of PipeSize |
//! | Normal | slow start | |
//!
//! Congestion leads from Reconnaissance to Normal, and from Unvalidated and Validating to Retreat. PipeSize is the
//! number of segments in flight at the jump plus those acknowledged since.
//!
//! Differs: the undo of a spurious reduction restores the window, but does not resume the jump.

use ackclock_core::schema::{Takes, DURATION};
use ackclock_core::{table, Span, Time};

use super::SlowStart;
use crate::controller::{AckSample, Arrival};
use crate::window::Window;

table! {
    /// Careful Resume (RFC 9959): jumps to half the cwnd of an earlier connection, and retreats if this causes loss.
    pub struct CarefulResumeParams "careful-resume" {
        /// Segments that an earlier connection delivered in one RTT.
        saved_cwnd: u32 = Takes::Whole(1, 1_000_000_000);
        /// Minimum RTT of the earlier connection.
        saved_rtt: Span = DURATION;
        /// Maximum cwnd after the jump, segments.
        max_jump: u32 = Takes::Whole(1, 1_000_000_000), 1_000_000_000;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Reconnaissance,
    /// First unvalidated offset and time of the jump.
    Unvalidated(u64, Time),
    /// Last unvalidated offset.
    Validating(u64),
    /// Last unvalidated offset.
    Retreat(u64),
    Normal,
}

/// Resumption state.
#[derive(Clone, Debug)]
pub struct CarefulResume {
    params: CarefulResumeParams,
    phase: Phase,
    iw: u32,
    pipe_size: u32,
    /// Upper bound of cwnd during Retreat.
    most: u32,
}

impl CarefulResume {
    /// Create the state at the start of a connection with an initial window of `iw` segments.
    pub fn new(params: &CarefulResumeParams, iw: u32) -> CarefulResume {
        CarefulResume {
            params: params.clone(),
            phase: Phase::Reconnaissance,
            iw,
            pipe_size: 0,
            most: u32::MAX,
        }
    }

    /// Return the window to jump to, segments.
    fn jump(&self) -> u32 {
        (self.params.saved_cwnd / 2).min(self.params.max_jump)
    }

    /// Whether the path's RTT is consistent with the saved one (RFC 9959 §3.2).
    fn same_path(&self, min_rtt: Span, rtt: Span) -> bool {
        min_rtt > self.params.saved_rtt / 2 && rtt.0 <= self.params.saved_rtt.0.saturating_mul(10)
    }

    fn reconnoitre(&mut self, window: &mut Window, ack: &Arrival, rtt: Option<Span>) {
        if ack.snd_una < 1 + u64::from(self.iw) * u64::from(ack.smss) || window.ssthresh != Window::INFINITE {
            return;
        }
        let Some(rtt) = rtt else { return };
        if ack.ece || !self.same_path(ack.min_rtt, rtt) {
            self.phase = Phase::Normal;
        } else if ack.cwnd_limited {
            self.phase = Phase::Normal;
            if self.jump() > window.cwnd {
                window.cwnd = self.jump();
                window.pacing_rate = rate(window.cwnd, ack.smss, ack.srtt);
                self.pipe_size = ack.left_in_flight;
                self.phase = Phase::Unvalidated(ack.snd_nxt, ack.now);
            }
        }
    }

    /// End the jump: set the window to the number of segments in flight.
    fn end_jump(&mut self, window: &mut Window, ack: &Arrival) {
        window.pacing_rate = Window::UNPACED;
        let flight = ack.prior_in_flight;
        if flight < self.iw || flight <= self.pipe_size {
            window.cwnd = self.pipe_size.max(self.iw);
            self.phase = Phase::Normal;
        } else {
            window.cwnd = flight;
            self.phase = Phase::Validating(ack.snd_nxt);
        }
    }
}

/// Return the rate of `cwnd` segments per `srtt`, bytes/s.
fn rate(cwnd: u32, smss: u32, srtt: Span) -> u64 {
    let bytes = u128::from(cwnd) * u128::from(smss) * 1_000_000_000;
    u64::try_from(bytes / u128::from(srtt.0.max(1))).unwrap_or(Window::UNPACED)
}

impl SlowStart for CarefulResume {
    fn on_sample(&mut self, window: &mut Window, ack: &Arrival, rtt: Option<Span>) {
        if self.phase == Phase::Normal {
            return;
        }
        self.pipe_size = self.pipe_size.saturating_add(ack.newly_acked);
        match self.phase {
            Phase::Reconnaissance => self.reconnoitre(window, ack, rtt),
            Phase::Unvalidated(first, since) => {
                let full = ack.prior_in_flight >= window.cwnd;
                if full || ack.snd_una > first || ack.now.since(since) > ack.srtt {
                    self.end_jump(window, ack);
                }
            }
            Phase::Validating(last) if ack.snd_una >= last => self.phase = Phase::Normal,
            Phase::Retreat(last) if ack.snd_una >= last => {
                self.phase = Phase::Normal;
                self.most = u32::MAX;
                if window.ssthresh != Window::INFINITE {
                    window.ssthresh = (self.pipe_size / 2).max(2);
                }
            }
            _ => {}
        }
    }

    fn growth(&mut self, _window: &mut Window, ack: &AckSample) -> Option<u32> {
        match self.phase {
            Phase::Unvalidated(..) => Some(0),
            Phase::Retreat(_) => None,
            _ => Some(ack.acked),
        }
    }

    fn on_reduction(&mut self, window: &mut Window, target: u32, snd_nxt: u64) -> u32 {
        let last = match self.phase {
            Phase::Reconnaissance => {
                self.phase = Phase::Normal;
                return target;
            }
            Phase::Normal | Phase::Retreat(_) => return target,
            Phase::Unvalidated(..) => snd_nxt,
            Phase::Validating(last) => last,
        };
        window.pacing_rate = Window::UNPACED;
        self.phase = Phase::Retreat(last);
        self.most = (self.pipe_size / 2).max(2);
        target.min(self.most)
    }

    fn most(&self) -> u32 {
        self.most
    }

    fn paces(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::arrival;

    const SMSS: u64 = 1448;

    /// Return a connection on a path with an RTT of `rtt_us`, resumed with a saved window of 120 segments and a saved
    /// RTT of 100 ms. Its initial window of 10 segments has been acknowledged.
    fn resumed(rtt_us: u64, limited: bool) -> (CarefulResume, Window) {
        let saved_rtt = Span::from_ms(100);
        let params = CarefulResumeParams { saved_cwnd: 120, saved_rtt, max_jump: 1_000 };
        let mut rule = CarefulResume::new(&params, 10);
        let mut window = Window::new(10);
        for acked in 1..=10 {
            let ack = Arrival { cwnd_limited: limited, min_rtt: Span::from_us(rtt_us), ..ack(0, acked, 20) };
            rule.on_sample(&mut window, &ack, Some(Span::from_us(rtt_us)));
            assert!(acked == 10 || rule.phase == Phase::Reconnaissance);
        }
        (rule, window)
    }

    /// Return an ACK at `ms` that covers segments up to `acked`, with `flight` segments outstanding before and after.
    fn ack(ms: u64, acked: u64, flight: u32) -> Arrival {
        Arrival {
            snd_una: 1 + acked * SMSS,
            snd_nxt: 1 + (acked + u64::from(flight)) * SMSS,
            prior_in_flight: flight,
            left_in_flight: flight,
            ..arrival(ms * 1_000_000, 1)
        }
    }

    fn see(rule: &mut CarefulResume, window: &mut Window, ack: &Arrival) {
        rule.on_sample(window, ack, Some(Span::from_ms(100)));
    }

    #[test]
    fn jumps_to_half_of_what_was_saved_and_paces_it() {
        let (mut rule, mut window) = resumed(100_000, true);
        assert_eq!(rule.phase, Phase::Unvalidated(1 + 30 * SMSS, Time::ZERO));
        assert_eq!(window.cwnd, 60);
        // one segment per 1.67 ms
        assert_eq!(SMSS * 1_000_000_000 / window.pacing_rate, 1_666_666);
        assert_eq!(rule.growth(&mut window, &arrival(0, 3).into()), Some(0));
        let small = CarefulResumeParams { max_jump: 40, ..rule.params };
        assert_eq!(CarefulResume::new(&small, 10).jump(), 40);
    }

    #[test]
    fn another_rtt_is_another_path() {
        for (rtt_us, jumps) in [(50_000, false), (51_000, true), (1_000_000, true), (1_001_000, false)] {
            let (rule, window) = resumed(rtt_us, true);
            assert_eq!(window.cwnd == 60, jumps, "{rtt_us}");
            assert_eq!(rule.phase == Phase::Normal, !jumps);
        }
    }

    #[test]
    fn without_more_data_it_waits() {
        let (mut rule, mut window) = resumed(100_000, false);
        assert_eq!((rule.phase, window.cwnd), (Phase::Reconnaissance, 10));
        see(&mut rule, &mut window, &ack(500, 12, 10));
        assert_eq!(window.cwnd, 60);
    }

    #[test]
    fn what_was_sent_is_validated_by_its_last_ack() {
        let (mut rule, mut window) = resumed(100_000, true);
        for acked in 11..30 {
            see(&mut rule, &mut window, &ack(50, acked, 20 + (acked as u32 - 10) * 2));
        }
        assert!(matches!(rule.phase, Phase::Unvalidated(..)));
        see(&mut rule, &mut window, &ack(100, 30, 58));
        assert!(matches!(rule.phase, Phase::Unvalidated(..)), "all of that was sent before the jump");
        see(&mut rule, &mut window, &ack(100, 31, 58));
        assert_eq!((rule.phase, window.cwnd), (Phase::Validating(1 + 89 * SMSS), 58));
        assert_eq!(window.pacing_rate, Window::UNPACED);
        assert_eq!(rule.pipe_size, 20 + 21);
        see(&mut rule, &mut window, &ack(200, 89, 80));
        assert_eq!(rule.phase, Phase::Normal);
    }

    #[test]
    fn a_jump_that_the_application_did_not_fill_is_given_up() {
        let (mut rule, mut window) = resumed(100_000, true);
        see(&mut rule, &mut window, &ack(101, 20, 12));
        assert_eq!((rule.phase, window.cwnd), (Phase::Normal, 21));
    }

    #[test]
    fn a_loss_in_the_jump_is_answered_with_half_of_what_arrived() {
        let (mut rule, mut window) = resumed(100_000, true);
        for acked in 11..=20 {
            see(&mut rule, &mut window, &ack(50, acked, 40));
        }
        assert_eq!(rule.pipe_size, 30);
        assert_eq!(rule.on_reduction(&mut window, 42, 1 + 70 * SMSS), 15);
        assert_eq!((rule.phase, rule.most()), (Phase::Retreat(1 + 70 * SMSS), 15));
        assert_eq!(rule.growth(&mut window, &arrival(0, 3).into()), None);
        (window.ssthresh, window.cwnd) = (15, 15);
        // PipeSize continues to grow: by 50 until the last unvalidated segment is acknowledged
        for acked in 21..=70 {
            see(&mut rule, &mut window, &ack(200, acked, 10));
        }
        assert_eq!((rule.phase, window.ssthresh, rule.most()), (Phase::Normal, 40, u32::MAX));
        // there is only one jump
        assert_eq!(rule.on_reduction(&mut window, 42, 1), 42);
    }

    #[test]
    fn a_loss_before_the_jump_is_the_controllers() {
        let params = CarefulResumeParams { saved_cwnd: 120, saved_rtt: Span::from_ms(100), max_jump: 1_000 };
        let mut rule = CarefulResume::new(&params, 10);
        assert_eq!(rule.on_reduction(&mut Window::new(10), 7, 1), 7);
        assert_eq!(rule.phase, Phase::Normal);
    }
}
