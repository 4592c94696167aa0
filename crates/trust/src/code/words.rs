//! Two words of a list.

use std::fmt;

use diceware_wordlists::EFF_LONG_WORDLIST;
use zeroize::Zeroize;

use super::CodeError;

/// Words of a code. There are 7,772 to choose from, so 60 million codes: with the guesses that
/// [`Attempts`](crate::Attempts) admits, one of them is found in a day with a probability of 1 in
/// 40,000.
const WORDS: usize = 2;

/// Two words by their places in the list: the Electronic Frontier Foundation's long one for
/// passphrases (2016), whose words are easy to read out and to spell.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Words([usize; WORDS]);

impl Drop for Words {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// The words that a code may have. Four of the list are left out: they have a hyphen.
fn is_usable(word: &str) -> bool {
    !word.contains('-')
}

/// The parts of a code as people type it.
pub(super) fn parts(text: &str) -> Vec<&str> {
    text.split([' ', '-', '\t']).filter(|part| !part.is_empty()).collect()
}

impl Words {
    /// 2^64 is no multiple of the number of words: some are more likely, by 1 in 2^51.
    pub(super) fn from_random(first: u64, second: u64) -> Words {
        let usable = EFF_LONG_WORDLIST.iter().filter(|word| is_usable(word)).count();
        let place = |random: u64| {
            let nth = (random % usable as u64) as usize;
            let mut places = EFF_LONG_WORDLIST.iter().enumerate().filter(|(_, w)| is_usable(w));
            places.nth(nth).map_or(0, |(place, _)| place)
        };
        Words([place(first), place(second)])
    }

    /// The words that these are, in upper or lower case.
    pub(super) fn read(parts: Vec<&str>) -> Result<Words, CodeError> {
        let Ok(words) = <[&str; WORDS]>::try_from(parts) else { return Err(CodeError::Form) };
        if !words.iter().all(|word| word.bytes().all(|b| b.is_ascii_alphabetic())) {
            return Err(CodeError::Form);
        }
        let mut places = [0; WORDS];
        for (place, word) in places.iter_mut().zip(words) {
            let found = EFF_LONG_WORDLIST.iter().position(|w| w.eq_ignore_ascii_case(word));
            *place = found.ok_or_else(|| CodeError::UnknownWord(word.to_owned()))?;
        }
        Ok(Words(places))
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = self.0.map(|place| EFF_LONG_WORDLIST.get(place).unwrap_or(&""));
        write!(f, "{first}-{second}")
    }
}
