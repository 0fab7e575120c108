//! Probes of a zero window, and probes that send a corked segment that no other event would send (RFC 9293
//! §3.8.6.1; Linux `tcp_send_probe0`, `tcp_write_wakeup`). The timer runs when nothing is outstanding and the
//! data may not be sent. It starts at the RTO and doubles.

use ackclock_core::{Flags, Span, Time};

use super::intent::First;
use super::timers::TimerKind;
use super::{Leaving, Sender};

/// State of a series of window probes.
#[derive(Clone, Debug, Default)]
pub struct WindowProbes {
    /// Unanswered probes so far.
    unanswered: u8,
    /// Number of times the interval has been doubled.
    backoff: u8,
    /// Time at which the first probe was due; `None` if no probe is pending.
    since: Option<Time>,
}

impl WindowProbes {
    /// Number of unanswered probes.
    pub fn unanswered(&self) -> u8 {
        self.unanswered
    }

    /// Number of times the interval has been doubled.
    pub fn backoff(&self) -> u8 {
        self.backoff
    }
}

impl Sender {
    pub(super) fn arm_window_probe(&mut self, now: Time) {
        let base = self.rtt.rto().max(self.config.timers.min_rto);
        let wait = (base * (1 << self.window_probes.backoff.min(30))).min(self.config.timers.max_rto);
        let wait = self.clamp_probe(now, wait);
        self.timer.arm(TimerKind::Probe, now, wait);
    }

    /// Process an ACK while the timer runs: restart it, or disarm it if the window has opened
    /// (Linux `tcp_ack_probe`).
    pub(super) fn on_probe_ack(&mut self, now: Time) {
        self.end_probing();
        let head = self.stream.from(self.snd_nxt).min(self.smss as u64);
        if self.snd_nxt + head <= self.snd_una + self.snd_wnd {
            self.window_probes.backoff = 0;
            self.timer.disarm();
        } else {
            self.arm_window_probe(now);
        }
    }

    pub(super) fn on_window_probe_timer(&mut self, now: Time) {
        self.timer.disarm();
        if self.board.packets_out() > 0 || !self.has_new_data() {
            self.end_probing();
        } else if self.gives_up_probing(now) {
            self.patience.failed = true;
        } else {
            self.intent.force(First::WindowProbe);
        }
    }

    pub(super) fn window_probe(&mut self, now: Time) -> Option<Leaving> {
        let room = (self.snd_una + self.snd_wnd).saturating_sub(self.snd_nxt);
        let available = self.stream.from(self.snd_nxt);
        let len = available.min(room).min(self.smss as u64) as u32;
        if len > 0 && self.device_refuses() {
            self.window_probes.unanswered += 1;
            self.on_refusal(now, TimerKind::Probe);
            return None;
        }
        if len > 0 {
            self.end_probing();
            self.window_probes.backoff = 0;
            let mut seg = self.send_new(now, len, false);
            seg.flags |= Flags::PSH;
            return Some(seg);
        }
        self.window_probes.unanswered += 1;
        self.window_probes.backoff = (self.window_probes.backoff + 1).min(self.config.timers.data_retries);
        self.arm_window_probe(now);
        Some(self.bare_probe(now))
    }

    /// Send a segment without data whose sequence number has already been acknowledged, which makes the peer reply.
    #[cold]
    pub fn bare_probe(&mut self, now: Time) -> Leaving {
        self.count(now, self.snd_una - 1, 0, 1);
        let mut seg = self.segment(0, self.snd_una - 1, 0, false, 0);
        seg.flags = Flags::ACK;
        seg
    }

    /// Whether sending another probe would exceed a limit, so that the connection is given up.
    pub(super) fn gives_up_probing(&mut self, now: Time) -> bool {
        let since = *self.window_probes.since.get_or_insert(now);
        self.patience.over(now.since(since))
            || self.window_probes.unanswered >= self.config.timers.data_retries
    }

    /// End the series of probes: the receiver answered, or nothing needs a probe.
    pub(super) fn end_probing(&mut self) {
        (self.window_probes.unanswered, self.window_probes.since) = (0, None);
    }

    /// Limit the time to the next probe to what remains of the user timeout (Linux `tcp_clamp_probe0_to_user_timeout`).
    pub(super) fn clamp_probe(&self, now: Time, wait: Span) -> Span {
        let Some(since) = self.window_probes.since else { return wait };
        let left = self.patience.left(now.since(since), self.timer.ticks.span(2));
        left.map_or(wait, |left| wait.min(left))
    }
}
