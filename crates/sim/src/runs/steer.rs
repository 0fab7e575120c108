//! A stepwise run in which agents set the windows of some flows: the environment for learning agents.
//!
//! Every step lasts a fixed time. An agent's decision at the end of a step is applied on the flow's next ACK, as with
//! any controller. The sender detects and repairs losses as usual, but only the agent reduces the window.

use std::sync::{Arc, Mutex, PoisonError};

use ackclock_cc::controller::own::OwnWindow;
use ackclock_cc::controller::{Custom, Maker, Needs};
use ackclock_cc::{AckSample, CongestionControl, Window};
use ackclock_core::{Digest, Span, Time};

use crate::error::Error;
use crate::runs::build::{build, Built};
use crate::scenario::bounds::SLICE;
use crate::scenario::hosts::Customs;
use crate::scenario::spec::Scenario;
use crate::world::shortcuts::Shortcuts;

/// Values reported by a step for each agent's flow, in the order of Python's `Step`.
pub const FIELDS: [&str; 11] = [
    "now_s",
    "seconds",
    "throughput_bps",
    "rtt_s",
    "min_rtt_s",
    "delivered",
    "lost",
    "cwnd",
    "in_flight",
    "timeouts",
    "complete",
];

/// Decision of an agent: factors for the window and for the pacing rate. The second factor is used only if the agent
/// paces, and applies to a rate of one window per smoothed RTT.
pub type Action = [f64; 2];

/// Minimum and maximum window that an agent may set, segments.
const LEAST: f64 = 2.0;
const MOST: f64 = (1 << 20) as f64;

/// State shared by an agent and its flow's sender: information from the ACKs since the last step, and the action for
/// the next one.
struct Lever {
    widen: f64,
    pace: f64,
    bytes: u64,
    delivered: u64,
    lost: u64,
    timeouts: u64,
    rtts: Span,
    samples: u64,
    srtt: Span,
    min_rtt: Span,
    cwnd: f64,
    in_flight: u32,
}

impl Lever {
    fn new() -> Lever {
        Lever {
            widen: 1.0,
            pace: 1.0,
            bytes: 0,
            delivered: 0,
            lost: 0,
            timeouts: 0,
            rtts: Span::ZERO,
            samples: 0,
            srtt: Span::ZERO,
            min_rtt: Span::MAX,
            cwnd: 0.0,
            in_flight: 0,
        }
    }

    /// Write the report of the step that ends at `now` into `row`.
    fn tell(&mut self, now: Time, step: Span, complete: bool, row: &mut [f64]) {
        let seconds = step.as_secs();
        let rtt =
            if self.samples > 0 { self.rtts.as_secs() / self.samples as f64 } else { self.srtt.as_secs() };
        let min_rtt = if self.min_rtt == Span::MAX { f64::INFINITY } else { self.min_rtt.as_secs() };
        row.copy_from_slice(&[
            now.as_secs(),
            seconds,
            self.bytes as f64 * 8.0 / seconds,
            rtt,
            min_rtt,
            self.delivered as f64,
            self.lost as f64,
            self.cwnd,
            f64::from(self.in_flight),
            self.timeouts as f64,
            f64::from(complete),
        ]);
        (self.bytes, self.delivered, self.lost, self.timeouts, self.samples) = (0, 0, 0, 0, 0);
        self.rtts = Span::ZERO;
    }
}

/// Controller of an agent's flow. Both ends of the connection have one; only the end with data to send uses the
/// lever.
struct Agent {
    lever: Arc<Mutex<Lever>>,
    window: OwnWindow,
    paced: bool,
}

impl Agent {
    fn lever(&self) -> std::sync::MutexGuard<'_, Lever> {
        self.lever.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CongestionControl for Agent {
    fn on_ack(&mut self, _window: &mut Window, _ack: &AckSample) {}

    /// The window is kept: the agent sees the loss and decides.
    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        window.cwnd.max(2)
    }

    fn on_rto(&mut self, _window: &mut Window, _now: Time) {
        self.lever().timeouts += 1;
    }

    fn on_control(&mut self, window: &mut Window, ack: &AckSample) {
        if ack.acked_bytes == 0 && ack.delivered == 0 && ack.newly_lost == 0 {
            return; // the receiving end, or an ACK that reports nothing
        }
        let lever = Arc::clone(&self.lever);
        let mut lever = lever.lock().unwrap_or_else(PoisonError::into_inner);
        lever.bytes += ack.acked_bytes;
        lever.delivered += u64::from(ack.delivered);
        lever.lost += u64::from(ack.newly_lost);
        if let Some(rtt) = ack.rtt {
            lever.rtts = lever.rtts + rtt;
            lever.samples += 1;
        }
        (lever.srtt, lever.min_rtt, lever.in_flight) = (ack.srtt, ack.min_rtt, ack.in_flight);
        self.window.follow(window);
        let widen = std::mem::replace(&mut lever.widen, 1.0);
        if widen != 1.0 {
            self.window.cwnd = (self.window.cwnd * widen).clamp(LEAST, MOST);
        }
        if self.paced && ack.srtt > Span::ZERO {
            let rate = lever.pace * self.window.cwnd * f64::from(ack.smss) / ack.srtt.as_secs();
            self.window.pacing_rate = rate.max(1.0);
        }
        let handed = self.window.hand_back(window);
        debug_assert_eq!(handed, Ok(()));
        lever.cwnd = self.window.cwnd;
    }

    fn needs(&self) -> Needs {
        Needs { control: true, pacing: self.paced, ..Needs::default() }
    }
}

/// A run with agents that act after each step.
pub struct Steered {
    built: Built,
    /// Lever and flow number of each agent.
    agents: Vec<(Arc<Mutex<Lever>>, usize)>,
    step: Span,
    end: Time,
}

impl Steered {
    /// Build the run with an agent for each of these groups, each of which has one flow. `paced`: the agents also set
    /// pacing rates.
    pub fn new(
        scenario: &Scenario,
        seed: u64,
        groups: &[usize],
        step: Span,
        paced: bool,
    ) -> Result<Steered, Error> {
        let mut scenario = scenario.clone();
        let mut customs = Customs::new();
        let mut levers = Vec::with_capacity(groups.len());
        for &group in groups {
            let found = scenario.flows.len();
            let Some(flows) = scenario.flows.get_mut(group) else {
                return Err(Error::value("agents", group, format_args!("0 to {}", found - 1)));
            };
            let name = format!("agent{group}");
            flows.congestion_control = format!("custom:{name}");
            flows.congestion_control_options.clear();
            let lever = Arc::new(Mutex::new(Lever::new()));
            let given = Arc::clone(&lever);
            let make = move || {
                Box::new(Agent { lever: Arc::clone(&given), window: OwnWindow::default(), paced }) as Custom
            };
            customs.controllers.insert(name, Maker::new(make));
            levers.push(lever);
        }
        let mut built = build(&scenario, seed, &customs, Shortcuts::ALL)?;
        let flow = |group: usize| built.app.flows.iter().position(|flow| flow.group as usize == group);
        let agents =
            levers.into_iter().zip(groups).map(|(lever, &group)| Some((lever, flow(group)?))).collect();
        let agents: Option<Vec<_>> = agents;
        let agents =
            agents.ok_or_else(|| Error::value("agents", "a group without flows", "groups of one flow"))?;
        built.app.begin(&mut built.world);
        Ok(Steered { built, agents, step, end: Time(scenario.duration_ns) })
    }

    /// Apply the agents' decisions and run one step. `rows` receives [`FIELDS`] for each agent. Return whether the
    /// run has ended.
    pub fn step(&mut self, actions: &[Action], rows: &mut [f64]) -> bool {
        for ((lever, _), &[widen, pace]) in self.agents.iter().zip(actions) {
            let mut lever = lever.lock().unwrap_or_else(PoisonError::into_inner);
            lever.widen = (lever.widen * widen).clamp(LEAST / MOST, MOST);
            lever.pace = pace;
        }
        let begun = self.built.world.now();
        let until = (begun + self.step).min(self.end);
        while !self.built.world.run(&mut self.built.app, until, SLICE) {}
        for ((lever, flow), row) in self.agents.iter().zip(rows.chunks_exact_mut(FIELDS.len())) {
            let complete = self.built.app.flows[*flow].completed != Time::NEVER;
            let mut lever = lever.lock().unwrap_or_else(PoisonError::into_inner);
            lever.tell(until, until - begun, complete, row);
        }
        until >= self.end
    }

    /// Digest of all packets that have reached a host.
    pub fn digest(&self) -> Digest {
        self.built.world.digest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::run::parse;

    const PATH: &str = r#"{"duration_ns": 3000000000, "network": {"topology": "chain",
        "bottleneck": {"rate": 100000000, "delay": 10000000, "queue": {"kind": "drop-tail", "limit": {"packets": 40}}}},
        "flows": [{"congestion_control": "cubic"}, {"congestion_control": "reno", "start_ns": 500000000}]}"#;

    fn played(step: Span, groups: &[usize], widen: impl Fn(usize) -> f64) -> (Digest, Vec<Vec<f64>>) {
        let scenario = parse(PATH).expect("reads");
        let mut run = Steered::new(&scenario, 1, groups, step, false).expect("valid");
        let mut all = Vec::new();
        loop {
            let mut rows = vec![0.0; FIELDS.len() * groups.len()];
            let actions = vec![[widen(all.len()), 1.0]; groups.len()];
            let over = run.step(&actions, &mut rows);
            all.push(rows);
            if over {
                return (run.digest(), all);
            }
        }
    }

    #[test]
    fn steps_of_any_length_are_parts_of_one_run() {
        let whole = played(Span::from_secs(3), &[0], |_| 1.0).0;
        for ms in [1, 10, 333] {
            assert_eq!(played(Span::from_ms(ms), &[0], |_| 1.0).0, whole, "{ms} ms");
        }
    }

    #[test]
    fn the_window_is_what_the_agent_makes_it() {
        let (_, rows) = played(Span::from_ms(100), &[0], |step| if step == 5 { 2.0 } else { 1.0 });
        let cwnd = |step: usize| rows[step][7];
        assert_eq!((cwnd(4), cwnd(5), cwnd(20)), (10.0, 20.0, 20.0));
        // twice the window carries twice the data while nothing is queued
        let rate = |step: usize| rows[step][2];
        assert!((rate(10) / rate(3) - 2.0).abs() < 0.2, "{} {}", rate(10), rate(3));
    }

    #[test]
    fn sums_of_steps_are_the_flows_own() {
        let (_, rows) = played(Span::from_ms(10), &[0, 1], |step| if step % 40 == 0 { 1.5 } else { 1.0 });
        let sum = |field: usize| rows.iter().map(|row| row[field]).sum::<f64>();
        assert_eq!(rows.len(), 300);
        assert!(sum(6) > 0.0 && sum(FIELDS.len() + 6) > 0.0, "both lose");
        assert!(rows[40][FIELDS.len() + 7] == 0.0, "the second has not begun");
        let bits = rows.iter().map(|row| row[2] * row[1]).sum::<f64>();
        // SACKed data is delivered before it is acknowledged
        let acked = bits / 8.0 / 1448.0;
        assert!(acked <= sum(5) + 0.5 && acked > 0.9 * sum(5), "{acked} {}", sum(5));
    }
}
