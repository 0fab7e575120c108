//! Tap in front of the host: packets that it sent and no expectation took yet, the trace, and the numbers that the
//! script knows under other names.

use std::collections::VecDeque;

use ackclock_core::packet::Ecn;
use ackclock_core::Time;

use super::{fail, Stop, START};
use crate::ast::TcpPacket;
use crate::options::Options;

/// Lines of the trace that are kept.
const MAX_TRACE: usize = 10_000;

/// A packet that the host sent, in the words of the language.
#[derive(Clone, Debug)]
pub struct Captured {
    /// Time.
    pub at: Time,
    /// Numbers relative to each side's first.
    pub packet: TcpPacket,
    /// ECN field of its IP header.
    pub ecn: Ecn,
}

/// The place in front of the host.
#[derive(Debug, Default)]
pub struct Tap {
    /// Packets that no expectation took.
    pub queue: VecDeque<Captured>,
    /// All packets so far.
    pub sent: usize,
    /// A line per packet, in both directions.
    pub trace: Vec<String>,
    /// First numbers of both sides, as the script writes them in its SYNs: the host's, the peer's.
    pub first_numbers: (u32, u32),
    /// Timestamps: the script's, the host's.
    pub stamps: Vec<(u32, u32)>,
    /// First pair of these timestamps.
    pub first_stamp: Option<(u32, u32)>,
}

impl Tap {
    /// A connection begins: packets of the one before are forgotten.
    pub fn restart(&mut self) {
        self.queue.clear();
        self.stamps.clear();
        self.first_stamp = None;
        self.first_numbers.0 = 0;
    }

    /// The host sends.
    pub fn capture(&mut self, at: Time, packet: TcpPacket, ecn: Ecn) {
        self.note(at, '>', &packet);
        self.sent += 1;
        self.queue.push_back(Captured { at, packet, ecn });
    }

    /// A line for the trace.
    pub fn note(&mut self, at: Time, direction: char, packet: &TcpPacket) {
        if self.trace.len() < MAX_TRACE {
            let us = at.since(START).as_us();
            self.trace.push(format!("{}.{:06} {direction} {packet}", us / 1_000_000, us % 1_000_000));
        }
    }

    /// Return the host's timestamp that a script's echo means; `acks`: the packet has an ACK number.
    pub fn echoed(&self, line: u32, ecr: u32, acks: bool, options: &Options) -> Result<u32, Stop> {
        if !acks {
            return Ok(ecr);
        }
        match self.stamps.iter().rev().find(|(script, _)| *script == ecr) {
            Some((_, live)) => Ok(*live),
            None if options.ts_ecr_scaled => match self.first_stamp {
                Some((script, live)) => Ok(live.wrapping_add(ecr.wrapping_sub(script))),
                None => Ok(ecr),
            },
            None => fail(line, format!("the echo of a timestamp (ecr {ecr})"), "no packet carried it"),
        }
    }
}
