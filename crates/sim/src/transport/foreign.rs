//! What a stack that others have written tells, in the terms of our tables: bytes in units of full datagrams.

use ackclock_core::foreign::{Row, Sample};
use ackclock_core::trace::{CaState, Event, Record, RuleVars};
use ackclock_core::{FlowId, Span, Time};

/// So many bytes in full datagrams.
pub fn packets(sample: &Sample, bytes: u64) -> u32 {
    u32::try_from(bytes / u64::from(sample.mtu.max(1))).unwrap_or(u32::MAX)
}

/// A row of the trace. What the stack does not tell is zero; `seq` counts datagrams.
pub fn record(flow: FlowId, responder: bool, row: &Row) -> Record {
    let of = |bytes| packets(&row.sample, bytes);
    Record {
        t: row.t,
        flow,
        responder,
        event: if row.is_sent { Event::Send } else { Event::Ack },
        ack_no: row.acks as u32,
        seq: row.number,
        len: row.len,
        seg_no: row.number as u32,
        rexmit: 0,
        sack_blocks: 0,
        sack: [(0, 0); 3],
        dsack: false,
        is_dup: false,
        newly_sacked: 0,
        delivered: 0,
        newly_lost: row.lost as u32,
        lost_retransmits: 0,
        safe_ack: false,
        cwnd_before: of(row.window_before),
        cwnd: of(row.sample.window),
        ssthresh: row.sample.ssthresh.map_or(u32::MAX, of),
        pipe_before: 0,
        pipe: of(row.sample.in_flight),
        flight_size: of(row.sample.in_flight),
        sacked_out: 0,
        lost_out: 0,
        retrans_out: 0,
        rwnd: 0,
        ca_state: CaState::Open,
        recovery_point: 0,
        reordering: 0,
        rule: RuleVars::default(),
        rto: Span::ZERO,
        backoff: 0,
        srtt: row.sample.srtt,
        rttvar: Span::ZERO,
        min_rtt: row.min_rtt,
        reo_wnd: Span::ZERO,
        deadline: Time::NEVER,
    }
}
