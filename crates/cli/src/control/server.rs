//! The socket of a running process.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use manypath::{AssocId, BindTo, Endpoint, PathRank, PathStats, addresses_of, interface_names};
use manypath_live::Live;
use serde_json::Value;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::protocol::{
    ASSOCIATIONS_MAX, Answer, AssociationState, PathState, Process, REQUEST_MAX, Request,
};
use super::{directory, line};
use crate::args::ReportArgs;
use crate::live::Views;
use crate::screen::Screen;

/// Clients at a time; more wait.
const CLIENTS_MAX: usize = 16;
/// How long a client may be silent, and how long it may take to read an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause after a connection could not be accepted, for want of descriptors for instance.
const PAUSE: Duration = Duration::from_secs(1);

/// Answers the same user's commands while it exists; then the socket is gone.
#[derive(Debug)]
pub(crate) struct Control {
    running: Option<(PathBuf, JoinHandle<()>)>,
}

impl Control {
    /// Begins to listen. A process works without it as well, so that failures are only told to
    /// users who want to know more.
    pub(crate) fn start(
        endpoint: &Endpoint,
        views: &Views,
        screen: &Screen,
        report: &ReportArgs,
    ) -> Control {
        let (command, live) = (views.command, views.live.clone());
        let subject = Subject { endpoint: endpoint.clone(), live, command };
        let mut running = None;
        let mut failed = None;
        for dir in directory::candidates() {
            match listen(&dir, std::process::id()) {
                Ok((listener, path)) => {
                    let task = tokio::spawn(serve(listener, subject.clone()));
                    running = Some((path, task));
                    break;
                }
                Err(error) => failed = Some(error),
            }
        }
        if let (None, Some(error), true) = (&running, failed, report.verbose > 0) {
            screen.line(&format!("no control socket, so `manypath path` cannot be used: {error}"));
        }
        Control { running }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if let Some((path, task)) = self.running.take() {
            // First, so that nobody connects to a socket without a listener.
            let _ = fs::remove_file(path);
            task.abort();
        }
    }
}

/// Opens the socket of a process; one that a dead process of that number left is replaced.
fn listen(dir: &Path, pid: u32) -> io::Result<(UnixListener, PathBuf)> {
    directory::make(dir)?;
    let path = directory::socket(dir, pid);
    let listener = match UnixListener::bind(&path) {
        Err(e) if e.kind() == io::ErrorKind::AddrInUse => {
            if std::os::unix::net::UnixStream::connect(&path).is_ok() {
                // As in containers with a directory in common.
                return Err(io::Error::new(e.kind(), "another process has its number"));
            }
            fs::remove_file(&path)?;
            UnixListener::bind(&path)?
        }
        other => other?,
    };
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    Ok((listener, path))
}

/// The process that is asked about.
#[derive(Clone, Debug)]
struct Subject {
    endpoint: Endpoint,
    live: Live,
    command: &'static str,
}

async fn serve(listener: UnixListener, subject: Subject) {
    let places = Arc::new(Semaphore::new(CLIENTS_MAX));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let subject = subject.clone();
                tokio::spawn(async move {
                    // An error means that the client is gone, or breaks the rules: that is all.
                    let _ = talk(stream, &subject).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Answers a client's requests until it leaves.
async fn talk(stream: UnixStream, subject: &Subject) -> io::Result<()> {
    if stream.peer_cred()?.uid() != directory::user() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let (from, mut to) = stream.into_split();
    let mut from = BufReader::with_capacity(REQUEST_MAX, from);
    loop {
        let (answer, is_last) = match timeout(PATIENCE, line::read(&mut from, REQUEST_MAX)).await? {
            Ok(None) => return Ok(()),
            Ok(Some(request)) => (answer(&request, subject), false),
            Err(e) if e.kind() == io::ErrorKind::InvalidData => {
                (Answer::Refused { reason: e.to_string() }, true)
            }
            Err(e) => return Err(e),
        };
        let mut text = serde_json::to_vec(&answer)?;
        text.push(b'\n');
        timeout(PATIENCE, to.write_all(&text)).await??;
        if is_last {
            return Ok(());
        }
    }
}

fn answer(request: &[u8], Subject { endpoint, live, command }: &Subject) -> Answer {
    let request = match serde_json::from_slice(request) {
        Ok(request) => request,
        Err(e) => return Answer::Refused { reason: format!("not understood: {e}") },
    };
    match request {
        Request::Paths => Answer::Paths(process(endpoint, command)),
        Request::SetRank { place, rank } => match set_rank(endpoint, &place, &rank) {
            Ok(paths) => Answer::RankSet { command: (*command).to_owned(), paths },
            Err(reason) => Answer::Refused { reason },
        },
        Request::Figures { since_ms } => Answer::Figures(live.process(since_ms)),
        Request::SetPathRank { association, path, rank } => {
            match live.set_rank(association, path, &rank) {
                Ok(true) => Answer::RankSet { command: (*command).to_owned(), paths: 1 },
                Ok(false) => {
                    Answer::Refused { reason: "there is no such path any more".to_owned() }
                }
                Err(reason) => Answer::Refused { reason },
            }
        }
    }
}

/// The process and its paths as they are.
fn process(endpoint: &Endpoint, command: &str) -> Process {
    let names = interface_names();
    let state = |stats: PathStats| {
        let mut more = match serde_json::to_value(&stats) {
            Ok(Value::Object(facts)) => facts,
            _ => serde_json::Map::new(),
        };
        for own in ["local", "remote", "state"] {
            more.remove(own);
        }
        more.insert("packets_received".to_owned(), stats.counters.packets_received.into());
        more.insert("bytes_received".to_owned(), stats.counters.bytes_received.into());
        more.insert("bytes_acked".to_owned(), stats.counters.acked_bytes.into());
        PathState {
            path: u16::from(stats.id.0) + 1,
            interface: names.get(&stats.local.ip()).cloned(),
            local: stats.local.to_string(),
            remote: stats.remote.to_string(),
            state: stats.state.name().to_owned(),
            rank: stats.rank.to_string(),
            suppressed: stats.suppressed.map(|why| why.name().to_owned()),
            more,
        }
    };
    let associations = endpoint.paths().into_iter().take(ASSOCIATIONS_MAX);
    let associations = associations.map(|(id, paths)| AssociationState {
        association: id.number(),
        paths: paths.into_iter().map(state).collect(),
    });
    let (pid, command) = (std::process::id(), command.to_owned());
    Process { pid, command, associations: associations.collect() }
}

/// Gives paths a rank; how many there are now, or why not.
fn set_rank(endpoint: &Endpoint, place: &str, rank: &str) -> Result<usize, String> {
    let rank: PathRank = rank.parse().map_err(|e| format!("{e}"))?;
    let place: BindTo = match place.parse() {
        Ok(place) => place,
        Err(never) => match never {},
    };
    let ips: Vec<IpAddr> = match &place {
        BindTo::Auto | BindTo::Any => Vec::new(),
        BindTo::Address(ip) => vec![*ip],
        BindTo::Interface(name) => addresses_of(name).ok().flatten().unwrap_or_default(),
    };
    let paths = endpoint.paths();
    let locals = || paths.iter().flat_map(|(_, paths)| paths).map(|path| path.local.ip());
    let own: Vec<IpAddr> = endpoint.local_addresses().iter().map(|a| a.ip()).collect();
    if !ips.is_empty() && !locals().chain(own).any(|ip| ips.contains(&ip)) {
        // A place that has nothing to do with the process is most likely a slip of the pen.
        return match set_rank_of_remote(endpoint, &paths, &ips, rank) {
            0 => Err(format!("there is no path from or to {place}")),
            count => Ok(count),
        };
    }
    endpoint.set_rank(place, rank).map_err(|e| e.to_string())?;
    Ok(locals().filter(|ip| ips.contains(ip)).count())
}

/// Gives the paths to an address of the peer a rank; how many there are.
fn set_rank_of_remote(
    endpoint: &Endpoint,
    paths: &[(AssocId, Vec<PathStats>)],
    remotes: &[IpAddr],
    rank: PathRank,
) -> usize {
    let all = paths.iter().flat_map(|(id, paths)| paths.iter().map(move |path| (*id, path)));
    let there = all.filter(|(_, path)| remotes.contains(&path.remote.ip()));
    there.filter(|(id, path)| endpoint.set_path_rank(*id, path.id, rank)).count()
}

#[cfg(test)]
mod tests;
