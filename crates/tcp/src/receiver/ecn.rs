//! Echo of ECN marks by the receiver: until CWR (RFC 3168 §6.1.3), or exactly (RFC 8257 §3.2).

use ackclock_core::packet::Ecn;
use ackclock_core::{Flags, Segment};

use super::{Accurate, Receiver};
use crate::config::{Config, DelayedAck};

/// Exact echo: each ACK reports the mark of the data that it acknowledges (RFC 8257 §3.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExactEcho {
    /// DCTCP.CE: whether the last data segment was marked.
    pub(super) ce: bool,
    /// ACK to be sent first: its ACK number, and the mark of the data that it acknowledges.
    pub(super) before: Option<(u64, bool)>,
}

/// ECN state of the receiver.
#[derive(Clone, Debug)]
pub(crate) struct Marks {
    /// ECT has been seen, so data without ECT is a retransmission (RFC 3168 §6.1.5).
    saw_ect: bool,
    /// Every ACK carries ECE until the peer answers with CWR (RFC 3168 §6.1.3).
    pub(super) echo_marks: bool,
    pub(super) exact: Option<Box<ExactEcho>>,
    /// Counters of accurate ECN; `None` unless it was agreed on.
    pub(crate) accurate: Option<Box<Accurate>>,
    /// The receiver cheats: marks are not echoed.
    pub(super) hides_marks: bool,
}

impl Marks {
    pub(super) fn new(config: &Config) -> Marks {
        Marks {
            saw_ect: false,
            echo_marks: false,
            exact: config.sending.controller.needs().exact_ecn.then(Box::default),
            accurate: None,
            hides_marks: config.switches.hide_marks,
        }
    }
}

impl Receiver {
    /// Process the ECN mark and the CWR flag of a segment (Linux `tcp_data_ecn_check`, `tcp_ecn_accept_cwr`).
    pub fn on_marks(&mut self, seg: &Segment, ecn: Ecn) {
        let (cwr, data) = (seg.flags.has(Flags::CWR), seg.seq_len() > 0);
        let brings =
            seg.len > 0 && (seg.seq + seg.seq_len() > self.rcv_nxt || self.acks.mode != DelayedAck::Linux);
        let ce = ecn == Ecn::Ce && brings && !self.marks.hides_marks;
        if brings && self.acks.mode == DelayedAck::Linux {
            match ecn {
                Ecn::NotEct if self.marks.saw_ect => self.acks.acknowledge_two(),
                Ecn::NotEct => {}
                _ => self.marks.saw_ect = true,
            }
        }
        if self.marks.exact.is_some() {
            self.note_kind(ce, data);
            // after a reduction the sender's window may not allow a second segment (Linux `tcp_ecn_accept_cwr`)
            self.acks.now |= cwr && data;
            return;
        }
        if cwr {
            self.marks.echo_marks = false;
            if data {
                self.acks.now = true;
                self.acks.pending = true;
            }
        }
        if ce && !self.marks.echo_marks {
            self.marks.echo_marks = true;
            self.acks.acknowledge_two();
        }
    }

    /// Process the mark of arriving data. If it differs from the previous one, pending data is acknowledged
    /// first, with its own mark (RFC 8257 §3.2).
    pub(super) fn note_kind(&mut self, ce: bool, data: bool) {
        if let Some(exact) = &mut self.marks.exact {
            if data && exact.ce != ce {
                exact.before = self.acks.pending.then_some((self.rcv_nxt, exact.ce));
                exact.ce = ce;
                self.acks.now = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ticks::Ticks;
    use ackclock_cc::controller::Recipe;
    use ackclock_core::{Flags, Segment, Span, Time};

    /// RFC 8257 §3.2: an ACK covers either marked or unmarked segments; pending ones are acknowledged when
    /// the mark changes.
    #[test]
    fn exact_echo_never_mixes_marked_and_unmarked() {
        let config = Config::profile("rfc").expect("known").with(|set| {
            set.sending.controller = Recipe::by_name("dctcp").expect("registered");
            set.receiving.delayed_ack = DelayedAck::Rfc;
        });
        let mut receiver = Receiver::new(&config, Ticks::new(Span::ZERO, 0, config.timers.wheel));
        receiver.on_syn();
        let smss = 1000;
        let mut acks = Vec::new();
        // marks of ten segments that arrive one by one
        for (i, ce) in
            [false, false, false, true, true, true, true, false, true, true].into_iter().enumerate()
        {
            let seg = Segment {
                seq: 1 + i as u64 * smss,
                len: smss as u32,
                flags: Flags::ACK,
                ..Segment::default()
            };
            receiver.on_marks(&seg, if ce { Ecn::Ce } else { Ecn::Ect0 });
            receiver.on_data(Time(i as u64 * 1_000), &seg, Span::ZERO, Span::from_secs(1), 1);
            while receiver.ack_due() {
                let mut ack = Segment { flags: Flags::ACK, ..Segment::default() };
                receiver.stamp(&mut ack);
                acks.push((ack.ack / smss, ack.flags.has(Flags::ECE)));
            }
        }
        // every second segment while the mark is the same, at once when it changes; the tenth waits for the timer
        let want = [(2, false), (3, false), (4, true), (6, true), (7, true), (8, false), (9, true)];
        assert_eq!(acks, want);
    }
    /// A segment with CWR is acknowledged at once, even if the mark does not change.
    #[test]
    fn exact_echo_does_not_hold_back_the_ack_of_a_reduction() {
        let config = Config::profile("rfc").expect("known").with(|set| {
            set.sending.controller = Recipe::by_name("dctcp").expect("registered");
            set.receiving.delayed_ack = DelayedAck::Rfc;
        });
        let acked = |cwr: bool| {
            let mut receiver = Receiver::new(&config, Ticks::new(Span::ZERO, 0, config.timers.wheel));
            receiver.on_syn();
            let flags = if cwr { Flags::ACK | Flags::CWR } else { Flags::ACK };
            let seg = Segment { seq: 1, len: 1000, flags, ..Segment::default() };
            receiver.on_marks(&seg, Ecn::Ect0);
            receiver.on_data(Time::ZERO, &seg, Span::ZERO, Span::from_secs(1), 1);
            receiver.ack_due()
        };
        assert_eq!((acked(false), acked(true)), (false, true));
    }
}
