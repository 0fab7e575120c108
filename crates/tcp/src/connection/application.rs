//! Calls of the application: it writes, reads, closes, and sets the options of its socket.

use ackclock_core::{Span, Time};

use super::sending::Call;
use super::{Connection, State};
use crate::config::SendLimit;
use crate::sender::Sender;

impl Connection {
    /// The application hands over `bytes`, before or after the handshake.
    pub fn write(&mut self, now: Time, bytes: u64) {
        self.sender.call(Call::Write(now, bytes));
    }
    /// The application always has more.
    pub fn write_forever(&mut self, now: Time) {
        self.sender.call(Call::Write(now, 1 << 62));
    }
    /// No data beyond what was sent so far.
    pub fn stop_writing(&mut self, now: Time) {
        self.end_limits(now);
        self.sender.call(Call::StopWriting);
    }
    /// FIN after all written data.
    pub fn close(&mut self, _now: Time) {
        self.closed_last = self.receiver.fin_received();
        self.receiver.close();
        self.sender.call(Call::Close);
    }
    /// Write like [`Connection::write`]; `more` will follow (MSG_MORE), or the last byte ends a `record`
    /// (MSG_EOR).
    pub fn write_marked(&mut self, now: Time, bytes: u64, more: bool, record: bool) {
        self.sender.awake().write_marked(now, bytes, more, record);
    }
    /// Bytes of the last write that wait for room in the send buffer: a blocking write returns when there are
    /// none.
    pub fn unwritten(&self) -> u64 {
        self.sender.ask(Sender::unwritten)
    }
    /// Do not wait for that room: the write returns without them.
    pub fn stop_waiting(&mut self) {
        self.sender.awake().stop_waiting();
    }
    /// SO_SNDBUF: set the size of the send buffer, in Linux's accounting.
    pub fn set_send_buffer(&mut self, limit: SendLimit) {
        self.sender.awake().set_send_buffer(limit);
    }
    /// Bytes that the send buffer can take now; `None`: unlimited.
    pub fn send_buffer(&self) -> Option<u64> {
        self.sender.ask(Sender::send_buffer)
    }
    /// SO_RCVBUF: set the memory of the receive buffer, which then stops growing.
    pub fn set_receive_buffer(&mut self, memory: u64) {
        self.receiver.awake().set_buffer(memory);
    }
    /// TCP_NOTSENT_LOWAT: bytes that may wait unsent before a write blocks.
    pub fn set_notsent_lowat(&mut self, bytes: u64) {
        self.sender.awake().set_notsent_lowat(bytes);
    }
    /// Let the application take up to `bytes` of the data in order; returns how many it got.
    pub fn read(&mut self, now: Time, bytes: u64) -> u64 {
        self.receiver.awake().read(now, bytes)
    }
    /// Payload bytes that wait for a [`Connection::read`].
    pub fn readable(&self) -> u64 {
        self.receiver.ask(|receiver| receiver.received() - receiver.taken())
    }
    /// A router dropped the segment that begins at offset `seq`, because the path carries segments of at most `mss` bytes,
    /// options included (ICMP "fragmentation needed", RFC 1191).
    pub fn on_too_big(&mut self, now: Time, seq: u64, mss: u32) {
        let (una, nxt) = self.sending();
        if self.state == State::Established && (una..=nxt).contains(&seq) {
            self.sender.awake().shrink_segments(now, mss.saturating_sub(12 * self.has_ts as u32));
        }
    }
    /// TCP_USER_TIMEOUT; zero: none.
    pub fn set_user_timeout(&mut self, timeout: Span) {
        self.sender.awake().set_user_timeout(timeout);
    }
    /// The application closed the socket: the remaining data is given up sooner.
    pub fn orphan(&mut self) {
        self.sender.awake().set_orphan();
    }
    /// The device refuses every packet and reports it (or accepts them again).
    pub fn set_refused(&mut self, refused: bool) {
        self.sender.awake().set_refused(refused);
    }
    /// TCP_NODELAY.
    pub fn set_nodelay(&mut self, on: bool) {
        self.sender.awake().set_nodelay(on);
    }
    /// TCP_CORK. Without `push`, waiting data continues to wait for an ACK or a timer (MSG_MORE).
    pub fn set_cork(&mut self, on: bool, push: bool) {
        self.sender.awake().set_cork(on, push);
    }
    /// Number of times that a writer without room was told that there is some.
    pub fn wakes(&self) -> u64 {
        self.sender.ask(Sender::wakes)
    }
    /// A third of the send buffer is free.
    pub fn has_room(&self) -> bool {
        self.sender.ask(Sender::has_room)
    }
    /// Release data written with MSG_MORE: no more follows.
    pub fn push_written(&mut self) {
        self.sender.awake().push_written();
    }
    /// SO_MAX_PACING_RATE, bytes/s; `u64::MAX` = no limit. A limit turns pacing on.
    pub fn set_max_pacing_rate(&mut self, most: u64) {
        self.sender.awake().set_max_pacing_rate(most);
    }
    /// Arriving packets hold several segments of this size (GRO); by default the largest one.
    pub fn set_segment_limit(&mut self, bytes: u32) {
        self.receiver.awake().sizes.most = bytes;
    }
    /// Window scaling: its shift, or none.
    pub fn fit_header(&mut self, shift: Option<u8>) {
        self.receiver.awake().fit_header(shift);
    }
    /// Break the connection off: an RST leaves, nothing else.
    pub fn reset(&mut self) {
        self.reset_due = matches!(self.state, State::SynReceived | State::Established);
        self.go_to(State::Failed);
    }

    /// Suspend the writer while more packets of a poll follow, or resume it after the last.
    pub fn suspend_writer(&mut self, suspended: bool) {
        self.sender.suspend_writer(suspended);
    }
}
