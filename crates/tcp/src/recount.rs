//! Checks of the endpoints' incremental counters, for tests and fuzzing; the simulator never needs them.

use crate::connection::Connection;
use crate::receiver::Receiver;

impl Connection {
    /// Check the incremental counters of sender and receiver against a recount.
    ///
    /// # Panics
    ///
    /// If a counter differs.
    pub fn recount(&self) {
        self.sender.ask(|sender| {
            sender.board.recount(sender.has_sack());
            sender.recount_reasons();
        });
        self.receiver.ask(Receiver::recount);
    }
}
