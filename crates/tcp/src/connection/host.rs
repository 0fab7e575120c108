//! Packets of a connection waiting in the queue of their host's device.

use super::Connection;
use crate::sender::Sender;

impl Connection {
    /// Return the number of packets refused by the host's full queue since the last call.
    pub fn take_refused(&mut self) -> u32 {
        self.sender.now_mut().map_or(0, Sender::take_refused)
    }

    /// Charge a packet carrying `payload` bytes from offset `start` that has entered the host's queue.
    pub fn queued(&mut self, start: u64, payload: u32) {
        if let Some(sender) = self.sender.now_mut() {
            sender.queued(start, payload);
        }
    }

    /// Release the charge of a packet that has left the host's queue. Returns whether the sender was throttled.
    pub fn left_queue(&mut self, start: u64, payload: u32) -> bool {
        self.sender.now_mut().is_some_and(|sender| sender.left_queue(start, payload))
    }
}
