//! Asking a router by datagrams: PCP, and NAT-PMP at the same port.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout_at};

use super::pcp::{self, MESSAGE_MAX, Nonce};
use super::place::Place;
use super::{MappedBy, NotMapped, nat_pmp};

/// Time for the answer to each of the first requests, together a second.
const FIRST_WAITS: [Duration; 3] =
    [Duration::from_millis(250), Duration::from_millis(250), Duration::from_millis(500)];
/// Time for the answer of a router that has answered before.
const WAITS: [Duration; 3] =
    [Duration::from_millis(250), Duration::from_millis(500), Duration::from_millis(1000)];
/// Time for a router to delete a mapping.
const LAST_WAITS: [Duration; 2] = [Duration::from_millis(250), Duration::from_millis(500)];
/// Datagrams that are read for each request at most, so that a flood ends the waiting.
const DATAGRAMS_MAX: usize = 64;

/// A mapping that was granted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Granted {
    pub(super) external: SocketAddr,
    /// In seconds; `None` lasts until it is deleted.
    pub(super) lifetime: Option<u32>,
    /// The router's age in seconds, if it tells.
    pub(super) epoch: Option<u32>,
}

/// The news of a router that was asked for its age.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Age {
    pub(super) epoch: u32,
    /// The external address, if the answer has it.
    pub(super) external: Option<IpAddr>,
}

/// A router that speaks PCP or NAT-PMP.
#[derive(Debug)]
pub(super) struct Server {
    socket: UdpSocket,
    client: SocketAddr,
    nonce: Nonce,
    pub(super) by: MappedBy,
}

/// The knowledge about a router after its first answers.
#[derive(Debug, Default)]
struct Heard {
    /// The reason why it makes no mapping by PCP: `None` inside if it knows NAT-PMP only.
    not_by_pcp: Option<Option<NotMapped>>,
    /// By NAT-PMP: its external address, or the reason why it tells none.
    address: Option<Result<Ipv4Addr, NotMapped>>,
}

impl Server {
    /// Asks the router by both protocols at once, as one of them is silently dropped by routers
    /// that know the other. Only PCP makes a mapping thereby; NAT-PMP is asked for one when PCP is
    /// refused or not answered.
    ///
    /// # Errors
    /// The router makes no mapping, or none by these protocols.
    pub(super) async fn first(
        place: &Place,
        lifetime: u32,
    ) -> Result<(Server, Granted), NotMapped> {
        let system = |error: io::Error| NotMapped::System(error.to_string());
        let socket = place.udp_to_gateway(pcp::PORT).await.map_err(system)?;
        let mut nonce = Nonce::default();
        getrandom::fill(&mut nonce).map_err(|error| NotMapped::System(error.to_string()))?;
        let server = Server { socket, client: place.local, nonce, by: MappedBy::Pcp };
        let wanted = server.pcp_request(lifetime, None);
        let request = wanted.bytes();
        let mut requests: Vec<&[u8]> = vec![&request];
        if place.local.is_ipv4() {
            requests.push(&nat_pmp::ASK_ADDRESS);
        }
        let mut heard = Heard::default();
        let mut granted = None;
        for wait in FIRST_WAITS {
            let is_enough = |bytes: &[u8]| {
                heard.take(&wanted, bytes, &mut granted);
                granted.is_some() || heard.is_complete()
            };
            if server.exchange(&requests, wait, is_enough).await.map_err(system)?
                || heard.address.is_some()
            {
                break;
            }
        }
        if let Some(granted) = granted {
            return Ok((server, granted));
        }
        if heard.not_by_pcp.is_none() {
            // It may be slow rather than silent: what is not known is not to stay.
            let _ = server.socket.send(&server.pcp_request(0, None).bytes()).await;
        }
        let not_by_pcp = heard.not_by_pcp.flatten();
        let by_nat_pmp = match heard.address {
            Some(Ok(_)) => {
                let server = Server { by: MappedBy::NatPmp, ..server };
                let granted = server.again(lifetime, None).await;
                granted.map(|granted| (server, granted))
            }
            Some(Err(why)) => Err(why),
            None => Err(NotMapped::Silent),
        };
        // The refusal of the newer protocol says more.
        by_nat_pmp.map_err(|why| not_by_pcp.unwrap_or(why))
    }

    /// Asks for the mapping by the protocol that the router speaks: for the first time, to renew
    /// it, or after a restart. `wanted` is the external address that it had.
    ///
    /// # Errors
    /// The router refuses, or is silent.
    pub(super) async fn again(
        &self,
        lifetime: u32,
        wanted: Option<SocketAddr>,
    ) -> Result<Granted, NotMapped> {
        match self.by {
            MappedBy::Pcp => self.again_by_pcp(lifetime, wanted).await,
            _ => self.again_by_nat_pmp(lifetime, wanted).await,
        }
    }

    async fn again_by_pcp(
        &self,
        lifetime: u32,
        wanted: Option<SocketAddr>,
    ) -> Result<Granted, NotMapped> {
        let request = self.pcp_request(lifetime, wanted);
        let answer = self.ask(&request.bytes(), &WAITS, |bytes| request.read(bytes)).await?;
        granted_by_pcp(answer).unwrap_or(Err(NotMapped::Silent))
    }

    async fn again_by_nat_pmp(
        &self,
        lifetime: u32,
        wanted: Option<SocketAddr>,
    ) -> Result<Granted, NotMapped> {
        let port = self.client.port();
        let address = |bytes: &[u8]| match nat_pmp::read(bytes, port)? {
            nat_pmp::Answer::Address { ip, .. } => Some(Ok(ip)),
            nat_pmp::Answer::Refused(code) => Some(Err(nat_pmp::refusal(code))),
            nat_pmp::Answer::Mapped { .. } => None,
        };
        let ip = self.ask(&nat_pmp::ASK_ADDRESS, &WAITS, address).await??;
        if ip.is_unspecified() {
            return Err(NotMapped::NoExternalAddress(MappedBy::NatPmp));
        }
        let request = nat_pmp::map(port, wanted.map_or(port, |wanted| wanted.port()), lifetime);
        let mapped = |bytes: &[u8]| match nat_pmp::read(bytes, port)? {
            nat_pmp::Answer::Mapped { external, lifetime, epoch } => Some(Ok(Granted {
                external: SocketAddr::new(ip.into(), external),
                lifetime: Some(lifetime),
                epoch: Some(epoch),
            })),
            nat_pmp::Answer::Refused(code) => Some(Err(nat_pmp::refusal(code))),
            nat_pmp::Answer::Address { .. } => None,
        };
        let granted = self.ask(&request, &WAITS, mapped).await??;
        checked(MappedBy::NatPmp, granted)
    }

    /// Asks for the router's age; `None` if it is silent.
    pub(super) async fn age(&self) -> Option<Age> {
        let port = self.client.port();
        let asked = match self.by {
            MappedBy::Pcp => {
                let request = pcp::announce(self.client.ip());
                let age = |epoch| Age { epoch, external: None };
                self.ask(&request, &LAST_WAITS, |bytes| pcp::read_announce(bytes).map(age)).await
            }
            _ => self.ask(&nat_pmp::ASK_ADDRESS, &LAST_WAITS, |bytes| age_of(bytes, port)).await,
        };
        asked.ok()
    }

    /// Deletes the mapping, as far as the router answers.
    pub(super) async fn delete(&self) {
        let port = self.client.port();
        // The answer, also a refusal, says that the request has arrived.
        let _ = match self.by {
            MappedBy::Pcp => {
                let request = self.pcp_request(0, None);
                let read = |bytes: &[u8]| request.read(bytes).map(drop);
                self.ask(&request.bytes(), &LAST_WAITS, read).await
            }
            _ => {
                let read = |bytes: &[u8]| nat_pmp::read(bytes, port).map(drop);
                self.ask(&nat_pmp::map(port, 0, 0), &LAST_WAITS, read).await
            }
        };
    }

    fn pcp_request(&self, lifetime: u32, suggested: Option<SocketAddr>) -> pcp::Request {
        pcp::Request { client: self.client, nonce: self.nonce, lifetime, suggested }
    }

    /// Sends a request until it is answered.
    ///
    /// # Errors
    /// No answer came, or the system does not let the request leave.
    async fn ask<T>(
        &self,
        request: &[u8],
        waits: &[Duration],
        read: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<T, NotMapped> {
        let mut found = None;
        for &wait in waits {
            let take = |bytes: &[u8]| {
                found = read(bytes);
                found.is_some()
            };
            let done = self.exchange(&[request], wait, take).await;
            done.map_err(|error| NotMapped::System(error.to_string()))?;
            if let Some(found) = found.take() {
                return Ok(found);
            }
        }
        Err(NotMapped::Silent)
    }

    /// Sends requests and takes datagrams for `wait`, until `take` has enough; true if it has.
    ///
    /// # Errors
    /// The system does not let the requests leave.
    async fn exchange(
        &self,
        requests: &[&[u8]],
        wait: Duration,
        mut take: impl FnMut(&[u8]) -> bool,
    ) -> io::Result<bool> {
        let until = Instant::now() + wait;
        for request in requests {
            match self.socket.send(request).await {
                Ok(_) => {}
                // Of a packet before: nothing listens, or the router has just gone.
                Err(error) if is_of_the_way(&error) => {}
                Err(error) => return Err(error),
            }
        }
        // A byte more than a message shows that a datagram is none.
        let mut buffer = [0; MESSAGE_MAX + 1];
        for _ in 0..DATAGRAMS_MAX {
            match timeout_at(until, self.socket.recv(&mut buffer)).await {
                Err(_) => return Ok(false),
                Ok(Ok(len)) if take(&buffer[..len]) => return Ok(true),
                Ok(_) => {}
            }
        }
        Ok(false)
    }
}

impl Heard {
    fn take(&mut self, wanted: &pcp::Request, bytes: &[u8], granted: &mut Option<Granted>) {
        if let Some(answer) = wanted.read(bytes) {
            match granted_by_pcp(answer) {
                Some(Ok(mapping)) => *granted = Some(mapping),
                Some(Err(why)) => self.not_by_pcp = Some(Some(why)),
                None => {
                    self.not_by_pcp.get_or_insert(None);
                }
            }
            return;
        }
        match nat_pmp::read(bytes, wanted.client.port()) {
            Some(nat_pmp::Answer::Address { ip, .. }) if ip.is_unspecified() => {
                self.address = Some(Err(NotMapped::NoExternalAddress(MappedBy::NatPmp)));
            }
            Some(nat_pmp::Answer::Address { ip, .. }) => self.address = Some(Ok(ip)),
            Some(nat_pmp::Answer::Refused(code)) => {
                self.address = Some(Err(nat_pmp::refusal(code)));
            }
            _ => {}
        }
    }

    fn is_complete(&self) -> bool {
        self.not_by_pcp.is_some() && self.address.is_some()
    }
}

/// The result of an answer by PCP; `None` if the server knows another version only.
fn granted_by_pcp(answer: pcp::Answer) -> Option<Result<Granted, NotMapped>> {
    match answer {
        pcp::Answer::Mapped { external, lifetime, epoch } => {
            let granted = Granted { external, lifetime: Some(lifetime), epoch: Some(epoch) };
            Some(checked(MappedBy::Pcp, granted))
        }
        pcp::Answer::Refused(code) => Some(Err(pcp::refusal(code))),
        pcp::Answer::OtherVersion => None,
    }
}

/// Refuses a grant that is of no use: without port, address or lifetime.
pub(super) fn checked(by: MappedBy, granted: Granted) -> Result<Granted, NotMapped> {
    if granted.external.ip().is_unspecified() {
        return Err(NotMapped::NoExternalAddress(by));
    }
    if granted.external.port() == 0 || granted.lifetime == Some(0) {
        return Err(NotMapped::Nonsense(by));
    }
    Ok(granted)
}

/// The age and address of an answer or announcement by NAT-PMP.
pub(super) fn age_of(bytes: &[u8], port: u16) -> Option<Age> {
    match nat_pmp::read(bytes, port)? {
        nat_pmp::Answer::Address { ip, epoch } => Some(Age { epoch, external: Some(ip.into()) }),
        _ => None,
    }
}

/// True for errors that routers and hosts on the way cause, also falsely.
fn is_of_the_way(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
    )
}
