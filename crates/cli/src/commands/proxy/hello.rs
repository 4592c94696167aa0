//! How the two ends of a proxy get to know each other: the token, shown or proved, as in transfers.

use std::cell::Cell;

use bytes::Bytes;
use manypath::{AssocClosed, Association, SendOptions, StreamId};
use manypath_files::frame::{ClientFrame, PPID_CONTROL, reason};
use manypath_proxy::frame::{CONTROL, Frame, PPID_FRAME, VERSION};
use manypath_transfer::messages::{Incoming, Messages};
use manypath_transfer::password::{NotProved, Secret, prove};
use manypath_transfer::{HELLO_TIME_MAX, WELCOME_TIME_MAX, has_certificate};
use manypath_trust::Token;
use manypath_trust::password::Password;
use tokio::time::timeout;

use crate::connect::secret::SecretKind;
use crate::connect::transport::{self, Answer, closed_failure};
use crate::failure::Failure;

/// The command of the side that accepts.
const SERVER: &str = "manypath proxy listen";

/// The far side as the side that connects knows it.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    /// Its addresses, in words.
    pub(super) name: String,
    /// The kind of secret that it is shown.
    pub(super) secret: SecretKind,
}

fn options() -> SendOptions {
    SendOptions {
        stream: StreamId(CONTROL),
        ppid: PPID_FRAME,
        unordered: false,
        ..SendOptions::default()
    }
}

// ---- The side that connects ----

/// The first message of a client that shows its token; empty if it has none to show.
pub(super) fn first(token: Token) -> (SendOptions, Bytes) {
    (options(), Frame::Hello { version: VERSION, token }.encode())
}

/// Proves the token to a far side that must prove it, too; then says hello. `is_pinned`: its key is
/// that of one that has proved it before.
pub(super) async fn prove_token(
    association: &Association,
    token: &Password,
    peer: &Peer,
    is_pinned: bool,
    instance: &Cell<u64>,
) -> Answer {
    let mut messages = Messages::default();
    let failure = match prove(association, &mut messages, token, WELCOME_TIME_MAX).await {
        Ok(()) => {
            let (options, hello) = first(Token::default());
            return match association.send(options, hello).await {
                Ok(()) => hear_welcome(association, peer, instance).await,
                Err(error) => Answer::Failed(transport::send_failure(&error, &peer.name)),
            };
        }
        Err(NotProved::Closed(closed)) => return ended(closed, peer),
        // It knows the token already, so it was the network, or it has no room.
        Err(NotProved::Unproved(Some(closed))) if is_pinned => return ended(closed, peer),
        Err(NotProved::Unproved(None)) if is_pinned => protocol_error(&peer.name),
        Err(NotProved::Unproved(closed)) => {
            peer.secret.unproved(SERVER, &peer.name, closed.as_ref())
        }
        Err(NotProved::Wrong) => peer.secret.not_proved(SERVER, &peer.name),
        Err(NotProved::Protocol) => protocol_error(&peer.name),
        Err(NotProved::NoRandomness) => Failure::failed("the system gives no random numbers"),
    };
    transport::abort(association, reason::NOT_AUTHORISED).await;
    Answer::Failed(failure)
}

/// Hears what the far side says to our hello, and which run of the program it is.
pub(super) async fn hear_welcome(
    association: &Association,
    peer: &Peer,
    instance: &Cell<u64>,
) -> Answer {
    let heard = timeout(WELCOME_TIME_MAX, association.recv()).await;
    let message = match heard {
        Ok(Ok(Some(message))) => message,
        Ok(Ok(None)) => return ended(AssocClosed::Shutdown, peer),
        Ok(Err(closed)) => return ended(closed, peer),
        Err(_) => return Answer::Failed(silent(&peer.name)),
    };
    let is_frame = message.ppid == PPID_FRAME && message.stream.0 == CONTROL;
    match Frame::decode(&message.payload.to_vec()) {
        Ok(Frame::Welcome { instance: heard }) if is_frame => {
            instance.set(heard);
            Answer::Welcome
        }
        _ => {
            transport::abort(association, reason::PROTOCOL).await;
            Answer::Failed(protocol_error(&peer.name))
        }
    }
}

/// The failure when the far side's host answers, but no program.
fn silent(peer: &str) -> Failure {
    Failure::failed(format!("{peer} does not answer the proxy protocol"))
        .hint("check that `manypath proxy listen` runs there")
}

fn protocol_error(peer: &str) -> Failure {
    Failure::failed(format!("{peer} does not speak this version of the proxy protocol"))
        .hint("use the same version of manypath on both sides, and `manypath proxy listen` there")
}

fn ended(closed: AssocClosed, peer: &Peer) -> Answer {
    let text = match &closed {
        AssocClosed::PeerAborted { reason, .. } => String::from_utf8_lossy(reason).into_owned(),
        _ => String::new(),
    };
    let failure = if text.starts_with(reason::NOT_AUTHORISED) {
        peer.secret.wrong(SERVER, &peer.name)
    } else if text.starts_with(reason::PROTOCOL) {
        protocol_error(&peer.name)
    } else {
        closed_failure(&closed, &peer.name)
    };
    Answer::Ended(closed, failure)
}

// ---- The side that accepts ----

/// Hears the hello of whoever opened `association`. The error is the reason for which it is sent
/// away.
pub(super) async fn admit(association: &Association, secret: &Secret) -> Result<(), String> {
    let hearing = hear_hello(association, secret);
    let late = |_| format!("{}: no hello in time", reason::PROTOCOL);
    // A person's token takes longer after wrong ones, which is no fault of the client.
    timeout(HELLO_TIME_MAX + WELCOME_TIME_MAX, hearing).await.map_err(late)?
}

/// Tells the client to begin.
pub(super) async fn welcome(association: &Association, instance: u64) -> bool {
    association.send(options(), Frame::Welcome { instance }.encode()).await.is_ok()
}

async fn hear_hello(association: &Association, secret: &Secret) -> Result<(), String> {
    let no_hello = || format!("{}: no hello of a proxy", reason::PROTOCOL);
    let mut messages = Messages::default();
    let mut is_known = has_certificate(association);
    let mut first = next(association, &mut messages).await?;
    if let Heard::Password(share) = first {
        let check = secret.begin(association, &share).await?;
        let Heard::Password(proof) = next(association, &mut messages).await? else {
            return Err(no_hello());
        };
        check.end(association, &proof).await?;
        is_known = true;
        first = next(association, &mut messages).await?;
    }
    let Heard::Hello { version, token } = first else { return Err(no_hello()) };
    if version != VERSION {
        return Err(format!("{}: this side uses version {VERSION}", reason::PROTOCOL));
    }
    if is_known { Ok(()) } else { secret.check(association, &token).await }
}

enum Heard {
    Password([u8; 33]),
    Hello { version: u8, token: Token },
    Other,
}

async fn next(association: &Association, messages: &mut Messages) -> Result<Heard, String> {
    let hearing = async {
        loop {
            let message = association.recv().await.map_err(|closed| closed.to_string())?;
            let message = message.ok_or("the client has left")?;
            if message.ppid == PPID_CONTROL {
                match messages.take(message) {
                    Ok(None) => continue,
                    Ok(Some(Incoming::Frame(bytes))) => match ClientFrame::decode(&bytes) {
                        Ok(ClientFrame::Password(message)) => return Ok(Heard::Password(message)),
                        _ => return Ok(Heard::Other),
                    },
                    _ => return Ok(Heard::Other),
                }
            }
            let is_frame = message.ppid == PPID_FRAME && message.stream.0 == CONTROL;
            return Ok(match Frame::decode(&message.payload.to_vec()) {
                Ok(Frame::Hello { version, token }) if is_frame => Heard::Hello { version, token },
                _ => Heard::Other,
            });
        }
    };
    let late = |_| format!("{}: no hello in time", reason::PROTOCOL);
    timeout(HELLO_TIME_MAX, hearing).await.map_err(late)?
}
