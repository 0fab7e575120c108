//! Transfer: the sending host opens the connection, writes its bytes at once and closes; complete when all are
//! acknowledged.

use super::one_way::OneWay;
use super::{Context, Workload};
use crate::world::ConnId;

/// State of a transfer.
pub struct Transfer {
    way: OneWay,
    bytes: u64,
}

impl Transfer {
    /// A transfer of `bytes`.
    pub fn new(bytes: u64) -> Transfer {
        Transfer { way: OneWay::default(), bytes }
    }
}

impl Workload for Transfer {
    fn start(&mut self, cx: &mut Context) {
        self.way.open(cx);
        self.way.write(cx, self.bytes);
        self.way.close(cx);
        cx.wake(cx.flow.stop);
    }

    fn wake(&mut self, cx: &mut Context) {
        self.way.stop(cx);
    }

    fn progress(&mut self, cx: &mut Context, conn: ConnId, host: usize) {
        self.way.progress(cx, conn, host);
    }
}
