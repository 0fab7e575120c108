//! CDG: backs off with a probability that grows with the RTT gradient from round to round. After a loss it reduces a
//! shadow window, the window it would have had without backing off.
//!
//! Sources: Hayes, Armitage, "Revisiting TCP congestion control using delay gradients" (Networking 2011); behaviour of
//! Linux `tcp_cdg` with its default parameters: gradients over eight rounds, tolerance of losses off. RTTs are in us; 0
//! means no sample. The kernel has its own random numbers, so a run matches the kernel's segment for segment only if no
//! random draw matters: with `backoff_factor` 0 (never backs off) or 33333331 (backs off at nearly every growth).

use ackclock_core::schema::Takes;
use ackclock_core::{table, Span, Stream, Time};

use super::{AckSample, Arrival, CongestionControl, Needs};
use crate::window::Window;

table! {
    /// Options of `cdg`.
    pub(super) struct CdgOptions "cdg" {
        /// scale of the backoff probability 1 - exp(-growth * backoff_factor / 1000000), where growth is the increase
        /// of the RTT over eight rounds, microseconds
        backoff_factor: u32 = Takes::Whole(0, 100_000_000), 42;
    }
}

/// Number of rounds over which gradients are summed.
const ROUNDS: usize = 8;
/// Fraction of the window kept after backing off, in units of 1/1024: the square root of one half.
const BACKOFF: u64 = 724;
/// Number of successive backoffs without effect after which further ones are skipped.
const INEFFECTUAL: u16 = 5;
/// Decrease of the RTT that counts as an effect, us.
const EFFECT: i32 = 32;
/// Gap between ACKs that ends a train, us.
const TRAIN_GAP: u64 = 3_000;
/// Minimum of the thresholds for train length and RTT that end slow start, us.
const LEAST_DELAY: u32 = 125;
/// Number of samples in a round before its minimum RTT is used.
const SAMPLES: u8 = 8;

/// Minimum and maximum RTT of a round, or sums and differences of them, us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MinMax {
    min: i32,
    max: i32,
}

impl MinMax {
    fn is_none(self) -> bool {
        self == MinMax::default()
    }

    fn less(self, other: MinMax) -> MinMax {
        MinMax { min: self.min.wrapping_sub(other.min), max: self.max.wrapping_sub(other.max) }
    }

    fn plus(self, other: MinMax) -> MinMax {
        MinMax { min: self.min.wrapping_add(other.min), max: self.max.wrapping_add(other.max) }
    }
}

/// State that is reset after an idle period.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    rtt: MinMax,
    before: MinMax,
    gradients: [MinMax; ROUNDS],
    sum: MinMax,
    filled: bool,
    tail: usize,
    /// The last reduction was caused by a gradient rather than a loss.
    backed_off: bool,
    delayed_acks: u8,
    ineffectual: u16,
    samples: u8,
    least: u32,
    /// Arrival times of the last and of the first ACK of the train, us.
    train: Option<(u64, u64)>,
}

/// CDG.
#[derive(Clone, Debug)]
pub struct Cdg {
    stream: Stream,
    factor: u32,
    known: Known,
    round_end: u64,
    snd_nxt: u64,
    shadow: u32,
    reduces: bool,
}

fn least(a: i32, b: i32) -> i32 {
    if a == 0 {
        b
    } else if b == 0 {
        a
    } else {
        a.min(b)
    }
}

/// 65536 exp(-x) - 1 for x = 256 us times 1, 2, 4, and so on.
const POWERS: [u16; 16] = [
    65518, 65501, 65468, 65401, 65267, 65001, 64470, 63422, 61378, 57484, 50423, 38795, 22965, 8047, 987, 14,
];

/// Return exp(-x/1000000), scaled to the range of `u32`.
fn negative_exponential(x: u32) -> u32 {
    let high = x >> 8;
    if high > u32::from(u16::MAX) {
        return 0;
    }
    let start = u32::MAX - (x & 0xff) * (u32::MAX / 1_000_000);
    POWERS
        .iter()
        .enumerate()
        .filter(|&(bit, _)| (high >> bit) & 1 == 1)
        .fold(start, |product, (_, &power)| ((u64::from(product) * (u64::from(power) + 1)) >> 16) as u32)
}

impl Cdg {
    /// Return a controller with these options.
    pub(super) fn new(options: &CdgOptions) -> Cdg {
        Cdg {
            stream: Stream::new(0, "cdg"),
            factor: options.backoff_factor,
            known: Known::default(),
            round_end: 0,
            snd_nxt: 0,
            shadow: 0,
            reduces: false,
        }
    }

    /// End slow start if an ACK train is longer than half the minimum RTT, or if the RTT exceeds the minimum by more
    /// than an eighth.
    fn look_at_start(&mut self, window: &mut Window, ack: &AckSample) {
        let known = &mut self.known;
        known.least = least(known.least as i32, known.rtt.min) as u32;
        if known.least == 0 {
            return;
        }
        let now = ack.now.0 / 1_000;
        match known.train {
            Some((last, first)) if ack.cwnd_limited => {
                if now < last + TRAIN_GAP {
                    known.train = Some((now, first));
                    if now > first + u64::from((known.least / 2).max(LEAST_DELAY)) {
                        window.ssthresh = window.cwnd;
                        return;
                    }
                }
            }
            _ => known.train = Some((now, now)),
        }
        if known.samples < SAMPLES {
            known.samples += 1;
        } else if known.rtt.min > (known.least + known.least / 8).max(LEAST_DELAY) as i32 {
            window.ssthresh = window.cwnd;
        }
    }

    /// Return the change of the RTT over the last rounds, us.
    fn gradient(&mut self) -> i32 {
        let known = &mut self.known;
        let change = known.rtt.less(known.before);
        known.sum = known.sum.plus(change).less(known.gradients[known.tail]);
        known.gradients[known.tail] = change;
        known.tail = (known.tail + 1) % ROUNDS;
        let sum = known.sum;
        let mut gradient = if sum.min > 0 { sum.min } else { sum.max };
        if !known.filled {
            match known.tail {
                0 => known.filled = true,
                tail => gradient = gradient.wrapping_mul(ROUNDS as i32) / tail as i32,
            }
        }
        if sum.min <= -EFFECT || sum.max <= -EFFECT {
            known.ineffectual = 0;
        }
        gradient
    }

    fn backs_off(&mut self, window: &Window, gradient: u32) -> bool {
        let draw = (self.stream.next_u64() >> 32) as u32;
        if draw <= negative_exponential(gradient.wrapping_mul(self.factor)) {
            return false;
        }
        self.known.ineffectual = self.known.ineffectual.wrapping_add(1);
        if self.known.ineffectual > INEFFECTUAL {
            return false;
        }
        self.shadow = self.shadow.max(window.cwnd);
        self.known.backed_off = true;
        self.reduces = true;
        true
    }
}

impl CongestionControl for Cdg {
    fn seed(&mut self, seed: u64) {
        self.stream = Stream::new(seed, "cdg");
    }

    /// The kernel's first round includes this sample of the unloaded RTT, because the kernel does not reset it.
    fn on_syn_acked(&mut self, rtt: Span) {
        let rtt = rtt.as_us() as i32;
        self.known.rtt = MinMax { min: rtt, max: rtt };
    }

    fn on_start(&mut self, window: &mut Window, _now: Time, _srtt: Span, _smss: u32) {
        self.shadow = window.cwnd;
    }

    fn on_sample(&mut self, _window: &mut Window, ack: &Arrival) {
        self.snd_nxt = ack.snd_nxt;
        let Some(rtt) = ack.rtt.map(|rtt| rtt.as_us() as i32).filter(|&rtt| rtt > 0) else { return };
        let known = &mut self.known;
        if ack.sacked == 0 {
            if ack.covered == 1 && known.delayed_acks > 0 {
                known.rtt.min = known.rtt.min.min(rtt);
                known.delayed_acks -= 1;
                return;
            }
            if ack.covered > 1 && known.delayed_acks < 5 {
                known.delayed_acks += 1;
            }
        }
        known.rtt = MinMax { min: least(known.rtt.min, rtt), max: known.rtt.max.max(rtt) };
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        if window.in_slow_start() {
            self.look_at_start(window, ack);
        }
        if ack.snd_una > self.round_end && !self.known.rtt.is_none() {
            let gradient = if self.known.before.is_none() { 0 } else { self.gradient() };
            self.round_end = ack.snd_nxt;
            self.known.before = std::mem::take(&mut self.known.rtt);
            self.known.train = None;
            self.known.samples = 0;
            if gradient > 0 && self.backs_off(window, gradient as u32) {
                return;
            }
        }
        if !ack.cwnd_limited {
            self.shadow = self.shadow.min(window.cwnd);
            return;
        }
        let cwnd = window.cwnd;
        window.grow_as_reno(ack);
        self.shadow += window.cwnd - cwnd;
    }

    fn reduces(&mut self) -> bool {
        std::mem::take(&mut self.reduces)
    }

    fn ssthresh(&mut self, window: &Window, _in_flight: u32) -> u32 {
        if self.known.backed_off {
            return (((u64::from(window.cwnd) * BACKOFF) >> 10) as u32).max(2);
        }
        self.shadow = (self.shadow >> 1).min(window.cwnd);
        self.shadow.max(window.cwnd >> 1).max(2)
    }

    fn on_recovered(&mut self, _window: &mut Window, _now: Time) {
        self.known.backed_off = false;
        self.round_end = self.snd_nxt;
        self.known.before = std::mem::take(&mut self.known.rtt);
    }

    fn on_restart(&mut self, window: &mut Window, snd_nxt: u64) {
        self.known = Known::default();
        self.round_end = snd_nxt;
        self.shadow = window.cwnd;
    }

    fn needs(&self) -> Needs {
        Needs { seed: true, reduces: true, ..Needs::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::arrival;

    /// Test sender; the test chooses the RTT of each round.
    struct Sender {
        cdg: Cdg,
        window: Window,
        una: u64,
        now: u64,
    }

    impl Sender {
        fn new(backoff_factor: u32, ssthresh: u32) -> Sender {
            let mut cdg = Cdg::new(&CdgOptions { backoff_factor });
            let mut window = Window { ssthresh, ..Window::new(20) };
            cdg.on_start(&mut window, Time::ZERO, Span::from_ms(100), 1448);
            Sender { cdg, window, una: 1, now: 0 }
        }

        /// Simulate a round with one ACK per segment, `gap_us` apart. Return whether a reduction was requested.
        fn round(&mut self, rtt_us: u64, gap_us: u64) -> bool {
            let (next, mut asked) = (self.una + u64::from(self.window.cwnd) * 1448, false);
            while self.una < next {
                self.una += 1448;
                self.now += gap_us * 1_000;
                let rtt = Some(Span::from_us(rtt_us));
                let ack = Arrival { snd_una: self.una, snd_nxt: next + 1448, rtt, ..arrival(self.now, 1) };
                self.cdg.on_sample(&mut self.window, &ack);
                self.cdg.on_ack(&mut self.window, &ack.into());
                asked |= self.cdg.reduces();
            }
            asked
        }
    }

    #[test]
    fn the_exponential_is_within_the_tables_rounding() {
        for x in [0, 1, 255, 256, 1_000, 50_000, 693_147, 1_000_000, 5_000_000] {
            let (want, got) =
                ((-f64::from(x) * 1e-6).exp(), f64::from(negative_exponential(x)) / f64::from(u32::MAX));
            assert!((got - want).abs() < 2e-4, "{x}: {got} {want}");
        }
        assert_eq!(negative_exponential(0), u32::MAX);
        assert_eq!(negative_exponential(1 << 24), 0);
    }

    #[test]
    fn an_rtt_that_grows_asks_for_less_and_one_that_stays_does_not() {
        let mut sender = Sender::new(1_000_000, 20);
        for _ in 0..12 {
            assert!(!sender.round(50_000, 5_000));
        }
        let asked: Vec<bool> = (1..=9).map(|step| sender.round(50_000 + 1_000 * step, 5_000)).collect();
        assert_eq!(
            asked.iter().filter(|&&asked| asked).count(),
            5,
            "five times to no effect, no more: {asked:?}"
        );
        assert_eq!(sender.cdg.ssthresh(&Window::new(100), 100), 70);
        let mut never = Sender::new(0, 20);
        assert!(!(1..=20).any(|step| never.round(50_000 + 1_000 * step, 5_000)));
    }

    #[test]
    fn a_loss_leaves_half_of_the_window_that_there_would_be_without_backing_off() {
        let mut sender = Sender::new(0, 20);
        sender.cdg.shadow = 150;
        assert_eq!(sender.cdg.ssthresh(&Window::new(100), 100), 75);
        assert_eq!(sender.cdg.shadow, 75);
        sender.cdg.shadow = 400;
        assert_eq!(sender.cdg.ssthresh(&Window::new(100), 100), 100, "at most what it is");
        sender.cdg.shadow = 10;
        assert_eq!(sender.cdg.ssthresh(&Window::new(100), 100), 50);
    }

    #[test]
    fn slow_start_ends_with_a_train_of_half_the_least_rtt() {
        let mut sender = Sender::new(0, Window::INFINITE);
        sender.cdg.on_syn_acked(Span::from_us(20_000));
        assert!(!sender.round(21_000, 5_000) && sender.window.in_slow_start(), "gaps of 5 ms are no train");
        sender.round(21_000, 400);
        // 40 segments in 16 ms: the train exceeds 10 ms from its 27th ACK on, counted from the first of the round
        assert_eq!(sender.window.ssthresh, sender.window.cwnd);
        assert!((60..70).contains(&sender.window.cwnd), "{}", sender.window.cwnd);
    }

    #[test]
    fn an_idle_period_makes_it_forget() {
        let mut sender = Sender::new(0, 20);
        sender.round(50_000, 5_000);
        sender.cdg.on_restart(&mut sender.window, 77);
        assert_eq!(
            (sender.cdg.known.least, sender.cdg.known.before, sender.cdg.round_end),
            (0, MinMax::default(), 77)
        );
    }
}
