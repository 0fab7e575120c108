//! One record of the sender's trace, in groups of fields, and the code that fills it in. Each trace
//! column is a field here and a line of the table (`acks` in `ackclock_sim`'s `report/output.rs`).
//!
//! Fields are those that users of `tcp_probe` and its successors asked for: values before *and* after the
//! ACK, the real ssthresh, the congestion state, the recovery rule's own variables. Units are in the names;
//! "segments" are SMSS-sized. The sender writes records and never reads them, so tracing cannot change a run.

use ackclock_cc::RecoveryRule;
use ackclock_core::trace::{CaState, Event, RuleVars};
use ackclock_core::{FlowId, Segment, Span, Time};

use super::{AckWork, Prior, Sender};
use crate::config::Detection;

/// One record of the sender's trace, taken on each ACK, transmission and timer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record {
    /// Time, connection and kind of the event.
    pub event: Occasion,
    /// Contents of the ACK; defaults for other events.
    pub ack: AckNews,
    /// Window and outstanding segments.
    pub window: Windows,
    /// Loss repair.
    pub repair: Repair,
    /// Timers, and the RTT variables they depend on.
    pub timers: Timers,
}

// The estimate of a run's memory includes this size.
const _: () = assert!(size_of::<Record>() == 232);

/// Time, owner and kind of the event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Occasion {
    /// Time of the event.
    pub t: Time,
    /// Flow of the connection.
    pub flow: FlowId,
    /// Whether the record was taken at the responder of the connection, not at its initiator.
    pub responder: bool,
    /// Event kind.
    pub kind: Event,
    /// Congestion state after the event.
    pub ca_state: CaState,
    /// ACK number, or first offset sent.
    pub seq: u64,
    /// Bytes sent (transmissions), or newly acknowledged by the cumulative ACK (ACKs).
    pub len: u32,
    /// Ordinal of the data segment sent; for ACKs, of the segment at snd_una.
    pub seg_no: u32,
    /// Transmission number of the segment sent (0 for the original).
    pub rexmit: u8,
}

/// Contents of an ACK.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckNews {
    /// ACKs received so far, including this one.
    pub ack_no: u32,
    /// SACK blocks of the ACK.
    pub sack_blocks: u8,
    /// Edges of the SACK blocks as offsets; (0, 0) if absent.
    pub sack: [(u64, u64); 3],
    /// The ACK carries a DSACK.
    pub dsack: bool,
    /// The ACK is a duplicate in the sense of RFC 6675 §2.
    pub is_dup: bool,
    /// Segments newly SACKed.
    pub newly_sacked: u32,
    /// DeliveredData: segments newly delivered.
    pub delivered: u32,
    /// Segments newly marked lost.
    pub newly_lost: u32,
    /// Retransmissions found lost on this ACK.
    pub lost_retransmits: u32,
    /// SafeACK (RFC 9937 §6.2).
    pub safe_ack: bool,
}

/// Window and outstanding segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Windows {
    /// cwnd before this event, segments.
    pub cwnd_before: u32,
    /// cwnd after this event, segments.
    pub cwnd: u32,
    /// ssthresh, segments; `u32::MAX`: not set yet.
    pub ssthresh: u32,
    /// pipe before the ACK was applied, segments.
    pub pipe_before: u32,
    /// pipe after the ACK was applied and before anything was sent, segments.
    pub pipe: u32,
    /// snd_nxt - snd_una, segments.
    pub flight_size: u32,
    /// Segments marked SACKed.
    pub sacked_out: u32,
    /// Segments believed lost.
    pub lost_out: u32,
    /// Retransmissions in flight.
    pub retrans_out: u32,
    /// Peer's receive window, bytes.
    pub rwnd: u32,
}

/// Loss repair.
#[derive(Clone, Copy, Debug, Default)]
pub struct Repair {
    /// RecoveryPoint: offset at which the episode ends (high_seq).
    pub recovery_point: u64,
    /// Current reordering degree (dupthresh).
    pub reordering: u32,
    /// Variables of the recovery rule.
    pub rule: RuleVars,
}

/// Timers, and the RTT variables they depend on.
#[derive(Clone, Copy, Debug)]
pub struct Timers {
    /// Current retransmission timeout.
    pub rto: Span,
    /// Exponent of the RTO's backoff.
    pub backoff: u8,
    /// Smoothed RTT.
    pub srtt: Span,
    /// Variation term added to srtt by the RTO (4·RTTVAR with RFC 6298).
    pub rttvar: Span,
    /// Minimum RTT so far.
    pub min_rtt: Span,
    /// RACK's reordering window.
    pub reo_wnd: Span,
    /// Next expiry of the sender's timer.
    pub deadline: Time,
}

impl Default for Timers {
    /// Return the values for a timer that is not running.
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
    /// Return the record of an event in the sender's current state.
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
                reo_wnd: match self.config.loss.detection {
                    Detection::Rack => finite(self.reo_wnd()),
                    Detection::Fack | Detection::Dupthresh => Span::ZERO,
                },
                deadline: self.timer.deadline(),
            },
        }
    }

    /// Return the record of an ACK. `prior`: counters before it; `w`: its effects.
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
