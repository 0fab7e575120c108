use super::*;
use ackclock_core::schema::Takes;

use crate::controller::{Controller, Options, Reno, Shared, Value, ENTRIES};

#[test]
fn every_built_in_controller_passes() {
    for entry in ENTRIES {
        let outcome = check(|| Controller::by_name(entry.name).expect("registered"), || true);
        assert_eq!(outcome, Ok(()), "{}", entry.name);
    }
}

#[test]
fn so_does_every_choice_of_an_option() {
    for entry in ENTRIES {
        for key in entry.options.keys {
            let values: Vec<Value> = match key.takes {
                Takes::Flag => vec![Value::Flag(true), Value::Flag(false)],
                Takes::Choice(names) => names.iter().map(|n| Value::Text(n.to_string())).collect(),
                Takes::Number(low, high) => vec![Value::Number(low), Value::Number(high)],
                Takes::Whole(low, high) => vec![Value::Whole(low), Value::Whole(high)],
                other => panic!("{} {}: {other:?}", entry.name, key.name),
            };
            for value in values {
                let options = Options::from([(key.name.to_string(), value.clone())]);
                let make = || Controller::build(entry.name, &options, Shared::default()).expect("allowed");
                assert_eq!(check(make, || true), Ok(()), "{} {} {value}", entry.name, key.name);
            }
        }
    }
}

#[test]
fn every_hook_is_called_in_an_order_that_the_table_allows() {
    use crate::controller::{Hook, HOOKS};
    use std::sync::{Arc, Mutex};

    for entry in ENTRIES {
        let heard = Arc::new(Mutex::new(Heard::default()));
        let needs = Controller::by_name(entry.name).expect("registered").needs();
        let make = || Witness::new(Controller::by_name(entry.name).expect("registered"), &heard);
        assert_eq!(check(make, || true), Ok(()), "{}", entry.name);
        let heard = heard.lock().expect("whole");
        let expected = |hook: Hook| match hook {
            Hook::on_ack | Hook::on_restart => !needs.control,
            Hook::on_control | Hook::holds_back => needs.control,
            Hook::reduces => needs.reduces,
            Hook::on_idle => needs.idle,
            Hook::on_totals => needs.keeps_rates(),
            Hook::on_lost | Hook::on_repaired => needs.losses,
            _ => true,
        };
        for row in HOOKS.iter().filter(|row| row.is_event) {
            // Controllers such as DCTCP answer a mark with false, others with true.
            let free = row.hook == Hook::ssthresh_for_mark;
            assert!(free || heard.has(row.hook) == expected(row.hook), "{}: {}", entry.name, row.name);
        }
        assert_eq!(heard.illegal(), Vec::<String>::new(), "{}", entry.name);
    }
}

/// Reno with one hook that breaks the window.
struct Breaks(&'static str);

impl Breaks {
    fn at(&self, hook: &str, window: &mut Window) {
        if self.0 == hook {
            window.cwnd = 0;
        }
    }
}

impl CongestionControl for Breaks {
    fn on_start(&mut self, window: &mut Window, _: Time, _: Span, _: u32) {
        self.at("on_start", window);
    }
    fn on_sample(&mut self, window: &mut Window, _: &Arrival) {
        self.at("on_sample", window);
    }
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        Reno::default().on_ack(window, ack);
        self.at("on_ack", window);
    }
    fn on_control(&mut self, window: &mut Window, _: &AckSample) {
        self.at("on_control", window);
    }
    fn ssthresh(&mut self, window: &Window, _: u32) -> u32 {
        if self.0 == "ssthresh" {
            1
        } else {
            (window.cwnd / 2).max(2)
        }
    }
    fn ssthresh_for_mark(&mut self, window: &Window, in_flight: u32) -> u32 {
        if self.0 == "ssthresh_for_mark" {
            0
        } else {
            self.ssthresh(window, in_flight)
        }
    }
    fn min_cwnd(&mut self, ssthresh: u32) -> u32 {
        if self.0 == "min_cwnd" {
            0
        } else {
            ssthresh
        }
    }
    fn undo_cwnd(&mut self, window: &Window) -> u32 {
        if self.0 == "undo_cwnd" {
            0
        } else {
            window.cwnd.max(window.prior_cwnd)
        }
    }
    fn on_lost(&mut self, window: &mut Window, _: Time, _: u64, _: u32, _: u32, _: bool) {
        self.at("on_lost", window);
    }
    fn on_repaired(&mut self, window: &mut Window, _: Time, _: u64, _: bool) {
        self.at("on_repaired", window);
    }
    fn on_rto(&mut self, window: &mut Window, _: Time) {
        self.at("on_rto", window);
    }
    fn on_state(&mut self, window: &mut Window, _: CaState, _: Time) {
        self.at("on_state", window);
    }
    fn on_recovered(&mut self, window: &mut Window, _: Time) {
        self.at("on_recovered", window);
    }
    fn on_ecn(&mut self, window: &mut Window, _: &Arrival) -> bool {
        self.at("on_ecn", window);
        true
    }
    fn on_tx_start(&mut self, window: &mut Window, _: Time, _: Span, _: u64) {
        self.at("on_tx_start", window);
    }
    fn on_restart(&mut self, window: &mut Window, _: u64) {
        self.at("on_restart", window);
    }
    fn needs(&self) -> Needs {
        let losses = ["on_lost", "on_repaired"].contains(&self.0);
        Needs { control: self.0 == "on_control", losses, ..Needs::default() }
    }
}

#[test]
fn a_window_that_any_hook_breaks_is_noticed() {
    assert_eq!(check(|| Breaks(""), || true), Ok(()));
    for row in crate::controller::HOOKS.iter().filter(|row| row.is_event) {
        let told = crate::controller::HOOK_TEXTS[row.hook as usize].arguments;
        let has_window = told.iter().any(|(name, _)| *name == "window") || row.name == "min_cwnd";
        if has_window {
            let broken = check(|| Breaks(row.name), || true).expect_err(row.name);
            // the sender itself sets the window at a timeout
            assert!(["window", "undo", "reduction"].contains(&broken.rule), "{}: {broken}", row.name);
        }
    }
}

/// User-defined controller that changes its window by a fixed number of segments with each ACK in recovery and returns
/// the given window from an undo.
struct Undoes(i32, fn(&Window) -> u32);

impl CongestionControl for Undoes {
    fn on_ack(&mut self, _: &mut Window, _: &AckSample) {}
    fn on_control(&mut self, window: &mut Window, ack: &AckSample) {
        let by = if ack.ca_state >= CaState::Recovery { self.0 } else { 0 };
        window.cwnd = window.cwnd.saturating_add_signed(by).clamp(2, CLAMP);
    }
    fn ssthresh(&mut self, window: &Window, _: u32) -> u32 {
        window.cwnd.max(2)
    }
    fn undo_cwnd(&mut self, window: &Window) -> u32 {
        (self.1)(window)
    }
    fn needs(&self) -> Needs {
        Needs { control: true, ..Needs::default() }
    }
}

/// An undo may restore a window that has grown during the spurious recovery (Google's BBRv3) or keep one that has
/// shrunk (BBR), but it must not reduce the window itself.
#[test]
fn an_undo_gives_back_what_was_there_before_or_leaves_what_there_is() {
    for by in [-1, 1] {
        assert_eq!(check(|| Undoes(by, |w| w.prior_cwnd), || true), Ok(()), "{by}");
        assert_eq!(check(|| Undoes(by, |w| w.cwnd), || true), Ok(()), "{by}");
        let broken =
            check(|| Undoes(by, |w| w.cwnd.min(w.prior_cwnd) - 1), || true).expect_err("less than both");
        assert_eq!(broken.rule, "undo", "{by}: {broken}");
    }
}

/// Reno that records three flags of the delivery-rate samples: for each, whether it was ever false and ever true.
struct Notes(std::sync::Arc<std::sync::Mutex<[[bool; 2]; 3]>>);

impl CongestionControl for Notes {
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        let rate = ack.rate.expect("asked for");
        let flags = [rate.is_app_limited, rate.is_retrans, rate.is_ack_delayed];
        let mut seen = self.0.lock().expect("whole");
        flags.into_iter().zip(seen.iter_mut()).for_each(|(flag, seen)| seen[usize::from(flag)] = true);
        Reno::default().on_ack(window, ack);
    }
    fn ssthresh(&mut self, window: &Window, _: u32) -> u32 {
        (window.cwnd / 2).max(2)
    }
    fn needs(&self) -> Needs {
        Needs { rate: true, ..Needs::default() }
    }
    fn copied(&self) -> Result<Custom, String> {
        Ok(Box::new(Notes(self.0.clone())))
    }
}

#[test]
fn what_a_sample_of_the_rate_says_is_said_both_ways() {
    let seen = std::sync::Arc::default();
    assert_eq!(check(|| Notes(std::sync::Arc::clone(&seen)), || true), Ok(()));
    assert_eq!(*seen.lock().expect("whole"), [[true; 2]; 3]);
}

/// A controller whose copy loses its state.
#[derive(Clone)]
struct Forgets(u32);

impl CongestionControl for Forgets {
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        self.0 += 1;
        if ack.cwnd_limited && self.0.is_multiple_of(7) {
            window.cwnd = (window.cwnd + 1).min(CLAMP);
        }
    }
    fn ssthresh(&mut self, window: &Window, _: u32) -> u32 {
        (window.cwnd / 2).max(2)
    }
    fn copied(&self) -> Result<Custom, String> {
        Ok(Box::new(Forgets(0)))
    }
}

#[test]
fn a_copy_that_is_none_is_noticed_and_built_in_controllers_are_copied() {
    assert_eq!(check(|| Forgets(0), || true).expect_err("forgets").rule, "copy");
    for entry in ENTRIES {
        assert!(Controller::by_name(entry.name).expect("registered").copy().is_ok(), "{}", entry.name);
    }
}

/// Windows up to the largest `u32`: in a build with overflow checks, no sum or product overflows.
#[test]
fn no_arithmetic_overflows_at_wide_windows() {
    const WIDE: [u32; 9] =
        [1 << 16, 1 << 20, 1 << 26, 500_000_000, 1 << 30, 0x7fff_ffff, 1 << 31, u32::MAX - 1, u32::MAX];
    for entry in ENTRIES {
        for (sequence, cwnd) in WIDE.into_iter().enumerate() {
            let mut path = Path::new(Controller::by_name(entry.name).expect("registered"), sequence as u32);
            let outcome = path.run_wide(cwnd);
            assert_eq!(outcome, Ok(()), "{} with a window of {cwnd}", entry.name);
        }
    }
}

impl<C: CongestionControl> Path<C> {
    /// Simulate ACKs of few and many segments, losses, marks and timeouts. The window is reset to `cwnd` before each step.
    fn run_wide(&mut self, cwnd: u32) -> Result<(), Violation> {
        self.window.cwnd_clamp = u32::MAX;
        self.begin()?;
        for step in 0..60 {
            self.at.1 = step;
            self.window.cwnd = cwnd;
            self.window.ssthresh = if step % 3 == 0 { Window::INFINITE } else { cwnd / 2 };
            for segments in [1, 2, 1 << 10, 1 << 20] {
                let ack = self.sample(segments, true, step % 5 == 0);
                self.cc.on_sample(&mut self.window, &ack);
                self.grow(&ack)?;
            }
            match step % 6 {
                1 => self.lose(false)?,
                2 => self.lose(true)?,
                3 => self.mark()?,
                4 => self.time_out()?,
                5 => self.idle()?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Reno with one rule broken.
struct Broken(&'static str, u32);

impl CongestionControl for Broken {
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        match self.0 {
            "application-limited" => window.cwnd += 1,
            "window" => window.cwnd = window.cwnd.saturating_sub(3),
            "growth" if window.ssthresh != Window::INFINITE => {}
            "determinism" if ack.cwnd_limited => window.cwnd += 1 + self.1 % 2,
            _ => Reno::default().on_ack(window, ack),
        }
        window.cwnd = window.cwnd.min(CLAMP);
    }
    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        match self.0 {
            "reduction" => window.cwnd + 5,
            _ => (window.cwnd / 2).max(2),
        }
    }
    fn undo_cwnd(&mut self, window: &Window) -> u32 {
        match self.0 {
            "undo" => 1,
            _ => window.prior_cwnd.max(window.cwnd),
        }
    }
    fn on_ecn(&mut self, _window: &mut Window, _ack: &Arrival) -> bool {
        self.0 != "ecn"
    }
    fn needs(&self) -> Needs {
        Needs { vars: &["x"], ..Needs::default() }
    }
    fn vars(&self, values: &mut [f64]) {
        values[0] = if self.0 == "variables" { f64::INFINITY } else { 0.0 };
    }
}

#[test]
fn each_rule_is_noticed_when_it_is_broken() {
    assert_eq!(check(|| Broken("none", 0), || true), Ok(()));
    for rule in
        ["window", "reduction", "application-limited", "undo", "ecn", "growth", "variables", "determinism"]
    {
        let mut made = 0;
        let make = || {
            made += 1;
            Broken(rule, made % 7)
        };
        let broken = check(make, || true).expect_err(rule);
        assert_eq!(broken.rule, rule, "{broken}");
    }
}
