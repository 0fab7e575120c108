//! Transactions: clients arrive at the receiving end. Each opens one or several connections, sends a request on each,
//! reads the response, possibly sends more requests after a pause, and leaves. Connections exist only while they are
//! used.
//!
//! The values drawn for the k-th transaction (initial window, sizes, think times) depend only on the seed, the flow
//! and k. Scenarios that differ in stack or network thus see the same clients (common random numbers).

mod carrier;
mod plan;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Debug;
use std::rc::Rc;

use ackclock_core::rng::Family;
use ackclock_core::{Span, Stream, Time};

use super::arrivals::Arrivals;
use super::{Context, Workload};
use crate::tables::tally::{Counts, TransactionRow};
use crate::world::{ConnId, RECEIVER, SENDER};
pub use carrier::{Carrier, End};
pub use plan::{CloseFirst, InitialWindow, MixBy, Offered, Plan, Start, TransactionsParams};

/// The transactions of one client-server pair.
#[derive(Clone)]
pub struct Transactions<Conn> {
    plan: Rc<Plan>,
    arrivals: Arrivals,
    draws: Family,
    next_arrival: Time,
    batches: u32,
    started: u32,
    entries: Vec<Entry<Conn>>,
    free: Vec<u32>,
    clients: Vec<Client>,
    absent: Vec<u32>,
    /// Time at which the last response was complete.
    answered: Time,
    /// Ends of think times, each with the connection's entry and number.
    thinking: BinaryHeap<Reverse<(Time, u32, u32)>>,
}

/// An open connection, or an unused entry.
#[derive(Clone)]
struct Entry<Conn> {
    conn: Conn,
    start: usize,
    client: u32,
    /// Random stream for response sizes and think times.
    draws: Stream,
    row: TransactionRow,
    /// Counters at the previous transaction's end.
    counted: Counts,
    /// Total request bytes and response bytes up to the end of the current transaction.
    asked: u64,
    expected: u64,
    /// Requests that have not been sent yet.
    left: u32,
    asking: bool,
    answered: bool,
    /// Whether the server has closed.
    ended: bool,
    /// Whether the current transaction has not been recorded yet.
    pending: bool,
    in_use: bool,
}

/// Client whose connections cooperate: they share its responses, or send their requests together.
#[derive(Clone)]
struct Client {
    sizes: Stream,
    objects: u32,
    connections: u32,
    /// Connections that have received their response and are waiting for the others.
    ready: Vec<u32>,
}

impl<Conn: Copy + PartialEq + Debug> Transactions<Conn> {
    /// Return a workload without clients.
    pub fn new(plan: Rc<Plan>, arrivals: Arrivals, draws: Family) -> Transactions<Conn> {
        Transactions {
            plan,
            arrivals,
            draws,
            next_arrival: Time::ZERO,
            batches: 0,
            started: 0,
            entries: Vec::new(),
            free: Vec::new(),
            clients: Vec::new(),
            absent: Vec::new(),
            answered: Time::NEVER,
            thinking: BinaryHeap::new(),
        }
    }

    /// Open the connections of an arriving client.
    fn arrive<C: Carrier<Conn = Conn>>(&mut self, cx: &mut C) {
        let plan = self.plan.clone();
        let batch = self.batches;
        self.batches += 1;
        let mut own = self.draws.member(2 * batch as u64 + 1);
        let shared = (plan.params.mix_by == MixBy::Batch).then(|| choose(&plan.mix, &mut own));
        let connections = plan.params.batch.min(plan.params.objects.unwrap_or(u32::MAX));
        let client = match plan.knows_client() {
            true => {
                let objects = plan.params.objects.unwrap_or(0);
                self.seat(Client { sizes: own, objects, connections, ready: Vec::new() })
            }
            false => 0,
        };
        for i in 0..connections {
            if plan.left.get() == 0 {
                self.leave(client);
                continue;
            }
            let mut draws = self.draws.member(2 * (batch as u64 * plan.params.batch as u64 + i as u64));
            let start = shared.unwrap_or_else(|| choose(&plan.mix, &mut draws));
            if plan.open.get() >= plan.max_open || !cx.has_room() {
                let now = cx.now();
                cx.log().refuse(plan.mix[start].tally, now);
                self.leave(client);
                continue;
            }
            self.open(cx, batch, client, start, draws);
        }
    }

    fn open<C: Carrier<Conn = Conn>>(
        &mut self,
        cx: &mut C,
        batch: u32,
        client: u32,
        start: usize,
        draws: Stream,
    ) {
        let plan = self.plan.clone();
        plan.open.set(plan.open.get() + 1);
        plan.left.set(plan.left.get() - 1);
        let conn = cx.connect(&plan.mix[start], self.started);
        let entry = Entry {
            conn,
            start,
            client,
            draws,
            row: TransactionRow {
                flow: cx.flow(),
                idx: 0,
                batch,
                request: 0,
                iw: plan.mix[start].config.sending.iw,
                arrival: cx.now(),
                connected: Time::NEVER,
                first_byte: Time::NEVER,
                completed: Time::NEVER,
                bytes: 0,
                counts: Counts::default(),
                failed: false,
            },
            counted: Counts::default(),
            asked: 0,
            expected: 0,
            left: plan.params.requests,
            asking: false,
            answered: false,
            ended: false,
            pending: false,
            in_use: true,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.entries[at as usize] = entry;
                at
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        cx.set_place(conn, at);
        self.begin(cx, at as usize);
    }

    /// Begin the next transaction on a connection and draw its response size.
    fn begin<C: Carrier<Conn = Conn>>(&mut self, cx: &mut C, at: usize) {
        let plan = &self.plan;
        let entry = &mut self.entries[at];
        let sizes = match plan.params.objects {
            None => &mut entry.draws,
            Some(_) => {
                let client = &mut self.clients[entry.client as usize];
                client.objects -= 1;
                &mut client.sizes
            }
        };
        let bytes = (plan.params.bytes.draw(sizes) as u64).max(1);
        entry.left = entry.left.saturating_sub(1);
        entry.row = TransactionRow {
            idx: self.started,
            arrival: cx.now(),
            first_byte: Time::NEVER,
            completed: Time::NEVER,
            bytes,
            ..entry.row
        };
        self.started += 1;
        entry.asked += plan.params.request;
        entry.expected += bytes;
        entry.asking = false;
        entry.answered = false;
        entry.pending = true;
        let (tally, now) = (plan.mix[entry.start].tally, entry.row.arrival);
        cx.log().begin(tally, now, plan.on_the_wire(bytes), plan.open.get());
    }

    /// Whether this connection has another transaction after the current one.
    fn goes_on(&self, at: usize) -> bool {
        let entry = &self.entries[at];
        match self.plan.params.objects {
            None => entry.left > 0,
            Some(_) => self.clients[entry.client as usize].objects > 0,
        }
    }

    /// Send the request of the current transaction.
    fn ask<C: Carrier<Conn = Conn>>(&mut self, cx: &mut C, at: usize) {
        let entry = &mut self.entries[at];
        entry.asking = true;
        let (conn, before) = (entry.conn, entry.expected - entry.row.bytes);
        cx.await_bytes(conn, SENDER, entry.asked);
        cx.await_bytes(conn, RECEIVER, before + 1);
        cx.write(conn, RECEIVER, self.plan.params.request);
    }

    /// Complete the current transaction: the client has read the response.
    fn complete<C: Carrier<Conn = Conn>>(&mut self, cx: &mut C, at: usize) {
        self.entries[at].row.completed = cx.now();
        self.answered = cx.now();
        if !self.goes_on(at) {
            if !self.entries[at].ended {
                cx.close(self.entries[at].conn, RECEIVER);
            }
            return;
        }
        self.count(cx, at, false);
        let entry = &mut self.entries[at];
        entry.row.request += 1;
        if !self.plan.params.together {
            return self.go_on(cx, at);
        }
        let client = entry.client;
        self.clients[client as usize].ready.push(at as u32);
        self.release(cx, client);
    }

    /// Resume the connections of a client that sends its requests together, once all of them are ready.
    fn release<C: Carrier<Conn = Conn>>(&mut self, cx: &mut C, client: u32) {
        let client = &mut self.clients[client as usize];
        if client.ready.len() == client.connections as usize {
            for at in std::mem::take(&mut client.ready) {
                self.go_on(cx, at as usize);
            }
        }
    }

    /// Begin the next transaction, possibly after a think time.
    fn go_on<C: Carrier<Conn = Conn>>(&mut self, cx: &mut C, at: usize) {
        let entry = &mut self.entries[at];
        let pause = Span((self.plan.params.think.draw(&mut entry.draws).min(LONGEST_S) * 1e9) as u64);
        if pause > Span::ZERO {
            let (conn, until) = (entry.conn, cx.now() + pause);
            self.thinking.push(Reverse((until, at as u32, C::number(conn))));
            self.schedule(cx);
        } else {
            self.begin(cx, at);
            self.ask(cx, at);
        }
    }

    /// Continue after a think time.
    fn resume<C: Carrier<Conn = Conn>>(&mut self, cx: &mut C, at: usize, conn: u32) {
        let there = self.entries.get(at).is_some_and(|e| e.in_use && C::number(e.conn) == conn);
        if there && self.goes_on(at) {
            self.begin(cx, at);
            self.ask(cx, at);
        } else if there {
            // other connections have taken the remaining responses; the server is waiting for a request
            cx.close(self.entries[at].conn, RECEIVER);
        }
    }

    /// Record the current transaction, if this has not been done yet.
    fn count<C: Carrier<Conn = Conn>>(&mut self, cx: &mut C, at: usize, failed: bool) {
        let entry = &mut self.entries[at];
        if !std::mem::take(&mut entry.pending) {
            return;
        }
        let total = cx.counts(entry.conn);
        entry.row.counts = total.since(&entry.counted);
        entry.row.failed = failed && entry.row.completed == Time::NEVER;
        entry.counted = total;
        cx.log().keep(self.plan.mix[entry.start].tally, &entry.row);
    }

    /// Remove a connection.
    fn retire<C: Carrier<Conn = Conn>>(&mut self, cx: &mut C, at: usize) {
        let entry = &mut self.entries[at];
        entry.in_use = false;
        let (conn, client) = (entry.conn, entry.client);
        cx.retire(conn);
        self.free.push(at as u32);
        self.plan.open.set(self.plan.open.get() - 1);
        self.leave(client);
        if self.plan.params.together {
            self.release(cx, client);
        }
        let over = self.plan.left.get() == 0 || self.next_arrival == Time::NEVER;
        if over && self.free.len() == self.entries.len() && self.answered != Time::NEVER {
            cx.note_completed(self.answered);
        }
    }

    /// Store a client and return its index.
    fn seat(&mut self, client: Client) -> u32 {
        match self.absent.pop() {
            Some(at) => {
                self.clients[at as usize] = client;
                at
            }
            None => {
                self.clients.push(client);
                self.clients.len() as u32 - 1
            }
        }
    }

    /// Record that a client has one connection fewer.
    fn leave(&mut self, client: u32) {
        if self.plan.knows_client() {
            let connections = &mut self.clients[client as usize].connections;
            *connections -= 1;
            if *connections == 0 {
                self.absent.push(client);
            }
        }
    }

    /// Schedule a wake-up for the next arrival or the next end of a think time.
    fn schedule<C: Carrier<Conn = Conn>>(&self, cx: &mut C) {
        let arrival = if self.next_arrival < cx.stop() { self.next_arrival } else { Time::NEVER };
        let resume = self.thinking.peek().map_or(Time::NEVER, |Reverse((until, ..))| *until);
        let next = arrival.min(resume);
        if next != Time::NEVER {
            cx.wake(next);
        }
    }

    /// Start the flow.
    pub fn start<C: Carrier<Conn = Conn>>(&mut self, cx: &mut C) {
        self.next_arrival = self.arrivals.following();
        self.wake(cx);
    }

    /// Process a wake-up.
    pub fn wake<C: Carrier<Conn = Conn>>(&mut self, cx: &mut C) {
        let now = cx.now();
        while let Some(&Reverse((until, at, conn))) = self.thinking.peek() {
            if until > now {
                break;
            }
            self.thinking.pop();
            self.resume(cx, at as usize, conn);
        }
        while self.next_arrival <= now && now < cx.stop() && self.plan.left.get() > 0 {
            self.arrive(cx);
            self.next_arrival = self.arrivals.following();
        }
        if self.plan.left.get() == 0 {
            self.next_arrival = Time::NEVER;
        }
        self.schedule(cx);
    }

    /// Process an event at one end of a connection.
    pub fn progress<C: Carrier<Conn = Conn>>(&mut self, cx: &mut C, conn: Conn, host: usize) {
        let at = cx.place(conn);
        debug_assert!(self.entries[at].in_use && self.entries[at].conn == conn);
        let end = cx.end(conn, host);
        if end.failed {
            self.count(cx, at, true);
            return self.retire(cx, at);
        }
        if host == RECEIVER {
            self.client(cx, at, conn, end);
        } else {
            self.server(cx, at, conn, end);
        }
        if cx.is_over(conn) {
            self.count(cx, at, false);
            self.retire(cx, at);
        }
    }

    /// Record the transactions cut off by the end of the run.
    pub fn finish<C: Carrier<Conn = Conn>>(&mut self, cx: &mut C) {
        for at in 0..self.entries.len() {
            if self.entries[at].in_use {
                self.count(cx, at, false);
            }
        }
    }

    /// Process an event at the client.
    fn client<C: Carrier<Conn = Conn>>(&mut self, cx: &mut C, at: usize, conn: Conn, client: End) {
        let entry = &mut self.entries[at];
        let End { received, established, .. } = client;
        if entry.row.connected == Time::NEVER {
            if established {
                entry.row.connected = cx.now();
                cx.note_established(conn);
                self.ask(cx, at);
            }
            return;
        }
        if !entry.asking {
            return; // thinking, or not connected yet
        }
        let before = entry.expected - entry.row.bytes;
        if entry.row.first_byte == Time::NEVER && received > before {
            entry.row.first_byte = cx.now();
            cx.await_bytes(conn, RECEIVER, entry.expected);
        }
        if received >= entry.expected && entry.row.completed == Time::NEVER {
            self.complete(cx, at);
        }
        if client.peer_closed && !cx.end(conn, RECEIVER).closing {
            cx.close(conn, RECEIVER);
        }
    }

    /// Process an event at the server.
    fn server<C: Carrier<Conn = Conn>>(&mut self, cx: &mut C, at: usize, conn: Conn, server: End) {
        let entry = &self.entries[at];
        if !entry.answered && server.received >= entry.asked {
            let bytes = entry.row.bytes;
            self.entries[at].answered = true;
            cx.await_bytes(conn, SENDER, u64::MAX); // wait for the next request, or for the client's FIN
            cx.write(conn, SENDER, bytes);
            if self.plan.params.close == CloseFirst::Server && !self.goes_on(at) {
                self.entries[at].ended = true;
                // close separately: the data permitted by the window has then already been sent without the FIN
                cx.close(conn, SENDER);
            }
        } else if server.peer_closed && !server.closing {
            cx.close(conn, SENDER);
        }
    }
}

impl Workload for Transactions<ConnId> {
    fn start(&mut self, cx: &mut Context) {
        Transactions::start(self, cx);
    }
    fn wake(&mut self, cx: &mut Context) {
        Transactions::wake(self, cx);
    }
    fn progress(&mut self, cx: &mut Context, conn: ConnId, host: usize) {
        Transactions::progress(self, cx, conn, host);
    }
    fn finish(&mut self, cx: &mut Context) {
        Transactions::finish(self, cx);
    }
}

/// Draw an entry of the mix.
fn choose(mix: &[Start], draws: &mut Stream) -> usize {
    let bits = draws.next_u64();
    mix.iter().position(|start| bits < start.threshold).unwrap_or(mix.len() - 1)
}

/// Maximum think time, s.
const LONGEST_S: f64 = 1e9;
