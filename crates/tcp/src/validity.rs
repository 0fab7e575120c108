//! Whether a segment that arrives is one that the peer may have sent: RFC 9293 §3.10.7.4, RFC 5961, PAWS (RFC 7323 §5).
//! Optional: the peers of a simulation send nothing else. (Linux `tcp_validate_incoming`, `tcp_sequence`, `tcp_ack`.)

use ackclock_core::{Flags, Segment, Span, Time};

use crate::connection::Connection;

/// Of one connection.
#[derive(Debug)]
pub(crate) struct Validity {
    /// Between answers to segments without payload (Linux `tcp_invalid_ratelimit`).
    interval: Span,
    last_answer: Option<Time>,
    max_window: u64,
}

impl Validity {
    pub fn new(interval: Span) -> Validity {
        Validity { interval, last_answer: None, max_window: 0 }
    }

    /// An answer is due, unless there was one a moment ago (Linux `tcp_oow_rate_limited`).
    fn answers(&mut self, now: Time) -> bool {
        let held = self.last_answer.is_some_and(|last| now.since(last) < self.interval);
        if !held {
            self.last_answer = Some(now);
        }
        !held
    }
}

impl Connection {
    /// Whether the segment is looked at any further. What is not may be answered with an ACK.
    #[cold]
    pub(crate) fn is_valid(&mut self, now: Time, seg: &Segment) -> bool {
        let (una, nxt) = self.sending();
        let Some(v) = &mut self.validity else { return true };
        if !seg.flags.has(Flags::ACK) {
            return false;
        }
        let r = self.receiver.awake();
        let end = seg.seq + seg.seq_len();
        let old = r.is_old_stamp(seg) && !(seg.seq_len() == 0 && seg.seq == r.rcv_nxt && seg.ack == una);
        if old || end < r.last_ack() || !r.is_in_window(seg) {
            if seg.seq_len() > 0 {
                r.on_outside(seg);
            } else if v.answers(now) {
                r.ack_now();
            }
            return false;
        }
        v.max_window = v.max_window.max(self.sender.window());
        let too_old = seg.ack < una.saturating_sub(v.max_window.min(una - 1));
        if seg.ack > nxt || too_old {
            if v.answers(now) {
                r.ack_now();
            }
            return false;
        }
        true
    }

    /// A challenge (RFC 5961) is in order, and not too soon after the last one.
    pub(crate) fn may_challenge(&mut self, now: Time) -> bool {
        self.validity.as_mut().is_none_or(|v| v.answers(now))
    }
}
