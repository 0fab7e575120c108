//! Probes to a silent peer (RFC 9293 §3.8.4; Linux `tcp_keepalive_timer`): SO_KEEPALIVE, TCP_KEEPIDLE,
//! TCP_KEEPINTVL, TCP_KEEPCNT. Off unless the application enables them.

use ackclock_core::{Span, Time};

use super::{Connection, State};
use crate::sender::{Leaving, Sender};
use crate::ticks::Ticks;

/// Keep-alive settings of one connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepAlive {
    /// Time without any segment from the peer before the first probe (TCP_KEEPIDLE).
    pub idle: Span,
    /// Interval between probes (TCP_KEEPINTVL).
    pub interval: Span,
    /// Number of unanswered probes after which the connection is reset (TCP_KEEPCNT).
    pub probes: u8,
}

/// Keep-alive state of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Keeper {
    settings: KeepAlive,
    pub(crate) at: Time,
    last_heard: Time,
    pub(crate) unanswered: u8,
    due: bool,
}

impl Keeper {
    /// Record that a segment from the peer has arrived.
    pub(crate) fn heard(&mut self, now: Time) {
        self.last_heard = now;
        self.unanswered = 0;
    }
}

impl Connection {
    /// Set SO_KEEPALIVE and its settings; `None`: off.
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

    /// Number of consecutive unanswered probes.
    pub fn keepalive_probes(&self) -> u8 {
        self.keeper.as_ref().map_or(0, |k| k.unanswered)
    }

    /// Process an expired timer: send a probe, keep waiting, or give up with an RST.
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

    /// Return the probe that is to be sent, if any. Its sequence number has already been acknowledged, which makes the
    /// peer reply.
    #[inline]
    pub(crate) fn keepalive_probe(&mut self, now: Time) -> Option<Leaving> {
        let k = self.keeper.as_mut()?;
        let due = std::mem::take(&mut k.due) && self.state == State::Established;
        due.then(|| self.sender.awake().bare_probe(now))
    }
}
