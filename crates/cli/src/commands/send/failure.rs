//! Errors of a transfer as failures of the command: the words, the hint, and the exit code.

use manypath::AssocClosed;
use manypath_transfer::password::NotProved;
use manypath_transfer::{OfferError, PeerReason, PlanError, SendError, Unsent};

use super::receiver::Receiver;
use crate::connect::secret::asks_for_no_token;
use crate::connect::transport::{
    closed_failure, no_direct_path, opening_failure, resumable, send_failure,
};
use crate::failure::Failure;
use crate::screen::figures;
use crate::screen::report::remedy;

/// The command at the other end.
const SERVER: &str = "manypath recv";

/// The failure when there is nothing to send, or not as the user wants it.
pub(super) fn no_plan(error: PlanError) -> Failure {
    match error {
        PlanError::NameForSeveral => {
            Failure::usage("--as names a single FILE, and there are several")
                .hint("send them one after the other")
        }
        PlanError::InputTwice => Failure::usage("standard input (-) can be sent only once"),
        PlanError::SameName { .. } => Failure::usage(error.to_string())
            .hint("send them one after the other, into different directories"),
        PlanError::Nothing { first, more } => nothing(&first, more),
        other => Failure::failed(other.to_string()),
    }
}

/// The failure of a command that has nothing else to send.
fn nothing(first: &Unsent, more: usize) -> Failure {
    let others = match more {
        0 => String::new(),
        1 => "; another entry cannot be sent either".to_owned(),
        more => format!("; {more} more cannot be sent either"),
    };
    let remedy = remedy(first).map_or(String::new(), |hint| format!("{hint}; "));
    Failure::failed(first.to_string() + &others).hint(remedy + "nothing was sent")
}

impl Receiver {
    /// The failure when the transfer did not begin.
    pub(super) fn not_offered(&self, error: OfferError) -> Failure {
        let peer = &self.name;
        match error {
            OfferError::Opening(error) => opening_failure(error, &self.remotes),
            OfferError::Ended(closed) => self.sent_away(&closed),
            OfferError::NotProved(why) => self.not_proved(&why),
            OfferError::AsksForNoToken => asks_for_no_token(peer),
            OfferError::Silent => {
                Failure::failed(format!("{peer} does not answer the transfer protocol"))
                    .hint("check that `manypath recv` listens there")
            }
            OfferError::Protocol => protocol_error(peer),
            OfferError::NoDirectPath(error) => no_direct_path(&error, peer),
            OfferError::UnknownSize => Failure::failed(format!(
                "{peer} takes no standard input or other files of unknown size: its version is older; \
                 nothing was sent"
            ))
            .hint("install this version there, or write a file and send that"),
            OfferError::Send(error) => send_failure(&error, peer),
            other => Failure::failed(other.to_string()),
        }
    }

    /// The failure when the receiver has not proved that it has the token.
    fn not_proved(&self, why: &NotProved) -> Failure {
        match why {
            NotProved::Closed(closed) => self.sent_away(closed),
            NotProved::Unproved(closed) => {
                self.secret.unproved(SERVER, &self.name, closed.as_ref())
            }
            NotProved::Wrong => self.secret.not_proved(SERVER, &self.name),
            NotProved::Protocol => protocol_error(&self.name),
            NotProved::NoRandomness => Failure::failed(why.to_string()),
        }
    }

    /// The failure when the receiver has ended the association.
    fn sent_away(&self, closed: &AssocClosed) -> Failure {
        match PeerReason::of(closed) {
            Some(PeerReason::NotAuthorised) => self.secret.wrong(SERVER, &self.name),
            _ => refusal(closed, &self.name),
        }
    }
}

/// The failure when a transfer was broken off.
pub(super) fn broken_off(error: SendError, peer: &str, go_on: &str) -> Failure {
    match error {
        SendError::Closed(closed) => resumable(&closed, refusal(&closed, peer), go_on),
        SendError::Send(error) => send_failure(&error, peer),
        SendError::Protocol => protocol_error(peer),
        SendError::Stalled(limit) => Failure::interrupted(format!(
            "no progress for {}: {peer} answers, but accepts no more data",
            figures::time(limit.as_secs_f64())
        ))
        .hint("check the receiver and its disk; --stall-timeout changes this limit"),
        SendError::Stopped => Failure::interrupted("interrupted").hint(go_on),
        other => Failure::failed(other.to_string()),
    }
}

fn protocol_error(peer: &str) -> Failure {
    Failure::failed(format!("{peer} does not speak this version of the transfer protocol"))
        .hint("use the same version of manypath on both sides, and `manypath recv` on the other")
}

/// The failure that the receiver's ABORT means, but for a wrong secret.
fn refusal(closed: &AssocClosed, peer: &str) -> Failure {
    match PeerReason::of(closed) {
        Some(PeerReason::Busy) => {
            Failure::failed(format!("{peer} is busy with other transfers")).hint("try again later")
        }
        Some(PeerReason::Refused { outcome, why }) => {
            let failure =
                Failure::failed(format!("{peer} refuses the transfer: {why}; nothing was sent"));
            match outcome.and_then(|outcome| outcome.hint()) {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        }
        Some(PeerReason::Stalled) => {
            Failure::failed(format!("{peer} gave up: the transfer made no progress"))
        }
        Some(PeerReason::Interrupted) => {
            Failure::failed(format!("the receiver at {peer} was stopped"))
        }
        _ => closed_failure(closed, peer),
    }
}
