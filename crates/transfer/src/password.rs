//! Both ends prove that they know the token, without showing it: for a receiver whose key the
//! sender does not know. SPAKE2, bound to the association's keys (`manypath_trust::password`).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use manypath::{AssocClosed, Association};
use manypath_trust::password::{Client, Password, PasswordError, Server};
use manypath_trust::{Attempt, Attempts};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::time::{Instant, timeout_at};

use manypath_files::frame::{ClientFrame, ServerFrame, reason};

use crate::messages::{Incoming, Messages, send_frame};

/// Why the proof of a receiver failed.
#[derive(Debug, thiserror::Error)]
pub enum NotProved {
    /// It has another token, or somebody is in between.
    #[error("the other end does not know this token, or somebody is in between")]
    Wrong,
    /// The association ended before this end had proved anything: asking again costs nothing.
    #[error("the association ended before the token was proved: {0}")]
    Closed(AssocClosed),
    /// This end has proved its token, and the other end has not. It counts as a wrong token,
    /// whatever reason the other end gives: an impostor that has checked one guess ends like this.
    /// Holds how the association ended, if it did; otherwise the other end said something else, or
    /// nothing.
    #[error("the other end did not prove that it knows the token")]
    Unproved(Option<AssocClosed>),
    /// It does not speak this protocol.
    #[error("the other end does not speak this version of the transfer protocol")]
    Protocol,
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    NoRandomness,
}

impl From<PasswordError> for NotProved {
    fn from(error: PasswordError) -> NotProved {
        match error {
            PasswordError::Wrong => NotProved::Wrong,
            PasswordError::NoRandomness => NotProved::NoRandomness,
            PasswordError::Malformed => NotProved::Protocol,
        }
    }
}

/// The sender's part: proves its token, and sees that the receiver has it, too. Takes `limit` at
/// most.
///
/// # Errors
/// It does not have it, or did not say so in time. Nothing may be sent then.
pub async fn prove(
    association: &Association,
    messages: &mut Messages,
    token: &Password,
    limit: Duration,
) -> Result<(), NotProved> {
    let until = Instant::now() + limit;
    let binding = association.binding().ok_or(NotProved::Protocol)?;
    let (client, share) = Client::start(token, &binding)?;
    let share = ClientFrame::Password(share);
    let asked = timeout_at(until, ask(association, messages, share)).await;
    let (proof, message) = client.answer(&asked.unwrap_or(Err(NotProved::Protocol))?)?;
    // From here on the other end may know whether its guess was right.
    let message = ClientFrame::Password(message);
    match timeout_at(until, ask(association, messages, message)).await {
        Ok(Ok(answer)) => proof.finish(&answer).map_err(|_| NotProved::Wrong),
        Ok(Err(NotProved::Closed(closed))) => Err(NotProved::Unproved(Some(closed))),
        Ok(Err(_)) | Err(_) => Err(NotProved::Unproved(None)),
    }
}

/// Sends a message, and hears the next one of the other end.
async fn ask(
    association: &Association,
    messages: &mut Messages,
    frame: ClientFrame,
) -> Result<[u8; 33], NotProved> {
    send_frame(association, frame.encode()).await.map_err(|e| match e {
        manypath::SendError::Closed(closed) => NotProved::Closed(closed),
        _ => NotProved::Protocol,
    })?;
    next(association, messages).await
}

async fn next(association: &Association, messages: &mut Messages) -> Result<[u8; 33], NotProved> {
    loop {
        let message = association.recv().await.map_err(NotProved::Closed)?;
        let message = message.ok_or(NotProved::Closed(AssocClosed::Shutdown))?;
        return match messages.take(message) {
            Ok(None) => continue,
            Ok(Some(Incoming::Frame(bytes))) => match ServerFrame::decode(&bytes) {
                Ok(ServerFrame::Password(message)) => Ok(message),
                _ => Err(NotProved::Protocol),
            },
            _ => Err(NotProved::Protocol),
        };
    }
}

/// A receiver's token, its code if it has one, and the limits on guesses at them.
#[derive(Clone, Debug)]
pub struct Secret {
    /// Shown by senders that know the receiver.
    token: Limited,
    /// Proved by others.
    proved: Limited,
}

/// A secret, and the limit on guesses at it.
#[derive(Clone, Debug)]
struct Limited {
    secret: Password,
    /// Of a secret that could be guessed, as it is short or a person chose it.
    attempts: Option<Arc<Mutex<Attempts>>>,
}

impl Secret {
    /// The token, `chosen` by a person or random.
    #[must_use]
    pub fn new(token: Password, chosen: bool) -> Secret {
        let token = Limited { secret: token, attempts: chosen.then(Arc::default) };
        Secret { proved: token.clone(), token }
    }

    /// Has senders that do not know the receiver prove this code, not the token.
    #[must_use]
    pub fn with_code(self, code: Password) -> Secret {
        let proved = Limited { secret: code, attempts: Some(Arc::default()) };
        Secret { proved, ..self }
    }
}

impl Limited {
    /// Admits an attempt from this peer. The error is the reason for which it is sent away.
    fn attempt(&self, association: &Association) -> Result<Try, String> {
        let (Some(attempts), Some(peer)) = (&self.attempts, association.peer()) else {
            return Ok(Try { attempts: None });
        };
        let now = Instant::now().into_std();
        let busy = || format!("{}: too many wrong tokens; wait a while", reason::BUSY);
        let attempt = attempts.lock().unwrap_or_else(PoisonError::into_inner).begin(peer.ip(), now);
        let attempt = attempt.map_err(|_| busy())?;
        Ok(Try { attempts: Some((attempts.clone(), attempt)) })
    }
}

impl Secret {
    /// Checks a token that the peer has shown. Waits after wrong guesses, if it can be guessed.
    ///
    /// # Errors
    /// It is another one. The error is the reason for which the peer is sent away.
    pub async fn check(&self, association: &Association, token: &[u8]) -> Result<(), String> {
        let attempt = self.token.attempt(association)?;
        // Digests compare in a time that says nothing about the token, nor about its length.
        let digest = |token: &[u8]| -> [u8; 32] { Sha256::digest(token).into() };
        let is_right = bool::from(digest(token).ct_eq(&digest(self.token.secret.as_bytes())));
        attempt.answer(is_right).await;
        if is_right { Ok(()) } else { Err(format!("{}: wrong token", reason::NOT_AUTHORISED)) }
    }

    /// The receiver's part: answers the sender's first message.
    ///
    /// # Errors
    /// It is none, or there were too many guesses. The error is the reason for which the sender is
    /// sent away.
    pub async fn begin(
        &self,
        association: &Association,
        share: &[u8; 33],
    ) -> Result<Check, String> {
        let binding = association
            .binding()
            .ok_or_else(|| format!("{}: passwords need encryption", reason::PROTOCOL))?;
        let attempt = self.proved.attempt(association)?;
        let secret = &self.proved.secret;
        let (server, answer) = Server::answer(secret, &binding, share).map_err(refusal)?;
        say(association, answer).await?;
        Ok(Check { server, attempt })
    }
}

/// A receiver's part that waits for the sender's proof.
#[derive(Debug)]
pub struct Check {
    server: Server,
    attempt: Try,
}

impl Check {
    /// Checks the sender's proof, and proves that this end has the token, too.
    ///
    /// # Errors
    /// The sender has another token. The error is the reason for which it is sent away.
    pub async fn end(self, association: &Association, proof: &[u8; 33]) -> Result<(), String> {
        let proved = self.server.finish(proof).map_err(refusal);
        self.attempt.answer(proved.is_ok()).await;
        say(association, proved?).await
    }
}

async fn say(association: &Association, message: [u8; 33]) -> Result<(), String> {
    let frame = ServerFrame::Password(message).encode();
    send_frame(association, frame).await.map_err(|_| "the sender is gone".to_owned())
}

fn refusal(error: PasswordError) -> String {
    match error {
        PasswordError::Wrong => format!("{}: wrong token", reason::NOT_AUTHORISED),
        other => format!("{}: {other}", reason::PROTOCOL),
    }
}

/// An attempt to show the token. It counts as wrong unless it is answered as right.
#[derive(Debug)]
struct Try {
    attempts: Option<(Arc<Mutex<Attempts>>, Attempt)>,
}

impl Try {
    /// Waits until the answer may be given, right or wrong.
    async fn answer(self, is_right: bool) {
        let Some((attempts, attempt)) = self.attempts else { return };
        tokio::time::sleep_until(attempt.answer_at.into()).await;
        if is_right {
            attempts.lock().unwrap_or_else(PoisonError::into_inner).right(attempt);
        }
    }
}
