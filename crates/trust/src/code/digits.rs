//! Nine digits.

use std::fmt;
use std::str::FromStr;

use zeroize::Zeroize;

/// Digits of a code.
pub(super) const DIGITS: usize = 9;
/// Digits of a group.
const GROUP: usize = 3;
/// The number of codes. With the guesses that [`Attempts`](crate::Attempts) admits, 50 and then 60
/// an hour, one of them is found in a day with a probability of 1 in 670,000.
const CODES: u64 = 1_000_000_000;

/// Nine digits, as a number.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Digits(u64);

impl Drop for Digits {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl Digits {
    /// 2^64 is no multiple of the number of codes: some are more likely, by 1 in 2^34.
    pub(super) fn from_random(number: u64) -> Digits {
        Digits(number % CODES)
    }

    /// Without hyphens.
    pub(super) fn plain(&self) -> String {
        format!("{:0DIGITS$}", self.0)
    }
}

impl FromStr for Digits {
    type Err = ();

    fn from_str(text: &str) -> Result<Digits, ()> {
        let mut number = 0;
        let mut digits = 0;
        for c in text.trim().chars().filter(|c| !matches!(c, ' ' | '-')) {
            let digit = c.to_digit(10).ok_or(())?;
            digits += 1;
            if digits > DIGITS {
                return Err(());
            }
            number = number * 10 + u64::from(digit);
        }
        if digits == DIGITS { Ok(Digits(number)) } else { Err(()) }
    }
}

impl fmt::Display for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.plain();
        let (first, rest) = digits.split_at(GROUP);
        let (second, third) = rest.split_at(GROUP);
        write!(f, "{first}-{second}-{third}")
    }
}
