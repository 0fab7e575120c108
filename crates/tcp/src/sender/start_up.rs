//! The end of the first slow start: its time, reason and window, and the losses until two round trips later.
//!
//! An end that proves a mistake, and is undone, is none: ssthresh is arbitrarily high again, and slow start goes on.

use ackclock_cc::Window;
use ackclock_core::Time;

use super::Sender;
use crate::stats::{SlowStartEnd, SlowStartExit};

/// Phase of the search for the end of slow start.
#[derive(Clone, Debug)]
pub(super) enum StartUp {
    /// The end of slow start.
    Goes,
    /// Losses, until then.
    Over(Time),
    /// Finished; unused if the controller has its own start.
    Known,
}

impl Sender {
    /// More than one SYN was lost: start from one segment (RFC 5681 §3.1; Linux `tcp_init_transfer`).
    pub fn start_from_one(&mut self) {
        self.window.cwnd = 1;
    }

    /// After an ACK, check whether slow start has ended; at once if the reason would not be visible later.
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
