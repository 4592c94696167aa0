//! A TCP connection and its stream: bytes in both directions, ends, and resets.

use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::conn::{Broken, Conn, Inbound};
use crate::frame::Target;
use crate::session::Opened;

/// Makes the system reset a connection when it is dropped.
pub fn reset(tcp: &TcpStream) {
    // An error means that it is gone already.
    let _ = SockRef::from(tcp).set_linger(Some(Duration::ZERO));
}

impl Opened {
    /// Relays between this stream and `tcp` until both directions have ended or one was reset.
    pub async fn relay(self, tcp: TcpStream) {
        relay(tcp, &self.conn()).await;
    }
}

/// Relays until both directions have ended. What ends out of order here does so on the other side.
pub(crate) async fn relay(tcp: TcpStream, conn: &Arc<Conn>) {
    // Latency is what people notice; the messages are gathered anyway.
    let _ = tcp.set_nodelay(true);
    let result = tokio::select! {
        biased;
        () = conn.session.until_dead() => Err(Broken::Session),
        error = watch(&tcp) => Err(error),
        result = async { tokio::try_join!(up(&tcp, conn), down(&tcp, conn)) } => result.map(|_| ()),
    };
    if result.is_err() {
        reset(&tcp);
    }
    drop(tcp);
    conn.end().await;
}

/// Notices a reset of the TCP connection while nothing is read from it or written to it.
async fn watch(tcp: &TcpStream) -> Broken {
    match tcp.ready(Interest::ERROR).await {
        Ok(_) | Err(_) => Broken::Local,
    }
}

/// From TCP to the stream. Nothing is read before the peer has room for it and it is this
/// connection's turn, so what waits does so in the system's buffer, and its sender is held back.
async fn up(tcp: &TcpStream, conn: &Conn) -> Result<(), Broken> {
    let session = &conn.session;
    loop {
        let sendable = conn.sendable().await;
        tcp.readable().await.map_err(|_| Broken::Local)?;
        let turn = session.turn().await?;
        let mut data = vec![0; sendable.min(session.message_size())];
        match tcp.try_read(&mut data) {
            Ok(0) => {
                drop(turn);
                return conn.fin().await;
            }
            Ok(n) => {
                session.count_up(n);
                conn.send(exactly(data, n)).await?;
            }
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return Err(Broken::Local),
        }
    }
}

/// The first `n` bytes, without a large buffer behind a few of them.
fn exactly(mut data: Vec<u8>, n: usize) -> Bytes {
    if n < data.len() / 2 {
        return Bytes::copy_from_slice(&data[..n]);
    }
    data.truncate(n);
    data.into()
}

/// From the stream to TCP.
async fn down(tcp: &TcpStream, conn: &Conn) -> Result<(), Broken> {
    loop {
        match conn.inbound().await? {
            Inbound::Data(chunks) => {
                for chunk in chunks {
                    tokio::select! {
                        biased;
                        written = write(tcp, &chunk) => written?,
                        broken = conn.until_reset() => return Err(broken),
                    }
                    conn.session.count_down(chunk.len());
                    conn.taken(chunk.len()).await?;
                }
            }
            Inbound::Fin => {
                return SockRef::from(tcp).shutdown(Shutdown::Write).map_err(|_| Broken::Local);
            }
        }
    }
}

async fn write(tcp: &TcpStream, mut data: &[u8]) -> Result<(), Broken> {
    while !data.is_empty() {
        tcp.writable().await.map_err(|_| Broken::Local)?;
        match tcp.try_write(data) {
            Ok(n) => data = &data[n..],
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return Err(Broken::Local),
        }
    }
    Ok(())
}

/// Connects a stream that the peer has opened, and relays.
pub(crate) async fn serve_remote(conn: Arc<Conn>, target: Target) {
    let dialing = conn.session.dial(&target);
    let dialed = tokio::select! {
        () = conn.session.until_dead() => return,
        _ = conn.until_reset() => return conn.end().await,
        dialed = dialing => dialed,
    };
    match dialed {
        Ok(tcp) => {
            if conn.accept().await.is_ok() {
                relay(tcp, &conn).await;
            }
        }
        Err(why) => conn.refuse(why).await,
    }
}

/// The local end of a connection that SOCKS tells its client.
pub(crate) fn unspecified() -> SocketAddr {
    SocketAddr::from(([0, 0, 0, 0], 0))
}
