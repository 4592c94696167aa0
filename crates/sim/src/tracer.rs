//! Writes what happens in a run as a trace.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use manypath_proto::config::Config;
use manypath_proto::{Association, Instant};
use manypath_trace::{
    Capture, Encapsulation, Event, JsonLines, OPENED, PacketSummary, SCHEMA_VERSION, Watch,
};

use crate::ids::NodeId;
use crate::observe::{DeliveredPacket, DroppedPacket, Observer, SentPacket};
use crate::protection::RunKeys;
use crate::record::RunRecord;

/// Where the trace of a run goes.
#[derive(Clone, Debug, Default)]
pub struct TraceTo {
    /// A file for the events of one run, as JSON lines; `-` is standard output.
    pub json_lines: Option<PathBuf>,
    /// A folder for a pcapng file for each host and run, named after scenario, swept parameters,
    /// seed and host; it is made if need be.
    pub pcapng_dir: Option<PathBuf>,
    /// Shows protected packets opened.
    pub opened: bool,
    /// A file for a record of one run's first transfer, as `manypath send --trace` writes it.
    pub record: Option<PathBuf>,
}

impl TraceTo {
    /// Opens the files for a run of that scenario, with these values of its swept parameters and
    /// that seed. The tracer is given hosts next.
    ///
    /// # Errors
    /// Says which file cannot be written.
    pub fn open(
        &self,
        scenario: &str,
        parameters: &[(String, String)],
        seed: u64,
    ) -> io::Result<Tracer> {
        let mut tracer = Tracer::new(scenario, seed);
        if let Some(path) = &self.json_lines {
            let out: Box<dyn Write + Send> =
                if path.as_os_str() == "-" { Box::new(Output) } else { Box::new(create(path)?) };
            tracer = tracer.json_lines(out);
        }
        if let Some(dir) = &self.pcapng_dir {
            fs::create_dir_all(dir).map_err(|error| at_path(dir, &error))?;
            tracer.captures = Some((dir.clone(), file_stem(scenario, parameters, seed)));
        }
        if let Some(path) = &self.record {
            tracer.record_to = Some(create(path)?);
        }
        Ok(tracer)
    }
}

/// Standard output. A reader that goes away (`| head`) ends no run: what follows is for nobody.
#[derive(Debug)]
struct Output;

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match io::stdout().write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(bytes.len()),
            result => result,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match io::stdout().flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result,
        }
    }
}

/// An [`Observer`] that writes typed events as JSON lines, pcapng captures, or both.
///
/// Hosts that it was not given a name for, as sources of cross-traffic, do not appear.
///
/// ```
/// use manypath_sim::{Pair, Tracer, secs};
///
/// let mut t = Pair::two_paths("cmt").seed(3).start();
/// let mut tracer = Tracer::new("two paths", 3).json_lines(Box::new(std::io::sink()));
/// for (name, host) in [("a", &t.a), ("z", &t.z)] {
///     tracer.host(host.node(), name, host.config())?;
/// }
/// t.net.set_observer(Box::new(tracer));
/// t.a.send_file(100_000);
/// t.run_to_end(secs(60));
/// t.net.take_observer().expect("it was set").finish()?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Tracer {
    scenario: String,
    seed: u64,
    json: Option<JsonLinesOut>,
    captures: Option<(PathBuf, String)>,
    hosts: Vec<TracedHost>,
    /// A record to begin, and the one that has begun.
    record_to: Option<BufWriter<File>>,
    record: Option<RunRecord<BufWriter<File>>>,
    /// Opens protected packets.
    keys: Option<RunKeys>,
    /// The first error; nothing is written after it.
    error: Option<io::Error>,
}

type JsonLinesOut = JsonLines<BufWriter<Box<dyn Write + Send>>>;

struct TracedHost {
    node: NodeId,
    name: String,
    watch: Watch,
    capture: Option<Capture<BufWriter<File>>>,
}

impl Tracer {
    /// A tracer that writes nothing yet.
    pub fn new(scenario: &str, seed: u64) -> Tracer {
        Tracer {
            scenario: scenario.to_owned(),
            seed,
            json: None,
            captures: None,
            hosts: Vec::new(),
            record_to: None,
            record: None,
            keys: None,
            error: None,
        }
    }

    /// Writes events to `out`, through a buffer.
    #[must_use]
    pub fn json_lines(mut self, out: Box<dyn Write + Send>) -> Tracer {
        self.json = Some(JsonLines::new(BufWriter::new(out)));
        self
    }

    /// Shows the chunks inside protected packets, as far as these keys open them.
    #[must_use]
    pub fn opened_with(mut self, keys: RunKeys) -> Tracer {
        self.keys = Some(keys);
        self
    }

    /// Follows a host from now on, under that name.
    ///
    /// # Errors
    /// Says which file cannot be written.
    pub fn host(&mut self, node: NodeId, name: &str, config: &Config) -> io::Result<()> {
        let event = Event::Run {
            schema: SCHEMA_VERSION,
            scenario: self.scenario.clone(),
            profile: config.profile.name().to_owned(),
            preset: config.preset.to_owned(),
            seed: self.seed,
        };
        if let Some(json) = &mut self.json {
            json.write(Instant::ZERO, name, &event)?;
        }
        let capture = match &self.captures {
            Some((dir, stem)) => {
                let path = dir.join(format!("{stem}-{name}.pcapng"));
                let about = format!("{}, seed {}, host {name}", self.scenario, self.seed);
                let new = Capture::new(create(&path)?, name, &about, Encapsulation::of(config));
                Some(new.map_err(|error| at_path(&path, &error))?)
            }
            None => None,
        };
        let (name, watch) = (name.to_owned(), Watch::new());
        self.hosts.push(TracedHost { node, name, watch, capture });
        Ok(())
    }

    /// Records what that host sends from `begin` on, if a record is wanted. The content has
    /// `content_bytes`, if it has an end.
    pub(crate) fn record_sender(
        &mut self,
        node: NodeId,
        config: &Config,
        is_protected: bool,
        begin: Instant,
        content_bytes: Option<u64>,
    ) {
        if let Some(out) = self.record_to.take() {
            let record = RunRecord::new(node, config, is_protected, begin, content_bytes, out);
            self.record = Some(record);
        }
    }

    /// Does something for a host that is followed, unless there was an error.
    fn at(
        &mut self,
        node: NodeId,
        act: impl FnOnce(&mut TracedHost, &mut Option<JsonLinesOut>) -> io::Result<()>,
    ) {
        let host = self.hosts.iter_mut().find(|host| host.node == node);
        if self.error.is_some() {
            return;
        }
        let Some(host) = host else { return };
        self.error = act(host, &mut self.json).err();
    }

    /// A packet of a host that is followed, if it was protected and keys open it.
    fn opened(&self, node: NodeId, packet: &Bytes) -> Option<Bytes> {
        let keys = self.keys.as_ref()?;
        self.hosts.iter().find(|host| host.node == node)?;
        keys.open(packet).ok()
    }

    /// Tells captures what became of a packet.
    fn settle(&mut self, number: u64, comment: Option<&str>) {
        for capture in self.hosts.iter_mut().filter_map(|host| host.capture.as_mut()) {
            let result = capture.settle(number, comment.map(str::to_owned));
            self.error = self.error.take().or(result.err());
        }
    }
}

impl Observer for Tracer {
    fn packet_sent(&mut self, at: Instant, packet: &SentPacket<'_>) {
        let SentPacket { id, local, remote, payload, .. } = *packet;
        let opened = self.opened(packet.node, payload);
        self.at(packet.node, |host, json| {
            let path = host.watch.path(local, remote);
            if let Some(json) = json {
                let packet = summary(id, path, (local, remote), payload, opened.as_ref());
                json.write(at, &host.name, &Event::PacketSent(packet))?;
            }
            if let Some(capture) = &mut host.capture {
                let (sctp, note) = shown(payload, opened.as_ref());
                capture.sent(at, id, (local, remote), sctp, note);
            }
            Ok(())
        });
    }

    fn packet_delivered(&mut self, at: Instant, packet: &DeliveredPacket<'_>) {
        let DeliveredPacket { node, local, remote, id, payload } = *packet;
        self.settle(id, None);
        let opened = self.opened(node, payload);
        self.at(node, |host, json| {
            let path = host.watch.path(local, remote);
            if let Some(json) = json {
                let packet = summary(id, path, (local, remote), payload, opened.as_ref());
                json.write(at, &host.name, &Event::PacketReceived(packet))?;
            }
            let Some(capture) = &mut host.capture else { return Ok(()) };
            let (sctp, note) = shown(payload, opened.as_ref());
            capture.received(at, (local, remote), sctp, note)
        });
    }

    fn packet_dropped(&mut self, at: Instant, packet: &DroppedPacket) {
        let DroppedPacket { id, node, cause, link } = *packet;
        let after = link.map(|link| format!(" at link {}", link.0)).unwrap_or_default();
        self.settle(
            id,
            Some(&format!("dropped: {}{after}, at {at:?}", cause.name().replace('_', " "))),
        );
        self.at(node, |host, json| {
            let Some(json) = json else { return Ok(()) };
            let (cause, link) = (cause.name().to_owned(), link.map(|link| link.0));
            json.write(at, &host.name, &Event::PacketDropped { packet: id, cause, link })
        });
    }

    fn event(&mut self, at: Instant, node: NodeId, event: &manypath_proto::Event) {
        if let Some(record) = &mut self.record {
            let done = record.event(at, node, event);
            self.error = self.error.take().or(done.err());
        }
        let Some(event) = Event::of(event) else { return };
        self.at(node, |host, json| match json {
            Some(json) => json.write(at, &host.name, &event),
            None => Ok(()),
        });
    }

    fn association(&mut self, at: Instant, node: NodeId, association: &Association) {
        if let Some(record) = &mut self.record {
            let done = record.association(at, node, association);
            self.error = self.error.take().or(done.err());
        }
        self.at(node, |host, json| {
            let mut result = Ok(());
            let mut has_new_path = false;
            host.watch.look(at, association, |event| {
                has_new_path |= matches!(event, Event::PathAdded { .. });
                if let (Some(json), Ok(())) = (json.as_mut(), &result) {
                    result = json.write(at, &host.name, event);
                }
            });
            if let Some(capture) = host.capture.as_mut()
                && has_new_path
            {
                host.watch.paths().for_each(|(number, ends)| capture.name_path(number, ends));
            }
            result
        });
    }

    fn finish(&mut self) -> io::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if let Some(record) = self.record.take() {
            record.finish()?;
        }
        for host in &mut self.hosts {
            if let Some(capture) = &mut host.capture {
                capture.finish()?;
            }
        }
        self.json.as_mut().map_or(Ok(()), JsonLines::flush)
    }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.hosts.iter().map(|host| host.name.as_str()).collect();
        f.debug_struct("Tracer").field("hosts", &names).finish_non_exhaustive()
    }
}

fn summary(
    id: u64,
    path: Option<u16>,
    ends: (SocketAddr, SocketAddr),
    packet: &Bytes,
    opened: Option<&Bytes>,
) -> PacketSummary {
    let summary = PacketSummary::of(id, path, ends.0, ends.1, packet);
    match opened {
        Some(opened) => summary.with_opened(opened),
        None => summary,
    }
}

/// The packet that a capture shows, and the comment on it.
fn shown<'p>(packet: &'p Bytes, opened: Option<&'p Bytes>) -> (&'p Bytes, Option<&'static str>) {
    opened.map_or((packet, None), |opened| (opened, Some(OPENED)))
}

/// `two-paths-path.2.loss-1-seed7`: what every file system takes.
fn file_stem(scenario: &str, parameters: &[(String, String)], seed: u64) -> String {
    let mut words = vec![scenario.to_owned()];
    words.extend(parameters.iter().map(|(name, value)| format!("{name} {value}")));
    words.push(format!("seed{seed}"));
    let is_kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
    let text = words.join(" ");
    let parts: Vec<&str> = text.split(|c| !is_kept(c)).filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

fn create(path: &Path) -> io::Result<BufWriter<File>> {
    File::create(path).map(BufWriter::new).map_err(|error| at_path(path, &error))
}

fn at_path(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write {}: {error}", path.display()))
}
