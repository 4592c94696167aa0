//! Policies: the decisions in which the published systems differ.
//!
//! A policy is one decision. It reads views, returns a small value, and only the engine acts on it.
//! Each family is a folder with a trait, and each policy is one file in it with one line in the
//! family's registry; configuration, command line and bindings use the name in that line. A program
//! may bring its own policies, see [`Factory`].

pub mod ack_path;
pub mod cc;
mod factory;
pub mod fail;
pub mod path_set;
pub mod rank;
pub mod recovery;
pub mod redundant;
pub mod rtx;
pub mod sched;
pub mod stream_sched;

use std::time::Duration;

pub(crate) use factory::known;
pub use factory::{Factory, Family, Known};

use crate::rng::Rng;
use crate::time::Instant;
use crate::view::{PathId, PathView};

/// The input of a policy: every path as it stands, the time, and randomness of its own.
#[derive(Debug)]
pub struct PolicyCx<'a> {
    /// The time of the decision.
    pub now: Instant,
    /// All paths of the association.
    pub paths: &'a [PathView],
    /// The primary path.
    pub primary: PathId,
    /// User bytes that wait to be sent for the first time.
    pub waiting: usize,
    /// The family's generator.
    pub rng: &'a mut Rng,
}

impl PolicyCx<'_> {
    /// The path with this id.
    pub fn path(&self, id: PathId) -> Option<&PathView> {
        self.paths.iter().find(|p| p.id == id)
    }

    /// This context with other views of the paths.
    pub(crate) fn of<'a>(&'a mut self, paths: &'a [PathView]) -> PolicyCx<'a> {
        let PolicyCx { now, primary, waiting, .. } = *self;
        PolicyCx { now, paths, primary, waiting, rng: self.rng }
    }

    /// The usable path with room and the least pipe / cwnd (mTCP paper, section 3.1.4).
    pub fn least_used(&mut self) -> Option<PathId> {
        let used = |p: &PathView| p.pipe as f64 / p.cwnd.max(1) as f64;
        self.argmax(|p| p.usable && p.cwnd_space > 0, |p| -used(p))
    }

    /// The path with the greatest `key` among those that satisfy `allowed`; a tie is broken at
    /// random.
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

/// Makes a family's registry, from one line per policy: its name in configuration, and how an
/// association gets its own.
macro_rules! registry {
    ($trait:ident { $($name:literal => $new:expr),+ $(,)? }) => {
        impl $crate::policy::Family for dyn $trait {
            const KNOWN: &'static [$crate::policy::Known<Self>] =
                &[$($crate::policy::Known { name: $name, new: $new }),+];
            const NAMES: &'static [&'static str] = &[$($name),+];
        }
    };
}
pub(crate) use registry;

/// The events and questions that an association's policies need. Policies state them once, because
/// the engine reads them for every packet.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Fast retransmits: a [path set](path_set) looks for shared bottlenecks.
    pub bottlenecks: bool,
    /// The delays of acknowledged data, and the share of sent data that arrived.
    pub delays: bool,
    /// Reviews of the [path set](path_set) while data is outstanding, this long after each other.
    pub review: Option<Duration>,
    /// A timer for each path on which something is to be acknowledged.
    pub silence: bool,
    /// The choice of the path of each SACK; without it SACKs take the path of the latest DATA.
    pub sack_paths: bool,
    /// SACK PATH chunks: to say which path our SACKs take, or to be told which the peer's take.
    pub sack_path_chunks: bool,
    /// Choices of the paths' [roles](redundant) before anything is sent, and ends of flights.
    pub roles: bool,
    /// The choice of [chunks to copy](redundant::RedundancyPolicy::copy) before new data, and when
    /// nothing else can be sent.
    pub copies: bool,
}

impl Needs {
    /// The needs of two policies together.
    fn and(self, other: Needs) -> Needs {
        Needs {
            bottlenecks: self.bottlenecks || other.bottlenecks,
            delays: self.delays || other.delays,
            review: self.review.or(other.review),
            silence: self.silence || other.silence,
            sack_paths: self.sack_paths || other.sack_paths,
            sack_path_chunks: self.sack_path_chunks || other.sack_path_chunks,
            roles: self.roles || other.roles,
            copies: self.copies || other.copies,
        }
    }
}

/// The policies of one association. Congestion control is per path, and kept there.
#[derive(Debug)]
pub(crate) struct Policies {
    pub(crate) sched: Box<dyn sched::Scheduler>,
    pub(crate) rtx: Box<dyn rtx::RtxPolicy>,
    pub(crate) fail: Box<dyn fail::FailurePolicy>,
    pub(crate) ack_path: Box<dyn ack_path::AckPathPolicy>,
    pub(crate) path_set: Box<dyn path_set::PathSet>,
    pub(crate) rank: Box<dyn rank::RankPolicy>,
    pub(crate) redundant: Box<dyn redundant::RedundancyPolicy>,
    /// The needs of all these policies together.
    pub(crate) needs: Needs,
    /// The failure policy's way to treat paths in doubt.
    pub(crate) in_doubt: fail::InDoubt,
}

impl Policies {
    /// These policies, with their needs read.
    pub(crate) fn settled(mut self) -> Policies {
        self.in_doubt = self.fail.in_doubt();
        self.renew_wants();
        self
    }

    /// Replaces the policy for the path of SACKs.
    pub(crate) fn set_ack_path(&mut self, ack_path: Box<dyn ack_path::AckPathPolicy>) {
        self.ack_path = ack_path;
        self.renew_wants();
    }

    fn renew_wants(&mut self) {
        let needs = self.fail.needs().and(self.ack_path.needs());
        self.needs = needs.and(self.path_set.needs()).and(self.redundant.needs());
    }
}

#[cfg(test)]
pub(crate) mod tests {
    //! Views written by hand.

    use std::time::Duration;

    use super::*;
    use crate::view::{PathRank, PathState};

    /// An active path with room in its window.
    pub(crate) fn view(id: u8) -> PathView {
        PathView {
            id: PathId(id),
            state: PathState::Active,
            rank: PathRank::NORMAL,
            usable: true,
            cwnd: 4000,
            ssthresh: 4000,
            flight_size: 0,
            pipe: 0,
            cwnd_space: 4000,
            srtt: None,
            estimate: None,
            rto: Duration::from_secs(1),
            loss_rate: 0.0,
            error_count: 0,
            path_max_retrans: 5,
            last_active: Instant::ZERO,
            last_data_received: None,
        }
    }

    pub(crate) fn cx<'a>(paths: &'a [PathView], primary: u8, rng: &'a mut Rng) -> PolicyCx<'a> {
        PolicyCx { now: Instant::ZERO, paths, primary: PathId(primary), waiting: 0, rng }
    }
}
