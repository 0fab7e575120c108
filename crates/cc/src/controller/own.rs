//! What users' own controllers have in common, in whatever language they are written: their hooks, the window as they see it (real
//! numbers, infinity where nothing is set), how often they are told of ACKs, and which answers count.
//!
//! Units: windows in segments, times in seconds, rates in bytes per second. Python's side is `crates/python/src/controller.rs`, that of the
//! page `crates/wasm/src/controller.rs`.

use std::sync::Mutex;

use super::{AckSample, MAX_VARS};
use crate::window::Window;

/// Windows beyond this are taken for an error of the controller, segments.
pub const ABSURD: f64 = (1_u32 << 30) as f64;

/// What a controller may be asked; in this order everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names are those of the hooks")]
pub enum Hook {
    Start,
    Sample,
    Ack,
    CongestionEvent,
    Rto,
    State,
    Recovered,
    Ecn,
    Undo,
    TxStart,
    Control,
}

impl Hook {
    /// Their names in a class.
    pub const NAMES: [&'static str; 11] = [
        "on_start",
        "on_sample",
        "on_ack",
        "on_congestion_event",
        "on_rto",
        "on_state",
        "on_recovered",
        "on_ecn",
        "undo_cwnd",
        "on_tx_start",
        "on_control",
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Hook::NAMES[self as usize]
    }
}

/// cwnd, ssthresh and pacing rate as a hook sees and sets them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnWindow {
    /// Congestion window, segments; fractions are kept, the sender sees the whole part.
    pub cwnd: f64,
    /// Slow-start threshold, segments; infinite until it is first set.
    pub ssthresh: f64,
    /// Pacing rate, bytes/s; infinite where none is set.
    pub pacing_rate: f64,
    /// cwnd at the last reduction, segments.
    pub prior_cwnd: u32,
}

impl Default for OwnWindow {
    fn default() -> OwnWindow {
        OwnWindow { cwnd: 0.0, ssthresh: f64::INFINITY, pacing_rate: f64::INFINITY, prior_cwnd: 0 }
    }
}

impl OwnWindow {
    /// Take over what the sender changed.
    pub fn follow(&mut self, window: &Window) {
        if whole(self.cwnd) != window.cwnd {
            self.cwnd = f64::from(window.cwnd);
        }
        if limit(self.ssthresh) != window.ssthresh {
            self.ssthresh = match window.ssthresh {
                Window::INFINITE.. => f64::INFINITY,
                ssthresh => f64::from(ssthresh),
            };
        }
        if rate(self.pacing_rate) != window.pacing_rate {
            self.pacing_rate = match window.pacing_rate {
                Window::UNPACED => f64::INFINITY,
                bytes => bytes as f64,
            };
        }
        self.prior_cwnd = window.prior_cwnd;
    }

    /// Hand back what the hook set, if it is a window.
    pub fn hand_back(&self, window: &mut Window) -> Result<(), String> {
        within("cwnd", self.cwnd, 1.0, ABSURD)?;
        if self.ssthresh != f64::INFINITY {
            within("ssthresh", self.ssthresh, 1.0, f64::from(Window::INFINITE))?;
        }
        if self.pacing_rate != f64::INFINITY {
            within("pacing_rate", self.pacing_rate, 1.0, 1e15)?;
        }
        window.cwnd = whole(self.cwnd).min(window.cwnd_clamp);
        window.ssthresh = limit(self.ssthresh);
        window.pacing_rate = rate(self.pacing_rate);
        Ok(())
    }
}

fn whole(cwnd: f64) -> u32 {
    cwnd as u32
}

fn limit(ssthresh: f64) -> u32 {
    (ssthresh as u32).min(Window::INFINITE)
}

fn rate(pacing_rate: f64) -> u64 {
    if pacing_rate == f64::INFINITY {
        Window::UNPACED
    } else {
        pacing_rate as u64
    }
}

/// A value that a hook gave, if it lies between the two.
pub fn within(what: &str, value: f64, low: f64, high: f64) -> Result<f64, String> {
    if (low..=high).contains(&value) {
        return Ok(value);
    }
    Err(format!("{what} is {value}; allowed: {low} to {high}"))
}

/// How often the hooks that are told of ACKs are called.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Every {
    /// For each ACK.
    #[default]
    Ack,
    /// Every so many ACKs.
    Acks(u32),
    /// Once all data that was outstanding at the last call is acknowledged.
    Round,
}

/// ACKs that a hook has not been told of yet, summed up.
#[derive(Default)]
pub struct Pending {
    sum: Option<AckSample>,
    acks: u32,
    round_end: u64,
}

impl Pending {
    /// The sum with this ACK, if the hook is to be called now.
    pub fn add(&mut self, ack: &AckSample, every: Every) -> Option<AckSample> {
        self.acks += 1;
        let mut sum = *ack;
        if let Some(before) = self.sum {
            sum.acked += before.acked;
            sum.delivered += before.delivered;
            sum.delivered_ce += before.delivered_ce;
            sum.newly_lost += before.newly_lost;
            sum.rate = sum.rate.or(before.rate);
            let (now, before) = (&mut sum.arrival, before.arrival);
            now.acked_bytes += before.acked_bytes;
            now.rtt = now.rtt.or(before.rtt);
            now.prior_in_flight = before.prior_in_flight;
            now.ece |= before.ece;
        }
        let due = match every {
            Every::Ack => true,
            Every::Acks(n) => self.acks >= n,
            Every::Round => ack.snd_una >= self.round_end,
        };
        if !due {
            self.sum = Some(sum);
            return None;
        }
        *self = Pending { sum: None, acks: 0, round_end: ack.snd_nxt };
        Some(sum)
    }
}

/// Names of a controller's variables; they live as long as the process, for a trace refers to them.
pub fn variables(names: Vec<String>) -> Result<&'static [&'static str], String> {
    if names.len() > MAX_VARS
        || names.iter().any(|name| !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
    {
        return Err(format!("variables: found {names:?}; allowed: at most {MAX_VARS} plain names"));
    }
    static KNOWN: Mutex<Vec<&'static [&'static str]>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().map_err(|_| "a thread died".to_string())?;
    if let Some(found) = known.iter().find(|list| list.iter().eq(names.iter())) {
        return Ok(found);
    }
    let list: Vec<&'static str> = names.into_iter().map(|name| &*name.leak()).collect();
    let list: &'static [&'static str] = list.leak();
    known.push(list);
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_stay_until_the_sender_changes_the_window() {
        let mut window = Window::new(10);
        let mut own = OwnWindow::default();
        own.follow(&window);
        own.cwnd += 0.5;
        own.hand_back(&mut window).expect("a window");
        assert_eq!((window.cwnd, window.ssthresh), (10, Window::INFINITE));
        own.follow(&window);
        assert_eq!((own.cwnd, own.ssthresh, own.pacing_rate), (10.5, f64::INFINITY, f64::INFINITY));
        window.cwnd = 7;
        own.follow(&window);
        assert_eq!(own.cwnd, 7.0);
    }

    #[test]
    fn what_is_no_window_is_refused() {
        let mut window = Window::new(10);
        for cwnd in [f64::NAN, 0.9, -1.0, ABSURD + 1.0, f64::INFINITY] {
            let refused = OwnWindow { cwnd, ..OwnWindow::default() }.hand_back(&mut window);
            assert!(refused.expect_err("no window").ends_with("; allowed: 1 to 1073741824"));
        }
        assert_eq!(window, Window::new(10));
    }

    #[test]
    fn variables_are_at_most_eight_plain_names() {
        let names = |n: usize| (0..n).map(|i| format!("v_{i}")).collect::<Vec<_>>();
        let eight = variables(names(MAX_VARS)).expect("as many as there may be");
        assert_eq!((eight.len(), eight[7]), (8, "v_7"));
        assert!(std::ptr::eq(eight, variables(names(8)).expect("known")), "kept once");
        assert!(variables(names(MAX_VARS + 1))
            .expect_err("one too many")
            .ends_with("; allowed: at most 8 plain names"));
        assert!(variables(vec!["a b".into()]).is_err());
    }
}
