//! Simulated time: unsigned nanoseconds since the start of the run.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

use ackclock_schema::{Described, Refusal, Value};

/// An instant, ns since the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u64);

/// A length of time, ns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than every event; used for "not armed".
    pub const NEVER: Time = Time(u64::MAX);

    /// Seconds as a float, for tables only.
    pub fn as_secs(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// Time since `earlier`, or zero if `earlier` is in the future.
    #[inline]
    pub fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// First tick of a clock with period `tick` at or after this instant.
    #[inline]
    pub fn round_up(self, tick: Span) -> Time {
        if tick.0 <= 1 || self == Time::NEVER {
            return self;
        }
        Time(self.0.div_ceil(tick.0) * tick.0)
    }
}

impl Span {
    /// Zero length.
    pub const ZERO: Span = Span(0);
    /// Longer than any run; also used for a missing value.
    pub const MAX: Span = Span(u64::MAX);

    /// Span of this many nanoseconds.
    pub const fn from_ns(ns: u64) -> Span {
        Span(ns)
    }
    /// Span of this many microseconds.
    pub const fn from_us(us: u64) -> Span {
        Span(us * 1_000)
    }
    /// Span of this many milliseconds.
    pub const fn from_ms(ms: u64) -> Span {
        Span(ms * 1_000_000)
    }
    /// Span of this many whole seconds.
    pub const fn from_secs(s: u64) -> Span {
        Span(s * 1_000_000_000)
    }
    /// Whole microseconds, rounded down.
    #[inline]
    pub const fn as_us(self) -> u64 {
        self.0 / 1_000
    }
    /// Whole milliseconds, rounded down.
    #[inline]
    pub const fn as_ms(self) -> u64 {
        self.0 / 1_000_000
    }
    /// Seconds as a float, for tables only.
    pub fn as_secs(self) -> f64 {
        self.0 as f64 * 1e-9
    }
    /// The difference, or zero if it would be negative.
    #[inline]
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl Add<Span> for Time {
    type Output = Time;
    #[inline]
    fn add(self, s: Span) -> Time {
        Time(self.0.saturating_add(s.0))
    }
}
impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, s: Span) {
        *self = *self + s;
    }
}
impl Sub<Time> for Time {
    type Output = Span;
    #[inline]
    fn sub(self, earlier: Time) -> Span {
        debug_assert!(self >= earlier, "{self} - {earlier}");
        Span(self.0.saturating_sub(earlier.0))
    }
}
impl Add for Span {
    type Output = Span;
    #[inline]
    fn add(self, o: Span) -> Span {
        Span(self.0.saturating_add(o.0))
    }
}
impl Sub for Span {
    type Output = Span;
    #[inline]
    fn sub(self, o: Span) -> Span {
        Span(self.0 - o.0)
    }
}
impl Mul<u64> for Span {
    type Output = Span;
    #[inline]
    fn mul(self, k: u64) -> Span {
        Span(self.0.saturating_mul(k))
    }
}
impl Div<u64> for Span {
    type Output = Span;
    #[inline]
    fn div(self, k: u64) -> Span {
        Span(self.0 / k)
    }
}
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Time::NEVER {
            return f.write_str("never");
        }
        write!(f, "{}.{:09} s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}
impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.0)
    }
}

impl Described for Span {
    fn read(value: &Value) -> Result<Span, Refusal> {
        u64::read(value).map(Span).map_err(|_| Refusal::new(value, "nanoseconds"))
    }
    fn write(&self) -> Value {
        Value::Whole(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_round_up_and_never_stays() {
        let ms = Span::from_ms(1);
        assert_eq!(Time(1).round_up(ms), Time(1_000_000));
        assert_eq!(Time(1_000_000).round_up(ms), Time(1_000_000));
        assert_eq!(Time::NEVER.round_up(ms), Time::NEVER);
        assert_eq!(Time(7).round_up(Span::ZERO), Time(7));
    }

    #[test]
    fn never_absorbs_every_span() {
        assert_eq!(Time::NEVER + Span::from_secs(1), Time::NEVER);
    }

    #[test]
    fn times_are_told_in_seconds_with_all_nanoseconds() {
        assert_eq!(Time(1_000_000_020).to_string(), "1.000000020 s");
        assert_eq!(Time::NEVER.to_string(), "never");
    }
}
