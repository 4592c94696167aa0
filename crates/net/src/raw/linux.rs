//! Raw sockets of Linux.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::task::{Context, Poll};

use nix::libc;
use nix::sys::socket::setsockopt;
use socket2::{Domain, Protocol, SockFilter, Socket, Type};
use tokio::io::ReadBuf;
use tokio::net::UdpSocket;

use super::{IcmpReport, SCTP};
use crate::bind::{self, BindError, Bound, Place, PlaceKind};

/// ICMP messages that are read at a time. Anybody may send any number.
const MESSAGES_MAX: usize = 16;
/// Bytes of an ICMP message that are read: the longest that hosts send have 576 over IPv4 (RFC 1812
/// §4.3.2.3) and 1280 over IPv6 (RFC 4443 §2.4). Of a message that is cut the checksum is wrong.
const MESSAGE_MAX: usize = 2048;

/// Opens a raw socket of protocol 132 at one place.
pub(crate) fn open(place: &Place) -> Result<Bound, BindError> {
    let address = SocketAddr::new(place.ip, 0);
    let system = |source| BindError::System { address, source };
    let domain = Domain::for_address(address);
    let protocol = Protocol::from(i32::from(SCTP));
    let socket =
        Socket::new(domain, Type::RAW, Some(protocol)).map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => BindError::RawNotPermitted,
            _ => system(source),
        })?;
    let note = place.device.as_deref().and_then(|device| bind::keep_to_device(&socket, device));
    socket.bind(&address.into()).map_err(|source| bind::refused(address, source))?;
    let is_read = place.kind != PlaceKind::RawMute;
    let keeper = if is_read { keeper(address).ok() } else { None };
    if is_read {
        bind::size_buffers(&socket);
    } else {
        take_nothing(&socket).map_err(system)?;
    }
    // The type is that of another protocol. What it is used for here, to wait and to hand the
    // descriptor on, is the same for all.
    let socket = std::net::UdpSocket::from(socket);
    Ok(Bound { socket, keeper, local: address, place: place.clone(), note })
}

/// A raw socket that queues nothing. While the buffers of all raw sockets for a packet are full,
/// Linux says "protocol unreachable", and peers give their associations up. This one is never full.
fn keeper(address: SocketAddr) -> io::Result<Socket> {
    let protocol = Protocol::from(i32::from(SCTP));
    let keeper = Socket::new(Domain::for_address(address), Type::RAW, Some(protocol))?;
    take_nothing(&keeper)?;
    keeper.bind(&address.into())?;
    Ok(keeper)
}

/// Has the kernel drop all that arrives at a socket.
fn take_nothing(socket: &Socket) -> io::Result<()> {
    /// BPF: return a constant, the number of bytes to keep.
    const RETURN: u16 = 0x06;
    socket.attach_filter(&[SockFilter::new(RETURN, 0, 0, 0)])
}

/// A note for hosts whose kernel has SCTP of its own, which answers every packet, too.
pub(crate) fn note_of_kernel() -> Option<String> {
    Path::new("/proc/net/sctp").exists().then(|| {
        "the kernel's own SCTP is loaded, and aborts associations that it does not know: over IP \
         they end at once; `sudo modprobe -r sctp` unloads it"
            .to_owned()
    })
}

/// Sockets that get the ICMP messages of this host.
#[derive(Debug)]
pub(crate) struct IcmpSockets {
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
}

impl IcmpSockets {
    /// Opens them. Without one, messages of its family are not heard. Must be called within a tokio
    /// runtime.
    pub(crate) fn open() -> IcmpSockets {
        IcmpSockets {
            v4: open_icmp(Domain::IPV4, Protocol::ICMPV4).ok(),
            v6: open_icmp(Domain::IPV6, Protocol::ICMPV6).ok(),
        }
    }

    /// Reads some messages about SCTP packets of this host. Ready if there may be more; the task is
    /// woken when there are.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, out: &mut Vec<IcmpReport>) -> Poll<()> {
        let v4 = poll_one(cx, self.v4.as_ref(), IcmpReport::of_ipv4, out);
        let v6 = poll_one(cx, self.v6.as_ref(), IcmpReport::of_ipv6, out);
        if v4.is_ready() || v6.is_ready() { Poll::Ready(()) } else { Poll::Pending }
    }
}

fn poll_one(
    cx: &mut Context<'_>,
    socket: Option<&UdpSocket>,
    read: impl Fn(&[u8]) -> Option<IcmpReport>,
    out: &mut Vec<IcmpReport>,
) -> Poll<()> {
    let Some(socket) = socket else { return Poll::Pending };
    for _ in 0..MESSAGES_MAX {
        let mut bytes = [0; MESSAGE_MAX];
        let mut message = ReadBuf::new(&mut bytes);
        match socket.poll_recv(cx, &mut message) {
            Poll::Ready(Ok(())) => out.extend(read(message.filled())),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => return Poll::Pending,
        }
    }
    cx.waker().wake_by_ref();
    Poll::Ready(())
}

fn open_icmp(domain: Domain, protocol: Protocol) -> io::Result<UdpSocket> {
    let socket = Socket::new(domain, Type::RAW, Some(protocol))?;
    socket.set_nonblocking(true)?;
    // Other messages are then left out by the reader instead.
    if domain == Domain::IPV4 {
        let _ = setsockopt(&socket, option::IcmpFilter, &!(1 << 3));
    } else {
        let mut blocked = [u32::MAX; 8];
        blocked[0] = !(1 << 2 | 1 << 4);
        let _ = setsockopt(&socket, option::Icmp6Filter, &blocked);
    }
    UdpSocket::from_std(socket.into())
}

mod option {
    use nix::libc;

    /// The messages that a raw ICMP socket does not get: a bit for each type below 32.
    #[derive(Copy, Clone, Debug)]
    pub(super) struct IcmpFilter;

    nix::setsockopt_impl!(
        IcmpFilter,
        libc::SOL_RAW,
        super::ICMP_FILTER,
        u32,
        nix::sys::socket::sockopt::SetStruct<'_, u32>
    );

    /// The messages that a raw ICMPv6 socket does not get: a bit for each type (RFC 3542 §3.2).
    #[derive(Copy, Clone, Debug)]
    pub(super) struct Icmp6Filter;

    nix::setsockopt_impl!(
        Icmp6Filter,
        libc::IPPROTO_ICMPV6,
        super::ICMP_FILTER,
        [u32; 8],
        nix::sys::socket::sockopt::SetStruct<'_, [u32; 8]>
    );
}

/// The number of the option, of both protocols, in Linux.
const ICMP_FILTER: libc::c_int = 1;
