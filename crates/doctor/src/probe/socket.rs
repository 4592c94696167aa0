//! Sockets of probes.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

/// A socket on an address, kept to an interface if one is named, whose packets are never cut.
pub(crate) fn open(source: IpAddr, device: Option<&str>) -> io::Result<UdpSocket> {
    let address = SocketAddr::new(source, 0);
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if let Some(device) = device {
        keep_to(&socket, device)?;
    }
    forbid_fragments(&socket, source)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

#[cfg(target_os = "linux")]
fn keep_to(socket: &Socket, device: &str) -> io::Result<()> {
    socket.bind_device(Some(device.as_bytes()))
}

#[cfg(not(target_os = "linux"))]
fn keep_to(_: &Socket, _: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Sets DF, and ignores what the kernel believes about the path, as the sockets of associations do.
#[cfg(target_os = "linux")]
fn forbid_fragments(socket: &Socket, source: IpAddr) -> io::Result<()> {
    use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
    if source.is_ipv4() {
        return Ok(sockopt::set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::PROBE)?);
    }
    Ok(sockopt::set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::PROBE)?)
}

#[cfg(not(target_os = "linux"))]
fn forbid_fragments(_: &Socket, _: IpAddr) -> io::Result<()> {
    Ok(())
}

/// The next datagram of a connected socket, if one comes in time.
pub(super) fn receive(
    socket: &UdpSocket,
    wait: Duration,
    buffer: &mut [u8],
) -> io::Result<Option<usize>> {
    in_time(socket, wait, |socket| socket.recv(buffer))
}

/// The next datagram and its sender, if one comes in time.
pub(super) fn receive_from(
    socket: &UdpSocket,
    wait: Duration,
    buffer: &mut [u8],
) -> io::Result<Option<(usize, SocketAddr)>> {
    in_time(socket, wait, |socket| socket.recv_from(buffer))
}

fn in_time<T>(
    socket: &UdpSocket,
    wait: Duration,
    receive: impl FnOnce(&UdpSocket) -> io::Result<T>,
) -> io::Result<Option<T>> {
    // Zero would mean to wait forever.
    socket.set_read_timeout(Some(wait.max(Duration::from_millis(1))))?;
    match receive(socket) {
        Ok(received) => Ok(Some(received)),
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

/// True if the error says that a packet was too long for a link.
pub(super) fn is_too_long(error: &io::Error) -> bool {
    #[cfg(target_os = "linux")]
    {
        error.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error())
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = error;
        false
    }
}
