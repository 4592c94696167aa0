//! Options of a transfer.

use std::time::Duration;

use crate::stop::Stop;

/// The time without progress after which the command gives a transfer up.
const STALL_LIMIT: Duration = Duration::from_secs(600);
/// The time between two events of progress.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// Options of a transfer, at either end.
#[derive(Clone, Debug)]
pub struct Options {
    /// A transfer without any progress for this time is given up; `None`: never. 10 minutes by
    /// default. Time for which this process does not run hardly counts.
    pub stall_limit: Option<Duration>,
    /// Time between two [`Event::Progress`](crate::Event::Progress); `None`: there are none. 0.2 s
    /// by default.
    pub progress_every: Option<Duration>,
    /// Asks the transfer to stop.
    pub stop: Stop,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            stall_limit: Some(STALL_LIMIT),
            progress_every: Some(PROGRESS_EVERY),
            stop: Stop::new(),
        }
    }
}
