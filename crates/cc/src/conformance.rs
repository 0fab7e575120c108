//! Conformance test for every controller, built-in or user-defined: random sequences of connection events, and rules
//! that must hold after each step.
//!
//! | rule | requirement |
//! |---|---|
//! | window | cwnd is at least 1 and never above its clamp; a target window is at least 2; a pacing rate is positive |
//! | reduction | a target window is not above cwnd |
//! | application-limited | an ACK does not raise cwnd unless the window limits the sender or the controller declares `unlimited` |
//! | undo | undoing a spurious reduction restores at least the previous window |
//! | ecn | the window does not grow while every ACK carries a mark |
//! | growth | a window that has grown once grows again after a loss, an idle period, a timeout in recovery, or losses down to two segments |
//! | variables | no variable is infinite |
//! | determinism | identical sequences produce identical windows |
//! | copy | a copy of a controller, if copying is supported, behaves like the original |
//!
//! In addition, every hook is called in random orders drawn from the contract's table (`drawn.rs`).
//!
//! Controllers that set the window themselves (`Needs::control`) handle growth, undo and marks in their own way, so the
//! rules on application limits, reductions, marks and growth do not apply to them. Their window may have grown or
//! shrunk during a spurious recovery; the window after the undo must not be smaller than both the window before the
//! undo and the window before the reduction. A window that has never grown need not grow again.
//!
//! Length: a sender in outline, whose every step asks for some of the rules.

mod drawn;
mod witness;

use std::fmt;

use ackclock_core::trace::CaState;
use ackclock_core::{Span, Stream, Time};

use crate::controller::{AckSample, Arrival, CongestionControl, Custom, Needs, RateSample, MAX_VARS};
use crate::window::Window;
pub use witness::{Heard, Witness};

/// Rule broken by a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Rule name, as in the table above.
    pub rule: &'static str,
    /// Hook after which the violation was detected.
    pub hook: &'static str,
    /// 0-based number of the sequence, and step within it.
    pub at: (u32, u32),
    /// Observed value, as text.
    pub found: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { rule, hook, at, found } = self;
        write!(f, "{rule}: after {hook} (sequence {}, step {}): {found}", at.0, at.1)
    }
}

/// Number of sequences in one check.
pub const SEQUENCES: u32 = 60;
/// Number of steps in a sequence.
const STEPS: u32 = 400;
/// Number of sequences that are run again with a copy of the controller taking over halfway.
const COPIES: u32 = 5;
/// Number of sequences drawn from the hook table.
const DRAWN: u32 = 24;
/// Number of sequences that test growth after a disturbance: four kinds of disturbance on four paths each.
const TROUBLES: u32 = 16;
/// Growth deadline, whichever is later: a number of loss-free round trips at the minimum RTT, or a time. The time is
/// needed because FAST may be configured to change its window only every 100 s.
const PATIENCE: (u32, Span) = (200, Span::from_secs(120));
const SMSS: u32 = 1448;
/// Maximum window, segments.
const CLAMP: u32 = 20_000;

/// Test the controllers made by `make`. `go_on` is called after each sequence; testing stops when it returns false.
pub fn check<C: CongestionControl>(
    mut make: impl FnMut() -> C,
    mut go_on: impl FnMut() -> bool,
) -> Result<(), Violation> {
    for sequence in 0..SEQUENCES {
        let first = Path::new(make(), sequence).run()?;
        if sequence < 5 {
            let second = Path::new(make(), sequence).run()?;
            differ("determinism", "the same steps", sequence, &first, &second)?;
        }
        if sequence < COPIES {
            if let Some(copied) = Path::new(make(), sequence).run_copied()? {
                differ("copy", "copy", sequence, &first, &copied)?;
            }
        }
        if sequence < DRAWN {
            Path::new(make(), sequence).run_drawn()?;
        }
        Path::new(make(), sequence).run_marked()?;
        if sequence < TROUBLES {
            Path::new(make(), sequence).run_troubled()?;
        }
        if !go_on() {
            break;
        }
    }
    Ok(())
}

/// Compare two series of windows that must be identical.
fn differ(
    rule: &'static str,
    hook: &'static str,
    sequence: u32,
    first: &[u32],
    second: &[u32],
) -> Result<(), Violation> {
    let Some(step) = first.iter().zip(second).position(|(a, b)| a != b) else { return Ok(()) };
    let found = format!("cwnd {} and {}", first[step], second[step]);
    Err(Violation { rule, hook, at: (sequence, step as u32), found })
}

/// Simplified sender that drives a controller with consistent events.
struct Path<C> {
    cc: C,
    window: Window,
    stream: Stream,
    at: (u32, u32),
    now: Time,
    base_rtt: Span,
    srtt: Span,
    min_rtt: Span,
    snd_una: u64,
    state: CaState,
    delivered: u64,
    lost: u64,
    needs: Needs,
}

impl<C: CongestionControl> Path<C> {
    fn new(mut cc: C, sequence: u32) -> Path<C> {
        let mut stream = Stream::new(u64::from(sequence), "conformance");
        let needs = cc.needs();
        if needs.seed {
            cc.seed(stream.next_u64());
        }
        let base_rtt = Span::from_us(500 + stream.below(200_000));
        let window = Window { cwnd_clamp: CLAMP, ..Window::new(1 + stream.below(20) as u32) };
        Path {
            needs,
            cc,
            window,
            stream,
            at: (sequence, 0),
            now: Time(1_000_000),
            base_rtt,
            srtt: base_rtt,
            min_rtt: base_rtt,
            snd_una: 1,
            state: CaState::Open,
            delivered: 0,
            lost: 0,
        }
    }

    /// Run random steps and return the window after each.
    fn run(mut self) -> Result<Vec<u32>, Violation> {
        self.begin()?;
        let mut windows = Vec::with_capacity(STEPS as usize);
        self.steps(0..STEPS, &mut windows)?;
        Ok(windows)
    }

    /// Run random steps, the second half with a copy of the controller. Returns `None` if the controller cannot be
    /// copied.
    fn run_copied(mut self) -> Result<Option<Vec<u32>>, Violation> {
        self.begin()?;
        let mut windows = Vec::with_capacity(STEPS as usize);
        self.steps(0..STEPS / 2, &mut windows)?;
        let Ok(cc) = self.cc.copied() else { return Ok(None) };
        let Path {
            window,
            stream,
            at,
            now,
            base_rtt,
            srtt,
            min_rtt,
            snd_una,
            state,
            delivered,
            lost,
            needs,
            cc: old,
        } = self;
        drop(old);
        let mut copy: Path<Custom> = Path {
            cc,
            window,
            stream,
            at,
            now,
            base_rtt,
            srtt,
            min_rtt,
            snd_una,
            state,
            delivered,
            lost,
            needs,
        };
        copy.steps(STEPS / 2..STEPS, &mut windows)?;
        Ok(Some(windows))
    }

    fn steps(&mut self, steps: std::ops::Range<u32>, windows: &mut Vec<u32>) -> Result<(), Violation> {
        for step in steps {
            self.at.1 = step;
            match self.stream.below(100) {
                0..=69 => self.ack(true, false)?,
                70..=84 => self.ack(false, false)?,
                85..=89 => self.lose(false)?,
                90..=92 => self.lose(true)?,
                93..=94 => self.time_out()?,
                95..=96 => self.mark()?,
                97 => self.idle()?,
                _ => self.round()?,
            }
            windows.push(self.window.cwnd);
        }
        Ok(())
    }

    /// Run round trips in which every ACK carries a mark.
    fn run_marked(mut self) -> Result<(), Violation> {
        self.begin()?;
        for _ in 0..8 {
            self.round()?;
        }
        let before = self.window.cwnd;
        for round in 0..30 {
            self.at.1 = round;
            self.mark()?;
        }
        if !self.needs.control && self.window.cwnd > before.max(4) {
            return Err(self.broken(
                "ecn",
                "on_ecn",
                format!("cwnd rose from {before} to {}", self.window.cwnd),
            ));
        }
        Ok(())
    }

    /// Let the window grow, cause trouble, and check that it grows again.
    fn run_troubled(mut self) -> Result<(), Violation> {
        self.begin()?;
        if self.needs.control || !self.grows((4, Span::ZERO))? {
            return Ok(());
        }
        let (trouble, least) = match self.at.0 % 4 {
            0 => ("a loss", 40),
            1 => ("time without data", 40),
            2 => ("a timeout in recovery", 40),
            _ => ("losses down to two segments", 2),
        };
        for _ in 0..60 {
            self.lose(false)?;
            if self.window.cwnd <= least {
                break;
            }
        }
        match self.at.0 % 4 {
            1 => {
                self.even_round(true)?; // counters that are initialised by the first growth are initialised here
                (0..40).try_for_each(|_| self.even_round(false))?;
            }
            2 => self.time_out_in_recovery()?,
            _ => {}
        }
        let cwnd = self.window.cwnd;
        if self.grows(PATIENCE)? {
            return Ok(());
        }
        let (rounds, seconds) = (PATIENCE.0, PATIENCE.1 .0 / 1_000_000_000);
        let found =
            format!("a cwnd of {cwnd} does not grow in {rounds} round trips and {seconds} s after {trouble}");
        Err(self.broken("growth", "on_ack", found))
    }

    /// Return whether the window grows within `rounds` round trips or `time`, whichever ends later, without queueing or
    /// loss.
    fn grows(&mut self, (rounds, time): (u32, Span)) -> Result<bool, Violation> {
        let (before, until) = (self.window.cwnd, self.now + time);
        let mut round = 0;
        while round < rounds || self.now < until {
            round += 1;
            self.even_round(true)?;
            if self.window.cwnd > before {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Simulate one round trip at the minimum RTT with evenly spaced ACKs for at least two segments each. The window is
    /// kept full if `limited`; otherwise a single burst of half a window is sent.
    fn even_round(&mut self, limited: bool) -> Result<(), Violation> {
        let all = if limited { self.window.cwnd } else { (self.window.cwnd / 2).max(1) };
        let each = all.div_ceil(30).max(2).min(all);
        let mut rest = all;
        while rest > 0 {
            let segments = each.min(rest);
            let prior = if limited { self.window.cwnd.max(segments) } else { rest };
            rest -= segments;
            let now = self.now + Span(self.base_rtt.0 * u64::from(segments) / u64::from(all));
            let mut ack = self.sample(segments, limited, false);
            (self.now, ack.arrival.now) = (now, now);
            (self.srtt, ack.arrival.srtt, ack.arrival.rtt) =
                (self.base_rtt, self.base_rtt, Some(self.base_rtt));
            (ack.arrival.prior_in_flight, ack.arrival.left_in_flight, ack.in_flight) =
                (prior, prior - segments, prior - segments);
            self.cc.on_sample(&mut self.window, &ack);
            self.look("on_sample")?;
            self.grow(&ack)?;
        }
        Ok(())
    }

    /// Simulate a timeout before recovery has ended.
    fn time_out_in_recovery(&mut self) -> Result<(), Violation> {
        self.enter_recovery()?;
        self.time_out()
    }

    fn begin(&mut self) -> Result<(), Violation> {
        self.cc.on_negotiated(self.needs.l4s);
        self.cc.on_start(&mut self.window, self.now, self.srtt, SMSS);
        self.look("on_start")
    }

    fn sample(&mut self, segments: u32, limited: bool, marked: bool) -> AckSample {
        let rtt = self.base_rtt + Span(self.stream.below(self.base_rtt.0 / 2 + 1));
        self.now += Span(1 + self.stream.below(self.base_rtt.0 / 4 + 1));
        self.srtt = Span((7 * self.srtt.0 + rtt.0) / 8);
        let rtt = (self.stream.below(10) > 0).then_some(rtt);
        let in_flight = self.window.cwnd.max(segments);
        self.snd_una += u64::from(segments) * u64::from(SMSS);
        self.delivered += u64::from(segments);
        let flight = u64::from(in_flight).min(self.delivered);
        let arrival = Arrival {
            now: self.now,
            newly_acked: segments,
            newly_acked_ce: if marked { segments } else { 0 },
            since_sent: flight as u32,
            covered: segments,
            acked_bytes: u64::from(segments) * u64::from(SMSS),
            rtt,
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            prior_in_flight: in_flight,
            left_in_flight: in_flight - segments,
            snd_una: self.snd_una,
            snd_nxt: self.snd_una + u64::from(self.window.cwnd) * u64::from(SMSS),
            cwnd_limited: limited,
            window_held: limited,
            paced: self.needs.pacing,
            smss: SMSS,
            ece: marked,
            prior_state: self.state,
            is_dup: segments == 0,
            slow_path: segments == 0,
            ..Arrival::default()
        };
        AckSample {
            rate: self.needs.keeps_rates().then(|| RateSample {
                delivered: flight as u32,
                interval: self.srtt,
                send_elapsed: self.srtt,
                ack_elapsed: self.srtt,
                prior_delivered: self.delivered - flight,
                prior_time: Time(self.now.0.saturating_sub(self.srtt.0)),
                total_delivered: self.delivered,
                total_lost: self.lost,
                delivered_ce: 0,
                lost: 0,
                tx_in_flight: in_flight,
                is_app_limited: !limited,
                is_retrans: self.state >= CaState::Recovery,
                is_ack_delayed: segments == 1, // Linux's heuristic
                is_probe_ack: false,
            }),
            ..arrival.into()
        }
    }

    fn ack(&mut self, limited: bool, marked: bool) -> Result<(), Violation> {
        let segments = 1 + self.stream.below(3) as u32;
        let ack = self.sample(segments, limited, marked);
        let before = self.window.cwnd;
        self.cc.on_sample(&mut self.window, &ack);
        self.look("on_sample")?;
        self.grow(&ack)?;
        if !limited && !self.needs.control && !self.needs.unlimited && self.window.cwnd > before {
            let found = format!("cwnd rose from {before} to {}", self.window.cwnd);
            return Err(self.broken("application-limited", "on_ack", found));
        }
        Ok(())
    }

    fn grow(&mut self, ack: &AckSample) -> Result<(), Violation> {
        if self.needs.control {
            self.cc.on_control(&mut self.window, ack);
            return self.look("on_control");
        }
        self.cc.on_ack(&mut self.window, ack);
        self.look("on_ack")
    }

    /// Acknowledge a whole window, at most 60 ACKs.
    fn round(&mut self) -> Result<(), Violation> {
        for _ in 0..self.window.cwnd.min(60) {
            self.ack(true, false)?;
        }
        Ok(())
    }

    fn set_state(&mut self, state: CaState) -> Result<(), Violation> {
        self.cc.on_state(&mut self.window, state, self.now);
        self.state = state;
        self.look("on_state")
    }

    /// Ask the controller for the target window of a new reduction.
    fn reduce(&mut self, marked: bool) -> Result<(), Violation> {
        let cwnd = self.window.cwnd;
        self.window.prior_cwnd = cwnd;
        self.window.cwnd_cnt = 0;
        let ssthresh = match marked {
            true => self.cc.ssthresh_for_mark(&self.window, cwnd),
            false => self.cc.ssthresh(&self.window, cwnd),
        };
        self.take_target(ssthresh)
    }

    /// Check the target window of a reduction and store it as ssthresh.
    fn take_target(&mut self, ssthresh: u32) -> Result<(), Violation> {
        let cwnd = self.window.cwnd;
        if ssthresh < 2 {
            return Err(self.broken("window", "on_congestion_event", format!("a target of {ssthresh}")));
        }
        if !self.needs.control && ssthresh > cwnd.max(2) {
            let found = format!("a target of {ssthresh} for a cwnd of {cwnd}");
            return Err(self.broken("reduction", "on_congestion_event", found));
        }
        self.window.ssthresh = ssthresh;
        Ok(())
    }

    /// Process an ACK for one segment up to loss detection, which marks one segment lost if `lost`.
    fn hear(&mut self, lost: bool) -> Result<AckSample, Violation> {
        let mut ack = self.sample(1, true, false);
        self.cc.on_sample(&mut self.window, &ack);
        self.look("on_sample")?;
        self.lose_one(&mut ack, lost);
        Ok(ack)
    }

    /// Set the result of loss detection in `ack`: one segment lost, or none.
    fn lose_one(&mut self, ack: &mut AckSample, lost: bool) {
        ack.newly_lost = u32::from(lost);
        self.lost += u64::from(ack.newly_lost);
        if let Some(rate) = &mut ack.rate {
            rate.total_lost = self.lost;
        }
    }

    /// Detect a loss and enter recovery.
    fn enter_recovery(&mut self) -> Result<(), Violation> {
        let ack = self.hear(true)?;
        self.reduce(false)?;
        self.set_state(CaState::Recovery)?;
        self.control(&ack)
    }

    /// Call `on_control` for this ACK if the controller sets the window itself.
    fn control(&mut self, ack: &AckSample) -> Result<(), Violation> {
        if self.needs.control {
            self.grow(ack)?;
        }
        Ok(())
    }

    /// Simulate a loss and a few ACKs in recovery, and then either complete the recovery or undo it.
    fn lose(&mut self, undone: bool) -> Result<(), Violation> {
        let prior_ssthresh = self.window.current_ssthresh();
        self.enter_recovery()?;
        let ack = self.hear(false)?;
        self.control(&ack)?;
        let ack = self.hear(false)?;
        if undone {
            let (before, prior) = (self.window.cwnd, self.window.prior_cwnd);
            if !self.needs.control {
                self.window.cwnd = self.window.ssthresh.min(before);
            }
            let least = if self.needs.control { before.min(prior) } else { prior };
            let cwnd = self.cc.undo_cwnd(&self.window);
            if cwnd < least {
                return Err(self.broken("undo", "undo_cwnd", format!("{cwnd} for a window of {least}")));
            }
            self.window.cwnd = cwnd;
            self.window.ssthresh = self.window.ssthresh.max(prior_ssthresh);
            self.look("undo_cwnd")?;
        } else {
            if !self.needs.control {
                self.window.cwnd = self.window.ssthresh.min(self.window.cwnd).max(1);
            }
            self.cc.on_recovered(&mut self.window, self.now);
            self.look("on_recovered")?;
        }
        self.set_state(CaState::Open)?;
        self.control(&ack)
    }

    fn time_out(&mut self) -> Result<(), Violation> {
        self.now += Span::from_ms(300);
        self.cc.on_timer(self.now);
        self.reduce(false)?;
        self.cc.on_rto(&mut self.window, self.now);
        self.window.cwnd = 1;
        self.look("on_rto")?;
        self.set_state(CaState::Loss)?;
        let ack = self.sample(1, true, false);
        self.cc.on_sample(&mut self.window, &ack);
        self.look("on_sample")?;
        self.grow(&ack)?;
        self.set_state(CaState::Open)
    }

    /// Simulate one round trip in which every ACK carries a mark.
    fn mark(&mut self) -> Result<(), Violation> {
        let ack = self.sample(1, true, true);
        self.cc.on_sample(&mut self.window, &ack);
        self.look("on_sample")?;
        let reduces = self.cc.on_ecn(&mut self.window, &ack);
        self.look("on_ecn")?;
        if reduces {
            self.reduce(true)?;
            self.set_state(CaState::Cwr)?;
        }
        for _ in 0..self.window.cwnd.min(60) {
            let ack = self.sample(1, true, true);
            self.cc.on_sample(&mut self.window, &ack);
            self.look("on_sample")?;
            if self.needs.control || !reduces {
                self.grow(&ack)?;
            }
        }
        if reduces {
            let ack = self.hear(false)?;
            if !self.needs.control {
                self.window.cwnd = self.window.ssthresh.min(self.window.cwnd).max(1);
            }
            let before = self.window.cwnd;
            self.cc.on_recovered(&mut self.window, self.now);
            self.look("on_recovered")?;
            if !self.needs.control {
                // `on_recovered` may raise cwnd to the controller's estimate. Later checks would mistake that for
                // growth.
                self.window.cwnd = self.window.cwnd.min(before).max(1);
            }
            self.set_state(CaState::Open)?;
            self.control(&ack)?;
        }
        Ok(())
    }

    fn idle(&mut self) -> Result<(), Violation> {
        let idle = Span::from_ms(1 + self.stream.below(5_000));
        self.now += idle;
        self.cc.on_tx_start(&mut self.window, self.now, idle, self.snd_una);
        self.look("on_tx_start")
    }

    fn look(&self, hook: &'static str) -> Result<(), Violation> {
        let Window { cwnd, cwnd_clamp, pacing_rate, .. } = self.window;
        if cwnd < 1 || cwnd > cwnd_clamp.max(CLAMP) {
            return Err(self.broken("window", hook, format!("a cwnd of {cwnd}")));
        }
        if pacing_rate == 0 {
            return Err(self.broken("window", hook, "a pacing rate of 0".to_string()));
        }
        let names = self.needs.vars;
        let mut values = [f64::NAN; MAX_VARS];
        self.cc.vars(&mut values[..names.len()]);
        match names.iter().zip(values).find(|(_, value)| value.is_infinite()) {
            Some((name, value)) => Err(self.broken("variables", hook, format!("{name} is {value}"))),
            None => Ok(()),
        }
    }

    fn broken(&self, rule: &'static str, hook: &'static str, found: String) -> Violation {
        Violation { rule, hook, at: self.at, found }
    }
}

#[cfg(test)]
mod tests;
