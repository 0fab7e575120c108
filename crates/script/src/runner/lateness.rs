//! How late packets of a script arrive, on either host. What comes at one instant gets one time in the trace.
//!
//! A host needs time for each packet, and Linux tells 1 ms from more than 1 ms (`tcp_tso_should_defer`), a round trip from one
//! that is a microsecond shorter (`tcp_rack_advance`). A script says neither, so the simulated host and the kernel are given
//! packets at the same microsecond.

use ackclock_core::{Span, Time};

use super::START;

/// Times in the trace are multiples of it, ns.
const GRAIN: u64 = 50_000;
/// Time within which successive packets add to each other's lateness.
const CLOSE: Span = Span::from_ms(10);
/// Minimum lateness of a packet, ns: timers of its instant come first.
const EARLIEST: u64 = 6_000;
/// Additional lateness of the next one.
const STEP: u64 = 1_000;
/// Maximum lateness: within the grain.
const LATEST: u64 = 40_000;

/// The packet before.
#[derive(Clone, Copy, Debug)]
pub struct Lateness {
    at: Time,
    late: u64,
}

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness { at: Time::ZERO, late: 0 }
    }
}

impl Lateness {
    /// A packet arrives at `at`, by the script: how late it is.
    pub fn next(&mut self, at: Time) -> Span {
        let close = at.since(self.at) < CLOSE;
        let late = if close { (self.late + STEP).min(LATEST) } else { EARLIEST };
        *self = Lateness { at, late };
        Span(late)
    }
}

/// The time that a trace shows.
pub fn shown(at: Time) -> Time {
    START + Span(at.since(START).0 / GRAIN * GRAIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_close_to_one_another_are_later_and_later_up_to_a_bound_within_the_grain() {
        let mut lateness = Lateness::default();
        let ms = |n: u64| START + Span::from_ms(n);
        assert_eq!([0, 1, 2, 30].map(|n| lateness.next(ms(n)).0), [6_000, 7_000, 8_000, 6_000]);
        let last = (31..100).map(|n| lateness.next(ms(n))).last().expect("some");
        assert_eq!(last.0, LATEST);
        assert_eq!(shown(ms(99) + last), ms(99));
    }
}
