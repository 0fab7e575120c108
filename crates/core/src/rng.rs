//! Random streams, one per component, derived from (seed, component name).
//!
//! Adding a flow or a link never changes the draws of another component, and two arms of a comparison see the same
//! losses and arrivals (common random numbers). Generator: xoshiro256++ (Blackman, Vigna 2019), seeded through
//! splitmix64.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Random stream of one component.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// Return the stream of component `name` (for instance `"link.3.loss"`) in a run with this seed.
    pub fn new(seed: u64, name: &str) -> Stream {
        // FNV-1a of the name, then the seed. Names may differ in a few letters only; splitmix64 mixes the result.
        let mut h: u64 = 0xcbf2_9ce4_8422_2325;
        for b in name.bytes() {
            h = (h ^ b as u64).wrapping_mul(0x0100_0000_01b3);
        }
        Stream(Xoshiro256PlusPlus::seed_from_u64(mix(h ^ mix(seed))))
    }

    /// Return an independent stream, seeded with the next number of this one. Draws from the new stream do not affect
    /// the original.
    pub fn branch(&mut self) -> Stream {
        Stream(Xoshiro256PlusPlus::seed_from_u64(mix(self.next_u64())))
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform number in [0, 1).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform integer in 0..n, n > 0, by Lemire's multiply-shift. The bias is below 2^-64 n.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((self.next_u64() as u128 * n as u128) >> 64) as u64
    }

    /// Return true with the probability from which [`threshold`] computed `threshold`.
    #[inline]
    pub fn chance(&mut self, threshold: u64) -> bool {
        self.next_u64() < threshold
    }

    /// Exponential number with mean 1, by inversion.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }

    /// Standard normal number, by the Box-Muller transform (one of the pair).
    pub fn normal(&mut self) -> f64 {
        let r = libm::sqrt(2.0 * self.exponential());
        r * libm::cos(2.0 * std::f64::consts::PI * self.unit())
    }
}

/// Family of streams, one per number. Draws of the k-th stream do not depend on those of the others.
#[derive(Clone, Debug)]
pub struct Family(u64);

impl Family {
    /// Return the family of component `name` in a run with this seed.
    pub fn new(seed: u64, name: &str) -> Family {
        Family(Stream::new(seed, name).next_u64())
    }

    /// Return the k-th stream.
    pub fn member(&self, k: u64) -> Stream {
        Stream(Xoshiro256PlusPlus::seed_from_u64(mix(self.0 ^ mix(k))))
    }
}

/// Integer threshold of a probability, for [`Stream::chance`]. Comparing integers keeps floats out of the order of
/// events.
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
