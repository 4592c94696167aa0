//! One colour and one mark for each policy, the same in every figure.
//!
//! The hues are those of Okabe and Ito, which people with the common kinds of colour blindness tell
//! apart, made darker on white and lighter on black until each has a contrast of 3:1 or more. A
//! mark of its own goes with each, for grey prints.

use std::collections::BTreeMap;

/// Colours on white, as `#rrggbb`; the page's script has the same list for black.
pub(crate) const LIGHT: [&str; SLOTS] =
    ["#0067b0", "#c8430a", "#00805a", "#8f3a84", "#a87600", "#0b8a9e", "#5b6470", "#7a4a1e"];

/// Colours on black, slot by slot those of [`LIGHT`].
pub(crate) const DARK: [&str; SLOTS] =
    ["#5ab0f0", "#ff8a5c", "#3fcf9f", "#dc8fd2", "#f0bf3f", "#5fdcea", "#aeb8c4", "#d3a27a"];

/// How many colours there are; more lines than that in one figure share colours and differ in their
/// marks.
pub(crate) const SLOTS: usize = 8;

/// Policies that meet in many figures, with their slots.
const KNOWN: &[(&str, usize)] = &[
    ("cwnd", 0),
    ("same", 1),
    ("asap", 4),
    ("ssthresh", 2),
    ("lossrate", 3),
    ("app-stripe", 6),
    ("cmt", 1),
    ("cmt-pf", 0),
    ("pf1", 5),
    ("pf2", 0),
    ("sctp", 6),
    ("all-rtx-alt", 1),
    ("all-rtx-same", 0),
    ("fr-same-rto-alt", 2),
    ("msacmt-rt", 3),
    ("msacmt-rtv2", 2),
];

/// Slots of lines by their values; grows as figures are made, in the order of the report.
#[derive(Debug, Default)]
pub(crate) struct Palette {
    given: BTreeMap<String, usize>,
}

impl Palette {
    /// Slots for the lines of one figure: the usual ones, and another where two lines would share
    /// one.
    pub(crate) fn slots(&mut self, keys: &[String]) -> Vec<usize> {
        let mut taken: Vec<usize> = Vec::new();
        let mut slots = vec![0; keys.len()];
        let (known, new): (Vec<_>, Vec<_>) =
            (0..keys.len()).partition(|i| self.usual(&keys[*i]).is_some());
        for i in known.into_iter().chain(new) {
            let usual = self.usual(&keys[i]);
            let free = (0..SLOTS).find(|slot| !taken.contains(slot));
            let slot = match usual {
                Some(slot) if !taken.contains(&slot) => slot,
                _ => free.unwrap_or(i),
            };
            if usual.is_none() {
                self.given.insert(keys[i].clone(), slot % SLOTS);
            }
            taken.push(slot % SLOTS);
            slots[i] = slot;
        }
        slots
    }

    fn usual(&self, key: &str) -> Option<usize> {
        let known = KNOWN.iter().find(|(name, _)| *name == key).map(|(_, slot)| *slot);
        known.or_else(|| self.given.get(key).copied())
    }
}
