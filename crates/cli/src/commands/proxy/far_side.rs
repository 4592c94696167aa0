//! The far side as the side that connects knows it: where it is, and who it is.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::time::Duration;

use manypath::{Association, Security};
use manypath_trust::Fingerprint;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::hello::Peer;
use crate::connect::secret::SecretKind;
use crate::connect::security::{Pinning, public_key};
use crate::connect::transport;
use crate::failure::Result;

/// Names are looked up at most once in this time, however often it is tried to connect.
const LOOK_UP_EVERY: Duration = Duration::from_secs(2);
/// An attempt to connect waits for its name server this long, and then takes the last addresses.
const LOOK_UP_TIME: Duration = Duration::from_secs(1);
/// The pause after an attempt that met another key than the far side's, and the longest one. It
/// doubles with each, so that there are at most ten of them in an hour.
const PAUSE_AT_STRANGERS: (Duration, Duration) =
    (Duration::from_secs(20), Duration::from_secs(600));

/// The addresses of a look-up.
type Found = Result<Vec<SocketAddr>>;

/// The far side.
pub(super) struct FarSide {
    addresses: RefCell<Vec<SocketAddr>>,
    /// A look-up that takes long.
    looking: Cell<Option<JoinHandle<Found>>>,
    /// When the last look-up began.
    looked_up: Cell<Instant>,
    secret: SecretKind,
    security: RefCell<Security>,
    /// The means to accept only one key, once that is known.
    pinning: Option<Pinning>,
    pinned: Cell<Option<Fingerprint>>,
    /// The next pause after an attempt that met another key.
    pause: Cell<Duration>,
}

impl FarSide {
    /// A far side that was found at these addresses. With `pinning` its key is not known yet.
    pub(super) fn new(
        addresses: Vec<SocketAddr>,
        secret: SecretKind,
        security: Security,
        pinning: Option<Pinning>,
    ) -> FarSide {
        FarSide {
            addresses: RefCell::new(addresses),
            looking: Cell::new(None),
            looked_up: Cell::new(Instant::now()),
            secret,
            security: RefCell::new(security),
            pinning,
            pinned: Cell::new(None),
            pause: Cell::new(PAUSE_AT_STRANGERS.0),
        }
    }

    /// The addresses that were found last.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.addresses.borrow().clone()
    }

    /// The addresses in words.
    pub(super) fn name(&self) -> String {
        transport::addresses(&self.addresses.borrow())
    }

    /// The far side for those who talk to it.
    pub(super) fn peer(&self) -> Peer {
        Peer { name: self.name(), secret: self.secret }
    }

    /// The protection of the next association.
    pub(super) fn security(&self) -> Security {
        self.security.borrow().clone()
    }

    /// Only the owner of one key is accepted, that proved the token before.
    pub(super) fn is_pinned(&self) -> bool {
        self.pinned.get().is_some()
    }

    /// The far side of this association has proved the token: no other key is accepted from now on.
    /// Returns the key the first time.
    pub(super) fn pin(&self, association: &Association) -> Option<Fingerprint> {
        if self.is_pinned() {
            return None;
        }
        let pinning = self.pinning.as_ref()?;
        let key = public_key(association)?;
        self.security.replace(pinning.to(key));
        self.pinned.set(Some(key));
        Some(key)
    }

    /// The pause after an attempt that met another key; longer each time.
    pub(super) fn pause_at_stranger(&self) -> Duration {
        let (_, longest) = PAUSE_AT_STRANGERS;
        let pause = self.pause.get();
        self.pause.set((pause * 2).min(longest));
        pause
    }

    /// The far side was met: pauses are short again.
    pub(super) fn was_met(&self) {
        self.pause.set(PAUSE_AT_STRANGERS.0);
    }

    /// Takes the addresses that `resolve` finds, as the far side may have moved since the last
    /// attempt. Those known so far stay if it finds none or takes long. True if they changed.
    pub(super) async fn look_up(
        &self,
        resolve: impl Future<Output = Found> + Send + 'static,
    ) -> bool {
        let mut looking = match self.looking.take() {
            Some(looking) => looking,
            None if self.looked_up.get().elapsed() < LOOK_UP_EVERY => return false,
            None => {
                self.looked_up.set(Instant::now());
                tokio::spawn(resolve)
            }
        };
        match timeout(LOOK_UP_TIME, &mut looking).await {
            Ok(Ok(Ok(found))) if !found.is_empty() => {
                self.addresses.replace(found.clone()) != found
            }
            // It was not found, which the next attempt may mend.
            Ok(_) => false,
            Err(_) => {
                self.looking.set(Some(looking));
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;

    fn at(last: u8) -> Vec<SocketAddr> {
        vec![SocketAddr::from(([192, 0, 2, last], 9899))]
    }

    fn far() -> FarSide {
        FarSide::new(at(1), SecretKind::Token, Security::Plain, None)
    }

    #[test]
    fn strangers_are_met_ten_times_an_hour_at_most() {
        let far = far();
        let mut at = vec![0];
        while at.last().is_some_and(|last| *last < 24 * 3600) {
            at.push(at[at.len() - 1] + far.pause_at_stranger().as_secs());
        }
        for begin in &at {
            let met = at.iter().filter(|at| (*begin..*begin + 3600).contains(*at)).count();
            assert!(met <= 10, "{met} times from {begin} s on");
        }
        far.was_met();
        assert_eq!(far.pause_at_stranger(), PAUSE_AT_STRANGERS.0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_far_side_that_moved_is_found_at_the_next_attempt() {
        let far = far();
        assert!(!far.look_up(async { Ok(at(2)) }).await, "it was looked up just now");
        tokio::time::sleep(LOOK_UP_EVERY).await;
        assert!(far.look_up(async { Ok(at(2)) }).await);
        assert_eq!(far.addresses(), at(2));
        for nothing in [Ok(Vec::new()), Err(Failure::failed("no name server answers"))] {
            tokio::time::sleep(LOOK_UP_EVERY).await;
            assert!(!far.look_up(async move { nothing }).await);
            assert_eq!(far.addresses(), at(2), "the last addresses stay");
        }
    }

    async fn other() -> Found {
        panic!("another look-up began")
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_name_server_holds_no_attempt_up_and_is_asked_once_at_a_time() {
        let far = far();
        tokio::time::sleep(LOOK_UP_EVERY).await;
        let slow = async {
            tokio::time::sleep(2 * LOOK_UP_TIME + LOOK_UP_TIME / 2).await;
            Ok(at(3))
        };
        let begin = Instant::now();
        assert!(!far.look_up(slow).await);
        assert_eq!(begin.elapsed(), LOOK_UP_TIME);
        assert!(!far.look_up(other()).await);
        assert!(far.look_up(other()).await, "the first has its answer");
        assert_eq!(far.addresses(), at(3));
    }
}
