//! SCTP ports of programs that share a host.

use std::net::IpAddr;

use crate::bind::BindError;

/// The ports that a program gets that wants any (RFC 6335 §6).
const EPHEMERAL: std::ops::RangeInclusive<u16> = 49_152..=65_535;
/// How often another port is tried.
const TRIES: usize = 64;

/// An SCTP port that no other endpoint of manypath in this network namespace has over IP at these
/// addresses, while this is kept. Other SCTP stacks cannot be asked.
#[derive(Debug)]
pub(crate) struct SctpPort {
    pub(crate) number: u16,
    _held: Vec<platform::Held>,
}

impl SctpPort {
    /// Takes a port at these addresses of this host, 0 for any that is free. An unspecified address
    /// stands for all of its family.
    ///
    /// # Errors
    /// Another endpoint has it.
    pub(crate) fn take(wanted: u16, ips: &[IpAddr]) -> Result<SctpPort, BindError> {
        if wanted != 0 {
            let held = claim(wanted, ips).ok_or(BindError::SctpPortInUse(wanted))?;
            return Ok(SctpPort { number: wanted, _held: held });
        }
        for _ in 0..TRIES {
            let number = random_port();
            if let Some(held) = claim(number, ips) {
                return Ok(SctpPort { number, _held: held });
            }
        }
        Err(BindError::NoFreeSctpPort)
    }
}

fn random_port() -> u16 {
    let mut bytes = [0; 2];
    // Without randomness, the same port is tried each time, and found free or not.
    let _ = getrandom::fill(&mut bytes);
    let count = EPHEMERAL.end() - EPHEMERAL.start() + 1;
    EPHEMERAL.start() + u16::from_ne_bytes(bytes) % count
}

fn claim(port: u16, ips: &[IpAddr]) -> Option<Vec<platform::Held>> {
    let mut held = Vec::new();
    for &ip in ips {
        held.push(platform::hold(port, ip)?);
        // A claim on all addresses excludes one on each of them, and the other way round.
        let others = if ip.is_unspecified() { platform::own(ip) } else { vec![platform::any(ip)] };
        if others.into_iter().any(|other| !ips.contains(&other) && platform::is_held(port, other)) {
            return None;
        }
    }
    Some(held)
}

/// A claim is a Unix socket with an abstract name, which a network namespace has once and which
/// ends with its program.
#[cfg(target_os = "linux")]
mod platform {
    use std::io;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    use crate::interfaces::host_addresses;

    /// A claim; empty if this system knows no such names.
    pub(super) type Held = Option<UnixDatagram>;

    fn bind(port: u16, ip: IpAddr) -> io::Result<UnixDatagram> {
        let name = format!("manypath/sctp/{port}/{ip}");
        UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)
    }

    /// Claims a port at an address; `None` if another has it.
    pub(super) fn hold(port: u16, ip: IpAddr) -> Option<Held> {
        match bind(port, ip) {
            Ok(socket) => Some(Some(socket)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => None,
            Err(_) => Some(None),
        }
    }

    pub(super) fn is_held(port: u16, ip: IpAddr) -> bool {
        hold(port, ip).is_none()
    }

    /// The addresses of this host of a family.
    pub(super) fn own(family: IpAddr) -> Vec<IpAddr> {
        let all = host_addresses().unwrap_or_default().into_iter().map(|a| a.ip);
        all.filter(|ip| ip.is_ipv6() == family.is_ipv6()).collect()
    }

    /// The address that stands for all of a family.
    pub(super) fn any(family: IpAddr) -> IpAddr {
        if family.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use std::net::IpAddr;

    pub(super) type Held = ();

    pub(super) fn hold(_: u16, _: IpAddr) -> Option<Held> {
        Some(())
    }

    pub(super) fn is_held(_: u16, _: IpAddr) -> bool {
        false
    }

    pub(super) fn own(_: IpAddr) -> Vec<IpAddr> {
        Vec::new()
    }

    pub(super) fn any(ip: IpAddr) -> IpAddr {
        ip
    }
}
