//! Throttled: the application writes a chunk at fixed intervals, as video servers do after an initial burst. The
//! schedule does not wait for the network: what the connection cannot take yet lies in its send buffer.

use ackclock_core::{Rate, Span};

use super::one_way::OneWay;
use super::{Context, Workload};
use crate::world::ConnId;

/// A throttled application.
#[derive(Clone, Copy, Debug)]
pub struct ThrottledParams {
    /// Rate of the application.
    pub rate: Rate,
    /// Bytes of one write.
    pub chunk: u64,
    /// Bytes written at the start.
    pub initial: u64,
    /// Bytes in all; absent = until the flow stops.
    pub total: Option<u64>,
}

/// State of a throttled flow.
pub struct Throttled {
    params: ThrottledParams,
    way: OneWay,
    written: u64,
}

impl Throttled {
    /// A flow that has not started.
    pub fn new(params: ThrottledParams) -> Throttled {
        Throttled { params, way: OneWay::default(), written: 0 }
    }

    fn write(&mut self, cx: &mut Context, bytes: u64) {
        let left = self.params.total.map_or(u64::MAX, |total| total - self.written);
        let bytes = bytes.min(left);
        self.written += bytes;
        self.way.write(cx, bytes);
        if bytes == left {
            self.way.close(cx);
        } else {
            let next = cx.now() + interval(self.params.chunk, self.params.rate);
            cx.wake(next.min(cx.flow.stop));
        }
    }
}

impl Workload for Throttled {
    fn start(&mut self, cx: &mut Context) {
        self.way.open(cx);
        let first = if self.params.initial > 0 { self.params.initial } else { self.params.chunk };
        self.write(cx, first);
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

/// Time that `bytes` take at `rate`, at least 1 ns.
pub(super) fn interval(bytes: u64, rate: Rate) -> Span {
    Span(((bytes as u128 * 8_000_000_000 / rate.0.max(1) as u128) as u64).max(1))
}
