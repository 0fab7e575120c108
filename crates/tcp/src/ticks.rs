//! Timer ticks of a host, and the delay of ordinary timers (decision 0010).
//!
//! | [`Wheel`] | kernels | a timer fires |
//! |---|---|---|
//! | `Exact` | Linux before 2.6.36, FreeBSD 4 | at its tick; up to one tick early if armed between two ticks |
//! | `Slack` | Linux 2.6.36 to 4.7 | at its tick; if at least 256 ticks away, late by up to 1/256 of the interval |
//! | `Levels` | Linux 4.8 on | never early, late by up to an eighth of the interval |

use ackclock_core::{Span, Time};

use crate::config::{Config, Wheel};

/// State of a timer on the host's timer wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Armed {
    /// Level of its bucket.
    pub level: u32,
    /// Time at which it was armed.
    pub since: Time,
}

/// Number of buckets of one level that a new timer can use, and the shift between levels (Linux
/// `kernel/time/timer.c`: LVL_SIZE 64, LVL_CLK_SHIFT 3). The wheel is modelled exactly: a timer of 40 ticks
/// fires up to one tick late, one of 250 up to 8, one of 1000 up to 64.
const LEVEL_SIZE: u64 = 63;
const LEVEL_SHIFT: u64 = 3;

/// Distance in ticks from which a timer may fire late, by 1/256 of that distance, so that several timers
/// fire together (Linux 2.6.36-4.7 `apply_slack`; memory).
const SLACK: u64 = 256;

/// Tick clock of one host.
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    /// Tick length, ns; 0: exact timers.
    tick: u32,
    phase: u64,
    wheel: Wheel,
}

impl Ticks {
    /// Return the clock of a host with these settings.
    pub fn of(config: &Config) -> Ticks {
        Ticks::new(config.tick(), config.timers.tick_phase, config.timers.wheel)
    }

    /// Return a clock with the given tick length and phase. A length of zero means exact timers.
    pub fn new(tick: Span, phase: u64, wheel: Wheel) -> Ticks {
        Ticks { tick: tick.0 as u32, phase, wheel } // a tick is at most 1 s long
    }

    #[inline]
    fn tick(&self) -> u64 {
        self.tick as u64
    }

    /// Number of ticks since a time before the start of the run (jiffies).
    #[inline]
    pub fn at(&self, now: Time) -> u64 {
        (now.0 + self.phase).checked_div(self.tick()).unwrap_or(0)
    }

    /// Length of `n` ticks.
    #[inline]
    pub fn span(&self, n: u64) -> Span {
        Span(n * self.tick())
    }

    /// Time between two instants in whole ticks; the exact time if there are no ticks.
    #[inline]
    pub fn between(&self, from: Time, to: Time) -> Span {
        match self.tick() {
            0 => to.since(from),
            tick => Span((self.at(to) - self.at(from)) * tick),
        }
    }

    /// Time between two instants in whole ticks if it is longer than `span`, else `None`. The usual case of a
    /// much shorter time needs no division.
    #[inline]
    pub fn longer(&self, from: Time, to: Time, span: Span) -> Option<Span> {
        if to.since(from) + self.span(1) <= span {
            return None; // rounding adds less than one tick
        }
        Some(self.between(from, to)).filter(|&gap| gap > span)
    }

    /// Round down to whole ticks; no change if there are no ticks.
    #[inline]
    pub fn floor(&self, span: Span) -> Span {
        match self.tick() {
            tick if tick > span.0 => Span::ZERO, // paced departures are usually less than one tick apart
            0 => span,
            tick => Span(span.0 - span.0 % tick),
        }
    }

    /// Round up to whole ticks; no change if there are no ticks.
    pub fn ceil(&self, span: Span) -> Span {
        match self.tick() {
            0 => span,
            tick => Span(span.0.next_multiple_of(tick)),
        }
    }

    /// Expiry of a timer armed now for `after`, before rounding by the wheel.
    #[inline]
    pub fn setting(&self, now: Time, after: Span) -> Time {
        match self.tick() {
            0 => now + after,
            tick => Time((self.at(now) + after.0.div_ceil(tick)) * tick - self.phase),
        }
    }

    /// Wheel level on which a timer armed for `after` is placed; `None` if the host has no such wheel.
    pub fn level(&self, after: Span) -> Option<u32> {
        if self.tick() == 0 || !matches!(self.wheel, Wheel::Levels) {
            return None;
        }
        Some((level_shift(after.0.div_ceil(self.tick())) / LEVEL_SHIFT) as u32)
    }

    /// Return the time at which a timer armed now for `after` fires.
    #[inline]
    pub fn expiry(&self, now: Time, after: Span) -> Time {
        self.setting_and_expiry(now, after)[1]
    }

    /// Both [`Ticks::setting`] and [`Ticks::expiry`].
    #[inline]
    pub fn setting_and_expiry(&self, now: Time, after: Span) -> [Time; 2] {
        if self.tick() == 0 {
            return [now + after; 2];
        }
        let now_ticks = self.at(now);
        let delta = after.0.div_ceil(self.tick());
        let due = match self.wheel {
            Wheel::Exact => now_ticks + delta.max(1),
            Wheel::Slack => slackened(now_ticks + delta.max(1), delta / SLACK),
            Wheel::Levels => {
                let shift = level_shift(delta);
                (((now_ticks + delta) >> shift) + 1) << shift
            }
        };
        [now_ticks + delta, due].map(|ticks| Time(ticks * self.tick() - self.phase))
    }
}

/// Number of bits by which the wheel rounds a timer armed `delta` ticks ahead.
fn level_shift(delta: u64) -> u64 {
    let mut shift = 0;
    while delta >= LEVEL_SIZE << shift && shift < 8 * LEVEL_SHIFT {
        shift += LEVEL_SHIFT;
    }
    shift
}

/// Return the roundest tick after `due` and up to `due + slack`: the one with the most trailing zeros in binary.
fn slackened(due: u64, slack: u64) -> u64 {
    let latest = due + slack;
    match (due ^ latest).checked_ilog2() {
        None => due,
        Some(bit) => latest & !((1 << bit) - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(x: u64) -> Time {
        Time(x * 1_000_000)
    }

    fn ticks(wheel: Wheel) -> Ticks {
        Ticks::new(Span::from_ms(1), 0, wheel)
    }

    #[test]
    fn the_wheel_is_never_early_and_coarser_further_out() {
        let t = ticks(Wheel::Levels);
        assert_eq!(t.expiry(Time(1), Span::from_ms(40)), ms(41));
        assert_eq!(t.expiry(ms(3), Span::from_ms(40)), ms(44));
        assert_eq!(t.expiry(Time(1), Span::from_ms(240)), ms(248));
        assert_eq!(t.expiry(Time(1), Span::from_ms(1000)), ms(1024));
        assert_eq!(Ticks::new(Span::ZERO, 5, Wheel::Levels).expiry(Time(7), Span(3)), Time(10));
    }

    #[test]
    fn before_it_a_timer_kept_its_tick() {
        let t = ticks(Wheel::Exact);
        for after in [1, 40, 240, 1000, 3000] {
            assert_eq!(t.expiry(ms(3), Span::from_ms(after)), ms(3 + after));
            assert_eq!(t.expiry(Time(3_999_999), Span::from_ms(after)), ms(3 + after));
            // a timer armed between two ticks fires a tick early
        }
        assert_eq!(t.expiry(Time(5), Span::ZERO), ms(1)); // the next tick, because the current one has passed
    }

    #[test]
    fn slack_is_a_256th_and_ends_on_the_roundest_tick() {
        let t = ticks(Wheel::Slack);
        assert_eq!(t.expiry(ms(0), Span::from_ms(255)), ms(255));
        assert_eq!(t.expiry(ms(0), Span::from_ms(1000)), ms(1002)); // the roundest tick from 1000 to 1003
        assert_eq!(t.expiry(ms(0), Span::from_ms(3000)), ms(3008)); // the roundest tick from 3000 to 3011
        for (now, after) in (0..2000u64).map(|i| (i * 37 % 4096, 1 + i * 7919 % 120_000)) {
            let (due, latest) = (now + after, now + after + after / 256);
            let roundest = (due + 1..=latest).max_by_key(|t| t.trailing_zeros()).unwrap_or(due);
            assert_eq!(t.expiry(ms(now), Span::from_ms(after)), ms(roundest), "{now} {after}");
        }
    }
}
