//! `manypath recv`: listens, prints a ticket, and receives from whoever shows its token.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use manypath::{Association, Endpoint};
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::args::RecvArgs;
use crate::failure::{Failure, Result};
use crate::progress::Screen;
use crate::ticket::Ticket;
use crate::transfer::NOT_ENCRYPTED;
use crate::transfer::frame::{TOKEN_MAX, reason};
use crate::transfer::receiver::Receiver;
use crate::transfer::sink::Store;
use crate::{settings, show, transport};

/// Length of a random token in bytes.
const TOKEN_LEN: usize = 16;
/// Shortest token that a user may choose.
const TOKEN_MIN: usize = 8;
/// Transfers at a time.
const TRANSFERS_MAX: usize = 8;
/// Peers at a time that have not shown their token.
const STRANGERS_MAX: usize = 32;
/// How long a finished endpoint may take to say good-bye.
const CLOSE_TIME: Duration = Duration::from_millis(100);

/// `manypath recv`.
pub(crate) async fn run(args: RecvArgs) -> Result<()> {
    let config = settings::config(&args.transport)?;
    let screen = Screen::new(&args.report);
    let token = token(args.token.as_deref())?;
    check_dir(&args.dir)?;
    let preset = config.preset;
    let endpoint = transport::open(config, &args.listen.listen, args.listen.port, true)?;
    let addresses = transport::reachable(&endpoint);
    let port = endpoint.udp_port();
    for note in endpoint.notes() {
        screen.line(note);
    }
    let receiver = Receiver {
        token_digest: Sha256::digest(&token).into(),
        store: Store { dir: args.dir.clone(), overwrite: args.overwrite },
        preset,
        screen: screen.clone(),
        report: args.report,
        progress_records: args.progress,
    };
    let ticket = Ticket { addresses, port, token, fingerprint: None };
    announce(&args, &screen, &ticket)?;
    let end = serve(&endpoint, Arc::new(receiver), args.once).await;
    let _ = tokio::time::timeout(CLOSE_TIME, endpoint.close()).await;
    end
}

fn token(chosen: Option<&str>) -> Result<Vec<u8>> {
    match chosen {
        Some(token) if token.len() < TOKEN_MIN => {
            Err(Failure::usage("--token: shorter than 8 characters; strangers could guess it"))
        }
        Some(token) if token.len() > TOKEN_MAX => {
            Err(Failure::usage("--token: longer than 255 bytes"))
        }
        Some(token) => Ok(token.as_bytes().to_vec()),
        None => {
            let mut token = vec![0; TOKEN_LEN];
            getrandom::fill(&mut token)
                .map_err(|e| Failure::failed(format!("no random numbers: {e}")))?;
            Ok(token)
        }
    }
}

/// Finds out now, not after a long transfer, whether `dir` takes files.
fn check_dir(dir: &Path) -> Result<()> {
    match tempfile::tempfile_in(dir) {
        Ok(_) => Ok(()),
        Err(e) => Err(Failure::failed(format!("cannot write into {}: {e}", dir.display()))
            .hint("create the directory, or name another with --dir")),
    }
}

fn announce(args: &RecvArgs, screen: &Screen, ticket: &Ticket) -> Result<()> {
    screen.line(NOT_ENCRYPTED);
    if args.report.json {
        let addresses: Vec<String> = ticket.addresses.iter().map(IpAddr::to_string).collect();
        return show::print(&format!(
            "{}\n",
            json!({
                "event": "listening",
                "ticket": ticket.to_string(),
                "addresses": addresses,
                "port": ticket.port,
                "encrypted": false,
            })
        ));
    }
    let ends: Vec<String> = ticket.socket_addresses().iter().map(ToString::to_string).collect();
    screen.line(&format!(
        "Listening on {}, for files into {}",
        ends.join(", "),
        args.dir.display()
    ));
    screen.line("On the other machine, run: manypath send FILE... followed by this ticket:");
    show::print(&format!("{ticket}\n"))
}

/// Receives until interrupted, or with `once` until one admitted sender is done.
async fn serve(endpoint: &Endpoint, receiver: Arc<Receiver>, once: bool) -> Result<()> {
    let strangers = Arc::new(Semaphore::new(STRANGERS_MAX));
    let transfers = Arc::new(Semaphore::new(if once { 1 } else { TRANSFERS_MAX }));
    let mut sessions = JoinSet::new();
    loop {
        tokio::select! {
            association = endpoint.accept() => {
                let Some(association) = association else {
                    return Err(Failure::failed("the endpoint was closed"));
                };
                match strangers.clone().try_acquire_owned() {
                    Ok(permit) => {
                        let (receiver, transfers) = (receiver.clone(), transfers.clone());
                        sessions.spawn(async move {
                            session(&receiver, association, &transfers, permit).await
                        });
                    }
                    Err(_) => association.abort(reason::BUSY.as_bytes()),
                }
            }
            Some(ended) = sessions.join_next() => {
                // A session that panicked has said so; the others go on.
                let Ok(Some(end)) = ended else { continue };
                if once {
                    return end;
                }
                if let Err(failure) = end {
                    receiver.screen.line(&format!("manypath: {failure}"));
                }
            }
            () = transport::interrupted() => {
                let busy = !sessions.is_empty();
                // Sessions notice the interruption themselves; what they say counts with `once`.
                while let Some(ended) = sessions.join_next().await {
                    if let (true, Ok(Some(end))) = (once, ended) {
                        return end;
                    }
                }
                return match once || busy {
                    true => Err(Failure::failed("interrupted")),
                    false => Ok(()),
                };
            }
        }
    }
}

/// Hears one peer out. Returns how its transfer ended, or `None` for a stranger.
async fn session(
    receiver: &Receiver,
    association: Association,
    transfers: &Semaphore,
    stranger: tokio::sync::OwnedSemaphorePermit,
) -> Option<Result<()>> {
    let peer = association.peer()?;
    let admitted = tokio::select! {
        admitted = receiver.admit(association.clone(), peer) => admitted,
        () = transport::interrupted() => return None,
    };
    drop(stranger);
    let admitted = match admitted {
        Ok(admitted) => admitted,
        Err(why) => {
            receiver.screen.line(&format!("sent {peer} away: {why}"));
            return None;
        }
    };
    let Ok(_transfer) = transfers.try_acquire() else {
        transport::abort(&association, reason::BUSY).await;
        return None;
    };
    // Before the first content, so that its arrival can be measured from here.
    if admitted.welcome().await.is_err() {
        return None;
    }
    let (result, failure) = receiver.receive(admitted).await;
    if failure.is_none() {
        result.tell(&receiver.screen);
    }
    if receiver.report.json
        && let Err(failure) = show::print(&result.json_line())
    {
        return Some(Err(failure));
    }
    Some(failure.map_or(Ok(()), Err))
}
