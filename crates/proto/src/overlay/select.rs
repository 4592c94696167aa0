//! The choice of paths to use.

use super::disjoint::{Route, disjoint};

/// A path that could be used.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The path's score; 0 for a path that does not work.
    pub score: f64,
    /// Its routers, as far as known.
    pub route: Route,
}

/// The decision on a candidate, and its reason.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Choice {
    /// It is used.
    Selected {
        /// Place by score among the selected paths, from 1.
        rank: usize,
    },
    /// It shares too many links with a path that is used.
    Overlaps {
        /// The selected candidate that shares most with it.
        with: usize,
        /// Their disjointness, at most beta.
        disjoint: f64,
    },
    /// All paths that may be used have better scores.
    Enough,
    /// The path does not work.
    Dead,
}

/// Selects at most `k` paths (mTCP §3.3): from the highest score down, each path whose Disjoint
/// with all selected ones is above `beta`. Of equal scores the earlier candidate comes first. The
/// answers are in the order of the candidates.
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
