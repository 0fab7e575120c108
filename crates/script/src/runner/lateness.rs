//! Lateness of a script's packets, identical on both hosts. Packets sent at the same instant have the same time
//! in the trace. However, a host takes time to process each packet, and Linux distinguishes 1 ms from more than
//! 1 ms (`tcp_tso_should_defer`), and RTTs that differ by a microsecond (`tcp_rack_advance`). Scripts are not that
//! precise, so the simulated host and the kernel receive packets at the same microsecond.

use ackclock_core::{Span, Time};

use super::START;

/// Granularity of times in the trace, ns.
const GRAIN: u64 = 50_000;
/// Gap between two packets below which the second one's lateness exceeds the first one's.
const CLOSE: Span = Span::from_ms(10);
/// Minimum lateness of a packet, ns, so that timers due at the same instant expire first.
const EARLIEST: u64 = 6_000;
/// Additional lateness of each further packet, ns.
const STEP: u64 = 1_000;
/// Maximum lateness, ns, below the granularity.
const LATEST: u64 = 40_000;

/// Time and lateness of the previous packet.
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
    /// Return the lateness of the next packet, which is scheduled at `at`.
    pub fn next(&mut self, at: Time) -> Span {
        let close = at.since(self.at) < CLOSE;
        let late = if close { (self.late + STEP).min(LATEST) } else { EARLIEST };
        *self = Lateness { at, late };
        Span(late)
    }
}

/// Time as shown in a trace.
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
