//! A SOCKS5 server (RFC 1928) for local programs: CONNECT and UDP ASSOCIATE.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fast_socks5::server::Socks5ServerProtocol;
use fast_socks5::util::target_addr::TargetAddr;
use fast_socks5::{ReplyError, Socks5Command, new_udp_header, parse_udp_request};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::frame::{Cause, HostPort, Refusal, Target};
use crate::relay::unspecified;
use crate::session::Session;
use crate::udp;

/// How long a client may take to say what it wants.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// Longest datagram with its header.
const DATAGRAM_MAX: usize = 65_535;

/// Why a client of SOCKS was not served.
#[derive(Debug, thiserror::Error)]
pub enum SocksError {
    /// It does not speak SOCKS5, or too slowly.
    #[error("a client that does not speak SOCKS5: {0}")]
    Protocol(String),
    /// The far side refused it; the client was told.
    #[error("{to}: {why}")]
    Refused {
        /// The target.
        to: HostPort,
        /// The reason.
        why: Refusal,
    },
}

/// Serves one client until its connection ends.
pub async fn serve(session: &Arc<Session>, tcp: TcpStream) -> Result<(), SocksError> {
    let wrong = |e: &dyn std::fmt::Display| SocksError::Protocol(e.to_string());
    let local = tcp.local_addr().map_err(|e| wrong(&e))?;
    let peer = tcp.peer_addr().map_err(|e| wrong(&e))?;
    let handshake = async {
        let proto = Socks5ServerProtocol::accept_no_auth(tcp).await?;
        proto.read_command().await
    };
    let (proto, command, target) = timeout(HANDSHAKE_TIME_MAX, handshake)
        .await
        .map_err(|_| SocksError::Protocol("too slow".to_owned()))?
        .map_err(|e| wrong(&e))?;
    let (host, port) = target.into_string_and_port();
    let host = host.trim_matches(['[', ']']).to_owned();
    let to = HostPort { host, port };
    match command {
        Socks5Command::TCPConnect => match session.open(Target::Tcp(to.clone())).await {
            Ok(opened) => {
                let tcp = proto.reply_success(unspecified()).await.map_err(|e| wrong(&e))?;
                opened.relay(tcp).await;
                Ok(())
            }
            Err(why) => {
                proto.reply_error(&reply(why.cause)).await.map_err(|e| wrong(&e))?;
                Err(SocksError::Refused { to, why })
            }
        },
        Socks5Command::UDPAssociate => {
            let client = Client { ip: peer.ip(), place: named_place(&to, peer.ip()) };
            let refused = |why| SocksError::Refused { to, why };
            let bound = async {
                let socket = UdpSocket::bind((local.ip(), 0)).await?;
                Ok::<_, std::io::Error>((socket.local_addr()?, socket))
            };
            let (at, socket) = match bound.await {
                Ok(bound) => bound,
                Err(e) => {
                    proto.reply_error(&ReplyError::GeneralFailure).await.map_err(|e| wrong(&e))?;
                    return Err(refused(Refusal::new(Cause::Failed, e.to_string())));
                }
            };
            let opened = match udp::open(session).await {
                Ok(opened) => opened,
                Err(why) => {
                    proto.reply_error(&reply(why.cause)).await.map_err(|e| wrong(&e))?;
                    return Err(refused(why));
                }
            };
            let mut tcp = proto.reply_success(at).await.map_err(|e| wrong(&e))?;
            tokio::select! {
                // RFC 1928 §7: it lasts as long as the TCP connection that asked for it.
                _ = until_end(&mut tcp) => {}
                () = session.until_dead() => crate::reset(&tcp),
                () = datagrams(&opened, &socket, client) => {}
            }
            opened.end().await;
            Ok(())
        }
        Socks5Command::TCPBind => {
            let refusal = Refusal::new(Cause::NotAllowed, "SOCKS BIND is not supported");
            proto.reply_error(&ReplyError::CommandNotSupported).await.map_err(|e| wrong(&e))?;
            Err(SocksError::Refused { to, why: refusal })
        }
    }
}

async fn until_end(tcp: &mut TcpStream) {
    let mut ignored = [0; 64];
    while matches!(tcp.read(&mut ignored).await, Ok(n) if n > 0) {}
}

/// The program that datagrams are passed on for, and nobody else's (RFC 1928 §7).
struct Client {
    /// The address of its TCP connection.
    ip: IpAddr,
    /// Where it sends from: as it said, or as its first datagram showed.
    place: Option<SocketAddr>,
}

impl Client {
    fn is_at(&self, from: SocketAddr) -> bool {
        from.ip() == self.ip && self.place.is_none_or(|place| place.port() == from.port())
    }
}

/// The place that a client at `ip` says that it will send from (RFC 1928 §6); none if it does not
/// know, or names an address that is not its own, as behind a NAT.
fn named_place(named: &HostPort, ip: IpAddr) -> Option<SocketAddr> {
    let host: IpAddr = named.host.parse().ok()?;
    let is_own = host.is_unspecified() || host.to_canonical() == ip.to_canonical();
    (is_own && named.port != 0).then(|| SocketAddr::new(ip, named.port))
}

/// Datagrams of a client, in both directions.
async fn datagrams(opened: &crate::Opened, socket: &UdpSocket, mut client: Client) {
    let mut buffer = vec![0; DATAGRAM_MAX];
    loop {
        tokio::select! {
            received = socket.recv_from(&mut buffer) => {
                let Ok((length, from)) = received else { continue };
                if !client.is_at(from) {
                    continue;
                }
                // Fragments, which hardly anybody sends, may be dropped (RFC 1928 §7).
                let Ok((0, to, data)) = parse_udp_request(&buffer[..length]).await else { continue };
                client.place = Some(from);
                let (host, to_port) = TargetAddr::into_string_and_port(to);
                let to = HostPort { host: host.trim_matches(['[', ']']).to_owned(), port: to_port };
                if opened.send_datagram(to, Bytes::copy_from_slice(data)).await.is_err() {
                    return;
                }
            }
            datagram = opened.recv_datagram() => {
                let Some(datagram) = datagram else { return };
                let (Some(to), Ok(ip)) = (client.place, datagram.address.host.parse::<IpAddr>()) else {
                    continue;
                };
                let from = SocketAddr::new(ip, datagram.address.port);
                let Ok(mut bytes) = new_udp_header(from) else { continue };
                bytes.extend_from_slice(&datagram.data);
                // An error is of an earlier datagram.
                let _ = socket.send_to(&bytes, to).await;
            }
        }
    }
}

fn reply(cause: Cause) -> ReplyError {
    match cause {
        Cause::NotAllowed => ReplyError::ConnectionNotAllowed,
        Cause::NetworkUnreachable => ReplyError::NetworkUnreachable,
        Cause::HostUnreachable => ReplyError::HostUnreachable,
        Cause::ConnectionRefused => ReplyError::ConnectionRefused,
        Cause::TimedOut => ReplyError::TtlExpired,
        Cause::Failed | Cause::Busy => ReplyError::GeneralFailure,
    }
}
