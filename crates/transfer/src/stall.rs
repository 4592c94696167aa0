//! A transfer that neither ends nor goes on.
//!
//! The engine notices a peer that does not answer. A peer that answers and takes or sends nothing
//! more (its window stays closed, its disk hangs) is alive to it for ever.

use std::time::Duration;

/// Looks in the time without progress that is too long. Looks are counted, not time: whoever was
/// stopped or slept for an hour finds nothing changed when it wakes, and must let the peer go on
/// first.
const LOOKS: u32 = 20;

/// Completes when `progress`, which may be any number that changes with every step forward, has
/// stayed the same for `limit`.
pub async fn stalled(limit: Option<Duration>, progress: impl Fn() -> u64) {
    let Some(limit) = limit else { return std::future::pending().await };
    let (mut last, mut looks) = (progress(), 0);
    while looks < LOOKS {
        tokio::time::sleep(limit / LOOKS).await;
        let now = progress();
        looks = if now == last { looks + 1 } else { 0 };
        last = now;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::{Instant, advance};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_transfer_stalls_only_without_any_progress() {
        let (begin, steps) = (Instant::now(), Cell::new(0u64));
        let limit = Some(Duration::from_secs(20));
        let moving = async {
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_secs(15)).await;
                steps.set(steps.get() + 1);
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = stalled(limit, || steps.get()) => {}
            () = moving => {}
        }
        assert_eq!(steps.get(), 10, "15 s without progress are no stall");
        let time = begin.elapsed().as_secs();
        assert!((170..=172).contains(&time), "{time} s");
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_was_stopped_lets_the_peer_go_on_first() {
        let watch = stalled(Some(Duration::from_secs(20)), || 7);
        tokio::pin!(watch);
        let pending = tokio::time::timeout(Duration::from_millis(1), &mut watch).await;
        assert!(pending.is_err());
        advance(Duration::from_secs(3600)).await;
        let pending = tokio::time::timeout(Duration::from_secs(5), &mut watch).await;
        assert!(pending.is_err(), "an hour passed at once");
    }
}
