//! The local ports: who comes there is served over the association of the moment.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use manypath::unmapped;
use manypath_proxy::frame::{HostPort, Target};
use manypath_proxy::{Session, reset, socks};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::connect::strangers::StrangerLines;
use crate::failure::{Failure, Result};

/// The association of the moment; none while there is no connection.
pub(super) type Current = watch::Receiver<Option<Arc<Session>>>;

/// How long a new local connection waits for an association.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Connections that the system keeps until they are accepted.
const BACKLOG: i32 = 1024;
/// The pause after a connection could not be accepted, for want of descriptors for instance.
const PAUSE: Duration = Duration::from_millis(100);

/// The purpose of a local port.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Forwards to a target.
    Forward(HostPort),
    /// SOCKS5.
    Socks,
    /// Connections to any address, redirected here by the system: they go to where they were meant
    /// to go.
    Transparent,
}

/// A local port.
pub(super) struct Port {
    pub(super) listeners: Vec<TcpListener>,
    pub(super) kind: Kind,
}

impl Port {
    /// Listens at every address of the name: `localhost` has two.
    pub(super) async fn bind(at: &HostPort, kind: Kind, option: &str) -> Result<Port> {
        let failed = |e: io::Error| {
            let failure = Failure::failed(format!("{option}: cannot listen on {at}: {e}"));
            match (e.kind(), &kind) {
                (io::ErrorKind::AddrInUse, _) => {
                    failure.hint("choose another port; 0 takes a free one")
                }
                (io::ErrorKind::PermissionDenied, Kind::Transparent) => failure.hint(
                    "it needs CAP_NET_ADMIN: run it as root, or give the program the capability",
                ),
                _ => failure,
            }
        };
        let mut listeners: Vec<TcpListener> = Vec::new();
        for mut address in addresses(at).await.map_err(failed)? {
            // A free port is the same at all addresses.
            if let Some(Ok(first)) = listeners.first().map(TcpListener::local_addr) {
                address.set_port(first.port());
            }
            let bound = match kind {
                Kind::Transparent => transparent(address),
                Kind::Forward(_) | Kind::Socks => TcpListener::bind(address).await,
            };
            match bound {
                Ok(listener) => listeners.push(listener),
                // A host without IPv6 may have it in its list of hosts; and a name may have the
                // same address twice.
                Err(_) if !listeners.is_empty() => {}
                Err(e) if e.kind() == io::ErrorKind::AddrNotAvailable => {}
                Err(e) => return Err(failed(e)),
            }
        }
        if listeners.is_empty() {
            Err(failed(io::ErrorKind::AddrNotAvailable.into()))
        } else {
            Ok(Port { listeners, kind })
        }
    }

    /// The addresses it listens at.
    pub(super) fn addresses(&self) -> Vec<String> {
        let addresses = self.listeners.iter().filter_map(|l| l.local_addr().ok());
        addresses.map(|a| a.to_string()).collect()
    }

    /// Serves whoever comes, for good.
    pub(super) fn start(self, current: &Current, lines: &StrangerLines) {
        for listener in self.listeners {
            tokio::spawn(serve(listener, self.kind.clone(), current.clone(), lines.clone()));
        }
    }
}

/// The addresses of a name; `localhost` is loopback everywhere (RFC 6761 §6.3).
async fn addresses(at: &HostPort) -> io::Result<Vec<SocketAddr>> {
    if at.host.eq_ignore_ascii_case("localhost") {
        let (v4, v6) = (Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into());
        return Ok(vec![SocketAddr::new(v4, at.port), SocketAddr::new(v6, at.port)]);
    }
    Ok(tokio::net::lookup_host((at.host.as_str(), at.port)).await?.map(unmapped).collect())
}

/// Listens for connections to any address that the system redirects here.
#[cfg(target_os = "linux")]
fn transparent(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    match address {
        SocketAddr::V4(_) => socket.set_ip_transparent_v4(true)?,
        SocketAddr::V6(_) => socket.set_ip_transparent_v6(true)?,
    }
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

#[cfg(not(target_os = "linux"))]
fn transparent(_: SocketAddr) -> io::Result<TcpListener> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "only Linux redirects connections like this"))
}

async fn serve(listener: TcpListener, kind: Kind, current: Current, lines: StrangerLines) {
    loop {
        match listener.accept().await {
            // A connection made to this port itself leads nowhere else.
            Ok((tcp, _))
                if matches!(kind, Kind::Transparent)
                    && tcp.local_addr().ok() == listener.local_addr().ok() =>
            {
                reset(&tcp);
                lines.say("a connection was reset: it was made to the port of --tproxy itself");
            }
            Ok((tcp, _)) => {
                let (kind, current, lines) = (kind.clone(), current.clone(), lines.clone());
                tokio::spawn(async move {
                    if let Err(why) = connection(tcp, kind, current).await {
                        lines.say(&why);
                    }
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn connection(
    tcp: TcpStream,
    kind: Kind,
    mut current: Current,
) -> std::result::Result<(), String> {
    let is_live = |session: &Option<Arc<Session>>| session.as_ref().is_some_and(|s| !s.is_dead());
    let session = match timeout(WAIT_MAX, current.wait_for(is_live)).await {
        Ok(Ok(session)) => session.clone(),
        _ => None,
    };
    let Some(session) = session else {
        reset(&tcp);
        return Err("a connection was reset: the far side is not there".to_owned());
    };
    match kind {
        Kind::Forward(to) => {
            let served = session.relay(Target::Tcp(to.clone()), tcp).await;
            served.map_err(|why| format!("{to}: {why}"))
        }
        Kind::Transparent => {
            // The address that the program meant.
            let to = tcp.local_addr().map_err(|e| e.to_string())?;
            let to = HostPort { host: to.ip().to_canonical().to_string(), port: to.port() };
            let served = session.relay(Target::Tcp(to.clone()), tcp).await;
            served.map_err(|why| format!("{to}: {why}"))
        }
        Kind::Socks => socks::serve(&session, tcp).await.map_err(|why| why.to_string()),
    }
}
