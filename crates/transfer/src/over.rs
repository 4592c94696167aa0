//! Transfers over an association that a program has.

use std::path::{Path, PathBuf};

use manypath::{Association, DirectPathError};
use manypath_trust::Token;

use crate::direct::direct_path;
use crate::event::Event;
use crate::inbox::directory_for;
use crate::options::Options;
use crate::plan::Plan;
use crate::receive::{ReceiveError, Received, Receiver};
use crate::send::{Offer, SendError, Sent, Showing};

/// Sends files and directories to the program at the other end of an association, which calls
/// [`receive`]. The association is for the transfer alone, and ends with it.
///
/// The two ends have no token: whoever opens and accepts associations must know who the other end
/// is, by its key or by a shared secret.
///
/// # Errors
/// It was not completed, or not every entry was stored. What was stored stays, and the same call
/// over another association sends the rest.
pub async fn send<P: Into<PathBuf>>(
    association: Association,
    paths: impl IntoIterator<Item = P>,
    options: &Options,
    events: impl FnMut(Event<'_>) + Send,
) -> Result<Sent, SendError> {
    let plan = plan_of(paths).await?;
    let offer = Offer::new(plan, Showing::Open(Token::default()));
    let sending = tokio::select! {
        sending = offer.over(association) => sending?,
        () = options.stop.stopped() => return Err(SendError::Stopped),
    };
    complete(sending.run(options, events).await?)
}

/// Receives files and directories into `directory`, which is made if it is missing, from the
/// program at the other end of an association, which calls [`send`]. Nothing is replaced. The
/// association is for the transfer alone, and ends with it.
///
/// # Errors
/// It did not go to its end, or not every entry was stored.
pub async fn receive(
    association: Association,
    directory: &Path,
    options: &Options,
    events: impl FnMut(Event<'_>) + Send,
) -> Result<Received, ReceiveError> {
    let target = directory_for(directory, None, false).await;
    let target = target.map_err(|e| ReceiveError::Directory(e.to_string()))?;
    let receiver = Receiver { secret: None, target };
    let admitted = tokio::select! {
        admitted = receiver.admit(association.clone()) => admitted,
        () = options.stop.stopped() => return Err(ReceiveError::Stopped),
    };
    let incoming = admitted.map_err(|rejected| ReceiveError::Refused(rejected.to_string()))?;
    association.admit();
    let found = tokio::select! {
        found = direct_path(&association) => found,
        () = options.stop.stopped() => return Err(ReceiveError::Stopped),
    };
    found.map_err(|error| match error {
        DirectPathError::Closed(closed) => ReceiveError::Closed(closed),
        error => ReceiveError::Refused(error.to_string()),
    })?;
    let gone = |_| ReceiveError::Closed(manypath::AssocClosed::Shutdown);
    incoming.welcome().await.map_err(gone)?;
    incoming.receive(options, events).await.complete()
}

/// Looks at everything under `paths`, on a thread that may block.
pub(crate) async fn plan_of<P: Into<PathBuf>>(
    paths: impl IntoIterator<Item = P>,
) -> Result<Plan, SendError> {
    let sources: Vec<_> = paths.into_iter().map(|path| path.into().into()).collect();
    let planned = tokio::task::spawn_blocking(move || Plan::new(&sources, None)).await;
    // It panics only by a mistake in this crate.
    let planned = planned.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
    Ok(planned?)
}

/// A transfer that went to its end; an error if not every entry was stored.
pub(crate) fn complete(sent: Sent) -> Result<Sent, SendError> {
    match sent.files.failed {
        0 => Ok(sent),
        _ => Err(SendError::NotStored(Box::new(sent))),
    }
}

impl Received {
    /// The result, if the transfer went to its end and every entry was stored.
    ///
    /// # Errors
    /// The reason, if not.
    pub fn complete(self) -> Result<Received, ReceiveError> {
        match (&self.end, self.files.failed) {
            (Ok(()), 0) => Ok(self),
            (Ok(()), _) => Err(ReceiveError::NotStored(self.files)),
            (Err(error), _) => Err(error.clone()),
        }
    }
}
