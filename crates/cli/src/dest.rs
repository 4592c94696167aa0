//! DEST on the command line: a ticket, a name in the local network, or hosts with ports.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::Path;

use crate::args::DEFAULT_PORT;
use crate::exposed::Secret;
use crate::failure::{Failure, Result};
use crate::found::Found;
use crate::screen::Screen;
use crate::via::lines;
use manypath_files::ticket::{PREFIX, Ticket, TicketError, TrustMismatch};
use manypath_names::Proof;
use manypath_trust::{Erased, Fingerprint};

/// As many transport addresses of the peer as are tried.
const ADDRESSES_MAX: usize = 8;

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
            Destination::Hosts(_) | Destination::Word(_) => Ok(None),
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

    /// The first host, if DEST names hosts.
    pub(crate) fn host(&self) -> Option<&str> {
        match self {
            Destination::Ticket(_) => None,
            Destination::Hosts(hosts) => hosts.first().map(|(host, _)| host.as_str()),
            Destination::Word(word) => Some(word),
            Destination::Local(local) => Some(&local.name),
        }
    }

    /// Tells the user if others can read the ticket in the file that `text` names.
    pub(crate) fn warn_of_file(&self, text: &str, screen: &Screen) {
        let file = text.trim().strip_prefix('@').filter(|_| matches!(self, Destination::Ticket(_)));
        if let Some(warning) = file.and_then(|file| Secret::Ticket.warning(Path::new(file))) {
            screen.line(&warning);
        }
    }

    /// The transport addresses, names looked up, each once.
    ///
    /// # Errors
    /// None of the hosts was found.
    pub(crate) async fn resolve(&self) -> Result<Found<SocketAddr>> {
        let word;
        let hosts = match self {
            Destination::Ticket(ticket) => return Ok(Found::complete(ticket.socket_addresses())),
            Destination::Local(local) => return Ok(Found::complete(local.addresses.clone())),
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
                    missing.push(format!("cannot find the host {host}: {e}"));
                    continue;
                }
            };
            for address in found.map(unmapped) {
                if !addresses.contains(&address) && addresses.len() < ADDRESSES_MAX {
                    addresses.push(address);
                }
            }
        }
        Found::new(addresses, missing)
    }
}

/// True for a link-local address with its interface (RFC 4007), in brackets or not: `fe80::7%eth0`.
fn has_interface(text: &str) -> bool {
    let address = text.trim_start_matches('[').split_once('%');
    address.is_some_and(|(ip, _)| ip.parse::<Ipv6Addr>().is_ok())
}

/// An IPv4 address written as an IPv6 one (`::ffff:192.0.2.1`) is an IPv4 address.
fn unmapped(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
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

fn host_port(text: &str) -> Result<(String, u16)> {
    let wrong = || {
        Failure::usage(format!("{text:?} is not HOST or HOST:PORT"))
            .hint("write it like server.example:9899, 192.0.2.7 or [2001:db8::7]:9899")
    };
    if has_interface(text) {
        let what = format!("{text}: an address with an interface (%) is not supported");
        return Err(Failure::usage(what).hint(
            "use another address of that host: a global or unique local one (fd…), or one of IPv4",
        ));
    }
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Ok((ip.to_string(), DEFAULT_PORT));
    }
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (ip, after) = rest.split_once(']').ok_or_else(wrong)?;
            ip.parse::<IpAddr>().map_err(|_| wrong())?;
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
        None => DEFAULT_PORT,
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
        for text in [
            "",
            "a:",
            "a:0",
            "a:65536",
            "a:b",
            ":1",
            "[x]:1",
            "[::1",
            "[::1]7",
            "a,",
            "a b",
            "fe80::7%eth0",
            "[fe80::7%eth0]:7",
        ] {
            assert_eq!(Destination::parse(text).unwrap_err().exit, Exit::Usage, "{text:?}");
        }
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
            let ticket = Ticket { addresses, port: 9899, token: vec![1; 16].into(), trust };
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
