//! Sender on the ideal path.
//!
//! Sources: RFC 6675 §4-5, RFC 3042.
//!
//! | variable | meaning, segments |
//! |---|---|
//! | `snd_una`, `snd_nxt` | first unacknowledged, next new segment |
//! | `high_rxt` | one above the highest segment retransmitted in this episode |
//! | `rescue_rxt` | one above the segment whose acknowledgement allows a rescue retransmission (NextSeg rule 4) |
//! | `recovery_point` | snd_nxt at entry |
//! | `pipe` | RFC 6675 SetPipe, after the ACK and before sending, as in the published tables |

use std::collections::VecDeque;

use ackclock_core::trace::{Branch, CaState, RuleVars};

use super::{IdealConfig, IdealRow, IdealTable};
use crate::recovery::{PrrBound, RecoverFs, RecoveryAck, RecoveryEntry, RecoveryExit, RecoveryRule, Rule};
use crate::window::Window;

/// DupThresh of RFC 6675 §2.
const DUP_THRESH: u32 = 3;

/// A segment in flight; its ACK arrives at `arrival`, in ticks of RTT / W.
#[derive(Clone, Copy)]
struct Flight {
    arrival: u64,
    transmission: u32,
    segment: u32,
    retransmission: bool,
}

#[derive(Clone, Copy, Default)]
struct Segment {
    /// Whether the segment has arrived at the receiver.
    received: bool,
    /// Whether the sender knows that it has arrived.
    sacked: bool,
    lost: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    New,
    Retransmit(u32),
    Rescue(u32),
}

/// Rule for transmitting on an ACK.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Permit {
    Nothing,
    Window,
    /// The first segment is sent regardless of pipe (RFC 6675 §5 step 4.3).
    WindowAfterFirst,
}

/// A sender, simulated from its first segment to the end of its first recovery.
pub(super) struct Sender<'a> {
    config: &'a IdealConfig,
    rule: Rule,
    ticks_per_rtt: u64,
    now: u64,
    path: VecDeque<Flight>,
    transmissions: u32,
    segments: Vec<Segment>,
    snd_una: u32,
    cwnd: u32,
    ssthresh: u32,
    state: CaState,
    dup_acks: u32,
    high_rxt: u32,
    rescue_rxt: Option<u32>,
    recovery_point: u32,
    entered_at: u64,
    table: IdealTable,
}

impl<'a> Sender<'a> {
    /// Create a sender with its window in flight.
    pub(super) fn new(config: &'a IdealConfig) -> Sender<'a> {
        let mut rule = config.rule.clone();
        if let (Rule::Prr(prr), Some(segments)) = (&mut rule, config.recover_fs) {
            prr.params.recover_fs = RecoverFs::Fixed(segments);
        }
        let window = config.window.max(1);
        let mut sender = Sender {
            config,
            rule,
            ticks_per_rtt: u64::from(window),
            now: 0,
            path: VecDeque::new(),
            transmissions: 0,
            segments: Vec::new(),
            snd_una: 0,
            cwnd: window,
            ssthresh: Window::INFINITE,
            state: CaState::Open,
            dup_acks: 0,
            high_rxt: 0,
            rescue_rxt: None,
            recovery_point: 0,
            entered_at: 0,
            table: IdealTable::default(),
        };
        for tick in 0..u64::from(window) {
            sender.now = tick;
            sender.send_new();
        }
        sender
    }

    /// Process ACKs until the episode ends.
    pub(super) fn run(mut self) -> IdealTable {
        let last_loss = self.config.lost.iter().copied().max();
        while let Some(flight) = self.path.pop_front() {
            let segment = &mut self.segments[flight.segment as usize];
            segment.received = true;
            if self.config.lost_acks.contains(&flight.transmission) {
                continue;
            }
            self.now = flight.arrival;
            self.on_ack(flight);
            let nothing_to_recover = !self.table.summary.entered && Some(self.snd_una) > last_loss;
            let enough = self.table.rows.len() >= self.config.max_acks as usize;
            if self.table.summary.completed || nothing_to_recover || enough {
                break;
            }
        }
        self.table
    }

    fn on_ack(&mut self, flight: Flight) {
        let (newly_acked, newly_sacked) = self.update_scoreboard();
        let newly_lost = self.mark_lost();
        self.high_rxt = self.high_rxt.max(self.snd_una);
        self.dup_acks = if newly_acked > 0 { 0 } else { self.dup_acks };
        self.dup_acks += u32::from(newly_sacked > 0);
        let delivered = newly_acked + newly_sacked;
        let row = IdealRow {
            time_rtts: self.now as f64 / self.ticks_per_rtt as f64,
            ack: flight.transmission,
            trigger: flight.segment,
            trigger_is_retransmission: flight.retransmission,
            snd_una: self.snd_una,
            delivered,
            newly_lost,
            state: self.state,
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            pipe: self.pipe(),
            sent_new: 0,
            sent_retransmissions: 0,
            sent: String::new(),
            rb: String::new(),
            rule: RuleVars::default(),
        };
        if self.state == CaState::Recovery && self.snd_una >= self.recovery_point {
            return self.on_full_ack(row);
        }
        let entering = self.state != CaState::Recovery && self.must_recover();
        if entering {
            self.enter(&row, newly_acked, newly_sacked);
        }
        if self.state == CaState::Recovery {
            self.on_ack_in_recovery(row, entering, newly_acked > 0);
        } else {
            let disorder = self.segments[self.snd_una as usize..].iter().any(|s| s.sacked);
            self.state = if disorder { CaState::Disorder } else { CaState::Open };
            let may_send = !disorder || self.config.limited_transmit;
            self.transmit(row, if may_send { Permit::Window } else { Permit::Nothing });
        }
    }

    fn enter(&mut self, row: &IdealRow, newly_acked: u32, newly_sacked: u32) {
        let window = self.config.window.max(1);
        self.ssthresh = self.config.ssthresh.unwrap_or((window / 2).max(2));
        self.state = CaState::Recovery;
        self.recovery_point = self.snd_nxt();
        self.high_rxt = self.snd_una;
        self.rescue_rxt = None;
        self.entered_at = self.now;
        let sacked = self.segments[self.snd_una as usize..].iter().filter(|s| s.sacked).count() as u32;
        self.rule.enter(&RecoveryEntry {
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            flight_size: self.snd_nxt() - self.snd_una,
            sacked,
            newly_sacked,
            newly_acked,
            min_cwnd: self.config.min_cwnd.unwrap_or(self.ssthresh),
        });
        let summary = &mut self.table.summary;
        summary.entered = true;
        summary.pipe_at_entry = row.pipe;
        summary.ssthresh = self.ssthresh;
    }

    fn on_ack_in_recovery(&mut self, mut row: IdealRow, entering: bool, una_advanced: bool) {
        let ack = RecoveryAck {
            delivered: row.delivered,
            pipe: row.pipe,
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            una_advanced,
            newly_lost: row.newly_lost,
            entering,
            progress: row.delivered > 0,
        };
        self.cwnd = self.rule.on_ack(&ack);
        row.rule = self.rule.vars();
        row.rb = self.bound_terms(&ack, &row.rule);
        let force = entering && self.rule.forces_first_retransmit();
        let sent = self.transmit(row, if force { Permit::WindowAfterFirst } else { Permit::Window });
        let summary = &mut self.table.summary;
        if entering {
            summary.burst_at_entry = sent;
        }
        summary.max_burst = summary.max_burst.max(sent);
        summary.recovery_rtts = (self.now - self.entered_at) as f64 / self.ticks_per_rtt as f64;
    }

    fn on_full_ack(&mut self, row: IdealRow) {
        let pipe = row.pipe;
        let before = self.cwnd;
        self.cwnd =
            self.rule.exit(&RecoveryExit { cwnd: before, ssthresh: self.ssthresh, pipe, undone: false });
        self.state = CaState::Open;
        let sent = self.transmit(row, Permit::Window);
        let summary = &mut self.table.summary;
        summary.completed = true;
        summary.recovery_rtts = (self.now - self.entered_at) as f64 / self.ticks_per_rtt as f64;
        summary.pipe_at_exit = pipe;
        summary.cwnd_before_exit = before;
        summary.cwnd_after_exit = self.cwnd;
        summary.burst_at_exit = sent;
    }

    /// Send as permitted while pipe < cwnd (RFC 6675 §5 step C), and complete the row. Return the number of segments
    /// sent.
    fn transmit(&mut self, mut row: IdealRow, permit: Permit) -> u32 {
        let mut pipe = row.pipe;
        let mut forced = permit == Permit::WindowAfterFirst;
        while forced || (permit != Permit::Nothing && pipe < self.cwnd) {
            let Some(next) = self.next_seg() else { break };
            match next {
                Next::New => {
                    self.send_new();
                    row.sent_new += 1;
                }
                Next::Retransmit(segment) | Next::Rescue(segment) => {
                    self.retransmit(next, segment);
                    row.sent_retransmissions += 1;
                }
            }
            if self.state == CaState::Recovery {
                self.rule.on_sent(1);
            }
            pipe += 1;
            forced = false;
        }
        let sent = row.sent_new + row.sent_retransmissions;
        row.sent = sent_string(row.sent_new, row.sent_retransmissions);
        row.state = self.state;
        row.cwnd = self.cwnd;
        row.ssthresh = self.ssthresh;
        self.table.rows.push(row);
        sent
    }

    fn retransmit(&mut self, kind: Next, segment: u32) {
        if kind == Next::Rescue(segment) {
            self.rescue_rxt = Some(self.recovery_point);
        } else {
            self.high_rxt = segment + 1;
            self.rescue_rxt.get_or_insert(segment + 1);
        }
        self.table.summary.retransmissions += 1;
        self.launch(segment, true);
    }

    fn send_new(&mut self) {
        self.segments.push(Segment::default());
        self.launch(self.snd_nxt() - 1, false);
    }

    fn launch(&mut self, segment: u32, retransmission: bool) {
        let transmission = self.transmissions;
        self.transmissions += 1;
        if retransmission || !self.config.lost.contains(&segment) {
            let arrival = self.now + self.ticks_per_rtt;
            self.path.push_back(Flight { arrival, transmission, segment, retransmission });
        }
    }

    fn snd_nxt(&self) -> u32 {
        self.segments.len() as u32
    }

    /// Update the scoreboard from the receiver's state. Return the number of segments newly acknowledged cumulatively
    /// (not SACKed before) and newly SACKed.
    fn update_scoreboard(&mut self) -> (u32, u32) {
        let (mut acked, mut sacked) = (0, 0);
        while self.segments.get(self.snd_una as usize).is_some_and(|s| s.received) {
            acked += u32::from(!self.segments[self.snd_una as usize].sacked);
            self.snd_una += 1;
        }
        for s in &mut self.segments[self.snd_una as usize..] {
            sacked += u32::from(s.received && !s.sacked);
            s.sacked = s.received;
        }
        (acked, sacked)
    }

    /// RFC 6675 IsLost for whole segments: at least DupThresh segments above are SACKed. Return the number newly marked
    /// lost.
    fn mark_lost(&mut self) -> u32 {
        let (mut above, mut newly) = (0, 0);
        for s in self.segments[self.snd_una as usize..].iter_mut().rev() {
            if s.sacked {
                above += 1;
            } else if above >= DUP_THRESH && !s.lost {
                s.lost = true;
                newly += 1;
            }
        }
        newly
    }

    /// RFC 6675 §5 steps 1 and 2.
    fn must_recover(&self) -> bool {
        let head_lost = self.segments.get(self.snd_una as usize).is_some_and(|s| s.lost);
        self.dup_acks >= DUP_THRESH || head_lost
    }

    /// RFC 6675 SetPipe.
    fn pipe(&self) -> u32 {
        let una = self.snd_una as usize;
        let outstanding = self.segments.iter().enumerate().skip(una).filter(|(_, s)| !s.sacked);
        outstanding.map(|(i, s)| u32::from(!s.lost) + u32::from((i as u32) < self.high_rxt)).sum()
    }

    /// RFC 6675 NextSeg, rules 1 to 4. Outside recovery, only new data.
    fn next_seg(&self) -> Option<Next> {
        let recovering = self.state == CaState::Recovery;
        let hole = |lost_only: bool| {
            let highest_sacked = self.segments.iter().rposition(|s| s.sacked)?;
            (self.high_rxt..highest_sacked as u32).find(|&s| {
                let segment = self.segments[s as usize];
                !segment.sacked && (segment.lost || !lost_only)
            })
        };
        if recovering {
            if let Some(s) = hole(true) {
                return Some(Next::Retransmit(s));
            }
        }
        if self.config.more_data {
            return Some(Next::New);
        }
        if !recovering {
            return None;
        }
        if let Some(s) = hole(false) {
            return Some(Next::Retransmit(s));
        }
        if self.rescue_rxt.is_some_and(|r| self.snd_una <= r) {
            return None;
        }
        (self.snd_una..self.snd_nxt()).rev().find(|&s| !self.segments[s as usize].sacked).map(Next::Rescue)
    }

    /// Return the terms of the reduction bound that are equal to sndcnt; empty if sndcnt is 0, as in the tables.
    fn bound_terms(&self, ack: &RecoveryAck, vars: &RuleVars) -> String {
        let mut terms = String::new();
        let Rule::Prr(prr) = &self.rule else { return terms };
        if vars.branch != Branch::Bound || vars.sndcnt == 0 {
            return terms;
        }
        let safe_ack = ack.una_advanced && ack.newly_lost == 0;
        let (plus, delivered_counts) = match prr.params.bound {
            PrrBound::Ub => (None, false),
            PrrBound::Crb => (Some(0), false),
            PrrBound::Ssrb => (Some(1), true),
            PrrBound::SafeAck => (Some(u32::from(safe_ack)), true),
        };
        if vars.sndcnt == ack.ssthresh - ack.pipe {
            terms.push('s');
        }
        let Some(plus) = plus else { return terms };
        if vars.sndcnt == vars.prr_delivered.saturating_sub(vars.prr_out) + plus {
            terms.push('b');
        }
        if delivered_counts && vars.sndcnt == ack.delivered + plus {
            terms.push('d');
        }
        terms
    }
}

/// Format the segments sent as in the published tables.
pub(super) fn sent_string(new: u32, retransmitted: u32) -> String {
    let count = |n: u32, letter: &str| match n {
        0 => String::new(),
        1 => letter.to_string(),
        _ => format!("{n}{letter}"),
    };
    match (retransmitted, new) {
        (0, 0) => "·".to_string(),
        (0, n) => count(n, "N"),
        (r, 0) => count(r, "R"),
        (r, n) => format!("{}+{}", count(r, "R"), count(n, "N")),
    }
}
