//! Requests on the return path, which make the receiving end a client. A request is one datagram. It is repeated after
//! one second, then two, and so on, until new data arrives. A client requests only when all data requested earlier
//! has arrived, so the first new piece of data must be the response.
//!
//! Differs: the paper's transport carries data in one direction only; its tools send requests over a TCP connection.

use ackclock_core::datagram::{Data, DataKind, Datagram};
use ackclock_core::{Span, Time};

/// Requests sent by the receiving end.
#[derive(Clone, Default)]
pub(crate) struct Requests {
    /// Total number of bytes requested.
    asked: u64,
    /// Length of the last request, bytes.
    len: u32,
    due: bool,
    /// Number of transmissions of the last request.
    tries: u32,
    /// Number of datagrams sent.
    sent: u64,
    /// Time at which the last request is repeated; `None` once the response has arrived.
    timeout: Option<Time>,
    failed: bool,
}

impl Requests {
    /// Queue a request of `bytes`.
    pub fn ask(&mut self, bytes: u32) {
        self.asked += bytes as u64;
        self.len = bytes;
        self.tries = 0;
        self.due = true;
    }

    /// Whether a request has failed for lack of a response.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Record that a new piece of data arrived.
    #[inline]
    pub fn on_answer(&mut self) {
        self.timeout = None;
    }

    /// Process the timer: repeat the request or give up.
    pub fn on_timer(&mut self, now: Time) {
        if self.timeout.is_none_or(|timeout| now < timeout) {
            return;
        }
        self.timeout = None;
        self.failed = self.tries >= TRIES;
        self.due = !self.failed;
    }

    /// Return the request if it is to be sent.
    #[inline]
    pub fn poll(&mut self, now: Time, header: u32) -> Option<Datagram> {
        if !std::mem::take(&mut self.due) {
            return None;
        }
        let number = self.sent;
        let rexmit = self.tries as u8;
        self.timeout = Some(now + FIRST_WAIT * (1 << self.tries.min(6)));
        self.tries += 1;
        self.sent += 1;
        Some(Datagram::Data(Data {
            number,
            chunk: self.asked,
            sent: now,
            len: self.len,
            header: header as u16,
            rexmit,
            kind: DataKind::Request,
        }))
    }

    /// Time at which the request is repeated.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.timeout.unwrap_or(Time::NEVER)
    }
}

/// Maximum number of transmissions of a hello or a request, as for TCP's SYN (Linux: one and six retransmissions).
pub(crate) const TRIES: u32 = 7;
/// Time to the first repetition of a hello or a request, doubled each time, as for a SYN in RFC 6298.
pub(crate) const FIRST_WAIT: Span = Span::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(requests: &mut Requests, now: u64) -> Option<(u64, u64, u8)> {
        match requests.poll(Time(now), 16) {
            Some(Datagram::Data(d)) => {
                assert_eq!((d.kind, d.len, d.header), (DataKind::Request, 200, 16));
                Some((d.number, d.chunk, d.rexmit))
            }
            None => None,
            Some(_) => panic!("neither data nor nothing"),
        }
    }

    #[test]
    fn a_request_is_sent_again_until_data_comes() {
        let mut requests = Requests::default();
        assert_eq!((sent(&mut requests, 0), requests.deadline()), (None, Time::NEVER));
        requests.ask(200);
        assert_eq!(sent(&mut requests, 5), Some((0, 200, 0)));
        assert_eq!((sent(&mut requests, 5), requests.deadline()), (None, Time(1_000_000_005)));
        requests.on_timer(Time(1_000_000_004));
        assert_eq!(sent(&mut requests, 6), None);
        requests.on_timer(Time(1_000_000_005));
        assert_eq!(sent(&mut requests, 1_000_000_005), Some((1, 200, 1)));
        assert_eq!(requests.deadline(), Time(3_000_000_005)); // twice as long
        requests.on_answer();
        assert_eq!(requests.deadline(), Time::NEVER);
        requests.ask(200); // the next request starts with the first timeout again
        assert_eq!(sent(&mut requests, 7_000_000_000), Some((2, 400, 0)));
        assert_eq!(requests.deadline(), Time(8_000_000_000));
    }

    #[test]
    fn without_an_answer_it_gives_up() {
        let mut requests = Requests::default();
        requests.ask(200);
        let mut times = 0;
        let mut now = 0;
        while sent(&mut requests, now).is_some() {
            times += 1;
            now = requests.deadline().0;
            requests.on_timer(Time(now));
        }
        assert_eq!((times, requests.has_failed(), now), (7, true, 127_000_000_000));
        // 1 + 2 + ... + 64 s
    }
}
