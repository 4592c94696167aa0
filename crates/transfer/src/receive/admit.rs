//! Who may send: the hello of a sender, and the token that it shows or proves.

use std::fmt;
use std::time::Duration;

use manypath::{Association, PeerIdentity, SendError};
use manypath_files::frame::{ClientFrame, Hello, ServerFrame, VERSION, reason};

use super::intake::next;
use super::{Incoming, ReceiveError, Receiver};
use crate::ending::abort;
use crate::messages::{Incoming as Heard, Messages, send_frame};
use crate::tally::Tally;
use crate::target::Target;

/// How long a sender may take to show its token. Longer than `key_timeout`, 15 s: a peer that has
/// other keys cannot read a refusal, and is to learn the real reason.
pub const HELLO_TIME_MAX: Duration = Duration::from_secs(20);

/// The reason for which a peer was sent away, as it was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected(String);

impl Rejected {
    /// It showed a wrong token.
    #[must_use]
    pub fn is_wrong_token(&self) -> bool {
        self.0.starts_with(reason::NOT_AUTHORISED)
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Rejected {}

/// True if the peer has shown a certificate from an authority of this end.
#[must_use]
pub fn has_certificate(association: &Association) -> bool {
    matches!(association.identity(), Some(PeerIdentity::Certificate(_)))
}

impl<T: Target> Receiver<T> {
    /// Hears the hello of whoever opened `association`. A peer without the token is sent away, and
    /// so is one with more than the target takes.
    ///
    /// # Errors
    /// The peer was sent away, or has left.
    pub async fn admit(&self, association: Association) -> Result<Incoming<T>, Rejected> {
        let gone = || Rejected("the association is over".to_owned());
        let (peer, mut messages) = (association.peer().ok_or_else(gone)?, Messages::default());
        let refused = match self.hear_hello(&association, &mut messages).await {
            Ok(hello) if hello.version != VERSION => {
                format!("{}: this side uses version {VERSION}", reason::PROTOCOL)
            }
            Ok(hello) => match self.target.refuses(&hello) {
                Some(why) => format!("{}: {why}", reason::REFUSED),
                None => {
                    return Ok(Incoming {
                        target: self.target.clone(),
                        association,
                        peer,
                        messages,
                        hello,
                        received: Tally::default(),
                        place: None,
                    });
                }
            },
            Err(ReceiveError::Closed(closed)) => return Err(Rejected(closed.to_string())),
            Err(ReceiveError::Refused(why)) => why,
            Err(broken) => broken.reason(),
        };
        abort(&association, &refused).await;
        Err(Rejected(refused))
    }

    /// The hello of a sender that has the right token: it shows it there, or has proved it before.
    async fn hear_hello(
        &self,
        association: &Association,
        messages: &mut Messages,
    ) -> Result<Hello, ReceiveError> {
        let no_hello = || ReceiveError::Refused(format!("{}: no hello", reason::PROTOCOL));
        match (next_in_time(association, messages).await?, &self.secret) {
            (ClientFrame::Password(share), Some(secret)) => {
                let check = secret.begin(association, &share).await;
                let check = check.map_err(ReceiveError::Refused)?;
                let ClientFrame::Password(proof) = next_in_time(association, messages).await?
                else {
                    return Err(no_hello());
                };
                check.end(association, &proof).await.map_err(ReceiveError::Refused)?;
                match next_in_time(association, messages).await? {
                    ClientFrame::Hello(hello) => Ok(hello),
                    _ => Err(no_hello()),
                }
            }
            (ClientFrame::Hello(hello), None) => Ok(hello),
            (ClientFrame::Hello(hello), Some(_)) if has_certificate(association) => Ok(hello),
            (ClientFrame::Hello(hello), Some(secret)) => {
                let checked = secret.check(association, &hello.token).await;
                checked.map(|()| hello).map_err(ReceiveError::Refused)
            }
            _ => Err(no_hello()),
        }
    }
}

impl<T: Target> Incoming<T> {
    /// Tells the sender to begin, and what it may send, if it asks for that.
    ///
    /// # Errors
    /// The sender has left.
    pub async fn welcome(&self) -> Result<(), SendError> {
        let accepts = self.hello.reads_accepts.then(|| self.target.accepts());
        send_frame(&self.association, ServerFrame::Welcome(accepts).encode()).await
    }
}

/// The next frame of a peer that has not shown its token, if it comes soon.
async fn next_in_time(
    association: &Association,
    messages: &mut Messages,
) -> Result<ClientFrame, ReceiveError> {
    let frame = tokio::time::timeout(HELLO_TIME_MAX, next_frame(association, messages));
    let late = |_| ReceiveError::Refused(format!("{}: no hello in time", reason::PROTOCOL));
    frame.await.map_err(late)?
}

/// The next frame, where no content may come.
async fn next_frame(
    association: &Association,
    messages: &mut Messages,
) -> Result<ClientFrame, ReceiveError> {
    match next(association, messages).await? {
        Heard::Frame(bytes) => ClientFrame::decode(&bytes).map_err(ReceiveError::Frame),
        Heard::Content(_) => Err(ReceiveError::Order("content before a file")),
    }
}

#[cfg(test)]
mod tests {
    use manypath::Config;

    use super::*;

    #[test]
    fn ends_with_different_keys_find_that_out_before_a_hello_is_late() {
        assert!(HELLO_TIME_MAX > Config::default().key_timeout);
    }
}
