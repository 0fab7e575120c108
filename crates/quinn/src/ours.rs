//! A controller of this simulator inside the stack: `ackclock_cc::CongestionControl` and its slow start behind
//! `quinn_proto`'s trait. The same rule can thus run over two transports.
//!
//! The stack reports packets one by one, and then the end of the ACK; `CongestionControl` is called once per ACK. It
//! counts segments, which are full datagrams here. A loss sets the window to its target at once (RFC 9002), because
//! there is no recovery rule. The stack always paces by the window, so controllers that set a pacing rate cannot be
//! used.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ackclock_cc::controller::{AckSample, Arrival, CongestionControl, Recipe};
use ackclock_cc::slow_start::{SlowStart, SlowStartConfig, StartRule};
use ackclock_cc::{Controller as Rule, Window};
use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use quinn_proto::RttEstimator;

use crate::seal::Clock;

/// Minimum window after a reduction, segments.
const LEAST: u32 = 2;

/// Controller factory.
pub(crate) struct Ours {
    pub recipe: Recipe,
    pub start: SlowStartConfig,
    /// Initial window, segments.
    pub window: u32,
    pub clock: Clock,
}

impl ControllerFactory for Ours {
    fn build(self: Arc<Self>, _: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Inside::new(self, u64::from(current_mtu)))
    }
}

struct Inside {
    made: Arc<Ours>,
    mtu: u64,
    /// Congestion window, bytes, as reported to the stack.
    window: u64,
    ssthresh: Option<u64>,
    sent: u64,
    in_flight: u64,
    /// Bytes in flight before the last ACK.
    flight: u64,
    /// Acknowledged bytes that do not fill a segment yet.
    rest: u64,
    /// Time of the last reduction; data sent before it does not cause another one.
    reduced_at: Option<Time>,
    heard: Heard,
    /// State, in a mutex only because the stack's trait requires `Sync`; it is not shared.
    state: Mutex<State>,
}

struct State {
    rule: Rule,
    start: StartRule,
    window: Window,
    has_started: bool,
}

/// Packets covered by the current ACK.
#[derive(Default)]
struct Heard {
    packets: u32,
    bytes: u64,
    /// Bytes of covered packets sent after the last reduction.
    fresh: u64,
    rtt: Option<Span>,
    srtt: Span,
    min_rtt: Span,
}

impl Inside {
    fn new(made: Arc<Ours>, mtu: u64) -> Inside {
        let state = State {
            rule: made.recipe.make(),
            start: StartRule::new(&made.start, made.window),
            window: Window::new(made.window),
            has_started: false,
        };
        let window = u64::from(made.window) * mtu;
        Inside {
            made,
            mtu,
            window,
            ssthresh: None,
            sent: 0,
            in_flight: 0,
            flight: 0,
            rest: 0,
            reduced_at: None,
            heard: Heard::default(),
            state: Mutex::new(state),
        }
    }

    fn time(&self, at: Instant) -> Time {
        self.made.clock.time(at)
    }

    fn segments(&self, bytes: u64) -> u32 {
        u32::try_from(bytes / self.mtu).unwrap_or(u32::MAX)
    }

    /// Refresh the values exposed to the stack from the current window.
    fn show(&mut self) {
        let window = self.state.get_mut().unwrap_or_else(PoisonError::into_inner).window;
        self.window = u64::from(window.cwnd.max(LEAST)) * self.mtu;
        self.ssthresh = (window.ssthresh != Window::INFINITE).then(|| u64::from(window.ssthresh) * self.mtu);
    }

    fn arrival(&self, now: Time, heard: &Heard, app_limited: bool) -> Arrival {
        let recovers = heard.fresh == 0 && self.reduced_at.is_some();
        Arrival {
            now,
            newly_acked: heard.packets,
            covered: heard.packets,
            acked_bytes: heard.bytes,
            rtt: heard.rtt,
            srtt: heard.srtt,
            min_rtt: heard.min_rtt,
            prior_in_flight: self.segments(self.flight),
            left_in_flight: self.segments(self.in_flight),
            snd_una: self.sent.saturating_sub(self.in_flight),
            snd_nxt: self.sent,
            cwnd_limited: !app_limited,
            paced: true,
            smss: self.mtu as u32,
            prior_state: if recovers { CaState::Recovery } else { CaState::Open },
            ..Arrival::default()
        }
    }
}

impl Controller for Inside {
    fn on_sent(&mut self, _: Instant, bytes: u64, _: u64) {
        self.sent += bytes;
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, _: bool, rtt: &RttEstimator) {
        let (now, sent) = (self.time(now), self.time(sent));
        let sample = now.since(sent);
        let is_fresh = self.reduced_at.is_none_or(|reduced| sent > reduced);
        let heard = &mut self.heard;
        heard.packets += 1;
        heard.fresh += if is_fresh { bytes } else { 0 };
        heard.bytes += bytes;
        heard.rtt = Some(heard.rtt.map_or(sample, |rtt| rtt.min(sample)));
        heard.srtt = Span(rtt.get().as_nanos() as u64);
        heard.min_rtt = Span(rtt.min().as_nanos() as u64);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _: Option<u64>) {
        let now = self.time(now);
        self.in_flight = in_flight;
        let heard = std::mem::take(&mut self.heard);
        if heard.packets == 0 {
            return;
        }
        self.flight = in_flight + heard.bytes;
        let arrival = self.arrival(now, &heard, app_limited);
        let State { rule, start, window, has_started } =
            self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(has_started, true) {
            rule.on_start(window, now, arrival.srtt, arrival.smss);
        }
        let rtt = arrival.rtt.filter(|_| rule.heeds_rtt(now));
        start.on_sample(window, &arrival, rtt);
        rule.on_sample(window, &arrival);
        if arrival.prior_state == CaState::Open {
            let mut ack = AckSample::from(arrival);
            // counted in bytes, because packets are smaller at first
            ack.acked = ((self.rest + heard.fresh) / self.mtu) as u32;
            self.rest = (self.rest + heard.fresh) % self.mtu;
            if let Some(acked) = start.growth(window, &ack) {
                ack.acked = acked;
                rule.on_ack(window, &ack);
            }
        }
        self.show();
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let (now, sent) = (self.time(now), self.time(sent));
        if self.reduced_at.is_some_and(|reduced| sent <= reduced) {
            return;
        }
        self.reduced_at = Some(now);
        let (flight, snd_nxt) = (self.segments(self.flight), self.sent);
        let State { rule, start, window, .. } = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let target = match lost_bytes {
            0 => rule.ssthresh_for_mark(window, flight),
            _ => rule.ssthresh(window, flight),
        };
        window.prior_cwnd = window.cwnd;
        window.ssthresh = start.on_reduction(window, target, snd_nxt).max(LEAST);
        window.cwnd = window.ssthresh;
        window.cwnd_cnt = 0;
        if is_persistent_congestion {
            self.reduced_at = None;
            rule.on_rto(window, now);
            start.on_rto();
            rule.on_state(window, CaState::Loss, now);
            window.cwnd = LEAST;
        } else {
            rule.on_state(window, CaState::Recovery, now);
            rule.on_recovered(window, now);
        }
        self.show();
    }

    /// Keep the window in bytes unchanged by scaling the number of segments.
    fn on_mtu_update(&mut self, new_mtu: u16) {
        let (before, mtu) = (std::mem::replace(&mut self.mtu, u64::from(new_mtu)), u64::from(new_mtu));
        let window = &mut self.state.get_mut().unwrap_or_else(PoisonError::into_inner).window;
        let scaled = |segments: u32| (u64::from(segments) * before / mtu).max(u64::from(LEAST)) as u32;
        (window.cwnd, window.prior_cwnd) = (scaled(window.cwnd), scaled(window.prior_cwnd));
        if window.ssthresh != Window::INFINITE {
            window.ssthresh = scaled(window.ssthresh);
        }
        self.show();
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window;
        metrics.ssthresh = self.ssthresh;
        metrics
    }

    /// Create a controller for another path.
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Inside::new(self.made.clone(), self.mtu))
    }

    fn initial_window(&self) -> u64 {
        u64::from(self.made.window) * self.mtu
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
