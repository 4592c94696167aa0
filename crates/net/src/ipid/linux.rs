//! Asks one address at a time, and reads the answer from a raw ICMP socket.

use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use super::answer;
use crate::clock::Clock;
use crate::traceroute::PORT;

/// How long an answer is waited for.
const WAIT: Duration = Duration::from_millis(200);
/// Ports that are asked in turn, so that an answer that is late is not taken for the next one.
const PORTS: u16 = 100;
/// Bytes of a message that are read: a header with options, ICMP's, and the same of the quoted one.
const MESSAGE_MAX: usize = 256;
/// Messages that are read for one question; others may send any number.
const MESSAGES_MAX: usize = 256;

/// A raw ICMP socket.
#[derive(Debug)]
pub(super) struct Asker {
    icmp: Socket,
    asked: AtomicU16,
}

impl Asker {
    /// Opens the socket; an error without CAP_NET_RAW.
    pub(super) fn open() -> io::Result<Asker> {
        let icmp = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4))?;
        Ok(Asker { icmp, asked: AtomicU16::new(0) })
    }

    /// Sends a UDP packet to the address; the identification of the answer that comes from there
    /// within 200 ms. Blocks. One that echoes our packet's identification counts as none.
    pub(super) fn ask(&self, local: Ipv4Addr, address: Ipv4Addr) -> io::Result<Option<u16>> {
        let udp = UdpSocket::bind((local, 0))?;
        let port = PORT + self.asked.fetch_add(1, Ordering::Relaxed) % PORTS;
        let ports = (udp.local_addr()?.port(), port);
        udp.send_to(&[0; 8], SocketAddr::new(address.into(), port))?;
        let clock = Clock::start();
        let until = clock.now() + WAIT;
        let mut bytes = [0; MESSAGE_MAX];
        for _ in 0..MESSAGES_MAX {
            let left = until - clock.now();
            // A timeout of 0 would wait for ever.
            if left < Duration::from_millis(1) {
                break;
            }
            self.icmp.set_read_timeout(Some(left))?;
            let Ok(length) = (&self.icmp).read(&mut bytes) else { break };
            let found = answer::read(&bytes[..length])
                .filter(|a| a.from == address && a.asked == address && a.ports == ports);
            if let Some(answer) = found {
                return Ok(Some(answer.id).filter(|id| *id != answer.quoted_id));
            }
        }
        Ok(None)
    }
}
