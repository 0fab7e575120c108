//! The baseline: choose the highest bitrate below the last chunk's throughput, or below its moving average.
//! The next chunk is requested when the buffer has drained to its target, which without stalls happens once per
//! chunk.
//!
//! Source: most players measured in the FESTIVE paper (Jiang, Sekar, Zhang, CoNEXT 2012) behave like this; no
//! product's rules are copied. Differs: there is no margin below the estimate unless `safety` sets one.

use ackclock_core::schema::{Takes, POSITIVE};
use ackclock_core::{table, Span};

use super::{highest_below, Adaptation};

table! {
    /// Chooses the highest bitrate below the throughput of the last chunk, or below its moving average.
    pub struct RateBasedParams "rate-based" {
        /// Weight of the last chunk in the moving average. 1 uses only the last chunk.
        weight: f64 = Takes::Above(0.0, 1.0), 1.0;
        /// Maximum bitrate as a multiple of the estimated throughput.
        safety: f64 = POSITIVE, 1.0;
    }
}

/// State of the algorithm.
#[derive(Clone)]
pub struct RateBased {
    params: RateBasedParams,
    estimate: Option<f64>,
}

impl RateBased {
    /// Return the state before the first chunk.
    pub fn new(params: RateBasedParams) -> RateBased {
        RateBased { params, estimate: None }
    }
}

impl Adaptation for RateBased {
    fn on_chunk(&mut self, bps: f64) {
        let old = self.estimate.unwrap_or(bps);
        self.estimate = Some(old + self.params.weight * (bps - old));
    }

    fn estimate(&self) -> Option<f64> {
        self.estimate
    }

    fn choose(&mut self, ladder: &[u64]) -> usize {
        self.estimate.map_or(0, |estimate| highest_below(ladder, self.params.safety * estimate))
    }

    fn goal(&mut self, target: Span, _chunk: Span) -> Span {
        target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LADDER: [u64; 4] = [350, 700, 1500, 3000];

    fn player(weight: f64, safety: f64) -> RateBased {
        RateBased::new(RateBasedParams { weight, safety })
    }

    #[test]
    fn the_last_chunk_decides() {
        let mut p = player(1.0, 1.0);
        assert_eq!((p.choose(&LADDER), p.estimate()), (0, None));
        for (bps, level) in [(1600.0, 2), (1500.0, 2), (1499.0, 1), (9000.0, 3), (100.0, 0)] {
            p.on_chunk(bps);
            assert_eq!(p.choose(&LADDER), level, "{bps}");
        }
    }

    #[test]
    fn a_moving_average_with_a_margin_by_hand() {
        let mut p = player(0.25, 0.8);
        p.on_chunk(2000.0); // the first sample initialises the average
        assert_eq!((p.estimate(), p.choose(&LADDER)), (Some(2000.0), 2)); // 0.8 x 2000 = 1600
        p.on_chunk(1000.0);
        assert_eq!((p.estimate(), p.choose(&LADDER)), (Some(1750.0), 1)); // 0.8 x 1750 = 1400
        let s = Span::from_secs(1);
        assert_eq!(p.goal(s * 30, s * 4), s * 30);
    }
}
