//! Socket calls: return times and return values.

use ackclock_core::{Span, Time};

use super::{clock, fail, unsupported, Machine, Player, Stop, PATIENCE, START};
use crate::ast::{Call, Expr, When};

/// Result of a call: a number, or the name of an error.
pub type Answer = Result<i64, &'static str>;

/// A call that blocks.
pub struct Blocking {
    line: u32,
    call: Call,
    /// Time at which the call must return.
    until: Time,
    /// Time at which the call was made.
    began: Time,
}

impl<M: Machine> Player<'_, M> {
    pub(super) fn call(&mut self, line: u32, call: &Call, time: When) -> Result<(), Stop> {
        let began = self.machine.now();
        match self.machine.call(line, call)? {
            Some(answer) => {
                if let Some(until) = call.until {
                    self.returned_in_time(line, call, self.until(time, until, began), began)?;
                }
                returned(line, call, answer)
            }
            None => {
                let Some(until) = call.until else {
                    return fail(line, call, "the call blocks");
                };
                let until = self.until(time, until, began);
                self.pending = Some(Blocking { line, call: call.clone(), until, began });
                Ok(())
            }
        }
    }

    fn until(&self, time: When, until: Span, began: Time) -> Time {
        match time {
            When::At(_) => START + until,
            When::After(after) => began + (until - after),
            _ => began,
        }
    }

    fn returned_in_time(&mut self, line: u32, call: &Call, until: Time, began: Time) -> Result<(), Stop> {
        let now = self.machine.now();
        let off = now.since(until).max(until.since(now));
        let share = until.since(began).0 / 1000 * self.options.tolerance_permille as u64;
        if off > self.options.tolerance.max(Span(share)) {
            return fail(line, format!("{call} returns at {}", clock(until)), format!("at {}", clock(now)));
        }
        self.deviation = self.deviation.max(off);
        Ok(())
    }

    /// Check whether the blocking call has returned.
    pub(super) fn poll_call(&mut self) -> Result<(), Stop> {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        match self.machine.answer(pending.line, &pending.call)? {
            Some(answer) => {
                self.returned_in_time(pending.line, &pending.call, pending.until, pending.began)?;
                returned(pending.line, &pending.call, answer)
            }
            None => {
                self.pending = Some(pending);
                Ok(())
            }
        }
    }

    /// Wait until the blocking call has returned.
    pub(super) fn finish_call(&mut self) -> Result<(), Stop> {
        while let Some(pending) = &self.pending {
            let (give_up, line) = (pending.until.max(self.machine.now()) + PATIENCE, pending.line);
            let shown = format!("{} returns at {}", pending.call, clock(pending.until));
            while self.pending.is_some()
                && self.machine.now() < give_up
                && self.machine.tap().sent <= super::MAX_PACKETS
            {
                self.step(give_up)?;
            }
            if self.pending.is_some() {
                return fail(line, shown, "still blocked");
            }
        }
        self.finished = self.finished.max(self.machine.now());
        Ok(())
    }
}

/// Compare the result of a call with the script.
fn returned(line: u32, call: &Call, answer: Answer) -> Result<(), Stop> {
    let agrees = match (&answer, &call.errno) {
        (Err(error), Some(wanted)) => error == wanted || (*error == "EAGAIN" && wanted == "EWOULDBLOCK"),
        (Err(_), None) => call.result == Expr::Int(-1),
        (Ok(_), Some(_)) => false,
        (Ok(n), None) => match &call.result {
            Expr::Ellipsis => true,
            Expr::Word(_) | Expr::Or(_) => return unsupported(line, "a result in words"),
            result => result.number() == Some(*n),
        },
    };
    match (agrees, answer) {
        (true, _) => Ok(()),
        (false, Ok(n)) => fail(line, call, format!("it returned {n}")),
        (false, Err(error)) => fail(line, call, format!("it returned -1 {error}")),
    }
}
