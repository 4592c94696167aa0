//! The routers on the way to an address, by UDP packets that live for a number of hops; needs no
//! privilege.
//!
//! A router at which a packet's life ends says so by ICMP. Linux hands such messages to the socket
//! that sent the packet (IP_RECVERR), with the packet's first bytes: ours hold the time they were
//! sent. Where that is not to be had there is an error, and paths are compared without routers.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

/// How a route is looked for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// Hops at most, 1 to 255.
    pub hops_max: u8,
    /// How long the answers to one round of packets are waited for.
    pub wait: Duration,
    /// Rounds: packets without an answer are sent again. Routers limit how many such messages they
    /// send to one host, often to one a second after a burst of six.
    pub rounds: u8,
}

impl Default for TraceOptions {
    /// 24 hops, two rounds of 600 ms.
    fn default() -> TraceOptions {
        TraceOptions { hops_max: 24, wait: Duration::from_millis(600), rounds: 2 }
    }
}

/// One hop.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceHop {
    /// Who answered, and after which time; `None` if nobody did.
    pub answer: Option<(IpAddr, Duration)>,
}

/// The hops from the first router on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// In order; if the destination answered it is the last. Silent ones at the end are left out.
    pub hops: Vec<TraceHop>,
    /// The destination answered.
    pub reached: bool,
}

/// Packets on their way at a time: as many hops are asked together. Not more than routers answer in
/// a burst.
const TOGETHER: u8 = 6;

/// Silent hops in a row after which tracing ends.
const SILENT_MAX: usize = 8;

/// The first of the UDP ports that nobody listens on, by convention.
#[cfg(target_os = "linux")]
pub(crate) const PORT: u16 = 33434;

/// Looks for the routers between `local` and `destination`. Blocks for some seconds at most.
pub fn traceroute(local: IpAddr, destination: IpAddr, options: TraceOptions) -> io::Result<Trace> {
    let mut trace = Trace::default();
    let mut first = 1;
    while first <= options.hops_max && !trace.reached {
        let last = first.saturating_add(TOGETHER - 1).min(options.hops_max);
        let answers = platform::ask(local, destination, first..=last, options)?;
        for answer in answers {
            trace.hops.push(TraceHop { answer: answer.map(|a| (a.from, a.rtt)) });
            if answer.is_some_and(|a| a.is_end) {
                trace.reached = answer.is_some_and(|a| a.from == destination);
                return Ok(trace);
            }
        }
        let silent = trace.hops.iter().rev().take_while(|h| h.answer.is_none()).count();
        if silent >= SILENT_MAX || last == u8::MAX {
            break;
        }
        first = last + 1;
    }
    while trace.hops.last().is_some_and(|h| h.answer.is_none()) {
        trace.hops.pop();
    }
    Ok(trace)
}

/// The address that a host or router answers from when it is spoken to at `address`, if it answers.
/// One that differs is an alias of it (the way of Mercator, Govindan and Tangmunarunkit 2000).
/// Blocks.
pub fn answers_from(
    local: IpAddr,
    address: IpAddr,
    options: TraceOptions,
) -> io::Result<Option<IpAddr>> {
    let answers = platform::ask(local, address, 64..=64, options)?;
    Ok(answers.into_iter().flatten().find(|a| a.is_end).map(|a| a.from))
}

/// An ICMP message.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Answer {
    from: IpAddr,
    rtt: Duration,
    /// The packet went no further for another reason than its life's end: mostly, it was there.
    is_end: bool,
}

#[cfg(target_os = "linux")]
mod platform {
    use std::io::{self, IoSliceMut};
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
    use std::ops::RangeInclusive;
    use std::os::fd::{AsFd, AsRawFd};

    use manypath_proto::Instant;
    use nix::cmsg_space;
    use nix::libc;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::socket::{
        ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
    };
    use socket2::{Domain, Protocol, Socket, Type};

    use super::{Answer, PORT, TraceOptions};
    use crate::clock::Clock;

    /// ICMP messages read from one socket at a time.
    const MESSAGES_MAX: usize = 16;

    /// Sends a packet for each life of `lives`; the answers in their order.
    pub(super) fn ask(
        local: IpAddr,
        destination: IpAddr,
        lives: RangeInclusive<u8>,
        options: TraceOptions,
    ) -> io::Result<Vec<Option<Answer>>> {
        let clock = Clock::start();
        let mut asked = Vec::new();
        for life in lives {
            asked.push((open(local, life)?, u16::from(life), None));
        }
        for _ in 0..options.rounds {
            for (socket, life, _) in asked.iter().filter(|(_, _, answer)| answer.is_none()) {
                let to = SocketAddr::new(destination, PORT + life);
                let sent = clock.now().as_nanos().to_be_bytes();
                // An error may be that of an earlier packet; without a route there is just no
                // answer.
                if socket.send_to(&sent, &to.into()).is_err() {
                    let _ = socket.send_to(&sent, &to.into());
                }
            }
            let until = clock.now() + options.wait;
            while clock.now() < until && asked.iter().any(|(_, _, answer)| answer.is_none()) {
                wait(&asked, until - clock.now())?;
                for (socket, _, answer) in &mut asked {
                    if answer.is_none() {
                        *answer = read(socket, &clock);
                    }
                }
            }
        }
        Ok(asked.into_iter().map(|(_, _, answer)| answer).collect())
    }

    fn open(local: IpAddr, life: u8) -> io::Result<Socket> {
        let address = SocketAddr::new(local, 0);
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if local.is_ipv6() {
            setsockopt(&socket, sockopt::Ipv6RecvErr, &true)?;
            socket.set_unicast_hops_v6(life.into())?;
        } else {
            setsockopt(&socket, sockopt::Ipv4RecvErr, &true)?;
            socket.set_ttl_v4(life.into())?;
        }
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        Ok(socket)
    }

    /// Waits for an error on any socket that has no answer yet.
    fn wait(asked: &[(Socket, u16, Option<Answer>)], time: std::time::Duration) -> io::Result<()> {
        let open = asked.iter().filter(|(_, _, answer)| answer.is_none());
        // Errors are reported without being asked for.
        let mut sockets: Vec<_> =
            open.map(|(socket, ..)| PollFd::new(socket.as_fd(), PollFlags::empty())).collect();
        let millis = u16::try_from(time.as_millis() + 1).unwrap_or(u16::MAX);
        match poll(&mut sockets, PollTimeout::from(millis)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn read(socket: &Socket, clock: &Clock) -> Option<Answer> {
        (0..MESSAGES_MAX).find_map(|_| read_one(socket, clock).transpose()).and_then(Result::ok)
    }

    /// The next message; an error if there is none, nothing if it is of no use.
    fn read_one(socket: &Socket, clock: &Clock) -> io::Result<Option<Answer>> {
        let mut bytes = [0; 8];
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let mut space = cmsg_space!(libc::sock_extended_err, libc::sockaddr_in6);
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let message =
            recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
        let whole = message.bytes == 8;
        let found = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::Ipv4RecvErr(error, Some(from)) => {
                let ip = Ipv4Addr::from(u32::from_be(from.sin_addr.s_addr));
                // ICMP: 11 is time exceeded.
                let icmp = error.ee_origin == libc::SO_EE_ORIGIN_ICMP;
                icmp.then_some((IpAddr::from(ip), error.ee_type != 11))
            }
            ControlMessageOwned::Ipv6RecvErr(error, Some(from)) => {
                let ip = Ipv6Addr::from(from.sin6_addr.s6_addr);
                // ICMPv6: 3 is time exceeded.
                let icmp = error.ee_origin == libc::SO_EE_ORIGIN_ICMP6;
                icmp.then_some((IpAddr::from(ip), error.ee_type != 3))
            }
            _ => None,
        });
        let sent = Instant::from_nanos(u64::from_be_bytes(bytes));
        let answer = |(from, is_end)| Answer { from, rtt: clock.now() - sent, is_end };
        Ok(if whole { found.map(answer) } else { None })
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use std::io;
    use std::net::IpAddr;
    use std::ops::RangeInclusive;

    use super::{Answer, TraceOptions};

    pub(super) fn ask(
        _: IpAddr,
        _: IpAddr,
        _: RangeInclusive<u8>,
        _: TraceOptions,
    ) -> io::Result<Vec<Option<Answer>>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "routes are looked for on Linux only"))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_one_hop_away() {
        let (local, to): (IpAddr, IpAddr) = ([127, 0, 0, 1].into(), [127, 0, 0, 77].into());
        let trace = traceroute(local, to, TraceOptions::default()).unwrap();
        assert!(trace.reached, "{trace:?}");
        let [TraceHop { answer: Some((from, rtt)) }] = trace.hops[..] else { panic!("{trace:?}") };
        assert_eq!(from, to);
        assert!(rtt < Duration::from_millis(500), "{rtt:?}");
        assert_eq!(answers_from(local, to, TraceOptions::default()).unwrap(), Some(to));
    }

    #[test]
    fn without_a_route_there_are_no_hops() {
        let local: IpAddr = [127, 0, 0, 1].into();
        let quick = TraceOptions { wait: Duration::from_millis(20), ..TraceOptions::default() };
        // From loopback nothing leaves the host.
        let trace = traceroute(local, [192, 0, 2, 1].into(), quick).unwrap_or_default();
        assert_eq!((trace.hops.len(), trace.reached), (0, false));
    }
}
