//! Fetch: the client at the receiving end connects, sends a request, reads the response and closes. After a pause, it
//! starts the next fetch. The server closes only after the client's FIN.

use std::mem::size_of;

use ackclock_core::schema::{Described, Value, COUNT, DURATION, DURATION_OR_ZERO, FLAG, SIZE};
use ackclock_core::{table, Rate, Span, Time};

use super::throttled::interval;
use super::{Asks, Context, Driver, Make, Params, Place, Site, Workload};
use crate::error::Error;
use crate::transport::TransportConfig;
use crate::workload::flow::{FetchCounts, FetchRow};
use crate::world::{ConnId, RECEIVER, SENDER};

/// Pacing of a response written in chunks by the server.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Mean rate of the writes after the first.
    pub rate: Rate,
    /// Bytes per write.
    pub chunk: u64,
    /// Bytes of the first write.
    pub initial: u64,
}

table! {
    /// A client at the receiving end fetches responses, each over a new connection: connect, request, response, close.
    pub struct FetchParams "fetch" {
        /// Size of the response.
        bytes: u64 = SIZE;
        /// Size of the request.
        request: u64 = SIZE, 100;
        /// Number of successive fetches.
        count: u32 = COUNT, 1;
        /// Time from the last byte of one response to the start of the next fetch.
        pause: Span = DURATION_OR_ZERO, Span::ZERO;
        /// Time after which the client abandons a fetch. Default: never.
        timeout: Option<Span> = DURATION;
        /// Make the losses of a fetch depend only on the seed and the number of the fetch. Compared scenarios then have
        /// the same losses, fetch by fetch.
        common_random_numbers: bool = FLAG, false;
    }
}

impl Params for FetchParams {
    fn over_quic() -> bool {
        true
    }

    fn asks(&self, _duration: Span) -> Asks {
        match Asks::bytes(self.bytes) {
            Asks::Packets(each) => Asks::Packets(self.count as f64 * each),
            other => other,
        }
    }
    fn rows(&self, _duration: Span) -> f64 {
        self.count as f64 * size_of::<FetchRow>() as f64
    }
    fn lay(&self, _: &Place, _: &TransportConfig, site: &mut Site) -> Result<Make, Error> {
        site.layout.losses_restart |= self.common_random_numbers;
        let params = self.clone();
        Ok(Box::new(move |_, _| Driver::Fetch(Box::new(Fetch::new(params.clone(), None)))))
    }
}

impl FetchParams {
    /// Return the parameters of a single fetch of this many bytes.
    pub fn of_bytes(bytes: u64) -> FetchParams {
        let only = Value::table([("bytes", Value::Whole(bytes))]);
        FetchParams::read(&only).expect("invariant: the other keys have defaults")
    }
}

impl Pace {
    /// Interval between writes.
    pub fn interval(&self) -> Span {
        interval(self.chunk, self.rate)
    }
}

/// State of a sequence of fetches.
#[derive(Clone)]
pub struct Fetch {
    params: FetchParams,
    /// Pacing of the responses; `None` if each response is written at once.
    pace: Option<Pace>,
    started: u32,
    open: Vec<Exchange>,
    waiting: bool,
}

/// A fetch with an open connection.
#[derive(Clone)]
struct Exchange {
    conn: ConnId,
    /// Index of the fetch's journal row.
    row: usize,
    /// Bytes of the response written by the server; `None` until the request has arrived.
    written: Option<u64>,
    requested: bool,
    /// Client retransmissions, read before the client's FIN is sent, because the FIN may be retransmitted; `None`
    /// until the response is complete.
    request_retransmissions: Option<u64>,
    counted: bool,
}

impl Fetch {
    /// Return a sequence of fetches that has not started.
    pub fn new(params: FetchParams, pace: Option<Pace>) -> Fetch {
        Fetch { params, pace, started: 0, open: Vec::new(), waiting: false }
    }

    fn begin(&mut self, cx: &mut Context) {
        let idx = self.started;
        self.started += 1;
        self.waiting = false;
        if self.params.common_random_numbers {
            cx.world.restart_losses(cx.flow.id, idx);
        }
        let row = cx.journal.fetches.len();
        cx.journal.fetches.push(FetchRow {
            flow: cx.flow.id,
            idx,
            start: cx.now(),
            connected: Time::NEVER,
            first_byte: Time::NEVER,
            completed: Time::NEVER,
            bytes: self.params.bytes,
            counts: FetchCounts::default(),
        });
        let conn = cx.connect(RECEIVER, idx);
        self.open.push(Exchange {
            conn,
            row,
            written: None,
            requested: false,
            request_retransmissions: None,
            counted: false,
        });
        if let Some(timeout) = self.params.timeout {
            cx.wake(cx.now() + timeout);
        }
    }

    /// Schedule the next fetch after one has ended, successfully or not.
    fn plan(&mut self, cx: &mut Context, completed: bool) {
        if self.started < self.params.count {
            cx.wake(cx.now() + self.params.pause);
        } else {
            cx.flow.wake_at = Time::NEVER;
            if completed {
                cx.flow.completed = cx.now();
                cx.flow.stop = cx.flow.stop.min(cx.now());
            }
        }
    }

    /// Index of the current fetch: the last one started, if its response is incomplete.
    fn current(&self, cx: &Context) -> Option<usize> {
        let last = self.open.len().checked_sub(1)?;
        let row = &cx.journal.fetches[self.open[last].row];
        (row.idx + 1 == self.started && row.completed == Time::NEVER).then_some(last)
    }

    /// Record the counters if this has not been done yet, and remove the connection.
    fn drop_connection(&mut self, cx: &mut Context, at: usize) {
        let exchange = self.open.remove(at);
        if !exchange.counted {
            cx.journal.fetches[exchange.row].counts =
                FetchCounts::read(cx.world, exchange.conn, exchange.request_retransmissions);
        }
        cx.retire(exchange.conn);
        if self.waiting && self.open.is_empty() {
            self.begin(cx);
        }
    }

    fn abandon(&mut self, cx: &mut Context, at: usize) {
        let completed = cx.journal.fetches[self.open[at].row].completed != Time::NEVER;
        let current = self.current(cx) == Some(at);
        self.drop_connection(cx, at);
        cx.flow.failed |= !completed;
        if current {
            self.plan(cx, false);
        }
    }

    /// Write the response, or its next chunk.
    fn respond(&mut self, cx: &mut Context, at: usize) {
        let Exchange { conn, written, .. } = self.open[at];
        let done = written.unwrap_or(0);
        let left = self.params.bytes - done;
        let bytes = match self.pace {
            None => left,
            Some(pace) if written.is_none() => pace.initial.clamp(1, left),
            Some(pace) => pace.chunk.min(left),
        };
        self.open[at].written = Some(done + bytes);
        cx.world.act(conn, SENDER, |tcp, now| tcp.write(now, bytes));
        if let (Some(pace), true) = (self.pace, bytes < left) {
            cx.wake(cx.now() + pace.interval());
        }
    }
}

impl Workload for Fetch {
    fn start(&mut self, cx: &mut Context) {
        self.begin(cx);
    }

    fn wake(&mut self, cx: &mut Context) {
        match self.current(cx) {
            Some(at) if self.pace.is_some() => self.respond(cx, at),
            Some(at) => self.abandon(cx, at), // timed out
            None if cx.now() >= cx.flow.stop => {}
            None if self.params.common_random_numbers && !self.open.is_empty() => self.waiting = true,
            None => self.begin(cx),
        }
    }

    fn progress(&mut self, cx: &mut Context, conn: ConnId, host: usize) {
        let Some(at) = self.open.iter().position(|e| e.conn == conn) else { return };
        let now = cx.now();
        if cx.world.transport(conn, host).has_failed() {
            return self.abandon(cx, at);
        }
        let exchange = &mut self.open[at];
        let row = &mut cx.journal.fetches[exchange.row];
        if host == RECEIVER {
            let client = cx.world.transport(conn, RECEIVER);
            let received = client.received();
            if received > 0 && row.first_byte == Time::NEVER {
                row.first_byte = now;
            }
            if !exchange.requested && client.is_established() {
                exchange.requested = true;
                row.connected = now;
                let bytes = self.params.request;
                cx.note_established(conn, RECEIVER);
                cx.world.act(conn, RECEIVER, |tcp, now| tcp.write(now, bytes));
            } else if received >= self.params.bytes && row.completed == Time::NEVER {
                row.completed = now;
                exchange.request_retransmissions = Some(client.sent().1);
                let last = row.idx + 1 == self.started;
                cx.world.act(conn, RECEIVER, |tcp, now| tcp.close(now));
                if last {
                    self.plan(cx, true);
                }
            }
        } else {
            let server = cx.world.transport(conn, SENDER);
            if server.peer_closed() && !exchange.counted {
                exchange.counted = true;
                row.counts = FetchCounts::read(cx.world, conn, exchange.request_retransmissions);
                cx.world.act(conn, SENDER, |tcp, now| tcp.close(now));
            } else if exchange.written.is_none() && server.received() >= self.params.request {
                self.respond(cx, at);
            }
        }
        if cx.world.transport(conn, SENDER).is_done() && cx.world.transport(conn, RECEIVER).is_done() {
            self.drop_connection(cx, at);
        }
    }

    fn finish(&mut self, cx: &mut Context) {
        for exchange in self.open.iter().filter(|e| !e.counted) {
            cx.journal.fetches[exchange.row].counts =
                FetchCounts::read(cx.world, exchange.conn, exchange.request_retransmissions);
        }
    }
}
