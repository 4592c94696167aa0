//! The receiver that `manypath send` was told.

use std::net::SocketAddr;

use manypath::{ConnectTarget, Security};
use manypath_transfer::Showing;
use manypath_trust::password::Password;

use crate::args::SendArgs;
use crate::connect::dest::Destination;
use crate::connect::secret::{SecretKind, Sources};
use crate::connect::security::Calling;
use crate::connect::transport;
use crate::failure::{Failure, Result};
use crate::screen::Screen;

/// The receiver, and how it is to be met.
pub(super) struct Receiver {
    /// As a person reads it.
    pub(super) name: String,
    pub(super) target: ConnectTarget,
    /// Every address of it.
    pub(super) remotes: Vec<SocketAddr>,
    pub(super) security: Security,
    pub(super) secret: SecretKind,
    /// How the token gets to it.
    pub(super) showing: Showing,
}

impl Receiver {
    pub(super) async fn of(
        dest: &Destination,
        args: &SendArgs,
        screen: &Screen,
    ) -> Result<Receiver> {
        let key = dest.key(args.security.insecure)?;
        let sources = Sources::new(args, dest)?;
        let calling = Calling::new(&args.security, dest.host(), key, screen)?;
        let target = dest.target(dest.resolve().await?.told(screen));
        let target = transport::over_ip(args.ip, dest, target)?;
        let remotes = transport::places(&target);
        let is_code = sources.is_code();
        let token = sources.read(dest, screen)?;
        let secret = if is_code { SecretKind::Code } else { SecretKind::of(dest, &token) };
        let name = match dest.local() {
            Some(local) => format!("{} ({})", local.name, transport::addresses(&remotes)),
            None => transport::addresses(&remotes),
        };
        // Only a receiver that has shown who it is sees the token; others prove that they have it,
        // as this end does. A key that was only announced shows nothing.
        let has_certificate = args.security.certificates.cert.is_some();
        let knows_peer = calling.knows_peer && (has_certificate || dest.local().is_none());
        let is_protected = calling.is_protected();
        let showing = if !is_protected || (knows_peer && !is_code) {
            Showing::Open(token)
        } else if !token.is_empty() {
            Showing::Proved(Password::new(token).map_err(|e| Failure::usage(e.to_string()))?)
        } else if knows_peer {
            Showing::Open(token)
        } else {
            Showing::Nothing
        };
        Ok(Receiver { name, target, remotes, security: calling.security, secret, showing })
    }
}
