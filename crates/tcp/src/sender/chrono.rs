//! Time that a sender with data spends waiting for the receiver's window, for free space in its send buffer, or for neither (Linux
//! `tcp_chrono_start`, `tcp_chrono_stop`; TCP_INFO's busy_time, rwnd_limited, sndbuf_limited). One cause is charged at a time; a later one in this
//! list takes precedence. The kernel reads its tick counter (`tcp_jiffies32`), so a cause that begins and ends within one tick counts as zero.

use ackclock_core::{Span, Time};

use crate::ticks::Ticks;

/// Cause that limits the sender.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Limit {
    /// No data to send.
    #[default]
    Idle,
    /// Data to send or outstanding, and neither of the two limits below.
    Busy,
    /// Limited by the receiver's window.
    Receiver,
    /// Limited by the send buffer.
    SendBuffer,
}

/// Stopwatch for each cause.
#[derive(Clone, Copy, Debug)]
pub struct Chrono {
    ticks: Ticks,
    limit: Limit,
    since: Time,
    spent: [Span; 4],
}

impl Chrono {
    /// Return a stopped clock that counts in the host's `ticks`.
    pub fn new(ticks: Ticks) -> Chrono {
        Chrono { ticks, limit: Limit::default(), since: Time::default(), spent: Default::default() }
    }

    /// Start the stopwatch of `limit`, unless a cause of higher precedence is running.
    pub fn start(&mut self, now: Time, limit: Limit) {
        if limit > self.limit {
            self.set(now, limit);
        }
    }

    /// Stop the stopwatch of `limit`. `empty`: everything has been sent and acknowledged.
    pub fn stop(&mut self, now: Time, limit: Limit, empty: bool) {
        if empty {
            self.set(now, Limit::Idle);
        } else if limit == self.limit {
            self.set(now, Limit::Busy);
        }
    }

    /// Total busy time, and the parts of it limited by the receiver and by the send buffer.
    pub fn spent(&self, now: Time) -> (Span, Span, Span) {
        let of = |limit: Limit| {
            let running = if limit == self.limit { self.passed(now) } else { Span::ZERO };
            self.spent[limit as usize] + running
        };
        let (receiver, buffer) = (of(Limit::Receiver), of(Limit::SendBuffer));
        (of(Limit::Busy) + receiver + buffer, receiver, buffer)
    }

    /// Time since the running cause started. The start of a paced train may lie in the future, because the train is recorded ahead of time.
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
        c.start(ms(35), Limit::Busy); // the cause of higher precedence continues
        c.stop(ms(60), Limit::Receiver, false);
        c.start(ms(70), Limit::SendBuffer);
        c.stop(ms(75), Limit::Receiver, false); // the receiver's stopwatch is not running
        assert_eq!(c.spent(ms(80)), (Span::from_ms(70), Span::from_ms(30), Span::from_ms(10)));
        c.stop(ms(80), Limit::SendBuffer, true);
        assert_eq!(c.spent(ms(900)), (Span::from_ms(70), Span::from_ms(30), Span::from_ms(10)));
    }
}
