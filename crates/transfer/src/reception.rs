//! A receiver among strangers: who may send, and how many at a time.

use std::net::SocketAddr;
use std::sync::Arc;

use manypath::{Association, DirectPathError};
use manypath_files::frame::reason;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::direct::direct_path;
use crate::ending::abort;
use crate::guesses::{Guesses, TOO_MANY_GUESSES};
use crate::receive::{Incoming, Receiver, Rejected};
use crate::stop::Stop;
use crate::target::Target;

/// A receiver among strangers: it limits guesses at its token for each address, and transfers at a
/// time.
#[derive(Debug)]
pub struct Reception<T> {
    receiver: Receiver<T>,
    places: Arc<Semaphore>,
    guesses: Guesses,
}

/// A place among the transfers at a time, taken while this or a clone of it is kept.
#[derive(Clone, Debug)]
pub struct Place(#[expect(dead_code, reason = "it is given back")] Arc<OwnedSemaphorePermit>);

/// Why a peer that opened an association sends nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TurnedAway {
    /// It was sent away, as it has no right to send, or offers too much.
    Rejected(SocketAddr, Rejected),
    /// Too many wrong tokens came from its address, so it was not heard.
    TooManyGuesses(SocketAddr),
    /// It may send, but others do already.
    Busy(SocketAddr),
    /// It may send, but no direct path to it works in time, and one end lets no relay carry
    /// content.
    NoDirectPath(SocketAddr),
    /// It has left.
    Gone,
    /// This end was asked to stop while it was heard.
    Stopped,
}

impl<T: Target> Reception<T> {
    /// Lets senders that `receiver` admits transfer, at most `transfers_max` at a time.
    #[must_use]
    pub fn new(receiver: Receiver<T>, transfers_max: usize) -> Reception<T> {
        let places = Arc::new(Semaphore::new(transfers_max));
        Reception { receiver, places, guesses: Guesses::default() }
    }

    /// Hears a peer out that has opened an association, and welcomes it. Admits it at the endpoint,
    /// too.
    ///
    /// # Errors
    /// It sends nothing; it was told why.
    pub async fn meet(
        &self,
        association: Association,
        stop: &Stop,
    ) -> Result<Incoming<T>, TurnedAway> {
        let peer = association.peer().ok_or(TurnedAway::Gone)?;
        if !self.guesses.may(peer.ip(), Instant::now()) {
            abort(&association, TOO_MANY_GUESSES).await;
            return Err(TurnedAway::TooManyGuesses(peer));
        }
        let admitted = tokio::select! {
            admitted = self.receiver.admit(association.clone()) => admitted,
            () = stop.stopped() => return Err(TurnedAway::Stopped),
        };
        let incoming = admitted.map_err(|rejected| {
            if rejected.is_wrong_token() {
                self.guesses.wrong(peer.ip(), Instant::now());
            }
            TurnedAway::Rejected(peer, rejected)
        })?;
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            abort(&association, reason::BUSY).await;
            return Err(TurnedAway::Busy(peer));
        };
        association.admit();
        tokio::select! {
            found = direct_path(&association) => found.map_err(|error| match error {
                DirectPathError::NotFound(_) => TurnedAway::NoDirectPath(peer),
                _ => TurnedAway::Gone,
            })?,
            () = stop.stopped() => return Err(TurnedAway::Stopped),
        }
        // Before the first content, so that its arrival can be measured from here.
        incoming.welcome().await.map_err(|_| TurnedAway::Gone)?;
        Ok(incoming.at(Place(Arc::new(place))))
    }
}
