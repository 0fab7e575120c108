//! Halves of a closed connection, whose memory the next connection uses.

use std::rc::Rc;

use ackclock_core::FlowId;

use super::{Connection, Receiving, Sending};
use crate::config::Config;
use crate::receiver::Receiver;
use crate::sender::Sender;

/// Both halves of a closed connection.
#[derive(Clone)]
pub struct Halves {
    sender: Box<Sender>,
    receiver: Box<Receiver>,
}

impl Connection {
    /// Take apart this closed connection; `None` if one of its halves is stored in compact form.
    #[inline]
    pub fn into_halves(self) -> Option<Halves> {
        match (self.sender, self.receiver) {
            (Sending::Awake(sender), Receiving::Awake(receiver)) => Some(Halves { sender, receiver }),
            _ => None,
        }
    }

    /// Return a new end that reuses the memory of `halves`.
    pub fn renewed(halves: Halves, flow: FlowId, config: &Rc<Config>, responder: bool) -> Connection {
        let Halves { mut sender, mut receiver } = halves;
        sender.renew(flow, responder, config);
        *receiver = Receiver::of_end(config, responder);
        Connection::of(config, responder, Sending::Awake(sender), Receiving::Awake(receiver))
    }
}

impl Halves {
    /// Reason why the controller cannot be copied; `None` if it can.
    pub fn cannot_copy(&self) -> Option<String> {
        self.sender.cannot_copy()
    }
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;

    /// A crowd needs these for each of its flows: `cargo test -p ackclock-tcp sizes -- --nocapture` prints them.
    #[test]
    fn sizes_of_a_connection_and_its_halves_are_bounded() {
        let sizes = [
            ("connection", size_of::<Connection>(), 168),
            ("sender", size_of::<Sender>(), 1_344),
            ("receiver", size_of::<Receiver>(), 640),
        ];
        for (what, bytes, most) in sizes {
            println!("{what}: {bytes} bytes, at most {most}");
            assert!(bytes <= most, "{what}: {bytes} bytes, at most {most}");
        }
    }
}
