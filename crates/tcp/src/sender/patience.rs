//! Conditions for giving up a connection: the time a number of retransmissions would take if the RTO started at
//! its minimum and doubled each time (Linux `retransmits_timed_out`, `tcp_model_timeout`), TCP_USER_TIMEOUT (RFC 5482),
//! or a number of unanswered window probes. Also the response to a device that refuses packets: a refused packet counts
//! as not sent and is retried soon.

use ackclock_core::{Span, Time};

use super::device::Takes;
use super::plain::Reasons;
use super::timers::TimerKind;
use super::Sender;

/// Linux TCP_RESOURCE_PROBE_INTERVAL: time until a refused packet is retried.
const REFUSED_INTERVAL: Span = Span::from_ms(500);
/// Maximum number of retransmissions to a possibly live peer after the application has exited (Linux `tcp_orphan_retries`).
const ORPHAN_RETRIES: u32 = 8;

/// State that determines when the connection is given up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patience {
    /// TCP_USER_TIMEOUT; zero: none.
    user_timeout: Span,
    /// The application has closed the socket.
    orphan: bool,
    /// Packets accepted by the device.
    pub device: Takes,
    /// Consecutive retransmission timeouts without an ACK (Linux `icsk_retransmits`).
    pub timeouts: u32,
    /// The connection is given up.
    pub failed: bool,
}

impl Patience {
    /// Rest of the user timeout after `waited`, at least `least`; `None` without a user timeout.
    pub fn left(&self, waited: Span, least: Span) -> Option<Span> {
        (self.user_timeout > Span::ZERO)
            .then(|| Span(self.user_timeout.0.saturating_sub(waited.0)).max(least))
    }

    /// Whether `waited` has reached the user timeout.
    pub fn over(&self, waited: Span) -> bool {
        self.user_timeout > Span::ZERO && waited > Span::ZERO && waited >= self.user_timeout
    }
}

impl Sender {
    /// Set TCP_USER_TIMEOUT. Zero: the host's retransmission limit applies.
    pub fn set_user_timeout(&mut self, timeout: Span) {
        self.patience.user_timeout = timeout;
    }

    /// Set whether the device refuses every packet and reports it.
    pub fn set_refused(&mut self, refused: bool) {
        self.set_device(if refused { Takes::Nothing } else { Takes::All });
    }

    pub(super) fn set_device(&mut self, takes: Takes) {
        self.patience.device = takes;
        self.reasons.set(Reasons::DEVICE, takes != Takes::All);
    }

    /// Record that the application has exited: remaining data is given up sooner.
    pub fn set_orphan(&mut self) {
        self.patience.orphan = true;
    }

    /// Whether the connection is given up at the RTO that expires now.
    pub(super) fn gives_up(&self, now: Time) -> bool {
        let mut retries = self.config.timers.data_retries as u32;
        if self.patience.orphan {
            let alive = self.rtt.rto() < self.config.timers.max_rto;
            retries = if alive { ORPHAN_RETRIES } else { 0 };
        }
        match self.patience.user_timeout {
            Span::ZERO => self.waited_for(now, retries),
            timeout => self.waited(now, retries, timeout),
        }
    }

    /// Whether `retries` retransmissions have failed, judged by the time they would take (Linux
    /// `retransmits_timed_out`).
    pub(super) fn waited_for(&self, now: Time, retries: u32) -> bool {
        self.waited(now, retries, self.time_of(retries))
    }

    fn waited(&self, now: Time, retries: u32, enough: Span) -> bool {
        if self.patience.timeouts == 0 {
            return false;
        }
        let Some(since) = self.undo.since() else { return self.patience.timeouts >= retries };
        Span::from_ms(self.ts(now).wrapping_sub(since) as u64) >= enough
    }

    /// Time taken by `retries` retransmissions, starting from the minimum RTO.
    fn time_of(&self, retries: u32) -> Span {
        let (base, most) = (self.config.timers.min_rto, self.config.timers.max_rto);
        let doublings = (most.0 / base.0.max(1)).max(1).ilog2();
        let doubled = base * ((2u64 << retries.min(doublings)) - 1);
        doubled + most * retries.saturating_sub(doublings) as u64
    }

    /// Limit the next RTO to what remains of the user timeout (Linux `tcp_clamp_rto_to_user_timeout`).
    pub(super) fn clamp_rto(&self, now: Time, rto: Span) -> Span {
        let Some(since) = self.undo.since() else { return rto };
        let waited = Span::from_ms(self.ts(now).wrapping_sub(since) as u64);
        self.patience.left(waited, self.timer.ticks.span(1)).map_or(rto, |left| rto.min(left))
    }

    /// Process a packet refused by the device: reduce as for an ECN mark, and retry later (Linux `tcp_transmit_skb`, NET_XMIT_DROP).
    #[cold]
    pub(super) fn on_refusal(&mut self, now: Time, kind: TimerKind) {
        self.enter_cwr(now);
        if kind != TimerKind::None {
            let wait = self.clamp_probe(now, REFUSED_INTERVAL);
            self.timer.arm(kind, now, wait);
        }
    }
}
