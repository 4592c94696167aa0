//! The address behind a number that a relay gave to a receiver.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::Poll;
use std::time::Duration;

use manypath_turn::{Lookup, LookupError as Refused, may_lead_to};
use tokio::io::ReadBuf;
use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout_at};

use crate::address::unmapped;

/// When the relay is asked again, since the beginning; at the last of these it is given up.
const ASKED_UNTIL: [Duration; 4] = [
    Duration::from_millis(500),
    Duration::from_millis(1000),
    Duration::from_millis(2000),
    Duration::from_millis(4000),
];
/// Bytes of a datagram that are read: answers are shorter.
const ANSWER_MAX: usize = 512;

/// Why no address was found behind a number.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// The relay knows no receiver with this number.
    #[error(
        "the relay knows no receiver with this number; check the number, and that the receiver \
         still waits"
    )]
    NoSuchNumber,
    /// Nothing came back within four seconds.
    #[error(
        "the relay did not answer for 4 s; check that it runs, its address, and that UDP reaches \
         it, or try again in a moment if many look numbers up"
    )]
    NoAnswer,
    /// The server answers, and does not know the question: it is another program, or older.
    #[error(
        "the server at the relay's address knows no numbers; its operator can run a newer \
         'manypath relay' there"
    )]
    Unsupported,
    /// The address in the answer is one that this relay cannot have given to a receiver.
    #[error("the relay answers with {0}, an address that no relay there can give; do not trust it")]
    Astray(SocketAddr),
    /// The question cannot be sent.
    #[error("cannot ask the relay: {0}; check that this host has a network")]
    Io(#[source] io::Error),
}

/// Asks a relay for the relayed address behind a number, which it gave to a receiver
/// ([`RelayStatus::number`](crate::RelayStatus::number)). No account is needed.
///
/// The question leaves from each address in `from` of the relay's family at once, as one uplink of
/// several may be dead, and from the one that the kernel prefers if there is none. It is repeated
/// after 0.5, 1 and 2 s. The first valid answer counts. The relay is not believed to lead elsewhere
/// than relays do, but nothing proves that the receiver is who it should be: that is for both ends
/// to find out.
///
/// # Errors
/// See [`LookupError`].
pub async fn look_up_number(
    relay: SocketAddr,
    number: u32,
    from: &[IpAddr],
) -> Result<SocketAddr, LookupError> {
    let relay = unmapped(relay);
    let sockets = sockets(relay, from).await.map_err(LookupError::Io)?;
    let lookup = Lookup::new(number);
    let begun = Instant::now();
    let mut error = None;
    for until in ASKED_UNTIL {
        let round = async {
            ask(&sockets, lookup.request(), &mut error).await;
            answer(&sockets, &lookup).await
        };
        if let Ok(answer) = timeout_at(begun + until, round).await {
            return checked(relay, answer);
        }
    }
    Err(error.map_or(LookupError::NoAnswer, LookupError::Io))
}

/// A socket for each local address, whose datagrams are the relay's.
async fn sockets(relay: SocketAddr, from: &[IpAddr]) -> io::Result<Vec<UdpSocket>> {
    let from = from.iter().map(|ip| ip.to_canonical());
    let mut from: BTreeSet<IpAddr> = from.filter(|ip| ip.is_ipv6() == relay.is_ipv6()).collect();
    if from.is_empty() {
        let any_v6 = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        from.insert(if relay.is_ipv6() { any_v6 } else { Ipv4Addr::UNSPECIFIED.into() });
    }
    let (mut sockets, mut error) = (Vec::new(), None);
    for ip in from {
        match connected(ip, relay).await {
            Ok(socket) => sockets.push(socket),
            Err(why) => error = Some(why),
        }
    }
    match error {
        Some(error) if sockets.is_empty() => Err(error),
        _ => Ok(sockets),
    }
}

async fn connected(ip: IpAddr, relay: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((ip, 0)).await?;
    socket.connect(relay).await?;
    Ok(socket)
}

/// Sends the question from each socket. `error` is that of the last one, if it left from none.
async fn ask(sockets: &[UdpSocket], request: &[u8], error: &mut Option<io::Error>) {
    let mut has_left = false;
    for socket in sockets {
        match socket.send(request).await {
            Ok(_) => has_left = true,
            // An earlier question met a closed port there, perhaps of a relay that starts again.
            Err(why) if why.kind() == io::ErrorKind::ConnectionRefused => has_left = true,
            Err(why) => *error = Some(why),
        }
    }
    if has_left {
        *error = None;
    }
}

/// The first answer to the question. It waits for ever if there is none.
async fn answer(sockets: &[UdpSocket], lookup: &Lookup) -> Result<SocketAddr, Refused> {
    poll_fn(|cx| {
        let mut bytes = [0; ANSWER_MAX];
        for socket in sockets {
            let mut datagram = ReadBuf::new(&mut bytes);
            // The runtime pauses one that never ends.
            while let Poll::Ready(received) = socket.poll_recv(cx, &mut datagram) {
                if received.is_ok()
                    && let Some(answer) = lookup.read(datagram.filled())
                {
                    return Poll::Ready(answer);
                }
                datagram.clear();
            }
        }
        Poll::Pending
    })
    .await
}

fn checked(
    relay: SocketAddr,
    answer: Result<SocketAddr, Refused>,
) -> Result<SocketAddr, LookupError> {
    match answer {
        Ok(address) if address.port() != 0 && may_lead_to(relay.ip(), address.ip()) => Ok(address),
        Ok(address) => Err(LookupError::Astray(address)),
        Err(Refused::NoSuchNumber) => Err(LookupError::NoSuchNumber),
        Err(Refused::Unsupported) => Err(LookupError::Unsupported),
    }
}

#[cfg(test)]
mod tests;
