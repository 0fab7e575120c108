//! Application that reads slowly. Unread data fills the receive buffer, so that the receive window closes.

use ackclock_core::schema::{DURATION_OR_ZERO, RATE, SIZE};
use ackclock_core::{choice, table, Rate, Span};
use ackclock_tcp::ReadingPace;

use crate::world::{RECEIVER, SENDER};

table! {
    /// An application that reads slowly: at most `read` bytes at a time, with a time between its reads. Without data it
    /// waits for some. Data that it has not read fills the receive buffer, so that the receive window closes.
    pub struct ReaderParams "reader" {
        /// End of the flow that reads slowly: the receiver, in a conversation the client; the sender, in a conversation
        /// the server; or both.
        end: SlowEnd = SlowEnd::TAKES, SlowEnd::Receiver;
        /// Largest number of bytes in one read.
        read: u64 = SIZE, USUAL_READ;
        /// Mean rate of the reads while data waits: after each read, the application waits for the time that its bytes
        /// take at this rate. Default: no such time.
        rate: Option<Rate> = RATE;
        /// Time after each read, in addition to that of `rate`.
        pause: Span = DURATION_OR_ZERO, Span::ZERO;
        /// Time from the handshake to the first read.
        wait: Span = DURATION_OR_ZERO, Span::ZERO;
    }
    rules |params, rules| {
        if params.rate.is_none() && params.pause == Span::ZERO && params.wait == Span::ZERO {
            rules.refuse_as("rate", "nothing", "rate, pause or wait: what makes the reads slow");
        }
    }
}

/// Default size of one read, bytes, common in programs.
const USUAL_READ: u64 = 65_536;

/// End of the connection with the slow application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "values of a key, documented in docs/reference/scenario.md")]
pub enum SlowEnd {
    Receiver,
    Sender,
    Both,
}

choice! { SlowEnd: Receiver "receiver", Sender "sender", Both "both" }

impl ReaderParams {
    /// Read pace of the application at a host; `None` if it reads immediately.
    pub fn pace(&self, host: usize) -> Option<ReadingPace> {
        let slow = match self.end {
            SlowEnd::Receiver => host == RECEIVER,
            SlowEnd::Sender => host == SENDER,
            SlowEnd::Both => true,
        };
        let rate = self.rate.map(|rate| (rate.0 / 8).max(1));
        slow.then_some(ReadingPace { most: self.read, wait: self.wait, pause: self.pause, rate })
    }
}
