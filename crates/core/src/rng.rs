//! Random streams, one per component, derived from (seed, component name).
//!
//! One more flow or link never changes what another draws, and two arms of a comparison see the same losses and
//! arrivals (common random numbers). Generator: xoshiro256++ (Blackman, Vigna 2019), seeded through splitmix64.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// One component's stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of component `name` (for instance `"link.3.loss"`) in a run with this seed.
    pub fn new(seed: u64, name: &str) -> Stream {
        // FNV-1a of the name, then the seed: names differ in a few letters, splitmix64 spreads the rest.
        let mut h: u64 = 0xcbf2_9ce4_8422_2325;
        for b in name.bytes() {
            h = (h ^ b as u64).wrapping_mul(0x0100_0000_01b3);
        }
        Stream(Xoshiro256PlusPlus::seed_from_u64(mix(h ^ mix(seed))))
    }

    /// Return an independent stream, seeded by the next number of this one: draws from it change nothing
    /// here.
    pub fn branch(&mut self) -> Stream {
        Stream(Xoshiro256PlusPlus::seed_from_u64(mix(self.next_u64())))
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in 0..n; n > 0. (Lemire's multiply-shift; its bias is below 2^-64 n.)
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((self.next_u64() as u128 * n as u128) >> 64) as u64
    }

    /// Return true with the probability of `threshold`; see [`threshold`].
    #[inline]
    pub fn chance(&mut self, threshold: u64) -> bool {
        self.next_u64() < threshold
    }

    /// Exponential with mean 1, by inversion.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }

    /// Standard normal, by Box and Muller (one of the pair).
    pub fn normal(&mut self) -> f64 {
        let r = libm::sqrt(2.0 * self.exponential());
        r * libm::cos(2.0 * std::f64::consts::PI * self.unit())
    }
}

/// A family of streams, one for each number: draws of the k-th member do not depend on those of the others.
#[derive(Clone, Debug)]
pub struct Family(u64);

impl Family {
    /// The family of component `name` in a run with this seed.
    pub fn new(seed: u64, name: &str) -> Family {
        Family(Stream::new(seed, name).next_u64())
    }

    /// The stream of the `k`-th.
    pub fn member(&self, k: u64) -> Stream {
        Stream(Xoshiro256PlusPlus::seed_from_u64(mix(self.0 ^ mix(k))))
    }
}

/// The integer threshold of a probability, for [`Stream::chance`]: no float decides an order of events.
pub fn threshold(p: f64) -> u64 {
    if p >= 1.0 {
        return u64::MAX;
    }
    (p.max(0.0) * 18_446_744_073_709_551_616.0) as u64
}

/// splitmix64's finaliser.
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ_by_name_and_seed() {
        let draw = |seed, name| Stream::new(seed, name).next_u64();
        assert_eq!(draw(1, "link.0.loss"), draw(1, "link.0.loss"));
        assert_ne!(draw(1, "link.0.loss"), draw(1, "link.1.loss"));
        assert_ne!(draw(1, "link.0.loss"), draw(2, "link.0.loss"));
    }

    #[test]
    fn members_of_a_family_repeat_and_differ() {
        let family = Family::new(1, "x");
        assert_eq!(family.member(3).next_u64(), Family::new(1, "x").member(3).next_u64());
        let mut first: Vec<u64> = (0..1000).map(|k| family.member(k).next_u64()).collect();
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), 1000);
        assert_ne!(family.member(0).next_u64(), Family::new(2, "x").member(0).next_u64());
        let mean = (0..100_000).map(|k| family.member(k).unit()).sum::<f64>() / 1e5;
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let mut s = Stream::new(7, "test");
        let n = 200_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / n as f64;
        assert!((mean(&mut || s.unit()) - 0.5).abs() < 0.01);
        assert!((mean(&mut || s.exponential()) - 1.0).abs() < 0.02);
        assert!(mean(&mut || s.normal()).abs() < 0.02);
        let t = threshold(0.01);
        assert!((mean(&mut || s.chance(t) as u8 as f64) - 0.01).abs() < 0.002);
    }
}
