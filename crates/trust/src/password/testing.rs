//! Random numbers from a seed, and the function that fuzzers run.

use rand_core_06::{CryptoRng, Error, RngCore, impls};
use sha2::{Digest, Sha256};

use super::{Client, MESSAGE_LEN, Password, PasswordError, Server};

/// Random numbers that are the same for the same seed. For tests only.
pub(super) struct Seeded {
    seed: u64,
    count: u64,
}

impl Seeded {
    pub(super) fn new(seed: u64) -> Seeded {
        Seeded { seed, count: 0 }
    }
}

impl CryptoRng for Seeded {}

impl RngCore for Seeded {
    fn next_u32(&mut self) -> u32 {
        impls::next_u32_via_fill(self)
    }

    fn next_u64(&mut self) -> u64 {
        impls::next_u64_via_fill(self)
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(32) {
            self.count += 1;
            let hash = Sha256::new()
                .chain_update(self.seed.to_be_bytes())
                .chain_update(self.count.to_be_bytes());
            part.copy_from_slice(&hash.finalize()[..part.len()]);
        }
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.fill_bytes(bytes);
        Ok(())
    }
}

/// Runs an exchange in which the first byte chooses a message that arrives as other bytes: the
/// others as they are, or XORed onto the message.
///
/// # Panics
/// If an end accepts an exchange whose messages did not all arrive as they were sent.
pub fn fuzz_password(bytes: &[u8]) {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    let (which, onto) = (choice % 4, choice & 4 != 0);
    let mut changed = false;
    let mut arrives = |number: u8, sent: &[u8; MESSAGE_LEN]| {
        let mut other = bytes.to_vec();
        if onto {
            other.truncate(MESSAGE_LEN);
            other.resize(MESSAGE_LEN, 0);
            other.iter_mut().zip(sent).for_each(|(byte, sent)| *byte ^= sent);
        }
        let arrived = if number == which { other } else { sent.to_vec() };
        changed |= arrived != sent;
        (arrived, changed)
    };
    let password = Password(b"123456".to_vec().into());
    let binding = [7; 32];
    let refused = |error: PasswordError, changed: bool| {
        assert!(changed, "an exchange without changes ended: {error}");
    };
    let started = Client::start_with(&password, &binding, &mut Seeded::new(1));
    let (client, first) = started.expect("always starts");
    let (first, changed) = arrives(0, &first);
    let answered = Server::answer_with(&password, &binding, &first, &mut Seeded::new(2));
    let (server, second) = match answered {
        Ok(answered) => answered,
        Err(error) => return refused(error, changed),
    };
    let (second, changed) = arrives(1, &second);
    let (client, third) = match client.answer(&second) {
        Ok(answered) => answered,
        Err(error) => return refused(error, changed),
    };
    let (third, changed) = arrives(2, &third);
    let fourth = match server.finish(&third) {
        Ok(fourth) => fourth,
        Err(error) => return refused(error, changed),
    };
    assert!(!changed, "the server accepts a client whose messages were changed");
    let (fourth, changed) = arrives(3, &fourth);
    match client.finish(&fourth) {
        Ok(()) => assert!(!changed, "the client accepts a server whose message was changed"),
        Err(error) => refused(error, changed),
    }
}
