//! Pacing: a segment may be sent once the transmission time of the previous one at the pacing rate has passed
//! (Linux `tcp_pacing_check`, `tcp_update_skb_after_send`, `tcp_update_pacing_rate`). The rate is the
//! controller's (`Window::pacing_rate`), else cwnd per srtt times 200 % while cwnd is below half of ssthresh, and
//! 120 % above.
//!
//! | variable | meaning |
//! |---|---|
//! | `rate` | Linux `sk_pacing_rate`, bytes/s; `u64::MAX` = unlimited |
//! | `next` | Linux `tcp_wstamp_ns`: earliest departure of the next segment |
//!
//! The first ten segments of a connection are sent unpaced, as in Linux, unless the initial window is paced over the RTT of
//! the handshake. If the host's own queue is `fq`, the clock only stamps segments, and `fq` delays them (`small_queues.rs`).

use ackclock_cc::Window;
use ackclock_core::{HostPacing, Span, Time};

use super::writer::LEAST_SEGMENTS;
use super::Sender;
use crate::config::{Config, Pacing, RtoStyle};

/// Segments sent unpaced at the start of a connection (Linux, after the original `fq`).
const EXEMPT: u64 = 10;
/// Rate value meaning "no limit".
const UNLIMITED: u64 = Window::UNPACED;

/// The pacing clock of one sender.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    config: Pacing,
    /// Pacing rate, bytes/s.
    pub rate: u64,
    pub next: Time,
    /// The initial window is paced, and no ACK of it has arrived yet.
    first_window: bool,
    /// The controller set the pacing rate explicitly, at least for now.
    set: bool,
    /// Policy of the host for segments sent late; `None`: that of the kernel on a host that is never late.
    host: Option<HostPacing>,
    /// Scheduled departure time of the waiting segment; NEVER if none is waiting or it was not late.
    waits: Time,
}

impl Pacer {
    /// Return a pacer, or `None` if neither departures nor packet sizes depend on a rate.
    pub fn wanted(config: &Config, by_controller: bool, by_slow_start: bool) -> Option<Box<Pacer>> {
        let p = Pacing { on: config.sending.pacing.on || by_controller, ..config.sending.pacing };
        let sizes_packets = config.sending.buffers.is_some_and(|buffers| buffers.tso.is_some());
        let wanted = p.on || p.initial_window || p.measured || sizes_packets || by_slow_start;
        wanted.then(|| Box::new(Pacer::new(p)))
    }

    pub fn new(config: Pacing) -> Pacer {
        Pacer {
            config,
            rate: config.most,
            next: Time::ZERO,
            first_window: false,
            set: false,
            host: None,
            waits: Time::NEVER,
        }
    }

    /// Whether departures wait for the rate.
    #[inline]
    pub fn paces(&self) -> bool {
        self.config.on || self.first_window || self.set
    }

    /// Leave the pacing to the host's queue: every segment is stamped with its departure time.
    pub fn leave_to_the_host(&mut self) {
        self.config.on = true;
    }

    /// Departure time of the next segment; `None` if it may be sent now.
    #[inline]
    pub fn holds(&self, now: Time) -> Option<Time> {
        let next = self.host.map_or(self.next, |host| host.release(self.next));
        (self.paces() && next > now).then_some(next)
    }

    /// Advance the clock by `len` bytes sent at `now`. `segments`: number of segments sent so far, including these.
    pub fn sent(&mut self, now: Time, len: u32, segments: u64) {
        let prior = self.next;
        self.next = prior.max(now);
        let exempt = segments < EXEMPT && !self.config.initial_window;
        if !self.paces() || exempt || self.rate == UNLIMITED || self.rate == 0 {
            return;
        }
        // A segment sent late brings the next departure forward by its delay, but at most by half of its own
        // transmission time at the pacing rate.
        let wait = (len as u64 * 1_000_000_000).checked_div(self.rate).unwrap_or(0);
        if let (Some(host), true) = (self.host, self.waits == prior) {
            // the segment waited for its departure time, and the host delayed it further
            self.next = host.following(prior, now, Span(wait));
            self.waits = if self.next <= now { self.next } else { Time::NEVER };
            return;
        }
        let credit = self.next - prior;
        self.next += Span(wait - credit.0.min(wait / 2));
    }

    /// Start pacing after the handshake; `rtt` is its RTT sample, if any.
    fn begin(&mut self, window: &Window, smss: u32, rtt: Option<Span>) {
        let Some(rtt) = rtt.filter(|rtt| *rtt > Span::ZERO && self.config.initial_window) else { return };
        self.first_window = true;
        self.rate = rate(smss, window.cwnd, 100, rtt).min(self.config.most);
    }

    /// Update the rate after a change of the window.
    fn update(&mut self, window: &Window, smss: u32, packets_out: u32, srtt: Span) {
        self.first_window = false;
        self.set = window.pacing_rate != UNLIMITED;
        self.rate = match window.pacing_rate {
            UNLIMITED => {
                let slow_start = window.cwnd < window.ssthresh / 2;
                let percent = if slow_start { self.config.ss_percent } else { self.config.ca_percent };
                rate(smss, window.cwnd.max(packets_out), percent, srtt)
            }
            rate => rate,
        }
        .min(self.config.most);
    }
}

/// Rate of `percent` of `segments` per `srtt`, bytes/s, in the kernel's arithmetic: srtt in eighths of a microsecond.
fn rate(smss: u32, segments: u32, percent: u32, srtt: Span) -> u64 {
    let bytes = (smss as u64 * 80_000).saturating_mul(percent as u64).saturating_mul(segments as u64);
    match srtt.0 / 125 {
        0 => bytes,
        eighths => bytes / eighths,
    }
}

impl Sender {
    /// Set the host's policy for segments sent late.
    pub fn set_host_pacer(&mut self, policy: HostPacing) {
        if let Some(pacer) = &mut self.pacer {
            pacer.host = Some(policy);
        }
    }

    /// Start pacing after the handshake; `rtt` is its RTT sample, if any.
    pub(super) fn begin_pacing(&mut self, rtt: Option<Span>) {
        // On the end that initiated the connection, Linux computes the first rate before the route sets the
        // initial window (`tcp_rcv_synsent_state_process`: `tcp_ack`, then `tcp_finish_connect`).
        let (_, responder) = self.trace.whose();
        let window = self.window.cwnd;
        if !responder && self.config.timers.rto_style == RtoStyle::Linux {
            self.window.cwnd = LEAST_SEGMENTS;
        }
        self.update_pacing();
        self.window.cwnd = window;
        if let Some(pacer) = &mut self.pacer {
            pacer.begin(&self.window, self.smss, rtt);
        }
    }

    /// Update the rate after an ACK (Linux end of `tcp_cong_control`).
    #[inline]
    pub(super) fn update_pacing(&mut self) {
        if let Some(pacer) = &mut self.pacer {
            // rate of full segments (Linux `mss_cache`), regardless of the bytes reserved for options
            pacer.update(&self.window, self.mss_cache, self.board.packets_out(), self.rtt.exact_srtt());
        }
    }

    /// Advance the clock to an ACK without data: later segments have no delay to make up (Linux
    /// `__tcp_transmit_skb`).
    #[inline]
    pub fn sent_ack(&mut self, now: Time) {
        if let Some(pacer) = &mut self.pacer {
            pacer.next = pacer.next.max(now);
        }
    }

    /// Adopt a rate that the controller set between ACKs (Linux `sk_pacing_rate`).
    pub(super) fn adopt_pacing(&mut self) {
        if self.window.pacing_rate != UNLIMITED {
            self.update_pacing();
        }
    }

    /// Whether departures wait for the rate.
    #[inline]
    pub(super) fn paced(&self) -> bool {
        self.pacer.as_ref().is_some_and(|p| p.paces())
    }

    /// Time between the current ACK and the next departure.
    #[inline]
    pub(super) fn departs_in(&self) -> Span {
        self.pacer.as_ref().map_or(Span::ZERO, |p| p.next.since(self.heard.0))
    }

    /// Whether the segment at `start` has to wait for the pacing clock. If so, the timer is set.
    #[inline]
    pub(super) fn pacing_holds(&mut self, now: Time, start: u64) -> bool {
        match self.pacer.as_ref().and_then(|p| p.holds(now)) {
            Some(at) if !self.within_packet(start) => {
                self.timer.pace(at);
                if let Some(pacer) = &mut self.pacer {
                    pacer.waits = pacer.next;
                }
                true
            }
            _ => false,
        }
    }

    /// Resume sending when the pacing clock allows the next departure (Linux `tcp_tsq_write`).
    #[inline]
    pub(super) fn on_pacing_timer(&mut self, now: Time) {
        if let Some(pacer) = self.pacer.as_mut().filter(|pacer| pacer.next >= now) {
            pacer.waits = Time::NEVER; // the timer fired in time; any later delay of the segment is not caused by the host
        }
        self.timer.pace(Time::NEVER);
        self.push_on();
    }

    /// Time until the last segment actually leaves the host, in whole ticks: timers start then (Linux
    /// `tcp_pacing_delay`).
    #[inline]
    pub(super) fn pacing_delay(&self, now: Time) -> Span {
        match &self.pacer {
            Some(p) if p.paces() => self.timer.ticks.floor(p.next.since(now)),
            _ => Span::ZERO,
        }
    }

    /// Set SO_MAX_PACING_RATE, bytes/s. A limit turns pacing on.
    pub fn set_max_pacing_rate(&mut self, most: u64) {
        let config = self.config.sending.pacing;
        let pacer = self.pacer.get_or_insert_with(|| Box::new(Pacer::new(config)));
        pacer.config.most = most;
        pacer.config.on |= most != UNLIMITED;
        pacer.rate = pacer.rate.min(most);
    }

    /// Pacing rate and its upper bound, bytes/s.
    pub fn pacing_rate(&self) -> (u64, u64) {
        self.pacer.as_ref().map_or((UNLIMITED, self.config.sending.pacing.most), |p| (p.rate, p.config.most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacer(initial_window: bool) -> Pacer {
        Pacer::new(Pacing { on: true, initial_window, ..Pacing::OFF })
    }

    fn window(cwnd: u32, ssthresh: u32) -> Window {
        Window { ssthresh, ..Window::new(cwnd) }
    }

    #[test]
    fn the_rate_is_twice_the_window_in_slow_start_and_a_fifth_more_later() {
        let mut p = pacer(false);
        let rtt = Span::from_ms(100);
        p.update(&window(10, Window::INFINITE), 1448, 10, rtt);
        assert_eq!(p.rate, 2 * 10 * 1448 * 10);
        p.update(&window(10, 20), 1448, 10, rtt); // cwnd is no longer below ssthresh / 2
        assert_eq!(p.rate, 12 * 10 * 1448);
        p.update(&window(10, 20), 1448, 20, rtt); // packets_out is used if it is larger than cwnd
        assert_eq!(p.rate, 12 * 20 * 1448);
        p.update(&Window { pacing_rate: 777, ..window(10, 20) }, 1448, 20, rtt);
        assert_eq!(p.rate, 777);
    }

    #[test]
    fn ten_segments_leave_at_once_and_the_rest_in_their_time() {
        let mut p = pacer(false);
        p.rate = 1_000_000;
        let now = Time(5_000_000);
        for n in 1..=9 {
            p.sent(now, 1000, n);
            assert_eq!(p.holds(now), None);
        }
        p.sent(now, 1000, 10);
        assert_eq!(p.holds(now), Some(now + Span::from_ms(1)));
        // after a departure 400 us late, the next one makes up all of the delay; after one 10 ms late, only half of a
        // segment's time
        p.sent(now + Span::from_us(1_400), 1000, 11);
        assert_eq!(p.holds(now), Some(now + Span::from_us(2_000)));
        p.sent(now + Span::from_ms(12), 1000, 12);
        assert_eq!(p.next, now + Span::from_us(12_500));
    }

    #[test]
    fn a_host_that_is_late_makes_up_for_what_it_says() {
        use ackclock_core::CatchUp;
        let sent = |catch_up| {
            let mut p = pacer(false);
            p.rate = 1_000_000; // 1 ms for 1000 bytes
            (p.host, p.next) = (Some(HostPacing { tick: Span::ZERO, catch_up }), Time(1_000_000));
            p.waits = p.next;
            let now = Time(6_500_000); // 5.5 ms late
            let mut sent = 0;
            while p.holds(now).is_none() {
                p.sent(now, 1000, 100);
                sent += 1;
            }
            (sent, p.next)
        };
        assert_eq!(sent(CatchUp::None), (1, Time(7_500_000)));
        assert_eq!(sent(CatchUp::Burst(2)), (3, Time(7_500_000)));
        assert_eq!(sent(CatchUp::Full), (6, Time(7_000_000)));
        // at ticks, every segment scheduled since the last tick is sent together
        let mut p = pacer(false);
        (p.rate, p.host) = (4_000_000, Some(HostPacing { tick: Span::from_ms(1), catch_up: CatchUp::None }));
        (p.next, p.waits) = (Time(1_100_000), Time(1_100_000));
        assert_eq!(p.holds(Time(1_500_000)), Some(Time(2_000_000)));
        for _ in 0..4 {
            assert_eq!(p.holds(Time(2_000_000)), None);
            p.sent(Time(2_000_000), 1000, 100);
        }
        assert_eq!(p.holds(Time(2_000_000)), Some(Time(3_000_000)));
    }

    #[test]
    fn the_first_window_is_spread_over_the_handshakes_rtt() {
        let mut p = pacer(true);
        p.config.on = false;
        p.begin(&window(10, Window::INFINITE), 1000, Some(Span::from_ms(100)));
        for n in 1..=10 {
            let now = p.next.max(Time(1_000_000_000));
            p.sent(now, 1000, n);
        }
        // the first segment counts as late, so all later ones are half an interval early
        let spread = p.next.since(Time(1_000_000_000));
        assert_eq!(spread, Span::from_us(95_000));
        p.update(&window(20, Window::INFINITE), 1000, 10, Span::from_ms(100));
        assert!(!p.paces(), "only the first window was to be paced");
    }
}
