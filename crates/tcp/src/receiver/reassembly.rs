//! Out-of-order data and the SACK blocks that report it (RFC 2018), with the block of the latest arrival first.

use std::collections::VecDeque;
use std::num::NonZeroU64;

use ackclock_core::{SackBlock, SackList, Segment};
use smallvec::SmallVec;

use super::queues::{Joined, Last, Run, Tail};
use super::Receiver;
use crate::config::{Config, DelayedAck};
use crate::memory::MOST_PIECES;
use crate::ranges::put_for;

/// Linux TCP_NUM_SACKS: number of blocks stored. With timestamps, one fewer fits into the header.
const NUM_SACKS: usize = 4;

/// Linux TCP_SACK_BLOCKS_EXPECTED: number of blocks that reach the sender even if the next ACK is lost.
const SACK_BLOCKS_EXPECTED: usize = 2;

/// Capacity, in ranges, that is kept when no data is out of order. Most flows never need more.
const MOST_KEPT: usize = 2;

/// Out-of-order data and the blocks that report it.
#[derive(Clone, Debug)]
pub(super) struct Reassembly {
    /// Out-of-order data as ascending, disjoint runs.
    pub out_of_order: VecDeque<Run>,
    /// Memory used by this data, bytes.
    pub gathered: u64,
    /// SACK is in use.
    pub sack: bool,
    /// Duplicates are reported if SACK is in use (RFC 2883).
    report_duplicates: bool,
    /// Blocks to report, latest first, at most [`NUM_SACKS`]; usually one or two.
    pub sacks: SmallVec<[(u64, u64); 2]>,
    /// Duplicate to report, if any.
    pub dsack: Option<(u64, u64)>,
    /// Offset of the peer's FIN; `None` until it arrives.
    pub fin_at: Option<NonZeroU64>,
}

impl Reassembly {
    pub fn new(config: &Config) -> Reassembly {
        Reassembly {
            out_of_order: VecDeque::new(),
            gathered: 0,
            sack: config.sack,
            report_duplicates: config.receiving.dsack,
            sacks: SmallVec::new(),
            dsack: None,
            fin_at: None,
        }
    }

    #[inline]
    pub fn reports(&self) -> bool {
        self.sack && self.report_duplicates
    }

    /// Bytes from `rcv_nxt` to the end of the out-of-order data.
    pub fn beyond(&self, rcv_nxt: u64) -> u64 {
        self.out_of_order.back().map_or(0, |r| r.end - rcv_nxt)
    }

    /// Number of out-of-order bytes.
    pub fn bytes(&self) -> u64 {
        self.out_of_order.iter().map(|run| run.end - run.start).sum()
    }

    /// Return the blocks for the next header. With timestamps, one fewer fits.
    pub fn sack_list(&self, rcv_nxt: u64, timestamps: bool) -> SackList {
        let most = if timestamps { 3 } else { 4 };
        let base = rcv_nxt as i64;
        let block =
            |b: &(u64, u64)| SackBlock { start: (b.0 as i64 - base) as i32, end: (b.1 as i64 - base) as i32 };
        let mut list = SackList::default();
        for b in self.dsack.iter().chain(self.sacks.iter()).take(most) {
            list.push(block(b));
        }
        list
    }
}

impl Receiver {
    /// Check the out-of-order data and its counters, for tests and fuzzing.
    ///
    /// # Panics
    ///
    /// If ranges touch, do not match the counted memory, or if the fast path is enabled when it cannot handle the next
    /// segment.
    pub fn recount(&self) {
        let held = &self.assembly.out_of_order;
        assert!(
            held.iter().all(|r| self.rcv_nxt < r.start && r.start < r.end),
            "{held:?} beyond {}",
            self.rcv_nxt
        );
        let apart = |a: &Run, b: &Run| a.end < b.start || (a.end == b.start && self.lies_alone(b));
        assert!(held.iter().zip(held.iter().skip(1)).all(|(a, b)| apart(a, b)), "{held:?}");
        assert_eq!(self.assembly.gathered, held.iter().map(|r| r.memory).sum::<u64>());
        assert!(self.reader.explicit || self.reader.unread_memory() == 0);
        let kept = self.reader.explicit || !held.is_empty() || self.acks.early.is_some();
        assert!(!(self.is_plain && kept), "more is to be thought of than the next segment");
    }

    /// Move the out-of-order data that became contiguous with `seg`, the segment that closed the gap, to the in-order
    /// data. Returns the end of the first buffer in the application's queue, and the memory of the moved data. A packet
    /// whose fragments all fit into the last buffer is merged into it, and its head is freed (Linux `tcp_ofo_queue`,
    /// `skb_try_coalesce`).
    pub(super) fn close_gaps(&mut self, seg: &Segment) -> (u64, u64) {
        let arrived = self.rcv_nxt;
        let (mut first, mut memory) = (arrived, 0);
        let mut last = self.last_unread(seg.seq);
        while let Some(&run) = self.assembly.out_of_order.front() {
            let Run { start, end, .. } = run;
            if start > self.rcv_nxt {
                break;
            }
            if start < arrived && self.assembly.dsack.is_none() && self.assembly.reports() {
                self.assembly.dsack = Some((start, end.min(arrived))); // duplicate bytes (Linux `tcp_ofo_queue`)
            }
            if self.reader.explicit {
                self.enqueue_run(run, self.rcv_nxt);
            }
            let single = run.packets == 1 && start == self.rcv_nxt;
            let joined = if single { last.join((end - start) as u32, run.pieces) } else { None };
            if joined.is_some() && first == self.rcv_nxt {
                first = first.max(end);
            }
            memory += match joined {
                Some(Joined::Copied) => 0,
                Some(Joined::Moved) => run.memory - self.window.packet_memory(0).min(run.memory),
                None => {
                    last = Tail { room: run.room, pieces: run.pieces };
                    run.memory
                }
            };
            self.rcv_nxt = self.rcv_nxt.max(end);
            self.assembly.gathered -= run.memory;
            self.assembly.out_of_order.pop_front();
        }
        self.reader.last = Last::Merged(last);
        let rcv_nxt = self.rcv_nxt;
        self.assembly.sacks.retain(|b| b.1 > rcv_nxt);
        if self.assembly.out_of_order.is_empty() {
            if self.assembly.out_of_order.capacity() > MOST_KEPT {
                self.assembly.out_of_order = VecDeque::new();
            }
            self.acks.now = true; // RFC 5681 §4.2: immediate ACK when a gap is filled
        }
        (first, memory)
    }

    /// Return the run that stores an arrival: the run that it directly follows, extended, or a new one.
    #[inline]
    fn stored(&self, behind: Option<&Run>, start: u64, end: u64) -> Run {
        let len = (end - start) as u32;
        let own = self.window.pieces(start, len);
        let (memory, packets, room, pieces) = match behind {
            Some(run) if len <= run.room => (0, 0, run.room - len, run.pieces), // copied into the last packet
            Some(run) if own > 0 && run.pieces + own <= MOST_PIECES => (len as u64, 0, 0, run.pieces + own),
            _ => (self.window.packet_memory(len), 1, self.window.room_behind(len), own),
        };
        Run { start, end, memory, packets, room, pieces }
    }

    /// Whether a packet is a separate run although it directly follows another one: its fragments did not fit
    /// there, and may fit when the gap closes (Linux stores packets, not runs).
    #[inline]
    fn lies_alone(&self, run: &Run) -> bool {
        run.pieces > 0 && run.packets > 0 && self.acks.mode == DelayedAck::Linux
    }

    /// Insert out-of-order data. Returns `None` if all of it had been received before, otherwise the
    /// memory of out-of-order data at the time when the window opens for it: a packet that was merged
    /// counts then, a separate one does not yet (Linux `tcp_data_queue_ofo`: `tcp_grow_window`, then
    /// `skb_set_owner_r`).
    pub(super) fn insert(&mut self, start: u64, end: u64) -> Option<u64> {
        let before = self.assembly.gathered;
        // Fast path: the data extends the last run.
        if let Some(last) = self.assembly.out_of_order.back().filter(|last| last.end == start) {
            let new = self.stored(Some(last), start, end);
            let run = (last.start, end);
            if self.lies_alone(&new) {
                let n = self.assembly.out_of_order.len();
                put_for(&mut self.assembly.out_of_order, n..n, new);
            } else {
                let last = self.assembly.out_of_order.back_mut().expect("invariant: just seen");
                (last.end, last.room, last.pieces) = (end, new.room, new.pieces);
                (last.memory, last.packets) = (last.memory + new.memory, last.packets + new.packets);
            }
            self.assembly.gathered += new.memory;
            match self.assembly.sacks.first_mut() {
                Some(latest) if latest.1 == start => latest.1 = end, // no other block is affected
                _ => self.report(start, end, run),
            }
            return Some(if new.packets == 0 { self.assembly.gathered } else { before });
        }
        let len = end - start;
        let mut i = self.assembly.out_of_order.partition_point(|r| r.end < start);
        let behind = self.assembly.out_of_order.get(i).filter(|r| r.end == start);
        let new = self.stored(behind, start, end);
        i += (behind.is_some() && self.lies_alone(&new)) as usize;
        let apart = new.pieces > 0 && self.acks.mode == DelayedAck::Linux;
        let mut j = i;
        let mut kept = true;
        let mut run = new;
        // Merge the run with those that it touches, or, if packets are separate, with those that it overlaps.
        let meets = |r: &Run| r.start < end || (r.start == end && !apart);
        while let Some(known) = self.assembly.out_of_order.get(j).copied().filter(meets) {
            if known.start <= start && end <= known.end {
                self.assembly.dsack = self.assembly.reports().then_some((start, end));
                self.acks.now |= self.acks.mode != DelayedAck::Linux;
                kept = false;
            }
            // Bytes received twice are stored once.
            let twice = known.end.min(end).saturating_sub(known.start.max(start));
            if twice > 0 {
                run.memory = run.memory.saturating_sub(new.memory * twice / len);
                run.packets = run.packets.saturating_sub((twice == len) as u32);
            }
            if known.end > end {
                (run.room, run.pieces) = (known.room, known.pieces);
            }
            (run.memory, run.packets) = (run.memory + known.memory, run.packets + known.packets);
            (run.start, run.end) = (run.start.min(known.start), run.end.max(known.end));
            self.assembly.gathered -= known.memory;
            j += 1;
        }
        self.assembly.gathered += run.memory;
        let (s, e) = (run.start, run.end);
        put_for(&mut self.assembly.out_of_order, i..j, run);
        self.report(start, end, (s, e));
        kept.then_some(if new.packets == 0 { self.assembly.gathered } else { before })
    }

    /// Move the block of the latest arrival to the front (RFC 2018 §4). The arrival is `start` to `end`, within `run`.
    fn report(&mut self, start: u64, end: u64, run: (u64, u64)) {
        if self.acks.mode == DelayedAck::Linux {
            return self.report_as_linux(start, end);
        }
        self.assembly.sacks.retain(|b| b.1 < run.0 || b.0 > run.1);
        self.assembly.sacks.truncate(NUM_SACKS - 1);
        self.assembly.sacks.insert(0, run);
    }

    /// Report an arrival as Linux does. Linux knows only the blocks in its list: for a range that has dropped out
    /// of it, only the segment is reported, whereas RFC 2018 §4 requires the whole range. While ACKs are
    /// compressed, a block that is new or grows after the second position would be reported too late, so the
    /// held-back ACK is sent now and covers this arrival too (`tcp_sack_new_ofo_skb`, `tcp_sack_maybe_coalesce`).
    fn report_as_linux(&mut self, start: u64, end: u64) {
        let touched = self.assembly.sacks.iter().position(|b| start <= b.1 && b.0 <= end);
        if self.acks.compression.held > 0
            && touched.unwrap_or(self.assembly.sacks.len()) >= SACK_BLOCKS_EXPECTED
        {
            if let Some(i) = touched {
                let block = &mut self.assembly.sacks[i];
                *block = (block.0.min(start), block.1.max(end));
            }
            let window = self.window.advertise(self.rcv_nxt);
            self.acks.early = Some(Box::new((self.assembly.sack_list(self.rcv_nxt, self.stamps.on), window)));
        }
        let mut first = (start, end);
        if let Some(i) = touched {
            let block = self.assembly.sacks.remove(i);
            first = (first.0.min(block.0), first.1.max(block.1));
        }
        self.assembly.sacks.retain(|b| {
            let meets = first.0 <= b.1 && b.0 <= first.1;
            if meets {
                first = (first.0.min(b.0), first.1.max(b.1));
            }
            !meets
        });
        self.assembly.sacks.truncate(NUM_SACKS - 1);
        self.assembly.sacks.insert(0, first);
    }
}
