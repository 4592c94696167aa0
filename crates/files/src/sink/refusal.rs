//! Reasons why an entry is not stored, as the sender gets them.

use std::io;
use std::path::Path;

use crate::frame::Outcome;

/// The outcome of an entry that is not stored, and its explanation.
pub(super) type Refusal = (Outcome, String);

/// The refusal of a file that its sender gave up.
pub(super) fn abandoned() -> Refusal {
    (Outcome::Abandoned, "the sender could not send all of it".to_owned())
}

/// The refusal after an error of creating or naming.
pub(super) fn create_refusal(error: &io::Error) -> Refusal {
    if disk_full(error) {
        (Outcome::DiskFull, format!("the receiver's disk is full: {error}"))
    } else {
        (Outcome::CannotCreate, format!("the receiver cannot create it: {error}"))
    }
}

/// The refusal after an error of looking for `place` or giving it its name. File systems have rules
/// of their own for names, such as exFAT, which takes no colon; then its own words are told.
pub(super) fn name_refusal(error: &io::Error, place: &Path) -> Refusal {
    if !is_bad_name(error) {
        return create_refusal(error);
    }
    let name = place.file_name().unwrap_or(place.as_os_str());
    let text = format!("the receiver's file system refuses the name {name:?}: {error}");
    (Outcome::NameRefused, text)
}

/// The refusal after an error of writing.
pub(super) fn write_refusal(error: &io::Error) -> Refusal {
    if disk_full(error) {
        (Outcome::DiskFull, format!("the receiver's disk is full: {error}"))
    } else {
        (Outcome::WriteFailed, format!("the receiver cannot write it: {error}"))
    }
}

/// The errors that systems have for a name: EINVAL, ENAMETOOLONG, EILSEQ.
fn is_bad_name(error: &io::Error) -> bool {
    #[cfg(unix)]
    if error.raw_os_error() == Some(rustix::io::Errno::ILSEQ.raw_os_error()) {
        return true;
    }
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidFilename)
}

fn disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
