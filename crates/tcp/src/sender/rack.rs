//! RACK (RFC 8985; Linux `tcp_recovery.c`): a segment is lost when one sent sufficiently later was delivered.
//! Step numbers are those of §6.2; names without a section are from §5.2. Times are transmission times.

use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};

use super::{AckWork, Sender};

/// Recoveries without a DSACK until reo_wnd shrinks again (§6.2 step 4; Linux TCP_RACK_RECOVERY_THRESH).
const REO_WND_PERSIST: u8 = 16;

/// RACK state of one sender.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// RACK.xmit_ts: when the newest delivered segment was sent.
    xmit: Time,
    /// RACK.end_seq of that segment.
    end_seq: u64,
    /// RACK.rtt of that segment.
    rtt: Span,
    /// A newer segment has been delivered since losses were last checked.
    advanced: bool,
    /// RACK.reordering_seen.
    reord_seen: bool,
    /// RACK.reo_wnd_mult.
    reo_wnd_mult: u32,
    /// RACK.reo_wnd_persist.
    reo_wnd_persist: u8,
    /// A DSACK has arrived in this round trip.
    dsack_seen: bool,
    /// `delivered` when the multiplier last changed; marks the start of the round trip.
    last_delivered: u64,
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
    /// Step 2 (Linux `tcp_rack_advance`): update the state for a delivered segment sent at `xmit`. A
    /// retransmission whose ACK is faster than the minimum RTT is ambiguous and ignored.
    #[inline]
    pub fn advance(&mut self, now: Time, rexmit: bool, end: u64, xmit: Time, min_rtt: Span) {
        let rtt = now.since(xmit); // zero if a host's queue released it before its departure time
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

    /// Whether a newer segment has been delivered since the last call.
    #[inline]
    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.advanced)
    }

    /// Check for losses on the next ACK even if no newer segment is delivered.
    pub fn look_again(&mut self) {
        self.advanced = true;
    }

    /// RTT of the newest delivered segment.
    pub fn rtt(&self) -> Span {
        self.rtt
    }

    /// Step 3: record that the network reorders packets.
    pub fn saw_reordering(&mut self) {
        self.reord_seen = true;
    }

    /// Process a DSACK. It is ignored until reordering has been seen.
    pub fn saw_dsack(&mut self) {
        self.dsack_seen |= self.reord_seen;
    }

    /// Record that a recovery has ended without an undo.
    pub fn recovery_ended(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
    }

    /// Record that DSACKs undid a recovery: the wider window is kept for longer.
    pub fn recovery_undone(&mut self) {
        self.reo_wnd_persist = REO_WND_PERSIST.min(self.reo_wnd_persist + 1);
    }

    /// Step 4, the multiplier. `sent_at`: `delivered` when the newest covered segment was sent; `delivered`: its value now.
    fn update_multiplier(&mut self, sent_at: u64, delivered: u64) {
        if !self.dsack_seen && self.reo_wnd_persist > 0 {
            return;
        }
        if sent_at < self.last_delivered {
            self.dsack_seen = false; // at most one increase per round trip
        }
        if self.dsack_seen {
            self.reo_wnd_mult = (self.reo_wnd_mult + 1).min(255); // Linux stores it in a byte
            self.dsack_seen = false;
            self.last_delivered = delivered;
            self.reo_wnd_persist = REO_WND_PERSIST;
        } else if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// Whether a segment was sent before the newest delivered one.
    #[inline]
    pub fn sent_before(&self, xmit: Time, end: u64) -> bool {
        sent_after(self.xmit, self.end_seq, xmit, end)
    }
}

/// Whether (t1, end1) was sent after (t2, end2); equal times are ordered by sequence number (RFC 8985 §5.2).
#[inline]
fn sent_after(t1: Time, end1: u64, t2: Time, end2: u64) -> bool {
    t1 > t2 || (t1 == t2 && end1 > end2)
}

impl Sender {
    /// Step 5: mark lost every segment sent before the newest delivered one, more than an RTT plus the reordering window
    /// ago (Linux `tcp_rack_detect_loss`). Returns the wait until the last of the remaining candidates would be lost.
    pub(super) fn rack_detect(&mut self, now: Time) -> Option<Span> {
        let (now, reo_wnd) = (self.clock(now), self.reo_wnd());
        let mut wait = Span::ZERO;
        let mut cursor = self.board.oldest_sent();
        while let Some(n) = cursor {
            let s = *self.board.get(n);
            cursor = self.board.sent_after(n);
            if !self.rack.sent_before(s.xmit, s.end) {
                break;
            }
            let due = s.xmit + self.rack.rtt + reo_wnd;
            if due <= now {
                self.mark_lost(n);
                self.board.leave_out(n);
            } else {
                wait = wait.max(due - now);
            }
        }
        (wait > Span::ZERO).then_some(wait)
    }

    /// Step 4: RACK.reo_wnd (Linux `tcp_rack_reo_wnd`). Zero in recovery or from DupThresh SACKs on, unless
    /// reordering has been seen; otherwise a multiple of a quarter of the minimum RTT, at most srtt.
    pub(super) fn reo_wnd(&self) -> Span {
        let at_dupthresh = self.board.sacked_out >= self.dupthresh.degree();
        if !self.rack.reord_seen && (self.ca_state >= CaState::Recovery || at_dupthresh) {
            return Span::ZERO;
        }
        (Span::from_us(self.rtt.min_rtt().as_us() / 4) * self.rack.reo_wnd_mult as u64).min(self.rtt.srtt())
    }

    /// Step 4, the multiplier: one more quarter of the minimum RTT for each round trip with a DSACK, and back
    /// to one quarter after 16 recoveries without a DSACK (Linux `tcp_rack_update_reo_wnd`).
    #[inline]
    pub(super) fn update_reo_wnd(&mut self, w: &AckWork) {
        if let Some(prior_delivered) = w.prior_delivered {
            self.rack.update_multiplier(prior_delivered, self.delivered);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_before_the_departure_time_is_an_rtt_of_zero() {
        let mut rack = Rack::default();
        rack.advance(Time(1_000), false, 1, Time(3_000), Span(500));
        assert_eq!((rack.rtt(), rack.take_news()), (Span::ZERO, true));
    }

    #[test]
    fn each_round_trip_with_a_dsack_adds_a_quarter_and_16_recoveries_without_take_all_back() {
        let mut rack = Rack::default();
        rack.saw_dsack();
        rack.update_multiplier(0, 10);
        assert_eq!(rack.reo_wnd_mult, 1, "no reordering was seen");
        rack.saw_reordering();
        rack.saw_dsack();
        rack.update_multiplier(0, 10);
        rack.saw_dsack();
        rack.update_multiplier(5, 12); // still the same round trip
        assert_eq!(rack.reo_wnd_mult, 2);
        rack.saw_dsack();
        rack.update_multiplier(10, 20);
        assert_eq!(rack.reo_wnd_mult, 3);
        for left in (0..16).rev() {
            rack.recovery_ended();
            rack.update_multiplier(30, 40);
            assert_eq!(rack.reo_wnd_mult, if left > 0 { 3 } else { 1 });
        }
    }

    #[test]
    fn a_retransmission_faster_than_the_least_rtt_teaches_nothing() {
        let (mut rack, ms) = (Rack::default(), |n: u64| Time(n * 1_000_000));
        rack.advance(ms(100), false, 1_001, ms(0), Span::from_ms(100));
        assert!(rack.take_news() && !rack.take_news());
        rack.advance(ms(110), true, 2_001, ms(90), Span::from_ms(100));
        assert!(!rack.take_news());
        assert!(rack.sent_before(ms(0), 1_000) && !rack.sent_before(ms(0), 1_002));
    }
}
