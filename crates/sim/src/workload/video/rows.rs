//! The table of chunks.

use ackclock_core::{FlowId, Span, Time};

use crate::table::Table;

/// A chunk of a player.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "columns of table `chunks`, by name")]
pub struct ChunkRow {
    pub flow: FlowId,
    pub idx: u32,
    pub request: Time,
    pub first_byte: Time,
    pub finished: Time,
    /// Counted from 0.
    pub level: u32,
    pub bitrate: u64,
    pub bytes: u64,
    /// Throughput that the player expected when it chose; `None` for the first chunk.
    pub estimate: Option<f64>,
    /// With the chunk in it; `None` if it never came.
    pub buffer: Option<Span>,
    /// For which the picture stood still while this chunk was waited for.
    pub stalled: Span,
    /// Playback had begun by the time that the chunk was there.
    pub playing: bool,
}

/// A row for each chunk that was asked for, by flow.
pub fn chunks(chunks: &mut [ChunkRow]) -> Table {
    chunks.sort_by_key(|row| (row.flow, row.idx));
    let rows = || chunks.iter();
    Table::new("chunks")
        .u4("flow", rows().map(|r| r.flow))
        .u4("idx", rows().map(|r| r.idx))
        .time("request_s", rows().map(|r| r.request))
        .time("first_byte_s", rows().map(|r| r.first_byte))
        .time("finish_s", rows().map(|r| r.finished))
        .u4("level", rows().map(|r| r.level))
        .i8("bitrate_bps", rows().map(|r| r.bitrate))
        .i8("bytes", rows().map(|r| r.bytes))
        .f8("estimate_bps", rows().map(|r| r.estimate.unwrap_or(f64::NAN)))
        .f8("buffer_s", rows().map(|r| r.buffer.map_or(f64::NAN, Span::as_secs)))
        .span("stall_s", rows().map(|r| r.stalled))
        .flag("playing", rows().map(|r| r.playing))
}
