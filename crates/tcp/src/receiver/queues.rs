//! Memory used by received data, unread or out of order, and the steps taken when the memory is full: the buffer
//! grows up to its limit, sparsely filled packets are collapsed, the highest out-of-order data is dropped, and
//! finally the arriving packet is dropped (Linux `tcp_try_rmem_schedule`, `tcp_prune_queue`, `tcp_collapse`,
//! `tcp_prune_ofo_queue`).
//!
//! Differs: contiguous out-of-order packets are assumed to have the same size. Linux's fast path, which
//! needs no new memory while part of a page is free, is not modelled.

use std::collections::VecDeque;

use ackclock_core::Segment;

use super::slow::Slow;
use super::Receiver;
use crate::config::DelayedAck;
use crate::memory::{self, Share, MOST_PIECES};

/// Contiguous packets that arrived out of order, or a single one (see [`Receiver::lies_alone`]).
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub start: u64,
    pub end: u64,
    /// Memory used by the packets, bytes.
    pub memory: u64,
    pub packets: u32,
    /// Bytes that can still be copied into the last packet.
    pub room: u32,
    /// Number of fragments of the last packet that lie in the sender's memory. More can be appended, up to
    /// [`memory::MOST_PIECES`].
    pub pieces: u32,
}

impl Run {
    fn bytes(&self) -> u64 {
        self.end - self.start
    }

    /// Length and memory of one packet of the run.
    fn packet(&self) -> (u64, u64) {
        let packets = self.packets.max(1) as u64;
        (self.bytes().div_ceil(packets), self.memory / packets)
    }
}

/// Packet received in order.
#[derive(Clone, Copy, Debug)]
struct Packet {
    start: u64,
    end: u64,
    memory: u64,
    /// Bytes that can still be copied into the packet.
    room: u32,
    /// Number of fragments that lie in the sender's memory.
    pieces: u32,
}

impl Packet {
    fn is_bloated(&self, share: Share) -> bool {
        share.window(self.memory) > self.end - self.start
    }
}

/// The last packet in a queue, to which the next one can be added (Linux `skb_try_coalesce`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    /// Bytes that can still be copied into it.
    pub room: u32,
    /// Number of its fragments that lie in the sender's memory.
    pub pieces: u32,
}

/// How a packet was added to the one before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Joined {
    /// A copy of its payload; all its memory is free.
    Copied,
    /// The fragments themselves; its head is free.
    Moved,
}

impl Tail {
    /// Add a packet with `len` bytes of payload in `pieces` fragments, if it fits.
    pub fn join(&mut self, len: u32, pieces: u32) -> Option<Joined> {
        if len <= self.room {
            self.room -= len;
            return Some(Joined::Copied);
        }
        if self.pieces > 0 && pieces > 0 && self.pieces + pieces <= MOST_PIECES {
            *self = Tail { room: 0, pieces: self.pieces + pieces };
            return Some(Joined::Moved);
        }
        None
    }
}

/// The last packet not yet read by the application, which reads automatically.
#[derive(Clone, Copy, Debug)]
pub(super) enum Last {
    /// A packet of this length to which nothing has been added.
    Alone(u32),
    /// A packet made of several.
    Merged(Tail),
}

/// In-order data not yet read by the application. Used only if the application reads by explicit calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    packets: VecDeque<Packet>,
    /// Memory used by the packets, bytes.
    pub memory: u64,
    /// The application, if it reads slowly.
    pub slow: Option<Slow>,
}

impl Waiting {
    /// Append a packet to the queue: copy it into the last packet if that has room, or add its fragments to those of
    /// the last packet (Linux `tcp_try_coalesce`).
    fn push(&mut self, packet: Packet) {
        let Packet { start, end, memory, room, pieces } = packet;
        if let Some(last) = self.packets.back_mut() {
            if end - start <= last.room as u64 {
                last.end = end;
                last.room -= (end - start) as u32;
                return;
            }
            if pieces > 0 && last.pieces + pieces <= memory::MOST_PIECES {
                let added = memory.min(end - start);
                (last.end, last.memory, last.room) = (end, last.memory + added, room);
                last.pieces += pieces;
                self.memory += added;
                return;
            }
        }
        self.memory += memory;
        self.packets.push_back(packet);
    }

    /// End of the first packet.
    pub fn first_end(&self) -> Option<u64> {
        self.packets.front().map(|packet| packet.end)
    }

    /// Free the packets read by the application up to `read`.
    pub fn release(&mut self, read: u64) {
        while let Some(first) = self.packets.front().filter(|p| p.end <= read) {
            self.memory -= first.memory;
            self.packets.pop_front();
        }
    }

    /// Collapse all packets, starting with the first one that is sparsely filled or partly read
    /// (Linux `tcp_collapse`).
    fn collapse(&mut self, share: Share, read: u64) {
        let from = self.packets.iter().position(|p| p.start < read || p.is_bloated(share));
        let Some(from) = from else { return };
        let end = self.packets.back().map_or(read, |p| p.end);
        let mut start = self.packets[from].start.max(read);
        for old in self.packets.drain(from..) {
            self.memory -= old.memory;
        }
        while start < end {
            let len = (end - start).min(memory::COPY);
            let taken = memory::copied_together(len);
            self.memory += taken;
            let room = memory::room_behind_copies(len);
            self.packets.push_back(Packet { start, end: start + len, memory: taken, room, pieces: 0 });
            start += len;
        }
    }
}

impl Receiver {
    /// The last packet not yet read; `start`: its offset if nothing has been added to it.
    pub(super) fn last_unread(&self, start: u64) -> Tail {
        match self.reader.last {
            Last::Alone(len) => {
                Tail { room: self.window.room_behind(len), pieces: self.window.pieces(start, len) }
            }
            Last::Merged(tail) => tail,
        }
    }

    /// Add a segment that is next in order to the last packet not yet read by the application, if it fits there. Returns
    /// the memory by which that packet grows (Linux `tcp_queue_rcv`).
    #[cold]
    pub(super) fn join_unread(&mut self, seg: &Segment) -> Option<u64> {
        if self.reader.unread == 0 || seg.len == 0 {
            return None;
        }
        let start = match self.reader.last {
            Last::Alone(len) => seg.seq - len as u64,
            Last::Merged(_) => 0,
        };
        let mut last = self.last_unread(start);
        let joined = last.join(seg.len, self.window.pieces(seg.seq, seg.len))?;
        self.reader.last = Last::Merged(last);
        Some(match joined {
            Joined::Copied => 0,
            Joined::Moved => seg.len as u64,
        })
    }

    /// Queue a segment that is next in order until the application reads it.
    #[cold]
    pub(super) fn enqueue(&mut self, seg: &Segment) {
        let end = seg.seq + seg.len as u64;
        if end > self.rcv_nxt {
            let (memory, room) = (self.window.packet_memory(seg.len), self.window.room_behind(seg.len));
            let pieces = self.window.pieces(seg.seq, seg.len);
            let packet = Packet { start: self.rcv_nxt, end, memory, room, pieces };
            let before = self.reader.unread_memory();
            self.reader.waiting.get_or_insert_default().push(packet);
            self.reserve(memory, self.reader.unread_memory() - before);
        }
    }

    /// Whether window and memory allow a segment with new data (Linux `tcp_data_queue`). Data outside the current
    /// window is answered. So is in-order data for which there is no memory, with a zero window. Out-of-order data for
    /// which there is no memory is not answered.
    #[cold]
    pub(super) fn is_taken(&mut self, seg: &Segment) -> bool {
        let window = self.window.right_edge().saturating_sub(self.rcv_nxt);
        let in_order = seg.seq <= self.rcv_nxt;
        let bare_fin = seg.len == 0 && seg.seq == self.rcv_nxt;
        if in_order && seg.seq < self.rcv_nxt && self.assembly.reports() {
            self.assembly.dsack = Some((seg.seq, self.rcv_nxt));
        }
        if (in_order && window == 0 && !bare_fin) || (!in_order && seg.seq >= self.rcv_nxt + window) {
            self.enter_quickack();
            self.acks.pending = true;
            self.acks.now |= self.acks.mode != DelayedAck::Linux;
            return false;
        }
        if self.has_reserved(seg) {
            return true;
        }
        let waiting = self.received() - self.taken_at_once();
        if self.make_room(seg.seq, waiting) {
            return true;
        }
        if in_order {
            (self.reader.no_memory, self.stamps_otherwise) = (true, true);
            (self.acks.pending, self.acks.now) = (true, true);
            return waiting == 0 || seg.len == 0; // accepted if the queue is empty, since the application is waiting for this data
        }
        false
    }

    /// Queue a formerly out-of-order run, now in order from `start` on, until the application reads it.
    #[cold]
    pub(super) fn enqueue_run(&mut self, run: Run, mut start: u64) {
        let (len, memory) = run.packet();
        while start < run.end {
            let end = run.end.min(start + len);
            let room = if end == run.end { run.room } else { 0 };
            let pieces = if run.packets == 1 { run.pieces } else { 0 };
            let packet = Packet { start, end, memory, room, pieces };
            self.reader.waiting.get_or_insert_default().push(packet);
            start = end;
        }
    }

    /// Whether there is memory for a packet at `seq`, given `waiting` in-order bytes and the out-of-order
    /// data. Frees memory if necessary.
    fn make_room(&mut self, seq: u64, waiting: u64) -> bool {
        if !self.window.overflows(self.memory(waiting)) {
            return true;
        }
        self.acks.quick = 0;
        if !self.window.fits(self.memory(waiting)) {
            self.collapse();
        }
        if !self.window.fits(self.memory(waiting)) {
            self.throw_away(seq, waiting);
        }
        let taken = self.memory(waiting);
        self.window.hold(taken, self.rcv_nxt);
        self.window.fits(taken)
    }

    fn collapse(&mut self) {
        self.join_runs();
        let share = self.window.share();
        let (mut tiny, most) = (0, self.window.eighth());
        for run in &mut self.assembly.out_of_order {
            if run.packets <= 1 && run.bytes() < memory::COPY {
                tiny += run.memory;
                if tiny > most {
                    break;
                }
                continue;
            }
            let (len, each) = run.packet();
            if share.window(each) > len {
                self.assembly.gathered -= run.memory;
                run.memory = memory::copied_together(run.bytes());
                run.packets = run.bytes().div_ceil(memory::COPY) as u32;
                (run.room, run.pieces) = (memory::room_behind_copies(run.bytes()), 0);
                self.assembly.gathered += run.memory;
            }
        }
        if let Some(waiting) = &mut self.reader.waiting {
            waiting.collapse(share, 1 + self.reader.read);
        }
    }

    /// Join contiguous runs into one.
    fn join_runs(&mut self) {
        let mut joined: VecDeque<Run> = VecDeque::with_capacity(self.assembly.out_of_order.len());
        for run in self.assembly.out_of_order.drain(..) {
            match joined.back_mut().filter(|last| last.end == run.start) {
                Some(last) => {
                    (last.memory, last.packets) = (last.memory + run.memory, last.packets + run.packets);
                    (last.end, last.room, last.pieces) = (run.end, run.room, run.pieces);
                }
                None => joined.push_back(run),
            }
        }
        self.assembly.out_of_order = joined;
    }

    /// Drop the highest packets, an eighth of the buffer at a time, until the rest fits. No packet below the
    /// arriving one is dropped. SACK no longer reports the dropped data (Linux `tcp_prune_ofo_queue`).
    fn throw_away(&mut self, seq: u64, waiting: u64) {
        let mut goal = self.window.eighth() as i64;
        let mut pruned = false;
        while let Some(last) = self.assembly.out_of_order.back_mut() {
            let (len, each) = last.packet();
            let start = last.end.saturating_sub(len).max(last.start);
            if seq > start {
                break;
            }
            let freed = if start == last.start { last.memory } else { each };
            (last.end, last.memory, last.packets) = (start, last.memory - freed, last.packets - 1);
            if last.start == last.end {
                self.assembly.out_of_order.pop_back();
            }
            self.assembly.gathered -= freed;
            goal -= freed as i64;
            pruned = true;
            if self.assembly.out_of_order.is_empty() || goal <= 0 {
                if self.window.fits(self.memory(waiting)) {
                    break;
                }
                goal = self.window.eighth() as i64;
            }
        }
        if pruned {
            self.assembly.sacks.clear();
        }
    }
}
