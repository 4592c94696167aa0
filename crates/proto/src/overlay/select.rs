//! Which paths to use.

use super::disjoint::{Route, disjoint};

/// A path that could be used.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Its score; 0 is a path that does not work.
    pub score: f64,
    /// Its routers, as far as known.
    pub route: Route,
}

/// The decision on a candidate, and its reason.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Choice {
    /// It is used. Counted from 1 in the order of selection.
    Selected {
        /// Its place by score among those selected.
        rank: usize,
    },
    /// It has too much in common with one that is used.
    Overlaps {
        /// The one of those selected with which it has most in common.
        with: usize,
        /// Their disjointness, at most beta.
        disjoint: f64,
    },
    /// As many are used as may be, all with better scores.
    Enough,
    /// It does not work.
    Dead,
}

/// Selects at most `k` paths (mTCP §3.3): from the highest score down, each that is disjoint from
/// all that are selected already, Disjoint > `beta`. With equal scores the earlier candidate comes
/// first. The answers are in the order of the candidates.
pub fn select(candidates: &[Candidate], beta: f64, k: usize) -> Vec<Choice> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    // A stable sort: ties stay in order.
    order.sort_by(|&a, &b| candidates[b].score.total_cmp(&candidates[a].score));
    let mut choices = vec![Choice::Dead; candidates.len()];
    let mut selected: Vec<usize> = Vec::new();
    for index in order {
        let candidate = &candidates[index];
        if candidate.score.is_nan() || candidate.score <= 0.0 {
            continue;
        }
        let closest = selected
            .iter()
            .map(|&other| (disjoint(&candidate.route, &candidates[other].route), other))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        choices[index] = match closest {
            _ if selected.len() >= k => Choice::Enough,
            Some((disjoint, with)) if disjoint <= beta => Choice::Overlaps { with, disjoint },
            _ => {
                selected.push(index);
                Choice::Selected { rank: selected.len() }
            }
        };
    }
    choices
}
