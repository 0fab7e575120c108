//! A host's timer ticks: the kernel's wheel rounds every ordinary timer up, the further away the coarser.

use ackclock_core::{Span, Time};

/// Buckets of one level that a new timer may land in, and the shift between levels (Linux `kernel/time/timer.c`:
/// LVL_SIZE 64, LVL_CLK_SHIFT 3). Exactness costs nothing, so all the wheel does is kept: a timer of 40 ticks fires
/// up to one tick late, one of 250 up to 8, one of 1000 up to 64.
const LEVEL_SIZE: u64 = 63;
const LEVEL_SHIFT: u64 = 3;

/// The tick of one host.
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    /// Length of a tick, ns; 0 = exact timers.
    tick: u64,
    phase: u64,
}

impl Ticks {
    /// A clock of this tick length and phase; zero length = exact timers.
    pub fn new(tick: Span, phase: u64) -> Ticks {
        Ticks { tick: tick.0, phase }
    }

    /// Ticks since some time before the start of the run (jiffies).
    #[inline]
    pub fn at(&self, now: Time) -> u64 {
        (now.0 + self.phase).checked_div(self.tick).unwrap_or(0)
    }

    /// Length of `n` ticks.
    pub fn span(&self, n: u64) -> Span {
        Span(n * self.tick)
    }

    /// Ticks from one instant to another; the exact time without ticks.
    #[inline]
    pub fn between(&self, from: Time, to: Time) -> Span {
        match self.tick {
            0 => to.since(from),
            tick => Span((self.at(to) - self.at(from)) * tick),
        }
    }

    /// Whole ticks in `span`; all of it without ticks.
    pub fn floor(&self, span: Span) -> Span {
        Span(span.0 - span.0.checked_rem(self.tick).unwrap_or(0))
    }

    /// `span` in ticks, rounded up; exactly without ticks.
    pub fn ceil(&self, span: Span) -> Span {
        match self.tick {
            0 => span,
            tick => Span(span.0.next_multiple_of(tick)),
        }
    }

    /// What a timer armed now for `after` is set to, before the wheel rounds it.
    #[inline]
    pub fn setting(&self, now: Time, after: Span) -> Time {
        match self.tick {
            0 => now + after,
            tick => Time((self.at(now) + after.0.div_ceil(tick)) * tick - self.phase),
        }
    }

    /// When a timer armed now for `after` fires.
    #[inline]
    pub fn expiry(&self, now: Time, after: Span) -> Time {
        if self.tick == 0 {
            return now + after;
        }
        let now_ticks = self.at(now);
        let delta = after.0.div_ceil(self.tick);
        let mut shift = 0;
        while delta >= LEVEL_SIZE << shift && shift < 8 * LEVEL_SHIFT {
            shift += LEVEL_SHIFT;
        }
        let bucket = (((now_ticks + delta) >> shift) + 1) << shift;
        Time(bucket * self.tick - self.phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wheel_is_never_early_and_coarser_further_out() {
        let t = Ticks::new(Span::from_ms(1), 0);
        let ms = |x: u64| Time(x * 1_000_000);
        assert_eq!(t.expiry(Time(1), Span::from_ms(40)), ms(41));
        assert_eq!(t.expiry(ms(3), Span::from_ms(40)), ms(44));
        assert_eq!(t.expiry(Time(1), Span::from_ms(240)), ms(248));
        assert_eq!(t.expiry(Time(1), Span::from_ms(1000)), ms(1024));
        assert_eq!(Ticks::new(Span::ZERO, 5).expiry(Time(7), Span(3)), Time(10));
    }
}
