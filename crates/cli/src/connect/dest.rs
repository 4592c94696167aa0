//! DEST on the command line: a ticket, a code, a name in the local network, or hosts with ports.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use crate::args::{DEFAULT_PORT, TURN_PORT};
use crate::connect::exposed::Secret;
use crate::connect::found::Found;
use crate::connect::link_local::OTHER_ADDRESS;
use crate::connect::via::lines;
use crate::failure::{Failure, Result};
use crate::screen::Screen;
use manypath::{ConnectTarget, RelayedAddress, is_link_local_v6, unmapped};
use manypath_files::ticket::{PREFIX, Ticket, TicketError, TrustMismatch};
use manypath_names::Proof;
use manypath_transfer::target_of;
use manypath_trust::{Code, Erased, Fingerprint, RelayCode, RelayCodeError};

/// As many transport addresses of the peer as are tried.
const ADDRESSES_MAX: usize = 8;

/// The hint when the interface of a link-local address is not found.
const INTERFACE_WANTED: &str = "write the name of one of this host's interfaces behind %";

/// Where to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// The ticket that a receiver printed.
    Ticket(Ticket),
    /// Names or addresses, with ports.
    Hosts(Vec<(String, u16)>),
    /// One word: the name of a receiver in the local network, or of a host with the default port.
    Word(String),
    /// A receiver that was found in the local network.
    Local(Local),
    /// A code, whose receiver a relay knows.
    Code(CodeAt),
    /// The receiver of a code, where a relay said that it is.
    Met(Met),
}

/// A receiver that was found in the local network. Nothing of this is proved: a code or token must
/// show that it is the right one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Local {
    /// Its name.
    pub(crate) name: String,
    /// Where it listens.
    pub(crate) addresses: Vec<SocketAddr>,
    /// The key that it announces, which it must have; none if it announces none.
    pub(crate) key: Option<Fingerprint>,
    /// The kind of secret that a sender needs.
    pub(crate) proof: Proof,
}

/// A code, and the relay that knows its receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeAt {
    pub(crate) code: RelayCode,
    /// The relay's name and port, if they are written behind the code.
    pub(crate) relay: Option<(String, u16)>,
}

/// The receiver of a code. Nothing is proved yet: the words of the code must show that it is the
/// right one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Met {
    pub(crate) code: Code,
    /// The relay, and the address where it lets everybody in.
    pub(crate) relayed: RelayedAddress,
}

impl Destination {
    /// Reads DEST, or the file that `@FILE` names; anything that looks like a ticket must be one.
    pub(crate) fn parse(text: &str) -> Result<Destination> {
        let text = text.trim();
        match text.strip_prefix('@') {
            Some(file) => Destination::parse_word(&only_line(file)?),
            None => Destination::parse_word(text),
        }
    }

    fn parse_word(text: &str) -> Result<Destination> {
        if Ticket::looks_like(text) {
            return Ticket::parse(text).map(Destination::Ticket).map_err(unreadable);
        }
        if let Some(code) = code_at(text)? {
            return Ok(Destination::Code(code));
        }
        // An address, or a host that has a domain or a port, is no name.
        if !text.contains([',', ':', '.', '[']) {
            let (host, _) = host_port(text)?;
            return Ok(Destination::Word(host));
        }
        text.split(',').map(host_port).collect::<Result<_>>().map(Destination::Hosts)
    }

    /// The key that the receiver must prove to have, if DEST names one. An error if only one of
    /// the ticket and this end is `insecure`.
    pub(crate) fn key(&self, insecure: bool) -> Result<Option<Fingerprint>> {
        match self {
            Destination::Ticket(ticket) => ticket.key(insecure).map_err(mismatch),
            Destination::Code(_) | Destination::Met(_) if insecure => {
                Err(Failure::usage("a code is worth nothing without encryption")
                    .hint("leave out --insecure, or use a ticket of `manypath recv --insecure`"))
            }
            Destination::Hosts(_)
            | Destination::Word(_)
            | Destination::Code(_)
            | Destination::Met(_) => Ok(None),
            Destination::Local(local) => Ok(local.key),
        }
    }

    /// The word, if DEST is one.
    pub(crate) fn word(&self) -> Option<&str> {
        match self {
            Destination::Word(word) => Some(word),
            _ => None,
        }
    }

    /// The receiver in the local network, if DEST is one.
    pub(crate) fn local(&self) -> Option<&Local> {
        match self {
            Destination::Local(local) => Some(local),
            _ => None,
        }
    }

    /// The code, if DEST is one.
    pub(crate) fn code(&self) -> Option<&Code> {
        match self {
            Destination::Code(at) => Some(&at.code.code),
            Destination::Met(met) => Some(&met.code),
            _ => None,
        }
    }

    /// DEST for a command whose peers show no code.
    ///
    /// # Errors
    /// It is a code.
    pub(crate) fn without_code(self) -> Result<Destination> {
        if self.code().is_none() {
            return Ok(self);
        }
        Err(Failure::usage("a code is for `manypath send`")
            .hint("use the ticket that the other end prints, or HOST:PORT"))
    }

    /// The first host, if DEST names hosts.
    pub(crate) fn host(&self) -> Option<&str> {
        match self {
            Destination::Ticket(_) | Destination::Code(_) | Destination::Met(_) => None,
            Destination::Hosts(hosts) => hosts.first().map(|(host, _)| host.as_str()),
            Destination::Word(word) => Some(word),
            Destination::Local(local) => Some(&local.name),
        }
    }

    /// Tells the user if others can read the ticket in the file that `text` names.
    pub(crate) fn warn_of_file(&self, text: &str, screen: &Screen) {
        if matches!(self, Destination::Ticket(_))
            && let Some(file) = text.trim().strip_prefix('@')
            && let Some(warning) = Secret::Ticket.warning(Path::new(file))
        {
            screen.line(&warning);
        }
    }

    /// The peer at the addresses that [`resolve`](Self::resolve) found, and behind the relays that
    /// a ticket names.
    pub(crate) fn target(&self, remotes: Vec<SocketAddr>) -> ConnectTarget {
        match self {
            Destination::Ticket(ticket) => target_of(ticket),
            Destination::Met(met) => ConnectTarget::new(remotes).through([met.relayed]),
            _ => ConnectTarget::new(remotes),
        }
    }

    /// The transport addresses, names looked up, each once. Those of relays are not among them.
    ///
    /// # Errors
    /// None of the hosts was found.
    pub(crate) async fn resolve(&self) -> Result<Found<SocketAddr>> {
        let word;
        let hosts = match self {
            Destination::Ticket(ticket) => return Ok(Found::complete(ticket.socket_addresses())),
            Destination::Local(local) => return Ok(Found::complete(local.addresses.clone())),
            Destination::Code(_) | Destination::Met(_) => return Ok(Found::complete(Vec::new())),
            Destination::Hosts(hosts) => hosts,
            Destination::Word(name) => {
                word = vec![(name.clone(), DEFAULT_PORT)];
                &word
            }
        };
        let (mut addresses, mut missing) = (Vec::new(), Vec::new());
        for (host, port) in hosts {
            let found = match tokio::net::lookup_host((host.as_str(), *port)).await {
                Ok(found) => found,
                Err(e) => {
                    missing.push(match host.split_once('%') {
                        Some((_, name)) => format!("there is no interface {name:?} for {host}"),
                        None => format!("cannot find the host {host}: {e}"),
                    });
                    continue;
                }
            };
            let usable = found.map(unmapped).filter(|address| !lacks_interface(address));
            let mut usable = usable.peekable();
            if usable.peek().is_none() {
                missing.push(format!(
                    "the host {host} has only link-local addresses without an interface; {OTHER_ADDRESS}"
                ));
            }
            for address in usable {
                if !addresses.contains(&address) && addresses.len() < ADDRESSES_MAX {
                    addresses.push(address);
                }
            }
        }
        let found = Found::new(addresses, missing);
        if hosts.iter().all(|(host, _)| host.contains('%')) {
            found.map_err(|failure| failure.hint(INTERFACE_WANTED))
        } else {
            found
        }
    }
}

/// True for a link-local address that nothing can be sent to, as name servers may give it.
fn lacks_interface(address: &SocketAddr) -> bool {
    match address {
        SocketAddr::V4(_) => false,
        SocketAddr::V6(v6) => is_link_local_v6(address.ip()) && v6.scope_id() == 0,
    }
}

/// The only line of a file but empty ones and comments. Other users of this system cannot see it,
/// as they can see the command line.
fn only_line(file: &str) -> Result<Erased<String>> {
    let mut lines = lines(Path::new(file))?;
    match (lines.pop(), lines.is_empty()) {
        (Some(line), true) => Ok(line),
        (last, _) => {
            let what = if last.is_some() { "has more than one line" } else { "is empty" };
            Err(Failure::usage(format!("{file} {what}"))
                .hint("the file has a ticket, or HOST[:PORT][,HOST[:PORT]...], on its only line"))
        }
    }
}

/// The code that `text` is, with `@RELAY` behind it or without. A number and two words are always a
/// code: a slip of the finger is not looked up as a host.
fn code_at(text: &str) -> Result<Option<CodeAt>> {
    let (code, relay) = match text.split_once('@') {
        Some((code, relay)) => (code, Some(relay)),
        None => (text, None),
    };
    let code = match code.parse::<RelayCode>() {
        Ok(code) => code,
        Err(RelayCodeError::Form) => return Ok(None),
        Err(error @ RelayCodeError::UnknownWord(_)) => {
            return Err(Failure::usage(error.to_string())
                .hint(format!("for a host of this name, write {text}:{DEFAULT_PORT}")));
        }
    };
    let relay = relay.map(|relay| host_and_port(relay, TURN_PORT)).transpose()?;
    Ok(Some(CodeAt { code, relay }))
}

fn unreadable(error: TicketError) -> Failure {
    let whole =
        format!("copy the whole word that `manypath recv` printed, from {PREFIX} to its end");
    let hint = match error {
        TicketError::OlderVersion => {
            "both ends need this version: install it on the receiver's machine, and make a new \
             ticket there with `manypath recv`"
        }
        TicketError::NewerVersion => {
            "both ends need the same version: update manypath on this machine, or make a new ticket \
             with this version of `manypath recv`"
        }
        TicketError::BadCharacter | TicketError::Damaged => &whole,
    };
    Failure::usage(error.to_string()).hint(hint)
}

fn mismatch(mismatch: TrustMismatch) -> Failure {
    let hint = match mismatch {
        TrustMismatch::InsecureTicket => {
            "start `manypath recv` without --insecure and use the ticket that it prints"
        }
        TrustMismatch::StrictTicket => {
            "leave out --insecure, or start `manypath recv --insecure` and use its ticket"
        }
    };
    Failure::usage(mismatch.to_string()).hint(hint)
}

/// True for an IP address, with its interface if it is link-local: `fe80::7%eth0` (RFC 4007 §11).
///
/// # Errors
/// A link-local address without its interface, or another one with an interface.
fn is_address(text: &str) -> Result<bool> {
    let (ip, interface) = match text.split_once('%') {
        Some((ip, interface)) => (ip, Some(interface)),
        None => (text, None),
    };
    let Ok(ip) = ip.parse::<IpAddr>() else { return Ok(false) };
    match (is_link_local_v6(ip), interface) {
        (true, Some(name)) if !name.is_empty() => Ok(true),
        (true, _) => Err(Failure::usage(format!(
            "{text}: a link-local address needs the interface of this host that leads there"
        ))
        .hint(format!("write {ip}%eth0 with the name of the interface, or {OTHER_ADDRESS}"))),
        (false, Some(_)) => Err(Failure::usage(format!(
            "{text}: only a link-local address (fe80::…) has an interface (%)"
        ))
        .hint("leave out % and all behind it")),
        (false, None) => Ok(true),
    }
}

fn host_port(text: &str) -> Result<(String, u16)> {
    host_and_port(text, DEFAULT_PORT)
}

/// The host and port in `text`, which may leave out the port.
fn host_and_port(text: &str, default_port: u16) -> Result<(String, u16)> {
    let wrong = || {
        Failure::usage(format!("{text:?} is not HOST or HOST:PORT"))
            .hint("write it like server.example:9899, 192.0.2.7 or [2001:db8::7]:9899")
    };
    if is_address(text)? {
        return Ok((text.to_owned(), default_port));
    }
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (ip, after) = rest.split_once(']').ok_or_else(wrong)?;
            if !is_address(ip)? {
                return Err(wrong());
            }
            let port = match after {
                "" => None,
                _ => Some(after.strip_prefix(':').ok_or_else(wrong)?),
            };
            (ip, port)
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    if host.is_empty() || host.contains(char::is_whitespace) {
        return Err(wrong());
    }
    let port = match port {
        None => default_port,
        Some(port) => port.parse().ok().filter(|p| *p != 0).ok_or_else(wrong)?,
    };
    Ok((host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;
    use manypath_files::ticket::Trust;

    #[test]
    fn hosts_and_ports_are_told_apart() {
        for (text, host, port) in [
            ("a.example", "a.example", 9899),
            ("a.example:80", "a.example", 80),
            ("192.0.2.1:1", "192.0.2.1", 1),
            ("::1", "::1", 9899),
            ("[::1]", "::1", 9899),
            ("[::1]:7", "::1", 7),
        ] {
            let expected = Destination::Hosts(vec![(host.to_owned(), port)]);
            assert_eq!(Destination::parse(text), Ok(expected), "{text}");
        }
        // One word may be a name; localhost, which none may have, too.
        for text in ["laptop", "localhost", "host_1"] {
            assert_eq!(Destination::parse(text), Ok(Destination::Word(text.to_owned())));
        }
        let Ok(Destination::Hosts(two)) = Destination::parse("a:1,[::1]:2") else { panic!() };
        assert_eq!(two, [("a".to_owned(), 1), ("::1".to_owned(), 2)]);
        for text in
            ["", "a:", "a:0", "a:65536", "a:b", ":1", "[x]:1", "[::1", "[::1]7", "a,", "a b"]
        {
            assert_eq!(Destination::parse(text).unwrap_err().exit, Exit::Usage, "{text:?}");
        }
    }

    #[test]
    fn a_number_and_two_words_are_a_code() {
        let at = |text: &str| match Destination::parse(text) {
            Ok(Destination::Code(CodeAt { code, relay })) => (code.to_string(), relay),
            other => panic!("{text}: {other:?}"),
        };
        let code = || "7-cabana-anvil".to_owned();
        let relay = |host: &str, port| Some((host.to_owned(), port));
        assert_eq!(at("7-cabana-anvil"), (code(), None));
        assert_eq!(at(" 7 Cabana ANVIL "), (code(), None));
        assert_eq!(at("7-cabana-anvil@relay.example"), (code(), relay("relay.example", 3478)));
        assert_eq!(at("7-cabana-anvil@192.0.2.1:99"), (code(), relay("192.0.2.1", 99)));
        assert_eq!(at("7-cabana-anvil@[2001:db8::1]:9"), (code(), relay("2001:db8::1", 9)));
        let slip = Destination::parse("7-cabana-anvill").unwrap_err();
        assert!(slip.message.contains("\"anvill\""), "{slip}");
        assert!(slip.hint.unwrap().contains("7-cabana-anvill:9899"));
        for text in ["7-cabana-anvil@", "7-cabana-anvil@a b", "7-cabana-anvil@h:0"] {
            assert_eq!(Destination::parse(text).unwrap_err().exit, Exit::Usage, "{text}");
        }
        for text in ["7-cabana-anvil:9899", "7-cabana-anvil.example", "ann@host.example"] {
            assert!(matches!(Destination::parse(text), Ok(Destination::Hosts(_))), "{text}");
        }
        let code = Destination::parse("7-cabana-anvil").unwrap();
        assert_eq!((code.host(), code.key(false)), (None, Ok(None)));
        assert!(code.key(true).is_err() && code.without_code().is_err());
    }

    #[test]
    fn a_link_local_address_without_its_interface_is_refused_with_the_remedy() {
        for text in ["fe80::7", "[fe80::7]:7", "[fe80::7]", "fe80::7%", "a,[fe80::7%]:7"] {
            let failure = Destination::parse(text).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage, "{text}");
            assert!(failure.message.contains("needs the interface"), "{failure}");
            let hint = failure.hint.unwrap();
            assert!(hint.contains("fe80::7%eth0") && hint.contains("global or unique local"));
        }
        for text in ["fd00::7%eth0", "[fd00::7%eth0]:7", "192.0.2.7%eth0"] {
            let failure = Destination::parse(text).unwrap_err();
            assert!(failure.message.contains("only a link-local address"), "{failure}");
        }
    }

    #[tokio::test]
    async fn a_link_local_address_keeps_its_interface() {
        for text in ["[fe80::7%1]:7", "a.example:1,[fe80::7%1]:7"] {
            let Ok(Destination::Hosts(hosts)) = Destination::parse(text) else { panic!("{text}") };
            assert_eq!(hosts.last(), Some(&("fe80::7%1".to_owned(), 7)));
        }
        let of_interface = Destination::parse("fe80::7%1").unwrap().resolve().await.unwrap().all;
        assert_eq!(of_interface, ["[fe80::7%1]:9899".parse().unwrap()]);
        let none = Destination::parse("fe80::7%no-such0").unwrap().resolve().await.unwrap_err();
        assert!(none.message.contains("no interface \"no-such0\""), "{none}");
        assert_eq!(none.hint.as_deref(), Some(INTERFACE_WANTED));
    }

    #[tokio::test]
    async fn a_host_with_link_local_addresses_alone_is_refused_with_the_remedy() {
        let of_none = Destination::Hosts(vec![("fe80::7".to_owned(), 7)]);
        let failure = of_none.resolve().await.unwrap_err();
        assert!(failure.message.contains("only link-local"), "{failure}");
        assert!(failure.message.contains("global or unique local"), "{failure}");
        let both = Destination::Hosts(vec![("fe80::7".to_owned(), 7), ("::1".to_owned(), 7)]);
        let found = both.resolve().await.unwrap();
        assert_eq!((found.all.len(), found.missing.len()), (1, 1));
    }

    #[tokio::test]
    async fn an_ipv4_address_in_an_ipv6_one_is_an_ipv4_address() {
        for text in ["[::ffff:127.0.0.1]:7", "127.0.0.1:7"] {
            let addresses = Destination::parse(text).unwrap().resolve().await;
            assert_eq!(addresses.unwrap().all, ["127.0.0.1:7".parse().unwrap()], "{text}");
        }
    }

    #[tokio::test]
    async fn a_word_is_a_host_unless_a_receiver_has_that_name() {
        let word = Destination::parse("localhost").unwrap();
        assert_eq!((word.word(), word.host()), (Some("localhost"), Some("localhost")));
        assert!(word.resolve().await.unwrap().all.iter().all(|a| a.port() == DEFAULT_PORT));
        let key = Some(Fingerprint::of(b"a key"));
        let addresses = vec!["192.0.2.7:1".parse().unwrap()];
        let name = "laptop".to_owned();
        let local = Local { name, addresses: addresses.clone(), key, proof: Proof::Code };
        let dest = Destination::Local(local);
        assert_eq!((dest.word(), dest.host()), (None, Some("laptop")));
        assert_eq!(dest.resolve().await, Ok(Found::complete(addresses)));
        assert_eq!(dest.key(false), Ok(key));
    }

    #[test]
    fn a_file_has_the_destination_on_its_only_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("dest");
        let read = |content: &str| {
            std::fs::write(&file, content).unwrap();
            Destination::parse(&format!("@{}", file.display()))
        };
        let expected = Destination::Hosts(vec![("a".to_owned(), 9899), ("b".to_owned(), 7)]);
        assert_eq!(read("# the far side\n\n  a,b:7 \n"), Ok(expected));
        let damaged = read("manypath2:abcdefgh\n").unwrap_err();
        assert!(damaged.message.contains("incomplete"), "{damaged}");
        for (content, why) in [("", "is empty"), ("# a\n", "is empty"), ("a\nb\n", "more than one")]
        {
            let failure = read(content).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.message.contains(why), "{failure}");
        }
        // A file is not named in a file.
        assert!(read("@a\n").is_ok_and(|dest| dest.host() == Some("@a")));
        let missing = Destination::parse("@no/such").unwrap_err();
        assert!(missing.message.contains("cannot read no/such"), "{missing}");
    }

    #[test]
    fn a_damaged_ticket_is_not_taken_for_a_host() {
        let failure = Destination::parse("manypath2:abcdefgh").unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        assert!(failure.message.contains("incomplete"));
        assert!(failure.hint.unwrap().contains("manypath2:"));
    }

    #[test]
    fn tickets_of_other_versions_say_what_to_do() {
        for (ticket, message, hint) in [
            ("manypath1:aeancnq", "older version", "new ticket there with `manypath recv`"),
            ("manypath3:aeancnq", "newer version", "update manypath on this machine"),
        ] {
            let failure = Destination::parse(ticket).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.message.contains(message), "{failure}");
            assert!(failure.hint.unwrap().contains(hint));
        }
    }

    #[test]
    fn a_ticket_and_a_sender_must_agree_on_encryption() {
        let fingerprint = Fingerprint::of(b"a key");
        let dest = |trust| {
            let addresses = vec!["192.0.2.7".parse().unwrap()];
            let ticket = Ticket {
                addresses,
                port: 9899,
                relayed: Vec::new(),
                token: vec![1; 16].into(),
                trust,
            };
            Destination::parse(&ticket.to_string()).unwrap()
        };
        let (strict, insecure) = (dest(Trust::Key(fingerprint)), dest(Trust::Insecure));
        assert_eq!(strict.key(false), Ok(Some(fingerprint)));
        assert_eq!(insecure.key(true), Ok(None));
        for (dest, flag, message) in
            [(strict, true, "demands an encrypted"), (insecure, false, "neither encrypted")]
        {
            let failure = dest.key(flag).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.message.contains(message) && failure.hint.is_some(), "{failure}");
        }
        assert_eq!(Destination::parse("host").unwrap().key(true), Ok(None));
    }
}
