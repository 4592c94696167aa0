//! The near end of an association, for all commands that connect.
//!
//! `send`, `perf client` and `proxy connect` open their associations in these steps:
//!
//! 1. [`Near`] gathers the settings.
//! 2. [`Near::open`] opens the endpoint.
//! 3. [`NearEnd::announce`] tells the user, and other commands, that the endpoint is there.
//! 4. [`NearEnd::connect`] opens an association.
//! 5. [`NearEnd::follow`] watches it.
//!
//! `proxy connect` opens endpoints to look for its far side, so it announces one only once it uses
//! it.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use manypath::config::Config;
use manypath::{
    Association, ConnectTarget, Endpoint, EndpointOptions, Relay, RelayUse, RouteWatch, Security,
    SendOptions,
};
use manypath_live::Total;

use crate::args::{
    BindArgs, IpArgs, RecordArgs, RelayPeersArgs, RelayUseArgs, ReportArgs, TraceArgs,
};
use crate::connect::bind::Bind;
use crate::connect::security::NOT_ENCRYPTED;
use crate::connect::transport::{self, Answer, bind_failure, open_with};
use crate::connect::uplinks;
use crate::connect::via::{self, RelayWatch};
use crate::control::Control;
use crate::failure::{Failure, Result};
use crate::live::Views;
use crate::paths::PathWatch;
use crate::record::{RecordFile, TransferRecord};
use crate::screen::Screen;

/// The settings of the near end.
pub(crate) struct Near<'a> {
    config: Config,
    security: Security,
    screen: &'a Screen,
    bind: &'a [Bind],
    /// SCTP is sent over IP itself.
    is_over_ip: bool,
    relays: Vec<Relay>,
    uses_relay_peers: bool,
    relay_use: RelayUse,
    trace_interval: Option<Duration>,
    record: Option<RecordFile>,
}

/// An endpoint that connects.
pub(crate) struct NearEnd {
    pub(crate) endpoint: Endpoint,
    screen: Screen,
    trace_interval: Option<Duration>,
    record: Option<RecordFile>,
    /// Tells of the relays while the endpoint is kept.
    _relay_watch: RelayWatch,
}

/// The observers of an association.
pub(crate) struct Followed {
    pub(crate) watch: PathWatch,
    /// The record of `--trace`.
    pub(crate) record: Option<TransferRecord>,
    /// Traces the hops of paths while it is kept.
    pub(crate) routes: Option<RouteWatch>,
}

impl<'a> Near<'a> {
    /// A near end on all interfaces that lead to the peer, without relays.
    pub(crate) fn new(config: Config, security: Security, screen: &'a Screen) -> Near<'a> {
        Near {
            config,
            security,
            screen,
            bind: &[],
            is_over_ip: false,
            relays: Vec::new(),
            uses_relay_peers: true,
            relay_use: RelayUse::Beside,
            trace_interval: None,
            record: None,
        }
    }

    /// Takes local addresses or interfaces from `--bind`.
    pub(crate) fn bind(self, args: &'a BindArgs) -> Near<'a> {
        Near { bind: &args.bind, ..self }
    }

    /// Sends SCTP over IP itself, if `--ip` says so.
    pub(crate) fn ip(self, args: IpArgs) -> Near<'a> {
        Near { is_over_ip: args.ip.is_some(), ..self }
    }

    /// Adds a path through each relay, and through those that they know of if the user wants that.
    pub(crate) fn relays(self, relays: Vec<Relay>, peers: &RelayPeersArgs) -> Near<'a> {
        Near { relays, uses_relay_peers: peers.are_wanted(), ..self }
    }

    /// Gives relays the part that the user wants. The relays must be known. `has_relayed` says if
    /// the peer has addresses on relays.
    ///
    /// # Errors
    /// Everything is to go through relays, and there is none.
    pub(crate) fn relay_use(self, args: RelayUseArgs, has_relayed: bool) -> Result<Near<'a>> {
        let relay_use = args.wanted();
        if relay_use == RelayUse::Only && self.relays.is_empty() && !has_relayed {
            return Err(Failure::usage("--relay-only: no relay leads to the other end").hint(
                "name one with --via RELAY, or use the ticket of a listener that has --via RELAY",
            ));
        }
        Ok(Near { relay_use, ..self })
    }

    /// Traces the hops of paths as `--trace-interval` says, if this end sends data. The relays must
    /// be known.
    ///
    /// # Errors
    /// The interval cannot be read, or is out of its range.
    pub(crate) fn trace_hops(self, args: &TraceArgs, sends: bool) -> Result<Near<'a>> {
        let interval = via::trace_interval(args, &self.config, &self.relays)?;
        Ok(Near { trace_interval: if sends { interval } else { None }, ..self })
    }

    /// Records what is sent in the file of `--trace`.
    ///
    /// # Errors
    /// The file cannot be made.
    pub(crate) fn record(self, args: &RecordArgs) -> Result<Near<'a>> {
        Ok(Near { record: RecordFile::create(args.trace.as_deref())?, ..self })
    }

    /// Warns the user if associations are not encrypted.
    pub(crate) fn warn_if_plain(self) -> Near<'a> {
        if !self.is_protected() {
            self.screen.line(NOT_ENCRYPTED);
        }
        self
    }

    /// The size in bytes of messages of bulk data to these addresses.
    pub(crate) fn message_size(&self, remotes: &[SocketAddr]) -> usize {
        let has_relays = !self.relays.is_empty();
        transport::bulk_message_size(&self.config, remotes, has_relays, self.is_protected())
    }

    /// Opens the endpoint, and tells the user what becomes of the relays.
    pub(crate) fn open(self) -> Result<NearEnd> {
        let Near { config, security, screen, bind, relays, uses_relay_peers, relay_use, .. } = self;
        let options = EndpointOptions {
            raw_ip: self.is_over_ip,
            relays,
            relay_peers: uses_relay_peers,
            relay_use,
            ..EndpointOptions::client(security)
        };
        let endpoint = open_with(options, config, bind).map_err(bind_failure)?;
        Ok(NearEnd {
            _relay_watch: RelayWatch::start(&endpoint, screen),
            endpoint,
            screen: screen.clone(),
            trace_interval: self.trace_interval,
            record: self.record,
        })
    }

    fn is_protected(&self) -> bool {
        !matches!(self.security, Security::Plain)
    }
}

impl NearEnd {
    /// Opens the control socket, which exists while the result is kept, and tells the user what the
    /// endpoint has to say about addresses and interfaces.
    pub(crate) fn announce(&self, views: &Views, report: &ReportArgs) -> Control {
        let control = Control::start(&self.endpoint, views, &self.screen, report);
        for note in self.endpoint.notes() {
            self.screen.line(note);
        }
        control
    }

    /// Opens an association as [`transport::connect`] does.
    pub(crate) async fn connect(
        &self,
        target: impl Into<ConnectTarget>,
        limit: Duration,
        hello: Option<(SendOptions, Bytes)>,
        answer: impl AsyncFnMut(&Association) -> Answer,
    ) -> Result<Association> {
        transport::connect(&self.endpoint, target.into(), limit, hello, answer).await
    }

    /// Says which uplinks the association has, and begins to watch its paths, to trace their hops
    /// and to record. `total` is its content, `rate` what the application offers in bit/s, if that
    /// is limited.
    pub(crate) fn follow(
        &mut self,
        association: &Association,
        total: Option<Total>,
        rate: Option<u64>,
    ) -> Followed {
        uplinks::say(association, &self.screen);
        Followed {
            watch: PathWatch::start(association, self.screen.clone(), total),
            routes: via::watch_routes(association, self.trace_interval),
            record: self.record.take().map(|file| file.start(association, rate)),
        }
    }
}
