//! The second port of a relay, for Binding requests of STUN only (RFC 5780).

use std::task::Context;

use manypath_proto::{Datagram, Instant};
use manypath_turn::Reply;

use super::{Leaves, RelayServer};
use crate::bind::{BindError, BindTo};
use crate::sockets::UdpSockets;

/// The second UDP port of a relay.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum StunPort {
    /// The port after the one for clients.
    #[default]
    Next,
    /// This one.
    Port(u16),
    /// There is none.
    Off,
}

/// The sockets of the second port, or the reason why there are none.
pub(super) enum Second {
    Off,
    Open(UdpSockets),
    Failed(BindError),
}

impl Second {
    /// Opens the sockets where those for clients on the port `main` are. A relay works without.
    pub(super) fn open(listen: &[BindTo], main: u16, wanted: StunPort) -> Second {
        let port = match wanted {
            StunPort::Off => None,
            StunPort::Port(port) => Some(port),
            StunPort::Next => main.checked_add(1),
        };
        // 0 would be any port, which no firewall knows of.
        let Some(port) = port.filter(|port| *port != 0) else { return Second::Off };
        match UdpSockets::bind(listen, port) {
            Ok(sockets) => Second::Open(sockets),
            Err(error) => Second::Failed(error),
        }
    }

    pub(super) fn port(&self) -> Option<u16> {
        match self {
            Second::Open(sockets) => Some(sockets.bound().port()),
            _ => None,
        }
    }

    pub(super) fn sockets_mut(&mut self) -> Option<&mut UdpSockets> {
        match self {
            Second::Open(sockets) => Some(sockets),
            _ => None,
        }
    }
}

impl RelayServer {
    /// The second UDP port, if it is open.
    pub fn stun_port(&self) -> Option<u16> {
        self.second.port()
    }

    /// The reason why the second port is not open, if it was to be.
    pub fn stun_port_error(&self) -> Option<&BindError> {
        match &self.second {
            Second::Failed(error) => Some(error),
            _ => None,
        }
    }

    pub(super) fn serve_second(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        let Second::Open(sockets) = &self.second else { return false };
        let any = self.receiver.poll_recv(cx, sockets, &mut self.received).is_ready();
        for Datagram { local, remote: client, payload, .. } in self.received.drain(..) {
            self.opener.on = local.ip();
            match self.server.handle_other(now, client, &payload, &self.opener) {
                Reply::Answer(answer) => {
                    self.outgoing.add(Leaves::Second, local, client, &[], &answer);
                }
                Reply::AnswerAt(to, answer) => {
                    self.outgoing.add(Leaves::Second, local, to, &[], &answer);
                }
                Reply::AnswerFromOther(to, answer) => {
                    let from = std::net::SocketAddr::new(local.ip(), self.clients.bound().port());
                    self.outgoing.add(Leaves::Clients, from, to, &[], &answer);
                }
                Reply::None | Reply::ToPeer { .. } => {}
            }
        }
        any
    }
}
