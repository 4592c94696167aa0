//! A receiver as messages describe it.

use std::net::IpAddr;

use manypath_trust::Fingerprint;

use crate::message::{Data, DomainName, Message, Question, Record, kind};
use crate::name::Name;

/// Addresses of a receiver that are announced, and that are read of an announcement.
pub const ADDRESSES_MAX: usize = 8;

/// How long an announcement holds, in seconds (RFC 6762, section 10).
const TTL: u32 = 120;
/// The version of the TXT record.
const VERSION: &str = "1";

/// A number that tells two receivers of one name apart: of a receiver with a key the first bytes of
/// its fingerprint.
pub type Id = [u8; 8];

/// The kind of secret by which a sender shows a receiver that it may send.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The code that the receiver shows.
    Code,
    /// A token that its user chose.
    Token,
    /// A certificate.
    Certificate,
}

impl Proof {
    /// Its name in messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Proof::Code => "code",
            Proof::Token => "token",
            Proof::Certificate => "certificate",
        }
    }

    fn parse(text: &str) -> Option<Proof> {
        [Proof::Code, Proof::Token, Proof::Certificate].into_iter().find(|p| p.as_str() == text)
    }
}

/// A receiver, as it announces itself. If it comes from the network, nothing of it is proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// Its name.
    pub name: Name,
    /// Its number.
    pub id: Id,
    /// Its key; none if it has a certificate.
    pub key: Option<Fingerprint>,
    /// The kind of secret that senders need.
    pub proof: Proof,
    /// Its UDP port.
    pub port: u16,
    /// Its addresses, most useful first, at most [`ADDRESSES_MAX`]; none link-local.
    pub addresses: Vec<IpAddr>,
}

/// The service that receivers are instances of: `_manypath._udp.local`.
pub(crate) fn service() -> DomainName {
    DomainName::new(["_manypath", "_udp", "local"])
}

/// The question for all of them.
pub(crate) fn query() -> Message {
    let questions = vec![Question { name: service(), kind: kind::PTR }];
    Message { questions, ..Message::default() }
}

impl Announcement {
    /// The number of the receiver with this key.
    #[must_use]
    pub fn id_of(key: &Fingerprint) -> Id {
        let bytes = key.as_bytes();
        std::array::from_fn(|i| bytes[i])
    }

    fn instance(&self) -> DomainName {
        service().child(&format!("{}-{}", self.name, hex(self.id)))
    }

    fn host(&self) -> DomainName {
        DomainName::new([&*format!("manypath-{}", hex(self.id)), "local"])
    }

    /// The message that announces it.
    pub(crate) fn message(&self) -> Message {
        self.message_for(TTL)
    }

    /// The message that takes it back.
    pub(crate) fn goodbye(&self) -> Message {
        self.message_for(0)
    }

    fn message_for(&self, ttl: u32) -> Message {
        let (instance, host) = (self.instance(), self.host());
        let mut strings = vec![
            format!("v={VERSION}"),
            format!("name={}", self.name),
            format!("auth={}", self.proof.as_str()),
        ];
        strings.extend(self.key.map(|key| format!("key={key}")));
        let strings = strings.into_iter().map(String::into_bytes).collect();
        let srv = Data::Srv { port: self.port, host: host.clone() };
        let mut records = vec![
            Record { name: service(), ttl, data: Data::Ptr(instance.clone()) },
            Record { name: instance.clone(), ttl, data: srv },
            Record { name: instance, ttl, data: Data::Txt(strings) },
        ];
        records.extend(self.addresses.iter().take(ADDRESSES_MAX).map(|ip| {
            let data = match ip {
                IpAddr::V4(ip) => Data::A(*ip),
                IpAddr::V6(ip) => Data::Aaaa(*ip),
            };
            Record { name: host.clone(), ttl, data }
        }));
        Message { is_response: true, questions: Vec::new(), records }
    }

    /// True if this question is for one of its records.
    pub(crate) fn is_asked(&self, question: &Question) -> bool {
        let is = |kind| question.kind == kind || question.kind == kind::ANY;
        (question.name == service() && is(kind::PTR))
            || (question.name == self.instance() && (is(kind::SRV) || is(kind::TXT)))
            || (question.name == self.host() && (is(kind::A) || is(kind::AAAA)))
    }

    /// True if whoever sends this query knows it, and will for a while (RFC 6762, section 7.1).
    pub(crate) fn is_known(&self, query: &Message) -> bool {
        let instance = self.instance();
        let knows = |r: &Record| r.ttl >= TTL / 2 && r.data == Data::Ptr(instance.clone());
        query.records.iter().any(|record| record.name == service() && knows(record))
    }
}

/// The receivers in a response.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// Those that it announces.
    pub(crate) here: Vec<Announcement>,
    /// The numbers of those that are gone.
    pub(crate) gone: Vec<Id>,
}

/// Reads what a response says of receivers. Addresses that are not of use here are left out, and so
/// are receivers without any other.
pub(crate) fn read(message: &Message, is_of_use: impl Fn(&IpAddr) -> bool) -> Heard {
    let mut heard = Heard::default();
    if !message.is_response {
        return heard;
    }
    let service = service();
    for pointer in message.records.iter().filter(|record| record.name == service) {
        let Data::Ptr(instance) = &pointer.data else { continue };
        let Some(announcement) = read_instance(message, instance, &is_of_use) else { continue };
        if pointer.ttl == 0 {
            heard.gone.push(announcement.id);
        } else if !announcement.addresses.is_empty() {
            heard.here.push(announcement);
        }
    }
    heard
}

fn read_instance(
    message: &Message,
    instance: &DomainName,
    is_of_use: impl Fn(&IpAddr) -> bool,
) -> Option<Announcement> {
    if !instance.is_child_of(&service()) {
        return None;
    }
    let mut of_instance = message.records.iter().filter(|record| record.name == *instance);
    let (port, host) = of_instance.clone().find_map(|record| match &record.data {
        Data::Srv { port, host } if *port != 0 => Some((*port, host)),
        _ => None,
    })?;
    let strings = of_instance.find_map(|record| match &record.data {
        Data::Txt(strings) => Some(strings),
        _ => None,
    })?;
    let text = |key: &str| {
        let values = strings.iter().filter_map(|s| std::str::from_utf8(s).ok()?.strip_prefix(key));
        values.map(|value| value.strip_prefix('=')).find_map(|value| value)
    };
    if text("v") != Some(VERSION) {
        return None;
    }
    let name: Name = text("name")?.parse().ok()?;
    let proof = Proof::parse(text("auth")?)?;
    let key = text("key").map(str::parse::<Fingerprint>).transpose().ok()?;
    // Only a certificate shows in another way who the receiver is.
    let id = match (key, proof) {
        (Some(key), Proof::Code | Proof::Token) => Announcement::id_of(&key),
        (None, Proof::Certificate) => id_in(host)?,
        _ => return None,
    };
    let mut addresses: Vec<IpAddr> = Vec::new();
    for record in message.records.iter().filter(|record| record.name == *host) {
        let ip = match record.data {
            Data::A(ip) => IpAddr::V4(ip),
            Data::Aaaa(ip) => IpAddr::V6(ip).to_canonical(),
            _ => continue,
        };
        if addresses.len() < ADDRESSES_MAX && is_of_use(&ip) && !addresses.contains(&ip) {
            addresses.push(ip);
        }
    }
    let announcement = Announcement { name, id, key, proof, port, addresses };
    // The names of records are the receiver's own, or it is none of ours.
    (*instance == announcement.instance() && *host == announcement.host()).then_some(announcement)
}

/// The number in the name of a receiver's host.
fn id_in(host: &DomainName) -> Option<Id> {
    let label = host.first()?;
    let digits = std::str::from_utf8(label).ok()?.strip_prefix("manypath-")?;
    let is_right = digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let number = is_right.then(|| u64::from_str_radix(digits, 16).ok())??;
    Some(number.to_be_bytes())
}

fn hex(id: Id) -> String {
    format!("{:016x}", u64::from_be_bytes(id))
}

/// True of an address at which another host can be reached; of loopback only if `is_loopback`, as
/// the announcement came over it.
pub(crate) fn is_of_use(ip: &IpAddr, is_loopback: bool) -> bool {
    let is_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    !is_local && !ip.is_multicast() && !ip.is_unspecified() && (is_loopback || !ip.is_loopback())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A receiver with this name, whose key is the hash of `seed`.
    pub(crate) fn receiver(name: &str, seed: &str) -> Announcement {
        let key = Fingerprint::of(seed.as_bytes());
        Announcement {
            name: name.parse().unwrap(),
            id: Announcement::id_of(&key),
            key: Some(key),
            proof: Proof::Code,
            port: 9899,
            addresses: vec!["192.0.2.7".parse().unwrap(), "2001:db8::7".parse().unwrap()],
        }
    }

    fn read_again(message: &Message) -> Vec<Announcement> {
        let message = Message::read(&message.write()).unwrap();
        read(&message, |ip| is_of_use(ip, false)).here
    }

    #[test]
    fn a_receiver_is_read_as_it_was_announced() {
        let laptop = receiver("Laptop", "a");
        assert_eq!(read_again(&laptop.message()), std::slice::from_ref(&laptop));
        let heard = read(&laptop.goodbye(), |_| true);
        assert_eq!((heard.here, heard.gone), (vec![], vec![laptop.id]));
        let with_certificate =
            Announcement { key: None, id: *b"\0random!", proof: Proof::Certificate, ..laptop };
        assert_eq!(read_again(&with_certificate.message()), [with_certificate]);
    }

    #[test]
    fn the_longest_announcement_fits_into_a_packet() {
        let addresses = (0..20).map(|i| format!("2001:db8::{i}").parse().unwrap()).collect();
        let longest = Announcement { addresses, ..receiver(&"x".repeat(40), "a") };
        let bytes = longest.message().write();
        assert!(bytes.len() < 1200, "{}", bytes.len());
        let read = read_again(&longest.message());
        assert_eq!(read[0].addresses, longest.addresses[..ADDRESSES_MAX]);
    }

    #[test]
    fn what_is_incomplete_or_contradicts_itself_is_left_out() {
        let laptop = receiver("laptop", "a");
        let good = laptop.message();
        for index in 0..3 {
            let mut message = good.clone();
            message.records.remove(index);
            assert_eq!(read_again(&message), [], "without record {index}");
        }
        let with_text = |strings: &[&str]| {
            let mut message = good.clone();
            let strings = strings.iter().map(|s| s.as_bytes().to_vec()).collect();
            message.records[2].data = Data::Txt(strings);
            read_again(&message)
        };
        let key = format!("key={}", laptop.key.unwrap());
        let other = format!("key={}", Fingerprint::of(b"another"));
        assert_eq!(with_text(&["v=1", "name=laptop", "auth=code", &key]).len(), 1);
        for strings in [
            &["v=2", "name=laptop", "auth=code", &key][..],
            &["name=laptop", "auth=code", &key],
            &["v=1", "name=desk", "auth=code", &key],
            &["v=1", "name=laptop\x1b[2J", "auth=code", &key],
            &["v=1", "name=laptop", "auth=none", &key],
            &["v=1", "name=laptop", "auth=code"],
            &["v=1", "name=laptop", "auth=certificate", &key],
            &["v=1", "name=laptop", "auth=code", "key=sha256:00"],
            &["v=1", "name=laptop", "auth=code", &other],
        ] {
            assert_eq!(with_text(strings), [], "{strings:?}");
        }
        let mut query = good.clone();
        query.is_response = false;
        assert_eq!(read_again(&query), []);
        let mut no_port = good;
        no_port.records[1].data = Data::Srv { port: 0, host: laptop.host() };
        assert_eq!(read_again(&no_port), []);
    }

    #[test]
    fn addresses_of_no_use_are_left_out() {
        let given =
            ["127.0.0.1", "::1", "169.254.1.1", "fe80::1", "224.0.0.1", "0.0.0.0", "192.0.2.7"];
        let addresses: Vec<IpAddr> = given.iter().map(|ip| ip.parse().unwrap()).collect();
        let laptop = Announcement { addresses, ..receiver("laptop", "a") };
        let seen = |is_loopback| {
            let heard = read(&laptop.message(), |ip| is_of_use(ip, is_loopback));
            heard.here[0].addresses.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(seen(false), ["192.0.2.7"]);
        assert_eq!(seen(true), ["127.0.0.1", "::1", "192.0.2.7"]);
        let nowhere = Announcement { addresses: vec![[127, 0, 0, 1].into()], ..laptop };
        assert_eq!(read_again(&nowhere.message()), []);
    }

    #[test]
    fn an_ipv4_address_in_an_ipv6_one_is_the_ipv4_address() {
        let given = ["::ffff:127.0.0.1", "::ffff:169.254.1.1", "192.0.2.7", "::ffff:192.0.2.7"];
        let addresses = given.map(|ip| ip.parse().unwrap()).to_vec();
        let laptop = Announcement { addresses, ..receiver("laptop", "a") };
        let seen = |is_loopback| {
            let heard = read(&laptop.message(), |ip| is_of_use(ip, is_loopback));
            heard.here[0].addresses.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(seen(false), ["192.0.2.7"], "of this host none");
        assert_eq!(seen(true), ["127.0.0.1", "192.0.2.7"]);
    }

    #[test]
    fn questions_are_for_it_or_not() {
        let laptop = receiver("laptop", "a");
        let asked =
            |name: &DomainName, kind| laptop.is_asked(&Question { name: name.clone(), kind });
        assert!(asked(&service(), kind::PTR) && asked(&service(), kind::ANY));
        assert!(asked(&laptop.instance(), kind::SRV) && asked(&laptop.host(), kind::AAAA));
        assert!(!asked(&service(), kind::A));
        assert!(!asked(&DomainName::new(["_http", "_tcp", "local"]), kind::PTR));
        assert!(!asked(&receiver("laptop", "b").instance(), kind::ANY));
        let mut query = query();
        assert!(!laptop.is_known(&query));
        query.records = laptop.message().records;
        assert!(laptop.is_known(&query));
        query.records[0].ttl = TTL / 2 - 1;
        assert!(!laptop.is_known(&query));
    }
}
