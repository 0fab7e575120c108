//! Server under test. The test acts as its peer and writes every ACK by hand.

use ackclock_core::packet::{Ecn, SynOptions};
use ackclock_core::trace::CaState;
use ackclock_core::{Flags, SackBlock, Segment, Span, Time};
use ackclock_tcp::{Config, Connection, Info};

/// Payload of every segment, bytes.
pub const SMSS: u64 = 1000;
/// RTT of the handshake.
pub const RTT: Span = Span::from_ms(100);

/// Server after the handshake. Segments of 1000 bytes are numbered from 0.
pub struct Server {
    pub conn: Connection,
    pub now: Time,
}

impl Server {
    /// Return a server with this configuration, but without timestamps.
    pub fn new(config: &Config) -> Server {
        let config = Config { smss: SMSS as u32, timestamps: false, ..config.clone() };
        let mut s = Server { conn: Connection::responder(0, &config), now: Time(1) };
        let syn = SynOptions { mss: SMSS as u16, wscale: 8, sack_permitted: config.sack };
        s.conn.on_packet(
            s.now,
            &Segment { flags: Flags::SYN, syn, wnd: 32_792, ..Segment::default() },
            Ecn::NotEct,
        );
        assert!(s.conn.poll_transmit(s.now).expect("SYN-ACK").flags.has(Flags::SYN));
        s.now += RTT;
        s.deliver(0, &[]);
        s
    }

    /// Return the segments sent now: "N7" is new, "R0" a retransmission.
    pub fn sent(&mut self) -> Vec<String> {
        let mut sent = Vec::new();
        while let Some(seg) = self.conn.poll_transmit(self.now) {
            if seg.len > 0 {
                let letter = if seg.rexmit > 0 { "R" } else { "N" };
                sent.push(format!("{letter}{}", (seg.seq - 1) / SMSS));
            }
        }
        sent
    }

    pub fn write(&mut self, segments: u64) -> Vec<String> {
        self.conn.write(self.now, segments * SMSS);
        self.sent()
    }

    /// Return a pure ACK of all segments below `ack`, with SACK blocks of segments [a, b) in header order.
    pub fn segment(ack: u64, sacks: &[(u64, u64)]) -> Segment {
        let mut seg =
            Segment { seq: 1, ack: 1 + ack * SMSS, flags: Flags::ACK, wnd: 257 << 8, ..Segment::default() };
        for (a, b) in sacks {
            let edge = |n: u64| (n as i64 - ack as i64) as i32 * SMSS as i32;
            seg.sack.push(SackBlock { start: edge(*a), end: edge(*b) });
        }
        seg
    }

    pub fn deliver(&mut self, ack: u64, sacks: &[(u64, u64)]) {
        self.conn.on_packet(self.now, &Server::segment(ack, sacks), Ecn::NotEct);
    }

    /// Deliver the ACK of [`Server::segment`] 1 ms later. Returns the segments it releases.
    pub fn ack(&mut self, ack: u64, sacks: &[(u64, u64)]) -> String {
        self.now += Span::from_ms(1);
        self.deliver(ack, sacks);
        self.sent().join(" ")
    }

    /// Advance to the next timer. Returns the segments it releases.
    pub fn timer(&mut self) -> String {
        self.now = self.conn.next_deadline();
        self.conn.on_timer(self.now);
        self.sent().join(" ")
    }

    pub fn info(&self) -> Info {
        self.conn.info()
    }
    pub fn cwnd(&self) -> u32 {
        self.info().cwnd
    }
    pub fn state(&self) -> CaState {
        self.info().ca_state
    }
}
