//! Audit of a stack's reports, checked against network traffic. Libraries are not trusted: an impossible report is
//! an error in the library, described in one line.

use ackclock_core::foreign::Accounts;

use crate::abi::{Told, NONE};
use crate::library::{Instance, State};

/// Maximum reported number that fits the table columns.
const MOST: u64 = i64::MAX as u64;
/// Maximum by which a reported RTT may exceed the connection's age, because a stack's clock may be coarse.
const COARSE_NS: u64 = 1_000_000_000;
/// Maximum number of datagrams sent at one instant.
pub const AT_ONCE: u32 = 65_536;

/// One end's latest reports and total traffic.
#[derive(Debug)]
pub struct Audit {
    opened: u64,
    told: Told,
    received: u64,
    finished: bool,
    closed: bool,
    /// Total size of the datagrams that have arrived, bytes.
    arrived: u64,
    /// Number of datagrams sent, and their bytes including headers.
    sent: u64,
    bytes: u64,
    /// Time of the last transmission, and number of transmissions at that instant since the last arrival.
    instant: (u64, u32),
}

impl Audit {
    /// Start the audit of an end that is being opened.
    pub fn new(now: u64) -> Audit {
        Audit {
            opened: now,
            told: Told::NOTHING,
            received: 0,
            finished: false,
            closed: false,
            arrived: 0,
            sent: 0,
            bytes: 0,
            instant: (now, 0),
        }
    }

    /// Record an arriving datagram.
    pub fn arrives(&mut self, len: usize) {
        self.arrived += len as u64;
        self.instant.1 = 0;
    }

    /// Record a transmitted datagram.
    pub fn leaves(&mut self, now: u64, len: u64) -> Result<(), String> {
        self.sent += 1;
        self.bytes += len;
        self.instant = if self.instant.0 == now { (now, self.instant.1 + 1) } else { (now, 1) };
        match self.instant.1 > AT_ONCE {
            true => {
                Err(format!("transmit: found more than {AT_ONCE} datagrams at one instant; allowed: an end"))
            }
            false => Ok(()),
        }
    }

    /// Check the end's reports after a call. `settled`: nothing more is to be sent.
    pub fn look(
        &mut self,
        instance: &Instance,
        state: &State,
        told: &Told,
        now: u64,
        settled: bool,
    ) -> Result<(), String> {
        let before = std::mem::replace(&mut self.told, *told);
        for ((name, value), (_, before)) in fields(told).into_iter().zip(fields(&before)) {
            if value != NONE && value > MOST {
                return Err(format!("{name}: found {value}; allowed: at most {MOST}, or ACK_STACK_NONE"));
            }
            let counts = matches!(name, "sent" | "lost" | "acks" | "acked");
            if counts && value != NONE && before != NONE && value < before {
                return Err(format!(
                    "{name}: found {value} after {before}; allowed: a count that does not fall"
                ));
            }
        }
        let most = |name: &str, value: u64, most: u64, of: &str| match value != NONE && value > most {
            true => Err(format!("{name}: found {value}; allowed: at most {most}, {of}")),
            false => Ok(()),
        };
        let age = (now - self.opened.min(now)).saturating_add(COARSE_NS);
        most("latest_rtt_ns", told.latest_rtt_ns, age, "the age of the connection and a second")?;
        most("min_rtt_ns", told.min_rtt_ns, age, "the age of the connection and a second")?;
        most("acks", told.acks, self.arrived, "the bytes that arrived")?;
        most("acked", told.acked, self.bytes, "the bytes that left")?;
        if settled {
            most("sent", told.sent, self.sent, "the datagrams that left")?;
            most("lost", told.lost, self.sent, "the datagrams that left")?;
            most("in_flight", told.in_flight, self.bytes, "the bytes that left")?;
        }
        let (received, finished) = (instance.received(), instance.peer_finished());
        if received > self.arrived {
            let arrived = self.arrived;
            return Err(format!(
                "received: found {received}; allowed: at most the {arrived} bytes that arrived"
            ));
        }
        if received < self.received {
            let before = self.received;
            return Err(format!(
                "received: found {received} after {before}; allowed: a count that does not fall"
            ));
        }
        if self.finished && (!finished || received > self.received) {
            return Err(
                "peer_finished: found that the peer goes on after its end; allowed: nothing".to_string()
            );
        }
        if self.closed && matches!(state, State::Opening | State::Open) {
            return Err(
                "state: found an open connection that was closed; allowed: closed, or failed".to_string()
            );
        }
        self.received = received;
        self.finished = finished;
        self.closed = *state == State::Closed;
        Ok(())
    }

    /// Return the figures to be compared with the other end's. `written` is `None` for an endless amount.
    pub fn accounts(&self, written: Option<u64>, closes: bool, failed: bool) -> Accounts {
        Accounts { written, closes, failed, arrived: self.arrived, received: self.received }
    }

    /// Compare this end's reports with its peer's. `own` contains the bytes written by this end.
    pub fn against(&self, own: &Accounts, peer: &Accounts) -> Result<(), String> {
        let acked = if self.told.acked == NONE { 0 } else { self.told.acked };
        let most = peer.arrived.min(own.written.unwrap_or(NONE));
        if acked > most {
            return Err(format!(
                "acked: found {acked}; allowed: at most {most}, what was written and reached the peer"
            ));
        }
        let Some(written) = peer.written else { return Ok(()) };
        if self.received > written {
            let received = self.received;
            return Err(format!(
                "received: found {received}; allowed: at most the {written} bytes that the peer wrote"
            ));
        }
        if self.finished && !own.failed && !peer.failed && (!peer.closes || self.received < written) {
            let received = self.received;
            return Err(format!(
                "peer_finished: found it with {received} bytes; allowed: when the peer has finished, and its {written} bytes are here"
            ));
        }
        Ok(())
    }
}

/// Names and values of all reported numbers.
fn fields(told: &Told) -> [(&'static str, u64); 12] {
    [
        ("window", told.window),
        ("in_flight", told.in_flight),
        ("ssthresh", told.ssthresh),
        ("sent", told.sent),
        ("lost", told.lost),
        ("acks", told.acks),
        ("acked", told.acked),
        ("latest_rtt_ns", told.latest_rtt_ns),
        ("srtt_ns", told.srtt_ns),
        ("min_rtt_ns", told.min_rtt_ns),
        ("pacing_bps", told.pacing_bps),
        ("mtu", told.mtu),
    ]
}
