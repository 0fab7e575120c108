//! FESTIVE: players behind one bottleneck share it fairly, use it well and rarely switch bitrates. Four rules: the
//! throughput estimate is a harmonic mean over the last chunks; the level changes one step at a time, upwards only
//! after k chunks at level k; a switch is delayed until its benefit outweighs the instability that it causes; request
//! times are random, so that players do not synchronise.
//!
//! Source: Jiang, Sekar, Zhang, "Improving Fairness, Efficiency, and Stability in HTTP-based Adaptive Video Streaming
//! with FESTIVE", CoNEXT 2012; ToN 2014. The text of the paper was not available: the rules are taken from summaries;
//! p, alpha and the horizon from public implementations.
//!
//! Variables, bit/s: `w`, the estimate; `cur`, the bitrate of the last chunk; `reference`, the bitrate of the gradual
//! rule. `n` is the number of switches among the last chunks.
//!
//! Differs, or may differ: the cost of stability is 2^n, where n includes the switch under consideration, so a player
//! that has switched often needs a better reason to switch again (with 2^n + 1, n would cancel out). Switches are
//! counted over the last `horizon` chunks, which corresponds to the 20 s of the authors' slides for 4 s chunks. The
//! buffer level at which the next chunk is requested is drawn from one chunk below to one chunk above the target.

use std::collections::VecDeque;

use ackclock_core::schema::{Takes, FLAG, POSITIVE};
use ackclock_core::{table, Span, Stream};

use super::{highest_below, remember, Adaptation};

table! {
    /// FESTIVE (CoNEXT 2012): harmonic mean of throughputs, one level at a time, delayed updates, randomised requests.
    pub struct FestiveParams "festive" {
        /// Number of chunks over which the harmonic mean of the throughput is taken.
        window: u32 = Takes::Whole(1, 10_000), 20;
        /// Maximum bitrate as a multiple of the estimated throughput (p).
        safety: f64 = POSITIVE, 0.85;
        /// Weight of efficiency relative to stability (alpha).
        alpha: f64 = Takes::Number(0.0, 1e6), 12.0;
        /// Number of chunks over which switches are counted: with chunks of 4 s, the 20 s of the authors' slides.
        horizon: u32 = Takes::Whole(0, 10_000), 5;
        /// Draw the buffer level at which the player requests the next chunk at random around the target. If false, it
        /// is the target.
        randomised: bool = FLAG, true;
        /// Switch one level at a time, and up from level k only after k chunks at that level. If false, switch directly
        /// to the highest level that `safety` allows.
        gradual: bool = FLAG, true;
        /// Delay a switch until its gain in efficiency outweighs the instability that it adds.
        delayed: bool = FLAG, true;
    }
}

/// State of the algorithm.
#[derive(Clone)]
pub struct Festive {
    params: FestiveParams,
    stream: Stream,
    throughputs: VecDeque<f64>,
    /// Levels of the last `horizon + 1` chunks.
    levels: VecDeque<usize>,
    /// Number of consecutive chunks at the current level.
    stay: u32,
}

impl Festive {
    /// Return the state before the first chunk.
    pub fn new(params: FestiveParams, stream: Stream) -> Festive {
        Festive { params, stream, throughputs: VecDeque::new(), levels: VecDeque::new(), stay: 0 }
    }

    /// Level chosen by the gradual rule.
    fn reference(&self, ladder: &[u64], cur: usize, w: f64) -> usize {
        let allowed = self.params.safety * w;
        if !self.params.gradual {
            return highest_below(ladder, allowed);
        }
        if ladder[cur] as f64 > allowed {
            return cur.saturating_sub(1);
        }
        let k = cur as u32 + 1; // FESTIVE counts levels from 1
        match ladder.get(cur + 1) {
            Some(&above) if above as f64 <= allowed && self.stay >= k => cur + 1,
            _ => cur,
        }
    }

    /// Number of switches among the last chunks.
    fn switches(&self) -> u32 {
        self.levels.iter().zip(self.levels.iter().skip(1)).filter(|(a, b)| a != b).count() as u32
    }

    /// Whether the gain in efficiency at `reference` outweighs the cost of switching.
    fn is_worth_it(&self, ladder: &[u64], cur: usize, reference: usize, w: f64) -> bool {
        let stability = |n: u32| (1u64 << n.min(62)) as f64;
        let best = w.min(ladder[reference] as f64);
        let efficiency = |level: usize| libm::fabs(ladder[level] as f64 / best - 1.0);
        let n = self.switches();
        let stay = stability(n) + self.params.alpha * efficiency(cur);
        let go = stability(n + 1) + self.params.alpha * efficiency(reference);
        go < stay
    }
}

impl Adaptation for Festive {
    fn on_chunk(&mut self, bps: f64) {
        remember(&mut self.throughputs, bps, self.params.window as usize);
    }

    fn estimate(&self) -> Option<f64> {
        let inverse: f64 = self.throughputs.iter().map(|bps| 1.0 / bps).sum();
        (inverse > 0.0).then(|| self.throughputs.len() as f64 / inverse)
    }

    fn choose(&mut self, ladder: &[u64]) -> usize {
        let next = match (self.estimate(), self.levels.back()) {
            (Some(w), Some(&cur)) => {
                let reference = self.reference(ladder, cur, w);
                let goes = !self.params.delayed || self.is_worth_it(ladder, cur, reference, w);
                if reference != cur && goes {
                    reference
                } else {
                    cur
                }
            }
            _ => 0,
        };
        self.stay = if self.levels.back() == Some(&next) { self.stay + 1 } else { 1 };
        remember(&mut self.levels, next, self.params.horizon as usize + 1);
        next
    }

    fn goal(&mut self, target: Span, chunk: Span) -> Span {
        if !self.params.randomised {
            return target;
        }
        // (target - chunk, target + chunk]
        target.saturating_sub(chunk) + Span(1 + self.stream.below(2 * chunk.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAPER: FestiveParams = FestiveParams {
        window: 20,
        safety: 0.85,
        alpha: 12.0,
        horizon: 5,
        randomised: true,
        gradual: true,
        delayed: true,
    };

    fn player(params: FestiveParams) -> Festive {
        Festive::new(params, Stream::new(1, "test"))
    }

    /// Levels of the next chunks if each of them arrives at `bps`.
    fn play(p: &mut Festive, ladder: &[u64], bps: f64, chunks: usize) -> Vec<usize> {
        let mut next = || {
            let level = p.choose(ladder);
            p.on_chunk(bps);
            level
        };
        (0..chunks).map(|_| next()).collect()
    }

    #[test]
    fn the_harmonic_mean_of_the_last_twenty_by_hand() {
        let mut p = player(PAPER);
        assert_eq!(p.estimate(), None);
        p.on_chunk(1024.0);
        p.on_chunk(4096.0);
        assert_eq!(p.estimate(), Some(1638.4)); // 2 / (1/1024 + 1/4096)
        for _ in 0..19 {
            p.on_chunk(4096.0); // the first sample is no longer in the window
        }
        assert_eq!(p.estimate(), Some(4096.0));
    }

    #[test]
    fn upwards_only_after_k_chunks_at_level_k() {
        // levels 1, 2, 3, 4 after 1, 2, 3 and more chunks; bitrates double, so every step is worth it
        let ladder = [100, 200, 400, 800];
        let mut p = player(FestiveParams { delayed: false, ..PAPER });
        assert_eq!(play(&mut p, &ladder, 1e6, 8), [0, 1, 1, 2, 2, 2, 3, 3]);
        // with the cost of switches: n = 1, 2 at the second and third step, 2^(n+1) - 2^n = 2, 4 < 12 x 1/2
        let mut p = player(PAPER);
        assert_eq!(play(&mut p, &ladder, 1e6, 8), [0, 1, 1, 2, 2, 2, 3, 3]);
    }

    #[test]
    fn no_bitrate_above_the_safe_share_and_down_by_one_level() {
        let ladder = [100, 200, 400, 800];
        let mut p = player(FestiveParams { window: 1, ..PAPER });
        assert_eq!(play(&mut p, &ladder, 1000.0, 7), [0, 1, 1, 2, 2, 2, 3]); // 0.85 x 1000 = 850
        let mut p = player(FestiveParams { window: 1, ..PAPER });
        assert_eq!(play(&mut p, &ladder, 940.0, 9), [0, 1, 1, 2, 2, 2, 2, 2, 2]); // 799
        p.on_chunk(120.0); // 102: far below, but still only one level at a time
        assert_eq!(play(&mut p, &ladder, 120.0, 3), [1, 0, 0]);
    }

    #[test]
    fn small_steps_wait_until_switches_are_forgotten() {
        // 10 % steps are worth 12 x (1 - 1/1.1) = 1.09, more than the 2 - 1 of a first switch but less than the 4
        // - 2 of a second one, which waits until the first is no longer among the last five chunks
        let ladder = [1000, 1100, 1210];
        let mut p = player(PAPER);
        assert_eq!(play(&mut p, &ladder, 1e6, 9), [0, 1, 1, 1, 1, 1, 1, 2, 2]);
        // 8 % steps are worth 0.89 and never taken
        let mut p = player(PAPER);
        assert_eq!(play(&mut p, &[1000, 1080], 1e6, 9), [0; 9]);
        // unless efficiency has more weight
        let mut p = player(FestiveParams { alpha: 14.0, ..PAPER });
        assert_eq!(play(&mut p, &[1000, 1080], 1e6, 4), [0, 1, 1, 1]);
    }

    #[test]
    fn costs_by_hand() {
        let ladder = [350, 700, 1500];
        let mut p = player(PAPER);
        p.levels.extend([0, 1, 0, 1]); // n = 3
                                       // up to 1500 with w = 2000: stay 8 + 12 x (1 - 700/1500) = 14.4, go 16 + 0
        assert!(!p.is_worth_it(&ladder, 1, 2, 2000.0));
        p.levels.pop_front(); // n = 2: 10.4 against 8
        assert!(p.is_worth_it(&ladder, 1, 2, 2000.0));
        // down from 700 with w = 300, below the lowest: stay 4 + 12 x (700/300 - 1) = 20, go 8 + 12 x (350/300 - 1) = 10
        assert!(p.is_worth_it(&ladder, 1, 0, 300.0));
    }

    #[test]
    fn without_its_rules_it_is_rate_based() {
        let plain = FestiveParams { gradual: false, delayed: false, randomised: false, window: 1, ..PAPER };
        let mut p = player(plain);
        let s = Span::from_secs(1);
        assert_eq!(play(&mut p, &[100, 200, 400, 800], 1000.0, 3), [0, 3, 3]);
        assert_eq!(p.goal(s * 30, s * 4), s * 30);
    }

    proptest! {
        #[test]
        fn random_goals_lie_around_the_target(seed: u64, target in 1u64..100, chunk in 1u64..20) {
            let s = Span::from_secs(1);
            let mut p = Festive::new(PAPER, Stream::new(seed, "test"));
            let mut sum = 0.0;
            for _ in 0..200 {
                let goal = p.goal(s * target, s * chunk);
                let low = (s * target).saturating_sub(s * chunk);
                prop_assert!(goal > low && goal <= low + s * (2 * chunk));
                sum += (goal - low).as_secs() / (2 * chunk) as f64;
            }
            prop_assert!((sum / 200.0 - 0.5).abs() < 0.15, "uniform: {}", sum / 200.0);
        }

        /// Oracle: a second implementation of the rules, applied to the whole history.
        #[test]
        fn levels_are_those_of_the_rules_read_slowly(
            throughputs in prop::collection::vec(50.0f64..4000.0, 1..60),
            ladder in prop::collection::btree_set(100u64..3000, 1..8),
        ) {
            let ladder: Vec<u64> = ladder.into_iter().collect();
            let mut p = player(PAPER);
            let mut levels: Vec<usize> = vec![];
            for i in 0..throughputs.len() {
                let level = p.choose(&ladder);
                prop_assert_eq!(level, slowly(&ladder, &levels, &throughputs[..i]));
                levels.push(level);
                p.on_chunk(throughputs[i]);
            }
        }
    }

    fn slowly(ladder: &[u64], levels: &[usize], throughputs: &[f64]) -> usize {
        let Some(&cur) = levels.last() else { return 0 };
        let seen = &throughputs[throughputs.len().saturating_sub(20)..];
        let w = seen.len() as f64 / seen.iter().map(|x| 1.0 / x).sum::<f64>();
        let here = levels.iter().rev().take_while(|&&level| level == cur).count();
        let up = cur + 1 < ladder.len() && ladder[cur + 1] as f64 <= 0.85 * w && here > cur;
        let reference = match ladder[cur] as f64 > 0.85 * w {
            true if cur > 0 => cur - 1,
            false if up => cur + 1,
            _ => return cur,
        };
        let recent = &levels[levels.len().saturating_sub(6)..];
        let n = recent.windows(2).filter(|w| w[0] != w[1]).count() as i32;
        let best = w.min(ladder[reference] as f64);
        let cost = |level: usize, n: i32| 2f64.powi(n) + 12.0 * (ladder[level] as f64 / best - 1.0).abs();
        if cost(reference, n + 1) < cost(cur, n) {
            reference
        } else {
            cur
        }
    }
}
