//! Requests on the return path, with which the receiving end becomes a client. Each is one datagram, repeated after a
//! second, then two, and so on, until new data answers it. A client asks when it has everything that it asked for
//! before: then the first new piece of data must be the answer.
//!
//! Differs: the paper's transport carries data one way and leaves requests to others (its tools use a TCP connection).

use ackclock_core::datagram::{Data, DataKind, Datagram};
use ackclock_core::{Span, Time};

/// Requests of the receiving end.
#[derive(Clone, Default)]
pub(crate) struct Requests {
    /// Bytes requested in total.
    asked: u64,
    /// Length of the last request.
    len: u32,
    due: bool,
    /// Transmissions of the last request.
    tries: u32,
    /// Datagrams sent.
    sent: u64,
    /// Time when the last request is repeated; None = it was answered.
    timeout: Option<Time>,
    failed: bool,
}

impl Requests {
    /// Ask: a datagram of `bytes` leaves.
    pub fn ask(&mut self, bytes: u32) {
        self.asked += bytes as u64;
        self.len = bytes;
        self.tries = 0;
        self.due = true;
    }

    /// The request stayed without an answer.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// A new piece of data arrived.
    #[inline]
    pub fn on_answer(&mut self) {
        self.timeout = None;
    }

    /// Check the deadline.
    pub fn on_timer(&mut self, now: Time) {
        if self.timeout.is_none_or(|timeout| now < timeout) {
            return;
        }
        self.timeout = None;
        self.failed = self.tries >= TRIES;
        self.due = !self.failed;
    }

    /// The request, if it is to be sent.
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

    /// Time when the request is repeated.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.timeout.unwrap_or(Time::NEVER)
    }
}

/// Hellos and requests, as often as TCP sends its SYN (Linux: one and six more).
pub(crate) const TRIES: u32 = 7;
/// First wait for an answer to a hello or a request, doubled each time, as RFC 6298's for a SYN.
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
        requests.ask(200); // the next one counts from the first wait
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
