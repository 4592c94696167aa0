//! Files and directories, sent and received: see `manypath/transfer.py`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use manypath::{BindTo, Endpoint};
use manypath_transfer::{
    EntryOutcome, Event, Inbox as Listening, InboxError, InboxOptions, Kind, Options, Outcome,
    ReceiveError, Received, Route, SendError, Sent, Stop, Ticket,
};
use pyo3::prelude::*;
use serde_json::{Value, json};
use tokio::sync::{Mutex, broadcast, watch};

use crate::net::{bad, config};
use crate::runtime::{future_into_py, get_runtime, settle_at_exit};

/// Events that wait for Python; a reader that is further behind misses the oldest.
const EVENTS_WAITING: usize = 1024;

/// The result as JSON; or the error in words, and if the transfer can go on later.
type Ended = Result<String, (String, bool)>;

/// A transfer, which runs whoever looks at it.
#[pyclass(frozen, module = "manypath._manypath")]
pub(crate) struct Transfer {
    events: Arc<Mutex<broadcast::Receiver<String>>>,
    ended: watch::Receiver<Option<Ended>>,
    stop: Stop,
    peer: Option<(String, u16)>,
}

/// The ends of a transfer's channels that the transfer itself has.
struct Ends {
    events: broadcast::Sender<String>,
    ended: watch::Sender<Option<Ended>>,
    options: Options,
}

impl Transfer {
    /// A transfer, and the part of it that a task of the runtime gets.
    fn new(
        stall_limit: Option<f64>,
        progress_every: Option<f64>,
        peer: Option<(String, u16)>,
    ) -> PyResult<(Transfer, Ends)> {
        let seconds = |seconds: Option<f64>| {
            seconds.map(Duration::try_from_secs_f64).transpose().map_err(bad)
        };
        let (stall_limit, progress_every) = (seconds(stall_limit)?, seconds(progress_every)?);
        let options = Options { stall_limit, progress_every, stop: Stop::new() };
        let (events_tx, events) = broadcast::channel(EVENTS_WAITING);
        let (ended_tx, ended) = watch::channel(None);
        let (events, stop) = (Arc::new(Mutex::new(events)), options.stop.clone());
        let ends = Ends { events: events_tx, ended: ended_tx, options };
        Ok((Transfer { events, ended, stop, peer }, ends))
    }
}

impl Ends {
    fn tell(&self, event: Event<'_>) {
        if let Some(event) = as_json(event) {
            // Nobody may look.
            let _ = self.events.send(event.to_string());
        }
    }

    /// Says how it ended. The events end with this.
    fn end(self, ended: Ended) {
        self.ended.send_replace(Some(ended));
    }
}

#[pymethods]
impl Transfer {
    /// The next event as JSON; None after the last.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let events = Arc::clone(&self.events);
        future_into_py(py, async move {
            let mut events = events.lock().await;
            loop {
                match events.recv().await {
                    Ok(event) => return Ok(Some(event)),
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return Ok(None),
                }
            }
        })
    }

    /// The result as JSON, when it is over.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut ended = self.ended.clone();
        future_into_py(py, async move {
            let ended = ended.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
            match ended {
                Some(Ok(result)) => Ok(result),
                Some(Err((text, is_resumable))) => Err(failed(&text, is_resumable)),
                None => Err(failed("the transfer failed a check of its own, a bug", false)),
            }
        })
    }

    /// Asks it to stop; it tells the other end.
    fn stop(&self) {
        self.stop.stop();
    }

    /// Where the sender is, at a receiver.
    #[getter]
    fn peer(&self) -> Option<(String, u16)> {
        self.peer.clone()
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        // Nobody can hear of it any more.
        self.stop.stop();
    }
}

/// `TransferError`.
fn failed(text: &str, is_resumable: bool) -> PyErr {
    Python::attach(|py| {
        let made = py
            .import("manypath._errors")
            .and_then(|module| module.getattr("TransferError")?.call1((text, is_resumable)));
        made.map_or_else(|error| error, PyErr::from_value)
    })
}

/// An event as `manypath/transfer.py` reads it; none for one that this version does not know.
fn as_json(event: Event<'_>) -> Option<Value> {
    let entry = |name: &str, kind: Kind, size: u64, outcome: Outcome, error: Option<String>| {
        json!({
            "event": "entry",
            "name": name,
            "is_directory": kind == Kind::Directory,
            "bytes": (size != u64::MAX).then_some(size),
            "status": outcome.name(),
            "error": error,
        })
    };
    Some(match event {
        Event::Begun { entries, bytes, omitted } => {
            json!({ "event": "begun", "entries": entries, "bytes": bytes, "omitted": omitted })
        }
        Event::Progress { done, total } => {
            json!({ "event": "progress", "done": done, "total": total })
        }
        Event::Resumed { name, offset, size } => {
            json!({ "event": "resumed", "name": name, "offset": offset, "bytes": size })
        }
        Event::Entry(EntryOutcome { header, outcome, text, sha256 }) => {
            let is_stored = outcome == Outcome::Stored;
            let error = (!is_stored).then(|| text.to_owned());
            let mut entry = entry(header.name.as_str(), header.kind, header.size, outcome, error);
            let hex = |digest: [u8; 32]| digest.map(|byte| format!("{byte:02x}")).concat();
            entry["sha256"] = if is_stored { sha256.map(hex) } else { None }.into();
            entry
        }
        Event::Unsent(unsent) => {
            let error = Some(unsent.why.to_string());
            entry(&unsent.name, unsent.kind, unsent.size, unsent.outcome(), error)
        }
        Event::Unnamed(unnamed) => {
            let error = Some(unnamed.why.to_string());
            entry(&unnamed.name, unnamed.kind, unnamed.size, Outcome::NameRefused, error)
        }
        Event::Notice(text) => json!({ "event": "notice", "text": text }),
        _ => return None,
    })
}

fn sent(result: Result<Sent, SendError>) -> Ended {
    match result {
        Ok(sent) => Ok(json!({
            "bytes": sent.summary.bytes,
            "resumed": sent.resumed,
            "entries": sent.summary.stored,
            "omitted": sent.omitted,
            "seconds": sent.time.as_secs_f64(),
        })
        .to_string()),
        Err(error) => Err((error.to_string(), error.is_resumable())),
    }
}

fn received(result: Result<Received, ReceiveError>) -> Ended {
    match result {
        Ok(received) => Ok(json!({
            "bytes": received.summary.bytes,
            "resumed": received.resumed,
            "entries": received.summary.stored,
            "omitted": 0,
            "seconds": received.time.as_secs_f64(),
        })
        .to_string()),
        Err(error) => Err((error.to_string(), error.is_resumable())),
    }
}

/// Sockets and transport parameters.
fn route(
    bind: &[String],
    profile: Option<String>,
    preset: Option<String>,
    settings: Vec<(String, String)>,
) -> PyResult<Route> {
    let place = |text: &String| match text.parse::<BindTo>() {
        Ok(place) => place,
        Err(never) => match never {},
    };
    let config = config(profile, preset, settings)?;
    Ok(Route { bind: bind.iter().map(place).collect(), config, ..Route::default() })
}

/// Begins to send these paths to the receiver with the ticket.
#[pyfunction]
#[pyo3(signature = (ticket, paths, bind, profile, preset, settings, connect_limit, stall_limit, progress_every))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub(crate) fn send_to(
    py: Python<'_>,
    ticket: &str,
    paths: Vec<PathBuf>,
    bind: Vec<String>,
    profile: Option<String>,
    preset: Option<String>,
    settings: Vec<(String, String)>,
    connect_limit: f64,
    stall_limit: Option<f64>,
    progress_every: Option<f64>,
) -> PyResult<Transfer> {
    let ticket = Ticket::parse(ticket).map_err(bad)?;
    ticket.key(false).map_err(bad)?;
    let connect_limit = Duration::try_from_secs_f64(connect_limit).map_err(bad)?;
    let route = Route { connect_limit, ..route(&bind, profile, preset, settings)? };
    settle_at_exit(py)?;
    let (transfer, ends) = Transfer::new(stall_limit, progress_every, None)?;
    get_runtime().spawn(async move {
        let tell = |event: Event<'_>| ends.tell(event);
        let result = manypath_transfer::send_to(&ticket, paths, &route, &ends.options, tell).await;
        ends.end(sent(result));
    });
    Ok(transfer)
}

/// A receiver with a ticket.
#[pyclass(frozen, module = "manypath._manypath")]
pub(crate) struct Inbox {
    listening: Arc<Mutex<Listening>>,
    endpoint: Endpoint,
    ticket: String,
    stall_limit: Option<f64>,
    progress_every: Option<f64>,
}

#[pymethods]
impl Inbox {
    /// Opens one.
    #[staticmethod]
    #[pyo3(signature = (directory, bind, port, max_size, hidden, profile, preset, settings, stall_limit, progress_every))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn open(
        py: Python<'_>,
        directory: PathBuf,
        bind: Vec<String>,
        port: u16,
        max_size: Option<u64>,
        hidden: bool,
        profile: Option<String>,
        preset: Option<String>,
        settings: Vec<(String, String)>,
        stall_limit: Option<f64>,
        progress_every: Option<f64>,
    ) -> PyResult<Bound<'_, PyAny>> {
        let route = route(&bind, profile, preset, settings)?;
        let options = InboxOptions { route, port, max_size, hidden };
        settle_at_exit(py)?;
        future_into_py(py, async move {
            let listening = Listening::open(&directory, options).await;
            let listening = listening.map_err(|error| match error {
                InboxError::Directory(error) => PyErr::from(error),
                other => failed(&other.to_string(), false),
            })?;
            let (endpoint, ticket) = (listening.endpoint().clone(), listening.ticket().to_string());
            let listening = Arc::new(Mutex::new(listening));
            Ok(Inbox { listening, endpoint, ticket, stall_limit, progress_every })
        })
    }

    #[getter]
    fn ticket(&self) -> &str {
        &self.ticket
    }

    /// The transfer of the next sender, which has begun; None once the inbox is closed.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (listening, stall_limit) = (Arc::clone(&self.listening), self.stall_limit);
        let progress_every = self.progress_every;
        future_into_py(py, async move {
            let next = listening.lock().await.next(&Options::default()).await;
            let Ok(incoming) = next else { return Ok(None) };
            let peer = incoming.peer();
            let peer = Some((peer.ip().to_string(), peer.port()));
            let (transfer, ends) = Transfer::new(stall_limit, progress_every, peer)?;
            get_runtime().spawn(async move {
                let tell = |event: Event<'_>| ends.tell(event);
                let result = incoming.receive(&ends.options, tell).await.complete();
                ends.end(received(result));
            });
            Ok(Some(transfer))
        })
    }

    /// Ends all transfers, and closes the sockets.
    fn close<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let endpoint = self.endpoint.clone();
        future_into_py(py, async move {
            endpoint.close().await;
            Ok(())
        })
    }
}
