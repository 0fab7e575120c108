//! Congestion controllers: the contract. Each controller stands in its own file, the closed set of them in `controller.rs`.

use std::ops::Deref;

use ackclock_core::trace::CaState;
use ackclock_core::{Span, Time};

use crate::rate::RateSample;
use crate::window::Window;

/// Most variables that a controller may show in a trace.
pub const MAX_VARS: usize = 8;

/// What one ACK says when the scoreboard is up to date and losses are not yet looked for.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Time of arrival.
    pub now: Time,
    /// Segments delivered by this ACK: cumulatively acknowledged or newly SACKed, each once.
    pub delivered: u32,
    /// Of these, segments that an echo of congestion speaks of: all of them under ECE, else none.
    pub delivered_ce: u32,
    /// Segments delivered since the newest segment that this ACK covers was sent (Linux `ack_sample.in_flight`); zero where rates
    /// are not kept.
    pub since_sent: u32,
    /// Segments that the cumulative ACK covers, those SACKed before included (Linux `pkts_acked`): what a counter of
    /// ACKs sees. After a recovery far more than `delivered`.
    pub covered: u32,
    /// Segments that stand SACKed above the cumulative ACK (Linux `sacked_out`).
    pub sacked: u32,
    /// Bytes by which the cumulative ACK advanced.
    pub acked_bytes: u64,
    /// RTT of the most recently sent segment that this ACK covers, if none of them was retransmitted.
    pub rtt: Option<Span>,
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Span,
    /// Least RTT of the connection.
    pub min_rtt: Span,
    /// Segments in flight before this ACK.
    pub prior_in_flight: u32,
    /// Segments in flight after it.
    pub in_flight: u32,
    /// First unacknowledged offset after this ACK.
    pub snd_una: u64,
    /// Next offset to send.
    pub snd_nxt: u64,
    /// The window limited the sender since the last ACK (RFC 7661; Linux `tcp_is_cwnd_limited`). A controller must
    /// not grow the window when this is false.
    pub cwnd_limited: bool,
    /// Sender paces its packets.
    pub paced: bool,
    /// Time until the pacer lets the next segment leave (Linux `tcp_wstamp_ns` against `tcp_clock_cache`); zero if it may
    /// leave at once.
    pub departs_in: Span,
    /// Payload of a full segment, bytes.
    pub smss: u32,
    /// The ACK echoes a mark of congestion (ECE).
    pub ece: bool,
    /// Congestion state before this ACK.
    pub ca_state: CaState,
    /// Duplicate ACK: it acknowledges nothing new, carries no data and leaves the window as it is (RFC 5681 §2).
    pub is_dup: bool,
    /// SACK blocks, another window than before or ECE: the header is not what Linux's header prediction expects.
    pub slow_path: bool,
}

/// The same ACK when losses were looked for and the congestion state is settled. It reads as its [`Arrival`] does; the
/// fields here are newer than those of the same name there.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// What the ACK said.
    pub arrival: Arrival,
    /// Segments that count for growth: `delivered`, or 1 in a stack that counts ACKs.
    pub acked: u32,
    /// As in [`Arrival`], with what a duplicate ACK stands for without SACK.
    pub delivered: u32,
    /// As in [`Arrival`], of this `delivered`.
    pub delivered_ce: u32,
    /// Segments newly marked lost, retransmissions found lost included.
    pub newly_lost: u32,
    /// Segments in flight, without those newly marked lost.
    pub in_flight: u32,
    /// Congestion state after this ACK.
    pub ca_state: CaState,
    /// Delivery rate, where the controller needs it and this ACK gives a sample.
    pub rate: Option<RateSample>,
}

impl Deref for AckSample {
    type Target = Arrival;

    #[inline]
    fn deref(&self) -> &Arrival {
        &self.arrival
    }
}

impl From<Arrival> for AckSample {
    /// An ACK that shows no loss and changes no state.
    #[inline(always)]
    fn from(arrival: Arrival) -> AckSample {
        let Arrival { delivered, delivered_ce, in_flight, ca_state, .. } = arrival;
        let (acked, newly_lost, rate) = (delivered, 0, None);
        AckSample { arrival, acked, delivered, delivered_ce, newly_lost, in_flight, ca_state, rate }
    }
}

/// What a controller needs of the connection around it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// It sets window and pacing rate on every ACK by itself (Linux `cong_control`): neither the recovery rule nor `on_ack`
    /// is called then, `on_control` instead.
    pub control: bool,
    /// [`AckSample::rate`], which costs a stamp per segment.
    pub rate: bool,
    /// The sender paces by [`Window::pacing_rate`] whatever the stack is set to.
    pub pacing: bool,
    /// The receiver echoes each mark exactly and every segment is sent ECN-capable (RFC 8257 §3.1, §3.2).
    pub exact_ecn: bool,
    /// It asks for accurate ECN (RFC 9768) and is content with no other, and its packets carry ECT(1) (RFC 9331).
    pub l4s: bool,
    /// It may ask for a reduction by itself, by [`CongestionControl::reduces`].
    pub reduces: bool,
    /// It draws random numbers.
    pub seed: bool,
    /// It comes with HyStart, unless the stack says which slow start it is to have.
    pub hystart: bool,
    /// Its start is not the slow start of RFC 5681, so that no other can stand in for it.
    pub own_start: bool,
    /// Windows for which the send buffer is to have room (Linux `sndbuf_expand`); 0: two.
    pub buffer_windows: u8,
    /// Pacing rate, bytes/s, below which one segment is a packet, from there on two at least (Linux `min_tso_segs`); 0: as the stack is set.
    pub slow_packets: u32,
    /// Its window grows also where it is not the limit.
    pub unlimited: bool,
    /// It is told of what comes while nothing is outstanding, by [`CongestionControl::on_idle`].
    pub idle: bool,
    /// Names of the variables that `vars` gives, at most [`MAX_VARS`].
    pub vars: &'static [&'static str],
}

/// The contract of a congestion controller. It never sees single losses and keeps no recovery state: the recovery
/// rule takes the window from where it is to [`CongestionControl::ssthresh`]. On each ACK the order is `on_sample`,
/// then what the congestion states ask for (`ssthresh`, `on_state`, `on_recovered`, `undo_cwnd`), then one of `on_ack`
/// and `on_control`.
pub trait CongestionControl {
    /// The handshake is over; `accurate`: it agreed on accurate ECN. Optional.
    fn on_negotiated(&mut self, _accurate: bool) {}

    /// The end that connects has its SYN acknowledged, which gave this RTT (Linux `pkts_acked` before `init`). Optional.
    fn on_syn_acked(&mut self, _rtt: Span) {}

    /// Then, with this RTT (zero if it gave no sample). Optional.
    fn on_start(&mut self, _window: &mut Window, _now: Time, _srtt: Span, _smss: u32) {}

    /// RTT sample and delivery of every ACK, in every state, before losses are looked for (Linux `pkts_acked`). Optional.
    fn on_sample(&mut self, _window: &mut Window, _ack: &Arrival) {}

    /// Grow the window for an ACK that arrived outside recovery (Linux `cong_avoid`). Called only for ACKs that
    /// deliver data, in Open, Disorder and Loss.
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample);

    /// Asked after `on_ack`: reduce as for a loss, in state CWR, if that is no reduction already (Linux `tcp_enter_cwr` out of
    /// `cong_avoid`). Called if it needs `reduces`.
    fn reduces(&mut self) -> bool {
        false
    }

    /// A congestion event: the target window in segments, at least 2. Called once per reduction, before `window`
    /// changes; `in_flight` is the FlightSize that RFC 5681 §3.1 halves, in segments.
    fn ssthresh(&mut self, window: &Window, in_flight: u32) -> u32;

    /// The same for a mark instead of a loss, where [`CongestionControl::on_ecn`] said to react. Optional.
    fn ssthresh_for_mark(&mut self, window: &Window, in_flight: u32) -> u32 {
        self.ssthresh(window, in_flight)
    }

    /// The retransmission timer strikes: it is later than at the last ACK, and `ssthresh` is about to be asked. Optional.
    fn on_timer(&mut self, _now: Time) {}

    /// A retransmission timeout: `ssthresh` is set, the window about to collapse (Linux CA_EVENT_LOSS). Optional.
    fn on_rto(&mut self, _window: &mut Window, _now: Time) {}

    /// The congestion state becomes `state`, which may be the state it is (Linux `set_state`). Optional.
    fn on_state(&mut self, _window: &mut Window, _state: CaState, _now: Time) {}

    /// A reduction ended and the rule has set the window (Linux CA_EVENT_COMPLETE_CWR). Optional.
    fn on_recovered(&mut self, _window: &mut Window, _now: Time) {}

    /// The ACK echoes a mark of congestion. True: react as to a loss, once per window, in state CWR (RFC 3168 §6.1.2).
    /// Optional.
    fn on_ecn(&mut self, _window: &mut Window, _ack: &Arrival) -> bool {
        true
    }

    /// The reduction was a mistake: the window to go back to, in segments.
    fn undo_cwnd(&mut self, window: &Window) -> u32 {
        window.cwnd.max(window.prior_cwnd)
    }

    /// A segment, new or sent again, leaves after `idle` with nothing in flight: all was acknowledged, or is taken for lost. `snd_nxt`
    /// is where new data goes on. Optional. (Linux CA_EVENT_TX_START.)
    fn on_tx_start(&mut self, _window: &mut Window, _now: Time, _idle: Span, _snd_nxt: u64) {}

    /// The application was idle for longer than the RTO, and the window is about to be taken back for that (Linux
    /// CA_EVENT_CWND_RESTART). Optional.
    fn on_restart(&mut self, _window: &mut Window, _snd_nxt: u64) {}

    /// Least window of Linux's rate halving, given ssthresh, if it differs from ssthresh (the `min_cwnd` hook of
    /// kernels before 3.2).
    fn min_cwnd(&self, ssthresh: u32) -> u32 {
        ssthresh
    }

    /// What the controller needs. Constant for a connection.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Set window and pacing rate, on every ACK in every state, loss detection done. Called if it needs `control`.
    fn on_control(&mut self, _window: &mut Window, _ack: &AckSample) {}

    /// A segment came while nothing was outstanding, and acknowledges nothing new. `slow_path`: with data, or another window (Linux
    /// `in_ack_event`, which is told of it beside all other ACKs). Called if it needs `idle`.
    fn on_idle(&mut self, _now: Time, _snd_una: u64, _slow_path: bool) {}

    /// Segments delivered and marked lost on the connection so far, and when one was delivered last: told before the state
    /// becomes Loss, and when a segment left with nothing else outstanding, which sets that time, where rates are kept. Optional.
    fn on_totals(&mut self, _delivered: u64, _lost: u64, _delivered_time: Time) {}

    /// Asked after [`CongestionControl::on_control`]: the controller keeps less in flight than it could, to look at the path.
    /// Rate samples of what is in flight now then count as application-limited. Optional.
    fn holds_back(&self) -> bool {
        false
    }

    /// Variables for the trace, in the order of their names; what is unknown is left as it is (NaN).
    fn vars(&self, _values: &mut [f64]) {}

    /// The connection's seed. Called once, before anything else, if a seed is needed.
    fn seed(&mut self, _seed: u64) {}
}

/// Nearest 1/1024, never none nor all of the window.
pub(super) fn beta_from_permille(permille: u32) -> u32 {
    ((permille.min(1_000) * 1_024 + 500) / 1_000).clamp(1, 1_023)
}

/// `cwnd` times `beta` / 1024.
pub(super) fn scale(cwnd: u32, beta: u32) -> u32 {
    ((u64::from(cwnd) * u64::from(beta)) >> 10) as u32
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::controller::*;

    /// An ACK at `now_ns` for `acked` segments of a window-limited sender on a 100 ms path.
    pub(crate) fn sample(now_ns: u64, acked: u32) -> AckSample {
        arrival(now_ns, acked).into()
    }

    /// The same before losses are looked for.
    pub(crate) fn arrival(now_ns: u64, delivered: u32) -> Arrival {
        Arrival {
            now: Time(now_ns),
            delivered,
            delivered_ce: 0,
            since_sent: 0,
            covered: delivered,
            sacked: 0,
            acked_bytes: u64::from(delivered) * 1448,
            rtt: None,
            srtt: Span::from_ms(100),
            min_rtt: Span::from_ms(100),
            prior_in_flight: 0,
            in_flight: 0,
            snd_una: 0,
            snd_nxt: 0,
            cwnd_limited: true,
            paced: false,
            departs_in: Span::ZERO,
            smss: 1448,
            ece: false,
            ca_state: CaState::Open,
            is_dup: false,
            slow_path: false,
        }
    }

    #[test]
    fn every_registered_name_is_known() {
        for (name, _) in REGISTRY {
            assert!(Controller::by_name(name).is_some(), "{name}");
        }
        assert!(Controller::by_name("bbrr").is_none());
    }

    #[test]
    fn overrides_reach_the_controller() {
        for (name, permille, want) in
            [("reno", 700, 70), ("cubic", 500, 50), ("cubic-rfc9438", 500, 50), ("cubic", 1_000, 99)]
        {
            let shared = Shared { beta_permille: Some(permille), ..Shared::default() };
            let mut c = Controller::build(name, &Options::new(), shared).expect("registered");
            assert_eq!(c.ssthresh(&Window::new(100), 100), want, "{name} {permille}");
            assert_eq!(c.ssthresh_for_mark(&Window::new(100), 100), want, "a mark is as a loss: {name}");
        }
        // RFC 8511: less for a mark, and a loss as before; 0.8 and 0.85 are 819 and 870 of 1024
        for (name, permille, want) in
            [("reno", 800, (50, 79)), ("cubic", 850, (70, 84)), ("cubic-rfc9438", 850, (70, 85))]
        {
            let shared = Shared { ecn_beta_permille: Some(permille), ..Shared::default() };
            let mut c = Controller::build(name, &Options::new(), shared).expect("registered");
            assert_eq!(
                (c.ssthresh(&Window::new(100), 100), c.ssthresh_for_mark(&Window::new(100), 100)),
                want
            );
            assert_eq!(c.ssthresh_for_mark(&Window::new(2), 2), 2, "two segments at least");
        }
    }

    #[test]
    fn parameters_of_the_module_reach_cubic() {
        let options = Options::from([
            ("fast_convergence".to_string(), Value::Flag(false)),
            ("tcp_friendliness".to_string(), Value::Flag(false)),
        ]);
        let Ok(Controller::Cubic(c)) = Controller::build("cubic", &options, Shared::default()) else {
            panic!("cubic");
        };
        let want = CubicParams { fast_convergence: false, tcp_friendliness: false, ..CubicParams::LINUX };
        assert_eq!(c.params, want);
    }
}
