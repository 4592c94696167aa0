//! A receiver with a ticket.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use manypath::keys::{Identity, PeerKeys, TlsKeys};
use manypath::{BindError, Endpoint, EndpointOptions, StrangerLimits};
use manypath_files::sink::{Holders, Store};
use manypath_files::ticket::{Ticket, Trust};
use manypath_files::{Disk, SystemDisk};
use manypath_trust::Token;
use manypath_trust::password::Password;
use tokio::task::JoinSet;

use crate::event::Event;
use crate::options::Options;
use crate::password::Secret;
use crate::receive::{Incoming, ReceiveError, Received, Receiver};
use crate::reception::{Reception, TurnedAway};
use crate::route::{CLOSE_TIME, Route, reachable};

/// Length of the random token of a ticket, in bytes.
const TOKEN_LEN: usize = 16;
/// Shorter files are sent again as a whole after an interruption, in bytes: to keep what arrived of
/// them costs more time than that saves.
pub const KEEP_FROM: u64 = 1 << 20;
/// Associations that wait to be accepted; more than there are strangers, who make room for each
/// other.
const ACCEPT_BACKLOG: usize = 128;
/// Associations at a time, of peers with and without the token.
const ASSOCIATIONS_MAX: usize = 1024;
/// Transfers at a time.
pub const TRANSFERS_MAX: usize = 8;

/// Why there is no inbox.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InboxError {
    /// The directory takes no files.
    #[error("cannot write into the directory: {0}")]
    Directory(#[from] io::Error),
    /// No endpoint could be opened.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// This end could not make a key or a token.
    #[error("no key: {0}")]
    Key(String),
}

/// Options of an [`Inbox`].
#[derive(Clone, Debug, Default)]
pub struct InboxOptions {
    /// Sockets and transport parameters.
    pub route: Route,
    /// UDP port; 0 takes a free one, which is the default. The ticket has it.
    pub port: u16,
    /// Bytes that a transfer may have at most; `None`: as much as the disk has room for.
    pub max_size: Option<u64>,
    /// Accepts names with parts that begin with a dot.
    pub hidden: bool,
}

/// A receiver with a ticket: whoever has it may send, into one directory.
#[derive(Debug)]
pub struct Inbox {
    endpoint: Endpoint,
    ticket: Ticket,
    reception: Arc<Reception<Store<SystemDisk>>>,
    /// Peers that are heard.
    meeting: JoinSet<Result<Incoming<Store<SystemDisk>>, TurnedAway>>,
}

impl Inbox {
    /// Listens for senders, with a new key and a new token. Makes the directory if it is missing.
    ///
    /// # Errors
    /// The directory takes no files, or no socket could be opened.
    pub async fn open(directory: &Path, options: InboxOptions) -> Result<Inbox, InboxError> {
        let InboxOptions { route, port, max_size, hidden } = options;
        let target = directory_for(directory, max_size, hidden).await?;
        let identity = Identity::generate().map_err(|e| InboxError::Key(e.to_string()))?;
        let token = random_token()?;
        let password = Password::new(token.clone()).map_err(|e| InboxError::Key(e.to_string()))?;
        let keys = TlsKeys::raw_public_keys(&identity, PeerKeys::Any);
        let endpoint = Endpoint::bind(EndpointOptions {
            config: Arc::new(route.config),
            bind: route.bind,
            udp_port: port,
            accept: true,
            accept_backlog: ACCEPT_BACKLOG,
            strangers: Some(StrangerLimits::default()),
            max_associations: ASSOCIATIONS_MAX,
            ..EndpointOptions::client(keys)
        })?;
        let ticket = Ticket {
            addresses: reachable(&endpoint),
            port: endpoint.udp_port(),
            relayed: Vec::new(),
            token,
            trust: Trust::Key(identity.fingerprint()),
        };
        let receiver = Receiver { secret: Some(Secret::new(password, false)), target };
        let reception = Arc::new(Reception::new(receiver, TRANSFERS_MAX));
        Ok(Inbox { endpoint, ticket, reception, meeting: JoinSet::new() })
    }

    /// The ticket, for senders: as secret as the right to send.
    #[must_use]
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// The next sender. A call that is dropped loses none. Further senders may be taken while
    /// transfers go on, up to eight at a time.
    ///
    /// # Errors
    /// Only [`ReceiveError::Stopped`] and [`ReceiveError::EndpointClosed`]: peers without the token
    /// are sent away.
    pub async fn next(
        &mut self,
        options: &Options,
    ) -> Result<Incoming<Store<SystemDisk>>, ReceiveError> {
        loop {
            tokio::select! {
                association = self.endpoint.accept() => {
                    let association = association.ok_or(ReceiveError::EndpointClosed)?;
                    let (reception, stop) = (self.reception.clone(), options.stop.clone());
                    self.meeting.spawn(async move { reception.meet(association, &stop).await });
                }
                Some(met) = self.meeting.join_next() => {
                    if let Ok(Ok(incoming)) = met {
                        return Ok(incoming);
                    }
                }
                () = options.stop.stopped() => return Err(ReceiveError::Stopped),
            }
        }
    }

    /// Receives from the next sender, and tells events.
    ///
    /// # Errors
    /// The transfer did not go to its end, or not every entry was stored.
    pub async fn receive(
        &mut self,
        options: &Options,
        events: impl FnMut(Event<'_>) + Send,
    ) -> Result<Received, ReceiveError> {
        let incoming = self.next(options).await?;
        incoming.receive(options, events).await.complete()
    }

    /// The endpoint: to close it while another part of the program waits for the next sender.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Ends all associations, and lets their last packets leave.
    pub async fn close(self) {
        let _ = tokio::time::timeout(CLOSE_TIME, self.endpoint.close()).await;
    }
}

fn random_token() -> Result<Token, InboxError> {
    let mut token = vec![0; TOKEN_LEN];
    getrandom::fill(&mut token).map_err(|e| InboxError::Key(e.to_string()))?;
    Ok(token.into())
}

/// A directory as a target, made if it is missing: nothing in it is replaced, and unfinished files
/// of 1 MiB and more stay after an interruption, for a later transfer to go on with. Transfers that
/// may go on with each other's files must share it, so clone it.
///
/// # Errors
/// The directory takes no files.
pub async fn directory_for(
    directory: &Path,
    max_size: Option<u64>,
    hidden: bool,
) -> io::Result<Store<SystemDisk>> {
    let mut store = Store {
        disk: SystemDisk,
        dir: directory.to_owned(),
        overwrite: false,
        hidden,
        max_size,
        unnamed: true,
        keep_from: Some(KEEP_FROM),
        holders: Holders::default(),
    };
    let opened = tokio::task::spawn_blocking(move || {
        make_directory(&store.dir)?;
        store.start().map(|_| store)
    });
    opened.await.map_err(io::Error::other)?
}

/// Creates a directory, and those above it, if it is missing; true if it was.
///
/// # Errors
/// There is something else of that name, or it cannot be created.
pub fn make_directory(dir: &Path) -> io::Result<bool> {
    match std::fs::metadata(dir) {
        Ok(meta) if meta.is_dir() => return Ok(false),
        Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    let missing: Vec<PathBuf> =
        dir.ancestors().take_while(|dir| is_missing(dir)).map(Path::to_owned).collect();
    std::fs::create_dir_all(dir)?;
    // A file that is reported as stored must not lose its directory with the power.
    for dir in missing {
        let above = dir.parent().filter(|dir| !dir.as_os_str().is_empty());
        SystemDisk.sync_dir(above.unwrap_or_else(|| Path::new(".")))?;
    }
    Ok(true)
}

/// True if nothing is at `path`, which is empty where a relative path begins.
fn is_missing(path: &Path) -> bool {
    !path.as_os_str().is_empty() && std::fs::metadata(path).is_err()
}
