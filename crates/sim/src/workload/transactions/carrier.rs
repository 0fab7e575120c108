//! Carrier of transactions and conversations: the simulator's world, or the sockets of a real kernel. Client
//! arrivals, random draws and client behaviour are the same for both.

use std::fmt::Debug;

use ackclock_core::{FlowId, Time};

use super::super::Context;
use super::Start;
use crate::tables::tally::{Counts, TransactionLog};
use crate::transport::Transport;
use crate::world::{ConnId, RECEIVER, SENDER};

/// Operations on the hosts of one client-server pair. The server is host 0, the client is host 1.
pub trait Carrier {
    /// Handle of an open connection.
    type Conn: Copy + PartialEq + Debug;

    /// Current time.
    fn now(&self) -> Time;
    /// Flow number.
    fn flow(&self) -> FlowId;
    /// End of client arrivals, exclusive.
    fn stop(&self) -> Time;
    /// Whether another connection can be opened.
    fn has_room(&self) -> bool;
    /// Transaction record.
    fn log(&mut self) -> &mut TransactionLog;
    /// Open the client's `idx`-th connection.
    fn connect(&mut self, start: &Start, idx: u32) -> Self::Conn;
    /// Number that distinguishes a connection from earlier ones in the same slot.
    fn number(conn: Self::Conn) -> u32;
    /// Store the workload's index for a connection.
    fn set_place(&mut self, conn: Self::Conn, place: u32);
    /// The workload's index for a connection.
    fn place(&mut self, conn: Self::Conn) -> usize;
    /// An end of a connection, as seen by the application.
    fn end(&self, conn: Self::Conn, host: usize) -> End;
    /// Bytes that the application at an end has read, and whether it has read the end of the stream.
    fn has_read(&self, conn: Self::Conn, host: usize) -> (u64, bool) {
        let end = self.end(conn, host);
        (end.received, end.peer_closed)
    }
    /// Whether both directions are closed, at both ends.
    fn is_over(&self, conn: Self::Conn) -> bool {
        [SENDER, RECEIVER].iter().all(|&host| self.end(conn, host).done)
    }
    /// Segments and timeouts of both ends so far.
    fn counts(&self, conn: Self::Conn) -> Counts;
    /// Write `bytes` at `host`.
    fn write(&mut self, conn: Self::Conn, host: usize, bytes: u64);
    /// Skip notifications for an end until it has received this many bytes, or the peer has closed.
    fn await_bytes(&mut self, _conn: Self::Conn, _host: usize, _bytes: u64) {}
    /// Set or clear TCP_CORK.
    fn cork(&mut self, conn: Self::Conn, host: usize, on: bool);
    /// Close: send a FIN after the written data.
    fn close(&mut self, conn: Self::Conn, host: usize);
    /// Record that the connection has been established at the client.
    fn note_established(&mut self, conn: Self::Conn);
    /// Remove a connection that has ended or failed.
    fn retire(&mut self, conn: Self::Conn);
    /// Record that everything has finished, and that the last response was complete at `answered`.
    fn note_completed(&mut self, answered: Time);
    /// Set the workload's wake-up to `at`, which replaces an earlier one.
    fn wake(&mut self, at: Time);
}

/// State of one end of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct End {
    /// Whether the handshake is complete.
    pub established: bool,
    /// Bytes read by the application.
    pub received: u64,
    /// Whether the peer has closed.
    pub peer_closed: bool,
    /// Whether the application has closed.
    pub closing: bool,
    /// Whether both directions are closed.
    pub done: bool,
    /// Whether the connection has failed or was reset.
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
    fn has_read(&self, conn: ConnId, host: usize) -> (u64, bool) {
        self.world.transport(conn, host).has_read()
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
