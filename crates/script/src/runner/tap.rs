//! Tap in front of the host: packets sent by the host and not yet consumed by an expectation, the trace, and the
//! mapping between the script's numbers and the host's.

use std::collections::VecDeque;

use ackclock_core::packet::Ecn;
use ackclock_core::Time;

use super::{fail, Stop, START};
use crate::ast::TcpPacket;
use crate::options::Options;

/// Maximum number of lines in the trace.
const MAX_TRACE: usize = 10_000;

/// Packet sent by the host, in script form.
#[derive(Clone, Debug)]
pub struct Captured {
    /// Time at which the packet was sent.
    pub at: Time,
    /// Packet, with sequence numbers relative to each side's initial one.
    pub packet: TcpPacket,
    /// ECN field of the IP header.
    pub ecn: Ecn,
}

/// Tap state.
#[derive(Debug, Default)]
pub struct Tap {
    /// Packets not yet consumed by an expectation.
    pub queue: VecDeque<Captured>,
    /// Number of packets sent so far.
    pub sent: usize,
    /// One line per packet, in both directions.
    pub trace: Vec<String>,
    /// Initial sequence numbers of the host and the peer, as written in the script's SYNs.
    pub first_numbers: (u32, u32),
    /// Pairs of timestamps: the script's, the host's.
    pub stamps: Vec<(u32, u32)>,
    /// First pair of timestamps.
    pub first_stamp: Option<(u32, u32)>,
}

impl Tap {
    /// Begin a new connection. Packets of the previous one are discarded.
    pub fn restart(&mut self) {
        self.queue.clear();
        self.stamps.clear();
        self.first_stamp = None;
        self.first_numbers.0 = 0;
    }

    /// Record a packet sent by the host.
    pub fn capture(&mut self, at: Time, packet: TcpPacket, ecn: Ecn) {
        self.note(at, '>', &packet);
        self.sent += 1;
        self.queue.push_back(Captured { at, packet, ecn });
    }

    /// Add a packet to the trace.
    pub fn note(&mut self, at: Time, direction: char, packet: &TcpPacket) {
        if self.trace.len() < MAX_TRACE {
            let us = at.since(START).as_us();
            self.trace.push(format!("{}.{:06} {direction} {packet}", us / 1_000_000, us % 1_000_000));
        }
    }

    /// Return the host timestamp corresponding to a script's echo. `acks`: the packet has an ACK number.
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
