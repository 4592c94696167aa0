//! Commands to a host, which run now or at a planned time.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use manypath_proto::{Association, Instant, PathId, PathRank, PathState, PathStats};

use super::planned::Planned;
use super::{Host, Pending};
use crate::traffic::{Limits, MessageKind};
use crate::transitions::Cause;

impl Host {
    /// Sends a file of `bytes` on stream 0, in order, in messages of one DATA chunk each. Only the
    /// content of the send buffer is in memory.
    pub fn send_file(&mut self, bytes: u64) {
        self.sender.add(bytes, MessageKind::default());
        self.pending.commands = true;
    }

    /// Sends one message of `length` bytes, after what was to be sent before.
    pub fn send(&mut self, stream: u16, length: usize) {
        let kind = MessageKind { stream, length: Some(length), ..MessageKind::default() };
        self.sender.add(length as u64, kind);
        self.pending.commands = true;
    }

    /// Sends one message of `length` bytes that need not wait for its stream's order.
    pub fn send_unordered(&mut self, stream: u16, length: usize) {
        let limits = Limits::default();
        let kind = MessageKind { stream, unordered: true, length: Some(length), limits };
        self.sender.add(length as u64, kind);
        self.pending.commands = true;
    }

    /// Sends one message of `length` bytes that may be given up.
    pub fn send_limited(&mut self, stream: u16, unordered: bool, length: usize, limits: Limits) {
        let kind = MessageKind { stream, unordered, length: Some(length), limits };
        self.sender.add(length as u64, kind);
        self.pending.commands = true;
    }

    /// Accepts that ordered messages are missing, because the peer gives some up.
    pub fn expect_gaps(&mut self) {
        self.receiver.expects_gaps = true;
    }

    /// Associates at that time and not when the run begins. What the application sends before then
    /// waits, and counts as sent when it was.
    pub fn start_at(&mut self, at: Instant) {
        if std::mem::take(&mut self.pending.associate) {
            self.plan(at, Planned::Associate);
        }
    }

    /// [`send_file`](Self::send_file) at that time.
    pub fn send_file_at(&mut self, at: Instant, bytes: u64) {
        self.send_messages_at(at, bytes, MessageKind::default(), None);
    }

    /// Sends `bytes` in messages of this kind from `at` on: all at once, or one message `every` so
    /// often.
    pub fn send_messages_at(
        &mut self,
        at: Instant,
        bytes: u64,
        kind: MessageKind,
        every: Option<Duration>,
    ) {
        self.plan(at, Planned::Send { bytes, kind, every });
    }

    /// Sends messages of this kind without end from `at` to `until`: what the association has not
    /// taken by then is not sent.
    pub fn send_between(&mut self, at: Instant, until: Instant, kind: MessageKind) {
        self.plan(at, Planned::SendUntil(until, kind));
    }

    /// [`shutdown`](Self::shutdown) at that time.
    pub fn shutdown_at(&mut self, at: Instant) {
        self.plan(at, Planned::Shutdown);
    }

    pub(super) fn plan(&mut self, at: Instant, what: Planned) {
        self.schedule.add(at, what);
        self.pending.commands = true;
    }

    /// Ends the association once it is established and everything is sent and acknowledged.
    pub fn shutdown(&mut self) {
        self.pending.shutdown = true;
        self.pending.commands = true;
    }

    /// Ends the association at once.
    pub fn abort(&mut self, reason: &str) {
        self.pending.abort = Some(reason.as_bytes().to_vec());
        self.pending.commands = true;
    }

    /// Gives peers a receive buffer of `bytes`, as a server does that must know who they are. If it
    /// `admits` them, they get the configured one with their first message.
    pub fn limit_strangers(&mut self, bytes: usize, admits: bool) {
        self.endpoint.set_incoming_window(bytes);
        self.application.admits = admits;
    }

    /// Lets the buffers of all associations grow by this many bytes together.
    pub fn limit_buffer_growth(&mut self, bytes: usize) {
        self.endpoint.set_buffer_reserve(bytes);
    }

    /// Gives the paths from a local address a rank, from now on.
    pub fn set_rank(&mut self, local: IpAddr, rank: PathRank) {
        self.ranks.insert(local, rank);
        self.pending.ranks = true;
        self.pending.commands = true;
    }

    /// [`set_rank`](Self::set_rank) at that time.
    pub fn set_rank_at(&mut self, at: Instant, local: IpAddr, rank: PathRank) {
        self.plan(at, Planned::Rank(local, rank));
    }

    /// Stops to read: the receive buffer fills and the window closes.
    pub fn pause_reading(&mut self) {
        self.application.reads = false;
    }

    /// Reads again.
    pub fn resume_reading(&mut self) {
        self.application.reads = true;
        self.pending.commands = true;
    }

    /// Loses all state of the host and starts again at the same addresses. A host that associates
    /// does so at once. Unsent data is lost.
    pub fn kill_and_restart(&mut self) {
        self.beginnings.restarts += 1;
        self.look(&Cause::Named("unseen"));
        let restarts = self.beginnings.restarts;
        self.endpoint = self.setup.endpoint(Arc::clone(&self.engine_config), restarts);
        self.look(&Cause::Named("restart"));
        self.pending = Pending {
            commands: true,
            associate: !self.setup.connect.is_empty(),
            shutdown: false,
            abort: None,
            link_mtus: true,
            gather: false,
            ranks: !self.ranks.is_empty(),
        };
        self.assoc = None;
        self.sender.clear();
        self.schedule.clear();
        self.begin_search();
        self.new_epoch();
    }

    /// Associates again whenever the association ends other than by shutdown; 50 ms later if it was
    /// not established.
    pub fn reconnect_when_lost(&mut self, reconnects: bool) {
        self.application.reconnects = reconnects;
    }

    /// Runs any other command on the association.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn command<T>(&mut self, command: impl FnOnce(&mut Association) -> T) -> T {
        self.pending.commands = true;
        let id = self.assoc.expect("no association yet");
        command(self.endpoint.assoc_mut(id).expect("hosts forget only what they replace"))
    }

    /// Takes a path out of the association; not the last one that is verified.
    pub fn remove_path(&mut self, now: Instant, path: PathId) {
        let is_verified = |p: &PathStats| p.state != PathState::Unconfirmed && p.id != path;
        if self.paths().iter().any(is_verified) {
            self.command(|assoc| assoc.remove_path(now, path));
        }
    }

    /// Puts a path that the host was given at first back into the association.
    pub fn add_path(&mut self, now: Instant, number: usize) -> Option<PathId> {
        let (local, remote) = *self.setup.connect.get(number)?;
        self.assoc?;
        self.command(|assoc| assoc.add_path(now, local, remote))
    }

    #[inline(never)]
    pub(super) fn carry_out_plans(&mut self, now: Instant) {
        while let Some((at, command)) = self.schedule.take_due(now) {
            self.pending.commands = true;
            match command {
                Planned::Associate => self.pending.associate = true,
                Planned::Gather => self.pending.gather = true,
                Planned::Send { bytes, kind, every: None } => self.sender.add(bytes, kind),
                Planned::Send { bytes, kind, every: Some(every) } => {
                    let length = bytes.min(kind.length.map_or(bytes, |length| length as u64));
                    self.sender.add(length, kind);
                    let left = bytes - length;
                    if left > 0 {
                        let rest = Planned::Send { bytes: left, kind, every: Some(every) };
                        self.plan(at + every, rest);
                    }
                }
                Planned::SendUntil(until, kind) => {
                    self.sender.add(u64::MAX, kind);
                    self.plan(until, Planned::StopSending);
                }
                Planned::Rank(local, rank) => self.set_rank(local, rank),
                Planned::StopSending => self.sender.clear(),
                Planned::Shutdown => self.shutdown(),
            }
        }
    }
}
