//! Start and abort of a connection: SYN, SYN-ACK, the options that both ends agree on, and RST.

use ackclock_core::packet::{Ecn, SynOptions};
use ackclock_core::{Flags, Segment, Span, Time};

use super::ecn::Mode;
use super::sending::Established;
use super::{Connection, State};
use crate::receiver::Receiver;
use crate::rwnd::window_scale;
use crate::sender::Leaving;
use crate::ticks::Ticks;

impl Connection {
    /// Send the SYN.
    pub fn connect(&mut self, now: Time) {
        debug_assert_eq!(self.state, State::Closed);
        self.state = State::SynSent;
        if let first @ 1.. = self.config.receiving.initiator_rwnd {
            self.receiver.awake().offer_first(first.into());
        }
        self.syn_due = true;
        self.arm_syn(now);
    }

    #[cold]
    pub(super) fn on_packet_slow(&mut self, now: Time, seg: &Segment, ecn: Ecn) {
        if seg.flags.has(Flags::RST) {
            self.on_reset(now, seg);
            return;
        }
        let syn = seg.flags.has(Flags::SYN);
        let state = self.state;
        match state {
            State::Listen if syn && !seg.flags.has(Flags::ACK) => {
                self.on_syn_marks(seg, ecn);
                self.negotiate(seg);
                self.state = State::SynReceived;
                self.syn_due = true;
                self.arm_syn(now);
            }
            State::SynReceived if syn => {
                // The SYN-ACK was lost: send it again (Linux `tcp_check_req`).
                self.on_syn_marks_again(seg, ecn);
                self.syn_due = true;
                self.syn_again = true;
                self.arm_syn(now);
            }
            State::SynReceived if seg.flags.has(Flags::ACK) && seg.ack >= 1 => {
                self.on_third_ack_marks(seg, ecn);
                self.establish(now, seg);
                self.on_established(now, seg);
                if seg.len == 0 {
                    self.receiver.forget_echo();
                }
            }
            State::SynSent if syn && seg.flags.has(Flags::ACK) => {
                self.on_synack_marks(seg, ecn);
                self.negotiate(seg);
                self.establish(now, seg);
                self.receiver.ack_now();
                self.ack_first = true;
            }
            State::Established if syn => {
                self.on_late_syn_marks(seg, ecn);
                if self.may_challenge(now) {
                    self.receiver.ack_now();
                }
            }
            State::Done if seg.seq_len() > 0 => self.receiver.ack_now(),
            _ => {}
        }
    }

    /// Process an RST (RFC 9293 §3.10.7.4, RFC 5961 §3.2). Only the exact next sequence number resets the
    /// connection; any other one in the window triggers a challenge ACK.
    fn on_reset(&mut self, now: Time, seg: &Segment) {
        let state = self.state;
        match state {
            State::SynSent if seg.flags.has(Flags::ACK) && seg.ack == 1 => self.go_to(State::Failed),
            State::SynSent | State::Listen | State::Closed => {}
            _ if seg.seq == self.receiver.next() => self.go_to(State::Failed),
            State::Established | State::SynReceived
                if seg.seq > self.receiver.next()
                    && seg.seq < self.receiver.ask(Receiver::right_edge)
                    && self.may_challenge(now) =>
            {
                self.receiver.ack_now()
            }
            _ => {}
        }
    }

    fn negotiate(&mut self, seg: &Segment) {
        self.has_ts &= seg.has_ts;
        self.peer_mss = seg.syn.mss as u32;
        self.sack &= seg.syn.sack_permitted;
        self.receiver.on_syn(seg);
        self.sender.on_syn(seg.wnd);
    }

    fn establish(&mut self, now: Time, seg: &Segment) {
        self.state = State::Established;
        if let Some(ledger) = &mut self.ledger {
            ledger.begin(now);
        }
        self.syn_deadline = Time::NEVER;
        self.syn_due = false;
        let mut rtt = (self.syn_tries <= 1).then(|| now - self.syn_sent_at);
        if rtt.is_none() && self.has_ts && seg.ts_ecr > 0 {
            let ms = self.config.timestamp(now).saturating_sub(seg.ts_ecr) as u64;
            rtt = Some(Span::from_ms(ms.max(1)));
        }
        // Linux `tcp_init_transfer`: start from one segment after more than one retransmission, at least one of them by the
        // timer, unless the echoed timestamp shows that the first SYN or SYN-ACK had arrived (`tcp_try_undo_spurious_syn`).
        let spurious = self.has_ts && seg.ts_ecr == self.config.timestamp(self.syn_sent_at);
        let from_one = self.syn_tries > 2 && self.syn_timeouts > 0 && !spurious;
        let sender = self.sender.awake();
        if from_one {
            sender.start_from_one();
        }
        sender.agree_on_ecn(self.ecn != Mode::Off);
        // Option bytes that were not negotiated are available to the payload.
        let own = self.config.payload() + 12 * (self.config.timestamps && !self.has_ts) as u32;
        let options = 12 * self.has_ts as u32;
        let own = own.min(self.config.sending.path_mss.saturating_sub(options));
        let smss = own.min(self.peer_mss.saturating_sub(options)).max(1);
        sender.established(now, seg.wnd, self.sack, (smss, options), rtt);
        self.receiver.begin(now, smss);
        let room = (smss, options);
        self.rest_on(Established { at: now, from_one, wnd: seg.wnd, sack: self.sack, room, rtt });
    }

    pub(super) fn arm_syn(&mut self, now: Time) {
        // Only the SYN has timeouts at a constant interval; the SYN-ACK backs off from the start.
        let linear =
            if self.state == State::SynSent { self.config.timers.syn_linear_timeouts as u16 } else { 0 };
        let doublings = self.syn_timeouts.saturating_sub(linear).min(16);
        let rto = (self.config.timers.initial_rto * (1 << doublings)).min(self.config.timers.max_rto);
        self.syn_deadline = Ticks::of(&self.config).expiry(now, rto);
    }

    #[cold]
    pub(super) fn poll_slow(&mut self, now: Time, seg: &mut Segment) -> bool {
        if std::mem::take(&mut self.reset_due) {
            self.write_header(now, self.bare(Flags::RST | Flags::ACK), seg);
            return true;
        }
        if self.state == State::Done && self.receiver.ack_due() {
            let ack = self.pure_ack(now);
            self.write_header(now, ack, seg); // the peer repeated its FIN, so our last ACK was lost
            return true;
        }
        if !self.syn_due {
            let challenged = self.state == State::SynReceived && self.receiver.ack_due();
            if challenged {
                let ack = self.pure_ack(now);
                self.write_header(now, ack, seg);
            }
            return challenged;
        }
        self.syn_due = false;
        let again = std::mem::take(&mut self.syn_again);
        if again {
            self.syn_retransmissions = self.syn_retransmissions.saturating_add(1);
            // A path that drops SYNs with ECN flags lets this one pass (Linux `tcp_ecn_fallback`).
            if self.ecn == Mode::Classic && self.state == State::SynSent {
                self.ecn = Mode::Off;
            }
        }
        self.syn_tries = self.syn_tries.saturating_add(1);
        if self.syn_tries == 1 {
            self.syn_sent_at = now;
        }
        self.write_header(now, Leaving { seq: 0, ..self.bare(Flags::SYN) }, seg);
        seg.syn = SynOptions {
            mss: (self.config.payload() + 12 * self.config.timestamps as u32).min(u16::MAX as u32) as u16,
            wscale: window_scale(self.config.receiving.receive_buffer),
            sack_permitted: self.sack,
        };
        let responds = self.state == State::SynReceived;
        match responds {
            true => seg.flags |= Flags::ACK,
            false => seg.ack = 0,
        }
        self.mark_syn(responds, seg);
        true
    }
}
