//! Records the transfer of a run as `manypath send --trace` records one over sockets.

use std::io::{self, Write};

use manypath_proto::config::{Config, Origin};
use manypath_proto::sizes::{IPV4_HEADER, UDP_IPV4_HEADERS};
use manypath_proto::{Association, Event, Instant};
use manypath_trace::{Recorded, Recorder, Recording, SCHEMA_VERSION};

use crate::ids::NodeId;

/// The record of what one host sends. It begins with the content, once DATA has been sent.
#[derive(Debug)]
pub(crate) struct RunRecord<W> {
    node: NodeId,
    state: State<W>,
    /// When the application sends its content.
    begin: Instant,
    content_bytes: Option<u64>,
    is_complete: bool,
    last: Instant,
}

#[derive(Debug)]
enum State<W> {
    Waiting(W, Box<Recording>),
    Running(Recorder<W>, Instant),
    /// The writer failed.
    Over,
}

impl<W: Write> RunRecord<W> {
    pub(crate) fn new(
        node: NodeId,
        config: &Config,
        is_protected: bool,
        begin: Instant,
        content_bytes: Option<u64>,
        out: W,
    ) -> RunRecord<W> {
        let header_bytes =
            if config.udp_encapsulation { UDP_IPV4_HEADERS } else { IPV4_HEADER } as u64;
        let overrides = config.explain().into_iter().filter(|p| p.origin == Origin::Override);
        let recording = Recording {
            schema: SCHEMA_VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_s: 0.0,
            profile: config.profile.name().to_owned(),
            preset: config.preset.to_owned(),
            // Simulated packets need no checksum; that is no wish of the user's.
            parameters: overrides
                .filter(|p| p.name != "checksum")
                .map(|p| (p.name.to_owned(), p.value))
                .collect(),
            is_protected,
            header_bytes,
            rate_bps: None,
        };
        let state = State::Waiting(out, Box::new(recording));
        RunRecord { node, state, begin, content_bytes, is_complete: false, last: Instant::ZERO }
    }

    pub(crate) fn association(
        &mut self,
        at: Instant,
        node: NodeId,
        association: &Association,
    ) -> io::Result<()> {
        if node != self.node || at < self.begin {
            return Ok(());
        }
        let stats = association.stats();
        if let State::Waiting(..) = self.state {
            let Some(first) = stats.first_data_sent else { return Ok(()) };
            let State::Waiting(out, recording) = std::mem::replace(&mut self.state, State::Over)
            else {
                return Ok(());
            };
            self.state = State::Running(Recorder::new(out, *recording)?, first.max(self.begin));
        }
        let State::Running(recorder, first) = &mut self.state else { return Ok(()) };
        let now = Instant::ZERO + at.saturating_since(*first);
        let is_complete = stats.bytes_queued > 0 && stats.bytes_acked == stats.bytes_queued;
        self.last = now;
        if now >= recorder.next_look() || (is_complete && !self.is_complete) {
            recorder.look(now, &stats, association.paths())?;
        }
        self.is_complete = is_complete;
        Ok(())
    }

    pub(crate) fn event(&mut self, at: Instant, node: NodeId, event: &Event) -> io::Result<()> {
        match &mut self.state {
            State::Running(recorder, first) if node == self.node => {
                recorder.event(Instant::ZERO + at.saturating_since(*first), event)
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        let State::Running(recorder, _) = self.state else { return Ok(()) };
        let (completed, content_bytes) = (self.is_complete, self.content_bytes);
        recorder.finish(self.last, Recorded { completed, content_bytes, transfer_time_s: None })?;
        Ok(())
    }
}
