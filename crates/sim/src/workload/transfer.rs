//! Transfer: the sending host opens the connection, writes all bytes at once and closes. The transfer is complete
//! when all bytes have been acknowledged.

use ackclock_core::schema::SIZE;
use ackclock_core::{table, Span};

use super::one_way::OneWay;
use super::{Asks, Carried, Context, Driver, Make, Params, Place, Site, Workload};
use crate::error::Error;
use crate::transport::TransportConfig;
use crate::world::ConnId;

table! {
    /// Sends a number of bytes, then closes the connection.
    pub struct TransferParams "transfer" {
        /// Number of bytes.
        bytes: u64 = SIZE;
    }
}

impl Params for TransferParams {
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
        Asks::bytes(self.bytes)
    }
    fn lay(&self, _: &Place, _: &TransportConfig, _: &mut Site) -> Result<Make, Error> {
        let bytes = self.bytes;
        Ok(Box::new(move |_, _| Driver::Transfer(Transfer { way: OneWay::default(), bytes })))
    }
}

/// State of a transfer.
#[derive(Clone)]
pub struct Transfer {
    way: OneWay,
    bytes: u64,
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
