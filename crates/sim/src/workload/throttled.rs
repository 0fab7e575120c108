//! Throttled: the application writes a chunk at fixed intervals, as video servers do after an initial burst. The
//! schedule does not depend on the network: data that cannot be sent yet waits in the send buffer.

use ackclock_core::schema::{RATE, SIZE, SIZE_OR_ZERO};
use ackclock_core::{table, Rate, Span};

use super::one_way::OneWay;
use super::{Asks, Carried, Context, Driver, Make, Params, Place, Site, Workload};
use crate::error::Error;
use crate::transport::TransportConfig;
use crate::workload::needs::packets;
use crate::world::ConnId;

table! {
    /// Writes blocks at a given rate, as video servers do.
    pub struct ThrottledParams "throttled" {
        /// Rate at which the application writes.
        rate: Rate = RATE;
        /// Size of one write.
        chunk: u64 = SIZE;
        /// Bytes written at once when the flow starts.
        initial: u64 = SIZE_OR_ZERO, 0;
        /// Total number of bytes. Default: the application writes until the flow stops.
        bytes: Option<u64> = SIZE;
    }
}

impl ThrottledParams {
    /// Bytes of the first write.
    pub fn first(&self) -> u64 {
        if self.initial > 0 {
            self.initial
        } else {
            self.chunk
        }
    }

    /// Interval between writes.
    pub fn interval(&self) -> Span {
        interval(self.chunk, self.rate)
    }
}

impl Params for ThrottledParams {
    fn may_read_slowly() -> bool {
        true
    }

    fn carried() -> Carried {
        Carried::ByTcpOrPcc
    }

    fn asks(&self, duration: Span) -> Asks {
        Asks::Packets(packets(self.rate.0, duration.0 as f64))
    }
    fn lay(&self, _: &Place, _: &TransportConfig, _: &mut Site) -> Result<Make, Error> {
        let params = self.clone();
        Ok(Box::new(move |_, _| Driver::Throttled(Box::new(Throttled::new(params.clone())))))
    }
}

/// State of a throttled flow.
#[derive(Clone)]
pub struct Throttled {
    params: ThrottledParams,
    way: OneWay,
    written: u64,
}

impl Throttled {
    /// Return a flow that has not started.
    pub fn new(params: ThrottledParams) -> Throttled {
        Throttled { params, way: OneWay::default(), written: 0 }
    }

    fn write(&mut self, cx: &mut Context, bytes: u64) {
        let left = self.params.bytes.map_or(u64::MAX, |total| total - self.written);
        let bytes = bytes.min(left);
        self.written += bytes;
        self.way.write(cx, bytes);
        if bytes == left {
            self.way.close(cx);
            cx.wake(cx.flow.stop);
        } else {
            let next = cx.now() + self.params.interval();
            cx.wake(next.min(cx.flow.stop));
        }
    }
}

impl Workload for Throttled {
    fn start(&mut self, cx: &mut Context) {
        self.way.open(cx);
        self.write(cx, self.params.first());
    }

    fn wake(&mut self, cx: &mut Context) {
        if cx.now() >= cx.flow.stop {
            self.way.stop(cx);
        } else if self.way.is_open() {
            self.write(cx, self.params.chunk);
        }
    }

    fn progress(&mut self, cx: &mut Context, conn: ConnId, host: usize) {
        self.way.progress(cx, conn, host);
    }
}

/// Time to send `bytes` at `rate`, at least 1 ns.
pub(super) fn interval(bytes: u64, rate: Rate) -> Span {
    Span(((bytes as u128 * 8_000_000_000 / rate.0.max(1) as u128) as u64).max(1))
}
