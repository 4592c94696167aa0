//! The option that limits the time without progress.

use std::time::Duration;

use crate::failure::Result;
use crate::settings;
pub(crate) use manypath_transfer::stall::stalled;

/// The value of `--stall-timeout`; `None` for "off".
pub(crate) fn limit(text: &str) -> Result<Option<Duration>> {
    match text {
        "off" => Ok(None),
        text => settings::duration("--stall-timeout", text)
            .map(|limit| Some(limit.max(Duration::from_millis(20)))),
    }
}

/// The time as a person reads it.
pub(crate) fn shown(limit: Option<Duration>) -> String {
    crate::screen::figures::time(limit.unwrap_or_default().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn off_is_no_limit() {
        assert_eq!(limit("off").unwrap(), None);
        assert_eq!(limit("90 s").unwrap(), Some(Duration::from_secs(90)));
        assert_eq!(limit("soon").unwrap_err().exit, crate::failure::Exit::Usage);
    }
}
