//! HighSpeed TCP: increase and decrease depend on the window, so that large windows do not require extremely low loss
//! rates; up to 38 segments it behaves like Reno.
//!
//! Sources: RFC 3649 §5 (functions) and appendix B (table); Linux `tcp_highspeed` (table, growth counted per ACK).
//! Variables: a(w) segments per RTT, b(w) fraction of the window given up on a loss; Low_Window 38, High_Window 83000,
//! High_P 1e-7, High_Decrease 0.1.

use ackclock_core::{choice, table};

use super::{AckSample, CongestionControl};
use crate::window::Window;

const LOW_WINDOW: f64 = 38.0;
const HIGH_WINDOW: f64 = 83_000.0;
const HIGH_DECREASE: f64 = 0.1;

/// Source of a(w) and b(w).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HighSpeedForm {
    /// The table in appendix B, with a(w) per window of ACKs as in Linux.
    Linux,
    /// The functions in §5, with a(w) per window of acknowledged segments.
    Rfc3649,
}

choice! { HighSpeedForm: Linux "linux", Rfc3649 "rfc3649" }

table! {
    /// Options of `highspeed`.
    pub(super) struct HighSpeedOptions "highspeed" {
        /// Linux's table, with growth per ACK; or the RFC's functions, with growth per acknowledged segment
        form: HighSpeedForm = HighSpeedForm::TAKES, HighSpeedForm::Linux;
    }
}

/// HighSpeed TCP.
#[derive(Clone, Debug)]
pub struct HighSpeed {
    form: HighSpeedForm,
    /// Current table row.
    ai: usize,
    /// Accumulated growth of less than a segment (RFC form), segments.
    part: f64,
}

impl HighSpeed {
    /// Create the state at the start of a connection.
    pub fn new(form: HighSpeedForm) -> HighSpeed {
        HighSpeed { form, ai: 0, part: 0.0 }
    }

    fn find_row(&mut self, cwnd: u32) {
        while self.ai < TABLE.len() - 1 && cwnd > TABLE[self.ai] {
            self.ai += 1;
        }
        while self.ai > 0 && cwnd <= TABLE[self.ai - 1] {
            self.ai -= 1;
        }
    }
}

impl CongestionControl for HighSpeed {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        if !ack.cwnd_limited {
            return;
        }
        if window.in_slow_start() {
            window.slow_start(ack.acked);
            return;
        }
        match self.form {
            HighSpeedForm::Linux => {
                self.find_row(window.cwnd);
                if window.cwnd < window.cwnd_clamp {
                    window.cwnd_cnt += self.ai as u32 + 1;
                    if window.cwnd_cnt >= window.cwnd {
                        window.cwnd_cnt -= window.cwnd;
                        window.cwnd += 1;
                    }
                }
            }
            HighSpeedForm::Rfc3649 => {
                let w = f64::from(window.cwnd);
                self.part += f64::from(ack.acked) * increase(w) / w;
                let whole = self.part as u32;
                self.part -= f64::from(whole);
                window.cwnd = window.cwnd.saturating_add(whole).min(window.cwnd_clamp);
            }
        }
    }

    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        let cwnd = u64::from(window.cwnd);
        let left = match self.form {
            HighSpeedForm::Linux => {
                let md = (256.0 * decrease(f64::from(TABLE[self.ai]))) as u64;
                cwnd - ((cwnd * md) >> 8)
            }
            HighSpeedForm::Rfc3649 => (window.cwnd as f64 * (1.0 - decrease(cwnd as f64))) as u64,
        };
        (left as u32).max(2)
    }
}

/// b(w): fraction of the window given up on a loss.
pub fn decrease(w: f64) -> f64 {
    if w <= LOW_WINDOW {
        return 0.5;
    }
    let share = (libm::log(w) - libm::log(LOW_WINDOW)) / (libm::log(HIGH_WINDOW) - libm::log(LOW_WINDOW));
    (HIGH_DECREASE - 0.5) * share + 0.5
}

/// a(w): growth in segments per RTT.
pub fn increase(w: f64) -> f64 {
    if w <= LOW_WINDOW {
        return 1.0;
    }
    let b = decrease(w);
    let p = 0.078 / libm::pow(w, 1.2);
    (w * w * p * 2.0 * b / (2.0 - b)).max(1.0)
}

/// RFC 3649 appendix B: for each row, the largest window at which a(w) is the row's number; rows are numbered from 1.
#[rustfmt::skip]
const TABLE: [u32; 73] = [
       38,   118,   221,   347,   495,   663,   851,  1058,  1284,  1529,  1793,  2076,  2378,  2699,  3039,
     3399,  3778,  4177,  4596,  5036,  5497,  5979,  6483,  7009,  7558,  8130,  8726,  9346,  9991, 10661,
    11358, 12082, 12834, 13614, 14424, 15265, 16137, 17042, 17981, 18955, 19965, 21013, 22101, 23230, 24402,
    25618, 26881, 28193, 29557, 30975, 32450, 33986, 35586, 37253, 38992, 40808, 42707, 44694, 46776, 48961,
    51258, 53677, 56230, 58932, 61799, 64851, 68113, 71617, 75401, 79517, 84035, 89053, 94717,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::sample;

    /// RFC 3649 §12: window in each loss-free round trip, starting with one segment in the first.
    #[test]
    fn growth_from_one_segment() {
        let mut c = HighSpeed::new(HighSpeedForm::Rfc3649);
        let mut w = Window { ssthresh: 1, ..Window::new(1) };
        for rtt in 2..=1000 {
            let ack = sample(0, w.cwnd);
            c.on_ack(&mut w, &ack);
            let want = match rtt {
                100 => 131.0,
                200 => 475.0,
                500 => 3601.0,
                1000 => 17409.0,
                _ => continue,
            };
            assert!((f64::from(w.cwnd) / want - 1.0).abs() < 0.01, "{rtt}: {}, not {want}", w.cwnd);
        }
    }

    #[test]
    fn the_table_is_the_functions_rounded() {
        for (row, &w) in TABLE[..71].iter().enumerate() {
            let a = increase(f64::from(w));
            assert!((a - (row + 1) as f64).abs() < 1.0, "{w}: {a}");
        }
        // the RFC prints two digits
        for (w, b) in [
            (38, 0.50),
            (118, 0.44),
            (221, 0.41),
            (347, 0.38),
            (495, 0.37),
            (663, 0.35),
            (851, 0.34),
            (1058, 0.33),
            (1284, 0.32),
            (1529, 0.31),
            (1793, 0.30),
            (2076, 0.29),
            (10661, 0.21),
            (84035, 0.10),
        ] {
            assert!((decrease(f64::from(w)) - b).abs() < 0.0062, "{w}: {}", decrease(f64::from(w)));
        }
        let top = increase(83_000.0);
        assert!((70.0..=72.0).contains(&top), "{top}");
    }

    #[test]
    fn below_38_it_is_reno_and_above_it_yields_less() {
        for form in [HighSpeedForm::Linux, HighSpeedForm::Rfc3649] {
            let mut c = HighSpeed::new(form);
            assert_eq!(c.ssthresh(&Window::new(30), 30), 15, "{form:?}");
            let mut w = Window { ssthresh: 2, ..Window::new(1000) };
            for _ in 0..1000 {
                c.on_ack(&mut w, &sample(0, 1));
            }
            assert!((1007..=1008).contains(&w.cwnd), "{form:?} {}", w.cwnd);
            assert!((670..=685).contains(&c.ssthresh(&w, 1008)), "{form:?}");
        }
    }

    #[test]
    fn linux_counts_acks() {
        let mut c = HighSpeed::new(HighSpeedForm::Linux);
        let mut w = Window { ssthresh: 2, ..Window::new(1000) };
        for _ in 0..500 {
            c.on_ack(&mut w, &sample(0, 2));
        }
        assert_eq!(w.cwnd, 1003); // 500 ACKs count 8 each: three steps take 1000 + 1001 + 1002, a fourth would take 1003 more
    }
}
