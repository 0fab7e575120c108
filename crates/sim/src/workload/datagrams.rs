//! Plain datagram traffic: constant rate, on-off, voice. Its source sends by the clock; the workload starts and stops
//! it, and what the sink noted becomes a row when the run ends.

use super::{Context, Workload};
use crate::world::{ConnId, RECEIVER, SENDER};

/// State of a plain datagram flow.
#[derive(Default)]
pub struct Datagrams {
    conn: Option<ConnId>,
}

impl Workload for Datagrams {
    fn start(&mut self, cx: &mut Context) {
        let conn = cx.connect(SENDER, 0);
        cx.world.watch(conn, SENDER, false);
        cx.world.watch(conn, RECEIVER, false);
        self.conn = Some(conn);
        cx.wake(cx.flow.stop);
    }

    fn wake(&mut self, cx: &mut Context) {
        // the connection stays: what is on its way shall be counted, and goodput is that of the time until the stop
        if let Some(conn) = self.conn {
            cx.flow.acked_at_stop = Some(cx.flow.acked(cx.world));
            cx.world.act(conn, SENDER, |source, now| source.stop_writing(now));
        }
    }

    fn progress(&mut self, _cx: &mut Context, _conn: ConnId, _host: usize) {}
}
