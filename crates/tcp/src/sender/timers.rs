//! The one timer of a sender: RTO (RFC 6298 §5), tail loss probe (RFC 8985 §7), RACK's reordering window, delayed early
//! retransmit. Armed as Linux arms it, so that the timeouts of a trace fall on the kernel's ticks.

use ackclock_cc::{RecoveryAck, RecoveryRule};
use ackclock_core::trace::{CaState, Event};
use ackclock_core::{Span, Time};

use super::intent::{First, Next};
use super::{AckWork, Sender, TimerKind};

impl Sender {
    pub(super) fn arm(&mut self, kind: TimerKind, at: Time) {
        self.timer = kind;
        self.deadline = at;
    }

    pub(super) fn disarm(&mut self) {
        self.arm(TimerKind::None, Time::NEVER);
    }

    /// After a cumulative ACK: a loss probe where allowed, else the RTO (Linux `tcp_set_xmit_timer`).
    pub(super) fn set_xmit_timer(&mut self, now: Time) {
        if !self.schedule_probe(now, true) {
            self.rearm_rto(now);
        }
    }

    /// Time left until the head's RTO, counted from its last transmission.
    pub(super) fn rto_left(&self, now: Time) -> Option<Span> {
        let head = self.board.head()?;
        let due = head.xmit + self.rtt.rto();
        (due > now).then(|| due - now)
    }

    pub(super) fn rearm_rto(&mut self, now: Time) {
        if self.board.packets_out() == 0 {
            self.disarm();
            return;
        }
        let mut rto = self.rtt.rto();
        if matches!(self.timer, TimerKind::Reorder | TimerKind::Tlp | TimerKind::Early) {
            rto = self.rto_left(now).unwrap_or(Span(1));
        }
        let rto = rto + self.pacing_delay(now);
        self.arm(TimerKind::Rto, self.ticks.expiry(now, rto));
    }

    /// The timer may be due.
    pub fn on_timer(&mut self, now: Time) {
        if self.pace_at <= now {
            self.on_pacing_timer(now);
        }
        if now < self.deadline {
            return;
        }
        let kind = self.timer;
        self.burst = 0;
        match kind {
            TimerKind::None => self.disarm(),
            TimerKind::Rto => self.on_rto(now),
            TimerKind::Tlp => self.on_probe_timer(now),
            TimerKind::Reorder => self.on_reorder_timer(now),
            TimerKind::Probe => self.on_window_probe_timer(now),
            TimerKind::Early => {
                self.disarm();
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
        self.timer = TimerKind::Reorder;
        self.rack_detect(now);
        if self.board.pipe() != prior_pipe || self.lost != prior_lost {
            self.recover_from_timer(now);
        }
        self.rearm_rto(now);
        if self.records.is_some() {
            self.record(now, Event::ReoTimer, self.snd_una, 0, 0);
        }
    }

    pub(super) fn recover_from_timer(&mut self, now: Time) {
        if self.ca_state != CaState::Recovery {
            let newly_lost = self.board.lost_out;
            self.enter_recovery(now, &AckWork::default());
            if self.controls {
                self.intent.set(Next::Lost);
                return;
            }
            let ack = RecoveryAck {
                delivered: 1, // Linux calls tcp_cwnd_reduction(sk, 1, ...) here
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
            self.disarm();
            return;
        }
        if self.gives_up(now) {
            self.failed = true;
            self.disarm();
            return;
        }
        match self.ca_state {
            CaState::Open | CaState::Cwr => self.stats.rtos_open += 1,
            CaState::Disorder => self.stats.rtos_disorder += 1,
            CaState::Recovery => self.stats.rtos_recovery += 1,
            CaState::Loss => self.stats.rtos_loss += 1,
        }
        self.stats.rtos += 1;
        self.enter_loss(now);
        self.retransmits += 1;
        if self.patience.refused {
            return self.on_refusal(now, TimerKind::Rto);
        }
        self.rtt.back_off();
        self.intent.force(First::Head);
        self.intent.set(Next::Lost);
        let rto = self.clamp_rto(now, self.rtt.rto());
        self.arm(TimerKind::Rto, self.ticks.expiry(now, rto));
        if self.records.is_some() {
            self.record(now, Event::Rto, self.snd_una, 0, 0);
        }
    }
}
