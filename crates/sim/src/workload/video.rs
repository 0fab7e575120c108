//! Video: a player at the receiving end requests one chunk after another and plays them. It chooses the bitrate of
//! each chunk from the throughput of the previous ones. One connection stays open. The next request is sent when the
//! buffer has drained to a given level, so in steady state downloads alternate with silence.
//!
//! Chunk sizes come from the stream `video.<flow>.sizes`, the schedule from `video.<flow>.schedule`. In all scenarios
//! of a comparison, the k-th chunk of a flow has the same size relative to its bitrate.

pub mod adaptation;
mod params;
pub mod playback;
pub(crate) mod rows;

use std::rc::Rc;

use ackclock_core::{FlowId, Span, Stream, Time};

use super::{Context, Workload};
use crate::world::{ConnId, RECEIVER, SENDER};
use adaptation::{Adaptation, Adapter};
pub use params::VideoParams;
use playback::{Playback, State};
pub use rows::{chunks, ChunkRow};

/// State of a player and its server.
#[derive(Clone)]
pub struct Video {
    params: Rc<VideoParams>,
    adapter: Adapter,
    sizes: Stream,
    playback: Playback,
    conn: Option<ConnId>,
    connected: bool,
    /// Journal row of the chunk in transfer.
    current: Option<usize>,
    next: u32,
    /// Total request bytes and chunk bytes up to the end of the current chunk.
    asked: u64,
    expected: u64,
    answered: bool,
    closed: bool,
    /// Stalled time attributed to earlier chunks.
    stalled_before: Span,
}

impl Video {
    /// Return the player of flow `flow`.
    pub fn new(params: Rc<VideoParams>, flow: FlowId, seed: u64) -> Video {
        let stream = |what: &str| Stream::new(seed, &format!("video.{flow}.{what}"));
        Video {
            adapter: Adapter::new(&params.adaptation, stream("schedule")),
            sizes: stream("sizes"),
            playback: Playback::new(params.first()),
            params,
            conn: None,
            connected: false,
            current: None,
            next: 0,
            asked: 0,
            expected: 0,
            answered: true,
            closed: false,
            stalled_before: Span::ZERO,
        }
    }

    /// Whether chunk `idx` is the last one.
    fn is_last(&self, idx: u32) -> bool {
        self.params.chunks.is_some_and(|chunks| idx + 1 >= chunks)
    }

    /// Draw the size of the next chunk at this bitrate, bytes.
    fn size(&mut self, bitrate: u64) -> u64 {
        let bytes = bitrate as u128 * self.params.chunk.0 as u128 / 8_000_000_000;
        let variation = self.params.size_variation;
        if variation == 0.0 {
            return (bytes as u64).max(1);
        }
        let factor = 1.0 + variation * (2.0 * self.sizes.unit() - 1.0);
        ((bytes as f64 * factor) as u64).max(1)
    }

    /// Request the next chunk.
    fn ask(&mut self, cx: &mut Context) {
        let (Some(conn), true) = (self.conn, cx.now() < cx.flow.stop) else { return };
        let estimate = self.adapter.estimate();
        let level = self.adapter.choose(&self.params.ladder);
        let bitrate = self.params.ladder[level];
        let bytes = self.size(bitrate);
        self.current = Some(cx.journal.chunks.len());
        cx.journal.chunks.push(ChunkRow {
            flow: cx.flow.id,
            idx: self.next,
            request: cx.now(),
            first_byte: Time::NEVER,
            finished: Time::NEVER,
            level: level as u32,
            bitrate,
            bytes,
            estimate,
            buffer: None,
            stalled: Span::ZERO,
            playing: self.playback.state() != State::Buffering,
        });
        self.next += 1;
        self.asked += self.params.request;
        self.expected += bytes;
        self.answered = false;
        cx.wake(cx.flow.stop);
        cx.world.watch(conn, SENDER, true);
        let request = self.params.request;
        cx.world.act(conn, RECEIVER, |end, now| end.write(now, request));
    }

    /// Complete the current chunk, now arrived.
    fn complete(&mut self, cx: &mut Context, row: usize) {
        let now = cx.now();
        self.current = None;
        let row = &mut cx.journal.chunks[row];
        let last = self.is_last(row.idx);
        self.playback.add(now, self.params.chunk, last);
        row.finished = now;
        row.buffer = Some(self.playback.level());
        row.stalled = self.playback.stalled() - self.stalled_before;
        row.playing = self.playback.state() != State::Buffering;
        self.stalled_before = self.playback.stalled();
        let took = now.since(row.request).0.max(1);
        self.adapter.on_chunk(row.bytes as f64 * 8e9 / took as f64);
        if last {
            cx.flow.completed = now;
            cx.flow.stop = cx.flow.stop.min(now);
            cx.flow.wake_at = Time::NEVER;
            return;
        }
        if now >= cx.flow.stop {
            return;
        }
        let chunk = self.params.chunk;
        let goal = self.adapter.goal(self.params.buffer, chunk).min(self.params.most() - chunk);
        let next = self.playback.falls_to(goal);
        if next <= now {
            self.ask(cx);
        } else {
            cx.wake(next.min(cx.flow.stop));
        }
    }

    /// Process an event at the player.
    fn client(&mut self, cx: &mut Context, conn: ConnId) {
        let end = cx.world.transport(conn, RECEIVER);
        if !self.connected {
            if end.is_established() {
                self.connected = true;
                cx.note_established(conn, RECEIVER);
                self.ask(cx);
            }
            return;
        }
        let (received, ended) = (end.received(), end.peer_closed());
        if let Some(row) = self.current {
            let chunk = &mut cx.journal.chunks[row];
            if chunk.first_byte == Time::NEVER && received > self.expected - chunk.bytes {
                chunk.first_byte = cx.world.now();
            }
            if received >= self.expected {
                self.complete(cx, row);
            }
        }
        if ended && !std::mem::replace(&mut self.closed, true) {
            cx.world.act(conn, RECEIVER, |end, now| end.close(now));
        }
    }

    /// Process an event at the server.
    fn server(&mut self, cx: &mut Context, conn: ConnId) {
        let Some(row) = self.current else { return };
        if self.answered || cx.world.transport(conn, SENDER).received() < self.asked {
            return;
        }
        self.answered = true;
        let ChunkRow { idx, bytes, .. } = cx.journal.chunks[row];
        cx.world.act(conn, SENDER, |end, now| end.write(now, bytes));
        if self.is_last(idx) {
            cx.world.act(conn, SENDER, |end, now| end.close(now));
        } else {
            cx.world.watch(conn, SENDER, false); // not watched until the next request
        }
    }
}

impl Workload for Video {
    fn start(&mut self, cx: &mut Context) {
        // with PCC the sending end opens the connection, with TCP the client
        let initiator = if cx.flow.config.is_pcc() { SENDER } else { RECEIVER };
        self.conn = Some(cx.connect(initiator, 0));
        self.playback.advance(cx.now());
        cx.wake(cx.flow.stop);
    }

    fn wake(&mut self, cx: &mut Context) {
        if cx.now() >= cx.flow.stop {
            cx.flow.acked_at_stop = Some(cx.flow.acked(cx.world));
        } else if self.current.is_none() {
            self.playback.advance(cx.now());
            self.ask(cx);
        }
    }

    fn progress(&mut self, cx: &mut Context, conn: ConnId, host: usize) {
        if self.conn != Some(conn) {
            return;
        }
        if host == RECEIVER {
            self.client(cx, conn);
        } else {
            self.server(cx, conn);
        }
        let ends = [SENDER, RECEIVER].map(|host| cx.world.transport(conn, host));
        let failed = ends.iter().any(|end| end.has_failed());
        if failed || ends.iter().all(|end| end.is_done()) {
            self.conn = None;
            cx.flow.wake_at = Time::NEVER;
            cx.retire(conn);
        }
    }

    fn finish(&mut self, cx: &mut Context) {
        if let Some(row) = self.current {
            self.playback.advance(cx.now());
            cx.journal.chunks[row].stalled = self.playback.stalled() - self.stalled_before;
        }
    }
}
