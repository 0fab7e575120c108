//! End of the first slow start: time, reason, window, and losses until two round trips later.
//!
//! An end that is undone as spurious does not count: ssthresh is arbitrarily high again, and slow start continues.

use ackclock_cc::Window;
use ackclock_core::Time;

use super::Sender;
use crate::stats::{SlowStartEnd, SlowStartExit};

/// Phase of the first slow start.
#[derive(Clone, Debug)]
pub(super) enum StartUp {
    /// Slow start is in progress.
    Goes,
    /// Slow start has ended; losses are counted until this time.
    Over(Time),
    /// The result is complete, or the controller has its own start-up.
    Known,
}

impl Sender {
    /// Start with a cwnd of one segment, because more than one SYN was lost (RFC 5681 §3.1; Linux `tcp_init_transfer`).
    pub fn start_from_one(&mut self) {
        self.window.cwnd = 1;
    }

    /// Check after an ACK whether slow start has ended. `why`: the reason, if it could not be determined later.
    #[inline]
    pub(super) fn look_at_slow_start(&mut self, now: Time, why: Option<SlowStartEnd>) {
        match self.start_up {
            StartUp::Known => {}
            StartUp::Goes if self.window.in_slow_start() && why.is_none() => {}
            _ => self.note_slow_start(now, why),
        }
    }

    #[cold]
    fn note_slow_start(&mut self, now: Time, why: Option<SlowStartEnd>) {
        match (&self.start_up, &mut self.stats.slow_start) {
            (StartUp::Over(_), exit) if self.window.ssthresh == Window::INFINITE => {
                self.start_up = StartUp::Goes;
                *exit = None;
            }
            (StartUp::Over(until), Some(exit)) => {
                exit.lost = self.lost as u32;
                if now >= *until {
                    self.start_up = StartUp::Known;
                }
            }
            _ => {
                let by = why.unwrap_or(SlowStartEnd::Threshold);
                let reduced = matches!(by, SlowStartEnd::Loss | SlowStartEnd::Mark | SlowStartEnd::Timeout);
                let cwnd = if reduced { self.window.prior_cwnd } else { self.window.cwnd };
                let (ssthresh, lost) = (self.window.ssthresh, self.lost as u32);
                self.stats.slow_start = Some(SlowStartExit { at: now, by, cwnd, ssthresh, lost });
                self.start_up = StartUp::Over(now + self.rtt.srtt() * 2);
            }
        }
    }
}
