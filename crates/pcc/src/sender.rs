//! Sending end: numbers and paces datagrams, determines from reports which ones arrived or were lost, passes the
//! results of intervals to the controller, and sends at the controller's rate.
//!
//! A loss does not by itself change the rate: the piece is retransmitted before new data, at the same pace (NSDI 2015).
//!
//! Length: pacing, loss and intervals share the numbers of the datagrams; cut apart, each would need most of the others.

use std::collections::VecDeque;

use ackclock_core::datagram::{Data, DataKind, Datagram, DatagramEndpoint, Report};
use ackclock_core::{HostPacing, Span, Time};

use crate::config::Config;
use crate::control::{Controller, PathView};
use crate::interval::{Intervals, Measured};
use crate::pieces::Outgoing;
use crate::request::{FIRST_WAIT, TRIES};

/// Cumulative counters.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Number of data datagrams sent, retransmissions included.
    pub sent: u64,
    /// Payload bytes sent, retransmissions included.
    pub sent_bytes: u64,
    /// Number of data datagrams that were retransmissions.
    pub retransmissions: u64,
    /// Number of datagrams considered lost.
    pub lost: u64,
    /// Number of reports received.
    pub reports: u64,
    /// Number of times that datagrams were considered lost because no report arrived in time.
    pub timeouts: u64,
    /// Number of monitor intervals with a result.
    pub intervals: u64,
    /// Sum of the RTT samples, ns.
    pub rtt_sum_ns: u128,
    /// Number of RTT samples.
    pub rtt_samples: u64,
    /// Minimum RTT; `Span::MAX` before the first sample.
    pub min_rtt: Span,
}

/// Row of the monitor-interval table.
#[derive(Clone, Copy, Debug)]
pub struct IntervalRow {
    /// Measurements made in the interval.
    pub measured: Measured,
    /// Utility of the interval; NaN if it was not evaluated.
    pub utility: f64,
    /// Controller state.
    pub state: &'static str,
}

/// Sending end of a flow.
#[derive(Clone)]
pub struct Sender {
    config: Config,
    controller: Controller,
    pieces: Outgoing,
    /// Total number of bytes to send; `u64::MAX` for an endless stream.
    written: u64,
    taken: u64,
    /// Total number of bytes requested by the peer.
    asked: u64,
    closing: bool,
    /// Whether the end of the stream has been sent.
    ended: bool,
    /// Datagrams sent, from the oldest one that is neither acknowledged nor considered lost.
    ring: VecDeque<Sent>,
    base: u64,
    outstanding: u32,
    intervals: Intervals,
    interval_end: Time,
    spacing: Span,
    /// Scheduled departure of the next datagram; the pacer decides when it is sent.
    due: Time,
    /// Scheduled departure of the last datagram sent.
    last_due: Time,
    /// Whether there was nothing to send at the last scheduled departure.
    idle: bool,
    /// Piece at which the retransmission of unacknowledged data resumes.
    cursor: u64,
    connecting: bool,
    established: bool,
    hello_due: bool,
    hello_tries: u32,
    /// Time at which the oldest outstanding datagram is considered lost or, while connecting, the hello is repeated.
    timeout: Time,
    /// Number below which all unreported datagrams have been considered lost after a timeout, and the transmission
    /// time of the last of them.
    given_up: (u64, Time),
    srtt: Span,
    rttvar: Span,
    failed: Option<String>,
    stats: Stats,
    rows: Option<Vec<IntervalRow>>,
}

#[derive(Clone, Copy)]
struct Sent {
    at: Time,
    piece: u64,
    interval: u32,
    open: bool,
}

impl Sender {
    /// Reason why the sender cannot be copied; `None` if it can.
    pub fn cannot_copy(&self) -> Option<String> {
        self.controller.cannot_copy()
    }

    /// Create an unconnected sender.
    pub fn new(config: Config, controller: Controller) -> Sender {
        Sender {
            controller,
            pieces: Outgoing::default(),
            written: 0,
            taken: 0,
            asked: 0,
            closing: false,
            ended: false,
            ring: VecDeque::new(),
            base: 0,
            outstanding: 0,
            intervals: Intervals::default(),
            interval_end: Time::ZERO,
            spacing: Span::ZERO,
            due: Time::ZERO,
            last_due: Time::ZERO,
            idle: true,
            cursor: 0,
            connecting: false,
            established: false,
            hello_due: false,
            hello_tries: 0,
            timeout: Time::NEVER,
            given_up: (0, Time::ZERO),
            srtt: config.initial_rtt,
            rttvar: config.initial_rtt / 2,
            failed: None,
            stats: Stats { min_rtt: Span::MAX, ..Stats::default() },
            rows: None,
            config,
        }
    }

    /// Start connecting: send a hello. Data follows once a reply to the hello has arrived.
    pub fn connect(&mut self, _now: Time) {
        self.connecting = true;
        self.hello_due = true;
    }
    /// Make `bytes` more bytes available.
    pub fn write(&mut self, now: Time, bytes: u64) {
        if now > self.due && !self.has_something() {
            self.run_dry(); // no datagram has been polled since the last one, and the gap after it has passed
        }
        self.written = self.written.saturating_add(bytes);
    }
    /// Make an endless amount of data available.
    pub fn write_forever(&mut self) {
        self.written = u64::MAX;
    }
    /// Send no new data from now on.
    pub fn stop_writing(&mut self) {
        self.written = self.taken;
    }
    /// End the stream after the data written so far.
    pub fn close(&mut self) {
        self.closing = true;
    }
    /// Set how the host catches up after late transmissions.
    pub fn set_pacer(&mut self, pacer: HostPacing) {
        self.config.pacer = pacer;
    }
    /// Start or stop recording a row for each monitor interval.
    pub fn set_trace(&mut self, on: bool) {
        self.rows = on.then(Vec::new);
    }
    /// Return and clear the rows recorded so far.
    pub fn take_rows(&mut self) -> Vec<IntervalRow> {
        self.rows.as_mut().map(std::mem::take).unwrap_or_default()
    }
    /// Whether the other end has replied.
    pub fn is_established(&self) -> bool {
        self.established
    }
    /// Payload bytes cumulatively acknowledged.
    pub fn acked(&self) -> u64 {
        self.pieces.acked()
    }
    /// Total number of bytes requested by the peer.
    pub fn asked(&self) -> u64 {
        self.asked
    }
    /// Whether the stream is closed and everything is acknowledged, or the flow has failed.
    pub fn is_done(&self) -> bool {
        self.failed.is_some() || self.closing && self.ended && self.pieces.is_empty()
    }
    /// Reason for the flow's failure: no response, or an error in the utility function.
    pub fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }
    /// Cumulative counters.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
    /// Current rate, bit/s of IP packets.
    pub fn rate(&self) -> f64 {
        self.controller.rate()
    }
    /// Smoothed RTT.
    pub fn srtt(&self) -> Span {
        self.srtt
    }
    /// Number of outstanding datagrams.
    pub fn in_flight(&self) -> u32 {
        self.outstanding
    }

    /// Whether there is a datagram to send.
    #[inline]
    fn has_something(&self) -> bool {
        self.taken < self.written
            || self.closing && !self.ended
            || self.pieces.has_losses()
            || self.config.fills_up && !self.pieces.is_empty()
    }

    /// Choose the next piece to send. Return its number, length and kind, and how many times it has already been sent.
    #[inline]
    fn choose(&mut self) -> Option<(u64, u32, DataKind, u8)> {
        if let Some(number) = self.pieces.take_again() {
            return Some(self.repeated(number));
        }
        if self.taken < self.written {
            let len = (self.written - self.taken).min(self.config.payload as u64) as u32;
            self.taken += len as u64;
            let last = self.closing && self.taken == self.written;
            self.ended = last;
            let kind = if last { DataKind::Last } else { DataKind::Payload };
            return Some((self.pieces.push(len, last), len, kind, 0));
        }
        if self.closing && !self.ended {
            self.ended = true;
            return Some((self.pieces.push(0, true), 0, DataKind::Close, 0));
        }
        if self.config.fills_up {
            let number = self.pieces.unacknowledged(self.cursor)?;
            self.cursor = number + 1;
            return Some(self.repeated(number));
        }
        None
    }

    fn repeated(&mut self, number: u64) -> (u64, u32, DataKind, u8) {
        let piece = self.pieces.get(number).expect("invariant: not acknowledged");
        piece.rexmit = piece.rexmit.saturating_add(1);
        let kind = match (piece.last, piece.len) {
            (true, 0) => DataKind::Close,
            (true, _) => DataKind::Last,
            _ => DataKind::Payload,
        };
        (number, piece.len, kind, piece.rexmit)
    }

    fn path(&self, now: Time) -> PathView {
        let min_rtt = if self.stats.min_rtt == Span::MAX { self.srtt } else { self.stats.min_rtt };
        PathView { now, srtt: self.srtt, min_rtt, packet_bytes: self.config.packet_bytes() }
    }

    #[inline(never)]
    fn begin_interval(&mut self, now: Time) {
        let plan = self.controller.begin(&self.path(now));
        self.spacing = spacing(plan.rate, self.config.packet_bytes());
        self.interval_end = now + plan.length;
        self.intervals.begin(now, plan.rate, plan.purpose);
    }

    /// Record that there is nothing to send.
    fn run_dry(&mut self) {
        if !std::mem::replace(&mut self.idle, true) {
            if let Some(interval) = self.intervals.current() {
                interval.limited = true;
            }
        }
    }

    /// Resume after an idle period in which everything sent has been accounted for. The interval in which the data
    /// ran out ended with its data, and its result is passed to the controller before the next interval is planned.
    #[inline(never)]
    fn resume(&mut self, now: Time) {
        if self.intervals.current().is_some_and(|interval| interval.limited) {
            self.intervals.finish(self.due.min(now));
            self.interval_end = Time::ZERO;
            self.take_results(now);
        }
    }

    #[inline]
    fn track(&mut self, at: Time, piece: u64, interval: u32) -> u64 {
        self.ring.push_back(Sent { at, piece, interval, open: true });
        self.outstanding += 1;
        self.base + self.ring.len() as u64 - 1
    }

    fn on_report(&mut self, now: Time, report: &Report) {
        let end = self.base + self.ring.len() as u64;
        if report.largest >= end {
            return; // the report refers to a datagram that was never sent
        }
        self.stats.reports += 1;
        let mut sample = None;
        if let Some(i) = report.largest.checked_sub(self.base) {
            let sent = self.ring[i as usize];
            if sent.open {
                let rtt = now.since(sent.at).saturating_sub(report.held);
                self.on_rtt(rtt);
                sample = Some(rtt);
            }
        } else if report.largest < self.given_up.0 {
            // The datagram arrived after all, and was sent no later than the last one considered lost, which gives a
            // lower bound on its RTT. Without this sample, a path whose RTT rises beyond the timeout would never
            // yield a sample again, and all datagrams would be considered lost.
            self.smooth(now.since(self.given_up.1).saturating_sub(report.held));
        }
        if self.connecting {
            self.connecting = false;
            self.established = true;
            self.due = now;
            self.idle = true;
        }
        self.pieces.on_cumulative(report.next_chunk);
        let blocked = self.outstanding >= self.config.window;
        // open entries are within the reordering tolerance of the largest number: a few entries, not a window
        for number in self.base..=report.largest {
            let entry = &mut self.ring[(number - self.base) as usize];
            if !entry.open {
                continue;
            }
            let Sent { at, piece, interval, .. } = *entry;
            let below = report.largest - number;
            if below == 0 || arrived(report, below - 1) {
                entry.open = false;
                self.outstanding -= 1;
                let rtt = if below == 0 { sample } else { None };
                self.intervals.on_acked(interval, at, rtt);
                self.pieces.on_delivered(piece);
            } else if below >= self.config.reordering as u64 {
                entry.open = false;
                self.on_lost(interval, piece);
            }
        }
        self.forget();
        if blocked && self.outstanding < self.config.window {
            self.due = self.due.max(now);
            self.idle = true;
        }
        self.arm_timeout();
        self.take_results(now);
    }

    #[inline]
    fn on_lost(&mut self, interval: u32, piece: u64) {
        self.outstanding -= 1;
        self.stats.lost += (interval != HELLO) as u64;
        self.intervals.on_lost(interval);
        self.pieces.on_lost(piece);
    }

    #[inline]
    fn forget(&mut self) {
        while self.ring.front().is_some_and(|sent| !sent.open) {
            self.ring.pop_front();
            self.base += 1;
        }
    }

    #[inline]
    fn take_results(&mut self, now: Time) {
        let mut changed = false;
        while let Some((measured, purpose)) = self.intervals.take_result(now, self.config.nominal) {
            self.stats.intervals += 1;
            match self.controller.on_result(&measured, purpose) {
                Ok(verdict) => {
                    changed |= verdict.changed;
                    if let Some(rows) = &mut self.rows {
                        rows.push(IntervalRow { measured, utility: verdict.utility, state: verdict.state });
                    }
                }
                Err(why) => {
                    self.failed = Some(why);
                    self.due = Time::NEVER;
                    return;
                }
            }
        }
        if changed {
            // end the current interval; a new one begins with the next datagram, one inter-packet gap at the new rate
            // after the last
            self.interval_end = Time::ZERO;
            if !self.idle {
                let apart = spacing(self.controller.rate(), self.config.packet_bytes());
                let earliest = Time(now.0.saturating_sub(self.config.pacer.tick.0));
                self.due = (self.last_due + apart).max(earliest);
            }
        }
    }

    /// Smooth the RTT as in RFC 6298.
    fn smooth(&mut self, rtt: Span) {
        let error = self.srtt.0.abs_diff(rtt.0);
        self.rttvar = Span((3 * self.rttvar.0 + error) / 4);
        self.srtt = Span((7 * self.srtt.0 + rtt.0) / 8);
    }

    fn on_rtt(&mut self, rtt: Span) {
        if self.stats.rtt_samples == 0 {
            (self.srtt, self.rttvar) = (rtt, rtt / 2);
        } else {
            self.smooth(rtt);
        }
        let stats = &mut self.stats;
        stats.rtt_sum_ns += rtt.0 as u128;
        stats.rtt_samples += 1;
        stats.min_rtt = stats.min_rtt.min(rtt);
    }

    /// Age beyond which an unreported datagram is considered lost.
    fn patience(&self) -> Span {
        (self.srtt + self.rttvar * 4).max(self.srtt * 2) + self.config.feedback.flush
    }

    #[inline]
    fn arm_timeout(&mut self) {
        self.timeout = self.ring.front().map_or(Time::NEVER, |oldest| oldest.at + self.patience());
    }

    /// Consider datagrams without a report lost once they are too old. Younger datagrams may still arrive, and
    /// counting them would charge the interval with losses that did not occur.
    fn on_silence(&mut self, now: Time) {
        let patience = self.patience();
        let blocked = self.outstanding >= self.config.window;
        let mut given_up = None;
        while let Some(&Sent { at, piece, interval, open }) = self.ring.front() {
            if open && at + patience > now {
                break;
            }
            if open {
                given_up = Some(at);
                self.on_lost(interval, piece);
            }
            self.ring.pop_front();
            self.base += 1;
        }
        if let Some(at) = given_up {
            self.stats.timeouts += 1;
            self.given_up = (self.base, at);
        }
        self.arm_timeout();
        if self.idle || blocked {
            self.due = self.due.max(now);
            self.idle = true;
            // end the interval here, because there is no further transmission to end it
            self.intervals.finish(now);
            self.interval_end = Time::ZERO;
        }
        self.take_results(now);
    }
}

impl DatagramEndpoint for Sender {
    #[inline]
    fn on_packet(&mut self, now: Time, datagram: &Datagram) {
        match datagram {
            Datagram::Report(report) if self.failed.is_none() => self.on_report(now, report),
            Datagram::Data(Data { kind: DataKind::Request, chunk, .. }) => {
                self.asked = self.asked.max(*chunk)
            }
            _ => {}
        }
    }

    fn on_timer(&mut self, now: Time) {
        if now < self.timeout {
            return;
        }
        if self.connecting {
            if self.hello_tries >= TRIES {
                self.failed = Some(format!("no answer to {TRIES} attempts to connect"));
                self.timeout = Time::NEVER;
                return;
            }
            self.hello_due = true;
        } else {
            self.on_silence(now);
        }
    }

    #[inline]
    fn poll_transmit(&mut self, now: Time) -> Option<Datagram> {
        if !self.established {
            return self.hello(now);
        }
        if now < self.config.pacer.release(self.due)
            || self.outstanding >= self.config.window
            || self.failed.is_some()
        {
            return None;
        }
        let Some((chunk, len, kind, rexmit)) = self.choose() else {
            self.run_dry();
            return None;
        };
        if self.idle && self.outstanding == 0 {
            self.resume(now);
        }
        // intervals follow the schedule: a late transmission that is caught up counts as sent at the set rate
        let due = if self.idle { now } else { self.due };
        if due >= self.interval_end {
            self.begin_interval(due);
        }
        let header = self.config.header;
        let bytes = header + len + ackclock_core::datagram::UDP_IP_BYTES;
        let interval = match self.intervals.current() {
            Some(interval) => {
                interval.sent += 1;
                interval.bytes += bytes as u64;
                interval.limited |= self.idle && interval.sent > 1;
                interval.id
            }
            None => unreachable!("invariant: one has begun"),
        };
        let number = self.track(now, chunk, interval);
        let spacing = match bytes == self.config.packet_bytes() {
            true => self.spacing,
            false => {
                Span((self.spacing.0 as u128 * bytes as u128 / self.config.packet_bytes() as u128) as u64)
            }
        };
        self.due = self.config.pacer.following(due, now, spacing);
        self.idle = false;
        self.last_due = due;
        if self.timeout == Time::NEVER {
            self.timeout = now + self.patience();
        }
        self.stats.sent += 1;
        self.stats.sent_bytes += len as u64;
        self.stats.retransmissions += (rexmit > 0) as u64;
        Some(Datagram::Data(Data { number, chunk, sent: now, len, header: header as u16, rexmit, kind }))
    }

    #[inline]
    fn next_deadline(&self) -> Time {
        let sending = self.established
            && self.failed.is_none()
            && self.outstanding < self.config.window
            && self.has_something();
        if sending {
            self.config.pacer.release(self.due).min(self.timeout)
        } else {
            self.timeout
        }
    }
}

impl Sender {
    fn hello(&mut self, now: Time) -> Option<Datagram> {
        if !std::mem::take(&mut self.hello_due) {
            return None;
        }
        let number = self.track(now, u64::MAX, HELLO);
        self.timeout = now + (FIRST_WAIT * (1 << self.hello_tries.min(6)));
        self.hello_tries += 1;
        let header = self.config.header as u16;
        let kind = DataKind::Hello;
        Some(Datagram::Data(Data { number, sent: now, header, kind, ..Data::default() }))
    }
}

/// Inter-packet gap for datagrams of `bytes` at a rate, at least 1 ns.
fn spacing(rate: f64, bytes: u32) -> Span {
    Span(((bytes as f64 * 8e9 / rate + 0.5) as u64).max(1))
}

/// Return bit `i` of a report.
#[inline]
fn arrived(report: &Report, i: u64) -> bool {
    report.received.get((i / 64) as usize).is_some_and(|word| word >> (i % 64) & 1 == 1)
}

/// Interval number of hellos, which belong to no interval.
const HELLO: u32 = u32::MAX;
