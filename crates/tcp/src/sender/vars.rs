//! Trace of the controller's own variables. This file reads the controller and changes nothing else.

use ackclock_cc::controller::MAX_VARS;
use ackclock_cc::{CongestionControl, Controller, Window};
use ackclock_core::{Span, Time};

/// One row of the trace.
#[derive(Clone, Copy, Debug)]
pub struct VarsRow {
    /// Time of the row.
    pub t: Time,
    /// ACKs received so far, including this row's.
    pub ack_no: u32,
    /// cwnd after the ACK, segments.
    pub cwnd: u32,
    /// ssthresh after the ACK, segments.
    pub ssthresh: u32,
    /// Pacing rate after the ACK, bytes/s.
    pub pacing_rate: u64,
    /// Values of the variables, in the order of `names`; NaN: unknown.
    pub values: [f64; MAX_VARS],
}

/// Controller trace of one sender.
#[derive(Clone, Debug)]
pub struct VarsTrace {
    /// Variable names.
    pub names: &'static [&'static str],
    /// Rows so far.
    pub rows: Vec<VarsRow>,
    interval: Span,
    next: Time,
}

impl VarsTrace {
    pub(super) fn new(names: &'static [&'static str], interval: Span) -> VarsTrace {
        VarsTrace { names, rows: Vec::new(), interval, next: Time::ZERO }
    }

    #[cold]
    pub(super) fn record(&mut self, now: Time, ack_no: u32, window: &Window, cc: &Controller) {
        if now < self.next {
            return;
        }
        self.next = now + self.interval;
        let mut values = [f64::NAN; MAX_VARS];
        cc.vars(&mut values[..self.names.len().min(MAX_VARS)]);
        let &Window { cwnd, ssthresh, pacing_rate, .. } = window;
        self.rows.push(VarsRow { t: now, ack_no, cwnd, ssthresh, pacing_rate, values });
    }
}
