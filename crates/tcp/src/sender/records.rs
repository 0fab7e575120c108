//! Lines of the trace. They read the sender and change nothing.

use ackclock_cc::RecoveryRule;
use ackclock_core::trace::{Event, Record};
use ackclock_core::{Segment, Span, Time};

use super::{AckWork, Prior, Sender};
use crate::config::Detection;

impl Sender {
    #[cold]
    pub(super) fn record(&mut self, now: Time, event: Event, seq: u64, len: u32, n: u64) {
        let mut r = self.blank(now, event);
        r.seq = seq;
        r.len = len;
        if matches!(event, Event::Send | Event::Rtx | Event::Tlp) {
            r.seg_no = (n + 1) as u32;
            r.rexmit = self.board.get(n).rexmit;
        }
        let goes_on = self.queue.as_ref().is_some_and(|q| q.packet_start < seq && seq < q.packet_end);
        if let Some(records) = &mut self.records {
            match records.last_mut() {
                // A packet of several segments is a line.
                Some(last)
                    if goes_on && (last.t, last.event, last.seq + last.len as u64) == (now, event, seq) =>
                {
                    last.len += len
                }
                _ => records.push(r),
            }
        }
    }

    #[cold]
    pub(super) fn record_ack(&mut self, now: Time, seg: &Segment, prior: &Prior, w: &AckWork) {
        let mut r = self.blank(now, Event::Ack);
        r.seq = seg.ack;
        r.len = (self.snd_una - prior.snd_una).min(u32::MAX as u64) as u32;
        r.seg_no = self.board.first as u32 + 1;
        r.sack_blocks = seg.sack.len() as u8;
        for (slot, b) in r.sack.iter_mut().zip(seg.sack.as_slice()) {
            *slot = ((seg.ack as i64 + b.start as i64) as u64, (seg.ack as i64 + b.end as i64) as u64);
        }
        r.dsack = w.dsack;
        r.is_dup = w.is_dup() || w.data_sacked; // RFC 6675 §2
        r.newly_sacked = w.newly_sacked;
        r.delivered = (self.delivered - prior.delivered) as u32;
        r.newly_lost = (self.lost - prior.lost) as u32;
        r.safe_ack = w.una_advanced && r.newly_lost == 0;
        r.cwnd_before = prior.cwnd;
        r.pipe_before = prior.pipe;
        if let Some(records) = &mut self.records {
            records.push(r);
        }
    }

    pub(super) fn blank(&self, now: Time, event: Event) -> Record {
        let finite = |s: Span| if s == Span::MAX { Span::ZERO } else { s };
        Record {
            t: now,
            flow: self.flow,
            responder: self.responder,
            event,
            ack_no: self.stats.acks_received as u32,
            seq: self.snd_una,
            len: 0,
            seg_no: 0,
            rexmit: 0,
            sack_blocks: 0,
            sack: [(0, 0); 3],
            dsack: false,
            is_dup: false,
            newly_sacked: 0,
            delivered: 0,
            newly_lost: 0,
            lost_retransmits: self.stats.lost_retransmits as u32,
            safe_ack: false,
            cwnd_before: self.window.cwnd,
            cwnd: self.window.cwnd,
            ssthresh: self.window.ssthresh,
            pipe_before: self.board.pipe(),
            pipe: self.board.pipe(),
            flight_size: self.board.packets_out(),
            sacked_out: self.board.sacked_out,
            lost_out: self.board.lost_out,
            retrans_out: self.board.retrans_out,
            rwnd: self.snd_wnd.min(u32::MAX as u64) as u32,
            ca_state: self.ca_state,
            recovery_point: self.high_seq,
            reordering: self.reordering,
            rule: self.rule.vars(),
            rto: self.rtt.rto(),
            backoff: self.rtt.backoff(),
            srtt: self.rtt.srtt(),
            rttvar: self.rtt.rttvar(),
            min_rtt: finite(self.rtt.min_rtt()),
            reo_wnd: if self.config.detection == Detection::Rack {
                finite(self.reo_wnd())
            } else {
                Span::ZERO
            },
            deadline: self.timer.deadline(),
        }
    }
}
