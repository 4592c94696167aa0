//! The name of a public key.

use std::fmt;
use std::str::FromStr;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use sha2::{Digest, Sha256};

/// How a written fingerprint begins.
const SCHEME: &str = "sha256:";

/// The SHA-256 of a public key. Written as `sha256:` and 64 hexadecimal digits.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; Fingerprint::LEN]);

/// The text is not a [`Fingerprint`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not sha256: and 64 hexadecimal digits")]
pub struct FingerprintError;

impl Fingerprint {
    /// Length in bytes.
    pub const LEN: usize = 32;

    /// The fingerprint of a public key: a SubjectPublicKeyInfo in DER (RFC 7250, section 3).
    #[must_use]
    pub fn of(public_key: &[u8]) -> Fingerprint {
        Fingerprint(Sha256::digest(public_key).into())
    }

    /// The fingerprint with these bytes.
    #[must_use]
    pub const fn new(bytes: [u8; Fingerprint::LEN]) -> Fingerprint {
        Fingerprint(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; Fingerprint::LEN] {
        &self.0
    }

    /// True if `text` is meant as a fingerprint, complete or not.
    #[must_use]
    pub fn looks_like(text: &str) -> bool {
        after_scheme(text.trim()).is_some()
    }
}

/// The part of `text` after `sha256:`, in letters of either case.
fn after_scheme(text: &str) -> Option<&str> {
    let (scheme, digits) = text.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then_some(digits)
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Fingerprint, FingerprintError> {
        let digits = after_scheme(text.trim()).ok_or(FingerprintError)?;
        let bytes = HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).map_err(|_| FingerprintError)?;
        bytes.try_into().map(Fingerprint).map_err(|_| FingerprintError)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_the_fingerprint_that_sha256sum_prints() {
        // printf abc | sha256sum
        let written = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let fingerprint = Fingerprint::of(b"abc");
        assert_eq!(fingerprint.to_string(), written);
        assert_eq!(written.parse(), Ok(fingerprint));
        assert_eq!(format!(" {}\n", written.to_uppercase()).parse(), Ok(fingerprint));
    }

    #[test]
    fn anything_else_is_refused() {
        let digits = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        for text in [
            "".to_owned(),
            "sha256:".to_owned(),
            digits.to_owned(),
            format!("sha1:{digits}"),
            format!("sha256:{}", &digits[1..]),
            format!("sha256:{digits}00"),
            format!("sha256:{}g", &digits[1..]),
            format!("sha256: {digits}"),
            "sha25\u{e9}:".to_owned(),
        ] {
            assert_eq!(text.parse::<Fingerprint>(), Err(FingerprintError), "{text:?}");
        }
        assert!(Fingerprint::looks_like("SHA256:12") && !Fingerprint::looks_like("keys/sha256"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".*") {
            if let Ok(fingerprint) = text.parse::<Fingerprint>() {
                assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
            }
        }

        #[test]
        fn every_fingerprint_reads_back(bytes: [u8; 32]) {
            let fingerprint = Fingerprint::new(bytes);
            assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
        }
    }
}
