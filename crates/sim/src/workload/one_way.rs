//! Common part of workloads that send in one direction: one connection, opened by the sending host, which also closes
//! first.

use ackclock_core::Time;

use super::Context;
use crate::world::{ConnId, RECEIVER, SENDER};

/// The connection of a one-way flow.
#[derive(Clone, Default)]
pub struct OneWay {
    conn: Option<ConnId>,
    /// Whether the sender has closed.
    closing: bool,
    /// Total bytes received, known once the FIN has reached the receiver.
    total: Option<u64>,
}

impl OneWay {
    /// Open the connection.
    pub fn open(&mut self, cx: &mut Context) -> ConnId {
        let conn = cx.connect(SENDER, 0);
        self.conn = Some(conn);
        for host in [SENDER, RECEIVER] {
            cx.world.set_up(conn, host, |transport| {
                if let Some(tcp) = transport.tcp_mut() {
                    tcp.rest();
                }
            });
        }
        conn
    }

    /// Write `bytes`.
    pub fn write(&self, cx: &mut Context, bytes: u64) {
        if let Some(conn) = self.conn {
            cx.world.act(conn, SENDER, |tcp, now| tcp.write(now, bytes));
        }
    }

    /// Close after all written data has been sent.
    pub fn close(&mut self, cx: &mut Context) {
        let Some(conn) = self.conn else { return };
        self.closing = true;
        cx.world.watch(conn, SENDER, true);
        cx.world.watch(conn, RECEIVER, true);
        cx.world.act(conn, SENDER, |tcp, now| tcp.close(now));
    }

    /// Stop the flow: the application stops writing and closes. Data already written is still sent.
    pub fn stop(&mut self, cx: &mut Context) {
        let Some(conn) = self.conn else { return };
        cx.flow.acked_at_stop = Some(cx.flow.acked(cx.world));
        cx.world.act(conn, SENDER, |tcp, now| tcp.stop_writing(now));
        if !self.closing {
            self.close(cx);
        }
    }

    /// Process an event at one end.
    pub fn progress(&mut self, cx: &mut Context, conn: ConnId, host: usize) {
        if self.conn != Some(conn) {
            return;
        }
        cx.note_established(conn, SENDER);
        if host == RECEIVER && self.total.is_none() && cx.world.transport(conn, RECEIVER).has_read().1 {
            self.total = Some(cx.world.transport(conn, RECEIVER).received());
            cx.world.act(conn, RECEIVER, |tcp, now| tcp.close(now));
        }
        let (sender, receiver) = (cx.world.transport(conn, SENDER), cx.world.transport(conn, RECEIVER));
        let complete = match sender.tcp() {
            Some(tcp) => tcp.has_delivered_all(),
            None => self.total.is_some_and(|total| sender.acked() >= total),
        };
        if cx.flow.completed == Time::NEVER && complete {
            cx.flow.completed = cx.now();
            cx.flow.stop = cx.flow.stop.min(cx.now());
        }
        let failed = sender.has_failed() || receiver.has_failed();
        if failed || sender.is_done() && receiver.is_done() {
            self.conn = None;
            cx.retire(conn);
        }
    }

    /// Whether the connection is open.
    pub fn is_open(&self) -> bool {
        self.conn.is_some()
    }

    /// Stop watching both ends. From now on only a failure of the connection is reported.
    pub fn unwatch(&self, cx: &mut Context) {
        if let Some(conn) = self.conn {
            cx.world.watch(conn, SENDER, false);
            cx.world.watch(conn, RECEIVER, false);
        }
    }
}
