//! A short code that a person reads on one screen and types on another.

use std::fmt;
use std::str::FromStr;

use crate::password::Password;

mod digits;
mod relay;
mod words;

pub use relay::{RelayCode, RelayCodeError};

use digits::Digits;
use words::Words;

/// A code: nine digits, written in three groups as `482-109-357`, or two words, as
/// `cabana-anvil`. It is short, so both ends must prove it without showing it
/// ([`password`](crate::password)), and guesses must be limited. It is erased from memory when it
/// is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Code(Kind);

#[derive(Clone, PartialEq, Eq)]
enum Kind {
    Digits(Digits),
    Words(Words),
}

/// The text is not a [`Code`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// Neither nine digits nor two words.
    #[error("a code has nine digits, such as 482-109-357, or two words, such as 7-cabana-anvil")]
    Form,
    /// A word that no code has.
    #[error("no code has the word {0:?}; look at it again")]
    UnknownWord(String),
}

/// The system gives no random numbers.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random numbers")]
pub struct NoRandomness;

impl Code {
    /// A random code of nine digits.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub fn random() -> Result<Code, NoRandomness> {
        random().map(|number| Code(Kind::Digits(Digits::from_random(number))))
    }

    /// A random code of two words.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub fn random_words() -> Result<Code, NoRandomness> {
        Ok(Code(Kind::Words(Words::from_random(random()?, random()?))))
    }

    /// The code as the password of an exchange: its digits, or its words with a hyphen between.
    #[must_use]
    pub fn password(&self) -> Password {
        let bytes = match &self.0 {
            Kind::Digits(digits) => digits.plain(),
            Kind::Words(words) => words.to_string(),
        };
        // Nine digits or seven letters are a password.
        Password::new(bytes.into_bytes()).unwrap_or_else(|_| unreachable!())
    }
}

fn random() -> Result<u64, NoRandomness> {
    getrandom::u64().map_err(|_| NoRandomness)
}

impl FromStr for Code {
    type Err = CodeError;

    /// Reads a code as people type it: spaces and hyphens do not count between digits, and are one
    /// between words. The number of a [`RelayCode`] may stand before the words.
    fn from_str(text: &str) -> Result<Code, CodeError> {
        if let Ok(digits) = text.parse() {
            return Ok(Code(Kind::Digits(digits)));
        }
        match text.parse::<RelayCode>() {
            Ok(code) => Ok(code.code),
            Err(RelayCodeError::UnknownWord(word)) => Err(CodeError::UnknownWord(word)),
            Err(RelayCodeError::Form) => Words::read(words::parts(text)).map(Kind::Words).map(Code),
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Digits(digits) => digits.fmt(f),
            Kind::Words(words) => words.fmt(f),
        }
    }
}

/// Without the digits or words.
impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code(..)")
    }
}

#[cfg(test)]
mod tests;
