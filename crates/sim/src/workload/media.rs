//! Real-time media: a camera produces a frame at fixed intervals and writes it to one connection at once. The first
//! frame of each group is independent of others and larger; the other frames encode differences from their
//! predecessors (the "steady state" source of RFC 8593 §5 in its simplest form: sizes do not vary, and the encoder
//! does not adapt). A frame is delivered when its last byte is delivered. If frames are too late, the application
//! skips frames until the next group, because frames after a missing one cannot be decoded.
//!
//! Each frame adds a row to table `fetches`: `start_s` is the time at which it was produced, `total_s` its delay,
//! missing if the frame was not written or did not arrive.

use std::collections::VecDeque;
use std::mem::size_of;

use ackclock_core::schema::{Takes, DURATION, SIZE};
use ackclock_core::{table, Span, Time};

use super::one_way::OneWay;
use super::{Asks, Context, Driver, Make, Params, Place, Site, Workload};
use crate::error::Error;
use crate::transport::TransportConfig;
use crate::workload::flow::{FetchCounts, FetchRow};
use crate::world::{ConnId, RECEIVER};

table! {
    /// Sends video frames in real time over one connection.
    pub struct MediaParams "media" {
        /// Frames per second.
        fps: u32 = Takes::Whole(1, 1000), 30;
        /// Number of frames in a group of pictures. The first frame of a group does not depend on others.
        group: u32 = Takes::Whole(1, 10_000), 30;
        /// Size of the first frame of a group.
        first: u64 = SIZE;
        /// Size of each other frame.
        other: u64 = SIZE;
        /// When the oldest unacknowledged frame is older than this, the sender skips frames until the next group.
        /// Default: it skips none.
        drop_late: Option<Span> = DURATION;
    }
}

impl MediaParams {
    fn frames(&self, duration: Span) -> f64 {
        duration.as_secs() * self.fps as f64 + 1.0
    }

    /// Mean size of a frame, bytes.
    fn mean(&self) -> f64 {
        let (first, other, group) = (self.first as f64, self.other as f64, self.group as f64);
        (first + (group - 1.0) * other) / group
    }
}

impl Params for MediaParams {
    fn asks(&self, duration: Span) -> Asks {
        let each = 1.0 + self.mean() / 1000.0;
        Asks::Packets(self.frames(duration) * each)
    }
    fn rows(&self, duration: Span) -> f64 {
        self.frames(duration) * size_of::<FetchRow>() as f64
    }
    fn lay(&self, _: &Place, _: &TransportConfig, _: &mut Site) -> Result<Make, Error> {
        let params = self.clone();
        Ok(Box::new(move |_, _| Driver::Media(Box::new(Media::new(params.clone())))))
    }
}

/// State of a media flow.
#[derive(Clone)]
pub struct Media {
    params: MediaParams,
    way: OneWay,
    started: Time,
    next: u32,
    written: u64,
    /// Whether frames are skipped until the next group.
    skips: bool,
    /// Frames written but not delivered: journal row, and stream offset of the frame's end.
    under_way: VecDeque<(usize, u64)>,
    /// Frames written but not acknowledged: production time, and stream offset of the frame's end.
    open: VecDeque<(Time, u64)>,
}

impl Media {
    fn new(params: MediaParams) -> Media {
        let (under_way, open) = Default::default();
        let way = OneWay::default();
        Media { params, way, started: Time::ZERO, next: 0, written: 0, skips: false, under_way, open }
    }

    /// Produce a frame.
    fn frame(&mut self, cx: &mut Context) {
        let now = cx.now();
        let begins = self.next.is_multiple_of(self.params.group);
        let late =
            |&(made, _): &(Time, u64)| self.params.drop_late.is_some_and(|most| now.since(made) > most);
        let is_late = self.open.front().is_some_and(late);
        self.skips = is_late || self.skips && !begins;
        let bytes = if begins { self.params.first } else { self.params.other };
        let row = cx.journal.fetches.len();
        cx.journal.fetches.push(FetchRow {
            flow: cx.flow.id,
            idx: self.next,
            start: now,
            connected: Time::NEVER,
            first_byte: Time::NEVER,
            completed: Time::NEVER,
            bytes,
            counts: FetchCounts::default(),
        });
        if !self.skips {
            self.written += bytes;
            self.under_way.push_back((row, self.written));
            self.open.push_back((now, self.written));
            self.way.write(cx, bytes);
        }
        self.next += 1;
        // relative to the start, so that rounding errors do not accumulate
        let since = Span((self.next as u128 * 1_000_000_000 / self.params.fps as u128) as u64);
        cx.wake((self.started + since).min(cx.flow.stop));
    }
}

impl Workload for Media {
    fn start(&mut self, cx: &mut Context) {
        self.way.open(cx);
        self.started = cx.now();
        self.frame(cx);
    }

    fn wake(&mut self, cx: &mut Context) {
        if cx.now() >= cx.flow.stop {
            self.way.stop(cx);
        } else if self.way.is_open() {
            self.frame(cx);
        }
    }

    fn progress(&mut self, cx: &mut Context, conn: ConnId, host: usize) {
        if host == RECEIVER {
            let received = cx.world.transport(conn, RECEIVER).received();
            while let Some(&(row, end)) = self.under_way.front() {
                let size = cx.journal.fetches[row].bytes;
                if cx.journal.fetches[row].first_byte == Time::NEVER && received > end - size {
                    cx.journal.fetches[row].first_byte = cx.now();
                }
                if received < end {
                    break;
                }
                cx.journal.fetches[row].completed = cx.now();
                self.under_way.pop_front();
            }
        } else {
            let acked = cx.world.transport(conn, host).acked();
            while self.open.front().is_some_and(|&(_, end)| acked >= end) {
                self.open.pop_front();
            }
        }
        self.way.progress(cx, conn, host);
    }
}

#[cfg(test)]
mod tests {
    use crate::{parse, run, Output};

    /// Run with frames of 9000 and 3000 bytes, ten frames per second and five per group, over a link of this rate
    /// with a delay of 10 ms.
    fn media(rate: u64, more: &str) -> Output {
        let json = format!(
            r#"{{"duration_ns": 10000000000, "network": {{"topology": "chain",
                 "bottleneck": {{"rate": {rate}, "delay": 10000000}}, "reverse": {{"bottleneck": {{"rate": {rate}, "delay": 10000000}}}}}},
                 "flows": [{{"profile": "linux-6", "congestion_control": "cubic",
                             "workload": {{"kind": "media", "fps": 10, "group": 5, "first": 9000, "other": 3000{more}}}}}]}}"#,
        );
        run(&parse(&json).expect("reads"), 1).expect("runs")
    }

    #[test]
    fn frames_come_by_the_clock_and_take_their_transmission_and_the_delay() {
        let output = media(8_000_000, "");
        let rows = output.table("fetches");
        assert_eq!(rows.rows(), 100);
        for (i, &start) in rows.floats("start_s").iter().enumerate() {
            assert!((start - i as f64 / 10.0).abs() < 1e-9);
        }
        let took = rows.floats("total_s");
        // 9000 bytes are 7 packets of up to 1500 bytes, 3000 are 3; the first frame also waits for the handshake
        for (i, &took) in took.iter().enumerate().skip(1) {
            let bytes = if i % 5 == 0 { 9000.0 + 7.0 * 52.0 } else { 3000.0 + 3.0 * 52.0 };
            assert!((took - 0.01 - bytes / 1e6).abs() < 2e-5, "{i}: {took}");
        }
        assert_eq!(output.table("flows").integers("bytes_acked"), [20 * (9000 + 4 * 3000)]);
    }

    #[test]
    fn what_is_late_is_left_out_to_the_next_group() {
        let slow = 200_000; // the stream needs 336 kbit/s
        let all = media(slow, "");
        let late = all.table("fetches").floats("total_s").iter().copied().fold(0.0, f64::max);
        assert!(late > 2.0, "{late}");
        let output = media(slow, r#", "drop_late": 250000000"#);
        let took = output.table("fetches").floats("total_s");
        let written: Vec<usize> = (0..100).filter(|&i| took[i].is_finite()).collect();
        assert!((30..80).contains(&written.len()), "{}", written.len());
        for pair in written.windows(2) {
            assert!(pair[1] == pair[0] + 1 || pair[1] % 5 == 0, "after a gap a group begins: {pair:?}");
        }
        assert!(took.iter().filter(|t| t.is_finite()).all(|&t| t < 1.0));
    }
}
