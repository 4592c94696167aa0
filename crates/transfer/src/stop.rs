//! Asking transfers to stop, from elsewhere in the program.

use std::sync::Arc;

use tokio::sync::watch;

/// Asks transfers to stop. Clones are the same: what one of them asks reaches all.
///
/// A transfer that is asked tells its peer, and keeps what is needed to go on later. To drop its
/// future ends it, too, but the peer then finds out by itself.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<watch::Sender<u64>>);

impl Stop {
    /// Nobody has asked yet.
    #[must_use]
    pub fn new() -> Stop {
        Stop::default()
    }

    /// Asks. A transfer whose content is complete hears only what comes while it waits for its peer
    /// to end the association.
    pub fn stop(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    /// True if somebody has asked.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        *self.0.borrow() > 0
    }

    /// Completes when somebody asks, or has asked before.
    pub async fn stopped(&self) {
        self.raised_above(0).await;
    }

    /// Completes when somebody asks the next time. Earlier times do not count.
    pub async fn stopped_again(&self) {
        let before = *self.0.borrow();
        self.raised_above(before).await;
    }

    async fn raised_above(&self, before: u64) {
        let mut count = self.0.subscribe();
        // The other half lives as long as this.
        let _ = count.wait_for(|&now| now > before).await;
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    #[tokio::test]
    async fn a_wish_that_comes_while_nobody_waits_is_not_lost() {
        let stop = Stop::new();
        stop.clone().stop();
        assert!(stop.is_stopped());
        stop.stopped().await;
    }

    #[tokio::test]
    async fn who_waits_for_the_next_wish_does_not_take_an_earlier_one() {
        let stop = Stop::new();
        stop.stop();
        let next = stop.stopped_again();
        tokio::pin!(next);
        tokio::select! {
            biased;
            () = &mut next => panic!("the earlier one was taken"),
            () = ready(()) => {}
        }
        stop.stop();
        next.await;
    }
}
