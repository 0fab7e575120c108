//! Data written by the application, the FIN after it, and which small segments have to wait. With send
//! buffers, a write continues in `writer.rs`.

use ackclock_core::Time;

use super::Sender;

/// Data written so far. Its first byte has offset 1.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// Bytes written so far.
    written: u64,
    fin_wanted: bool,
    fin_sent: bool,
    /// Offset after the last partial segment sent (SND.SML in Minshall's draft; Linux `snd_sml`).
    small_end: u64,
    nodelay: bool,
    cork: bool,
    /// Data written so far is sent regardless of Nagle's rule (Linux TCP_NAGLE_PUSH).
    nagle_push: bool,
}

impl Stream {
    /// Return an empty stream with these options.
    pub fn new(nodelay: bool, cork: bool) -> Stream {
        Stream { nodelay, cork, ..Stream::default() }
    }

    /// Offset after the last byte written.
    #[inline]
    pub fn end(&self) -> u64 {
        self.written + 1
    }

    /// Append `bytes` to the stream.
    pub fn append(&mut self, bytes: u64) {
        self.written = self.written.saturating_add(bytes).min(u64::MAX - 1);
    }

    /// Cut the stream down to the data already sent; `nxt` is the next offset to send.
    pub fn cut(&mut self, nxt: u64) {
        self.written = nxt - 1 - self.fin_sent as u64;
    }

    /// Apply Nagle's rule again to data written from now on.
    pub fn end_nagle_push(&mut self) {
        self.nagle_push = false;
    }

    /// End the stream with a FIN.
    pub fn close(&mut self) {
        self.fin_wanted = true;
    }

    /// Whether a FIN follows the written data.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.fin_wanted
    }

    /// Whether the FIN has been sent.
    #[inline]
    pub fn fin_sent(&self) -> bool {
        self.fin_sent
    }

    /// Whether the FIN is yet to be sent.
    #[inline]
    pub fn fin_due(&self) -> bool {
        self.fin_wanted && !self.fin_sent
    }

    /// Whether there is data or a FIN left to send from `nxt` on.
    #[inline]
    pub fn has_new(&self, nxt: u64) -> bool {
        nxt < self.end() || self.fin_due()
    }

    /// Number of bytes written beyond offset `nxt`.
    #[inline]
    pub fn from(&self, nxt: u64) -> u64 {
        self.end().saturating_sub(nxt)
    }

    /// Record that a segment ending at `nxt` has been sent; `small`: it was not full.
    #[inline]
    pub fn sent(&mut self, nxt: u64, small: bool, fin: bool) {
        self.fin_sent |= fin;
        if small {
            self.small_end = nxt;
        }
    }

    /// Whether a small segment has to wait: under Nagle's rule in Minshall's form (Linux `tcp_nagle_check`)
    /// at most one is in flight; under TCP_CORK none is sent.
    #[inline]
    pub fn small_waits(&self, outstanding: bool, una: u64) -> bool {
        !self.nagle_push && (self.cork || (!self.nodelay && outstanding && self.small_end > una))
    }
}

impl Sender {
    /// Process a write of `bytes` by the application.
    pub fn write(&mut self, now: Time, bytes: u64) {
        self.write_marked(now, bytes, false, false);
    }

    /// Process a write of `bytes` by the application. `more`: further data will follow (MSG_MORE); `record`: the last byte ends a record (MSG_EOR).
    pub fn write_marked(&mut self, now: Time, bytes: u64, more: bool, record: bool) {
        debug_assert!(!self.stream.is_closed(), "nothing is written behind a FIN");
        self.check_app_limited();
        if self.queue.is_some() {
            return self.begin_writing(now, bytes, more, record);
        }
        if self.buffer.is_some() {
            return self.write_through(bytes);
        }
        self.stream.append(bytes);
        self.stream.end_nagle_push();
        self.intent.push();
    }

    /// Set TCP_NODELAY: small segments do not wait for ACKs.
    pub fn set_nodelay(&mut self, on: bool) {
        self.stream.nodelay = on;
        self.stream.nagle_push |= on;
        self.intent.push();
    }

    /// Set TCP_CORK: small segments wait. Without `push`, waiting data still waits for an ACK or a timer
    /// after `on` is cleared (MSG_MORE).
    pub fn set_cork(&mut self, on: bool, push: bool) {
        self.stream.cork = on;
        self.stream.nagle_push |= !on && push && self.stream.nodelay;
        if push {
            self.intent.push();
        }
    }

    /// Stop writing. The content of the send buffer is still sent. Without a send buffer the application
    /// writes data as it is sent, so unsent data counts as not written.
    pub fn stop_writing(&mut self) {
        if !self.buffers_writes() {
            self.stream.cut(self.snd_nxt);
            if let Some(queue) = &mut self.queue {
                queue.cut(self.stream.end());
            }
        }
        self.stop_waiting();
        self.end_stream();
    }

    /// Send a FIN after all written data.
    pub fn close(&mut self) {
        match self.buffer {
            Some(_) => self.close_stream(),
            None => self.close_when_written(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_small_segment_may_be_in_flight_unless_nagle_is_off_rfc_896_in_minshalls_form() {
        let mut stream = Stream::default();
        stream.append(2_500);
        assert!(!stream.small_waits(true, 1), "only full segments are out");
        stream.sent(2_501, true, false);
        stream.append(10);
        assert!(stream.small_waits(true, 1));
        assert!(!stream.small_waits(true, 2_501), "it was acknowledged");
        stream.nodelay = true;
        assert!(!stream.small_waits(true, 1));
        stream.cork = true;
        assert!(stream.small_waits(false, 2_501));
        stream.nagle_push = true;
        assert!(!stream.small_waits(true, 1));
        assert!(stream.has_new(2_501) && !stream.has_new(2_511));
    }

    #[test]
    fn a_fin_is_new_data_until_it_was_sent_and_no_byte_of_the_stream() {
        let mut stream = Stream::default();
        stream.append(10);
        stream.close();
        assert!(stream.has_new(11) && stream.fin_due());
        stream.sent(12, true, true);
        assert!(!stream.has_new(12));
        assert_eq!(stream.from(12), 0);
        stream.cut(12);
        assert_eq!(stream.end(), 11);
    }
}
