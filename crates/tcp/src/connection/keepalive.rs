//! Probes of a peer that has been silent for long (RFC 9293 §3.8.4; Linux `tcp_keepalive_timer`):
//! SO_KEEPALIVE, TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT. Off unless the application enables them.

use ackclock_core::{Span, Time};

use super::{Connection, State};
use crate::sender::{Leaving, Sender};
use crate::ticks::Ticks;

/// Settings of one connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepAlive {
    /// Silence before the first probe (TCP_KEEPIDLE).
    pub idle: Span,
    /// Interval of probes (TCP_KEEPINTVL).
    pub interval: Span,
    /// Probes without an answer (TCP_KEEPCNT).
    pub probes: u8,
}

/// State of keep-alive.
#[derive(Clone, Debug)]
pub(crate) struct Keeper {
    settings: KeepAlive,
    pub(crate) at: Time,
    last_heard: Time,
    pub(crate) unanswered: u8,
    due: bool,
}

impl Keeper {
    /// A segment of the peer arrived.
    pub(crate) fn heard(&mut self, now: Time) {
        self.last_heard = now;
        self.unanswered = 0;
    }
}

impl Connection {
    /// SO_KEEPALIVE and its settings; none: off.
    pub fn set_keepalive(&mut self, now: Time, settings: Option<KeepAlive>) {
        let (last_heard, unanswered) =
            self.keeper.as_ref().map_or((now, 0), |k| (k.last_heard, k.unanswered));
        let ticks = Ticks::of(&self.config);
        self.plain = false;
        self.keeper = settings.map(|settings| {
            let at = ticks.expiry(now, settings.idle.saturating_sub(ticks.between(last_heard, now)));
            Box::new(Keeper { settings, at, last_heard, unanswered, due: false })
        });
    }

    /// Probes in a row that the peer did not answer.
    pub fn keepalive_probes(&self) -> u8 {
        self.keeper.as_ref().map_or(0, |k| k.unanswered)
    }

    /// Check the timer: probe, wait on, or give up with an RST.
    pub(crate) fn on_keepalive_timer(&mut self, now: Time) {
        let busy = !self.sender.ask(Sender::is_idle);
        let Some(k) = &mut self.keeper else { return };
        if now < k.at {
            return;
        }
        let ticks = Ticks::of(&self.config);
        let silent = ticks.between(k.last_heard, now);
        if busy {
            k.at = ticks.expiry(now, k.settings.idle);
        } else if silent < k.settings.idle {
            k.at = ticks.expiry(now, k.settings.idle - silent);
        } else if k.unanswered >= k.settings.probes {
            k.at = Time::NEVER;
            self.reset();
        } else {
            k.unanswered += 1;
            k.due = true;
            k.at = ticks.expiry(now, k.settings.interval);
        }
    }

    /// A probe that is due: a number the peer has acknowledged, so that it answers.
    #[inline]
    pub(crate) fn keepalive_probe(&mut self, now: Time) -> Option<Leaving> {
        let k = self.keeper.as_mut()?;
        let due = std::mem::take(&mut k.due) && self.state == State::Established;
        due.then(|| self.sender.awake().bare_probe(now))
    }
}
