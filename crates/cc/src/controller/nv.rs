//! NV: detects a queue as Vegas does, by comparing the window with what the measured delivery rate and the minimum RTT
//! allow. It requires several measurements before each decision, because hosts may coalesce segments and interrupts.
//!
//! Sources: Brakmo, "TCP-NV: congestion avoidance for data centers" (Linux Plumbers 2010); behaviour of Linux `tcp_nv`
//! with its default parameters and no base RTT. Rates are bytes times 80000 per us. The minimum RTT is reset after a
//! random 3.75 to 6.25 s. The kernel has its own random numbers, so a run matches the kernel's only until a random
//! draw matters.
//!
//! Differs: a decision never raises a window of one segment, whereas the kernel raises it to two.

use ackclock_core::trace::CaState;
use ackclock_core::{Span, Stream, Time};

use super::{AckSample, Arrival, CongestionControl, Needs};
use crate::window::Window;

/// Number of packets allowed in the queue, and margin below that limit at which growth stops.
const PAD: u32 = 10;
const PAD_BUFFER: u32 = 2;
/// Fraction of the excess removed by a decision, in units of 1/128.
const DECREASE: u32 = 38;
/// Fraction of the window kept after a loss, in units of 1/1024.
const LOSS: u64 = 819;
/// Number of decisions without congestion before growth doubles again after timeouts.
const SLOW_DECISIONS: u32 = 8;
/// Number of measurements needed for a decision: to shrink, to leave slow start, to grow.
const TO_SHRINK: u8 = 60;
const TO_LEAVE: u8 = 30;
const TO_GROW: u8 = 20;
/// Number of round trips before a decision to shrink, and without a decision before growth stops.
const ROUNDS: u8 = 2;
const STOP_ROUNDS: u8 = 10;
/// Minimum window, except after losses.
const LEAST: u32 = 2;
/// Assumed length of a train of a coalescing host, segments: initially, increment, maximum.
const TRAIN: u32 = 4;
const TRAIN_STEP: u32 = 2;
const TRAIN_MOST: u32 = 81;
/// Rate scale: rates are bytes per us times this.
const RATE: u64 = 80_000;

/// NV.
#[derive(Clone, Debug)]
pub struct Nv {
    stream: Stream,
    /// Tick at which the minimum RTT is reset.
    forget_at: u64,
    /// How many times growth has been doubled; negative if Reno's growth has been halved instead.
    growth: i8,
    grows: bool,
    reset: bool,
    calls: u8,
    train: u32,
    rounds: u8,
    /// RTTs in us; zero before the first sample.
    last_rtt: u32,
    min_rtt: u32,
    min_rtt_next: u32,
    /// Maximum rate since the last decision.
    max_rate: u32,
    round_end: u64,
    last_una: u64,
    una: u64,
    quiet: u32,
}

impl Default for Nv {
    fn default() -> Nv {
        Nv {
            stream: Stream::new(0, "nv"),
            forget_at: 0,
            growth: 0,
            grows: true,
            reset: false,
            calls: 0,
            train: TRAIN,
            rounds: 0,
            last_rtt: 0,
            min_rtt: u32::MAX,
            min_rtt_next: u32::MAX,
            max_rate: 0,
            round_end: 0,
            last_una: 0,
            una: 0,
            quiet: 0,
        }
    }
}

/// Linux checks these times in 1 ms ticks.
fn ticks(now: Time) -> u64 {
    now.0 / 1_000_000
}

impl Nv {
    fn start_anew(&mut self) {
        self.reset = false;
        (self.quiet, self.rounds, self.calls) = (0, 0, 0);
        (self.last_rtt, self.max_rate) = (0, 0);
        (self.round_end, self.last_una) = (self.una, self.una);
    }

    /// Update the mean RTT and the maximum rate with a measurement.
    fn measure(&mut self, rtt: u32, bytes: u64) {
        let mean = if self.last_rtt > 0 {
            ((u64::from(rtt) + u64::from(self.last_rtt)) >> 1) as u32
        } else {
            self.min_rtt = rtt << 1;
            rtt
        };
        self.last_rtt = mean;
        let rate = (bytes * RATE / u64::from(mean.max(1))) as u32;
        self.max_rate = self.max_rate.max(rate);
        self.calls = self.calls.saturating_add(1);
        self.min_rtt = self.min_rtt.min(mean);
        self.min_rtt_next = self.min_rtt_next.min(mean);
    }

    fn forget(&mut self, now: u64) {
        if now < self.forget_at {
            return;
        }
        (self.min_rtt, self.min_rtt_next) = (self.min_rtt_next, u32::MAX);
        self.forget_at = now + ((5 * (384 + self.stream.below(256)) * 1_000) >> 9);
        self.train = (self.train / 2).max(TRAIN);
    }

    /// Once per round trip, compare the window with the path's capacity.
    fn decide(&mut self, window: &mut Window, smss: u32) {
        let before = window.cwnd;
        let fits = u64::from(self.max_rate) * u64::from(self.min_rtt) / (RATE * u64::from(smss));
        let most = (fits as u32).wrapping_add(PAD);
        if window.cwnd > most {
            if self.rounds < ROUNDS {
                return;
            }
            if window.ssthresh == Window::INFINITE {
                if self.calls < TO_LEAVE {
                    return;
                }
            } else if self.calls < TO_SHRINK {
                self.grows &= self.rounds <= STOP_ROUNDS;
                return;
            }
            self.grows = false;
            window.ssthresh = most;
            let over = window.cwnd - most;
            window.cwnd = if over > 2 { window.cwnd - ((over * DECREASE) >> 7).max(2) } else { most };
            self.growth = self.growth.min(0);
            self.quiet = 0;
        } else if window.cwnd <= most - PAD_BUFFER {
            if self.calls < TO_GROW {
                return;
            }
            self.grows = true;
            self.quiet += 1;
            if self.growth < 0 && self.quiet > SLOW_DECISIONS {
                self.growth += 1;
                self.quiet = 0;
            }
        } else {
            return;
        }
        (self.calls, self.rounds, self.max_rate) = (0, 0, 0);
        window.cwnd = window.cwnd.max(LEAST.min(before));
    }
}

impl CongestionControl for Nv {
    fn seed(&mut self, seed: u64) {
        self.stream = Stream::new(seed, "nv");
    }

    fn on_start(&mut self, _window: &mut Window, now: Time, _srtt: Span, _smss: u32) {
        self.forget_at = ticks(now) + 2_000;
    }

    #[inline]
    fn on_sample(&mut self, window: &mut Window, ack: &Arrival) {
        self.una = ack.snd_una;
        let Some(rtt) = ack.rtt else { return };
        if !matches!(ack.prior_state, CaState::Open | CaState::Disorder) {
            return;
        }
        let bytes_acked = self.una - self.last_una;
        self.last_una = self.una;
        if ack.since_sent == 0 {
            return;
        }
        self.measure(rtt.as_us() as u32, u64::from(ack.since_sent) * u64::from(ack.smss));
        self.forget(ticks(ack.now));
        if self.una <= self.round_end {
            return;
        }
        self.round_end = ack.snd_nxt;
        self.rounds = self.rounds.saturating_add(1);
        let smss = u64::from(ack.smss);
        if self.calls == 1 && bytes_acked >= u64::from(self.train - 1) * smss && self.train < TRAIN_MOST {
            self.train = (self.train + TRAIN_STEP).min(TRAIN_MOST);
            self.round_end = ack.snd_nxt + u64::from(self.train) * smss;
            self.calls = 0;
            self.grows = true;
            return;
        }
        self.decide(window, ack.smss);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        if !self.grows {
            return;
        }
        let Some(acked) = window.past_slow_start(ack) else { return };
        let per = match self.growth < 0 {
            true => u32::try_from(u64::from(window.cwnd) << -self.growth).unwrap_or(u32::MAX),
            false => (window.cwnd >> self.growth).max(4),
        };
        window.additive_increase(per, acked);
    }

    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        (((u64::from(window.cwnd) * LOSS) >> 10) as u32).max(2)
    }

    fn on_state(&mut self, _window: &mut Window, state: CaState, _now: Time) {
        match state {
            CaState::Open if self.reset => self.start_anew(),
            CaState::Loss | CaState::Cwr | CaState::Recovery => {
                self.reset = true;
                self.grows = false;
                if state == CaState::Loss {
                    self.growth = (self.growth.min(0) - 1).max(-8);
                }
            }
            _ => {}
        }
    }

    fn needs(&self) -> Needs {
        Needs { rate: true, seed: true, ..Needs::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::arrival;

    /// Simulate one round trip with one ACK per segment; a full window has been delivered since each segment was sent.
    fn round(nv: &mut Nv, window: &mut Window, una: &mut u64, now_ms: u64, (rtt_us, fits): (u64, u32)) {
        let cwnd = window.cwnd;
        let next = *una + u64::from(cwnd) * 1448;
        for _ in 0..cwnd {
            *una += 1448;
            let ack = Arrival {
                snd_una: *una,
                snd_nxt: next + 1448,
                rtt: Some(Span::from_us(rtt_us)),
                since_sent: fits,
                ..arrival(now_ms * 1_000_000, 1)
            };
            nv.on_sample(window, &ack);
            nv.on_ack(window, &ack.into());
        }
    }

    #[test]
    fn what_is_above_the_path_and_ten_packets_goes_by_three_tenths() {
        let (mut nv, mut window, mut una) = (Nv::default(), Window { ssthresh: 50, ..Window::new(100) }, 1);
        for step in 0..4 {
            let cwnd = window.cwnd;
            round(&mut nv, &mut window, &mut una, 10 * step, (10_000, cwnd));
        }
        assert!(nv.grows && window.cwnd > 100, "an empty queue: it grows as Reno does");
        let before = window.cwnd;
        // 60 segments are queued on a path that holds 60: half of the sent data arrives within one empty-queue RTT
        for step in 4..8 {
            round(&mut nv, &mut window, &mut una, 10 * step, (20_000, 120));
            if window.cwnd < before {
                break;
            }
        }
        assert!(!nv.grows);
        assert!((65..=95).contains(&window.ssthresh), "{}", window.ssthresh);
        let over = before - window.ssthresh;
        assert!(before - window.cwnd <= over * 4 / 10, "{before} {} {over}", window.cwnd);
    }

    #[test]
    fn the_least_rtt_is_forgotten_after_two_seconds_first() {
        let (mut nv, mut window, mut una) = (Nv::default(), Window { ssthresh: 50, ..Window::new(100) }, 1);
        nv.on_start(&mut window, Time::ZERO, Span::ZERO, 1448);
        round(&mut nv, &mut window, &mut una, 10, (10_000, 100));
        nv.min_rtt_next = u32::MAX;
        round(&mut nv, &mut window, &mut una, 1_999, (30_000, 100));
        assert_eq!(nv.min_rtt, 10_000);
        round(&mut nv, &mut window, &mut una, 2_000, (30_000, 100));
        assert!(nv.min_rtt > 19_000, "{}", nv.min_rtt);
        assert!((5_750..8_250).contains(&nv.forget_at), "{}", nv.forget_at);
    }

    #[test]
    fn a_timeout_halves_the_growth_and_a_loss_leaves_four_fifths() {
        let (mut nv, mut window) = (Nv::default(), Window::new(100));
        assert_eq!(nv.ssthresh(&window, 100), 79);
        for growth in [-1, -2, -3, -4, -5, -6, -7, -8, -8] {
            nv.on_state(&mut window, CaState::Loss, Time::ZERO);
            assert_eq!((nv.growth, nv.grows), (growth, false));
        }
        nv.una = 5;
        nv.on_state(&mut window, CaState::Open, Time::ZERO);
        assert_eq!((nv.reset, nv.last_una, nv.growth), (false, 5, -8));
    }
}
