//! Nonces that need no memory: they carry their end and a signature.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use manypath_proto::Instant;
use sha2::Sha256;

/// How long a nonce can be used.
const LIFETIME: Duration = Duration::from_secs(3600);

/// Makes nonces and knows them again.
pub(super) struct Nonces {
    secret: [u8; 32],
}

impl Nonces {
    pub(super) fn new(secret: [u8; 32]) -> Nonces {
        Nonces { secret }
    }

    /// A nonce for the client at this address.
    pub(super) fn make(&self, now: Instant, client: SocketAddr) -> String {
        let ends = ((now + LIFETIME).as_nanos() / 1_000_000_000) as u32;
        let signature = self.sign(ends, client);
        format!("{ends:08x}{signature:016x}")
    }

    /// True if `nonce` was made for this client and has not ended.
    pub(super) fn is_valid(&self, now: Instant, client: SocketAddr, nonce: &str) -> bool {
        // Not a secret: a client that knows it still needs the password. A plain comparison will
        // do.
        let Some((ends, signature)) = nonce.split_at_checked(8) else { return false };
        let Ok(ends) = u32::from_str_radix(ends, 16) else { return false };
        let fresh = u64::from(ends) > now.as_nanos() / 1_000_000_000;
        fresh && signature == format!("{:016x}", self.sign(ends, client))
    }

    fn sign(&self, ends: u32, client: SocketAddr) -> u64 {
        let ip = match client.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        // HMAC takes keys of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.secret) else { return 0 };
        mac.update(&ends.to_be_bytes());
        mac.update(&ip.octets());
        mac.update(&client.port().to_be_bytes());
        let full = mac.finalize().into_bytes();
        full.iter().take(8).fold(0, |all, &byte| all << 8 | u64::from(byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_of_one_client_and_one_hour() {
        let nonces = Nonces::new([7; 32]);
        let (a, b): (SocketAddr, SocketAddr) =
            ("192.0.2.1:5000".parse().unwrap(), "192.0.2.1:5001".parse().unwrap());
        let now = Instant::from_millis(1_000_000);
        let nonce = nonces.make(now, a);
        assert_eq!(nonce.len(), 24);
        assert!(nonces.is_valid(now, a, &nonce));
        assert!(!nonces.is_valid(now, b, &nonce));
        assert!(!nonces.is_valid(now + LIFETIME, a, &nonce));
        assert!(!Nonces::new([8; 32]).is_valid(now, a, &nonce));
        for text in ["", "zz", "00000000", "é".repeat(12).as_str()] {
            assert!(!nonces.is_valid(now, a, text), "{text:?}");
        }
    }
}
