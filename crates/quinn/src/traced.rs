//! Wrapper of a stack controller that records its inputs, because bytes in flight and individual RTT samples are not
//! visible otherwise.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Instant;

use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use quinn_proto::RttEstimator;

/// Measurements made by a controller. One thread writes and reads them, but the stack's interfaces require `Sync`.
#[derive(Debug)]
pub(crate) struct Log {
    pub in_flight: AtomicU64,
    pub ssthresh: AtomicU64,
    pub rtt_sum_ns: AtomicU64,
    pub rtt_samples: AtomicU64,
    pub min_rtt_ns: AtomicU64,
    /// RTT of the newest packet covered by the current ACK, ns.
    newest_ns: AtomicU64,
    /// Number of window reductions.
    pub reductions: AtomicU64,
}

impl Default for Log {
    fn default() -> Log {
        let [zero, none] = [|| AtomicU64::new(0), || AtomicU64::new(u64::MAX)];
        Log {
            in_flight: zero(),
            ssthresh: none(),
            rtt_sum_ns: zero(),
            rtt_samples: zero(),
            min_rtt_ns: none(),
            newest_ns: none(),
            reductions: zero(),
        }
    }
}

/// Factory of controllers that write to a log.
pub(crate) struct Tracing {
    pub inner: Arc<dyn ControllerFactory + Send + Sync>,
    pub log: Arc<Log>,
}

impl ControllerFactory for Tracing {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = self.inner.clone().build(now, current_mtu);
        Box::new(Traced { inner, log: self.log.clone() })
    }
}

struct Traced {
    inner: Box<dyn Controller>,
    log: Arc<Log>,
}

impl Controller for Traced {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        let sample = now.saturating_duration_since(sent).as_nanos() as u64;
        self.log.newest_ns.store(self.log.newest_ns.load(Relaxed).min(sample), Relaxed);
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        let log = &*self.log;
        log.in_flight.store(in_flight, Relaxed);
        let sample = log.newest_ns.load(Relaxed);
        if sample != u64::MAX {
            log.newest_ns.store(u64::MAX, Relaxed);
            log.rtt_sum_ns.store(log.rtt_sum_ns.load(Relaxed) + sample, Relaxed);
            log.rtt_samples.store(log.rtt_samples.load(Relaxed) + 1, Relaxed);
            log.min_rtt_ns.store(log.min_rtt_ns.load(Relaxed).min(sample), Relaxed);
        }
        self.inner.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let before = self.inner.window();
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
        if self.inner.window() < before {
            self.log.reductions.store(self.log.reductions.load(Relaxed) + 1, Relaxed);
        }
        let ssthresh = self.inner.metrics().ssthresh.unwrap_or(u64::MAX);
        self.log.ssthresh.store(ssthresh, Relaxed);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Traced { inner: self.inner.clone_box(), log: self.log.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.into_any()
    }
}
