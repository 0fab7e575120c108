//! Carrier of transactions: the simulator's world, or the sockets of a real kernel. Arrivals, draws and
//! behaviour of clients are the same for both.

use std::fmt::Debug;

use ackclock_core::{FlowId, Time};

use super::super::Context;
use super::Start;
use crate::tables::tally::{Counts, TransactionLog};
use crate::transport::Transport;
use crate::world::{ConnId, RECEIVER, SENDER};

/// Operations that transactions and conversations need from the hosts of one client-server pair. The server is host 0, the
/// client host 1.
pub trait Carrier {
    /// An open connection.
    type Conn: Copy + PartialEq + Debug;

    /// The time.
    fn now(&self) -> Time;
    /// Number of the flow.
    fn flow(&self) -> FlowId;
    /// No client arrives at this time or later.
    fn stop(&self) -> Time;
    /// Whether one more connection can be opened.
    fn has_room(&self) -> bool;
    /// Records of transactions.
    fn log(&mut self) -> &mut TransactionLog;
    /// The client opens its `idx`-th connection.
    fn connect(&mut self, start: &Start, idx: u32) -> Self::Conn;
    /// Number that distinguishes a connection from earlier ones in its place.
    fn number(conn: Self::Conn) -> u32;
    /// Note the place of a connection among the workload's.
    fn set_place(&mut self, conn: Self::Conn, place: u32);
    /// The place noted.
    fn place(&mut self, conn: Self::Conn) -> usize;
    /// An end of a connection, as the application sees it.
    fn end(&self, conn: Self::Conn, host: usize) -> End;
    /// Whether both directions are closed, at both ends.
    fn is_over(&self, conn: Self::Conn) -> bool {
        [SENDER, RECEIVER].iter().all(|&host| self.end(conn, host).done)
    }
    /// Segments and timeouts of both ends so far.
    fn counts(&self, conn: Self::Conn) -> Counts;
    /// Write this many bytes.
    fn write(&mut self, conn: Self::Conn, host: usize, bytes: u64);
    /// Skip notifications for an end until it has this many bytes of its peer's, or the peer has closed.
    fn await_bytes(&mut self, _conn: Self::Conn, _host: usize, _bytes: u64) {}
    /// The application sets or clears TCP_CORK.
    fn cork(&mut self, conn: Self::Conn, host: usize, on: bool);
    /// Close: a FIN follows the written data.
    fn close(&mut self, conn: Self::Conn, host: usize);
    /// The client sees its connection established.
    fn note_established(&mut self, conn: Self::Conn);
    /// The connection has ended or failed.
    fn retire(&mut self, conn: Self::Conn);
    /// Everything is finished; the last response was complete then.
    fn note_completed(&mut self, answered: Time);
    /// Wake the workload at `at`, and cancel earlier wake-ups.
    fn wake(&mut self, at: Time);
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct End {
    /// Whether the handshake is complete.
    pub established: bool,
    /// Bytes that the application has read.
    pub received: u64,
    /// The peer has closed.
    pub peer_closed: bool,
    /// The application has closed.
    pub closing: bool,
    /// Whether both directions are closed.
    pub done: bool,
    /// The connection was given up or reset.
    pub failed: bool,
}

impl Carrier for Context<'_> {
    type Conn = ConnId;

    fn now(&self) -> Time {
        self.world.now()
    }
    fn flow(&self) -> FlowId {
        self.flow.id
    }
    fn stop(&self) -> Time {
        self.flow.stop
    }
    fn has_room(&self) -> bool {
        self.world.has_room()
    }
    fn log(&mut self) -> &mut TransactionLog {
        &mut self.journal.transactions
    }
    fn connect(&mut self, start: &Start, idx: u32) -> ConnId {
        match self.flow.config.tcp() {
            Some(_) => self.connect_with(&start.config, RECEIVER, idx),
            None => Context::connect(self, RECEIVER, idx),
        }
    }
    fn number(conn: ConnId) -> u32 {
        conn.number()
    }
    fn set_place(&mut self, conn: ConnId, place: u32) {
        self.world.notes(conn).entry = place;
    }
    fn place(&mut self, conn: ConnId) -> usize {
        self.world.notes(conn).entry as usize
    }
    #[inline(always)]
    fn end(&self, conn: ConnId, host: usize) -> End {
        let end = self.world.transport(conn, host);
        End {
            established: end.is_established(),
            received: end.received(),
            peer_closed: end.peer_closed(),
            closing: end.is_closing(),
            done: end.is_done(),
            failed: end.has_failed(),
        }
    }
    #[inline]
    fn is_over(&self, conn: ConnId) -> bool {
        [SENDER, RECEIVER].iter().all(|&host| self.world.transport(conn, host).is_done())
    }
    fn counts(&self, conn: ConnId) -> Counts {
        let ends = [SENDER, RECEIVER].map(|host| self.world.transport(conn, host));
        let [Some(server), Some(client)] = ends.map(Transport::tcp) else {
            let (segments_sent, retransmissions) = ends[SENDER].sent();
            return Counts { segments_sent, retransmissions, ..Counts::default() };
        };
        let sent = server.stats();
        Counts {
            segments_sent: sent.data_segments_sent,
            retransmissions: sent.retransmissions,
            rtos: sent.rtos.into(),
            syn_retransmissions: client.syn_retransmissions(),
            synack_retransmissions: server.syn_retransmissions(),
        }
    }
    fn write(&mut self, conn: ConnId, host: usize, bytes: u64) {
        self.world.act(conn, host, |tcp, now| tcp.write(now, bytes));
    }
    fn cork(&mut self, conn: ConnId, host: usize, on: bool) {
        self.world.act(conn, host, |transport, _| {
            if let Some(tcp) = transport.tcp_mut() {
                tcp.set_cork(on, true);
            }
        });
    }
    fn await_bytes(&mut self, conn: ConnId, host: usize, bytes: u64) {
        self.world.watch_from(conn, host, bytes);
    }
    fn close(&mut self, conn: ConnId, host: usize) {
        self.world.act(conn, host, |tcp, now| tcp.close(now));
    }
    fn note_established(&mut self, conn: ConnId) {
        Context::note_established(self, conn, RECEIVER);
    }
    fn retire(&mut self, conn: ConnId) {
        Context::retire(self, conn);
    }
    fn note_completed(&mut self, answered: Time) {
        self.flow.completed = answered;
        self.flow.stop = self.flow.stop.min(answered);
    }
    fn wake(&mut self, at: Time) {
        if at != self.flow.wake_at {
            Context::wake(self, at);
        }
    }
}
