//! New data on the primary path only (RFC 9260 §6.4).

use super::Scheduler;
use crate::policy::PolicyCx;
use crate::view::PathId;

/// The primary path while it is usable; else the next usable one in the order of ids, round-robin
/// from the primary. The primary carries data again as soon as it is usable again.
#[derive(Debug, Default)]
pub struct Primary;

impl Scheduler for Primary {
    fn choose(&mut self, cx: &mut PolicyCx<'_>) -> Option<PathId> {
        let at = cx.paths.iter().position(|p| p.id == cx.primary).unwrap_or(0);
        let (before, from) = cx.paths.split_at(at);
        let first = from.iter().chain(before).find(|p| p.usable)?;
        (first.cwnd_space > 0).then_some(first.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tests::{cx, view};

    #[test]
    fn the_next_path_takes_over_while_the_primary_is_not_usable() {
        let mut paths = [view(0), view(1), view(2)];
        let mut rng = crate::Rng::from_number(1);
        assert_eq!(Primary.choose(&mut cx(&paths, 1, &mut rng)), Some(PathId(1)));
        paths[1].usable = false;
        assert_eq!(Primary.choose(&mut cx(&paths, 1, &mut rng)), Some(PathId(2)));
        paths[2].usable = false;
        assert_eq!(Primary.choose(&mut cx(&paths, 1, &mut rng)), Some(PathId(0)));
    }

    #[test]
    fn a_full_window_waits_and_spills_nothing_onto_other_paths() {
        let mut paths = [view(0), view(1)];
        paths[0].cwnd_space = 0;
        let mut rng = crate::Rng::from_number(1);
        assert_eq!(Primary.choose(&mut cx(&paths, 0, &mut rng)), None);
    }
}
