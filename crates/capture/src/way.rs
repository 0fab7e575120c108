//! One direction of a connection: the data sent, the other side's reports of its arrival, and the conclusions drawn
//! from both.
//!
//! Length: one scoreboard, whose parts share its positions.
//!
//! Positions are offsets: 0 is the SYN, 1 the first byte of data. Memory is bounded: [`MOST_OUTSTANDING`] outstanding
//! segments, [`MOST_SETTLED`] retransmitted segments that a DSACK may still report, and [`crate::ranges::MOST`]
//! holes.

use std::collections::VecDeque;

use crate::counts::{Counts, Kind};
use crate::packet::{flags, Segment};
use crate::ranges::Ranges;

/// Maximum number of outstanding segments; beyond it the oldest is discarded.
pub const MOST_OUTSTANDING: usize = 1 << 15;

/// Maximum number of acknowledged retransmissions remembered. A DSACK arrives within a round trip.
pub const MOST_SETTLED: usize = 1 << 10;

/// Time within which a filled hole counts as reordering, not as loss, if there is no RTT to compare it with.
/// Wireshark also uses 3 ms.
const REORDERED_WITHIN_NS: i64 = 3_000_000;

/// Minimum length of an Ethernet frame without its check sequence, bytes; shorter packets are padded.
const SHORTEST_FRAME: u32 = 60;

#[derive(Clone, Copy, Debug)]
struct Sent {
    start: i64,
    end: i64,
    t_ns: i64,
    /// Number of transmissions.
    times: u16,
    /// TSval of the first retransmission.
    again: Option<u32>,
    spurious: u16,
    sacked: bool,
}

#[derive(Clone, Copy, Debug)]
struct Hole {
    start: i64,
    end: i64,
    t_ns: i64,
    tsval: Option<u32>,
    ip_id: u16,
}

/// State of one direction.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// Counts of this direction.
    pub counts: Counts,
    /// MSS announced by the sending endpoint.
    pub mss: Option<u16>,
    /// Window scale announced by the sending endpoint.
    pub wscale: Option<u8>,
    /// Whether the SYN permits SACK.
    pub sack_permitted: bool,
    /// Whether the SYN is ECN-capable (ECT), as with controllers that need accurate ECN.
    pub syn_ect: bool,
    /// Whether the SYN was captured with all options. Otherwise window scale, MSS and SACK are unknown.
    pub syn_whole: bool,
    /// TTL or hop limit of the first packet in this direction.
    pub ttl: Option<u8>,
    /// Whether a frame was shorter than Ethernet's minimum, and was therefore captured before transmission.
    pub unpadded: bool,
    /// Offset of a byte sent into a closed window, as a window probe.
    refused: Option<i64>,
    /// Whether the sending endpoint uses timestamps.
    pub timestamps: bool,
    /// Sequence number of offset 0.
    origin: Option<u32>,
    nxt: i64,
    una: i64,
    finished: Option<i64>,
    outstanding: VecDeque<Sent>,
    settled: VecDeque<Sent>,
    sacked: Ranges,
    most_sacked: i64,
    missing: Ranges,
    holes: VecDeque<Hole>,
    last_window: Option<u64>,
    /// Right edge of the peer's window.
    edge: Option<i64>,
    data_acked: bool,
}

impl Way {
    /// Whether a SYN with this number begins a different connection.
    pub fn begins_anew(&self, seq: u32) -> bool {
        self.origin.is_some_and(|origin| origin != seq)
    }

    /// Whether all data has been sent and acknowledged, including the FIN.
    pub fn is_over(&self) -> bool {
        self.finished.is_some_and(|end| self.una >= end)
    }

    /// Return the offset of a sequence number, nearest to the last one sent. The first number seen defines the
    /// origin.
    fn offset(&mut self, seq: u32, syn: bool) -> i64 {
        let nxt = self.nxt;
        let origin = *self.origin.get_or_insert_with(|| if syn { seq } else { seq.wrapping_sub(1) });
        if nxt == 0 && !syn {
            self.nxt = 1;
            self.una = self.una.max(1);
        }
        let at = origin.wrapping_add(self.nxt as u32);
        self.nxt + i64::from(seq.wrapping_sub(at) as i32)
    }

    /// Return the offset of an ACK number for this direction.
    pub fn acknowledged(&mut self, ack: u32) -> i64 {
        self.offset(ack, false)
    }

    /// Return the number of segments for this many bytes. `mss`: the peer's MSS.
    fn segments(&self, bytes: i64, mss: Option<u16>) -> u64 {
        let Some(mss) = mss.map(i64::from).filter(|&mss| mss > 60) else { return 1 };
        if bytes <= mss {
            return 1;
        }
        let full = if self.timestamps { mss - 12 } else { mss };
        (bytes as u64).div_ceil(full as u64)
    }

    /// Process a packet of this direction. `peer_mss`: MSS announced by the peer. Returns its kind and offset.
    pub fn sends(&mut self, seg: &Segment, t_ns: i64, peer_mss: Option<u16>) -> (Kind, i64) {
        let is = |flag| seg.flags & flag != 0;
        self.counts.packets += 1;
        self.counts.ce += u64::from(seg.ecn == 3);
        let syn = is(flags::SYN);
        if is(flags::RST) {
            let at = self.origin.map_or(0, |_| self.offset(seg.seq, false));
            return (Kind::Reset, at);
        }
        let start = self.offset(seg.seq, syn);
        self.ttl.get_or_insert(seg.ttl);
        self.unpadded |= (1..SHORTEST_FRAME).contains(&seg.frame);
        if syn {
            self.syn_whole = !seg.cut;
            self.counts.syn_again += u64::from(self.nxt > 0);
            self.nxt = self.nxt.max(1);
            self.mss = seg.mss;
            self.wscale = seg.wscale;
            self.sack_permitted = seg.sack_permitted;
            self.syn_ect |= seg.ecn != 0;
        }
        self.timestamps |= seg.timestamps.is_some();
        let from = start + i64::from(syn);
        let end = from + i64::from(seg.payload) + i64::from(is(flags::FIN));
        if is(flags::FIN) {
            self.finished = Some(end);
        }
        if end == from {
            let kind = match (syn, self.una) {
                (true, _) => Kind::Syn,
                (_, una) if start + 1 == una && start < self.nxt => Kind::Probe,
                _ => Kind::Bare,
            };
            return (kind, start);
        }
        if end - from == 1 && !is(flags::FIN) && end == self.nxt && self.una == self.nxt {
            return (Kind::Probe, start);
        }
        if end - from == 1
            && !is(flags::FIN)
            && self.last_window == Some(0)
            && self.edge.is_some_and(|edge| start >= edge)
        {
            // a byte beyond a closed window (BSD, Solaris, Windows): usually refused, and retransmitted once the
            // window opens
            self.refused = Some(start);
            return (Kind::Probe, start);
        }
        let count = self.segments(end - from, peer_mss);
        self.counts.segments += count;
        self.counts.window_full += u64::from(self.edge.is_some_and(|edge| end >= edge));
        let (first, _) = self.counts.data_ns.unwrap_or((t_ns, t_ns));
        self.counts.data_ns = Some((first, t_ns));
        let old = end.min(self.nxt);
        let mut kind = Kind::Data;
        if from < old {
            kind = self.again(from, old, t_ns, seg, peer_mss);
        }
        if end > self.nxt {
            self.anew(from, end, t_ns, seg);
        }
        (kind, start)
    }

    /// Record new data, possibly beyond a hole.
    fn anew(&mut self, from: i64, end: i64, t_ns: i64, seg: &Segment) {
        if from > self.nxt {
            self.missing.add(self.nxt, from, |_, _| {});
            if self.holes.len() == MOST_SETTLED {
                self.holes.pop_front();
            }
            let tsval = seg.timestamps.map(|(value, _)| value);
            self.holes.push_back(Hole { start: self.nxt, end: from, t_ns, tsval, ip_id: seg.ip_id });
        }
        let start = from.max(self.nxt);
        let fin = i64::from(self.finished == Some(end));
        self.counts.bytes += end - start - fin;
        self.nxt = end;
        if !self.data_acked {
            self.counts.first_flight += end - start - fin;
        }
        if self.outstanding.len() == MOST_OUTSTANDING {
            self.outstanding.pop_front();
        }
        self.outstanding.push_back(Sent {
            start,
            end,
            t_ns,
            times: 1,
            again: None,
            spurious: 0,
            sacked: false,
        });
        self.counts.most_in_flight = self.counts.most_in_flight.max(self.nxt - self.una);
    }

    /// Record data below the highest offset sent.
    fn again(&mut self, from: i64, end: i64, t_ns: i64, seg: &Segment, mss: Option<u16>) -> Kind {
        let count = self.segments(end - from, mss);
        let filled = self.missing.take(from, end);
        if filled > 0 {
            self.counts.bytes += filled;
            if self.was_overtaken(from, end, t_ns, seg) {
                self.counts.reordered += count;
                return Kind::Late;
            }
            // the first copy was lost before the capture point
            self.counts.retransmitted += count;
            self.counts.retransmitted_bytes += filled;
            return Kind::Retransmission;
        }
        self.counts.retransmitted += count;
        self.counts.retransmitted_bytes += end - from;
        let needless = end <= self.una || self.sacked.holds(from.max(self.una), end);
        self.spurious(if needless { count } else { 0 });
        let tsval = seg.timestamps.map(|(value, _)| value);
        if end <= self.una {
            match self.settled.iter_mut().rev().find(|sent| sent.start < end && from < sent.end) {
                Some(sent) => {
                    sent.times = sent.times.saturating_add(1);
                    sent.spurious = sent.spurious.saturating_add(1);
                }
                None => self.settle(Sent {
                    start: from,
                    end,
                    t_ns,
                    times: 2,
                    again: tsval,
                    spurious: 1,
                    sacked: false,
                }),
            }
            return Kind::Needless;
        }
        self.split(from);
        self.split(end);
        let first = self.outstanding.partition_point(|sent| sent.end <= from);
        for sent in self.outstanding.iter_mut().skip(first).take_while(|sent| sent.start < end) {
            sent.times = sent.times.saturating_add(1);
            sent.t_ns = t_ns;
            sent.again = sent.again.or(tsval);
            sent.spurious = sent.spurious.saturating_add(u16::from(needless));
        }
        if needless {
            Kind::Needless
        } else {
            Kind::Retransmission
        }
    }

    /// Count unnecessary retransmissions. Parts of one retransmission may be reported separately, each as a segment,
    /// so the sum is limited to the number of retransmitted segments.
    fn spurious(&mut self, segments: u64) {
        self.counts.spurious = (self.counts.spurious + segments).min(self.counts.retransmitted);
    }

    /// Return whether a segment that fills a hole was sent before the packet that opened it, according to its
    /// timestamp, its IP identification, or the time.
    fn was_overtaken(&mut self, from: i64, end: i64, t_ns: i64, seg: &Segment) -> bool {
        let Some(at) = self.holes.iter().position(|hole| hole.start < end && from < hole.end) else {
            return false;
        };
        let hole = self.holes[at];
        if from <= hole.start && hole.end <= end {
            self.holes.remove(at);
        }
        if let (Some((value, _)), Some(before)) = (seg.timestamps, hole.tsval) {
            if value != before {
                return (value.wrapping_sub(before) as i32) < 0;
            }
        }
        if seg.ip_id != 0 && hole.ip_id != 0 && seg.ip_id != hole.ip_id {
            return (seg.ip_id.wrapping_sub(hole.ip_id) as i16) < 0;
        }
        let within = match self.counts.rtts {
            0 => REORDERED_WITHIN_NS,
            _ => (self.counts.rtt_min_ns / 2).max(1),
        };
        t_ns - hole.t_ns < within
    }

    /// Split the entry that contains this offset.
    fn split(&mut self, at: i64) {
        let i = self.outstanding.partition_point(|sent| sent.end <= at);
        let Some(sent) = self.outstanding.get_mut(i).filter(|sent| sent.start < at) else { return };
        let mut rest = *sent;
        sent.end = at;
        rest.start = at;
        self.outstanding.insert(i + 1, rest);
    }

    fn settle(&mut self, sent: Sent) {
        if self.settled.len() == MOST_SETTLED {
            self.settled.pop_front();
        }
        self.settled.push_back(sent);
    }

    /// Process an acknowledgment from the other side. `wscale`: its window shift, if both sides use scaling. `block`
    /// is called with the offsets of each SACK block and whether it is a DSACK.
    pub fn is_told(
        &mut self,
        seg: &Segment,
        t_ns: i64,
        wscale: u8,
        mss: Option<u16>,
        mut block: impl FnMut(i64, i64, bool),
    ) -> Kind {
        let is = |flag| seg.flags & flag != 0;
        if !is(flags::ACK) || is(flags::RST) {
            return Kind::Bare;
        }
        self.counts.ece += u64::from(is(flags::ECE) && !is(flags::SYN));
        let ack = self.offset(seg.ack, false);
        let shift = if is(flags::SYN) { 0 } else { wscale };
        let window = u64::from(seg.window) << shift;
        let pure = seg.payload == 0 && !is(flags::SYN) && !is(flags::FIN);
        if ack > self.nxt {
            let taken = self.refused.take().is_some_and(|at| at == self.nxt && ack == at + 1);
            if taken {
                self.counts.bytes += 1;
            } else {
                self.counts.unseen_bytes += ack - self.nxt;
            }
            self.nxt = ack;
        }
        let mut kind = match () {
            () if ack > self.una => Kind::Ack,
            () if ack < self.una || !pure => Kind::Bare,
            () if self.nxt > self.una && self.last_window == Some(window) => Kind::Duplicate,
            () if self.last_window.is_some_and(|last| last != window) => Kind::Window,
            () => Kind::Bare,
        };
        let mut rtt = None;
        if ack > self.una {
            rtt = self.advance(ack, t_ns, seg.timestamps.map(|(_, echo)| echo), mss);
        }
        let sacks: Blocks = self.blocks(seg);
        for (i, &(start, end)) in sacks.iter().enumerate() {
            let dsack = i == 0 && (end <= ack || sacks.get(1).is_some_and(|&(s, e)| s <= start && end <= e));
            block(start, end, dsack);
            if dsack {
                self.named_twice(start, end, mss);
            } else if start >= ack {
                kind = self.arrived(start, end, t_ns, kind, &mut rtt);
            }
        }
        if kind == Kind::Duplicate {
            self.counts.duplicate_acks += 1;
        }
        if let Some(rtt) = rtt.filter(|&rtt| rtt >= 0) {
            let counts = &mut self.counts;
            counts.rtt_min_ns = if counts.rtts == 0 { rtt } else { counts.rtt_min_ns.min(rtt) };
            counts.rtt_max_ns = counts.rtt_max_ns.max(rtt);
            counts.rtt_sum_ns += i128::from(rtt);
            counts.rtts += 1;
        }
        if ack >= self.una && !is(flags::SYN) {
            let (least, most) = self.counts.window.unwrap_or((window, window));
            self.counts.window = Some((least.min(window), most.max(window)));
            self.counts.zero_windows += u64::from(window == 0 && self.last_window != Some(0));
            self.last_window = Some(window);
            self.edge = Some(ack + window.min(i64::MAX as u64 / 2) as i64);
        }
        kind
    }

    /// Advance the cumulative ACK to `ack`. Returns an RTT sample, if one can be taken.
    fn advance(&mut self, ack: i64, t_ns: i64, echo: Option<u32>, mss: Option<u16>) -> Option<i64> {
        self.counts.unseen_bytes += self.missing.forget_below(ack);
        while self.holes.front().is_some_and(|hole| hole.end <= ack) {
            self.holes.pop_front();
        }
        self.split(ack);
        let (mut rtt, mut ambiguous, mut head) = (None, false, true);
        while let Some(&sent) = self.outstanding.front().filter(|sent| sent.end <= ack) {
            self.outstanding.pop_front();
            let mut sent = sent;
            if sent.times > 1 {
                ambiguous |= !sent.sacked;
                // RFC 3522: the ACK echoes the original transmission, sent before the retransmission
                let original = head
                    && sent.spurious == 0
                    && echo
                        .zip(sent.again)
                        .is_some_and(|(echo, again)| (echo.wrapping_sub(again) as i32) < 0);
                if original {
                    sent.spurious = sent.times - 1;
                    let count = self.segments(sent.end - sent.start, mss);
                    self.spurious(count * u64::from(sent.spurious));
                }
                self.settle(sent);
            } else if !sent.sacked {
                rtt = Some(t_ns - sent.t_ns);
                if self.most_sacked > sent.end {
                    self.counts.reordered += self.segments(sent.end - sent.start, mss);
                }
            }
            head = false;
        }
        self.una = ack;
        self.data_acked |= ack > 1;
        self.sacked.forget_below(ack);
        rtt.filter(|_| !ambiguous)
    }

    /// Process a SACK block: its data has arrived.
    fn arrived(&mut self, start: i64, end: i64, t_ns: i64, kind: Kind, rtt: &mut Option<i64>) -> Kind {
        if end > self.nxt {
            self.missing.add(self.nxt, start, |_, _| {});
            self.counts.unseen_bytes += end - self.nxt.max(start);
            self.nxt = end;
        }
        self.most_sacked = self.most_sacked.max(end);
        let outstanding = &mut self.outstanding;
        let mut news = false;
        self.sacked.add(start, end, |from, to| {
            news = true;
            let first = outstanding.partition_point(|sent| sent.end <= from);
            for sent in outstanding.iter_mut().skip(first).take_while(|sent| sent.end <= to) {
                sent.sacked = true;
                if sent.times == 1 {
                    *rtt = Some(t_ns - sent.t_ns);
                }
            }
        });
        if news && kind == Kind::Window {
            Kind::Duplicate
        } else {
            kind
        }
    }

    /// Process a DSACK: its data has arrived twice.
    fn named_twice(&mut self, start: i64, end: i64, mss: Option<u16>) {
        let hit = |sent: &&mut Sent| sent.start < end && start < sent.end && sent.times > 1;
        let first = self.outstanding.partition_point(|sent| sent.end <= start);
        let near = self.outstanding.iter_mut().skip(first).take_while(|sent| sent.start < end);
        let mut known = false;
        let mut lengths = [0i64; 64];
        let mut found = 0;
        for sent in self.settled.iter_mut().rev().filter(hit).chain(near.filter(hit)) {
            known = true;
            if sent.spurious < sent.times - 1 && found < lengths.len() {
                sent.spurious += 1;
                lengths[found] = sent.end.min(end) - sent.start.max(start);
                found += 1;
            }
        }
        for &length in &lengths[..found] {
            self.spurious(self.segments(length, mss));
        }
        self.counts.duplicated += u64::from(!known);
    }

    /// Convert SACK blocks to offsets. Invalid blocks are omitted.
    fn blocks(&mut self, seg: &Segment) -> Blocks {
        let mut made = Blocks::default();
        for &(left, right) in &seg.sacks[..usize::from(seg.sack_count)] {
            let (start, end) = (self.offset(left, false), self.offset(right, false));
            if start < end && end - start < 1 << 31 && start > 0 {
                made.all[made.count] = (start, end);
                made.count += 1;
            }
        }
        made
    }
}

/// Up to four SACK blocks.
#[derive(Default)]
struct Blocks {
    all: [(i64, i64); 4],
    count: usize,
}

impl std::ops::Deref for Blocks {
    type Target = [(i64, i64)];

    fn deref(&self) -> &Self::Target {
        &self.all[..self.count]
    }
}
