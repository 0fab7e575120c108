//! ECN negotiation: none, RFC 3168 ECN, or accurate ECN (RFC 9768 §3.1; Linux `tcp_ecn.h`), including all
//! fallbacks.
//!
//! | end | event | effect |
//! |---|---|---|
//! | client | its SYN is lost once | it requests accurate ECN again; from the second loss on it sends no ECN flags, and the first SYN-ACK decides |
//! | client | SYN-ACK with ACE 001; 000 or 111; another value | RFC 3168, or none if the controller needs accurate ECN; none; accurate |
//! | server | SYN with ACE 000; 011; another value | none; RFC 3168; accurate |
//! | server | its SYN-ACK is lost once | it omits the option; from the second loss on it sends no ECN flags |
//! | server | another SYN, without ECN flags | its packets carry no ECT; its ACKs still report marks |
//! | either | its SYN or SYN-ACK arrived with a mark that no path causes | its packets carry no ECT |
//! | server | the last ACK of the handshake has ACE 000 | its packets carry no ECT; it ignores the option |
//!
//! Differs: simultaneous SYNs are not modelled.

use ackclock_core::accecn::{handshake_code, handshake_mark};
use ackclock_core::packet::Ecn;
use ackclock_core::{Flags, Segment, Time};

use super::Connection;
use crate::config::DelayedAck;
use crate::receiver::{first_option, Receiver};
use crate::sender::Sender;

/// Kind of ECN, requested or agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    Off,
    /// ECN of RFC 3168.
    Classic,
    /// Accurate ECN was requested.
    Pending,
    /// Accurate ECN (RFC 9768).
    Accurate,
}

/// Results of the accurate ECN handshake.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    /// Mark on our SYN or SYN-ACK when it was sent, and on the peer's when it arrived.
    sent: Ecn,
    heard: Ecn,
    /// The path changes marks or flags, so packets carry no ECT. Linux's TCP_ACCECN_ACE_FAIL_SEND and _RECV.
    pub(super) fails_out: bool,
    pub(super) fails_in: bool,
}

impl Connection {
    /// ECN field of the IP packet that carries this segment. RFC 3168 §6.1: ECT on new data only. With a
    /// controller that needs exact marks: ECT on all data and on SYNs (RFC 8257 §3.5), in Linux on every packet
    /// (TCP_CONG_NEEDS_ECN). RFC 9768: ECT on every packet, but on SYNs only with such a controller, as in Linux.
    #[inline]
    pub fn mark_of(&self, seg: &Segment) -> Ecn {
        match self.ecn {
            Mode::Off => Ecn::NotEct,
            Mode::Classic => {
                let data = seg.len > 0;
                let marks = match self.config.sending.controller.needs().exact_ecn {
                    true => {
                        data || seg.flags.has(Flags::SYN)
                            || self.config.receiving.delayed_ack == DelayedAck::Linux
                    }
                    false => data && seg.rexmit == 0 && self.sender.now().is_some_and(|sender| sender.ecn.on),
                };
                if marks {
                    self.ect()
                } else {
                    Ecn::NotEct
                }
            }
            Mode::Pending | Mode::Accurate => self.accurate_mark(seg),
        }
    }

    #[cold]
    fn accurate_mark(&self, seg: &Segment) -> Ecn {
        let marks = match seg.flags.has(Flags::SYN) {
            true => self.config.sending.controller.needs().exact_ecn && self.syn_tries <= 1,
            false => !self.marks.fails_out && !self.marks.fails_in,
        };
        if marks {
            self.ect()
        } else {
            Ecn::NotEct
        }
    }

    fn ect(&self) -> Ecn {
        if self.config.sending.ect1 {
            Ecn::Ect1
        } else {
            Ecn::Ect0
        }
    }

    /// Process a SYN: choose the kind of ECN that the SYN-ACK agrees to.
    pub(super) fn on_syn_marks(&mut self, seg: &Segment, ecn: Ecn) {
        let use_of = self.config.ecn;
        self.marks.heard = ecn;
        self.ecn = match seg.flags.ace() {
            0b000 => Mode::Off,
            ace if ace != 0b011 && use_of.accepts_accurate() => Mode::Accurate,
            ace if ace & 0b011 == 0b011
                && use_of.accepts()
                && !self.config.sending.controller.needs().l4s =>
            {
                Mode::Classic
            }
            _ => Mode::Off,
        };
    }

    /// Process a repeated SYN. The SYN-ACK reports the latest mark.
    pub(super) fn on_syn_marks_again(&mut self, seg: &Segment, ecn: Ecn) {
        if self.ecn == Mode::Accurate {
            self.marks.heard = ecn;
            self.marks.fails_in |= seg.flags.ace() == 0;
            self.marks.fails_out |= self.syn_retransmissions > 0;
        }
    }

    /// Set the ECN flags of our own SYN or SYN-ACK.
    pub(super) fn mark_syn(&mut self, responds: bool, seg: &mut Segment) {
        let retransmitted = self.syn_tries > 1;
        match (self.ecn, responds) {
            (Mode::Classic, true) => seg.flags |= Flags::ECE,
            (Mode::Classic, false) => seg.flags |= Flags::ECE | Flags::CWR,
            (Mode::Pending, false) if self.syn_timeouts < 2 => seg.flags = seg.flags.with_ace(0b111),
            (Mode::Accurate, true) => {
                if self.syn_timeouts < 2 {
                    seg.flags = seg.flags.with_ace(handshake_code(self.marks.heard));
                }
                if self.config.accecn.option > 0 && !retransmitted {
                    seg.accecn = first_option();
                }
            }
            _ => {}
        }
        if self.syn_tries <= 1 {
            self.marks.sent = self.mark_of(seg);
        }
    }

    /// Process a SYN-ACK, which determines the client's kind of ECN (Linux `tcp_ecn_rcv_synack`).
    pub(super) fn on_synack_marks(&mut self, seg: &Segment, ecn: Ecn) {
        let ace = seg.flags.ace();
        self.ecn = match (self.ecn, ace) {
            (Mode::Classic, _) if ace & 0b011 == 0b001 && !self.config.sending.controller.needs().l4s => {
                Mode::Classic
            }
            (Mode::Pending, 0b001) if !self.config.sending.controller.needs().l4s => Mode::Classic,
            (Mode::Pending, 0b000 | 0b001 | 0b111) | (Mode::Off | Mode::Classic, _) => Mode::Off,
            (Mode::Pending | Mode::Accurate, _) => Mode::Accurate,
        };
        if self.ecn != Mode::Accurate {
            return;
        }
        self.marks.heard = ecn;
        self.receiver.awake().count_marks(&self.config, Ecn::NotEct, 0);
        self.sender.awake().hear_accurately(&seg.accecn, 1);
        self.receiver.awake().reflect(ecn, if seg.accecn.is_some() { 2 } else { 0 });
        // Linux checks the reported mark of our SYN only if the SYN-ACK arrived CE-marked.
        let looks = ecn == Ecn::Ce || self.config.receiving.delayed_ack != DelayedAck::Linux;
        if looks && (ace == 0b101 || self.is_plausible(ace)) && ecn == Ecn::Ce {
            self.receiver.awake().count_marked_synack();
        }
    }

    /// Process the last ACK of the handshake, or the first packet after it if it was lost (Linux `tcp_accecn_third_ack`).
    pub(super) fn on_third_ack_marks(&mut self, seg: &Segment, ecn: Ecn) {
        if self.ecn != Mode::Accurate {
            return;
        }
        self.receiver.awake().count_marks(&self.config, self.marks.heard, 1);
        self.sender.awake().hear_accurately(&seg.accecn, 0);
        match seg.flags.ace() {
            0b000 if seg.sack.is_empty() => {
                self.marks.fails_in = true;
                self.sender.awake().distrust_option();
            }
            0b000 | 0b001 | 0b101 | 0b111 => {}
            ace => {
                let plain = seg.seq_len() == 0 && seg.sack.is_empty();
                if plain && self.is_plausible(ace) && handshake_mark(ace) == Ecn::Ce {
                    self.sender.awake().count_marked_synack();
                }
            }
        }
        self.receiver.awake().on_accurate_marks(ecn, seg);
    }

    /// Process a SYN on an established connection. The challenge ACK reports its mark.
    pub(super) fn on_late_syn_marks(&mut self, seg: &Segment, ecn: Ecn) {
        if self.ecn == Mode::Accurate {
            self.marks.heard = ecn;
            self.sender.awake().see_option(&seg.accecn);
            self.receiver.awake().reflect(ecn, seg.accecn.is_some() as u8);
        }
    }

    /// Set the rule for sending the AccECN option ([`crate::AccEcnRules::option`]).
    pub fn set_accecn_option(&mut self, rule: u8) {
        self.receiver.awake().set_option_rule(rule);
    }

    /// Process the marks of a segment on a connection that uses ECN.
    #[cold]
    pub(super) fn on_marks(&mut self, seg: &Segment, ecn: Ecn) {
        if self.ecn == Mode::Accurate {
            let newer =
                self.has_ts && seg.has_ts && self.receiver.ask(|receiver| receiver.is_newer_stamp(seg));
            self.sender.awake().await_marks(newer);
            self.receiver.awake().on_accurate_marks(ecn, seg);
            return;
        }
        self.sender.awake().ecn.echo = seg.flags.has(Flags::ECE);
        self.receiver.awake().on_marks(seg, ecn);
    }

    /// Adapt the payload of data segments to the AccECN option and the SACK blocks (Linux `tcp_current_mss`).
    pub(super) fn fit_payload(&mut self, now: Time) {
        let sends = self.sender.now().is_some_and(Sender::may_send_new);
        let accurate = self.hears_accurately();
        if !sends && !accurate {
            return;
        }
        let blocks = self.receiver.now().map_or(0, Receiver::room_of_blocks); // a resting receiver has no blocks
        self.cramped = blocks > 0;
        let mut room = blocks;
        if accurate {
            let (srtt, saw) = (self.sender.rtt().0, self.sender.awake().saw_option());
            room += self.receiver.awake().option_room(now, srtt, saw);
        }
        self.sender.awake().make_option_room(room);
    }

    /// Write the header of a segment with ACE field and AccECN option.
    #[cold]
    pub(super) fn stamp_accurately(&mut self, now: Time, seg: &mut Segment) {
        let reports = self.receiver.awake().reported_duplicate();
        self.receiver.stamp(seg);
        // The last ACK of a closed connection comes from Linux's TIME-WAIT state, which does not support ACE.
        let over = seg.seq_len() == 0 && self.sender.fin_acked() && self.receiver.fin_received();
        if over && self.config.receiving.delayed_ack == DelayedAck::Linux {
            return;
        }
        let agreed = self.sender.awake().saw_option();
        self.receiver.awake().stamp_marks(now, self.sender.rtt().0, agreed, reports, seg);
    }

    /// Whether the mark that the peer reports for our SYN or SYN-ACK is possible: a path neither adds nor
    /// removes ECT, and never changes CE (§3.2.2.3).
    fn is_plausible(&mut self, code: u8) -> bool {
        let (sent, arrived) = (self.marks.sent, handshake_mark(code));
        let valid = sent == arrived
            || !(sent == Ecn::NotEct || arrived == Ecn::NotEct || sent == Ecn::Ce)
            || !self.config.accecn.fallback;
        self.marks.fails_in |= !valid;
        valid
    }
}
