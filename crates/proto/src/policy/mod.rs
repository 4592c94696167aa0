//! Policies: the decisions in which the published systems differ.
//!
//! A policy is one decision. It reads views, returns a small value, and only the engine acts on it.
//! Each family is a folder with a trait, and each policy is one file in it with one line in the family's
//! registry; configuration, command line and bindings use the name in that line.

pub mod ack_path;
pub mod cc;
pub mod fail;
pub mod recovery;
pub mod redundant;
pub mod rtx;
pub mod sched;
pub mod shared;

use crate::config::Config;
use crate::path::{PathId, PathView};
use crate::rng::Rng;
use crate::time::Instant;

/// What a policy may read: every path as it stands, the time, and randomness of its own.
#[derive(Debug)]
pub struct PolicyCx<'a> {
    /// The time of the decision.
    pub now: Instant,
    /// All paths of the association.
    pub paths: &'a [PathView],
    /// The primary path.
    pub primary: PathId,
    /// The family's generator.
    pub rng: &'a mut Rng,
}

impl PolicyCx<'_> {
    /// The path with this id.
    pub fn path(&self, id: PathId) -> Option<&PathView> {
        self.paths.iter().find(|p| p.id == id)
    }

    /// Of the usable paths with room, the one with the least pipe / cwnd (mTCP paper, section 3.1.4).
    pub fn least_used(&mut self) -> Option<PathId> {
        let used = |p: &PathView| p.pipe as f64 / p.cwnd.max(1) as f64;
        self.argmax(|p| p.usable && p.cwnd_space > 0, |p| -used(p))
    }

    /// Of the paths that satisfy `allowed`, the one with the greatest `key`; a tie is broken at random.
    pub fn argmax<K: PartialOrd>(
        &mut self,
        allowed: impl Fn(&PathView) -> bool,
        key: impl Fn(&PathView) -> K,
    ) -> Option<PathId> {
        let mut best: Option<(K, PathId)> = None;
        let mut ties = 1;
        for p in self.paths.iter().filter(|p| allowed(p)) {
            let k = key(p);
            match &best {
                Some((b, _)) if k < *b => {}
                Some((b, _)) if k == *b => {
                    // Reservoir sampling: each of n equals is kept with probability 1/n.
                    ties += 1;
                    if self.rng.below(ties) == 0 {
                        best = Some((k, p.id));
                    }
                }
                _ => {
                    ties = 1;
                    best = Some((k, p.id));
                }
            }
        }
        best.map(|(_, id)| id)
    }
}

/// Makes a family's registry: the names for configuration and `build`, from one line per policy.
macro_rules! registry {
    ($trait:ident { $($name:literal => $new:expr),+ $(,)? }) => {
        /// The policies of this family by name.
        pub const NAMES: &[&str] = &[$($name),+];

        /// The policy of that name; `None` if there is no such name.
        pub fn build(name: &str, config: &$crate::config::Config) -> Option<Box<dyn $trait>> {
            match name {
                $($name => {
                    let new: fn(&$crate::config::Config) -> Box<dyn $trait> = $new;
                    Some(new(config))
                })+
                _ => None,
            }
        }
    };
}
pub(crate) use registry;

/// The policies of one association. Congestion control is per path, and kept there.
#[derive(Debug)]
pub(crate) struct Policies {
    pub(crate) sched: Box<dyn sched::Scheduler>,
    pub(crate) rtx: Box<dyn rtx::RtxPolicy>,
    pub(crate) fail: Box<dyn fail::FailurePolicy>,
    pub(crate) ack_path: Box<dyn ack_path::AckPathPolicy>,
    pub(crate) shared: Box<dyn shared::SharedPolicy>,
    pub(crate) redundant: Box<dyn redundant::RedundancyPolicy>,
    /// The failure policy watches how long nothing is acknowledged. Known beforehand, as it is asked per SACK.
    pub(crate) watches_silence: bool,
    /// The policy for shared bottlenecks wants to know delays. Known beforehand for the same reason.
    pub(crate) watches_delays: bool,
    /// SACKs take the path of the latest DATA. Known beforehand for the same reason.
    pub(crate) acks_last: bool,
    /// The redundancy policy is on.
    pub(crate) duplicates: bool,
}

impl Policies {
    /// The policies that a configuration names. Names come from the registries, and configuration
    /// accepts no others, so the fallbacks are never used.
    pub(crate) fn new(config: &Config) -> Policies {
        let fail = fail::build(&config.failure, config)
            .unwrap_or_else(|| Box::new(fail::Pmr::new(config)));
        let redundant = redundant::build(&config.redundancy, config)
            .unwrap_or_else(|| Box::new(redundant::Off));
        let ack_path = ack_path::build(&config.ack_path, config)
            .unwrap_or_else(|| Box::new(ack_path::LastReceived));
        let shared = shared::build(&config.shared_congestion, config)
            .unwrap_or_else(|| Box::new(shared::Off));
        Policies {
            watches_delays: shared.watches_delays(),
            acks_last: ack_path.is_last(),
            watches_silence: fail.silence_max(config.rto_initial).is_some(),
            duplicates: redundant.is_on(),
            sched: sched::build(&config.scheduler, config)
                .unwrap_or_else(|| Box::new(sched::Primary)),
            rtx: rtx::build(&config.rtx_policy, config).unwrap_or_else(|| Box::new(rtx::RtxSame)),
            fail,
            ack_path,
            shared,
            redundant,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    //! Views written by hand.

    use std::time::Duration;

    use super::*;
    use crate::path::PathState;

    /// An active path with room in its window.
    pub(crate) fn view(id: u8) -> PathView {
        PathView {
            id: PathId(id),
            state: PathState::Active,
            usable: true,
            cwnd: 4000,
            ssthresh: 4000,
            flight_size: 0,
            pipe: 0,
            cwnd_space: 4000,
            srtt: None,
            rto: Duration::from_secs(1),
            loss_rate: 0.0,
            error_count: 0,
            last_active: Instant::ZERO,
            last_data_received: None,
        }
    }

    pub(crate) fn cx<'a>(paths: &'a [PathView], primary: u8, rng: &'a mut Rng) -> PolicyCx<'a> {
        PolicyCx { now: Instant::ZERO, paths, primary: PathId(primary), rng }
    }
}
