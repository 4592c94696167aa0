//! The near end of an association: an endpoint that connects, for all commands that do.

use manypath::config::Config;
use manypath::{Endpoint, EndpointOptions, Relay, Security};

use crate::connect::bind::Bind;
use crate::connect::transport::{bind_failure, open_with};
use crate::connect::via::RelayWatch;
use crate::failure::Result;
use crate::screen::Screen;

/// The settings of the near end.
pub(crate) struct Near<'a> {
    pub(crate) config: Config,
    pub(crate) bind: &'a [Bind],
    /// Relays with a path through each.
    pub(crate) relays: Vec<Relay>,
    /// Relays that those know of are used, too.
    pub(crate) relay_peers: bool,
    pub(crate) security: Security,
}

/// The endpoint, whose relays are told of while it is kept.
pub(crate) struct NearEnd {
    pub(crate) endpoint: Endpoint,
    _relay_watch: RelayWatch,
}

impl Near<'_> {
    /// Opens the endpoint, and tells the user what becomes of the relays.
    pub(crate) fn open(self, screen: &Screen) -> Result<NearEnd> {
        let endpoint = self.endpoint()?;
        let relay_watch = RelayWatch::start(&endpoint, screen);
        Ok(NearEnd { endpoint, _relay_watch: relay_watch })
    }

    /// Opens the endpoint.
    pub(crate) fn endpoint(self) -> Result<Endpoint> {
        let Near { config, bind, relays, relay_peers, security } = self;
        let options = EndpointOptions { relays, relay_peers, ..EndpointOptions::client(security) };
        open_with(options, config, bind).map_err(bind_failure)
    }
}

impl NearEnd {
    /// Tells the user what the endpoint has to say about addresses and interfaces.
    pub(crate) fn tell_notes(&self, screen: &Screen) {
        for note in self.endpoint.notes() {
            screen.line(note);
        }
    }
}
