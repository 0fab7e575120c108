//! Cause that limits a sender at each moment. The causes are mutually exclusive, are charged to one clock, and add up
//! to the lifetime of the connection. The clock runs only on request, because it costs work on every ACK. This file
//! reads the sender and changes nothing else.
//!
//! The cause is determined when nothing more may be sent ([`Sender::poll`] has returned `None`, or a paced
//! train has ended), and lasts until the next event. A wait for the retransmission timer is recognised
//! only when the timer expires; it is then charged with the time since the last ACK or transmission.
//!
//! The kernel's three stopwatches (`chrono.rs`) run in parallel. They overlap with recovery and distinguish fewer causes.

use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};

use super::chrono::{Chrono, Limit};
use super::send_buffer::SendBuffer;
use super::Sender;
use crate::stats::Times;
use crate::ticks::Ticks;

/// Cause that limits the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hold {
    /// The connection is not established yet.
    Handshake,
    /// Data is outstanding, and the application has no more to write.
    Application,
    /// The receiver's window is full.
    Receiver,
    /// The application has more data, but the send buffer or the host's queue is full.
    SendBuffer,
    /// cwnd is full.
    Window,
    /// The next segment is waiting for its departure time.
    Pacing,
    /// Losses are being repaired: states Recovery and Loss.
    Recovery,
    /// The sender waited for the retransmission timer.
    Timeout,
    /// Everything is acknowledged, and there is nothing to send.
    Idle,
}

impl Hold {
    /// Names in the tables, by index.
    pub const NAMES: [&'static str; 9] =
        ["handshake", "application", "rwnd", "sndbuf", "cwnd", "pacing", "recovery", "timeout", "idle"];
}

/// Time spent under each cause.
pub type Held = [Span; Hold::NAMES.len()];

/// Stopwatch for each cause.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    hold: Hold,
    since: Time,
    spent: Held,
    /// The flow has ended, and the clock is stopped.
    over: bool,
    chrono: Chrono,
}

impl Limits {
    /// Start the clock at the beginning of the connection.
    pub fn new(now: Time, ticks: Ticks) -> Limits {
        let spent = [Span::ZERO; Hold::NAMES.len()];
        Limits { hold: Hold::Handshake, since: now, spent, over: false, chrono: Chrono::new(ticks) }
    }

    /// Switch to the cause `hold`.
    fn set(&mut self, now: Time, hold: Hold) {
        if hold != self.hold && !self.over {
            self.count(now);
            self.hold = hold;
        }
    }

    /// Charge the time since the last event, at `last`, to the retransmission timer, which has expired.
    pub fn timed_out(&mut self, now: Time, last: Time) {
        if self.over {
            return;
        }
        self.count(last.max(self.since));
        let waited = &mut self.spent[Hold::Timeout as usize];
        *waited = *waited + now.since(self.since);
        self.since = now;
    }

    /// Stop counting.
    pub fn end(&mut self, now: Time) {
        if !self.over {
            self.count(now);
            self.over = true;
        }
    }

    /// Time spent so far.
    pub fn spent(&self, now: Time) -> Held {
        let mut spent = self.spent;
        if !self.over {
            let running = &mut spent[self.hold as usize];
            *running = *running + now.since(self.since);
        }
        spent
    }

    fn count(&mut self, now: Time) {
        let spent = &mut self.spent[self.hold as usize];
        *spent = *spent + now.since(self.since);
        self.since = now;
    }
}

impl Sender {
    /// Start the clock of causes. Called at the beginning of the connection.
    pub(crate) fn keep_limits(&mut self, now: Time) {
        self.limits = Some(Box::new(Limits::new(now, self.timer.ticks)));
    }

    /// Stop the clock at the end of the flow.
    pub(crate) fn end_limits(&mut self, now: Time) {
        if let Some(limits) = &mut self.limits {
            limits.end(now);
        }
    }

    /// Time spent under each cause so far, and the kernel's stopwatches; `None` if they are not recorded.
    pub(crate) fn held(&self, now: Time) -> Option<(Held, Times)> {
        let limits = self.limits.as_deref()?;
        let at = if limits.over { limits.since } else { now };
        let (busy, rwnd_limited, sndbuf_limited) = match &self.queue {
            Some(_) => self.limits(at),
            None => limits.chrono.spent(at),
        };
        Some((limits.spent(now), Times { busy, rwnd_limited, sndbuf_limited }))
    }

    /// Record that the retransmission timer has expired.
    pub(super) fn note_timeout(&mut self, now: Time) {
        let last = self.heard.0.max(self.usage.last_sent());
        if let Some(limits) = &mut self.limits {
            limits.timed_out(now, last);
        }
    }

    /// Determine why nothing more may be sent for now.
    #[inline(never)]
    pub(super) fn note_hold(&mut self, now: Time) {
        let (hold, by_receiver, limited) = self.hold(now);
        let (unsent, full) = (self.unsent() > 0, self.lacks_room());
        let empty = !unsent && self.board.packets_out() == 0;
        let established = !self.stream.is_closed();
        let limited = limited || self.usage.is_limited(&self.window); // in slow start, using half of the window is enough
        let fills = full && !unsent && !limited && established && self.usage.last_sent() == now;
        let plain = self.queue.is_none();
        let Some(limits) = &mut self.limits else { return };
        limits.set(now, hold);
        if !plain || limits.over {
            return; // the send queue has its own stopwatches
        }
        let chrono = &mut limits.chrono;
        match empty {
            true => chrono.stop(now, Limit::Busy, true),
            false => chrono.start(now, Limit::Busy),
        }
        match by_receiver {
            true => chrono.start(now, Limit::Receiver),
            false => chrono.stop(now, Limit::Receiver, empty),
        }
        match full {
            true if fills => chrono.start(now, Limit::SendBuffer),
            true => {}
            false => chrono.stop(now, Limit::SendBuffer, empty),
        }
    }

    /// Return the cause, whether the receiver's window stops the next segment regardless of the cause, and
    /// whether cwnd does so.
    fn hold(&self, now: Time) -> (Hold, bool, bool) {
        let unsent = self.unsent();
        let out = match self.config.loss.limited_transmit || self.ca_state != CaState::Disorder {
            true => self.board.pipe(),
            false => self.board.packets_out(),
        };
        let limited = out >= self.window.cwnd;
        let next = unsent.min(self.smss as u64);
        let room = (self.snd_una + self.snd_wnd).saturating_sub(self.snd_nxt);
        let paced = self.pacer.as_ref().is_some_and(|pacer| pacer.holds(now).is_some());
        let by_receiver = unsent > 0 && next > room && !limited && !paced;
        let full = self.lacks_room();
        let hold = if self.stream.end() <= self.snd_una && !full {
            Hold::Idle
        } else if matches!(self.ca_state, CaState::Recovery | CaState::Loss) {
            Hold::Recovery
        } else if unsent == 0 {
            if full {
                Hold::SendBuffer
            } else {
                Hold::Application
            }
        } else if limited {
            Hold::Window
        } else if next > room {
            Hold::Receiver
        } else if paced {
            Hold::Pacing
        } else if unsent < self.smss as u64 {
            Hold::Application // Nagle's rule, or MSG_MORE
        } else if self.host_queue.is_some() {
            Hold::SendBuffer
        } else {
            Hold::Window // limit on the first burst, or a path MTU probe
        };
        (hold, by_receiver, limited)
    }

    /// Whether the application has more data than fits into the send buffer.
    fn lacks_room(&self) -> bool {
        self.buffer.as_ref().is_some_and(SendBuffer::is_full)
            || self.queue.as_ref().is_some_and(|queue| queue.writer.lacks_room())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::Wheel;

    const HOLDS: [Hold; 9] = [
        Hold::Handshake,
        Hold::Application,
        Hold::Receiver,
        Hold::SendBuffer,
        Hold::Window,
        Hold::Pacing,
        Hold::Recovery,
        Hold::Timeout,
        Hold::Idle,
    ];

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Set(usize),
        /// The timer has expired, at this offset from the last event.
        Expired(u64),
        End,
    }

    fn step() -> impl Strategy<Value = (u64, Step)> {
        let what = prop_oneof![
            12 => (0usize..9).prop_map(Step::Set),
            3 => (0u64..30).prop_map(Step::Expired),
            1 => Just(Step::End),
        ];
        (0u64..20, what)
    }

    proptest! {
        /// The oracle stores the cause of each nanosecond.
        #[test]
        fn the_clock_is_a_list_of_nanoseconds(begin in 0u64..50, steps in prop::collection::vec(step(), 0..40)) {
            let mut limits = Limits::new(Time(begin), Ticks::new(Span::ZERO, 0, Wheel::Exact));
            let (mut list, mut now, mut over) = (Vec::<Hold>::new(), begin, false);
            let (mut hold, mut changed) = (Hold::Handshake, begin);
            for (wait, step) in steps {
                now += wait;
                if !over {
                    list.resize((now - begin) as usize, hold);
                }
                match step {
                    Step::Set(n) => {
                        limits.set(Time(now), HOLDS[n]);
                        if HOLDS[n] != hold {
                            (hold, changed) = (HOLDS[n], now);
                        }
                    }
                    Step::Expired(ago) => {
                        let last = now.saturating_sub(ago).max(changed);
                        limits.timed_out(Time(now), Time(now.saturating_sub(ago)));
                        if !over {
                            list[(last - begin) as usize..].fill(Hold::Timeout);
                            changed = now;
                        }
                    }
                    Step::End => {
                        limits.end(Time(now));
                        over = true;
                    }
                }
                let spent = limits.spent(Time(now));
                for hold in HOLDS {
                    let counted = list.iter().filter(|h| **h == hold).count() as u64;
                    prop_assert_eq!(spent[hold as usize], Span(counted), "{:?}", hold);
                }
                if !over {
                    prop_assert_eq!(spent.iter().map(|span| span.0).sum::<u64>(), now - begin);
                }
            }
        }
    }
}
