//! How an association ends: by agreement, by an ABORT of this end, and what one of the peer means.

use std::time::Duration;

use manypath::{AssocClosed, Association};
use manypath_files::frame::{Outcome, reason};
use manypath_files::relative::printable;

use crate::stop::Stop;

/// Longest wait for the end of an association once everything is acknowledged.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(3);
/// The time that an ABORT gets to leave.
const ABORT_TIME: Duration = Duration::from_millis(20);

/// Ends an association after all was said, without waiting for a peer that is gone.
pub async fn finish(association: &Association) {
    // Either way the work is done; only the good-bye may be missing.
    let _ = tokio::time::timeout(CLOSE_TIME_MAX, association.shutdown()).await;
}

/// Waits until the peer has everything that was said and ends the association, or is found to be
/// gone; or until `stop` is asked again.
///
/// The last words may leave on a path that has died meanwhile; they are sent again on another when
/// its timer expires, after seconds or a minute. Only then does it count how long a peer takes to
/// say good-bye.
pub async fn let_peer_finish(association: &Association, stop: &Stop) {
    let finishing = async {
        if association.acknowledged().await.is_ok() {
            let _ = tokio::time::timeout(CLOSE_TIME_MAX, association.closed()).await;
        }
    };
    tokio::select! {
        () = finishing => {}
        () = stop.stopped_again() => {}
    }
}

/// Breaks an association off, and lets the ABORT leave, which takes 20 ms.
pub async fn abort(association: &Association, reason: &str) {
    association.abort(reason.as_bytes());
    tokio::time::sleep(ABORT_TIME).await;
}

/// The reason for which a peer of the transfer protocol has aborted an association.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PeerReason {
    /// The token is wrong.
    NotAuthorised,
    /// It serves as many peers as it will.
    Busy,
    /// It does not accept this transfer.
    Refused {
        /// [`TooLarge`](Outcome::TooLarge) or [`DiskFull`](Outcome::DiskFull), if it is that.
        outcome: Option<Outcome>,
        /// The reason for people, without control characters.
        why: String,
    },
    /// The peer was stopped by its user.
    Interrupted,
    /// It waited for progress in vain.
    Stalled,
    /// No direct path works, and it or this end lets no relay carry content.
    NoDirectPath,
    /// This end did something that it does not know.
    Protocol,
}

impl PeerReason {
    /// The reason that the end of an association tells, if it is one of this protocol.
    #[must_use]
    pub fn of(closed: &AssocClosed) -> Option<PeerReason> {
        let AssocClosed::PeerAborted { reason: text, .. } = closed else { return None };
        let text = String::from_utf8_lossy(text);
        if let Some(why) = text.strip_prefix(reason::REFUSED) {
            return Some(PeerReason::refused(&printable(why.trim_start_matches(':').trim())));
        }
        let known = [
            (reason::NOT_AUTHORISED, PeerReason::NotAuthorised),
            (reason::BUSY, PeerReason::Busy),
            (reason::INTERRUPTED, PeerReason::Interrupted),
            (reason::STALLED, PeerReason::Stalled),
            (reason::NO_DIRECT_PATH, PeerReason::NoDirectPath),
            (reason::PROTOCOL, PeerReason::Protocol),
        ];
        known.into_iter().find(|(begins, _)| text.starts_with(begins)).map(|(_, reason)| reason)
    }

    fn refused(why: &str) -> PeerReason {
        for outcome in [Outcome::TooLarge, Outcome::DiskFull] {
            if let Some(rest) = why.strip_prefix(outcome.name()) {
                let why = rest.trim_start_matches(':').trim().to_owned();
                return PeerReason::Refused { outcome: Some(outcome), why };
            }
        }
        PeerReason::Refused { outcome: None, why: why.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason_of(text: &str) -> Option<PeerReason> {
        PeerReason::of(&AssocClosed::PeerAborted { cause: 12, reason: text.as_bytes().to_vec() })
    }

    #[test]
    fn the_first_words_of_a_reason_count() {
        for (text, reason) in [
            ("not authorised: wrong token", Some(PeerReason::NotAuthorised)),
            ("busy: too many", Some(PeerReason::Busy)),
            ("interrupted", Some(PeerReason::Interrupted)),
            ("stalled", Some(PeerReason::Stalled)),
            ("no direct path", Some(PeerReason::NoDirectPath)),
            ("protocol error: no hello", Some(PeerReason::Protocol)),
            ("the receiver failed", None),
            ("", None),
        ] {
            assert_eq!(reason_of(text), reason, "{text}");
        }
        assert_eq!(PeerReason::of(&AssocClosed::PathsFailed), None);
    }

    #[test]
    fn a_refusal_says_why() {
        let refused =
            |outcome, why: &str| Some(PeerReason::Refused { outcome, why: why.to_owned() });
        let too_large = reason_of("refused: too_large: 10 bytes; at most 9");
        assert_eq!(too_large, refused(Some(Outcome::TooLarge), "10 bytes; at most 9"));
        let full = reason_of("refused: disk_full: 10 bytes");
        assert_eq!(full, refused(Some(Outcome::DiskFull), "10 bytes"));
        assert_eq!(reason_of("refused: one\u{7} file"), refused(None, "one\\u{7} file"));
    }
}
