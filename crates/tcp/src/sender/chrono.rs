//! Time that a sender with data spends waiting for the receiver's window, for room in its own send buffer, or for neither (Linux `tcp_chrono_start`,
//! `tcp_chrono_stop`; TCP_INFO's busy_time, rwnd_limited, sndbuf_limited). One cause runs at a time; the later one in this order wins. The kernel
//! reads its tick, not a clock: a cause that begins and ends within one tick took no time (`tcp_jiffies32`).

use ackclock_core::{Span, Time};

use crate::ticks::Ticks;

/// Cause that limits the sender.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Limit {
    /// No data to send.
    #[default]
    Idle,
    /// Anything but the following.
    Busy,
    /// The receiver's window.
    Receiver,
    /// A send buffer that is too small.
    SendBuffer,
}

/// A stop watch for each cause.
#[derive(Clone, Copy, Debug)]
pub struct Chrono {
    ticks: Ticks,
    limit: Limit,
    since: Time,
    spent: [Span; 4],
}

impl Chrono {
    /// Return a clock that has not started; the host's ticks are `ticks`.
    pub fn new(ticks: Ticks) -> Chrono {
        Chrono { ticks, limit: Limit::default(), since: Time::default(), spent: Default::default() }
    }

    /// Start `limit`, unless a stronger one is running.
    pub fn start(&mut self, now: Time, limit: Limit) {
        if limit > self.limit {
            self.set(now, limit);
        }
    }

    /// Stop `limit`; `empty`: everything was sent and acknowledged.
    pub fn stop(&mut self, now: Time, limit: Limit, empty: bool) {
        if empty {
            self.set(now, Limit::Idle);
        } else if limit == self.limit {
            self.set(now, Limit::Busy);
        }
    }

    /// Time spent in all, of it limited by the receiver and by the send buffer.
    pub fn spent(&self, now: Time) -> (Span, Span, Span) {
        let of = |limit: Limit| {
            let running = if limit == self.limit { self.passed(now) } else { Span::ZERO };
            self.spent[limit as usize] + running
        };
        let (receiver, buffer) = (of(Limit::Receiver), of(Limit::SendBuffer));
        (of(Limit::Busy) + receiver + buffer, receiver, buffer)
    }

    /// A paced train is noted when it is handed over, ahead of time.
    fn passed(&self, now: Time) -> Span {
        self.ticks.between(self.since.min(now), now)
    }

    fn set(&mut self, now: Time, limit: Limit) {
        if limit == self.limit {
            return;
        }
        let passed = self.passed(now);
        let spent = &mut self.spent[self.limit as usize];
        *spent = *spent + passed;
        (self.limit, self.since) = (limit, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Wheel;

    fn exact() -> Ticks {
        Ticks::new(Span::ZERO, 0, Wheel::Exact)
    }

    #[test]
    fn what_begins_and_ends_within_a_tick_took_no_time() {
        let us = |n: u64| Time(n * 1_000);
        let mut c = Chrono::new(Ticks::new(Span::from_ms(1), 0, Wheel::Exact));
        c.start(us(1_900), Limit::Busy);
        c.start(us(2_100), Limit::Receiver);
        c.stop(us(2_900), Limit::Receiver, false);
        c.start(us(2_950), Limit::Receiver);
        c.stop(us(4_050), Limit::Receiver, true);
        assert_eq!(c.spent(us(9_000)), (Span::from_ms(3), Span::from_ms(2), Span::ZERO));
    }

    #[test]
    fn one_cause_at_a_time_and_the_sum_is_the_busy_time() {
        let ms = |n: u64| Time(n * 1_000_000);
        let mut c = Chrono::new(exact());
        c.start(ms(10), Limit::Busy);
        c.start(ms(30), Limit::Receiver);
        c.start(ms(35), Limit::Busy); // the stronger one continues
        c.stop(ms(60), Limit::Receiver, false);
        c.start(ms(70), Limit::SendBuffer);
        c.stop(ms(75), Limit::Receiver, false); // the receiver's watch is not the one that runs
        assert_eq!(c.spent(ms(80)), (Span::from_ms(70), Span::from_ms(30), Span::from_ms(10)));
        c.stop(ms(80), Limit::SendBuffer, true);
        assert_eq!(c.spent(ms(900)), (Span::from_ms(70), Span::from_ms(30), Span::from_ms(10)));
    }
}
