//! Randomness that forks by name from one seed.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng};
use sha2::{Digest, Sha256};

/// A seeded generator.
///
/// One run has one seed. Each user of randomness takes its own generator with [`Rng::fork`], so
/// that one more draw in one place shifts no other. ChaCha keeps verification tags, cookies and
/// heartbeat nonces unpredictable when the seed is secret (a driver on a real network takes it from
/// the operating system).
#[derive(Clone)]
pub struct Rng {
    seed: [u8; 32],
    inner: ChaCha8Rng,
}

impl Rng {
    /// A generator from a full-strength seed.
    pub fn from_seed(seed: [u8; 32]) -> Rng {
        Rng { seed, inner: ChaCha8Rng::from_seed(seed) }
    }

    /// A generator from a number, for simulations and tests.
    pub fn from_number(seed: u64) -> Rng {
        Rng::from_seed(Sha256::digest(seed.to_be_bytes()).into())
    }

    /// An independent generator that depends on this one's seed and `name` only, not on the draws
    /// made so far.
    pub fn fork(&self, name: &str) -> Rng {
        let mut hash = Sha256::new();
        hash.update(self.seed);
        hash.update(name.as_bytes());
        Rng::from_seed(hash.finalize().into())
    }

    /// A uniform 32-bit number.
    pub fn next_u32(&mut self) -> u32 {
        self.inner.next_u32()
    }

    /// A uniform 64-bit number.
    pub fn next_u64(&mut self) -> u64 {
        self.inner.next_u64()
    }

    /// A uniform number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        // Multiply-shift: the bias is below 2^-32 for the small `n` used here.
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// A uniform number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        p > 0.0 && self.unit() < p
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.inner.fill_bytes(bytes);
    }
}

impl std::fmt::Debug for Rng {
    /// Shows nothing of the state: it may guard cookies.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rng")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_depend_on_seed_and_name_only() {
        let mut root = Rng::from_number(7);
        let before = root.fork("loss").next_u64();
        root.next_u64();
        assert_eq!(root.fork("loss").next_u64(), before, "draws on the parent shift no child");
        assert_ne!(root.fork("delay").next_u64(), before);
        assert_ne!(Rng::from_number(8).fork("loss").next_u64(), before);
    }

    #[test]
    fn below_stays_in_range() {
        let mut rng = Rng::from_number(1);
        assert_eq!(rng.below(0), 0);
        assert!((0..1000).all(|_| rng.below(3) < 3));
    }
}
