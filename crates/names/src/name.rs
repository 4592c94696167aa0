//! The name of a receiver.

use std::fmt;
use std::str::FromStr;

/// Longest name in bytes. With the receiver's number it must fit into a label of DNS.
const LEN_MAX: usize = 40;

/// The name of a receiver in the local network, such as `laptop`.
///
/// One word: ASCII letters, digits, hyphens and underscores, at least one letter among them, and a
/// letter or digit at both ends. So it is neither an address nor a host with a domain, and can be
/// shown as it is. Upper and lower case are the same.
#[derive(Clone, Debug)]
pub struct Name(String);

/// The reason why a word is no [`Name`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No character, or too many.
    #[error("a name has 1 to {LEN_MAX} characters")]
    Length,
    /// A character that is not allowed, or not at this place.
    #[error(
        "a name consists of letters from a to z, digits, - and _, and begins and ends with a letter \
         or digit"
    )]
    Character,
    /// Without a letter.
    #[error("a name has at least one letter")]
    NoLetter,
    /// A number and two words, as `7-cabana-anvil`: that is a code.
    #[error("a number and two words with hyphens between are a code")]
    Code,
    /// The name that every host has for itself.
    #[error("localhost is the name that every host has for itself")]
    Localhost,
}

impl Name {
    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Name, NameError> {
        if text.is_empty() || text.len() > LEN_MAX {
            return Err(NameError::Length);
        }
        let is_right = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        let ends = [text.bytes().next(), text.bytes().last()];
        if !text.bytes().all(is_right)
            || !ends.into_iter().flatten().all(|b| b.is_ascii_alphanumeric())
        {
            return Err(NameError::Character);
        }
        if !text.bytes().any(|b| b.is_ascii_alphabetic()) {
            return Err(NameError::NoLetter);
        }
        if is_like_a_code(text) {
            return Err(NameError::Code);
        }
        if text.eq_ignore_ascii_case("localhost") {
            return Err(NameError::Localhost);
        }
        Ok(Name(text.to_owned()))
    }
}

/// True for a number and two words.
fn is_like_a_code(text: &str) -> bool {
    let parts: Vec<&[u8]> = text.split('-').map(str::as_bytes).collect();
    let [number, first, second] = parts[..] else { return false };
    number.iter().all(u8::is_ascii_digit)
        && [first, second].iter().all(|word| word.iter().all(u8::is_ascii_alphabetic))
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for Name {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_word_that_can_be_shown() {
        for text in ["laptop", "Laptop-2", "a", "4th_floor", "7-up-4", "up-up-up", &"a".repeat(40)]
        {
            assert_eq!(text.parse::<Name>().unwrap().as_str(), text);
        }
        for (text, error) in [
            ("", NameError::Length),
            (&*"a".repeat(41), NameError::Length),
            ("two words", NameError::Character),
            ("laptop.local", NameError::Character),
            ("laptop:9899", NameError::Character),
            ("a,b", NameError::Character),
            ("-a", NameError::Character),
            ("a_", NameError::Character),
            ("küche", NameError::Character),
            ("a\x1b[2J", NameError::Character),
            ("192", NameError::NoLetter),
            ("7-cabana-anvil", NameError::Code),
            ("LocalHost", NameError::Localhost),
        ] {
            assert_eq!(text.parse::<Name>(), Err(error), "{text:?}");
        }
    }

    #[test]
    fn case_does_not_count() {
        assert_eq!("Laptop".parse::<Name>(), "laptop".parse());
        assert_ne!("laptop".parse::<Name>(), "laptop2".parse());
    }
}
