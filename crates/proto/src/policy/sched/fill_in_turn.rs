//! New data on every path, each path first in its turn (CMT-PF paper, Figs. 2 and 4).

use super::Scheduler;
use crate::policy::PolicyCx;
use crate::time::Instant;
use crate::view::PathId;

/// Fills one congestion window after the other, as [`FillFirst`](super::FillFirst) does. The next
/// opportunity to send, at another instant, begins with another path.
///
/// The two differ if one opportunity fills several windows. The next one begins here with the path
/// after that with which the opportunity *began*, and in `FillFirst` with the path after that with
/// which it *ended*. Neither paper says which. This order gives the timelines drawn in the CMT-PF
/// paper.
#[derive(Debug, Default)]
pub struct FillInTurn {
    /// The path with which the latest opportunity began.
    began: Option<PathId>,
    /// The path in use.
    current: Option<PathId>,
    since: Instant,
}

impl Scheduler for FillInTurn {
    fn choose(&mut self, cx: &mut PolicyCx<'_>) -> Option<PathId> {
        let is_new = self.current.is_none() || self.since != cx.now;
        let at = |id: Option<PathId>| cx.paths.iter().position(|p| Some(p.id) == id);
        let first = if is_new {
            at(self.began).map_or(0, |at| at + 1)
        } else {
            at(self.current).unwrap_or(0)
        };
        let (before, from) = cx.paths.split_at(first.min(cx.paths.len()));
        let next = from.iter().chain(before).find(|p| p.usable && p.cwnd_space > 0)?;
        if is_new {
            self.began = Some(next.id);
        }
        self.current = Some(next.id);
        self.since = cx.now;
        self.current
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tests::{cx, view};

    /// The paths of the choices at these milliseconds; after each choice these paths are full.
    fn turns(choices: &[(u64, &[usize])]) -> Vec<u8> {
        let mut s = FillInTurn::default();
        let mut rng = crate::Rng::from_number(1);
        let choose = |&(ms, full): &(u64, &[usize])| {
            let mut paths = [view(0), view(1)];
            for &path in full {
                paths[path].cwnd_space = 0;
            }
            let mut at = cx(&paths, 0, &mut rng);
            at.now = Instant::from_millis(ms);
            s.choose(&mut at).expect("one has room").0
        };
        choices.iter().map(choose).collect()
    }

    #[test]
    fn an_opportunity_begins_after_the_path_with_which_the_last_one_began() {
        // Both windows are filled at 0 ms; what follows begins with path 1 although it was the
        // last.
        assert_eq!(
            turns(&[(0, &[]), (0, &[]), (0, &[0]), (1, &[]), (1, &[]), (2, &[])]),
            [0, 0, 1, 1, 1, 0]
        );
    }

    #[test]
    fn a_full_window_loses_its_turn() {
        assert_eq!(turns(&[(0, &[]), (1, &[1]), (2, &[])]), [0, 0, 1]);
    }

    #[test]
    fn without_room_nothing_is_chosen() {
        let mut s = FillInTurn::default();
        let mut paths = [view(0), view(1)];
        paths[0].cwnd_space = 0;
        paths[1].usable = false;
        let mut rng = crate::Rng::from_number(1);
        assert_eq!(s.choose(&mut cx(&paths, 0, &mut rng)), None);
    }
}
