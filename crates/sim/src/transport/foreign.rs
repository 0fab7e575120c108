//! Reports from external stacks, converted to the units of our tables: bytes become full datagrams.

use ackclock_core::foreign::{Row, Sample};
use ackclock_core::trace::Event;
use ackclock_core::FlowId;
use ackclock_tcp::{AckNews, Occasion, Record, Timers, Windows};

/// Convert bytes to full datagrams.
pub fn packets(sample: &Sample, bytes: u64) -> u32 {
    u32::try_from(bytes / u64::from(sample.mtu.max(1))).unwrap_or(u32::MAX)
}

/// Convert a row of the trace. Values that the stack does not report are zero; `seq` counts datagrams.
pub fn record(flow: FlowId, responder: bool, row: &Row) -> Record {
    let of = |bytes| packets(&row.sample, bytes);
    Record {
        event: Occasion {
            t: row.t,
            flow,
            responder,
            kind: if row.is_sent { Event::Send } else { Event::Ack },
            seq: row.number,
            len: row.len,
            seg_no: row.number as u32,
            ..Occasion::default()
        },
        ack: AckNews { ack_no: row.acks as u32, newly_lost: row.lost as u32, ..AckNews::default() },
        window: Windows {
            cwnd_before: of(row.window_before),
            cwnd: of(row.sample.window),
            ssthresh: row.sample.ssthresh.map_or(u32::MAX, of),
            pipe: of(row.sample.in_flight),
            flight_size: of(row.sample.in_flight),
            ..Windows::default()
        },
        timers: Timers { srtt: row.sample.srtt, min_rtt: row.min_rtt, ..Timers::default() },
        ..Record::default()
    }
}
