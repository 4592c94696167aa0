//! One association as a proxy: the streams in use, and who reads what arrives on them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use manypath::{AssocClosed, Association, Message, SendOptions, StreamId};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{MutexGuard as Turn, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::conn::{Broken, Conn};
use crate::dial;
use crate::flow::Violation;
use crate::frame::{
    CONTROL, Cause, Datagram, FRAME_MAX, Frame, HostPort, PPID_DATA, PPID_DATAGRAM, PPID_FRAME,
    Refusal, Target,
};
use crate::gate::Gate;
use crate::relay::{relay, serve_remote};
use crate::rules::Rules;
use crate::streams::Streams;
use crate::udp;
use crate::window::Budget;

/// Remote forwards that a session may have.
pub const FORWARDS_MAX: u16 = 256;

/// The side of the association that this is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// It connected, and opens odd streams.
    Connecting,
    /// It accepted the association, and opens even streams.
    Accepting,
}

/// How a session behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// The targets that this side connects to for the peer. Ignored on the connecting side, which
    /// only connects to the targets of its own remote forwards.
    pub rules: Rules,
    /// Lets the peer have ports listened on here.
    pub allow_remote_forwards: bool,
    /// The peer may have as many connections open.
    pub connections_max: usize,
    /// Memory that windows share, in bytes; of all sessions that have this budget.
    pub budget: Arc<Budget>,
    /// Bytes of a message of data; best a multiple of what a packet carries.
    pub message_size: usize,
}

impl Options {
    /// Ten thousand connections, 256 MiB, nothing forbidden but remote forwards.
    pub fn new() -> Options {
        Options {
            rules: Rules::default(),
            allow_remote_forwards: false,
            connections_max: 10_000,
            budget: Budget::new(256 << 20),
            message_size: 8 * 1024,
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options::new()
    }
}

/// A remote forward that the connecting side asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Where the far side listens.
    pub at: HostPort,
    /// Where its connections lead, from here.
    pub to: HostPort,
}

/// Counters of a session.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections open now.
    pub open: u64,
    /// Connections opened so far, by either side.
    pub opened: u64,
    /// Of these, those that were refused.
    pub refused: u64,
    /// Bytes from local connections to the peer.
    pub bytes_sent: u64,
    /// Bytes from the peer to local connections.
    pub bytes_received: u64,
}

/// Why a session is over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionEnd {
    /// The association ended.
    #[error(transparent)]
    Closed(#[from] AssocClosed),
    /// The peer shut down.
    #[error("the other side has ended")]
    Shutdown,
    /// The peer broke the protocol.
    #[error("the peer broke the protocol: {0}")]
    Violation(#[from] Violation),
}

#[derive(Default)]
struct Counts {
    opened: AtomicU64,
    refused: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
}

/// A proxy's association.
pub struct Session {
    association: Association,
    side: Side,
    options: Options,
    began: Instant,
    gate: Gate,
    table: Mutex<Table>,
    /// Connections that the peer opened and that are not over.
    theirs: AtomicUsize,
    remotes: Vec<Remote>,
    udp_number: AtomicU64,
    dead: watch::Sender<bool>,
    counts: Counts,
}

struct Table {
    conns: BTreeMap<u16, Arc<Conn>>,
    streams: Streams,
    /// Remote forwards that the peer has asked for.
    forwards: BTreeSet<u16>,
    /// Answers to remote forwards that are awaited.
    listens: BTreeMap<u16, tokio::sync::oneshot::Sender<Result<u16, Refusal>>>,
}

/// A stream whose target is connected.
pub struct Opened(Arc<Conn>);

impl Opened {
    pub(crate) fn conn(&self) -> Arc<Conn> {
        self.0.clone()
    }
}

impl Session {
    /// The session of an association whose peer was admitted. [`run`](Session::run) makes it live.
    pub fn new(
        association: Association,
        side: Side,
        options: Options,
        remotes: Vec<Remote>,
        streams: u16,
    ) -> Arc<Session> {
        let table = Table {
            conns: BTreeMap::new(),
            streams: Streams::new(side == Side::Connecting, streams),
            forwards: BTreeSet::new(),
            listens: BTreeMap::new(),
        };
        Arc::new(Session {
            association,
            side,
            options,
            began: Instant::now(),
            gate: Gate::default(),
            table: Mutex::new(table),
            theirs: AtomicUsize::new(0),
            remotes,
            udp_number: AtomicU64::new(0),
            dead: watch::Sender::new(false),
            counts: Counts::default(),
        })
    }

    /// The association.
    pub fn association(&self) -> &Association {
        &self.association
    }

    /// The counters now.
    pub fn counters(&self) -> Counters {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counters {
            open: self.table().conns.len() as u64,
            opened: read(&self.counts.opened),
            refused: read(&self.counts.refused),
            bytes_sent: read(&self.counts.sent),
            bytes_received: read(&self.counts.received),
        }
    }

    /// The association is over.
    pub fn is_dead(&self) -> bool {
        *self.dead.borrow()
    }

    /// Waits until the association is over.
    pub async fn until_dead(&self) {
        // An error cannot be: the sender is in this very session.
        let _ = self.dead.subscribe().wait_for(|dead| *dead).await;
    }

    // ---- Opening ----

    /// Opens a stream to a target, and waits until the far side has connected it.
    pub async fn open(self: &Arc<Self>, target: Target) -> Result<Opened, Refusal> {
        let conn = self.begin(&target)?;
        // Ends the connection if the caller gives up.
        let unanswered = Unanswered(Some(conn.clone()));
        let answer = async {
            self.send_frame(conn.stream, Some(Frame::Open(target))).await?;
            conn.answer().await
        };
        let answer = tokio::select! {
            answer = answer => answer,
            () = self.until_dead() => Err(Broken::Session),
        };
        match answer {
            Ok(Ok(())) => {
                unanswered.forget();
                Ok(Opened(conn))
            }
            Ok(Err(why)) => {
                self.counts.refused.fetch_add(1, Ordering::Relaxed);
                Err(why)
            }
            Err(_) => Err(lost()),
        }
    }

    /// Opens a stream to a target for `tcp` and relays until it ends. Data does not wait for the
    /// answer, which saves a round trip. The error is the far side's refusal, after which `tcp` was
    /// reset, as it is when the association ends first.
    pub async fn relay(self: &Arc<Self>, target: Target, tcp: TcpStream) -> Result<(), Refusal> {
        let conn = match self.begin(&target) {
            Ok(conn) => conn,
            Err(why) => {
                crate::reset(&tcp);
                return Err(why);
            }
        };
        if self.send_frame(conn.stream, Some(Frame::Open(target))).await.is_err() {
            crate::reset(&tcp);
            return Err(lost());
        }
        relay(tcp, &conn).await;
        match conn.take_answer() {
            Some(Err(why)) => {
                self.counts.refused.fetch_add(1, Ordering::Relaxed);
                Err(why)
            }
            _ => Ok(()),
        }
    }

    /// Takes a stream for a connection.
    fn begin(self: &Arc<Self>, target: &Target) -> Result<Arc<Conn>, Refusal> {
        if let Target::Tcp(to) = target {
            to.check()?;
        }
        if self.is_dead() {
            return Err(lost());
        }
        let udp = match target {
            Target::Udp(number) => Some(*number),
            _ => None,
        };
        let mut table = self.table();
        let busy = || Refusal::new(Cause::Busy, "no stream is free");
        let stream = table.streams.take().ok_or_else(busy)?;
        let conn = Conn::new(self, stream, true, udp);
        table.conns.insert(stream, conn.clone());
        self.counts.opened.fetch_add(1, Ordering::Relaxed);
        Ok(conn)
    }

    /// A number for an association of datagrams.
    pub fn udp_number(&self) -> u32 {
        self.udp_number.fetch_add(1, Ordering::Relaxed) as u32
    }

    /// Asks the far side to listen for the remote forward of this number; its port.
    pub async fn listen(&self, id: u16) -> Result<u16, Refusal> {
        let Some(remote) = self.remotes.get(usize::from(id)) else {
            return Err(Refusal::new(Cause::Failed, "no such forward"));
        };
        remote.at.check()?;
        let (answer, answered) = tokio::sync::oneshot::channel();
        self.table().listens.insert(id, answer);
        let frame = Frame::Listen { id, at: remote.at.clone() };
        self.send_frame(CONTROL, Some(frame)).await.map_err(|_| lost())?;
        answered.await.map_err(|_| lost())?
    }

    /// Sends something that is acknowledged, so that a far side that is gone is noticed.
    pub async fn ping(&self) {
        // If the association is over, whoever runs it hears of that.
        let _ = self.send_frame(CONTROL, Some(Frame::Ping)).await;
    }

    // ---- What arrives ----

    /// Reads the association until it is over. Then all local connections are reset.
    pub async fn run(self: &Arc<Self>) -> SessionEnd {
        let mut tasks = JoinSet::new();
        let end = loop {
            tokio::select! {
                message = self.association.recv() => {
                    let message = match message {
                        Ok(Some(message)) => message,
                        Ok(None) => break SessionEnd::Shutdown,
                        Err(closed) => break SessionEnd::Closed(closed),
                    };
                    if let Err(violation) = self.on_message(message, &mut tasks) {
                        let reason = format!("protocol error: {violation}");
                        self.association.abort(reason.as_bytes());
                        break SessionEnd::Violation(violation);
                    }
                }
                // A task that panicked has said so; the others go on.
                Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
            }
        };
        self.die();
        // They notice it, and reset their connections.
        while tasks.join_next().await.is_some() {}
        end
    }

    fn die(&self) {
        self.dead.send_replace(true);
        let mut table = self.table();
        table.conns.clear();
        table.listens.clear();
    }

    fn on_message(
        self: &Arc<Self>,
        message: Message,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), Violation> {
        let stream = message.stream.0;
        if message.is_cut_off {
            return Err(Violation("a message that was given up"));
        }
        if message.ppid == PPID_DATA {
            let conn = self.conn(stream).ok_or(Violation("data of no connection"))?;
            if conn.udp.is_some() || message.unordered {
                return Err(Violation("data among datagrams"));
            }
            return conn.on_data(message.payload.into_iter().collect());
        }
        // Longer than the receive buffer, which neither may be.
        if !message.end_of_message {
            return Err(Violation("a frame without end"));
        }
        match message.ppid {
            PPID_FRAME if message.payload.len() <= FRAME_MAX && !message.unordered => {
                let frame = Frame::decode(&message.payload.to_vec());
                let frame = frame.map_err(|_| Violation("a frame that cannot be read"))?;
                self.on_frame(stream, frame, tasks)
            }
            PPID_DATAGRAM => {
                let bytes = Bytes::from(message.payload.to_vec());
                self.on_datagram(stream, bytes)
            }
            _ => Err(Violation("a message of another protocol")),
        }
    }

    fn on_datagram(&self, stream: u16, bytes: Bytes) -> Result<(), Violation> {
        let datagram = Datagram::decode(&bytes);
        let datagram = datagram.map_err(|_| Violation("a datagram that cannot be read"))?;
        // One of an earlier use of the stream is late, which is nobody's fault.
        if let Some(conn) = self.conn(stream).filter(|conn| conn.udp == Some(datagram.number)) {
            conn.on_datagram(bytes);
        }
        Ok(())
    }

    fn on_frame(
        self: &Arc<Self>,
        stream: u16,
        frame: Frame,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), Violation> {
        if stream == CONTROL {
            return self.on_control(frame, tasks);
        }
        if let Frame::Open(target) = frame {
            return self.on_open(stream, target, tasks);
        }
        let conn = self.conn(stream).ok_or(Violation("a frame of no connection"))?;
        if conn.on_frame(frame)? {
            self.remove(stream);
        }
        Ok(())
    }

    fn on_open(
        self: &Arc<Self>,
        stream: u16,
        target: Target,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), Violation> {
        let theirs_are_odd = self.side == Side::Accepting;
        if (stream % 2 == 1) != theirs_are_odd {
            return Err(Violation("a stream that is ours to open"));
        }
        let may_open = match target {
            Target::Tcp(_) | Target::Udp(_) => self.side == Side::Accepting,
            Target::Forwarded(_) => self.side == Side::Connecting,
        };
        if !may_open {
            return Err(Violation("a target that is not the peer's to name"));
        }
        let udp = match &target {
            Target::Udp(number) => Some(*number),
            _ => None,
        };
        let conn = Conn::new(self, stream, false, udp);
        if self.table().conns.insert(stream, conn.clone()).is_some() {
            return Err(Violation("a stream that is in use"));
        }
        self.counts.opened.fetch_add(1, Ordering::Relaxed);
        let is_busy = self.theirs.fetch_add(1, Ordering::Relaxed) >= self.options.connections_max;
        tasks.spawn(async move {
            if is_busy {
                let session = conn.session.clone();
                session.counts.refused.fetch_add(1, Ordering::Relaxed);
                conn.refuse(Refusal::new(Cause::Busy, "")).await;
            } else if conn.udp.is_some() {
                udp::serve_remote(&conn).await;
            } else {
                serve_remote(conn, target).await;
            }
        });
        Ok(())
    }

    fn on_control(
        self: &Arc<Self>,
        frame: Frame,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), Violation> {
        match (frame, self.side) {
            (Frame::Ping, _) => Ok(()),
            (Frame::Listen { id, .. }, Side::Accepting) if id >= FORWARDS_MAX => {
                Err(Violation("a remote forward of too high a number"))
            }
            (Frame::Listen { id, at }, Side::Accepting) => {
                if !self.table().forwards.insert(id) {
                    return Err(Violation("a remote forward that exists"));
                }
                let session = self.clone();
                tasks.spawn(async move { session.forward(id, at).await });
                Ok(())
            }
            (Frame::Listening { id, port }, Side::Connecting) => self.on_listening(id, Ok(port)),
            (Frame::NotListening { id, why }, Side::Connecting) => self.on_listening(id, Err(why)),
            _ => Err(Violation("a frame out of place")),
        }
    }

    fn on_listening(&self, id: u16, result: Result<u16, Refusal>) -> Result<(), Violation> {
        let answer = self.table().listens.remove(&id);
        // An error means that nobody waits any more.
        let _ = answer.ok_or(Violation("an answer that nobody asked for"))?.send(result);
        Ok(())
    }

    /// Listens for the peer, and opens a stream to it for each connection that comes.
    async fn forward(self: Arc<Self>, id: u16, at: HostPort) {
        let not = |why| Frame::NotListening { id, why };
        let listener = if self.options.allow_remote_forwards {
            listen(&at).await
        } else {
            Err(Refusal::new(
                Cause::NotAllowed,
                "remote forwards are off there; --allow-remote-forwards turns them on",
            ))
        };
        let (port, listener) = match listener {
            Ok(bound) => bound,
            Err(why) => return drop(self.send_frame(CONTROL, Some(not(why))).await),
        };
        if self.send_frame(CONTROL, Some(Frame::Listening { id, port })).await.is_err() {
            return;
        }
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((tcp, _)) => {
                        let session = self.clone();
                        tasks.spawn(async move {
                            let target = Target::Forwarded(id);
                            // A refusal has reset the connection, which is all that can be said.
                            let _ = session.relay(target, tcp).await;
                        });
                    }
                    // For want of descriptors for instance.
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                },
                Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
                () = self.until_dead() => break,
            }
        }
        while tasks.join_next().await.is_some() {}
    }

    /// Connects to a target for the peer.
    pub(crate) async fn dial(&self, target: &Target) -> Result<TcpStream, Refusal> {
        let (to, rules) = match target {
            Target::Tcp(to) => (to, &self.options.rules),
            Target::Forwarded(id) => match self.remotes.get(usize::from(*id)) {
                Some(remote) => (&remote.to, &Rules::default()),
                None => return Err(Refusal::new(Cause::Failed, "no such forward")),
            },
            Target::Udp(_) => return Err(Refusal::new(Cause::Failed, "no TCP target")),
        };
        let refused = |why| {
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
            why
        };
        let addresses = dial::resolve(to).await.map_err(refused)?;
        let allowed = rules.allowed(&to.host, &addresses);
        if allowed.is_empty() {
            return Err(refused(Refusal::new(Cause::NotAllowed, to.to_string())));
        }
        dial::connect(&allowed).await.map_err(refused)
    }

    // ---- For connections ----

    pub(crate) fn rules(&self) -> &Rules {
        &self.options.rules
    }

    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.options.budget
    }

    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub(crate) fn message_size(&self) -> usize {
        self.options.message_size
    }

    pub(crate) fn count_up(&self, bytes: usize) {
        self.counts.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_down(&self, bytes: usize) {
        self.counts.received.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) async fn turn(&self) -> Result<Turn<'_, ()>, Broken> {
        self.gate.turn(&self.association).await.map_err(|_| Broken::Session)
    }

    pub(crate) async fn send_data(&self, stream: u16, data: Bytes) -> Result<(), Broken> {
        self.send(stream, PPID_DATA, false, data).await
    }

    pub(crate) async fn send_datagram(&self, stream: u16, data: Bytes) -> Result<(), Broken> {
        self.send(stream, PPID_DATAGRAM, true, data).await
    }

    /// Sends a frame, if there is one.
    pub(crate) async fn send_frame(&self, stream: u16, frame: Option<Frame>) -> Result<(), Broken> {
        match frame {
            Some(frame) => self.send(stream, PPID_FRAME, false, frame.encode()).await,
            None => Ok(()),
        }
    }

    async fn send(
        &self,
        stream: u16,
        ppid: u32,
        unordered: bool,
        data: Bytes,
    ) -> Result<(), Broken> {
        let options =
            SendOptions { stream: StreamId(stream), ppid, unordered, ..SendOptions::default() };
        self.association.send(options, data).await.map_err(|_| Broken::Session)
    }

    /// A connection is over: its stream is free again.
    pub(crate) fn remove(&self, stream: u16) {
        let mut table = self.table();
        let Some(conn) = table.conns.remove(&stream) else { return };
        if conn.is_opener {
            table.streams.give_back(stream);
        } else {
            self.theirs.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn conn(&self, stream: u16) -> Option<Arc<Conn>> {
        self.table().conns.get(&stream).cloned()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Listens for a remote forward, and tells its port.
async fn listen(at: &HostPort) -> Result<(u16, TcpListener), Refusal> {
    at.check()?;
    let bound = TcpListener::bind((at.host.as_str(), at.port)).await;
    bound
        .and_then(|listener| Ok((listener.local_addr()?.port(), listener)))
        .map_err(|e| Refusal::new(Cause::Failed, format!("{at}: {e}")))
}

fn lost() -> Refusal {
    Refusal::new(Cause::Failed, "the association was lost")
}

/// A connection that waits for its answer; ended when dropped.
struct Unanswered(Option<Arc<Conn>>);

impl Unanswered {
    fn forget(mut self) {
        self.0 = None;
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(conn) = self.0.take() {
            tokio::spawn(async move { conn.end().await });
        }
    }
}
