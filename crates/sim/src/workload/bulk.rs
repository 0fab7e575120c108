//! Bulk: the sending host opens the connection and always has data to send until the flow stops.

use ackclock_core::{table, Span};

use super::one_way::OneWay;
use super::{Asks, Carried, Context, Driver, Make, Params, Place, Site, Workload};
use crate::error::Error;
use crate::transport::TransportConfig;
use crate::world::{ConnId, RECEIVER, SENDER};

table! {
    /// Always has data to send, until the flow stops.
    pub struct BulkParams "bulk" {}
}

impl Params for BulkParams {
    fn may_read_slowly() -> bool {
        true
    }

    fn carried() -> Carried {
        Carried::ByTcpOrPcc
    }

    fn over_quic() -> bool {
        true
    }

    fn asks(&self, _duration: Span) -> Asks {
        Asks::Everything
    }
    fn lay(&self, _: &Place, _: &TransportConfig, _: &mut Site) -> Result<Make, Error> {
        Ok(Box::new(|_, _| Driver::Bulk(Bulk::default())))
    }
}

/// State of a bulk flow.
#[derive(Clone, Default)]
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
            self.way.unwatch(cx); // not watched until the stop, to keep the hot path short
        }
    }
}
