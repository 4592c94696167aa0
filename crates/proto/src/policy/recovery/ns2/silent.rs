//! The decay of windows of paths that send nothing, whatever is in flight there.

use crate::path::PathId;
use crate::policy::cc::Window;
use crate::policy::recovery::Silence;
use crate::time::Instant;

/// When the window of each path decays if no data is sent until then.
#[derive(Debug)]
pub(super) struct SilentPaths {
    /// `idle_cwnd_decay` is on.
    decay: bool,
    /// An RTO, as it was then, after the last data.
    at: Vec<Option<Instant>>,
}

impl SilentPaths {
    pub(super) fn new(decay: bool) -> SilentPaths {
        SilentPaths { decay, at: Vec::new() }
    }

    pub(super) fn set(&mut self, path: PathId, at: Option<Instant>) {
        if self.at.len() <= path.index() {
            self.at.resize(path.index() + 1, None);
        }
        self.at[path.index()] = at;
    }

    /// The window by now: halved for every RTO since a packet with DATA was last sent, and to the
    /// floor even from below. After a timeout the decay begins anew with the next packet.
    pub(super) fn decayed(&mut self, path: PathId, silence: &Silence) -> Window {
        let mut window = silence.window;
        let mut at = self.at.get(path.index()).copied().flatten();
        while let Some(ends) = at.filter(|ends| self.decay && *ends < silence.now) {
            at = Some(ends + silence.rto);
            if window.cwnd > silence.two_packets {
                window.cwnd = (window.cwnd / 2).max(silence.floor);
            }
        }
        self.set(path, at.filter(|_| !silence.times_out));
        window
    }
}
