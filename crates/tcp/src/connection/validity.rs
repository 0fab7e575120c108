//! Checks whether an arriving segment could have been sent by the peer: RFC 9293 §3.10.7.4, RFC 5961, PAWS
//! (RFC 7323 §5). Optional except for PAWS, because simulated peers send valid segments only. (Linux
//! `tcp_validate_incoming`, `tcp_sequence`, `tcp_ack`.)

use ackclock_core::{Flags, Segment, Span, Time};

use super::Connection;
use crate::config::RtoStyle;
use crate::ticks::Ticks;

/// Minimum interval between answers to invalid segments (Linux `tcp_invalid_ratelimit`).
const ANSWER_INTERVAL: Span = Span::from_ms(500);

/// State of the checks for one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Validity {
    max_window: u64,
}

impl Connection {
    /// Whether the segment passes the checks. A rejected one may be answered with an ACK.
    #[cold]
    pub(crate) fn is_valid(&mut self, now: Time, seg: &Segment) -> bool {
        let (una, nxt) = self.sending();
        if !seg.flags.has(Flags::ACK) {
            return false;
        }
        let r = self.receiver.awake();
        if seg.seq + seg.seq_len() < r.last_ack() || !r.is_in_window(seg) {
            self.answer_outside(now, seg);
            return false;
        }
        let Some(v) = &mut self.validity else { return true };
        v.max_window = v.max_window.max(self.sender.window());
        let too_old = seg.ack < una.saturating_sub(v.max_window.min(una - 1));
        if seg.ack > nxt || too_old {
            if self.answers(now) {
                self.receiver.ack_now();
            }
            return false;
        }
        true
    }

    /// Whether a segment for which [`Receiving::has_passed`](super::receiving::Receiving::has_passed) holds is
    /// ignored. It may be answered with an ACK.
    #[cold]
    pub(crate) fn is_stale(&mut self, now: Time, seg: &Segment) -> bool {
        let age = self.receiver.latest_stamp().wrapping_sub(seg.ts_val) as i32;
        let older = self.has_ts && seg.has_ts && age > self.paws_window;
        (older && self.is_overtaken(now, seg))
            || (seg.seq < self.receiver.next() && self.is_repeated(now, seg))
    }

    /// PAWS (RFC 7323 §5.3 R1): whether a segment with an older timestamp than the latest one is dropped, for example
    /// because its retransmission overtook it. A segment that only repeats the known ACK number and window passes
    /// (Linux `tcp_disordered_ack_check`). A segment without data before the next expected offset is dropped without an
    /// answer.
    fn is_overtaken(&mut self, now: Time, seg: &Segment) -> bool {
        let rcv_nxt = self.receiver.next();
        let plain = seg.seq_len() == 0;
        let known = seg.seq == rcv_nxt && seg.ack == self.sending().0;
        if plain && known && !self.sender.ask(|sender| sender.hears_window(seg)) {
            return false; // Differs: Linux also requires a timestamp no older than 1.2 times the RTO
        }
        if !(plain && seg.seq < rcv_nxt) {
            self.answer_outside(now, seg);
        }
        true
    }

    /// Whether a segment that lies entirely before the last ACK is answered and its content ignored (RFC 9293
    /// §3.10.7.4; Linux `tcp_sequence`). Other hosts process its ACK.
    fn is_repeated(&mut self, now: Time, seg: &Segment) -> bool {
        let old = seg.seq + seg.seq_len() < self.receiver.last_ack();
        if old && self.config.timers.rto_style == RtoStyle::Linux {
            self.answer_outside(now, seg);
            return true;
        }
        false
    }

    /// Answer an unacceptable segment with an ACK (Linux `tcp_send_dupack`).
    fn answer_outside(&mut self, now: Time, seg: &Segment) {
        if seg.seq_len() > 0 {
            self.receiver.awake().on_outside(seg);
        } else if self.answers(now) {
            self.receiver.answer();
        }
    }

    /// Whether a segment without payload may be answered now. False if the last answer was too recent (Linux
    /// `tcp_oow_rate_limited`, `tcp_invalid_ratelimit`).
    fn answers(&mut self, now: Time) -> bool {
        let interval = self.config.validate.unwrap_or(ANSWER_INTERVAL);
        let ticks = Ticks::of(&self.config); // Linux measures in ticks
        let last = self.last_answer;
        let held = last != Time::NEVER && ticks.between(last, now) < interval;
        if !held {
            self.last_answer = now;
        }
        !held
    }

    /// Whether a challenge ACK (RFC 5961) may be sent now. False if the last one was too recent.
    pub(crate) fn may_challenge(&mut self, now: Time) -> bool {
        self.validity.is_none() || self.answers(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use ackclock_core::packet::{Ecn, SynOptions};

    /// Return a server that has completed the handshake and received segment 0, then segment 1 with a timestamp larger
    /// by `ts`.
    fn server(ts: u32) -> (Connection, Segment) {
        let mut conn = Connection::responder(0, &Config::profile("linux-6").expect("a profile"));
        let stamped = Segment { has_ts: true, ts_val: 100, ts_ecr: 1, ..Segment::default() };
        let syn = SynOptions { mss: 1460, wscale: 8, sack_permitted: true };
        conn.on_packet(Time(1), &Segment { flags: Flags::SYN, wnd: 65_535, syn, ..stamped }, Ecn::NotEct);
        conn.poll_transmit(Time(1)).expect("SYN-ACK");
        let ack = Segment { seq: 1, ack: 1, flags: Flags::ACK, wnd: 65_535, ..stamped };
        conn.on_packet(Time(1_000_000), &ack, Ecn::NotEct);
        conn.on_packet(Time(2_000_000), &Segment { len: 1000, ..ack }, Ecn::NotEct);
        while conn.poll_transmit(Time(2_000_000)).is_some() {}
        let next = Segment { seq: 1001, len: 1000, ts_val: 100 + ts, ..ack };
        conn.on_packet(Time(3_000_000), &next, Ecn::NotEct);
        while conn.poll_transmit(Time(3_000_000)).is_some() {}
        (conn, next)
    }

    #[test]
    fn an_original_that_its_retransmission_overtook_is_dropped_and_answered_rfc_7323_section_5_3() {
        for (older, received, answers) in [(0, 3000, 0), (1, 3000, 0), (2, 2000, 1)] {
            let (mut conn, last) = server(10);
            let late = Segment { seq: 2001, ts_val: last.ts_val - older, ..last };
            conn.on_packet(Time(4_000_000), &late, Ecn::NotEct);
            let sent = std::iter::from_fn(|| conn.poll_transmit(Time(4_000_000))).count();
            assert_eq!(conn.received(), received, "older by {older}");
            assert!(sent >= answers, "older by {older}");
        }
    }

    #[test]
    fn what_lies_before_the_last_ack_is_not_heard() {
        let (mut conn, last) = server(10);
        conn.write(Time(4_000_000), 1000);
        conn.poll_transmit(Time(4_000_000)).expect("data");
        let repeated = Segment { seq: 1, ack: 1001, ts_val: last.ts_val, ..last };
        conn.on_packet(Time(5_000_000), &repeated, Ecn::NotEct);
        assert_eq!(conn.sending().0, 1, "its ACK acknowledges nothing");
        assert!(conn.poll_transmit(Time(5_000_000)).is_some(), "but it is answered");
    }
}
