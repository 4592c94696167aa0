//! Datagrams: one stream for each client of SOCKS, one socket for each family at the far side.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::net::UdpSocket;

use crate::conn::Conn;
use crate::dial;
use crate::frame::{Cause, Datagram, HostPort, Refusal};
use crate::session::{Opened, Session};

/// Longest datagram with its header.
const DATAGRAM_MAX: usize = 65_535;
/// As many addresses are remembered of those that a client sent to.
const CONTACTS_MAX: usize = 1024;

/// The IP addresses that a client sent to lately. No other may send to it: what a client may not
/// reach, and strangers, do not reach the client either (RFC 4787 §5, address-dependent filtering).
#[derive(Debug, Default)]
struct Contacts(Mutex<Latest>);

#[derive(Debug, Default)]
struct Latest {
    datagrams: u64,
    /// The number of the last datagram to each.
    addresses: HashMap<IpAddr, u64>,
}

impl Contacts {
    /// Notes a datagram to this address. The one not sent to for longest is forgotten for it.
    fn add(&self, to: IpAddr) {
        let latest = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        latest.datagrams += 1;
        latest.addresses.insert(answering(to), latest.datagrams);
        if latest.addresses.len() > CONTACTS_MAX {
            let oldest = latest.addresses.iter().min_by_key(|(_, number)| **number);
            if let Some(oldest) = oldest.map(|(ip, _)| *ip) {
                latest.addresses.remove(&oldest);
            }
        }
    }

    /// True for an address that was sent to.
    fn contains(&self, from: IpAddr) -> bool {
        let latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        latest.addresses.contains_key(&from.to_canonical())
    }
}

/// The address that answers come from. The system takes an unspecified one for loopback.
fn answering(to: IpAddr) -> IpAddr {
    match to.to_canonical() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

/// Sends the datagrams of the peer to where it says, and what comes back to the peer.
pub(crate) async fn serve_remote(conn: &Arc<Conn>) {
    let v4 = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await;
    // A host without IPv6 serves IPv4.
    let v6 = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).await.ok();
    let v4 = match v4 {
        Ok(v4) => v4,
        Err(e) => return conn.refuse(Refusal::new(Cause::Failed, e.to_string())).await,
    };
    if conn.accept().await.is_err() {
        return;
    }
    let contacts = Contacts::default();
    let back6 = async {
        match &v6 {
            Some(v6) => back(conn, v6, &contacts).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = conn.session.until_dead() => {}
        () = out(conn, &v4, v6.as_ref(), &contacts) => {}
        () = back(conn, &v4, &contacts) => {}
        () = back6 => {}
    }
    conn.end().await;
}

async fn out(conn: &Conn, v4: &UdpSocket, v6: Option<&UdpSocket>, contacts: &Contacts) {
    while let Some(bytes) = conn.datagram().await {
        let Ok(datagram) = Datagram::decode(&bytes) else { continue };
        // A name that is not found, or an address that is not allowed, loses its datagram, as UDP
        // does.
        let Ok(addresses) = dial::resolve(&datagram.address).await else { continue };
        let allowed = conn.session.rules().allowed(&datagram.address.host, &addresses);
        let usable = |a: &&SocketAddr| a.is_ipv4() || v6.is_some();
        let Some(to) = allowed.iter().find(usable) else { continue };
        let socket = if to.is_ipv4() { v4 } else { v6.unwrap_or(v4) };
        // First, since the answer may be fast.
        contacts.add(to.ip());
        let _ = socket.send_to(&datagram.data, to).await;
        conn.session.count_down(datagram.data.len());
    }
}

async fn back(conn: &Conn, socket: &UdpSocket, contacts: &Contacts) {
    let mut buffer = vec![0; DATAGRAM_MAX];
    loop {
        // An error is of an earlier datagram: nobody listens there.
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else { continue };
        if !contacts.contains(from.ip()) {
            continue;
        }
        let (Some(number), data) = (conn.udp, Bytes::copy_from_slice(&buffer[..length])) else {
            return;
        };
        if send(conn, number, address(from), data).await.is_err() {
            return;
        }
    }
}

fn address(from: SocketAddr) -> HostPort {
    let ip: IpAddr = from.ip().to_canonical();
    HostPort { host: ip.to_string(), port: from.port() }
}

async fn send(conn: &Conn, number: u32, address: HostPort, data: Bytes) -> Result<(), ()> {
    conn.session.count_up(data.len());
    let datagram = Datagram { number, address, data }.encode();
    let _turn = conn.session.turn().await.map_err(|_| ())?;
    conn.session.send_datagram(conn.stream, datagram).await.map_err(|_| ())
}

impl Opened {
    /// Sends a datagram to the far side. It is lost if the host of `to` is not
    /// [valid](HostPort::is_valid), as one to a name that is not found.
    pub async fn send_datagram(&self, to: HostPort, data: Bytes) -> Result<(), Refusal> {
        if !to.is_valid() {
            return Ok(());
        }
        let conn = self.conn();
        let lost = |()| Refusal::new(Cause::Failed, "the association was lost");
        send(&conn, conn.udp.unwrap_or(0), to, data).await.map_err(lost)
    }

    /// The next datagram from the far side; `None` when there will be none.
    pub async fn recv_datagram(&self) -> Option<Datagram> {
        let conn = self.conn();
        loop {
            let bytes = tokio::select! {
                bytes = conn.datagram() => bytes?,
                () = conn.session.until_dead() => return None,
            };
            if let Ok(datagram) = Datagram::decode(&bytes) {
                return Some(datagram);
            }
        }
    }

    /// Ends an association of datagrams.
    pub async fn end(self) {
        self.conn().end().await;
    }
}

/// Opens an association of datagrams.
pub(crate) async fn open(session: &Arc<Session>) -> Result<Opened, Refusal> {
    let number = session.udp_number();
    session.open(crate::frame::Target::Udp(number)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contacts_are_bounded_and_the_latest_are_kept() {
        let contacts = Contacts::default();
        let ip = |n: usize| IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8 << 96 | n as u128));
        for n in 0..CONTACTS_MAX {
            contacts.add(ip(n));
        }
        contacts.add(ip(0));
        contacts.add(ip(CONTACTS_MAX));
        assert!(contacts.contains(ip(0)) && contacts.contains(ip(CONTACTS_MAX)));
        assert!(!contacts.contains(ip(1)) && contacts.contains(ip(2)));
    }

    #[test]
    fn answers_come_from_the_address_that_was_meant() {
        for (to, from) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("192.0.2.1", "::ffff:192.0.2.1"),
            ("0.0.0.0", "127.0.0.1"),
            ("::", "::1"),
        ] {
            let contacts = Contacts::default();
            contacts.add(to.parse().unwrap());
            assert!(contacts.contains(from.parse().unwrap()), "{to} {from}");
            assert!(!contacts.contains([192, 0, 2, 2].into()));
        }
    }
}
