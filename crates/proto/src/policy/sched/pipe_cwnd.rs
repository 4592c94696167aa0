//! New data where the window is least used (mTCP paper, section 3.1.4).

use super::Scheduler;
use crate::policy::PolicyCx;
use crate::view::PathId;

/// The path with the least pipe / cwnd of those with room: each carries its share of every burst,
/// in proportion to its window. A tie is broken at random. Use it with `pipe_accounting`.
#[derive(Debug, Default)]
pub struct PipeCwnd;

impl Scheduler for PipeCwnd {
    fn choose(&mut self, cx: &mut PolicyCx<'_>) -> Option<PathId> {
        cx.least_used()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tests::{cx, view};
    use crate::view::PathView;

    #[test]
    fn the_path_whose_window_is_least_used_is_next() {
        let mut rng = crate::Rng::from_number(1);
        let mut paths = [view(0), view(1), view(2)];
        for (p, (pipe, cwnd)) in paths.iter_mut().zip([(3000, 4000), (4000, 8000), (900, 1000)]) {
            *p = PathView { pipe, cwnd, ..p.clone() };
        }
        assert_eq!(PipeCwnd.choose(&mut cx(&paths, 0, &mut rng)), Some(PathId(1)), "1/2 of it");
        paths[1].cwnd_space = 0;
        assert_eq!(PipeCwnd.choose(&mut cx(&paths, 0, &mut rng)), Some(PathId(0)), "3/4 of it");
        paths[0].usable = false;
        assert_eq!(PipeCwnd.choose(&mut cx(&paths, 0, &mut rng)), Some(PathId(2)));
        paths[2].cwnd_space = 0;
        assert_eq!(PipeCwnd.choose(&mut cx(&paths, 0, &mut rng)), None);
    }

    #[test]
    fn packets_go_to_the_paths_in_proportion_to_their_windows() {
        let mut rng = crate::Rng::from_number(1);
        let mut paths = [view(0), view(1)];
        (paths[0].cwnd, paths[1].cwnd) = (30_000, 10_000);
        let mut sent = [0, 0];
        for _ in 0..20 {
            let path = PipeCwnd.choose(&mut cx(&paths, 0, &mut rng)).expect("room").index();
            paths[path].pipe += 1000;
            sent[path] += 1;
        }
        assert_eq!(sent, [15, 5]);
    }
}
