//! Keeps an open allocation usable while nothing flows: the NAT's mapping, and where the relay lets
//! nobody in without a permission, that of the relay's own address.

use std::time::Duration;

use manypath_proto::Instant;

/// Something is sent to the relay this often, so that a NAT on the way there remembers us. NATs
/// forget after 30 s in the worst case that is usual (RFC 8445 §11 has 15 s, too).
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// After a packet of the relay: if no other one follows for this time, the relay is asked if it
/// still knows us. A NAT that was restarted has forgotten us, and what comes for us is lost.
const PAUSE: Duration = Duration::from_secs(1);
/// Interval at which the permission is renewed, which lasts 300 s (RFC 8656 §9).
const PERMIT_AGAIN: Duration = Duration::from_secs(240);
/// Wait before a refused permission is asked for again.
const PERMIT_RETRY: Duration = Duration::from_secs(60);

/// When what is due.
#[derive(Debug)]
pub(super) struct Keep {
    /// When something was last sent to the relay.
    spoke_at: Instant,
    /// When the relay last brought a packet, unless it was asked since then.
    heard_at: Option<Instant>,
    /// When somebody said that a NAT may have forgotten us, unless the relay was asked since then.
    doubted_at: Option<Instant>,
    /// When to ask for the permission; `None` if none is needed, or while a request is under way.
    permit_at: Option<Instant>,
}

impl Keep {
    pub(super) fn new(now: Instant) -> Keep {
        Keep { spoke_at: now, heard_at: None, doubted_at: None, permit_at: None }
    }

    /// Something is sent to the relay.
    pub(super) fn spoke(&mut self, now: Instant) {
        self.spoke_at = now;
    }

    /// The relay brought a packet.
    pub(super) fn heard(&mut self, now: Instant) {
        self.heard_at = Some(now);
    }

    /// A NAT may have forgotten us.
    pub(super) fn doubt(&mut self, now: Instant) {
        self.doubted_at = Some(now);
    }

    /// The relay is asked if it still knows us.
    pub(super) fn asked(&mut self) {
        (self.heard_at, self.doubted_at) = (None, None);
    }

    /// When to ask it.
    pub(super) fn ask_at(&self) -> Instant {
        let alive_at = self.spoke_at + KEEP_ALIVE;
        let heard_at = self.heard_at.map(|at| at + PAUSE);
        heard_at.into_iter().chain(self.doubted_at).fold(alive_at, Instant::min)
    }

    /// When the permission is due.
    pub(super) fn permit_at(&self) -> Option<Instant> {
        self.permit_at
    }

    /// The permission is needed from now on.
    pub(super) fn need_permission(&mut self, now: Instant) {
        self.permit_at = Some(now);
    }

    /// True if the permission is due; a request is under way from now on.
    pub(super) fn take_due(&mut self, now: Instant) -> bool {
        self.permit_at.take_if(|at| *at <= now).is_some()
    }

    pub(super) fn permitted(&mut self, now: Instant) {
        self.permit_at = Some(now + PERMIT_AGAIN);
    }

    pub(super) fn refused(&mut self, now: Instant) {
        self.permit_at = Some(now + PERMIT_RETRY);
    }

    /// There is no allocation any more.
    pub(super) fn reset(&mut self) {
        self.permit_at = None;
    }
}
