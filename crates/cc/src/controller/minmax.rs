//! Windowed maximum from the best three samples of a window (Kathleen Nichols' filter; Linux `minmax_running_max`). It
//! keeps no list of samples; the maximum lags by at most a quarter of the window.

/// A sample and the time (any unit) at which it was taken.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    t: u64,
    v: u64,
}

/// The three best samples, best first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RunningMax([Sample; 3]);

impl RunningMax {
    /// Return the maximum.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0[0].v
    }

    fn reset(&mut self, sample: Sample) {
        self.0 = [sample; 3];
    }

    /// Add a sample at time `t` and drop samples older than `window`.
    pub fn update(&mut self, window: u64, t: u64, v: u64) {
        let sample = Sample { t, v };
        let s = &mut self.0;
        if v >= s[0].v || t - s[2].t > window {
            return self.reset(sample);
        }
        if v >= s[1].v {
            s[1] = sample;
            s[2] = sample;
        } else if v >= s[2].v {
            s[2] = sample;
        }
        let age = t - s[0].t;
        if age > window {
            // the best sample has expired: the others move up
            s[0] = s[1];
            s[1] = s[2];
            s[2] = sample;
            if t - s[0].t > window {
                s[0] = s[1];
                s[1] = s[2];
                s[2] = sample;
            }
        } else if s[1].t == s[0].t && age > window / 4 {
            s[1] = sample;
            s[2] = sample;
        } else if s[2].t == s[1].t && age > window / 2 {
            s[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_above_the_true_maximum_and_never_below_the_newest() {
        let mut filter = RunningMax::default();
        let mut all = Vec::new();
        let mut x = 7_u64;
        for t in 0..2000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let v = x >> 54;
            all.push(v);
            filter.update(10, t, v);
            let from = all.len().saturating_sub(11);
            let exact = *all[from..].iter().max().expect("some");
            assert!((v..=exact).contains(&filter.get()), "{t}");
        }
    }
}
