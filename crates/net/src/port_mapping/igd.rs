//! Asking a router by UPnP IGD: it is searched for by SSDP, describes itself over HTTP, and takes
//! actions of SOAP (UPnP Device Architecture 1.1; WANIPConnection:1 and :2).

mod description;
mod http;
mod soap;
mod url;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::place::Place;
use super::udp::{Granted, checked};
use super::{MappedBy, NotMapped};
use description::Service;
use soap::Fault;
use url::Url;

/// The port of SSDP, and its group.
const SSDP: u16 = 1900;
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 255, 250);
/// Kinds of device that are searched for. Routers of version 2 must answer to both.
const KINDS: [&str; 2] = [
    "urn:schemas-upnp-org:device:InternetGatewayDevice:1",
    "urn:schemas-upnp-org:device:InternetGatewayDevice:2",
];
/// Time for the answers to each search, together two seconds. A router waits up to a second.
const WAITS: [Duration; 2] = [Duration::from_millis(600), Duration::from_millis(1400)];
/// Answers that are read, and descriptions that are asked for, at most.
const ANSWERS_MAX: usize = 32;
const DESCRIPTIONS_MAX: usize = 3;
/// Bytes of an answer at most.
const ANSWER_MAX: usize = 2048;
/// Other ports that are tried where another host has the wanted one.
const PORTS_TRIED: usize = 3;
/// The ports that are free for such use.
const FIRST_DYNAMIC_PORT: u16 = 49152;

/// A service of a router that maps ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Igd {
    place: Place,
    service: Service,
    /// The external address that it told.
    external: Ipv4Addr,
}

impl Igd {
    /// Searches the router for a service that maps ports. It changes nothing there.
    ///
    /// # Errors
    /// The router does not answer, makes no sense, or has no external address.
    pub(super) async fn find(place: &Place) -> Result<Igd, NotMapped> {
        if place.local.is_ipv6() {
            return Err(NotMapped::Silent);
        }
        let system = |error: std::io::Error| NotMapped::System(error.to_string());
        let socket = place.udp().map_err(system)?;
        let mut buffer = [0; ANSWER_MAX];
        let mut described: Vec<Url> = Vec::new();
        let mut why = NotMapped::Silent;
        let mut answers = 0;
        for wait in WAITS {
            // Some routers hear only what is for the group, others only what is for them.
            for to in [place.gateway_at(SSDP), SocketAddr::from((GROUP, SSDP))] {
                for kind in KINDS {
                    let _ = socket.send_to(&search(kind), to).await;
                }
            }
            let until = Instant::now() + wait;
            while answers < ANSWERS_MAX
                && let Ok(answer) = timeout_at(until, socket.recv_from(&mut buffer)).await
            {
                answers += 1;
                let Ok((len, from)) = answer else { continue };
                if from.ip() != place.gateway {
                    continue;
                }
                let Some(url) = location(&buffer[..len], place.gateway) else {
                    why = NotMapped::Nonsense(MappedBy::UpnpIgd);
                    continue;
                };
                if described.contains(&url) || described.len() == DESCRIPTIONS_MAX {
                    continue;
                }
                described.push(url.clone());
                match Igd::described(place, &url).await {
                    Ok(igd) => return Ok(igd),
                    Err(reason) => why = reason,
                }
            }
        }
        Err(why)
    }

    /// The first service of a description that has an external address.
    async fn described(place: &Place, url: &Url) -> Result<Igd, NotMapped> {
        let nonsense = NotMapped::Nonsense(MappedBy::UpnpIgd);
        let Ok(page) = http::get(place, url).await else { return Err(nonsense) };
        let services = description::services(&page, url).ok_or(nonsense)?;
        let mut why = NotMapped::Nonsense(MappedBy::UpnpIgd);
        for service in services {
            let unspecified = Ipv4Addr::UNSPECIFIED;
            let mut igd = Igd { place: place.clone(), service, external: unspecified };
            match igd.external_address().await {
                Ok(external) => {
                    igd.external = external;
                    return Ok(igd);
                }
                Err(reason) => why = reason,
            }
        }
        Err(why)
    }

    async fn external_address(&self) -> Result<Ipv4Addr, NotMapped> {
        let answer = self.act("GetExternalIPAddress", &[]).await.map_err(refusal)?;
        let told = soap::value(&answer, "NewExternalIPAddress");
        match told.as_deref().map(str::trim).map(str::parse::<Ipv4Addr>) {
            Some(Ok(ip)) if !ip.is_unspecified() => Ok(ip),
            _ => Err(NotMapped::NoExternalAddress(MappedBy::UpnpIgd)),
        }
    }

    /// Makes the mapping. If another host has the wanted port, some others are tried. A router
    /// that knows no lifetimes keeps it until it is deleted.
    ///
    /// # Errors
    /// The router refuses, or is silent.
    pub(super) async fn map(
        &self,
        lifetime: u32,
        wanted: Option<SocketAddr>,
    ) -> Result<Granted, NotMapped> {
        let mut port = wanted.map_or(self.place.local.port(), |wanted| wanted.port());
        let (mut lease, mut tries) = (Some(lifetime), 0);
        loop {
            match self.add(port, lease).await {
                Ok(()) => break,
                Err(Fault::Upnp(soap::NO_LIFETIMES | soap::INVALID)) if lease.is_some() => {
                    lease = None;
                }
                Err(Fault::Upnp(soap::CONFLICT)) if tries < PORTS_TRIED => {
                    tries += 1;
                    port = random_port()?;
                }
                Err(fault) => {
                    if fault == Fault::Silent {
                        // It may have made the mapping all the same.
                        self.delete_port(port).await;
                    }
                    return Err(refusal(fault));
                }
            }
        }
        let external = SocketAddr::new(self.external.into(), port);
        checked(MappedBy::UpnpIgd, Granted { external, lifetime: lease, epoch: None })
    }

    /// Maps the port again in a router that may have another external address now.
    ///
    /// # Errors
    /// The router refuses, or is silent.
    pub(super) async fn map_again(
        &mut self,
        lifetime: u32,
        wanted: Option<SocketAddr>,
    ) -> Result<Granted, NotMapped> {
        self.external = self.external_address().await?;
        self.map(lifetime, wanted).await
    }

    async fn add(&self, port: u16, lease: Option<u32>) -> Result<(), Fault> {
        let (external, lease) = (port.to_string(), lease.unwrap_or(0).to_string());
        let internal = self.place.local.port().to_string();
        let client = self.place.local.ip().to_string();
        let arguments = [
            ("NewRemoteHost", ""),
            ("NewExternalPort", &external),
            ("NewProtocol", "UDP"),
            ("NewInternalPort", &internal),
            ("NewInternalClient", &client),
            ("NewEnabled", "1"),
            ("NewPortMappingDescription", "manypath"),
            ("NewLeaseDuration", &lease),
        ];
        self.act("AddPortMapping", &arguments).await.map(drop)
    }

    /// True unless the router says that the mapping is gone, or has another external address.
    pub(super) async fn still_has(&self, granted: &Granted) -> bool {
        let port = granted.external.port().to_string();
        let arguments =
            [("NewRemoteHost", ""), ("NewExternalPort", port.as_str()), ("NewProtocol", "UDP")];
        if let Err(Fault::Upnp(soap::NO_SUCH_ENTRY)) =
            self.act("GetSpecificPortMappingEntry", &arguments).await
        {
            return false;
        }
        match self.external_address().await {
            Ok(ip) => IpAddr::V4(ip) == granted.external.ip(),
            Err(_) => true,
        }
    }

    /// Deletes the mapping, as far as the router answers.
    pub(super) async fn delete(&self, granted: &Granted) {
        self.delete_port(granted.external.port()).await;
    }

    async fn delete_port(&self, port: u16) {
        let port = port.to_string();
        let arguments =
            [("NewRemoteHost", ""), ("NewExternalPort", port.as_str()), ("NewProtocol", "UDP")];
        let _ = self.act("DeletePortMapping", &arguments).await;
    }

    async fn act(&self, action: &str, arguments: &[(&str, &str)]) -> Result<String, Fault> {
        soap::act(&self.place, &self.service, action, arguments).await
    }
}

fn refusal(fault: Fault) -> NotMapped {
    let by = MappedBy::UpnpIgd;
    match fault {
        Fault::Silent => NotMapped::Silent,
        Fault::Nonsense => NotMapped::Nonsense(by),
        Fault::Upnp(code) => NotMapped::Refused { by, why: soap::words(code), code },
    }
}

fn random_port() -> Result<u16, NotMapped> {
    let random = getrandom::u32().map_err(|error| NotMapped::System(error.to_string()))?;
    Ok(FIRST_DYNAMIC_PORT | random as u16)
}

/// A search for devices of a kind that answer within a second.
fn search(kind: &str) -> Vec<u8> {
    format!(
        "M-SEARCH * HTTP/1.1\r\nHOST: {GROUP}:{SSDP}\r\nMAN: \"ssdp:discover\"\r\nMX: 1\r\n\
         ST: {kind}\r\n\r\n"
    )
    .into_bytes()
}

/// The place of the description in the answer to a search, if it is on the router itself.
fn location(answer: &[u8], gateway: IpAddr) -> Option<Url> {
    let text = std::str::from_utf8(answer).ok()?;
    let mut lines = text.split("\r\n");
    let status = lines.next()?;
    if !status.starts_with("HTTP/1.") || status.split(' ').nth(1) != Some("200") {
        return None;
    }
    let headers = lines.take_while(|line| !line.is_empty());
    let mut headers = headers.filter_map(|line| line.split_once(':'));
    let found = headers.find(|header| header.0.trim().eq_ignore_ascii_case("location"))?;
    Url::parse(found.1.trim(), gateway)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_only_asked_for_at_the_router_itself() {
        let gateway = [192, 168, 1, 1].into();
        let found = |text: &str| location(text.as_bytes(), gateway).map(|url| url.to_string());
        let answer = |url: &str| format!("HTTP/1.1 200 OK\r\nST: x\r\nLocation: {url}\r\n\r\n");
        let good = "http://192.168.1.1:5000/root.xml";
        assert_eq!(found(&answer(good)).as_deref(), Some(good));
        for url in ["http://192.168.1.2:5000/root.xml", "https://192.168.1.1/", "", "/root.xml"] {
            assert_eq!(found(&answer(url)), None, "{url}");
        }
        assert_eq!(found(&answer(good).replace("200", "302")), None);
        assert_eq!(found("HTTP/1.1 200 OK\r\n\r\nLocation: http://192.168.1.1/"), None);
        assert_eq!(location(&[0xff; 40], gateway), None);
    }

    #[test]
    fn other_ports_are_dynamic_ones() {
        for _ in 0..100 {
            assert!(random_port().unwrap() >= FIRST_DYNAMIC_PORT);
        }
    }
}
