//! New data on every path, one window after the other (CMT paper, section II).

use super::Scheduler;
use crate::policy::PolicyCx;
use crate::time::Instant;
use crate::view::PathId;

/// Stays on a path until its congestion window is full, then goes to the next with room, in the
/// order of ids. Filling one window at a time keeps consecutive TSNs together, which reorders less.
///
/// The next opportunity to send, at another instant, begins with the next path. So every path gets
/// a turn even if something other than the windows limits the transfer, such as the peer's receive
/// buffer. The paper leaves this order open.
#[derive(Debug, Default)]
pub struct FillFirst {
    current: Option<PathId>,
    since: Instant,
}

impl Scheduler for FillFirst {
    fn choose(&mut self, cx: &mut PolicyCx<'_>) -> Option<PathId> {
        let last = cx.paths.iter().position(|p| Some(p.id) == self.current);
        let first = match last {
            Some(at) if self.since == cx.now => at,
            Some(at) => at + 1,
            None => 0,
        };
        let (before, from) = cx.paths.split_at(first.min(cx.paths.len()));
        let next = from.iter().chain(before).find(|p| p.usable && p.cwnd_space > 0)?;
        self.current = Some(next.id);
        self.since = cx.now;
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

    #[test]
    fn each_opportunity_begins_with_the_next_path() {
        let mut s = FillFirst::default();
        let paths = [view(0), view(1), view(2)];
        let mut rng = crate::Rng::from_number(1);
        let turns: Vec<_> = (0..4)
            .map(|ms| {
                let mut at = cx(&paths, 0, &mut rng);
                at.now = Instant::from_millis(ms);
                s.choose(&mut at).expect("all have room").0
            })
            .collect();
        assert_eq!(turns, [0, 1, 2, 0], "the peer's buffer may be all that limits the transfer");
    }
}
