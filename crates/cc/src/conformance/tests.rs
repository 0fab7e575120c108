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
