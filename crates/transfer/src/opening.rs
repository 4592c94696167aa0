//! Opening an association with a peer that may be busy.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use manypath::config::Config;
use manypath::{
    AssocClosed, Association, ConnectError, ConnectTarget, Endpoint, SendOptions, sizes,
};
use tokio::time::Instant;

/// Time between two questions to a peer that is busy, at first and at most; it doubles with each
/// answer.
const BUSY_PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(2));
/// The cause of the engine's ABORT when it has as many associations as it may (RFC 9260 §3.3.10.4).
const OUT_OF_RESOURCE: u16 = 4;
/// DATA chunks that a message of bulk content fills.
pub const CHUNKS_PER_MESSAGE: usize = 32;

/// Why no association was opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpeningError {
    /// Nobody answers at any of the addresses.
    #[error("no answer; check that the other end runs, its address, and any firewall between")]
    NoAnswer,
    /// The peer was busy until the end of the time.
    #[error("the other end is busy; try again later")]
    Busy,
    /// Another reason.
    #[error(transparent)]
    Failed(ConnectError),
}

/// The answer to the question if it is worth asking a peer again that has ended an association.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Again {
    /// It was busy, and the pause is over.
    Yes,
    /// It did not end it because it was busy.
    No,
    /// It was busy, and no time is left.
    TooLate,
}

/// Opens associations with a peer, one after the other while it is busy.
#[derive(Debug)]
pub struct Opening<'a> {
    endpoint: &'a Endpoint,
    target: ConnectTarget,
    hello: Option<(SendOptions, Bytes)>,
    until: Instant,
    /// Before the next question.
    pause: Duration,
}

impl<'a> Opening<'a> {
    /// Asks a peer for the time `limit` at most. `hello` is a first message that need not wait for
    /// the association, of each of them.
    #[must_use]
    pub fn new(
        endpoint: &'a Endpoint,
        target: impl Into<ConnectTarget>,
        limit: Duration,
        hello: Option<(SendOptions, Bytes)>,
    ) -> Opening<'a> {
        let (pause, _) = BUSY_PAUSE;
        let target = target.into();
        Opening { endpoint, target, hello, until: Instant::now() + limit, pause }
    }

    /// Opens an association; asks again while the peer is busy.
    ///
    /// # Errors
    /// The peer does not answer, refuses, or is busy until no time is left.
    pub async fn next(&mut self) -> Result<Association, OpeningError> {
        loop {
            let closed = match self.connect().await {
                Ok(association) => return Ok(association),
                Err(ConnectError::Failed(
                    AssocClosed::HandshakeTimedOut | AssocClosed::PathsFailed,
                )) => return Err(OpeningError::NoAnswer),
                Err(ConnectError::Failed(closed)) => closed,
                Err(other) => return Err(OpeningError::Failed(other)),
            };
            match self.again_after(&closed).await {
                Again::Yes => {}
                Again::No => return Err(OpeningError::Failed(ConnectError::Failed(closed))),
                Again::TooLate => return Err(OpeningError::Busy),
            }
        }
    }

    /// After the peer has ended an association that this has opened: waits for the time of the next
    /// question if the peer was busy.
    pub async fn again_after(&mut self, closed: &AssocClosed) -> Again {
        if !is_busy(closed) {
            return Again::No;
        }
        if Instant::now() + self.pause >= self.until {
            return Again::TooLate;
        }
        tokio::time::sleep(self.pause).await;
        let (_, longest) = BUSY_PAUSE;
        self.pause = (self.pause * 2).min(longest);
        Again::Yes
    }

    async fn connect(&self) -> Result<Association, ConnectError> {
        let left = self.until.saturating_duration_since(Instant::now());
        let target = self.target.clone().within(left);
        match &self.hello {
            Some((options, hello)) => {
                self.endpoint.connect_with(target, *options, hello.clone()).await
            }
            None => self.endpoint.connect(target).await,
        }
    }
}

/// The peer has no room now, and may have later.
fn is_busy(closed: &AssocClosed) -> bool {
    let AssocClosed::PeerAborted { cause, reason } = closed else { return false };
    *cause == OUT_OF_RESOURCE || reason.starts_with(b"busy")
}

/// Bytes of a message of bulk content that fills its packets, over any of `remotes`, through relays
/// or not.
#[must_use]
pub fn bulk_message_size(
    config: &Config,
    remotes: &[SocketAddr],
    relays: bool,
    is_protected: bool,
) -> usize {
    let is_ipv6 = remotes.iter().any(SocketAddr::is_ipv6);
    sizes::bulk_chunk(config, is_ipv6, relays, is_protected) * CHUNKS_PER_MESSAGE
}
