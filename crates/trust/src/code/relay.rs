//! A code whose receiver a relay knows by a number.

use std::fmt;
use std::str::FromStr;

use super::words::{Words, parts};
use super::{Code, CodeError, Kind};

/// Digits of a number at most.
const DIGITS_MAX: usize = 9;

/// A number that a relay gave the receiver, and the code, as `7-cabana-anvil`. The number is no
/// secret: it says where the receiver is. The words are, and the relay does not learn them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayCode {
    /// The receiver's number at the relay, from 1.
    pub number: u32,
    /// The secret.
    pub code: Code,
}

/// The text is not a [`RelayCode`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RelayCodeError {
    /// Not a number and two words.
    #[error("a code is a number and two words, such as 7-cabana-anvil")]
    Form,
    /// A word that no code has.
    #[error("no code has the word {0:?}; look at it again")]
    UnknownWord(String),
}

impl FromStr for RelayCode {
    type Err = RelayCodeError;

    /// Reads a code as people type it, in upper or lower case, with hyphens or spaces. A number
    /// and two words are always taken for a code, lest a slip of the finger look for something
    /// else.
    fn from_str(text: &str) -> Result<RelayCode, RelayCodeError> {
        let parts = parts(text);
        let [number, ..] = parts[..] else { return Err(RelayCodeError::Form) };
        let is_number = number.len() <= DIGITS_MAX && number.bytes().all(|b| b.is_ascii_digit());
        let number = number.parse().ok().filter(|number| is_number && *number > 0);
        let number: u32 = number.ok_or(RelayCodeError::Form)?;
        let words = Words::read(parts[1..].to_vec()).map_err(|error| match error {
            CodeError::Form => RelayCodeError::Form,
            CodeError::UnknownWord(word) => RelayCodeError::UnknownWord(word),
        })?;
        Ok(RelayCode { number, code: Code(Kind::Words(words)) })
    }
}

impl fmt::Display for RelayCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.number, self.code)
    }
}
