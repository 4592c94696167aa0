//! Decides from identifications if two addresses take them from one counter.

/// The address that was asked.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The first address of the pair.
    A,
    /// The second address of the pair.
    B,
}

/// The verdict on two addresses.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Counter {
    /// A single counter numbers the answers of both: they are one router's.
    Same,
    /// Each address has a counter that rises by little, and they are two.
    Different,
    /// Too few answers, or no counter: constant, random or fast identifications.
    Unknown,
}

/// Answers of each address that a verdict needs.
pub(crate) const ANSWERS_MIN: usize = 3;

/// Largest step from one answer to the next, in packets that the router sent meanwhile. Rocketfuel
/// takes two identifications that differ by more than 200 for those of two routers.
const STEP_MAX: u16 = 200;

/// Changes from one address to the other that one counter needs: ABABAB has five, and one answer in
/// its middle may be lost if another one replaces it.
const CHANGES_MIN: usize = 4;

/// Compares the identifications of answers, in the order in which the questions were sent. Lost
/// answers are left out.
///
/// A false alias is improbable. Six or more random identifications are taken for one counter with
/// a probability below (200/65536)^5 < 10^-12. Of two counters that are independent the first step
/// from one to the other is small enough with a probability of 200/65536 = 0.3 %. They must then
/// also interleave each time, which two idle routers' do not: each answer adds 1 to one counter.
pub(crate) fn compare(answers: &[(Side, u16)]) -> Counter {
    let ids = |side| answers.iter().filter(move |(of, _)| *of == side).map(|(_, id)| *id);
    if [Side::A, Side::B].iter().any(|side| ids(*side).count() < ANSWERS_MIN) {
        return Counter::Unknown;
    }
    if rises(answers.iter().map(|(_, id)| *id), STEP_MAX) {
        let changes = answers.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
        return if changes >= CHANGES_MIN { Counter::Same } else { Counter::Unknown };
    }
    // An address has its turn after the other one: two steps.
    let counts = |side| rises(ids(side), 2 * STEP_MAX);
    if counts(Side::A) && counts(Side::B) { Counter::Different } else { Counter::Unknown }
}

/// True if each identification is 1 to `step_max` above the one before, modulo 2^16.
fn rises(ids: impl Iterator<Item = u16>, step_max: u16) -> bool {
    let ids: Vec<u16> = ids.collect();
    ids.windows(2).all(|pair| (1..=step_max).contains(&pair[1].wrapping_sub(pair[0])))
}
