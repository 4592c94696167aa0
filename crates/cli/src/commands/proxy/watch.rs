//! Notices that the far side may have been restarted: it acknowledges nothing any more.
//!
//! A far side that was killed cannot say so, and its successor knows neither the association nor
//! the keys that would prove its word. Waiting until all paths have failed takes many seconds. So
//! after a short silence the client connects once more, beside the old association; if another run
//! of the program answers, the old one is dead.

use std::time::Duration;

use manypath_proxy::Session;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// A silence as long as this, with something unacknowledged, is worth a look.
pub(super) const SILENCE: Duration = Duration::from_millis(400);
/// How often the silence is measured.
const TICK: Duration = Duration::from_millis(50);
/// How often something is sent where there are connections, so that an idle one notices, too.
const PING: Duration = Duration::from_secs(5);

/// Waits until the far side has been silent for `silence` though it should have answered.
pub(super) async fn suspicious(session: &Session, silence: Duration) {
    let association = session.association();
    let received =
        || -> u64 { association.paths().iter().map(|path| path.counters.packets_received).sum() };
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut last, mut quiet_since, mut pinged) = (received(), None, Instant::now());
    loop {
        let now = ticks.tick().await;
        let heard = received();
        let is_answered = association.unacked_bytes() == 0;
        if heard != last || is_answered {
            (last, quiet_since) = (heard, None);
            if is_answered && now - pinged >= PING && session.counters().open > 0 {
                pinged = now;
                session.ping().await;
            }
            continue;
        }
        if now - *quiet_since.get_or_insert(now) >= silence {
            return;
        }
    }
}
