//! The largest packets that arrive, and batches.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use manypath_net::Clock;
use quinn_udp::{Transmit, UdpSockRef, UdpSocketState};

use super::{ANSWER_MAX, open, packet, socket};

/// The largest packet that is tried; answers of longer ones would say no more.
const MTU_MAX: usize = 9000;
/// A packet that certainly arrives, since the way answers at all.
const MTU_MIN: usize = 100;
/// Sizes tried at once.
const AT_ONCE: usize = 8;
/// A size is too long if this many packets of it vanish.
const TRIES: usize = 3;
/// Limits of the wait for answers.
const WAIT: (Duration, Duration) = (Duration::from_millis(120), Duration::from_millis(900));
/// Bytes of IP and UDP headers.
const HEADERS_V4: usize = 28;
const HEADERS_V6: usize = 48;

/// The largest packets of a way, in bytes of IP.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Mtu {
    /// Those that the interface takes; at most 9000 are tried.
    pub interface: usize,
    /// Those that arrive.
    pub path: usize,
    /// A router said that longer ones are too long.
    pub was_told: bool,
}

struct Search {
    socket: UdpSocket,
    headers: usize,
    wait: Duration,
    was_told: bool,
}

/// Finds the largest packets that arrive, on a way that answers within `rtt`.
pub(crate) fn search(
    source: IpAddr,
    device: Option<&str>,
    remote: SocketAddr,
    interface: usize,
    rtt: Duration,
) -> Option<Mtu> {
    let socket = open(source, device).ok()?;
    socket.connect(remote).ok()?;
    let headers = if source.is_ipv6() { HEADERS_V6 } else { HEADERS_V4 };
    let wait = (2 * rtt + Duration::from_millis(60)).clamp(WAIT.0, WAIT.1);
    let mut search = Search { socket, headers, wait, was_told: false };
    let (mut low, mut high) = (MTU_MIN, interface.min(MTU_MAX));
    if high <= low {
        return None;
    }
    let interface = high;
    // Probes are as long as four bytes allow.
    if search.arrive(&[high]).is_some() {
        return Some(Mtu { interface, path: interface, was_told: false });
    }
    while high - low > 4 {
        let step = (high - low).div_ceil(AT_ONCE + 1).next_multiple_of(4);
        let sizes: Vec<usize> =
            (1..=AT_ONCE).map(|n| low + n * step).take_while(|&size| size < high).collect();
        if sizes.is_empty() {
            break;
        }
        match search.arrive(&sizes) {
            Some(size) => {
                low = size;
                high = high.min(size + step);
            }
            None => high = sizes[0],
        }
    }
    Some(Mtu { interface, path: low, was_told: search.was_told })
}

impl Search {
    /// The largest of these sizes that arrives.
    fn arrive(&mut self, sizes: &[usize]) -> Option<usize> {
        let clock = Clock::start();
        let mut tags: BTreeMap<u32, usize> = BTreeMap::new();
        let mut arrived: Option<usize> = None;
        let mut buffer = [0; ANSWER_MAX];
        for _ in 0..TRIES {
            for &size in sizes.iter().filter(|&&size| Some(size) > arrived) {
                let tag = packet::tag();
                tags.insert(tag, size);
                let probe = packet::init(tag, size.saturating_sub(self.headers));
                // The error may be that of an earlier packet, which this one is not to blame for.
                if let Err(error) = self.socket.send(&probe) {
                    self.was_told |= socket::is_too_long(&error);
                    let _ = self.socket.send(&probe);
                }
            }
            let until = clock.now() + self.wait;
            while clock.now() < until && arrived < sizes.last().copied() {
                let left = until - clock.now();
                match socket::receive(&self.socket, left, &mut buffer) {
                    Ok(Some(len)) => {
                        let size = packet::answered(&buffer[..len]).and_then(|tag| tags.get(&tag));
                        arrived = arrived.max(size.copied());
                    }
                    Ok(None) => break,
                    Err(error) => self.was_told |= socket::is_too_long(&error),
                }
            }
            if arrived >= sizes.last().copied() {
                break;
            }
        }
        arrived
    }
}

/// True if the kernel takes two packets in one call; nothing if that could not be tried.
pub(crate) fn sends_batches(
    source: IpAddr,
    device: Option<&str>,
    remote: SocketAddr,
) -> Option<bool> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let socket = open(source, device).ok()?;
    let state = UdpSocketState::new(UdpSockRef::from(&socket)).ok()?;
    if state.max_gso_segments() < 2 {
        return Some(false);
    }
    let one = packet::init(packet::tag(), 0);
    let contents = [one.clone(), packet::init(packet::tag(), 0)].concat();
    let segment_size = Some(one.len());
    let transmit = Transmit {
        destination: remote,
        ecn: None,
        contents: &contents,
        segment_size,
        src_ip: None,
    };
    match state.try_send(UdpSockRef::from(&socket), &transmit) {
        Ok(()) => Some(true),
        // EIO and EINVAL are how Linux refuses batches.
        Err(_) if state.max_gso_segments() < 2 => Some(false),
        Err(_) => None,
    }
}
