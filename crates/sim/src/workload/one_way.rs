//! What bulk, transfer and throttled flows share: one connection, opened from the sending host, which closes first.

use ackclock_core::Time;

use super::Context;
use crate::world::{ConnId, RECEIVER, SENDER};

/// The connection of a one-way flow.
#[derive(Default)]
pub struct OneWay {
    conn: Option<ConnId>,
    /// Bytes written in all, once that is known.
    total: Option<u64>,
    answered: bool,
}

impl OneWay {
    /// Connect and hand over the first `bytes`.
    pub fn open(&mut self, cx: &mut Context) -> ConnId {
        let conn = cx.connect(SENDER, 0);
        self.conn = Some(conn);
        conn
    }

    /// Write more.
    pub fn write(&self, cx: &mut Context, bytes: u64) {
        if let Some(conn) = self.conn {
            cx.world.act(conn, SENDER, |tcp, now| tcp.write(now, bytes));
        }
    }

    /// All `total` bytes are written: close after them.
    pub fn close(&mut self, cx: &mut Context, total: u64) {
        let Some(conn) = self.conn else { return };
        self.total = Some(total);
        cx.world.watch(conn, SENDER, true);
        cx.world.watch(conn, RECEIVER, true);
        cx.world.act(conn, SENDER, |tcp, now| tcp.close(now));
        self.progress(cx, conn, SENDER);
    }

    /// The application stops at the flow's stop: nothing beyond what was sent, then close.
    pub fn stop(&mut self, cx: &mut Context) {
        let Some(conn) = self.conn else { return };
        cx.flow.acked_at_stop = Some(cx.flow.acked(cx.world));
        if self.total.is_none() {
            cx.world.act(conn, SENDER, |tcp, now| tcp.stop_writing(now));
            let written = cx.world.tcp(conn, SENDER).written();
            self.close(cx, written);
        }
    }

    /// React to what happened at one end.
    pub fn progress(&mut self, cx: &mut Context, conn: ConnId, host: usize) {
        if self.conn != Some(conn) {
            return;
        }
        cx.note_established(conn, SENDER);
        let sender = cx.world.tcp(conn, SENDER);
        if cx.flow.completed == Time::NEVER && self.total.is_some_and(|total| sender.acked() >= total) {
            cx.flow.completed = cx.now();
            cx.flow.stop = cx.flow.stop.min(cx.now());
        }
        if host == RECEIVER && !self.answered && cx.world.tcp(conn, RECEIVER).peer_closed() {
            self.answered = true;
            cx.world.act(conn, RECEIVER, |tcp, now| tcp.close(now));
        }
        let over = |tcp: &ackclock_tcp::Connection| tcp.is_done();
        let (sender, receiver) = (cx.world.tcp(conn, SENDER), cx.world.tcp(conn, RECEIVER));
        if sender.has_failed() || receiver.has_failed() || over(sender) && over(receiver) {
            self.conn = None;
            cx.retire(conn);
        }
    }

    /// Whether the connection still is.
    pub fn is_open(&self) -> bool {
        self.conn.is_some()
    }

    /// From now on only timers of the connection are reported.
    pub fn unwatch(&self, cx: &mut Context) {
        if let Some(conn) = self.conn {
            cx.world.watch(conn, SENDER, false);
            cx.world.watch(conn, RECEIVER, false);
        }
    }
}
