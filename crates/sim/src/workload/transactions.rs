//! Transactions: clients at the receiving end come, each opens one connection or several at once, sends a request on
//! each, reads the response, perhaps thinks and asks again, and leaves. Connections exist while they are used.
//!
//! What the k-th transaction draws (initial window, sizes, thinking times) depends on the seed, the flow and k alone,
//! so that two arms of a comparison that differ in stack or network see the same clients (common random numbers).

mod plan;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use ackclock_core::rng::Family;
use ackclock_core::{Span, Stream, Time};

use super::arrivals::Arrivals;
use super::{Context, Workload};
use crate::spec::CloseFirst;
use crate::tally::{Counts, TransactionRow};
use crate::world::{ConnId, World, RECEIVER, SENDER};
pub use plan::{Offered, Place, Plan, Start};

/// The transactions of one client-server pair.
pub struct Transactions {
    plan: Rc<Plan>,
    arrivals: Arrivals,
    draws: Family,
    next_arrival: Time,
    batches: u32,
    started: u32,
    entries: Vec<Entry>,
    free: Vec<u32>,
    clients: Vec<Client>,
    absent: Vec<u32>,
    /// Ends of thinking: time, connection's entry and its number.
    thinking: BinaryHeap<Reverse<(Time, u32, u32)>>,
}

/// An open connection, or a place for one.
struct Entry {
    conn: ConnId,
    start: usize,
    client: u32,
    /// Sizes of the responses and thinking times.
    draws: Stream,
    row: TransactionRow,
    /// Counted for the requests before this one.
    counted: Counts,
    /// Bytes of request and of response up to the end of this transaction.
    asked: u64,
    expected: u64,
    /// Requests still to come.
    left: u32,
    asking: bool,
    answered: bool,
    /// The server has closed.
    ended: bool,
    /// A transaction is under way, or over and not written down.
    pending: bool,
    in_use: bool,
}

/// A client whose connections know of each other: they share responses out among them, or ask together.
struct Client {
    sizes: Stream,
    objects: u32,
    connections: u32,
    /// Connections that have their response and wait for the others'.
    ready: Vec<u32>,
}

impl Transactions {
    /// Nobody has come yet.
    pub fn new(plan: Rc<Plan>, arrivals: Arrivals, draws: Family) -> Transactions {
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
            thinking: BinaryHeap::new(),
        }
    }

    /// A client comes.
    fn arrive(&mut self, cx: &mut Context) {
        let plan = self.plan.clone();
        let batch = self.batches;
        self.batches += 1;
        let mut own = self.draws.member(2 * batch as u64 + 1);
        let shared = plan.mix_by_batch.then(|| choose(&plan.mix, &mut own));
        let connections = plan.batch.min(plan.objects.unwrap_or(u32::MAX));
        let client = match plan.knows_client() {
            true => {
                let objects = plan.objects.unwrap_or(0);
                self.seat(Client { sizes: own, objects, connections, ready: Vec::new() })
            }
            false => 0,
        };
        for i in 0..connections {
            if plan.left.get() == 0 {
                self.leave(client);
                continue;
            }
            let mut draws = self.draws.member(2 * (batch as u64 * plan.batch as u64 + i as u64));
            let start = shared.unwrap_or_else(|| choose(&plan.mix, &mut draws));
            if plan.open.get() >= plan.max_open || !cx.world.has_room() {
                let now = cx.now();
                cx.journal.transactions.refuse(plan.mix[start].tally, now);
                self.leave(client);
                continue;
            }
            self.open(cx, batch, client, start, draws);
        }
    }

    fn open(&mut self, cx: &mut Context, batch: u32, client: u32, start: usize, draws: Stream) {
        let plan = self.plan.clone();
        plan.open.set(plan.open.get() + 1);
        plan.left.set(plan.left.get() - 1);
        let config = &plan.mix[start].config;
        let conn = cx.connect_with(config, RECEIVER, self.started);
        let entry = Entry {
            conn,
            start,
            client,
            draws,
            row: TransactionRow {
                flow: cx.flow.id,
                idx: 0,
                batch,
                request: 0,
                iw: config.iw,
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
            left: plan.requests,
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
        cx.world.notes(conn).entry = at;
        self.begin(cx, at as usize);
    }

    /// Start the next transaction of a connection: how large will the response be?
    fn begin(&mut self, cx: &mut Context, at: usize) {
        let plan = &self.plan;
        let entry = &mut self.entries[at];
        let sizes = match plan.objects {
            None => &mut entry.draws,
            Some(_) => {
                let client = &mut self.clients[entry.client as usize];
                client.objects -= 1;
                &mut client.sizes
            }
        };
        let bytes = (plan.bytes.draw(sizes) as u64).max(1);
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
        entry.asked += plan.request_bytes;
        entry.expected += bytes;
        entry.asking = false;
        entry.answered = false;
        entry.pending = true;
        let (tally, now) = (plan.mix[entry.start].tally, entry.row.arrival);
        cx.journal.transactions.begin(tally, now, plan.on_the_wire(bytes), plan.open.get());
    }

    /// Whether this connection has another transaction after the present one.
    fn goes_on(&self, at: usize) -> bool {
        let entry = &self.entries[at];
        match self.plan.objects {
            None => entry.left > 0,
            Some(_) => self.clients[entry.client as usize].objects > 0,
        }
    }

    /// The client sends its request.
    fn ask(&mut self, cx: &mut Context, at: usize) {
        let entry = &mut self.entries[at];
        entry.asking = true;
        let bytes = self.plan.request_bytes;
        cx.world.act(entry.conn, RECEIVER, |tcp, now| tcp.write(now, bytes));
    }

    /// The client has read a response.
    fn complete(&mut self, cx: &mut Context, at: usize) {
        self.entries[at].row.completed = cx.now();
        if !self.goes_on(at) {
            if !self.entries[at].ended {
                cx.world.act(self.entries[at].conn, RECEIVER, |tcp, now| tcp.close(now));
            }
            return;
        }
        self.count(cx, at, false);
        let entry = &mut self.entries[at];
        entry.row.request += 1;
        if !self.plan.together {
            return self.go_on(cx, at);
        }
        let client = entry.client;
        self.clients[client as usize].ready.push(at as u32);
        self.release(cx, client);
    }

    /// The connections of a client who asks on all of them together go on when the last one is ready.
    fn release(&mut self, cx: &mut Context, client: u32) {
        let client = &mut self.clients[client as usize];
        if client.ready.len() == client.connections as usize {
            for at in std::mem::take(&mut client.ready) {
                self.go_on(cx, at as usize);
            }
        }
    }

    /// The client asks again, after a pause perhaps.
    fn go_on(&mut self, cx: &mut Context, at: usize) {
        let entry = &mut self.entries[at];
        let pause = Span((self.plan.think_s.draw(&mut entry.draws).min(LONGEST_S) * 1e9) as u64);
        if pause > Span::ZERO {
            let (conn, until) = (entry.conn, cx.now() + pause);
            self.thinking.push(Reverse((until, at as u32, conn.number())));
            self.schedule(cx);
        } else {
            self.begin(cx, at);
            self.ask(cx, at);
        }
    }

    /// The client has thought.
    fn resume(&mut self, cx: &mut Context, at: usize, conn: u32) {
        let there = self.entries.get(at).is_some_and(|e| e.in_use && e.conn.number() == conn);
        if there && self.goes_on(at) {
            self.begin(cx, at);
            self.ask(cx, at);
        } else if there {
            // others took what was left: nothing to ask for, and the server waits
            cx.world.act(self.entries[at].conn, RECEIVER, |tcp, now| tcp.close(now));
        }
    }

    /// Write a transaction down, once.
    fn count(&mut self, cx: &mut Context, at: usize, failed: bool) {
        let entry = &mut self.entries[at];
        if !std::mem::take(&mut entry.pending) {
            return;
        }
        let total = counts(cx.world, entry.conn);
        entry.row.counts = total.since(&entry.counted);
        entry.row.failed = failed && entry.row.completed == Time::NEVER;
        entry.counted = total;
        cx.journal.transactions.keep(self.plan.mix[entry.start].tally, &entry.row);
    }

    /// Take a connection out.
    fn retire(&mut self, cx: &mut Context, at: usize) {
        let entry = &mut self.entries[at];
        entry.in_use = false;
        let (conn, client) = (entry.conn, entry.client);
        cx.retire(conn);
        self.free.push(at as u32);
        self.plan.open.set(self.plan.open.get() - 1);
        self.leave(client);
        if self.plan.together {
            self.release(cx, client);
        }
        let over = self.plan.left.get() == 0 || self.next_arrival == Time::NEVER;
        if over && self.free.len() == self.entries.len() {
            cx.flow.completed = cx.now();
        }
    }

    /// A place for a client.
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

    /// One connection less of a client.
    fn leave(&mut self, client: u32) {
        if self.plan.knows_client() {
            let connections = &mut self.clients[client as usize].connections;
            *connections -= 1;
            if *connections == 0 {
                self.absent.push(client);
            }
        }
    }

    /// Wake up for whatever comes next.
    fn schedule(&self, cx: &mut Context) {
        let arrival = if self.next_arrival < cx.flow.stop { self.next_arrival } else { Time::NEVER };
        let resume = self.thinking.peek().map_or(Time::NEVER, |Reverse((until, ..))| *until);
        let next = arrival.min(resume);
        if next != Time::NEVER && next != cx.flow.wake_at {
            cx.wake(next);
        }
    }
}

impl Workload for Transactions {
    fn start(&mut self, cx: &mut Context) {
        self.next_arrival = self.arrivals.following();
        self.wake(cx);
    }

    fn wake(&mut self, cx: &mut Context) {
        let now = cx.now();
        while let Some(&Reverse((until, at, conn))) = self.thinking.peek() {
            if until > now {
                break;
            }
            self.thinking.pop();
            self.resume(cx, at as usize, conn);
        }
        while self.next_arrival <= now && now < cx.flow.stop && self.plan.left.get() > 0 {
            self.arrive(cx);
            self.next_arrival = self.arrivals.following();
        }
        if self.plan.left.get() == 0 {
            self.next_arrival = Time::NEVER;
        }
        self.schedule(cx);
    }

    fn progress(&mut self, cx: &mut Context, conn: ConnId, host: usize) {
        let at = cx.world.notes(conn).entry as usize;
        debug_assert!(self.entries[at].in_use && self.entries[at].conn == conn);
        if cx.world.tcp(conn, host).has_failed() {
            self.count(cx, at, true);
            return self.retire(cx, at);
        }
        if host == RECEIVER {
            self.client(cx, at, conn);
        } else {
            self.server(cx, at, conn);
        }
        if cx.world.tcp(conn, SENDER).is_done() && cx.world.tcp(conn, RECEIVER).is_done() {
            self.count(cx, at, false);
            self.retire(cx, at);
        }
    }

    fn finish(&mut self, cx: &mut Context) {
        for at in 0..self.entries.len() {
            if self.entries[at].in_use {
                self.count(cx, at, false);
            }
        }
    }
}

impl Transactions {
    /// Something happened at the client.
    fn client(&mut self, cx: &mut Context, at: usize, conn: ConnId) {
        let entry = &mut self.entries[at];
        let tcp = cx.world.tcp(conn, RECEIVER);
        let received = tcp.received();
        if entry.row.connected == Time::NEVER {
            if tcp.is_established() {
                entry.row.connected = cx.world.now();
                cx.note_established(conn, RECEIVER);
                self.ask(cx, at);
            }
            return;
        }
        if !entry.asking {
            return; // thinking, or not connected
        }
        let before = entry.expected - entry.row.bytes;
        if entry.row.first_byte == Time::NEVER && received > before {
            entry.row.first_byte = cx.world.now();
        }
        if received >= entry.expected && entry.row.completed == Time::NEVER {
            self.complete(cx, at);
        }
        let tcp = cx.world.tcp(conn, RECEIVER);
        if tcp.peer_closed() && !tcp.is_closing() {
            cx.world.act(conn, RECEIVER, |tcp, now| tcp.close(now));
        }
    }

    /// Something happened at the server.
    fn server(&mut self, cx: &mut Context, at: usize, conn: ConnId) {
        let entry = &self.entries[at];
        let tcp = cx.world.tcp(conn, SENDER);
        if !entry.answered && tcp.received() >= entry.asked {
            let bytes = entry.row.bytes;
            self.entries[at].answered = true;
            cx.world.act(conn, SENDER, |tcp, now| tcp.write(now, bytes));
            if self.plan.close == CloseFirst::Server && !self.goes_on(at) {
                self.entries[at].ended = true;
                // a call of its own: what the window lets out has left without the FIN
                cx.world.act(conn, SENDER, |tcp, now| tcp.close(now));
            }
        } else if tcp.peer_closed() && !tcp.is_closing() {
            cx.world.act(conn, SENDER, |tcp, now| tcp.close(now));
        }
    }
}

/// One of the mix.
fn choose(mix: &[Start], draws: &mut Stream) -> usize {
    let bits = draws.next_u64();
    mix.iter().position(|start| bits < start.threshold).unwrap_or(mix.len() - 1)
}

/// What both ends of a connection did so far.
fn counts(world: &World, conn: ConnId) -> Counts {
    let (server, client) = (world.tcp(conn, SENDER).stats(), world.tcp(conn, RECEIVER).stats());
    Counts {
        segments_sent: server.data_segments_sent,
        retransmissions: server.retransmissions,
        rtos: server.rtos,
        syn_retransmissions: client.syn_retransmissions,
        synack_retransmissions: server.syn_retransmissions,
    }
}

/// Longest time of thinking, s.
const LONGEST_S: f64 = 1e9;
