//! New data on every path, one window after the other (CMT paper, section II).

use super::Scheduler;
use crate::path::PathId;
use crate::policy::PolicyCx;

/// Stays on a path until its congestion window is full, then goes to the next with room, in the order of
/// ids. Filling one window at a time keeps consecutive TSNs together, which reorders less.
#[derive(Debug, Default)]
pub struct FillFirst {
    current: Option<PathId>,
}

impl Scheduler for FillFirst {
    fn choose(&mut self, cx: &mut PolicyCx<'_>) -> Option<PathId> {
        let at = cx.paths.iter().position(|p| Some(p.id) == self.current).unwrap_or(0);
        let (before, from) = cx.paths.split_at(at);
        let next = from.iter().chain(before).find(|p| p.usable && p.cwnd_space > 0)?;
        self.current = Some(next.id);
        self.current
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tests::{cx, view};

    #[test]
    fn a_window_is_filled_before_the_next_path_is_used() {
        let mut s = FillFirst::default();
        let mut paths = [view(0), view(1)];
        let mut rng = crate::Rng::from_number(1);
        assert_eq!(s.choose(&mut cx(&paths, 0, &mut rng)), Some(PathId(0)));
        assert_eq!(s.choose(&mut cx(&paths, 0, &mut rng)), Some(PathId(0)));
        paths[0].cwnd_space = 0;
        assert_eq!(s.choose(&mut cx(&paths, 0, &mut rng)), Some(PathId(1)));
        paths[0].cwnd_space = 1500;
        assert_eq!(s.choose(&mut cx(&paths, 0, &mut rng)), Some(PathId(1)), "it stays");
        paths[1].usable = false;
        assert_eq!(s.choose(&mut cx(&paths, 0, &mut rng)), Some(PathId(0)));
        paths[0].usable = false;
        assert_eq!(s.choose(&mut cx(&paths, 0, &mut rng)), None);
    }
}
