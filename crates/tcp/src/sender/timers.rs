//! The single timer of a sender: RTO (RFC 6298 §5), tail loss probe (RFC 8985 §7), RACK's reordering timer, delayed
//! early retransmit. It is armed as in Linux, so that timeouts in a trace fall on the kernel's ticks.

use ackclock_cc::{RecoveryAck, RecoveryRule};
use ackclock_core::trace::{CaState, Event};
use ackclock_core::{Span, Time};

use super::device::Takes;
use super::intent::{First, Next};
use super::{AckWork, Sender};
use crate::ticks::{Armed, Ticks};

/// Purpose of the timer (Linux `icsk_pending`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TimerKind {
    /// Not armed.
    None,
    /// Retransmission timeout.
    Rto,
    /// Tail loss probe.
    Tlp,
    /// RACK's reordering timer.
    Reorder,
    /// Delayed early retransmit.
    Early,
    /// Window probe.
    Probe,
}

/// Retransmission timer, and the wake-up times of the pacing clock and of the writer.
#[derive(Clone, Debug)]
pub(super) struct Timer {
    /// The host's ticks, on which timers expire.
    pub ticks: Ticks,
    kind: TimerKind,
    /// Start and duration of the wait; [`Span::MAX`] if the timer is not armed. The expiry is computed
    /// on demand, because a timer is armed more often than its expiry is read.
    since: Time,
    wait: Span,
    /// Departure time of a segment that waits for the pacing clock; NEVER if none waits.
    pace_at: Time,
    /// Time at which the suspended writer runs; NEVER if it is not suspended.
    turn_at: Time,
    /// Earlier of `pace_at` and `turn_at`.
    wake_at: Time,
}

impl Timer {
    /// Return a timer that is not armed.
    pub fn new(ticks: Ticks) -> Timer {
        let (since, wait, never) = (Time::ZERO, Span::MAX, Time::NEVER);
        Timer { ticks, kind: TimerKind::None, since, wait, pace_at: never, turn_at: never, wake_at: never }
    }

    /// Arm the timer to expire after `wait`, replacing its earlier purpose.
    #[inline]
    pub fn arm(&mut self, kind: TimerKind, now: Time, wait: Span) {
        (self.kind, self.since, self.wait) = (kind, now, wait);
    }

    /// Disarm the timer.
    pub fn disarm(&mut self) {
        (self.kind, self.wait) = (TimerKind::None, Span::MAX);
    }

    /// Suspend the timer; the caller arms it again.
    pub fn suspend(&mut self) {
        self.wait = Span::MAX;
    }

    /// Whether the timer is armed for this purpose.
    #[inline]
    pub fn waits_for(&self, kind: TimerKind) -> bool {
        self.kind == kind
    }

    /// Earliest of the timer's expiry and the wake-up times.
    #[inline]
    pub fn at(&self) -> Time {
        self.deadline().min(self.wake_at)
    }

    /// Return [`Timer::at`] if it is earlier than `before`, otherwise any time not earlier than `before`. A
    /// timer expires less than a tick before `since + wait`, so the exact expiry is needed only near
    /// `before`.
    #[inline]
    pub fn at_before(&self, before: Time) -> Time {
        match self.since + self.wait >= before.min(self.wake_at) + self.ticks.span(1) {
            true => self.wake_at,
            false => self.at(),
        }
    }

    /// Whether the timer has expired, not counting the wake-up times.
    #[inline]
    fn is_due(&self, now: Time) -> bool {
        self.since + self.wait <= now + self.ticks.span(1) && self.deadline() <= now
    }

    /// Expiry of the timer; NEVER if it is not armed.
    #[inline]
    pub fn deadline(&self) -> Time {
        match self.wait {
            Span::MAX => Time::NEVER,
            wait => self.ticks.expiry(self.since, wait),
        }
    }

    /// Timer-wheel state of the timer that expires at `deadline`; `None` if the deadline is that of the pacing clock or
    /// of the writer.
    pub fn on_wheel(&self, deadline: Time) -> Option<Armed> {
        if self.wake_at <= deadline || self.deadline() != deadline {
            return None;
        }
        self.ticks.level(self.wait).map(|level| Armed { level, since: self.since })
    }

    /// Set the departure time of a segment that waits for the pacing clock.
    #[inline]
    pub fn pace(&mut self, at: Time) {
        (self.pace_at, self.wake_at) = (at, at.min(self.turn_at));
    }

    /// Set the time at which the writer runs.
    pub fn take_turn(&mut self, at: Time) {
        (self.turn_at, self.wake_at) = (at, at.min(self.pace_at));
    }
}

impl Sender {
    /// See [`Timer::on_wheel`].
    pub fn on_wheel(&self, deadline: Time) -> Option<Armed> {
        self.timer.on_wheel(deadline)
    }

    /// Time of the next expiry or wake-up.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.timer.at()
    }

    /// Return the deadline if it is earlier than `before`, otherwise any time not earlier than `before`.
    #[inline]
    pub fn deadline_before(&self, before: Time) -> Time {
        self.timer.at_before(before)
    }

    /// Arm the timer after a cumulative ACK: for a loss probe if allowed, else for the RTO (Linux `tcp_set_xmit_timer`).
    pub(super) fn set_xmit_timer(&mut self, now: Time) {
        if !self.schedule_probe(now, true) {
            self.rearm_rto(now);
        }
    }

    /// Time left until the head's RTO, counted from its last transmission; `None` if it has passed or nothing is outstanding.
    #[inline]
    pub(super) fn rto_left(&self, now: Time) -> Option<Span> {
        let head = self.board.head()?;
        let (now, due) = (self.clock(now), head.xmit + self.rtt.rto());
        (due > now).then(|| due - now)
    }

    pub(super) fn rearm_rto(&mut self, now: Time) {
        if self.board.packets_out() == 0 {
            self.timer.disarm();
            return;
        }
        let mut rto = self.rtt.rto();
        if matches!(self.timer.kind, TimerKind::Reorder | TimerKind::Tlp | TimerKind::Early) {
            rto = self.rto_left(now).unwrap_or(Span(1));
        }
        let rto = rto + self.pacing_delay(now);
        self.timer.arm(TimerKind::Rto, now, rto);
    }

    /// Whether the timer or a wake-up time has been reached.
    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        self.timer.wake_at <= now || self.timer.is_due(now)
    }

    /// Process the timer and the wake-up times that have been reached.
    #[inline]
    pub fn on_timer(&mut self, now: Time) {
        if self.timer.turn_at <= now {
            self.on_turn();
        }
        if self.timer.pace_at <= now {
            self.on_pacing_timer(now);
        }
        if self.timer.is_due(now) {
            self.on_expiry(now);
        }
    }

    #[inline(never)]
    fn on_expiry(&mut self, now: Time) {
        self.trace.burst_over();
        self.begin_event(now);
        match self.timer.kind {
            TimerKind::None => self.timer.disarm(),
            TimerKind::Rto => self.on_rto(now),
            TimerKind::Tlp => self.on_probe_timer(now),
            TimerKind::Reorder => self.on_reorder_timer(now),
            TimerKind::Probe => self.on_window_probe_timer(now),
            TimerKind::Early => {
                self.timer.disarm();
                self.mark_first_unsacked();
                if self.time_to_recover() {
                    self.recover_from_timer(now);
                }
                self.rearm_rto(now);
            }
        }
    }

    pub(super) fn on_reorder_timer(&mut self, now: Time) {
        let (prior_pipe, prior_lost) = (self.board.pipe(), self.lost);
        self.rack_detect(now);
        if self.board.pipe() != prior_pipe || self.lost != prior_lost {
            self.recover_from_timer(now);
        }
        self.rearm_rto(now);
        if self.trace.is_on() {
            self.record(now, Event::ReoTimer, self.snd_una, 0, 0);
        }
    }

    pub(super) fn recover_from_timer(&mut self, now: Time) {
        if self.ca_state != CaState::Recovery {
            let newly_lost = self.board.lost_out;
            self.enter_recovery(now, &AckWork::default(), false);
            if self.controls {
                self.intent.set(Next::Lost);
                return;
            }
            let ack = RecoveryAck {
                delivered: 1, // Linux calls `tcp_cwnd_reduction(sk, 1, ...)` here
                pipe: self.board.pipe(),
                cwnd: self.window.cwnd,
                ssthresh: self.window.ssthresh,
                una_advanced: false,
                newly_lost,
                entering: true,
                progress: true,
            };
            self.window.cwnd = self.rule.on_ack(&ack);
        }
        self.intent.set(Next::Lost);
    }

    pub(super) fn on_rto(&mut self, now: Time) {
        if self.board.packets_out() == 0 {
            self.timer.disarm();
            return;
        }
        if self.gives_up(now) {
            self.patience.failed = true;
            self.timer.disarm();
            return;
        }
        if self.mtu_search.is_some() {
            self.doubt_path(now);
        }
        match self.ca_state {
            CaState::Open | CaState::Cwr => self.stats.rtos_open += 1,
            CaState::Disorder => self.stats.rtos_disorder += 1,
            CaState::Recovery => self.stats.rtos_recovery += 1,
            CaState::Loss => self.stats.rtos_loss += 1,
        }
        self.stats.rtos += 1;
        if self.limits.is_some() {
            self.note_timeout(now);
        }
        self.enter_loss(now);
        self.patience.timeouts += 1;
        if self.patience.device == Takes::Nothing {
            return self.on_refusal(now, TimerKind::Rto);
        }
        self.rtt.back_off();
        self.intent.force(First::Head);
        self.intent.set(Next::Lost);
        let rto = self.clamp_rto(now, self.rtt.rto());
        self.timer.arm(TimerKind::Rto, now, rto);
        if self.trace.is_on() {
            self.record(now, Event::Rto, self.snd_una, 0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Wheel;

    #[test]
    fn the_earlier_clock_wakes_the_sender_and_a_suspended_timer_still_knows_what_it_waits_for() {
        let mut timer = Timer::new(Ticks::new(Span::ZERO, 0, Wheel::Exact)); // exact timers
        assert_eq!(timer.at(), Time::NEVER);
        timer.arm(TimerKind::Tlp, Time(5), Span(100));
        timer.pace(Time(50));
        assert_eq!((timer.at(), timer.deadline()), (Time(50), Time(105)));
        assert_eq!((timer.at_before(Time(51)), timer.at_before(Time::NEVER)), (Time(50), Time(50)));
        assert!(!timer.is_due(Time(104)) && timer.is_due(Time(105)));
        timer.take_turn(Time(20));
        assert_eq!((timer.at(), timer.at_before(Time::NEVER)), (Time(20), Time(20)));
        timer.pace(Time(10));
        assert_eq!(timer.at(), Time(10));
        timer.pace(Time::NEVER);
        assert_eq!(timer.at(), Time(20));
        timer.take_turn(Time::NEVER);
        timer.suspend();
        assert_eq!(timer.at(), Time::NEVER);
        assert!(timer.waits_for(TimerKind::Tlp));
        timer.disarm();
        assert!(timer.waits_for(TimerKind::None));
    }
}
