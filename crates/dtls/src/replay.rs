//! The sequence numbers of an epoch that have been received (RFC 9147 §4.5.1).

use std::collections::VecDeque;

/// Remembers which records have come, so that none counts twice.
///
/// It is as wide as the paths' delays differ, and no wider: numbers below which all have come take
/// no memory, and up to [`WORDS_MAX`] words of 64 numbers are kept above them. What is older than
/// that counts as received.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReplayWindow {
    /// All numbers below have come or are too old; a multiple of 64.
    low: u64,
    /// A bit for each number from `low`.
    words: VecDeque<u64>,
}

/// The widest window: half of what a sequence number of 16 bits can tell apart.
const WORDS_MAX: usize = (1 << 15) / 64;

impl ReplayWindow {
    /// True for a number that has not come and is not too old.
    pub(crate) fn is_new(&self, number: u64) -> bool {
        let Some(offset) = number.checked_sub(self.low) else { return false };
        let word = usize::try_from(offset / 64).ok().and_then(|word| self.words.get(word));
        word.is_none_or(|word| word & 1 << (offset % 64) == 0)
    }

    /// Records a number that [`is_new`](Self::is_new), of a record that was authentic.
    pub(crate) fn insert(&mut self, number: u64) {
        let Some(offset) = number.checked_sub(self.low) else { return };
        let too_wide = (offset / 64 + 1).saturating_sub(WORDS_MAX as u64);
        self.words.drain(..self.words.len().min(too_wide as usize));
        self.low += 64 * too_wide;
        let word = ((number - self.low) / 64) as usize;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (number % 64);
        while self.words.front() == Some(&u64::MAX) {
            self.words.pop_front();
            self.low += 64;
        }
    }

    /// Memory that the window takes, in words.
    #[cfg(test)]
    pub(crate) fn words(&self) -> usize {
        self.words.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn in_order_it_takes_no_memory() {
        let mut window = ReplayWindow::default();
        for number in 0..100_000 {
            assert!(window.is_new(number));
            window.insert(number);
            assert!(!window.is_new(number) && window.words() <= 1);
        }
    }

    #[test]
    fn a_missing_number_is_waited_for() {
        let mut window = ReplayWindow::default();
        for number in 1..32_000 {
            window.insert(number);
        }
        assert!(window.is_new(0) && window.words() == 500);
        window.insert(0);
        assert_eq!(window.words(), 0, "all of them have come");
        assert!(window.is_new(32_000) && !window.is_new(31_999));
    }

    proptest! {
        /// Against a set of all numbers: a new one is refused only if it is older than the window,
        /// an old one always.
        #[test]
        fn it_agrees_with_a_set(steps in proptest::collection::vec((0u64..70_000, 0u8..4), 1..300)) {
            let (mut window, mut seen, mut highest) = (ReplayWindow::default(), BTreeSet::new(), 0);
            for (step, kind) in steps {
                let number = if kind == 0 { highest + step } else { highest.saturating_sub(step / 2) };
                let expected = !seen.contains(&number);
                if window.is_new(number) {
                    prop_assert!(expected);
                    window.insert(number);
                    seen.insert(number);
                    highest = highest.max(number);
                } else {
                    prop_assert!(!expected || highest - number > 32_768 - 64);
                }
                prop_assert!(window.words() <= WORDS_MAX);
            }
        }
    }
}
