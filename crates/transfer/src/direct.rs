//! Content that takes direct paths alone.

use std::time::Duration;

use manypath::{Association, DirectPathError};
use manypath_files::frame::reason;

use crate::ending::abort;

/// How long content that may take direct paths alone waits for one.
pub const DIRECT_PATH_TIME_MAX: Duration = Duration::from_secs(10);

/// Waits until content may be sent, which is at once unless an end wants relays [to meet
/// only](manypath::RelayUse::ToMeet). If no direct path works within [`DIRECT_PATH_TIME_MAX`],
/// breaks the association off and tells the peer why.
///
/// # Errors
/// No direct path works in time, or the association is over.
pub async fn direct_path(association: &Association) -> Result<(), DirectPathError> {
    let found = association.direct_path(DIRECT_PATH_TIME_MAX).await;
    if let Err(DirectPathError::NotFound(_)) = &found {
        abort(association, reason::NO_DIRECT_PATH).await;
    }
    found
}
