//! A router on a loopback address of its own that maps no port, but answers as one.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The answers by a protocol.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Talk {
    Silent,
    Maps,
    Refuses(u8),
    /// Says that the version of the request is not supported.
    OtherVersion,
    Garbage,
}

/// A request that the router heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Pcp {
        nonce: [u8; 12],
        lifetime: u32,
        suggested: u16,
    },
    NatPmp {
        lifetime: u32,
        suggested: u16,
    },
    Igd {
        action: String,
        port: u16,
        lease: u32,
    },
    /// A page that was asked for.
    Page(String),
}

/// A UPnP action's answer: its arguments in XML, or the number of an error.
pub(super) type Answer = Result<String, u16>;

/// The answer to a request for a page: a whole message of HTTP.
pub(super) type Pages = fn(&str) -> Vec<u8>;

/// The router's behaviour, which tests change.
pub(super) struct Ways {
    pub(super) pcp: Talk,
    pub(super) nat_pmp: Talk,
    /// The answer to searches, with `GATEWAY` for the router's address and port.
    pub(super) location: Option<String>,
    pub(super) page: Pages,
    pub(super) act: fn(&mut Ways, &Heard) -> Answer,
    pub(super) external: Ipv4Addr,
    /// The external port; the wanted one if there is none.
    pub(super) port: Option<u16>,
    pub(super) lifetime: u32,
    /// The time of the last start, in the router's own reckoning.
    pub(super) began: Instant,
    /// Ports that are mapped by UPnP.
    pub(super) mapped: Vec<u16>,
    pub(super) heard: Vec<Heard>,
    socket: Option<Arc<UdpSocket>>,
}

#[derive(Clone)]
pub(super) struct Router {
    pub(super) ip: Ipv4Addr,
    ways: Arc<Mutex<Ways>>,
    tasks: Arc<Mutex<JoinSet<()>>>,
}

impl Router {
    /// A router that is silent.
    pub(super) async fn new() -> Router {
        let ways = Ways {
            pcp: Talk::Silent,
            nat_pmp: Talk::Silent,
            location: None,
            page: |_| page("200 OK", &description("/ctl")),
            act: igd,
            external: Ipv4Addr::new(203, 0, 113, 5),
            port: None,
            lifetime: 4,
            began: Instant::now() - Duration::from_secs(1000),
            mapped: Vec::new(),
            heard: Vec::new(),
            socket: None,
        };
        // Tests run at once, also those of others on this machine.
        let ip = Ipv4Addr::from(getrandom::u32().unwrap() >> 8 | 0x7f00_0000);
        let router = Router {
            ip,
            ways: Arc::new(Mutex::new(ways)),
            tasks: Arc::new(Mutex::new(JoinSet::new())),
        };
        let control = Arc::new(UdpSocket::bind((ip, 5351)).await.unwrap());
        router.ways().socket = Some(Arc::clone(&control));
        let search = UdpSocket::bind((ip, 1900)).await.unwrap();
        let pages = TcpListener::bind((ip, 5000)).await.unwrap();
        let mut tasks = router.tasks.lock().unwrap();
        tasks.spawn(serve_control(Arc::clone(&router.ways), control));
        tasks.spawn(serve_search(router.clone_ways(), search, ip));
        tasks.spawn(serve_pages(router.clone_ways(), pages));
        drop(tasks);
        router
    }

    /// A router that speaks PCP.
    pub(super) async fn of_pcp() -> Router {
        let router = Router::new().await;
        router.ways().pcp = Talk::Maps;
        router
    }

    /// A router that speaks UPnP IGD.
    pub(super) async fn of_igd() -> Router {
        let router = Router::new().await;
        router.ways().location = Some("http://GATEWAY/root.xml".to_owned());
        router
    }

    fn clone_ways(&self) -> Arc<Mutex<Ways>> {
        Arc::clone(&self.ways)
    }

    pub(super) fn ways(&self) -> MutexGuard<'_, Ways> {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Restarts: mappings are lost, and the age begins at 0.
    pub(super) fn restart(&self) {
        let mut ways = self.ways();
        ways.began = Instant::now();
        ways.mapped.clear();
        ways.heard.clear();
    }

    /// Tells all hosts that it has restarted (RFC 6886 §3.2.1).
    pub(super) async fn announce(&self) {
        let (socket, message) = {
            let ways = self.ways();
            (Arc::clone(ways.socket.as_ref().unwrap()), ways.address())
        };
        SockRef::from(&*socket).set_multicast_if_v4(&self.ip).unwrap();
        socket.send_to(&message, (Ipv4Addr::new(224, 0, 0, 1), 5350)).await.unwrap();
    }

    pub(super) fn heard(&self) -> Vec<Heard> {
        self.ways().heard.clone()
    }

    /// Waits until it has heard a request of a kind.
    pub(super) async fn hears(&self, is_it: impl Fn(&Heard) -> bool) {
        let waiting = async {
            while !self.ways().heard.iter().any(&is_it) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let in_time = tokio::time::timeout(Duration::from_secs(10), waiting).await;
        assert!(in_time.is_ok(), "heard only {:?}", self.heard());
    }
}

impl Ways {
    fn epoch(&self) -> u32 {
        self.began.elapsed().as_secs() as u32
    }

    /// The external address by NAT-PMP.
    fn address(&self) -> Vec<u8> {
        [&[0, 128, 0, 0][..], &self.epoch().to_be_bytes(), &self.external.octets()].concat()
    }

    fn answer(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        match request {
            [2, 1, ..] => self.answer_pcp(request),
            [2, 0, ..] if self.pcp == Talk::Maps => Some(self.pcp_header(0, 0, 0)),
            [0, 0] => match self.nat_pmp {
                Talk::Maps => Some(self.address()),
                talk => self.answer_otherwise(talk, 0),
            },
            [0, 1, ..] => self.answer_nat_pmp(request),
            _ => None,
        }
    }

    fn pcp_header(&self, opcode: u8, result: u8, lifetime: u32) -> Vec<u8> {
        let begin = [2, 128 | opcode, 0, result];
        let epoch = self.epoch().to_be_bytes();
        [&begin[..], &lifetime.to_be_bytes(), &epoch, &[0; 12]].concat()
    }

    fn answer_pcp(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        let lifetime = number(&request[4..8]);
        let suggested = number(&request[42..44]) as u16;
        let nonce = request[24..36].try_into().unwrap();
        self.heard.push(Heard::Pcp { nonce, lifetime, suggested });
        let result = match self.pcp {
            Talk::Maps => 0,
            Talk::Refuses(code) => code,
            talk => return self.answer_otherwise(talk, 1),
        };
        let granted = if lifetime == 0 { 0 } else { self.lifetime };
        let mut answer = self.pcp_header(1, result, granted);
        answer.extend_from_slice(&request[24..60]);
        let internal = number(&request[40..42]) as u16;
        answer[42..44].copy_from_slice(&self.port.unwrap_or(internal).to_be_bytes());
        answer[44..60].copy_from_slice(&self.external.to_ipv6_mapped().octets());
        Some(answer)
    }

    fn answer_nat_pmp(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        let (internal, suggested) = (&request[4..6], number(&request[6..8]) as u16);
        let lifetime = number(&request[8..12]);
        self.heard.push(Heard::NatPmp { lifetime, suggested });
        if self.nat_pmp != Talk::Maps {
            return self.answer_otherwise(self.nat_pmp, 1);
        }
        let granted = if lifetime == 0 { 0 } else { self.lifetime };
        let external = self.port.unwrap_or(suggested).to_be_bytes();
        let epoch = self.epoch().to_be_bytes();
        Some([&[0, 129, 0, 0], &epoch[..], internal, &external, &granted.to_be_bytes()].concat())
    }

    fn answer_otherwise(&self, talk: Talk, opcode: u8) -> Option<Vec<u8>> {
        let epoch = self.epoch().to_be_bytes();
        match talk {
            Talk::Refuses(code) => Some([&[0, 128 | opcode, 0, code], &epoch[..]].concat()),
            Talk::OtherVersion => Some([&[0, 128 | opcode, 0, 1], &epoch[..]].concat()),
            Talk::Garbage => Some(vec![0xff; 200]),
            Talk::Silent | Talk::Maps => None,
        }
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

async fn serve_control(ways: Arc<Mutex<Ways>>, socket: Arc<UdpSocket>) {
    let mut buffer = [0; 1500];
    while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
        let answer = ways.lock().unwrap().answer(&buffer[..len]);
        if let Some(answer) = answer {
            let _ = socket.send_to(&answer, from).await;
        }
    }
}

async fn serve_search(ways: Arc<Mutex<Ways>>, socket: UdpSocket, ip: Ipv4Addr) {
    let mut buffer = [0; 1500];
    while let Ok((_, from)) = socket.recv_from(&mut buffer).await {
        let location = ways.lock().unwrap().location.clone();
        if let Some(location) = location {
            let location = location.replace("GATEWAY", &format!("{ip}:5000"));
            let answer = format!("HTTP/1.1 200 OK\r\nLOCATION: {location}\r\n\r\n");
            let _ = socket.send_to(answer.as_bytes(), from).await;
        }
    }
}

async fn serve_pages(ways: Arc<Mutex<Ways>>, listener: TcpListener) {
    let mut talks = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        talks.spawn(serve_page(Arc::clone(&ways), stream));
    }
}

async fn serve_page(ways: Arc<Mutex<Ways>>, mut stream: TcpStream) {
    let request = read_request(&mut stream).await;
    let answer = {
        let mut ways = ways.lock().unwrap();
        match action(&request) {
            Some(heard) => {
                ways.heard.push(heard.clone());
                match (ways.act)(&mut ways, &heard) {
                    Ok(text) => page("200 OK", &format!("<r>{text}</r>")),
                    Err(code) => {
                        let text = format!("<f><errorCode>{code}</errorCode></f>");
                        page("500 Internal Server Error", &text)
                    }
                }
            }
            None => {
                let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                ways.heard.push(Heard::Page(path.clone()));
                (ways.page)(&path)
            }
        }
    };
    // The other side may have had enough.
    let _ = stream.write_all(&answer).await;
    let _ = stream.shutdown().await;
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        let lower = text.to_lowercase();
        let length =
            lower.split("content-length: ").nth(1).and_then(|rest| rest.split('\r').next());
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        if let Some(end) = text.find("\r\n\r\n")
            && text.len() >= end + 4 + length
        {
            return text;
        }
        match stream.read(&mut buffer).await {
            Ok(len) if len > 0 => request.extend_from_slice(&buffer[..len]),
            _ => return text,
        }
    }
}

/// The action of a request, if it is one.
fn action(request: &str) -> Option<Heard> {
    let text = |name: &str| {
        let rest = request.split_once(&format!("<{name}>"))?.1;
        Some(rest.split_once('<')?.0.to_owned())
    };
    let number = |name: &str| text(name).and_then(|n| n.parse::<u32>().ok()).unwrap_or(0);
    let action = request.split_once("<u:")?.1.split([' ', '>']).next()?.to_owned();
    let port = number("NewExternalPort") as u16;
    Some(Heard::Igd { action, port, lease: number("NewLeaseDuration") })
}

/// A message of HTTP.
pub(super) fn page(status: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// The description of a router that takes actions at `control`.
pub(super) fn description(control: &str) -> String {
    format!(
        "<root><device><serviceList><service>\
         <serviceType>urn:schemas-upnp-org:service:WANIPConnection:1</serviceType>\
         <controlURL>{control}</controlURL></service></serviceList></device></root>"
    )
}

/// A router that maps whatever port is wanted.
pub(super) fn igd(ways: &mut Ways, heard: &Heard) -> Answer {
    let Heard::Igd { action, port, .. } = heard else { return Err(401) };
    match action.as_str() {
        "GetExternalIPAddress" => {
            Ok(format!("<NewExternalIPAddress>{}</NewExternalIPAddress>", ways.external))
        }
        "AddPortMapping" => {
            ways.mapped.push(*port);
            Ok(String::new())
        }
        "GetSpecificPortMappingEntry" if ways.mapped.contains(port) => Ok(String::new()),
        "GetSpecificPortMappingEntry" => Err(714),
        "DeletePortMapping" => {
            ways.mapped.retain(|mapped| mapped != port);
            Ok(String::new())
        }
        _ => Err(401),
    }
}

/// The local address that is to be mapped; nothing needs to listen there.
pub(super) fn local() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 9899))
}
