//! What the application does: it writes, closes, and says which segments may wait. Where PSH or the send buffer are of
//! interest, a write goes on in `writer.rs`.

use ackclock_core::Time;

use super::Sender;

impl Sender {
    /// The application wrote `bytes`.
    pub fn write(&mut self, now: Time, bytes: u64) {
        self.write_marked(now, bytes, false, false);
    }

    /// The same; `more` will follow (MSG_MORE), or the last byte ends a `record` (MSG_EOR).
    pub fn write_marked(&mut self, now: Time, bytes: u64, more: bool, record: bool) {
        self.check_app_limited();
        if self.queue.is_some() {
            return self.begin_writing(now, bytes, more, record);
        }
        self.write_end = self.write_end.saturating_add(bytes);
        self.nagle_push = false;
        self.intent.push();
    }

    /// TCP_NODELAY: small segments need not wait for ACKs.
    pub fn set_nodelay(&mut self, on: bool) {
        self.nodelay = on;
        self.nagle_push |= on;
        self.intent.push();
    }

    /// TCP_CORK: no small segments at all. Without `push`, what waits goes on waiting for an ACK or a timer (MSG_MORE).
    pub fn set_cork(&mut self, on: bool, push: bool) {
        self.cork = on;
        self.nagle_push |= !on && push && self.nodelay;
        if push {
            self.intent.push();
        }
    }

    /// The application has nothing more to write than what was sent.
    pub fn stop_writing(&mut self) {
        self.write_end = self.snd_nxt - self.fin_sent as u64;
        if let Some(queue) = &mut self.queue {
            queue.cut(self.write_end);
        }
        self.stop_waiting();
    }

    /// FIN after all written data.
    pub fn close(&mut self) {
        self.close_when_written();
    }
}
