//! Lateness of paced senders: the host sets a policy, and its paced senders follow it.
//!
//! A paced sender has a next send time, `due`, and an interval between packets. Its host may make it late: the
//! processor runs another process, or timers fire only at ticks. The policy decides whether lateness becomes a burst or a
//! gap in the sender's rate. The policy is independent of the transport and the same for all of them:
//!
//! ```text
//! while policy.release(due) <= now { send one packet; due = policy.following(due, now, interval) }
//! ```
//!
//! Sources: PCC's own sender computes the next send time from the actual one, so lateness is lost ([`CatchUp::None`]);
//! its build without busy waiting catches up with packets back to back ([`CatchUp::Full`]). A kernel with coarse timers
//! sends at each tick all packets that became due since the last tick.

use crate::time::{Span, Time};

/// Amount of lateness that is made up by sending packets back to back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CatchUp {
    /// None of it: the next packet is sent one interval after the late one.
    #[default]
    None,
    /// Up to this many packets.
    Burst(u32),
    /// All of the lateness.
    Full,
}

/// A host's pacing policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostPacing {
    /// Period of the clock that wakes the sender; zero if timers are exact. Lateness of up to one tick is always made
    /// up, otherwise the tick would determine the rate.
    pub tick: Span,
    /// Amount of longer lateness that is made up.
    pub catch_up: CatchUp,
}

impl HostPacing {
    /// Departure time of a packet due at `due`: the next clock tick.
    #[inline]
    pub fn release(&self, due: Time) -> Time {
        due.round_up(self.tick)
    }

    /// Due time of the packet after one that was due at `due` and is sent at `now`. A sender without data at `due` is
    /// not late: it passes `now` for both.
    #[inline]
    pub fn following(&self, due: Time, now: Time, interval: Span) -> Time {
        let late = now.since(due);
        if late <= self.tick {
            return due + interval;
        }
        match self.catch_up {
            CatchUp::None => now + interval,
            CatchUp::Burst(packets) => {
                let made_up = interval * packets as u64;
                due.max(Time(now.0.saturating_sub(made_up.0))) + interval
            }
            CatchUp::Full => due + interval,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of packets sent at `wake` by a sender that was due at `due`, and the next send time.
    fn burst(pacer: HostPacing, mut due: Time, wake: Time, interval: Span) -> (u32, Time) {
        let mut sent = 0;
        while due <= wake {
            due = pacer.following(due, wake, interval);
            sent += 1;
        }
        (sent, due)
    }

    #[test]
    fn what_a_stall_of_ten_intervals_becomes() {
        let interval = Span(120);
        let after =
            |catch_up| burst(HostPacing { tick: Span::ZERO, catch_up }, Time(1_200), Time(2_400), interval);
        assert_eq!(after(CatchUp::None), (1, Time(2_520)));
        assert_eq!(after(CatchUp::Burst(0)), (1, Time(2_520)));
        assert_eq!(after(CatchUp::Burst(3)), (4, Time(2_520)));
        assert_eq!(after(CatchUp::Full), (11, Time(2_520)));
    }

    #[test]
    fn ticks_keep_the_rate_whatever_the_policy() {
        for catch_up in [CatchUp::None, CatchUp::Burst(1), CatchUp::Full] {
            let pacer = HostPacing { tick: Span(1_000), catch_up };
            let (mut due, mut sent) = (Time(0), 0);
            for tick in 0..1_000u64 {
                let (n, next) = burst(pacer, due, Time(tick * 1_000), Span(130));
                (due, sent) = (next, sent + n);
            }
            assert_eq!(sent, 1 + 999 * 1_000 / 130, "{catch_up:?}");
        }
    }
}
