//! Relays to meet only: content takes direct paths alone.
//!
//! An end that wants this says so in its lists, and it then holds for both ends. Until a direct
//! path works, the first words of the applications take the relay, such as a hello and a welcome.
//! Applications ask for the [directness](Association::directness) before content follows.
//!
//! Once a direct path works and both ends know of the wish, relayed paths are barred: they carry no
//! DATA any more, also if no direct path works later. They are kept for heartbeats and lists, so
//! that ends whose NATs have forgotten them find each other again.

use smallvec::SmallVec;

use super::Direct;
use crate::assoc::Association;
use crate::datagram::AddressPair;
use crate::path::Path;
use crate::time::Instant;
use crate::view::PathState;

/// How far an association is from taking direct paths alone.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Directness {
    /// Neither end wants that, as far as is known: all paths carry content.
    Unwanted,
    /// This end wants it, and the peer has not said yet that it knows.
    Untold,
    /// Both ends know of the wish, and no direct path has worked yet. Content has to wait.
    Sought,
    /// A direct path has worked. Content takes direct paths alone from now on.
    Direct,
}

/// The wish that relays are there to meet only.
#[derive(Debug, Default)]
pub(super) struct Only {
    /// This end wants it.
    own: bool,
    /// The peer wants it.
    peer: bool,
    /// The peer has a list of this end.
    is_told: bool,
    /// Relayed paths carry no DATA any more.
    bars_relays: bool,
}

impl Direct {
    /// Wants relays to be there to meet only, if `wanted`.
    #[must_use]
    pub(crate) fn only(mut self, wanted: bool) -> Direct {
        self.only.own = wanted;
        self
    }

    /// True if this end wants content to take direct paths alone.
    pub(super) fn wants_direct_only(&self) -> bool {
        self.only.own
    }

    /// The peer has told its wish. That never ends.
    pub(super) fn peer_wants_direct_only(&mut self, wanted: bool) {
        self.only.peer |= wanted;
    }

    /// The peer has a list of this end, which has its wish.
    pub(super) fn wish_is_told(&mut self) {
        self.only.is_told = true;
    }

    /// True if a path between these addresses may carry no DATA.
    fn bars(&self, pair: AddressPair) -> bool {
        self.only.bars_relays && self.is_relayed(pair)
    }
}

impl Association {
    /// How far this association is from taking direct paths alone, if an end [wants
    /// that](crate::Endpoint::set_direct_only).
    pub fn directness(&self) -> Directness {
        match self.direct.as_deref().map(|direct| &direct.only) {
            None => Directness::Unwanted,
            Some(only) if !only.own && !only.peer => Directness::Unwanted,
            Some(only) if only.bars_relays => Directness::Direct,
            Some(only) if only.own && self.agreed.candidates && !only.is_told => Directness::Untold,
            Some(_) => Directness::Sought,
        }
    }

    /// True if relayed paths carry no DATA.
    pub(crate) fn bars_relays(&self) -> bool {
        self.direct.as_deref().is_some_and(|direct| direct.only.bars_relays)
    }

    /// True if a path between these addresses may carry no DATA.
    pub(crate) fn bars(&self, pair: AddressPair) -> bool {
        self.direct.as_deref().is_some_and(|direct| direct.bars(pair))
    }

    /// Bars relayed paths, if an end wants that and a direct path works.
    pub(crate) fn bar_relays(&mut self, now: Instant) {
        if self.directness() == Directness::Sought
            && self.has_direct_path()
            && let Some(direct) = &mut self.direct
        {
            direct.only.bars_relays = true;
            self.bar_paths(now);
        }
    }

    /// A path works that is known to take no relay. Without a list of the peer nobody knows.
    fn has_direct_path(&self) -> bool {
        let Some(direct) = self.direct.as_deref() else { return false };
        let is_known = !self.agreed.candidates || direct.peer_serial != 0;
        let works = |p: &Path| {
            p.liveness.state == PathState::Active
                && !p.liveness.is_away()
                && !direct.is_relayed(p.pair())
        };
        is_known && self.paths.iter().any(works)
    }

    /// Renews which paths are barred.
    pub(crate) fn bar_paths(&mut self, now: Instant) {
        if !self.bars_relays() {
            return;
        }
        let wrong = |p: &&Path| p.role.is_barred != self.bars(p.pair());
        let wrong: SmallVec<[_; 8]> = self.paths.iter().filter(wrong).map(|p| p.id).collect();
        for id in &wrong {
            if let Some(p) = self.paths.get_mut(*id) {
                p.role.is_barred = !p.role.is_barred;
            }
        }
        if !wrong.is_empty() {
            self.refresh_usable(now);
        }
    }
}
