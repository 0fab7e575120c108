//! Trace of a sender: a record for each ACK and each segment, episodes of recovery, and the controller's
//! variables. This file reads the sender and changes nothing else.

use ackclock_core::trace::{Event, ExitCause, RecoverySummary};
use ackclock_core::{FlowId, Segment, Span, Time};

use super::plain::Reasons;
use super::record::Record;
use super::{AckWork, Prior, Sender, VarsTrace};
use crate::scoreboard::Marked;

/// Trace of one sender.
#[derive(Clone)]
pub struct Trace {
    flow: FlowId,
    responder: bool,
    /// The latest recovery episode has not ended.
    under_way: bool,
    /// Segments sent since the last ACK or timer.
    burst: u32,
    /// Record of each ACK and each segment; `None` unless requested.
    #[allow(clippy::box_collection, reason = "a word for each sender, and few have one")]
    records: Option<Box<Vec<Record>>>,
    /// The controller's variables; `None` unless requested.
    pub vars: Option<Box<VarsTrace>>,
    /// Latest recovery episode, linked to the earlier ones. Most flows have at most two.
    latest: Option<Box<Episode>>,
}

/// A recovery episode.
#[derive(Clone)]
struct Episode {
    summary: RecoverySummary,
    before: Option<Box<Episode>>,
}

impl Drop for Trace {
    /// Drop episodes one by one: a recursive drop of many could exceed the stack.
    fn drop(&mut self) {
        let mut next = self.latest.take();
        while let Some(mut episode) = next {
            next = episode.before.take();
        }
    }
}

impl Trace {
    pub(super) fn new(flow: FlowId, responder: bool) -> Trace {
        Trace { flow, responder, under_way: false, burst: 0, records: None, vars: None, latest: None }
    }

    /// Flow, and whether the sender belongs to the responder.
    pub(super) fn whose(&self) -> (FlowId, bool) {
        (self.flow, self.responder)
    }

    /// Whether records are written.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.records.is_some()
    }

    /// Return the records since the last call.
    pub fn take_records(&mut self) -> Vec<Record> {
        self.records.as_deref_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Return the episodes that have ended since the last call.
    pub fn take_recoveries(&mut self) -> Vec<RecoverySummary> {
        let mut next = match &mut self.latest {
            Some(latest) if self.under_way => latest.before.take(),
            latest => latest.take(),
        };
        let mut ended = Vec::new();
        while let Some(episode) = next {
            ended.push(episode.summary);
            next = episode.before;
        }
        ended.reverse();
        ended
    }

    /// Current recovery episode; `None` outside of recovery.
    #[inline]
    fn episode(&mut self) -> Option<&mut RecoverySummary> {
        match &mut self.latest {
            Some(latest) if self.under_way => Some(&mut latest.summary),
            _ => None,
        }
    }

    /// Count a segment marked lost.
    pub(super) fn marked(&mut self, marked: Marked) {
        if let Some(e) = self.episode() {
            e.losses += (marked == Marked::Lost) as u32;
            e.lost_retransmits += (marked == Marked::LostAgain) as u32;
        }
    }

    /// Count sent segments.
    #[inline]
    pub(super) fn sent(&mut self, segments: u32) {
        self.burst += segments;
        let burst = self.burst;
        if let Some(e) = self.episode() {
            e.max_burst = e.max_burst.max(burst);
        }
    }

    /// Count a retransmission in the current episode.
    pub(super) fn sent_again(&mut self) {
        if let Some(e) = self.episode() {
            e.retransmits += 1;
        }
    }

    /// Count an ACK, which ends the burst.
    #[inline]
    pub(super) fn ack_done(&mut self) {
        self.burst = 0;
        if let Some(e) = self.episode() {
            e.acks += 1;
        }
    }

    /// End the burst because a timer expired.
    pub(super) fn burst_over(&mut self) {
        self.burst = 0;
    }
}

impl Sender {
    /// Record the controller's variables: one row per ACK, but at most one per `interval`.
    pub fn trace_vars(&mut self, interval: Span) {
        self.trace.vars =
            Some(Box::new(VarsTrace::new(self.config.sending.controller.needs().vars, interval)));
    }

    /// Switch records on or off.
    pub(crate) fn set_trace(&mut self, on: bool) {
        self.trace.records = on.then(Box::default);
        self.reasons.set(Reasons::TRACED, on);
    }

    #[cold]
    pub(super) fn record(&mut self, now: Time, event: Event, seq: u64, len: u32, n: u64) {
        let mut r = self.record_of(now, event);
        r.event.seq = seq;
        r.event.len = len;
        if matches!(event, Event::Send | Event::Rtx | Event::Tlp) {
            r.event.seg_no = (n + 1) as u32;
            r.event.rexmit = self.board.get(n).rexmit;
        }
        let goes_on = self.queue.as_ref().is_some_and(|q| q.packet_start < seq && seq < q.packet_end);
        if let Some(records) = &mut self.trace.records {
            match records.last_mut() {
                // The segments of one packet share a record.
                Some(Record { event: last, .. })
                    if goes_on && (last.t, last.kind, last.seq + last.len as u64) == (now, event, seq) =>
                {
                    last.len += len
                }
                _ => records.push(r),
            }
        }
    }

    #[cold]
    pub(super) fn record_ack(&mut self, now: Time, seg: &Segment, prior: Prior, w: &AckWork) {
        let r = self.record_of_ack(now, seg, prior, w);
        if let Some(records) = &mut self.trace.records {
            records.push(r);
        }
    }

    /// Start a recovery episode. `pipe` and `cwnd` are the values before it.
    pub(super) fn begin_episode(&mut self, now: Time, pipe: u32, cwnd: u32) {
        let summary = RecoverySummary {
            flow: self.trace.flow,
            responder: self.trace.responder,
            t_enter: now,
            t_exit: now,
            pipe_enter: pipe,
            ssthresh: self.window.ssthresh,
            cwnd_enter: cwnd,
            losses: self.board.lost_out,
            retransmits: 0,
            lost_retransmits: 0,
            max_burst: 0,
            acks: 0,
            cwnd_before_exit: 0,
            cwnd_after_exit: 0,
            pipe_exit: 0,
            srtt: self.rtt.srtt(),
            cause: ExitCause::RunEnd,
        };
        let earlier = self.trace.latest.take();
        self.trace.latest = Some(match earlier {
            Some(given_up) if self.trace.under_way => Box::new(Episode { summary, before: given_up.before }),
            before => Box::new(Episode { summary, before }),
        });
        self.trace.under_way = true;
    }

    /// End the current recovery episode.
    pub(super) fn finish_episode(&mut self, now: Time, cwnd_before: u32, cause: ExitCause) {
        let (cwnd, pipe) = (self.window.cwnd, self.board.pipe());
        let Some(e) = self.trace.episode() else { return };
        e.t_exit = now;
        e.cwnd_before_exit = cwnd_before;
        e.cwnd_after_exit = cwnd;
        e.pipe_exit = pipe;
        e.cause = cause;
        self.trace.under_way = false;
        if self.trace.is_on() {
            self.record(now, Event::Exit, self.snd_una, 0, 0);
        }
    }

    /// Close the episode in progress, if any, at the end of the run.
    pub fn finish(&mut self, now: Time) {
        self.finish_episode(now, self.window.cwnd, ExitCause::RunEnd);
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::config::Config;

    fn sender() -> Sender {
        Sender::new(7, false, &Rc::new(Config::profile("linux-6").expect("known")))
    }

    /// Record an episode that begins at `from` and, if given, ends at `to`.
    fn episode(sender: &mut Sender, from: u64, to: Option<u64>) {
        sender.begin_episode(Time(from), 10, 20);
        if let Some(to) = to {
            sender.finish_episode(Time(to), 15, ExitCause::FullAck);
        }
    }

    fn taken(sender: &mut Sender) -> Vec<(u64, u64, ExitCause)> {
        sender.trace.take_recoveries().iter().map(|e| (e.t_enter.0, e.t_exit.0, e.cause)).collect()
    }

    #[test]
    fn episodes_are_told_once_in_order_and_the_one_under_way_later() {
        let mut sender = sender();
        assert_eq!(taken(&mut sender), []);
        episode(&mut sender, 1, Some(2));
        episode(&mut sender, 3, Some(4));
        episode(&mut sender, 5, None);
        sender.trace.ack_done();
        sender.trace.sent_again();
        let full = ExitCause::FullAck;
        assert_eq!(taken(&mut sender), [(1, 2, full), (3, 4, full)]);
        assert_eq!(taken(&mut sender), []);
        sender.trace.ack_done();
        sender.finish(Time(9));
        let ended = sender.trace.take_recoveries();
        assert_eq!((ended.len(), ended[0].t_enter, ended[0].t_exit), (1, Time(5), Time(9)));
        assert_eq!((ended[0].acks, ended[0].retransmits, ended[0].cause), (2, 1, ExitCause::RunEnd));
        sender.finish(Time(10));
        assert_eq!(taken(&mut sender), [], "none was under way");
    }

    #[test]
    fn an_episode_that_is_given_up_is_none_and_those_before_it_stay() {
        let mut sender = sender();
        episode(&mut sender, 1, Some(2));
        episode(&mut sender, 3, None);
        episode(&mut sender, 5, Some(6));
        let full = ExitCause::FullAck;
        assert_eq!(taken(&mut sender), [(1, 2, full), (5, 6, full)]);
    }

    #[test]
    fn a_chain_longer_than_a_stack_is_deep_goes() {
        let mut sender = sender();
        (0..300_000).for_each(|t| episode(&mut sender, t, Some(t)));
        drop(sender);
        let mut sender = self::sender();
        (0..300_000).for_each(|t| episode(&mut sender, t, Some(t)));
        assert_eq!(taken(&mut sender).len(), 300_000);
    }
}
