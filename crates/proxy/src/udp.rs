//! Datagrams: one stream for each client of SOCKS, one socket for each family at the far side.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use tokio::net::UdpSocket;

use crate::conn::Conn;
use crate::dial;
use crate::frame::{Cause, Datagram, HostPort, Refusal};
use crate::session::{Opened, Session};

/// Longest datagram with its header.
const DATAGRAM_MAX: usize = 65_535;

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
    let back6 = async {
        match &v6 {
            Some(v6) => back(conn, v6).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = conn.session.until_dead() => {}
        () = out(conn, &v4, v6.as_ref()) => {}
        () = back(conn, &v4) => {}
        () = back6 => {}
    }
    conn.end().await;
}

async fn out(conn: &Conn, v4: &UdpSocket, v6: Option<&UdpSocket>) {
    while let Some(bytes) = conn.datagram().await {
        let Ok(datagram) = Datagram::decode(&bytes) else { continue };
        // A name that is not found, or an address that is not allowed, loses its datagram, as UDP
        // does.
        let Ok(addresses) = dial::resolve(&datagram.address).await else { continue };
        let allowed = conn.session.rules().allowed(&datagram.address.host, &addresses);
        let usable = |a: &&SocketAddr| a.is_ipv4() || v6.is_some();
        let Some(to) = allowed.iter().find(usable) else { continue };
        let socket = if to.is_ipv4() { v4 } else { v6.unwrap_or(v4) };
        let _ = socket.send_to(&datagram.data, to).await;
        conn.session.count_down(datagram.data.len());
    }
}

async fn back(conn: &Conn, socket: &UdpSocket) {
    let mut buffer = vec![0; DATAGRAM_MAX];
    loop {
        // An error is of an earlier datagram: nobody listens there.
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else { continue };
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
