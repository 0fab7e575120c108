//! Bulk: the sending host opens the connection and writes as much as it takes, until the flow stops.

use super::one_way::OneWay;
use super::{Context, Workload};
use crate::world::{ConnId, RECEIVER, SENDER};

/// State of a bulk flow.
#[derive(Default)]
pub struct Bulk {
    way: OneWay,
}

impl Workload for Bulk {
    fn start(&mut self, cx: &mut Context) {
        let conn = self.way.open(cx);
        cx.world.act(conn, SENDER, |tcp, now| tcp.write_forever(now));
        cx.world.watch(conn, RECEIVER, false);
        cx.wake(cx.flow.stop);
    }

    fn wake(&mut self, cx: &mut Context) {
        self.way.stop(cx);
    }

    fn progress(&mut self, cx: &mut Context, conn: ConnId, host: usize) {
        self.way.progress(cx, conn, host);
        if cx.flow.established != ackclock_core::Time::NEVER && cx.now() < cx.flow.stop {
            self.way.unwatch(cx); // nothing to react to before the stop: keeps the hot path short
        }
    }
}
