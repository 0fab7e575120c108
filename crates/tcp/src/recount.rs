//! Counts that endpoints keep by increments, taken anew. For tests and fuzzing; the simulator never needs
//! them.

use crate::connection::Connection;
use crate::receiver::Receiver;

impl Connection {
    /// Count anew what sender and receiver keep by increments.
    ///
    /// # Panics
    ///
    /// If something differs.
    pub fn recount(&self) {
        self.sender.ask(|sender| {
            sender.board.recount(sender.has_sack());
            sender.recount_reasons();
        });
        self.receiver.ask(Receiver::recount);
    }
}
