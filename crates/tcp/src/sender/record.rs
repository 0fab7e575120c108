//! One line of the sender's trace, in parts: what is written down, and where the sender has it. A column of the trace is a field here and a
//! line of the table (`acks` in `ackclock_sim`'s `report/output.rs`).
//!
//! Fields follow the need stated by users of `tcp_probe` and its successors: values before *and* after the ACK, the
//! real ssthresh, the congestion state, the recovery rule's own variables. Units are in the names; "segments" are
//! SMSS-sized. Records are produced by the sender and never read by it, so tracing cannot change a run.

use ackclock_cc::RecoveryRule;
use ackclock_core::trace::{CaState, Event, RuleVars};
use ackclock_core::{FlowId, Segment, Span, Time};

use super::{AckWork, Prior, Sender};
use crate::config::Detection;

/// One line of the sender's trace, taken on each ACK, transmission and timer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record {
    /// Time, connection and kind of the event.
    pub event: Occasion,
    /// News of an ACK; nothing for other events.
    pub ack: AckNews,
    /// Window, and what is outstanding.
    pub window: Windows,
    /// Repair of losses.
    pub repair: Repair,
    /// Timers, and the times that they follow.
    pub timers: Timers,
}

// The memory of a run is estimated before it starts.
const _: () = assert!(size_of::<Record>() == 232);

/// Time, owner and kind of the event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Occasion {
    /// Time.
    pub t: Time,
    /// Connection.
    pub flow: FlowId,
    /// Whether the record was taken at the connection's responder (its sending half), not at its initiator.
    pub responder: bool,
    /// Kind.
    pub kind: Event,
    /// Congestion state after the event.
    pub ca_state: CaState,
    /// ACK number, or first offset sent.
    pub seq: u64,
    /// Bytes sent (transmissions), or bytes newly acknowledged cumulatively (ACKs).
    pub len: u32,
    /// Ordinal of the data segment sent; for ACKs, of the segment at snd_una.
    pub seg_no: u32,
    /// Transmission number of the segment sent (0 the original).
    pub rexmit: u8,
}

/// News of an ACK.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckNews {
    /// ACKs received so far, including this one.
    pub ack_no: u32,
    /// SACK blocks of the ACK.
    pub sack_blocks: u8,
    /// Edges of these blocks as offsets, (0, 0) where absent.
    pub sack: [(u64, u64); 3],
    /// The ACK carries a DSACK.
    pub dsack: bool,
    /// Duplicate ACK in the sense of RFC 6675 §2.
    pub is_dup: bool,
    /// Segments newly SACKed.
    pub newly_sacked: u32,
    /// DeliveredData, segments.
    pub delivered: u32,
    /// Segments newly marked lost.
    pub newly_lost: u32,
    /// Retransmissions found lost again on this ACK.
    pub lost_retransmits: u32,
    /// SafeACK (RFC 9937 §6.2).
    pub safe_ack: bool,
}

/// Window, and what is outstanding.
#[derive(Clone, Copy, Debug, Default)]
pub struct Windows {
    /// cwnd before this event, segments.
    pub cwnd_before: u32,
    /// cwnd after it.
    pub cwnd: u32,
    /// The real ssthresh (u32::MAX = not set yet), segments.
    pub ssthresh: u32,
    /// pipe before the ACK was applied, segments.
    pub pipe_before: u32,
    /// pipe after the ACK, before sending.
    pub pipe: u32,
    /// snd_nxt - snd_una, segments.
    pub flight_size: u32,
    /// Segments marked SACKed, lost, retransmitted.
    pub sacked_out: u32,
    /// Segments believed lost.
    pub lost_out: u32,
    /// Retransmissions in flight.
    pub retrans_out: u32,
    /// Peer's receive window, bytes.
    pub rwnd: u32,
}

/// Repair of losses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Repair {
    /// RecoveryPoint (high_seq).
    pub recovery_point: u64,
    /// Current reordering degree (dupthresh).
    pub reordering: u32,
    /// The recovery rule's variables.
    pub rule: RuleVars,
}

/// Timers, and the times that they follow.
#[derive(Clone, Copy, Debug)]
pub struct Timers {
    /// Retransmission timeout now in force.
    pub rto: Span,
    /// RTO back-off exponent.
    pub backoff: u8,
    /// Smoothed RTT.
    pub srtt: Span,
    /// RTT variation as the RTO uses it (4 x for RFC 6298's 4·RTTVAR).
    pub rttvar: Span,
    /// Minimum RTT seen.
    pub min_rtt: Span,
    /// RACK's reordering window.
    pub reo_wnd: Span,
    /// Next deadline of the sender's timer.
    pub deadline: Time,
}

impl Default for Timers {
    /// No timer runs.
    fn default() -> Timers {
        let none = Span::ZERO;
        Timers {
            rto: none,
            backoff: 0,
            srtt: none,
            rttvar: none,
            min_rtt: none,
            reo_wnd: none,
            deadline: Time::NEVER,
        }
    }
}

impl Sender {
    /// The line of an event, as the sender is now.
    pub(super) fn record_of(&self, now: Time, kind: Event) -> Record {
        let finite = |s: Span| if s == Span::MAX { Span::ZERO } else { s };
        let (flow, responder) = self.trace.whose();
        Record {
            event: Occasion {
                t: now,
                flow,
                responder,
                kind,
                ca_state: self.ca_state,
                seq: self.snd_una,
                ..Occasion::default()
            },
            ack: AckNews {
                ack_no: self.stats.acks_received as u32,
                lost_retransmits: self.stats.lost_retransmits,
                ..AckNews::default()
            },
            window: Windows {
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
            },
            repair: Repair {
                recovery_point: self.high_seq,
                reordering: self.dupthresh.degree(),
                rule: self.rule.vars(),
            },
            timers: Timers {
                rto: self.rtt.rto(),
                backoff: self.rtt.backoff(),
                srtt: self.rtt.srtt(),
                rttvar: self.rtt.rttvar(),
                min_rtt: finite(self.rtt.min_rtt()),
                reo_wnd: match self.config.detection {
                    Detection::Rack => finite(self.reo_wnd()),
                    Detection::Fack | Detection::Dupthresh => Span::ZERO,
                },
                deadline: self.timer.deadline(),
            },
        }
    }

    /// Return the line of an ACK; `prior`: the sender before it, `w`: its effect.
    pub(super) fn record_of_ack(&self, now: Time, seg: &Segment, prior: Prior, w: &AckWork) -> Record {
        let mut r = self.record_of(now, Event::Ack);
        r.event.seq = seg.ack;
        r.event.len = (self.snd_una - prior.snd_una).min(u32::MAX as u64) as u32;
        r.event.seg_no = self.board.first as u32 + 1;
        r.ack.sack_blocks = seg.sack.len() as u8;
        for (slot, b) in r.ack.sack.iter_mut().zip(seg.sack.as_slice()) {
            *slot = ((seg.ack as i64 + b.start as i64) as u64, (seg.ack as i64 + b.end as i64) as u64);
        }
        r.ack.dsack = w.dsack;
        r.ack.is_dup = w.is_dup() || w.data_sacked; // RFC 6675 §2
        r.ack.newly_sacked = w.newly_sacked;
        r.ack.delivered = (self.delivered - prior.delivered) as u32;
        r.ack.newly_lost = (self.lost - prior.lost) as u32;
        r.ack.safe_ack = w.una_advanced && r.ack.newly_lost == 0;
        r.window.cwnd_before = prior.cwnd;
        r.window.pipe_before = prior.pipe;
        r
    }
}
