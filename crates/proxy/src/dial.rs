//! Connecting to a target by name: all its addresses, as Happy Eyeballs does (RFC 8305).

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use manypath::unmapped;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::frame::{Cause, HostPort, Refusal};

/// The time until the next address is tried beside the first (RFC 8305 §5).
const NEXT_AFTER: Duration = Duration::from_millis(250);
/// The time that a target has to answer.
const DIAL_TIME_MAX: Duration = Duration::from_secs(20);
/// Addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;

/// The addresses of a target, IPv6 and IPv4 in turn.
pub(crate) async fn resolve(to: &HostPort) -> Result<Vec<SocketAddr>, Refusal> {
    to.check()?;
    let found = timeout(DIAL_TIME_MAX, tokio::net::lookup_host((to.host.as_str(), to.port))).await;
    let found: Vec<SocketAddr> = match found {
        Ok(Ok(found)) => found.map(unmapped).collect(),
        Ok(Err(e)) => return Err(Refusal::new(Cause::HostUnreachable, format!("{to}: {e}"))),
        Err(_) => {
            return Err(Refusal::new(Cause::TimedOut, format!("{to}: no name server answers")));
        }
    };
    let first_is_ipv6 = found.first().is_some_and(SocketAddr::is_ipv6);
    let (mut first, mut second): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|address| address.is_ipv6() == first_is_ipv6);
    first.dedup();
    second.dedup();
    let mut addresses = Vec::new();
    for i in 0..first.len().max(second.len()) {
        addresses.extend(first.get(i).into_iter().chain(second.get(i)).copied());
    }
    addresses.truncate(ADDRESSES_MAX);
    if addresses.is_empty() {
        Err(Refusal::new(Cause::HostUnreachable, format!("{to}: no address")))
    } else {
        Ok(addresses)
    }
}

/// Connects to the first of the addresses that answers.
pub(crate) async fn connect(addresses: &[SocketAddr]) -> Result<TcpStream, Refusal> {
    let refusal = |why| Refusal::new(cause(&why), format!("{}", Addresses(addresses)));
    match timeout(DIAL_TIME_MAX, race(addresses)).await {
        Ok(Ok(tcp)) => Ok(tcp),
        Ok(Err(why)) => Err(refusal(why)),
        Err(_) => Err(refusal(io::ErrorKind::TimedOut.into())),
    }
}

struct Addresses<'a>(&'a [SocketAddr]);

impl std::fmt::Display for Addresses<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&shown.join(", "))
    }
}

/// Starts an attempt whenever one has failed or takes long; the first connection wins.
async fn race(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut attempts = JoinSet::new();
    let mut waiting = addresses.iter().copied();
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        let next = waiting.next();
        if let Some(address) = next {
            attempts.spawn(TcpStream::connect(address));
        }
        let pause = if next.is_some() { NEXT_AFTER } else { DIAL_TIME_MAX };
        match timeout(pause, attempts.join_next()).await {
            Ok(Some(Ok(Ok(tcp)))) => return Ok(tcp),
            Ok(Some(Ok(Err(why)))) => last = why,
            Ok(Some(Err(_))) | Err(_) => {}
            Ok(None) => return Err(last),
        }
    }
}

fn cause(why: &io::Error) -> Cause {
    match why.kind() {
        io::ErrorKind::ConnectionRefused => Cause::ConnectionRefused,
        io::ErrorKind::HostUnreachable | io::ErrorKind::AddrNotAvailable => Cause::HostUnreachable,
        io::ErrorKind::NetworkUnreachable => Cause::NetworkUnreachable,
        io::ErrorKind::TimedOut => Cause::TimedOut,
        _ => Cause::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_that_refuses_does_not_hold_up_the_next() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let refuses = SocketAddr::from(([127, 0, 0, 1], 1));
        let begin = tokio::time::Instant::now();
        let tcp = connect(&[refuses, listener.local_addr().unwrap()]).await.unwrap();
        assert_eq!(tcp.peer_addr().unwrap(), listener.local_addr().unwrap());
        assert!(begin.elapsed() < NEXT_AFTER);
        assert_eq!(connect(&[refuses]).await.unwrap_err().cause, Cause::ConnectionRefused);
    }
}
