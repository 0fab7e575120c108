//! Table of the chunks of video players.

use ackclock_core::{FlowId, Span, Time};

use crate::tables::columns::columns;

/// Chunk row.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "columns of table `chunks`, by name")]
pub struct ChunkRow {
    pub flow: FlowId,
    pub idx: u32,
    pub request: Time,
    pub first_byte: Time,
    pub finished: Time,
    /// Index in the bitrate ladder, from 0.
    pub level: u32,
    pub bitrate: u64,
    pub bytes: u64,
    /// Throughput that the player expected when it chose the bitrate; `None` for the first chunk.
    pub estimate: Option<f64>,
    /// Playing time in the buffer including this chunk; `None` if the chunk never arrived.
    pub buffer: Option<Span>,
    /// Time for which playback was stalled while the player waited for this chunk.
    pub stalled: Span,
    /// Whether playback had started when the chunk arrived, or when it was requested if it never arrived.
    pub playing: bool,
}

columns! {
    /// One row per requested chunk, ordered by flow.
    pub fn chunks(chunks: &mut [ChunkRow]) as CHUNKS "chunks"
    "One row per chunk that a video player requested; with the workload `video`."
    {
        chunks.sort_by_key(|row| (row.flow, row.idx));
        let rows = || chunks.iter();
    }
    u4 flow = rows().map(|r| r.flow), "Number of the flow.";
    u4 idx = rows().map(|r| r.idx), "Number of the chunk, from 0.";
    time request_s ["s"] = rows().map(|r| r.request), "Time when the player requested the chunk.";
    time first_byte_s ["s"] = rows().map(|r| r.first_byte), "Time when the first byte arrived.", or "none arrived";
    time finish_s ["s"] = rows().map(|r| r.finished), "Time when the last byte arrived.", or "it did not arrive";
    u4 level = rows().map(|r| r.level), "Index of the bitrate on the ladder; 0 is the lowest.";
    i8 bitrate_bps ["bit/s"] = rows().map(|r| r.bitrate), "Bitrate of the chunk.";
    i8 bytes ["bytes"] = rows().map(|r| r.bytes), "Size of the chunk.";
    f8 estimate_bps ["bit/s"] = rows().map(|r| r.estimate.unwrap_or(f64::NAN)),
        "Throughput that the player expected when it chose the bitrate.", or "the player had no estimate yet";
    f8 buffer_s ["s"] = rows().map(|r| r.buffer.map_or(f64::NAN, Span::as_secs)),
        "Playing time in the buffer when the chunk arrived, including the chunk.", or "it did not arrive";
    span stall_s ["s"] = rows().map(|r| r.stalled), "Time that playback stalled while the player waited for the chunk.";
    flag playing = rows().map(|r| r.playing), "Whether playback had begun when the chunk arrived.";
}
