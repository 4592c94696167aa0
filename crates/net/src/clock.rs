//! The engine's time on a real host.

use std::time::Instant as StdInstant;

use manypath_proto::Instant;

/// Monotonic time since the clock was made; the origin of the engine's [`Instant`]s.
#[derive(Copy, Clone, Debug)]
pub struct Clock {
    origin: StdInstant,
}

impl Clock {
    /// A clock that shows zero now.
    #[expect(clippy::disallowed_methods, reason = "this is where real time enters")]
    pub fn start() -> Clock {
        Clock { origin: StdInstant::now() }
    }

    /// The time now.
    pub fn now(&self) -> Instant {
        Instant::ZERO + self.origin.elapsed()
    }

    /// The same point in time for timers of the operating system; a time too far away for it
    /// becomes a day from the origin, when the caller will look again.
    pub fn to_std(&self, at: Instant) -> StdInstant {
        const DAY: std::time::Duration = std::time::Duration::from_secs(86_400);
        let since_origin = at - Instant::ZERO;
        self.origin.checked_add(since_origin).unwrap_or(self.origin + DAY)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn converts_back_and_survives_the_far_future() {
        let clock = Clock::start();
        let later = clock.now() + Duration::from_secs(5);
        assert_eq!(clock.to_std(later) - clock.to_std(Instant::ZERO), later - Instant::ZERO);
        assert!(clock.to_std(Instant::from_nanos(u64::MAX)) > clock.to_std(later));
        assert!(clock.now() < later);
    }
}
