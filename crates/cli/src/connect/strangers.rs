//! Limits on what strangers on the network can cause: lines of output.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::screen::Screen;

/// Lines about strangers in each [`WINDOW`].
const LINES_MAX: u32 = 20;
/// The time that lines are counted over.
const WINDOW: Duration = Duration::from_secs(10);
/// How often a listening command calls [`StrangerLines::tick`].
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// Lines that strangers cause, as many as somebody can read; the others are counted.
#[derive(Clone, Debug)]
pub(crate) struct StrangerLines {
    screen: Screen,
    count: Arc<Mutex<LineCount>>,
}

#[derive(Debug, Default)]
struct LineCount {
    /// When the window began.
    since: Option<Instant>,
    shown: u32,
    left_out: u64,
}

impl LineCount {
    /// True if a line may be shown, and how many were left out in a window that is over.
    fn line(&mut self, now: Instant) -> (bool, u64) {
        let left_out = self.end_window(now);
        self.since.get_or_insert(now);
        let may = self.shown < LINES_MAX;
        self.shown += u32::from(may);
        self.left_out += u64::from(!may);
        (may, left_out)
    }

    /// Ends a window whose time is over; how many lines were left out in it.
    fn end_window(&mut self, now: Instant) -> u64 {
        if self.since.is_none_or(|since| now.saturating_duration_since(since) < WINDOW) {
            return 0;
        }
        std::mem::take(self).left_out
    }
}

impl StrangerLines {
    pub(crate) fn new(screen: Screen) -> StrangerLines {
        StrangerLines { screen, count: Arc::default() }
    }

    /// Says a line, or counts it. Control characters in it are escaped.
    pub(crate) fn say(&self, text: &str) {
        let (may, left_out) = self.locked().line(Instant::now());
        self.tell_left_out(left_out);
        if may {
            self.screen.line(&manypath_files::relative::printable(text));
        }
    }

    /// Tells what was left out once a window is over, even if nothing more comes. To be called
    /// every [`TICK`].
    pub(crate) fn tick(&self) {
        let left_out = self.locked().end_window(Instant::now());
        self.tell_left_out(left_out);
    }

    fn tell_left_out(&self, count: u64) {
        if count > 0 {
            self.screen.line(&format!("({count} more lines about strangers were omitted)"));
        }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, LineCount> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_limited_and_what_is_left_out_is_counted() {
        let (mut count, start) = (LineCount::default(), Instant::now());
        let mut shown = 0;
        for i in 0..28_000 {
            let (may, left_out) = count.line(start + Duration::from_millis(i / 7));
            assert_eq!(left_out, 0);
            shown += u32::from(may);
        }
        assert_eq!(shown, LINES_MAX);
        assert_eq!(count.end_window(start + WINDOW - Duration::from_millis(1)), 0);
        assert_eq!(count.line(start + WINDOW), (true, 28_000 - u64::from(LINES_MAX)));
        assert_eq!(count.end_window(start + 2 * WINDOW), 0);
        assert_eq!(count.line(start + 3 * WINDOW), (true, 0));
    }
}
