//! Hosts with a port on the command line, of servers that speak STUN or TURN.

use std::net::SocketAddr;

use crate::args::TURN_PORT;
use crate::connect::link_local;
use crate::failure::{Failure, Result};

/// A host as the user writes it, not looked up yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    /// A name, or an address without brackets.
    pub(crate) name: String,
    pub(crate) port: u16,
}

impl Host {
    /// Reads a word of `option`: HOST or HOST:PORT.
    ///
    /// # Errors
    /// It is none, or an address of the link alone.
    pub(crate) fn read(option: &str, text: &str) -> Result<Host> {
        if let Some(error) = link_local::error(text) {
            return Err(
                Failure::usage(format!("{option}: {error}")).hint(link_local::OTHER_ADDRESS)
            );
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Host { name: address.ip().to_string(), port: address.port() });
        }
        let wrong = || {
            Failure::usage(format!("{option}: {text:?} is not HOST or HOST:PORT"))
                .hint(format!("write it like server.example:{TURN_PORT} or 192.0.2.1"))
        };
        let (name, port) = match text.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') => (host, port.parse().map_err(|_| wrong())?),
            _ => (text.trim_matches(['[', ']']), TURN_PORT),
        };
        if name.is_empty() {
            return Err(wrong());
        }
        Ok(Host { name: name.to_owned(), port })
    }

    /// Looks the name up: the addresses of the host.
    pub(crate) async fn look_up(&self) -> std::io::Result<Vec<SocketAddr>> {
        let found = tokio::net::lookup_host((self.name.as_str(), self.port)).await?;
        Ok(found.map(manypath::unmapped).collect())
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.name, self.port)
    }
}
