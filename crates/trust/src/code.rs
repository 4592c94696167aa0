//! A short code that a person reads on one screen and types on another.

use std::fmt;
use std::str::FromStr;

use zeroize::Zeroize;

use crate::password::Password;

/// Digits of a code.
const DIGITS: usize = 9;
/// Digits of a group.
const GROUP: usize = 3;
/// The number of codes. With the guesses that [`Attempts`](crate::Attempts) admits, 50 and then 60
/// an hour, one of them is found in a day with a probability of 1 in 670,000.
const CODES: u64 = 1_000_000_000;

/// A code: nine digits, written in three groups as `482-109-357`. It is short, so both ends must
/// prove it without showing it ([`password`](crate::password)), and guesses must be limited.
/// It is erased from memory when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Code(u64);

impl Drop for Code {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// The text is not a [`Code`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a code has nine digits, such as 482-109-357")]
pub struct CodeError;

/// The system gives no random numbers.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random numbers")]
pub struct NoRandomness;

impl Code {
    /// A random code.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub fn random() -> Result<Code, NoRandomness> {
        // 2^64 is no multiple of the number of codes: some are more likely, by 1 in 2^34.
        getrandom::u64().map(|number| Code(number % CODES)).map_err(|_| NoRandomness)
    }

    /// The code as the password of an exchange: its digits.
    #[must_use]
    pub fn password(&self) -> Password {
        let digits = format!("{:0DIGITS$}", self.0).into_bytes();
        // Nine bytes are a password.
        Password::new(digits).unwrap_or_else(|_| unreachable!())
    }
}

impl FromStr for Code {
    type Err = CodeError;

    /// Reads a code as people type it: spaces and hyphens do not count.
    fn from_str(text: &str) -> Result<Code, CodeError> {
        let mut number = 0;
        let mut digits = 0;
        for c in text.trim().chars().filter(|c| !matches!(c, ' ' | '-')) {
            let digit = c.to_digit(10).ok_or(CodeError)?;
            digits += 1;
            if digits > DIGITS {
                return Err(CodeError);
            }
            number = number * 10 + u64::from(digit);
        }
        if digits == DIGITS { Ok(Code(number)) } else { Err(CodeError) }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:0DIGITS$}", self.0);
        let (first, rest) = digits.split_at(GROUP);
        let (second, third) = rest.split_at(GROUP);
        write!(f, "{first}-{second}-{third}")
    }
}

/// Without the digits.
impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code(..)")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_code_is_read_as_people_type_it() {
        let code: Code = "482-109-357".parse().unwrap();
        for text in ["482109357", " 482 109 357 ", "482-109 357", "4-8-2-1-0-9-3-5-7"] {
            assert_eq!(text.parse(), Ok(code.clone()), "{text}");
        }
        assert_eq!(code.to_string(), "482-109-357");
        assert_eq!(code.password().as_bytes(), b"482109357");
        assert_eq!(format!("{code:?}"), "Code(..)");
        let zeros: Code = "000-000-007".parse().unwrap();
        assert_eq!(zeros.to_string(), "000-000-007");
        assert_eq!(zeros.password().as_bytes(), b"000000007");
    }

    #[test]
    fn what_is_no_code_is_refused() {
        for text in ["", "-", "48210935", "4821093570", "482-109-35a", "٤٨٢١٠٩٣٥٧", "+482109357"]
        {
            assert_eq!(text.parse::<Code>(), Err(CodeError), "{text}");
        }
    }

    #[test]
    fn random_codes_differ() {
        let codes: Vec<String> = (0..20).map(|_| Code::random().unwrap().to_string()).collect();
        let mut different = codes.clone();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), codes.len());
        assert!(codes.iter().all(|code| code.len() == DIGITS + 2));
    }

    /// Guesses are limited to what nine random digits bear.
    #[test]
    fn all_digits_of_a_code_are_random() {
        let codes: Vec<String> = (0..400).map(|_| Code::random().unwrap().to_string()).collect();
        for place in 0..DIGITS {
            let digits: BTreeSet<char> =
                codes.iter().filter_map(|c| c.replace('-', "").chars().nth(place)).collect();
            // One of ten is missing in 400 with a probability of 5 in 10^18.
            assert_eq!(digits.len(), 10, "digit {place}: {digits:?}");
        }
    }
}
