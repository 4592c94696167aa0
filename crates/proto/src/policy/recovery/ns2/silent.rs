//! The decay of the windows of paths that send nothing, even with data in flight.

use crate::policy::cc::Window;
use crate::policy::recovery::Silence;
use crate::time::Instant;
use crate::view::PathId;

/// The time at which the window of each path decays if no data is sent before.
#[derive(Debug)]
pub(super) struct SilentPaths {
    /// Windows decay (`idle_cwnd_decay`).
    decay: bool,
    /// One RTO after the last data, with the RTO of that time.
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

    /// The window after its decay. It is halved for every RTO since the last packet with DATA, but
    /// not below the floor, to which it even rises. After a timeout the decay starts again with the
    /// next packet.
    pub(super) fn decayed(&mut self, path: PathId, silence: &Silence) -> Window {
        let mut window = silence.window;
        let mut at = self.at.get(path.index()).copied().flatten();
        while let Some(ends) = at.filter(|ends| self.decay && *ends < silence.now) {
            at = Some(ends + silence.rto);
            if window.cwnd > silence.two_packets {
                window.cwnd = (window.cwnd / 2).max(silence.floor);
            }
        }
        self.set(path, if silence.times_out { None } else { at });
        window
    }
}
