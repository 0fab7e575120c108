//! Conversation: a client at the receiving end and a server at the sending end write to each other over one
//! connection, in steps that are repeated. The scenario defines the steps of both ends (requests and answers, answers
//! in several writes, unsolicited messages). Every message adds a row to table `conversations`.
//!
//! Several conversations may share the connection (`streams`). Their messages share one byte stream in each
//! direction, in the order of the writes, as in HTTP/2. As for transactions, a [`Carrier`] executes them: the
//! simulator's world, or a real kernel.
//!
//! The values drawn for a step depend only on the seed, the flow and the step number (common random numbers).

mod params;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt::Debug;
use std::rc::Rc;

use ackclock_core::rng::Family;
use ackclock_core::{Distribution, Span, Stream, Time};

use super::transactions::{Carrier, Start};
use super::{Context, Workload};
use crate::tables::tally::MessageRow;
use crate::world::{ConnId, RECEIVER, SENDER};
pub use params::{ConversationParams, Turn};

/// The conversations of one client-server pair.
#[derive(Clone)]
pub struct Conversation<Conn> {
    plan: Rc<Plan>,
    draws: Family,
    conn: Option<Conn>,
    talks: Vec<Talk>,
    /// Steps in progress; finished entries are reused.
    steps: Vec<Active>,
    free: Vec<usize>,
    /// Planned writes and round starts, by time and insertion order.
    due: BinaryHeap<Reverse<(Time, u64, Due)>>,
    asked: u64,
    established: [bool; 2],
    /// Steps waiting for the handshake to complete at their writing end.
    early: [Vec<usize>; 2],
    /// Bytes written at each end, and the writes not yet read completely by the other end.
    written: [u64; 2],
    on_the_way: [VecDeque<Piece>; 2],
    talking: usize,
}

/// State shared by all flows of a group.
pub struct Plan {
    params: ConversationParams,
    start: Start,
}

impl Plan {
    /// Return the plan of a group; connections start with the settings of `start`.
    pub fn new(params: &ConversationParams, start: Start) -> Plan {
        Plan { params: params.clone(), start }
    }

    /// Index after the last step that begins together with `first`.
    fn group_end(&self, first: usize) -> usize {
        let steps = &self.params.steps;
        (first + 1..steps.len()).find(|&at| !steps[at].together).unwrap_or(steps.len())
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Write(usize),
    Round(u32),
}

/// State of a single conversation.
#[derive(Clone)]
struct Talk {
    round: u32,
    /// First of the steps that began together, and number of them that have not arrived yet.
    group: usize,
    open: usize,
}

/// A step in progress.
#[derive(Clone)]
struct Active {
    talk: u32,
    step: usize,
    left: u32,
    message: u32,
    row: usize,
    draws: Stream,
}

/// Bytes of a write not yet read completely by the other end.
#[derive(Clone)]
struct Piece {
    start: u64,
    end: u64,
    row: usize,
    /// Whether the write ends its message, and the conversation in which it ends a step.
    last: bool,
    ends: Option<u32>,
}

impl<Conn: Copy + PartialEq + Debug> Conversation<Conn> {
    /// Return conversations in which nothing has been written yet.
    pub fn new(plan: Rc<Plan>, draws: Family) -> Conversation<Conn> {
        let talks = (0..plan.params.streams).map(|_| Talk { round: 0, group: 0, open: 0 }).collect();
        Conversation {
            talking: plan.params.streams as usize,
            plan,
            draws,
            conn: None,
            talks,
            steps: Vec::new(),
            free: Vec::new(),
            due: BinaryHeap::new(),
            asked: 0,
            established: [false; 2],
            early: [Vec::new(), Vec::new()],
            written: [0; 2],
            on_the_way: [VecDeque::new(), VecDeque::new()],
        }
    }

    /// Start the flow: the client connects.
    pub fn start<C: Carrier<Conn = Conn>>(&mut self, cx: &mut C) {
        let conn = cx.connect(&self.plan.clone().start, 0);
        cx.set_place(conn, 0);
        self.conn = Some(conn);
        self.schedule(cx);
    }

    /// Process a wake-up.
    pub fn wake<C: Carrier<Conn = Conn>>(&mut self, cx: &mut C) {
        let now = cx.now();
        if now >= cx.stop() {
            return self.end(cx);
        }
        while let Some(&Reverse((at, _, due))) = self.due.peek() {
            if at > now {
                break;
            }
            self.due.pop();
            match due {
                Due::Write(at) => self.write(cx, at),
                Due::Round(talk) => self.begin_group(cx, talk, 0),
            }
        }
        self.schedule(cx);
    }

    /// Process an event at one end.
    pub fn progress<C: Carrier<Conn = Conn>>(&mut self, cx: &mut C, conn: Conn, host: usize) {
        if self.conn != Some(conn) {
            return;
        }
        let end = cx.end(conn, host);
        if end.failed {
            self.conn = None;
            self.due.clear();
            return cx.retire(conn);
        }
        if end.established && !self.established[host] {
            self.established[host] = true;
            if host == RECEIVER {
                cx.note_established(conn);
                (0..self.plan.params.streams).for_each(|talk| self.begin_group(cx, talk, 0));
            }
            for at in std::mem::take(&mut self.early[host]) {
                self.write(cx, at);
            }
        }
        let (received, ended) = cx.has_read(conn, host);
        self.read(cx, host, received);
        if ended && !cx.end(conn, host).closing {
            cx.close(conn, host);
        }
        match cx.is_over(conn) && [SENDER, RECEIVER].iter().all(|&host| cx.has_read(conn, host).1) {
            true => {
                self.conn = None;
                cx.retire(conn);
            }
            false => self.schedule(cx),
        }
    }

    /// Begin the steps that start together with `first`.
    fn begin_group<C: Carrier<Conn = Conn>>(&mut self, cx: &mut C, talk: u32, first: usize) {
        let plan = self.plan.clone();
        let end = plan.group_end(first);
        let state = &mut self.talks[talk as usize];
        (state.group, state.open) = (first, end - first);
        let round = state.round as u64 * plan.params.streams as u64 + talk as u64;
        for step in first..end {
            let mut draws = self.draws.member(round * (plan.params.steps.len() as u64 + 1) + step as u64);
            let turn = &plan.params.steps[step];
            let wait = span(&turn.wait, &mut draws);
            let active = Active { talk, step, left: turn.said().times, message: 0, row: usize::MAX, draws };
            let at = match self.free.pop() {
                Some(at) => {
                    self.steps[at] = active;
                    at
                }
                None => {
                    self.steps.push(active);
                    self.steps.len() - 1
                }
            };
            match wait {
                Span::ZERO => self.write(cx, at),
                _ => self.plan_ahead(cx.now() + wait, Due::Write(at)),
            }
        }
    }

    fn plan_ahead(&mut self, at: Time, due: Due) {
        self.asked += 1;
        self.due.push(Reverse((at, self.asked, due)));
    }

    /// Write the next part of a step, and further parts if no time passes between them.
    fn write<C: Carrier<Conn = Conn>>(&mut self, cx: &mut C, at: usize) {
        let (Some(conn), plan) = (self.conn, self.plan.clone()) else { return };
        let turn = &plan.params.steps[self.steps[at].step];
        let host = turn.writer();
        if !self.established[host] {
            return self.early[host].push(at);
        }
        if cx.end(conn, host).closing {
            return self.free.push(at); // a FIN has been sent
        }
        let now = cx.now();
        loop {
            let active = &mut self.steps[at];
            let first = active.left == turn.said().times;
            if first && turn.corked {
                cx.cork(conn, host, true);
            }
            let bytes = (turn.said().each.draw(&mut active.draws) as u64).max(1);
            active.left -= 1;
            let over = active.left == 0;
            if first || turn.separate {
                active.row = cx.log().messages.len();
                let talk = &self.talks[active.talk as usize];
                let row = MessageRow {
                    flow: cx.flow(),
                    stream: active.talk,
                    round: talk.round,
                    step: active.step as u32,
                    message: active.message,
                    writer: host as u32,
                    bytes: 0,
                    writes: 0,
                    start: now,
                    first_byte: Time::NEVER,
                    arrived: Time::NEVER,
                };
                cx.log().messages.push(row);
                active.message += 1;
            }
            let row = &mut cx.log().messages[active.row];
            row.bytes += bytes;
            row.writes += 1;
            let start = self.written[host];
            self.written[host] += bytes;
            let ends = over.then_some(active.talk);
            let piece =
                Piece { start, end: start + bytes, row: active.row, last: over || turn.separate, ends };
            self.on_the_way[host].push_back(piece);
            let gap = if over { Span::ZERO } else { span(&turn.gap, &mut active.draws) };
            cx.write(conn, host, bytes);
            if over {
                if turn.corked {
                    cx.cork(conn, host, false);
                }
                return self.free.push(at);
            }
            if gap > Span::ZERO {
                return self.plan_ahead(now + gap, Due::Write(at));
            }
        }
    }

    /// Record that the application at `host` has read `received` bytes in total.
    fn read<C: Carrier<Conn = Conn>>(&mut self, cx: &mut C, host: usize, received: u64) {
        let (now, writer) = (cx.now(), 1 - host);
        while let Some(piece) = self.on_the_way[writer].front() {
            let row = &mut cx.log().messages[piece.row];
            if received > piece.start && row.first_byte == Time::NEVER {
                row.first_byte = now;
            }
            if received < piece.end {
                return;
            }
            if piece.last {
                row.arrived = now;
            }
            let ends = piece.ends;
            self.on_the_way[writer].pop_front();
            if let Some(talk) = ends {
                self.arrive(cx, talk);
            }
        }
    }

    /// Process the arrival of a step's last byte.
    fn arrive<C: Carrier<Conn = Conn>>(&mut self, cx: &mut C, talk: u32) {
        let plan = self.plan.clone();
        let state = &mut self.talks[talk as usize];
        state.open -= 1;
        if state.open > 0 {
            return;
        }
        let next = plan.group_end(state.group);
        if next < plan.params.steps.len() {
            return self.begin_if_time(cx, talk, next);
        }
        let steps = plan.params.steps.len() as u64;
        let round = state.round as u64 * plan.params.streams as u64 + talk as u64;
        let think = span(&plan.params.think, &mut self.draws.member(round * (steps + 1) + steps));
        state.round += 1;
        if plan.params.repeat.is_some_and(|repeat| state.round >= repeat) {
            self.talking -= 1;
            if self.talking == 0 {
                cx.note_completed(cx.now());
                self.end(cx);
            }
        } else if think > Span::ZERO {
            self.plan_ahead(cx.now() + think, Due::Round(talk));
        } else {
            self.begin_if_time(cx, talk, 0);
        }
    }

    fn begin_if_time<C: Carrier<Conn = Conn>>(&mut self, cx: &mut C, talk: u32, first: usize) {
        if cx.now() < cx.stop() {
            self.begin_group(cx, talk, first);
        }
    }

    /// End the conversation: the client closes, and the server does so too once it has read the end of the stream.
    fn end<C: Carrier<Conn = Conn>>(&mut self, cx: &mut C) {
        self.due.clear();
        if let Some(conn) = self.conn {
            if !cx.end(conn, RECEIVER).closing {
                cx.close(conn, RECEIVER);
            }
        }
    }

    fn schedule<C: Carrier<Conn = Conn>>(&self, cx: &mut C) {
        let next = self.due.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at);
        if self.conn.is_some() && cx.now() < cx.stop() {
            cx.wake(next.min(cx.stop()));
        }
    }
}

impl Turn {
    /// The host writing in this step.
    pub fn writer(&self) -> usize {
        match self.server {
            Some(_) => SENDER,
            None => RECEIVER,
        }
    }
}

impl Workload for Conversation<ConnId> {
    fn start(&mut self, cx: &mut Context) {
        Conversation::start(self, cx);
    }
    fn wake(&mut self, cx: &mut Context) {
        Conversation::wake(self, cx);
    }
    fn progress(&mut self, cx: &mut Context, conn: ConnId, host: usize) {
        Conversation::progress(self, cx, conn, host);
    }
}

fn span(of: &Distribution, draws: &mut Stream) -> Span {
    Span((of.draw(draws).clamp(0.0, LONGEST_S) * 1e9) as u64)
}

/// Maximum waiting time, s.
const LONGEST_S: f64 = 1e9;
