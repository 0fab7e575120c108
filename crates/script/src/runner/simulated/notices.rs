//! Error queue of a socket, which reports the outcome of writes. MSG_ZEROCOPY reports when data may be reused;
//! SO_TIMESTAMPING reports when the last byte of a write was queued, sent and acknowledged (Linux
//! `Documentation/networking/msg_zerocopy.rst`, `timestamping.rst`).

use std::collections::VecDeque;

use ackclock_core::Time;
use ackclock_tcp::Connection;

/// Linux SOF_TIMESTAMPING_*.
pub const TX_SOFTWARE: i64 = 1 << 1;
pub const TX_SCHED: i64 = 1 << 8;
pub const TX_ACK: i64 = 1 << 9;
/// Linux SCM_TSTAMP_*.
pub const SND: i64 = 0;
pub const SCHED: i64 = 1;
pub const ACK: i64 = 2;

/// Error queue entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// Calls whose data may be reused. A device read by a program copies the data, so the calls are reported as
    /// copied.
    Zerocopy { first: u32, last: u32 },
    /// Byte `key` has reached this stage.
    Stamp { at: Time, stage: i64, key: u32 },
}

/// A write with an outcome to be reported.
#[derive(Debug)]
struct Watched {
    /// Stream length up to the end of the write, bytes.
    end: u64,
    zerocopy: Option<u32>,
    /// Requested stages, and the key for the write's last byte.
    stamps: i64,
    key: u32,
    sent: bool,
}

/// Error queue of a socket.
#[derive(Debug, Default)]
pub struct Notices {
    queue: VecDeque<Notice>,
    watched: Vec<Watched>,
    zerocopies: u32,
    /// Number of entries so far, for edge triggering.
    pub pushed: u64,
}

impl Notices {
    /// Record a write. `end` is the length of the stream after it, bytes.
    pub fn wrote(&mut self, end: u64, zerocopy: bool, stamps: i64, key: u32) {
        let zerocopy = zerocopy.then(|| {
            self.zerocopies += 1;
            self.zerocopies - 1
        });
        if zerocopy.is_some() || stamps & (TX_SOFTWARE | TX_SCHED | TX_ACK) != 0 {
            self.watched.push(Watched { end, zerocopy, stamps, key, sent: false });
        }
    }

    /// Report stages that have been reached since the last update.
    pub fn update(&mut self, now: Time, conn: &Connection) {
        let (sent, acked) = (conn.sending().1 - 1, conn.acked());
        let mut watched = std::mem::take(&mut self.watched);
        for w in &mut watched {
            if !w.sent && sent >= w.end {
                w.sent = true;
                for (wanted, stage) in [(TX_SCHED, SCHED), (TX_SOFTWARE, SND)] {
                    if w.stamps & wanted != 0 {
                        self.push(Notice::Stamp { at: now, stage, key: w.key });
                    }
                }
            }
            if acked >= w.end {
                if w.stamps & TX_ACK != 0 {
                    self.push(Notice::Stamp { at: now, stage: ACK, key: w.key });
                }
                if let Some(n) = w.zerocopy {
                    self.reusable(n);
                }
            }
        }
        watched.retain(|w| acked < w.end);
        self.watched = watched;
    }

    fn push(&mut self, notice: Notice) {
        self.pushed += 1;
        self.queue.push_back(notice);
    }

    /// Report that the data of a call may be reused. Extends the previous entry if it has not been read (Linux
    /// `skb_zerocopy_notify_extend`).
    fn reusable(&mut self, n: u32) {
        self.pushed += 1;
        match self.queue.back_mut() {
            Some(Notice::Zerocopy { last, .. }) if *last + 1 == n => *last = n,
            _ => self.queue.push_back(Notice::Zerocopy { first: n, last: n }),
        }
    }

    /// Take the oldest entry.
    pub fn take(&mut self) -> Option<Notice> {
        self.queue.pop_front()
    }

    /// Whether the queue has entries.
    pub fn any(&self) -> bool {
        !self.queue.is_empty()
    }
}
