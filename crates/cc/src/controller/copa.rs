//! Copa: keeps the rate near 1/(delta times the queueing delay), so that the queue empties about every five round trips.
//!
//! Source: Arun, Balakrishnan, "Copa: practical delay-based congestion control for the Internet" (NSDI 2018), §2.
//! `standing` is the minimum RTT of the last srtt/2, `least` the minimum RTT of the last ten seconds, and
//! `dq = standing - least`. The target is 1/(delta dq) segments per second, the rate cwnd/standing. Each acknowledged
//! segment moves cwnd by v/(delta cwnd) towards the target. v doubles once per window after the window has moved in one
//! direction for three round trips, and returns to 1 when the direction changes. Packets are paced at 2 cwnd/standing.
//! Slow start doubles cwnd per round trip until the rate is above the target. Delta is 0.5 by default. If the queue has
//! not been nearly empty (dq below a tenth of the range of RTTs over four round trips) for five round trips, competing
//! flows are assumed. 1/delta then follows Reno's rule: plus one per round trip, halved after a round trip with losses.
//!
//! Differs: the paper does not specify timeouts. After a timeout cwnd is two segments, as in Copa's public
//! implementation for QUIC (mvfst) after persistent congestion, and slow start begins again. As in that implementation,
//! v also returns to 1 when the desired direction differs from that of the last window. An ACK changes cwnd by at most
//! the number of segments that it acknowledges.

use ackclock_core::schema::FLAG;
use ackclock_core::trace::CaState;
use ackclock_core::{table, Span, Time};

use super::minmax::RunningMax;
use super::{AckSample, CongestionControl, Needs};
use crate::window::Window;

const FLOOR: f64 = 2.0;
/// 1/delta without competing flows.
const USUAL: f64 = 2.0;
/// Length of the minimum-RTT window.
const MEMORY: Span = Span::from_secs(10);
/// Durations in round trips: movement in one direction before v doubles; absence of an empty queue before competing
/// flows are assumed; window of the maximum RTT.
const STEADY: u32 = 3;
const CROWDED: u64 = 5;
const RANGE: u64 = 4;

/// Running minimum of times, ns.
#[derive(Clone, Debug, Default)]
struct RunningMin(RunningMax);

impl RunningMin {
    fn update(&mut self, window: Span, now: Time, rtt: Span) -> Span {
        self.0.update(window.0, now.0, u64::MAX - rtt.0);
        Span(u64::MAX - self.0.get())
    }
}

table! {
    /// Options of `copa`.
    pub(super) struct CopaOptions "copa" {
        /// adapt 1/delta by Reno's rule while other flows seem to fill the queue; if false, delta is always 0.5
        competitive: bool = FLAG, true;
    }
}

/// Copa.
#[derive(Clone, Debug)]
pub struct Copa {
    competitive: bool,
    cwnd: f64,
    slow_start: bool,
    /// 1/delta.
    inverse_delta: f64,
    velocity: f64,
    /// Whether cwnd rose in the last window, and how many further windows have moved in the same direction.
    rises: bool,
    same: u32,
    /// Offset whose acknowledgement ends the window, cwnd at its start, and whether losses occurred in it.
    round_end: u64,
    before: f64,
    lost: bool,
    standing: RunningMin,
    least: RunningMin,
    greatest: RunningMax,
    /// Time when the queue was last nearly empty.
    empty_at: Time,
    queued: Span,
}

impl Copa {
    /// Create the state at the start of a connection.
    pub(super) fn new(options: &CopaOptions) -> Copa {
        Copa {
            competitive: options.competitive,
            cwnd: 0.0,
            slow_start: true,
            inverse_delta: USUAL,
            velocity: 1.0,
            rises: true,
            same: 0,
            round_end: 0,
            before: 0.0,
            lost: false,
            standing: RunningMin::default(),
            least: RunningMin::default(),
            greatest: RunningMax::default(),
            empty_at: Time::ZERO,
            queued: Span::ZERO,
        }
    }

    /// Choose the mode from the queueing delay, and update 1/delta once per round trip in the competitive mode.
    fn choose_delta(&mut self, ack: &AckSample, range: Span, round: bool) {
        if self.queued.0 * 10 <= range.0 {
            self.empty_at = ack.now;
        }
        let alone = ack.now.since(self.empty_at).0 <= ack.srtt.0 * CROWDED;
        if alone || !self.competitive {
            self.inverse_delta = USUAL;
        } else if round {
            let next = if self.lost { self.inverse_delta / 2.0 } else { self.inverse_delta + 1.0 };
            self.inverse_delta = next.max(USUAL);
        }
    }

    /// End a window and update direction and velocity.
    fn end_round(&mut self, ack: &AckSample) {
        let rises = self.cwnd > self.before;
        self.same = if rises == self.rises { self.same + 1 } else { 0 };
        self.velocity = match self.same {
            0 => 1.0,
            n if n >= STEADY => self.velocity * 2.0,
            _ => self.velocity,
        };
        self.rises = rises;
        self.before = self.cwnd;
        self.round_end = ack.snd_nxt;
        self.lost = false;
    }
}

impl CongestionControl for Copa {
    /// The handshake's RTT is used only for the initial pacing rate. Handshake packets are smaller, so the queue would
    /// never appear to be empty.
    fn on_start(&mut self, window: &mut Window, now: Time, srtt: Span, smss: u32) {
        self.cwnd = f64::from(window.cwnd);
        self.before = self.cwnd;
        self.empty_at = now;
        if srtt > Span::ZERO {
            window.pacing_rate = pacing_rate(self.cwnd, srtt, smss);
        }
    }

    fn on_ack(&mut self, _window: &mut Window, _ack: &AckSample) {}

    /// Entry into recovery does not reduce the window.
    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        window.ssthresh
    }

    fn on_state(&mut self, _window: &mut Window, state: CaState, _now: Time) {
        if state == CaState::Loss {
            (self.cwnd, self.slow_start, self.velocity) = (FLOOR, true, 1.0);
        }
    }

    fn undo_cwnd(&mut self, window: &Window) -> u32 {
        window.cwnd
    }

    fn on_control(&mut self, window: &mut Window, ack: &AckSample) {
        self.lost |= ack.newly_lost > 0;
        let Some(rtt) = ack.rtt else { return };
        let standing = self.standing.update(Span(ack.srtt.0 / 2), ack.now, rtt);
        let least = self.least.update(MEMORY, ack.now, rtt);
        self.greatest.update(ack.srtt.0 * RANGE, ack.now.0, rtt.0);
        self.queued = Span(standing.0.saturating_sub(least.0));
        let round = ack.snd_una >= self.round_end;
        self.choose_delta(ack, Span(self.greatest.get().saturating_sub(least.0)), round);
        if round {
            self.end_round(ack);
        }
        let acked = f64::from(ack.delivered);
        // cwnd/standing against 1/(delta dq)
        let below = self.cwnd * self.queued.0 as f64 <= self.inverse_delta * standing.0 as f64;
        self.slow_start &= below;
        if below != self.rises && self.velocity > 1.0 {
            (self.velocity, self.same) = (1.0, 0);
        }
        let step = self.velocity * self.inverse_delta / self.cwnd * acked;
        if self.slow_start {
            self.cwnd += if ack.cwnd_limited { acked } else { 0.0 };
        } else if below {
            self.cwnd += if ack.cwnd_limited { step.min(acked) } else { 0.0 };
        } else {
            self.cwnd -= step.min(acked);
        }
        self.cwnd = self.cwnd.clamp(FLOOR, f64::from(window.cwnd_clamp).max(FLOOR));
        window.cwnd = self.cwnd as u32;
        window.pacing_rate = pacing_rate(self.cwnd, standing, ack.smss);
    }

    fn needs(&self) -> Needs {
        Needs {
            control: true,
            own_start: true,
            pacing: true,
            vars: &["delta", "velocity", "queued_s"],
            ..Needs::default()
        }
    }

    fn vars(&self, values: &mut [f64]) {
        let all = [1.0 / self.inverse_delta, self.velocity, self.queued.0 as f64 * 1e-9];
        for (value, known) in values.iter_mut().zip(all) {
            *value = known;
        }
    }
}

/// Pacing rate of two windows per round trip, bytes/s.
fn pacing_rate(cwnd: f64, rtt: Span, smss: u32) -> u64 {
    (2.0 * cwnd * f64::from(smss) * 1e9 / rtt.0.max(1) as f64).max(1.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::arrival;

    struct Told {
        copa: Copa,
        window: Window,
        now: u64,
        una: u64,
    }

    impl Told {
        fn new() -> Told {
            let mut told = Told {
                copa: Copa::new(&CopaOptions { competitive: true }),
                window: Window::new(10),
                now: 1_000_000_000,
                una: 1,
            };
            told.copa.on_start(&mut told.window, Time(told.now), Span::from_ms(100), 1448);
            told
        }

        /// Simulate a round trip of `rtt_ms` with one ACK for each segment of the window, evenly spaced.
        fn round(&mut self, rtt_ms: u64) {
            let (n, nxt) = (u64::from(self.window.cwnd), self.una + u64::from(self.window.cwnd) * 1448);
            for _ in 0..n {
                self.now += rtt_ms * 1_000_000 / n;
                self.una += 1448;
                let ack = AckSample::from(super::super::Arrival {
                    snd_una: self.una,
                    snd_nxt: nxt,
                    rtt: Some(Span::from_ms(rtt_ms)),
                    srtt: Span::from_ms(rtt_ms),
                    ..arrival(self.now, 1)
                });
                self.copa.on_control(&mut self.window, &ack);
            }
        }
    }

    #[test]
    fn slow_start_doubles_until_the_rate_is_above_the_target() {
        let mut t = Told::new();
        t.round(100);
        assert_eq!(t.window.cwnd, 20);
        t.round(100);
        assert_eq!(t.window.cwnd, 40);
        // 10 ms queued: the target is 1/(0.5 0.01) = 200 segments/s, the rate 40/0.11 = 363. Lower RTT samples are used
        // until they are half a round trip old.
        t.round(110);
        assert!(!t.copa.slow_start);
        assert!((50..=60).contains(&t.window.cwnd), "{}", t.window.cwnd);
        let before = t.copa.cwnd;
        t.round(110);
        assert!(t.copa.cwnd < before, "{}", t.copa.cwnd);
        assert_eq!(t.window.pacing_rate, pacing_rate(t.copa.cwnd, Span::from_ms(110), 1448));
    }

    #[test]
    fn the_window_is_in_balance_at_two_segments_in_the_queue() {
        // cwnd dq / standing = 1/delta: 22 segments, a tenth of them queued
        let mut t = Told::new();
        t.round(100);
        t.round(110);
        assert!(!t.copa.slow_start);
        t.copa.cwnd = 30.0;
        t.window.cwnd = 30;
        t.round(110);
        assert!(t.copa.cwnd < 30.0, "{}", t.copa.cwnd);
        t.copa.cwnd = 15.0;
        t.window.cwnd = 15;
        t.round(110);
        assert!(t.copa.cwnd > 15.0, "{}", t.copa.cwnd);
    }

    #[test]
    fn a_steady_direction_doubles_the_velocity_and_a_turn_ends_it() {
        let mut t = Told::new();
        t.round(100);
        t.copa.slow_start = false;
        for _ in 0..6 {
            t.round(100);
        }
        assert!(t.copa.velocity >= 4.0, "{}", t.copa.velocity);
        t.round(150);
        assert_eq!(t.copa.velocity, 1.0);
    }

    #[test]
    fn a_queue_that_stays_is_met_as_reno_would() {
        let mut t = Told::new();
        for rtt in [100, 100, 150, 150, 150, 150, 150, 150, 150, 150, 150, 150] {
            t.round(rtt);
        }
        assert!(t.copa.inverse_delta > USUAL + 1.0, "{}", t.copa.inverse_delta);
        t.round(101);
        assert_eq!(t.copa.inverse_delta, USUAL);
    }

    #[test]
    fn a_timeout_leaves_two_segments() {
        let mut t = Told::new();
        t.round(100);
        t.copa.on_state(&mut t.window, CaState::Loss, Time(t.now));
        assert_eq!(t.copa.cwnd, FLOOR);
    }
}
