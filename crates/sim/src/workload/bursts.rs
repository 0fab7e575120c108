//! Bursts: one connection that alternates between bursts and silence. The application writes a burst, waits until it
//! has been acknowledged, is silent for a while, and writes the next one. This is the on-off source with which
//! learned and hand-written controllers are trained and compared (Winstein and Balakrishnan, "TCP ex Machina",
//! SIGCOMM 2013, §5.1: drawn bytes, drawn silence). The connection stays open, so the path state that it keeps
//! matters, and so does the effect of idle time on that state.
//!
//! The k-th burst and the silence after it are the k-th values of the stream `bursts.<flow>`, so the scenarios of a
//! comparison write the same bursts. Each burst adds a row to table `fetches`.

use std::mem::size_of;

use ackclock_core::schema::{Takes, Unit, COUNT};
use ackclock_core::{table, Distribution, Span, Stream, Time};
use ackclock_tcp::Stats;

use super::one_way::OneWay;
use super::{Asks, Context, Driver, Make, Member, Params, Place, Site, Workload};
use crate::error::Error;
use crate::transport::TransportConfig;
use crate::workload::flow::{FetchCounts, FetchRow};
use crate::world::{ConnId, RECEIVER, SENDER};

table! {
    /// Sends bursts that are separated by pauses over one connection.
    /// A pause begins when the previous burst is acknowledged.
    pub struct BurstsParams "bursts" {
        /// Size of a burst: a size, or a distribution of sizes.
        bytes: Distribution = Takes::DrawnOr(Unit::Size, 1);
        /// Length of a pause: a duration, or a distribution of durations.
        pause: Distribution = Takes::DrawnOr(Unit::Duration, 0);
        /// Number of bursts. Default: the flow sends bursts until it stops.
        count: Option<u32> = COUNT;
    }
}

impl Params for BurstsParams {
    fn asks(&self, _duration: Span) -> Asks {
        match (self.count, Asks::bytes(2 * self.bytes.mean() as u64)) {
            (Some(count), Asks::Packets(each)) => Asks::Packets(count as f64 * each),
            _ => Asks::Everything,
        }
    }
    fn rows(&self, duration: Span) -> f64 {
        let most = duration.as_secs() / self.pause.mean().max(LEAST_S);
        self.count.map_or(most, f64::from).min(most + 1.0) * size_of::<FetchRow>() as f64
    }
    fn lay(&self, _: &Place, _: &TransportConfig, _: &mut Site) -> Result<Make, Error> {
        let params = self.clone();
        Ok(Box::new(move |member, _| Driver::Bursts(Box::new(Bursts::new(params.clone(), member)))))
    }
}

/// Our choice: minimum duration of a burst, s. A burst takes one round trip, and few paths have a shorter RTT.
const LEAST_S: f64 = 1e-3;

/// State of a bursts flow.
#[derive(Clone)]
pub struct Bursts {
    params: BurstsParams,
    draws: Stream,
    way: OneWay,
    conn: Option<ConnId>,
    started: u32,
    written: u64,
    /// Journal row of the burst that has not been acknowledged yet.
    current: Option<usize>,
    /// Counters of the sender, and SYN retransmissions of both ends, at the start of the current burst.
    before: (Stats, [u64; 2]),
}

impl Bursts {
    fn new(params: BurstsParams, member: &Member) -> Bursts {
        let draws = Stream::new(member.seed, &format!("bursts.{}", member.id));
        let (way, before) = (OneWay::default(), Default::default());
        Bursts { params, draws, way, conn: None, started: 0, written: 0, current: None, before }
    }

    fn burst(&mut self, cx: &mut Context) {
        let bytes = (self.params.bytes.draw(&mut self.draws) as u64).max(1);
        self.current = Some(cx.journal.fetches.len());
        cx.journal.fetches.push(FetchRow {
            flow: cx.flow.id,
            idx: self.started,
            start: cx.now(),
            connected: Time::NEVER,
            first_byte: Time::NEVER,
            completed: Time::NEVER,
            bytes,
            counts: FetchCounts::default(),
        });
        self.started += 1;
        self.written += bytes;
        self.way.write(cx, bytes);
        cx.wake(cx.flow.stop);
    }

    /// Record the counters since the start of the current burst.
    fn count(&mut self, cx: &mut Context, conn: ConnId, row: usize) {
        let (sender, receiver) = (cx.world.tcp(conn, SENDER), cx.world.tcp(conn, RECEIVER));
        let (stats, info) = (sender.stats().clone(), sender.info());
        let syns = [sender, receiver].map(|end| end.syn_retransmissions());
        let server = since(&stats, &self.before.0);
        cx.journal.fetches[row].counts = FetchCounts {
            syn_retransmissions: syns[0] - self.before.1[0],
            synack_retransmissions: syns[1] - self.before.1[1],
            request_retransmissions: 0,
            server,
            cwnd_end: info.cwnd,
            ssthresh_end: info.ssthresh,
        };
        self.before = (stats, syns);
    }

    /// Complete the current burst, now acknowledged.
    fn complete(&mut self, cx: &mut Context, conn: ConnId, row: usize) {
        cx.journal.fetches[row].completed = cx.now();
        self.current = None;
        self.count(cx, conn, row);
        let pause = Span((self.params.pause.draw(&mut self.draws) * 1e9).min(LONGEST_NS) as u64);
        if self.params.count == Some(self.started) {
            self.way.close(cx);
        } else {
            cx.wake((cx.now() + pause).min(cx.flow.stop));
        }
    }
}

impl Workload for Bursts {
    fn start(&mut self, cx: &mut Context) {
        self.conn = Some(self.way.open(cx));
        self.burst(cx);
    }

    fn wake(&mut self, cx: &mut Context) {
        if cx.now() >= cx.flow.stop {
            self.finish(cx); // a burst cut off by the stop is not complete
            self.way.stop(cx);
        } else if self.way.is_open() {
            self.burst(cx);
        }
    }

    fn progress(&mut self, cx: &mut Context, conn: ConnId, host: usize) {
        if let Some(row) = self.current {
            let (sender, receiver) = (cx.world.tcp(conn, SENDER), cx.world.tcp(conn, RECEIVER));
            let (acked, received) = (sender.acked(), receiver.received());
            let failed = sender.has_failed() || receiver.has_failed();
            let (now, burst) = (cx.now(), &mut cx.journal.fetches[row]);
            if burst.idx == 0 && burst.connected == Time::NEVER && sender.is_established() {
                burst.connected = now;
            }
            if burst.first_byte == Time::NEVER && received > self.written - burst.bytes {
                burst.first_byte = now;
            }
            if acked >= self.written {
                self.complete(cx, conn, row);
            } else if failed {
                self.current = None;
                self.count(cx, conn, row);
            }
        }
        self.way.progress(cx, conn, host);
    }

    fn finish(&mut self, cx: &mut Context) {
        if let (Some(row), Some(conn)) = (self.current.take(), self.conn) {
            self.count(cx, conn, row);
        }
    }
}

/// Increase of the counters of table `fetches` since an earlier reading.
fn since(now: &Stats, before: &Stats) -> Stats {
    Stats {
        data_segments_sent: now.data_segments_sent - before.data_segments_sent,
        retransmissions: now.retransmissions - before.retransmissions,
        rtos: now.rtos - before.rtos,
        rtos_open: now.rtos_open - before.rtos_open,
        rtos_disorder: now.rtos_disorder - before.rtos_disorder,
        rtos_recovery: now.rtos_recovery - before.rtos_recovery,
        rtos_loss: now.rtos_loss - before.rtos_loss,
        tlps: now.tlps - before.tlps,
        recoveries: now.recoveries - before.recoveries,
        lost_retransmits: now.lost_retransmits - before.lost_retransmits,
        undos: now.undos - before.undos,
        dsacks_received: now.dsacks_received - before.dsacks_received,
        ..Stats::default()
    }
}

/// Maximum silence, beyond the end of any run.
const LONGEST_NS: f64 = 4e15;

#[cfg(test)]
mod tests {
    use crate::{parse, run, Output};

    /// Bursts of `workload` over an 8 Mbit/s path with an RTT of 20 ms.
    fn bursts(workload: &str, loss: f64, seconds: u64) -> Output {
        let json = format!(
            r#"{{"duration_ns": {}, "network": {{"topology": "chain",
                 "bottleneck": {{"rate": 8000000, "delay": 10000000, "loss": {{"kind": "bernoulli", "p": {loss}}}}},
                 "reverse": {{"bottleneck": {{"rate": 8000000, "delay": 10000000}}}}}},
                 "flows": [{{"profile": "linux-6", "congestion_control": "cubic",
                             "workload": {{"kind": "bursts", {workload}}}}}]}}"#,
            seconds * 1_000_000_000
        );
        run(&parse(&json).expect("reads"), 1).expect("runs")
    }

    #[test]
    fn each_burst_begins_a_silence_after_the_one_before_is_acknowledged() {
        let workload = r#""bytes": {"kind": "constant", "value": 100000}, "pause": {"kind": "constant", "value": 0.5},
                          "count": 5"#;
        let output = bursts(workload, 0.0, 30);
        let rows = output.table("fetches");
        assert_eq!(rows.integers("bytes"), [100_000; 5]);
        assert_eq!(rows.integers("data_retransmissions"), [0; 5]);
        assert_eq!(rows.integers("data_segments_sent"), [70; 5]); // 100,000 / 1448, rounded up
        let (start, took) = (rows.floats("start_s"), rows.floats("total_s"));
        for k in 1..5 {
            let silence = start[k] - start[k - 1] - took[k - 1];
            assert!((silence - 0.5).abs() < 1e-9, "{silence}");
            // at least the transmission time at 8 Mbit/s and one round trip
            assert!((0.12..0.25).contains(&took[k]), "{took:?}");
        }
        assert_eq!(output.table("flows").integers("bytes_acked"), [500_000]);
        let end = output.table("flows").floats("completion_s")[0];
        assert!((end - (start[4] + took[4])).abs() < 0.03, "{end}");
    }

    #[test]
    fn bursts_and_silences_are_drawn_and_do_not_depend_on_the_path() {
        let workload = r#""bytes": {"kind": "exponential", "mean": 100000}, "pause": {"kind": "exponential", "mean": 0.2}"#;
        let (clean, lossy) = (bursts(workload, 0.0, 120), bursts(workload, 0.02, 120));
        let sizes = |output: &Output| output.table("fetches").integers("bytes").to_vec();
        let (one, other) = (sizes(&clean), sizes(&lossy));
        let both = one.len().min(other.len());
        assert!(both > 200);
        assert_eq!(one[..both], other[..both]);
        let mean = one.iter().sum::<i64>() as f64 / one.len() as f64;
        assert!((80_000.0..120_000.0).contains(&mean), "{mean}");
        // each retransmission belongs to one burst
        let by_burst: i64 = lossy.table("fetches").integers("data_retransmissions").iter().sum();
        assert!(by_burst > 50);
        assert_eq!(by_burst, lossy.table("flows").integers("retransmissions")[0]);
    }

    #[test]
    fn what_the_stop_cuts_off_is_not_done() {
        let workload =
            r#""bytes": {"kind": "constant", "value": 100000000}, "pause": {"kind": "constant", "value": 0}"#;
        let output = bursts(workload, 0.0, 5);
        let rows = output.table("fetches");
        assert_eq!((rows.rows(), rows.floats("total_s")[0].is_nan()), (1, true));
        assert!(rows.integers("data_segments_sent")[0] > 3000);
    }
}
