//! LEDBAT++: a background transport that yields to other traffic. It keeps its queueing delay below 60 ms and drains
//! the queue periodically to measure the base delay.
//!
//! Source: draft-irtf-iccrg-ledbat-plus-plus §4. `base` is the minimum RTT of the last ten minutes, `delay` the minimum
//! of the last four samples less `base`. GAIN = 1/min(16, ceil(2 TARGET/base)). Below the target cwnd grows by GAIN per
//! round trip; above it, cwnd changes by max(GAIN - cwnd (delay/TARGET - 1), -cwnd/2). Slow start grows by GAIN per
//! segment; the first one ends at 3/4 of the target. A slowdown reduces cwnd to 2 for two round trips and restores it
//! by slow start. The first slowdown starts two round trips after slow start; from then on slowdowns take a tenth of
//! the time.

use ackclock_core::{Span, Time};

use super::{AckSample, Arrival, CongestionControl, Needs};
use crate::window::Window;

/// TARGET: maximum queueing delay.
const TARGET: Span = Span::from_ms(60);
/// Length of one bucket of the base history.
const MINUTE: Span = Span::from_secs(60);
/// Number of buckets of the base history.
const HISTORY: usize = 10;
const FLOOR: u32 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Initial slow start, until delay or loss ends it.
    First,
    /// Congestion avoidance, until the given time.
    Steady(Time),
    /// Slowdown with a cwnd of 2: end of this phase, and start of the slowdown.
    Low(Time, Time),
    /// Slow start back to ssthresh: start of the slowdown.
    Back(Time),
}

/// LEDBAT++.
#[derive(Clone, Debug)]
pub struct LedbatPlusPlus {
    phase: Phase,
    base: [Span; HISTORY],
    bucket: usize,
    bucket_since: Time,
    current: [Span; 4],
    at: usize,
    part: f64,
}

impl Default for LedbatPlusPlus {
    fn default() -> LedbatPlusPlus {
        LedbatPlusPlus {
            phase: Phase::First,
            base: [Span::MAX; HISTORY],
            bucket: 0,
            bucket_since: Time::ZERO,
            current: [Span::MAX; 4],
            at: 0,
            part: 0.0,
        }
    }
}

impl LedbatPlusPlus {
    fn base(&self) -> Span {
        self.base.iter().copied().min().unwrap_or(Span::MAX)
    }

    fn delay(&self) -> Span {
        let base = self.base();
        let current = self.current.iter().copied().min().unwrap_or(Span::MAX);
        if base == Span::MAX || current == Span::MAX {
            return Span::ZERO;
        }
        Span(current.0.saturating_sub(base.0))
    }

    fn gain(&self) -> f64 {
        match self.base() {
            Span::MAX => 1.0 / 16.0,
            base => 1.0 / (2 * TARGET.0).div_ceil(base.0.max(1)).clamp(1, 16) as f64,
        }
    }

    /// Change cwnd by a possibly fractional number of segments.
    fn add(&mut self, window: &mut Window, segments: f64, most: u32) {
        self.part += segments;
        let whole = libm::floor(self.part);
        self.part -= whole;
        let cwnd = (f64::from(window.cwnd) + whole).clamp(f64::from(FLOOR), f64::from(most.max(FLOOR)));
        window.cwnd = (cwnd as u32).min(window.cwnd_clamp.max(FLOOR));
    }
}

impl CongestionControl for LedbatPlusPlus {
    fn on_sample(&mut self, _window: &mut Window, ack: &Arrival) {
        let Some(rtt) = ack.rtt else { return };
        if ack.now.since(self.bucket_since) >= MINUTE {
            self.bucket_since = ack.now;
            self.bucket = (self.bucket + 1) % HISTORY;
            self.base[self.bucket] = rtt;
        }
        self.base[self.bucket] = self.base[self.bucket].min(rtt);
        self.current[self.at] = rtt;
        self.at = (self.at + 1) % self.current.len();
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        let now = ack.now;
        match self.phase {
            Phase::Steady(until) if now >= until => {
                window.ssthresh = window.cwnd.max(FLOOR);
                window.cwnd = FLOOR;
                self.phase = Phase::Low(now + ack.srtt * 2, now);
                return;
            }
            Phase::Low(until, began) if now >= until => self.phase = Phase::Back(began),
            Phase::Low(..) => {
                window.cwnd = FLOOR;
                return;
            }
            _ => {}
        }
        if window.in_slow_start() {
            let crowded = self.delay().0 > TARGET.0 / 4 * 3;
            if self.phase == Phase::First && crowded {
                window.ssthresh = window.cwnd;
                self.phase = Phase::Steady(now + ack.srtt * 2);
            } else if ack.cwnd_limited {
                self.add(window, self.gain() * f64::from(ack.acked), window.ssthresh);
            }
            return;
        }
        match self.phase {
            Phase::First => self.phase = Phase::Steady(now + ack.srtt * 2),
            Phase::Back(began) => self.phase = Phase::Steady(now + now.since(began) * 9),
            _ => {}
        }
        let w = f64::from(window.cwnd);
        let off = self.delay().0 as f64 / TARGET.0 as f64;
        let per_round = if off < 1.0 { self.gain() } else { (self.gain() - w * (off - 1.0)).max(-w / 2.0) };
        if per_round < 0.0 || ack.cwnd_limited {
            self.add(window, per_round / w * f64::from(ack.acked), u32::MAX);
        }
    }

    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        (window.cwnd / 2).max(FLOOR)
    }

    fn needs(&self) -> Needs {
        Needs { pacing: true, own_start: true, vars: &["base_rtt_s", "delay_s"], ..Needs::default() }
    }

    fn vars(&self, values: &mut [f64]) {
        let base = self.base();
        let base = if base == Span::MAX { f64::NAN } else { base.as_secs() };
        for (value, known) in values.iter_mut().zip([base, self.delay().as_secs()]) {
            *value = known;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::sample;

    #[test]
    fn gain_is_a_sixteenth_on_short_paths_and_one_on_long_ones() {
        let mut c = LedbatPlusPlus::default();
        for (base_ms, gain) in [(4, 1.0 / 16.0), (40, 1.0 / 3.0), (120, 1.0), (500, 1.0)] {
            c.base[0] = Span::from_ms(base_ms);
            assert!((c.gain() - gain).abs() < 1e-12, "{base_ms}");
        }
    }

    #[test]
    fn above_the_target_it_yields_and_by_half_at_most() {
        let after = |delay_ms: u64| {
            let mut c = LedbatPlusPlus { phase: Phase::Steady(Time::NEVER), ..LedbatPlusPlus::default() };
            c.base[0] = Span::from_ms(120);
            c.current = [Span::from_ms(120 + delay_ms); 4];
            let mut w = Window { ssthresh: 2, ..Window::new(100) };
            c.on_ack(&mut w, &sample(0, 100));
            w.cwnd
        };
        assert_eq!(after(30), 101);
        assert!((90..=91).contains(&after(66))); // 1 - 100 x 0.1
        assert_eq!(after(200), 50);
    }

    #[test]
    fn two_round_trips_after_slow_start_it_slows_down_and_comes_back() {
        let mut c = LedbatPlusPlus::default();
        c.base[0] = Span::from_ms(120);
        c.current = [Span::from_ms(170); 4];
        let mut w = Window::new(100);
        let at = |ms: u64| sample(ms * 1_000_000, 1);
        c.on_ack(&mut w, &at(1000));
        assert_eq!((w.ssthresh, c.phase), (100, Phase::Steady(Time(1_200_000_000))));
        c.on_ack(&mut w, &at(1200));
        assert_eq!((w.cwnd, w.ssthresh), (2, 100));
        c.on_ack(&mut w, &at(1300));
        assert_eq!(w.cwnd, 2);
        for ms in 1400..1500 {
            c.on_ack(&mut w, &at(ms));
        }
        assert_eq!(w.cwnd, 100);
        c.on_ack(&mut w, &at(1500));
        assert_eq!(c.phase, Phase::Steady(Time((1_498 + 9 * 298) * 1_000_000)));
    }
}
