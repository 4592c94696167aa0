//! The system's random numbers, as the library of the exchange asks for them.

use rand_core_06::{CryptoRng, Error, RngCore, impls};

use super::PasswordError;

/// The system's random numbers. The library knows no failure, so a failure is kept for afterwards.
#[derive(Debug, Default)]
pub(super) struct System {
    failed: bool,
}

impl System {
    /// A system that has failed.
    #[cfg(test)]
    pub(super) fn failing() -> System {
        System { failed: true }
    }

    /// An error if any number that was given is not random. What was made of it must not be used.
    pub(super) fn check(&self) -> Result<(), PasswordError> {
        if self.failed { Err(PasswordError::NoRandomness) } else { Ok(()) }
    }
}

impl CryptoRng for System {}

impl RngCore for System {
    fn next_u32(&mut self) -> u32 {
        impls::next_u32_via_fill(self)
    }

    fn next_u64(&mut self) -> u64 {
        impls::next_u64_via_fill(self)
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        self.failed |= getrandom::fill(bytes).is_err();
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.fill_bytes(bytes);
        Ok(())
    }
}
