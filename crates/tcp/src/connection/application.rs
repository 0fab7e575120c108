//! Application calls: writing, reading, closing, and socket options.

use ackclock_core::{Span, Time};

use super::sending::Call;
use super::{Connection, State};
use crate::config::SendLimit;
use crate::receiver::{ReadingPace, Receiver};
use crate::sender::Sender;

impl Connection {
    /// Write `bytes`, before or after the handshake.
    pub fn write(&mut self, now: Time, bytes: u64) {
        self.sender.call(Call::Write(now, bytes));
    }
    /// Write endlessly.
    pub fn write_forever(&mut self, now: Time) {
        self.sender.call(Call::Write(now, 1 << 62));
    }
    /// Stop writing. Data in the send buffer is still sent; without a send buffer no more data is sent.
    pub fn stop_writing(&mut self, now: Time) {
        self.end_limits(now);
        self.sender.call(Call::StopWriting);
    }
    /// Send a FIN after all written data.
    pub fn close(&mut self, _now: Time) {
        self.closed_last = self.receiver.fin_received();
        self.receiver.close();
        self.sender.call(Call::Close);
    }
    /// Write like [`Connection::write`]. `more`: further data will follow (MSG_MORE); `record`: the last byte
    /// ends a record (MSG_EOR).
    pub fn write_marked(&mut self, now: Time, bytes: u64, more: bool, record: bool) {
        self.sender.awake().write_marked(now, bytes, more, record);
    }
    /// Bytes of the last write not yet accepted by the send buffer. A blocking write returns when there are
    /// none.
    pub fn unwritten(&self) -> u64 {
        self.sender.ask(Sender::unwritten)
    }
    /// End the write call, abandoning the bytes not yet accepted by the send buffer.
    pub fn stop_waiting(&mut self) {
        self.sender.awake().stop_waiting();
    }
    /// Set SO_SNDBUF, the send buffer size in Linux's accounting.
    pub fn set_send_buffer(&mut self, limit: SendLimit) {
        self.sender.awake().set_send_buffer(limit);
    }
    /// Current send buffer limit, bytes; `None`: unlimited.
    pub fn send_buffer(&self) -> Option<u64> {
        self.sender.ask(Sender::send_buffer)
    }
    /// Set SO_RCVBUF, the receive buffer's memory limit, which then stops growing.
    pub fn set_receive_buffer(&mut self, memory: u64) {
        self.receiver.awake().set_buffer(memory);
    }
    /// Set TCP_NOTSENT_LOWAT, the number of unsent bytes at which a write blocks.
    pub fn set_notsent_lowat(&mut self, bytes: u64) {
        self.sender.awake().set_notsent_lowat(bytes);
    }
    /// Read up to `bytes` bytes of in-order data. Returns the number of bytes read.
    pub fn read(&mut self, now: Time, bytes: u64) -> u64 {
        self.receiver.awake().read(now, bytes)
    }
    /// Set the application's read pace. Called before the handshake.
    pub fn read_slowly(&mut self, pace: ReadingPace) {
        self.receiver.awake().read_slowly(pace);
    }
    /// Payload bytes that the application has read, and whether it has read the end of the stream.
    pub fn has_read(&self) -> (u64, bool) {
        let read = |receiver: &Receiver| {
            (receiver.taken_at_once(), receiver.fin_received() && !receiver.has_to_read())
        };
        self.receiver.now().map_or((0, false), read)
    }
    /// Payload bytes available to [`Connection::read`].
    pub fn readable(&self) -> u64 {
        self.receiver.ask(|receiver| receiver.received() - receiver.taken())
    }
    /// Process an ICMP "fragmentation needed" (RFC 1191): a router dropped the segment that begins at offset
    /// `seq`, because the path carries segments of at most `mss` bytes, options included.
    pub fn on_too_big(&mut self, now: Time, seq: u64, mss: u32) {
        let (una, nxt) = self.sending();
        if self.state == State::Established && (una..=nxt).contains(&seq) {
            self.sender.awake().shrink_segments(now, mss.saturating_sub(12 * self.has_ts as u32));
        }
    }
    /// Set TCP_USER_TIMEOUT; zero: none.
    pub fn set_user_timeout(&mut self, timeout: Span) {
        self.sender.awake().set_user_timeout(timeout);
    }
    /// Record that the application has closed the socket: remaining data is given up sooner.
    pub fn orphan(&mut self) {
        self.sender.awake().set_orphan();
    }
    /// Set whether the device refuses every packet and reports it.
    pub fn set_refused(&mut self, refused: bool) {
        self.sender.awake().set_refused(refused);
    }
    /// Set TCP_NODELAY.
    pub fn set_nodelay(&mut self, on: bool) {
        self.sender.awake().set_nodelay(on);
    }
    /// Set TCP_CORK. Without `push`, waiting data still waits for an ACK or a timer (MSG_MORE).
    pub fn set_cork(&mut self, on: bool, push: bool) {
        self.sender.awake().set_cork(on, push);
    }
    /// Number of times a writer has been notified of free space after finding none.
    pub fn wakes(&self) -> u64 {
        self.sender.ask(Sender::wakes)
    }
    /// Whether a third of the send buffer is free.
    pub fn has_room(&self) -> bool {
        self.sender.ask(Sender::has_room)
    }
    /// Push data written with MSG_MORE.
    pub fn push_written(&mut self) {
        self.sender.awake().push_written();
    }
    /// Set SO_MAX_PACING_RATE, bytes/s; `u64::MAX`: no limit. A limit turns pacing on.
    pub fn set_max_pacing_rate(&mut self, most: u64) {
        self.sender.awake().set_max_pacing_rate(most);
    }
    /// Set the segment size of packets that arrive with several segments (GRO). Default: the largest one.
    pub fn set_segment_limit(&mut self, bytes: u32) {
        self.receiver.awake().sizes.most = bytes;
    }
    /// Set the shift of window scaling; `None`: no scaling.
    pub fn fit_header(&mut self, shift: Option<u8>) {
        self.receiver.awake().fit_header(shift);
    }
    /// Abort the connection: only an RST is sent.
    pub fn reset(&mut self) {
        self.reset_due = matches!(self.state, State::SynReceived | State::Established);
        self.go_to(State::Failed);
    }

    /// Suspend the writer while a poll has more packets to deliver, or resume it after the last one.
    pub fn suspend_writer(&mut self, suspended: bool) {
        self.sender.suspend_writer(suspended);
    }
}
