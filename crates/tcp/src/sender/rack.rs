//! RACK's memory (RFC 8985 §5.2; Linux `tp->rack`): the newest transmission known to be delivered, and the reordering
//! window's multiplier. Times are of transmissions; the marking itself is in `detection.rs`.

use ackclock_core::{Span, Time};

/// RACK state of one sender.
#[derive(Debug)]
pub(super) struct Rack {
    /// RACK.xmit_ts: when the newest delivered segment was sent.
    pub xmit: Time,
    /// RACK.end_seq of that segment.
    pub end_seq: u64,
    /// RACK.rtt of that segment.
    pub rtt: Span,
    /// Something newer was delivered since the last look.
    pub advanced: bool,
    /// RACK.reordering_seen.
    pub reord_seen: bool,
    /// RACK.reo_wnd_mult.
    pub reo_wnd_mult: u32,
    /// RACK.reo_wnd_persist.
    pub reo_wnd_persist: u8,
    /// A DSACK came in this round.
    pub dsack_seen: bool,
    /// Segments delivered when the multiplier last changed: the round's mark.
    pub last_delivered: u64,
}

impl Default for Rack {
    fn default() -> Rack {
        Rack {
            xmit: Time::ZERO,
            end_seq: 0,
            rtt: Span::ZERO,
            advanced: false,
            reord_seen: false,
            reo_wnd_mult: 1,
            reo_wnd_persist: 0,
            dsack_seen: false,
            last_delivered: 0,
        }
    }
}

impl Rack {
    /// RFC 8985 §6.2 step 2: a segment sent at `xmit` was delivered. A retransmission that seems faster than the least
    /// RTT is ambiguous and teaches nothing.
    #[inline]
    pub fn advance(&mut self, now: Time, rexmit: bool, end: u64, xmit: Time, min_rtt: Span) {
        let rtt = now - xmit;
        if rexmit && rtt < min_rtt {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        if sent_after(xmit, end, self.xmit, self.end_seq) {
            self.xmit = xmit;
            self.end_seq = end;
        }
    }

    /// Whether a segment was sent before the newest delivered one.
    #[inline]
    pub fn sent_before(&self, xmit: Time, end: u64) -> bool {
        sent_after(self.xmit, self.end_seq, xmit, end)
    }
}

/// Whether (t1, end1) was sent after (t2, end2); equal times are told apart by sequence (RFC 8985 §5.2).
#[inline]
fn sent_after(t1: Time, end1: u64, t2: Time, end2: u64) -> bool {
    t1 > t2 || (t1 == t2 && end1 > end2)
}
