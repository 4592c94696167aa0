//! The values of `--bind`: where a socket is opened, and the rank of the paths from there.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use manypath::{BindTo, PathRank};

use crate::connect::link_local;

/// An address or an interface, and the rank of the paths from there: `eth0`, `wlan0:backup`,
/// `192.0.2.7:cost=3`, `[fd00::1]:backup`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bind {
    /// Where the socket is opened.
    pub to: BindTo,
    /// The rank of the paths from there.
    pub rank: PathRank,
}

/// A text that is no value of `--bind`, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BindTextError(String);

impl fmt::Display for BindTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BindTextError {}

fn error<T>(text: impl Into<String>) -> Result<T, BindTextError> {
    Err(BindTextError(text.into()))
}

impl FromStr for Bind {
    type Err = BindTextError;

    fn from_str(text: &str) -> Result<Bind, BindTextError> {
        if let Some(what) = link_local::error(text) {
            return error(format!(
                "{what}; name the interface or another address, or leave the option out: then \
                 link-local addresses count, too"
            ));
        }
        // First, since an IPv6 address has colons, and its last group may look like anything.
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Ok(Bind { to: BindTo::Address(ip.to_canonical()), rank: PathRank::NORMAL });
        }
        if let Some(rest) = text.strip_prefix('[') {
            return in_brackets(rest);
        }
        let Some((place, rank)) = text.rsplit_once(':') else {
            return Ok(Bind { to: place_of(text)?, rank: PathRank::NORMAL });
        };
        if place.parse::<Ipv6Addr>().is_ok() {
            return error(format!(
                "an IPv6 address with a rank needs brackets; write [{place}]:{rank}"
            ));
        }
        // An old name of a second address of an interface, such as eth0:1.
        if !rank.is_empty() && rank.bytes().all(|b| b.is_ascii_digit()) {
            return Ok(Bind { to: place_of(text)?, rank: PathRank::NORMAL });
        }
        ranked(place_of(place)?, rank)
    }
}

/// Reads the text behind `[`.
fn in_brackets(rest: &str) -> Result<Bind, BindTextError> {
    let Some((inner, after)) = rest.split_once(']') else {
        return error("the bracket is not closed; write [ADDRESS] or [ADDRESS]:RANK");
    };
    let Ok(ip) = inner.parse::<Ipv6Addr>() else {
        return error("only an IPv6 address belongs into brackets");
    };
    let to = BindTo::Address(IpAddr::V6(ip).to_canonical());
    match after.strip_prefix(':') {
        Some(rank) => ranked(to, rank),
        None if after.is_empty() => Ok(Bind { to, rank: PathRank::NORMAL }),
        None => error("after the bracket only :RANK may follow"),
    }
}

fn place_of(text: &str) -> Result<BindTo, BindTextError> {
    match text.parse() {
        Ok(_) if text.is_empty() => error("there is no address or interface name"),
        Ok(place) => Ok(place),
        Err(never) => match never {},
    }
}

fn ranked(to: BindTo, rank: &str) -> Result<Bind, BindTextError> {
    let rank: PathRank = rank.parse().map_err(|e| BindTextError(format!("{e}")))?;
    let is_any = match &to {
        BindTo::Auto | BindTo::Any => true,
        BindTo::Address(ip) => ip.is_unspecified(),
        BindTo::Interface(_) => false,
    };
    if is_any && !rank.is_normal() {
        return error("every address has no rank of its own; name an address or an interface");
    }
    Ok(Bind { to, rank })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> (String, PathRank) {
        let Bind { to, rank } = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        (to.to_string(), rank)
    }

    #[test]
    fn names_and_addresses_may_have_a_rank() {
        let normal = PathRank::NORMAL;
        for (text, place, rank) in [
            ("eth0", "eth0", normal),
            ("wlan0:backup", "wlan0", PathRank::Backup),
            ("lte0:cost=3", "lte0", PathRank::Cost(3)),
            ("lte0:normal", "lte0", normal),
            ("192.0.2.7", "192.0.2.7", normal),
            ("192.0.2.7:cost=3", "192.0.2.7", PathRank::Cost(3)),
            ("fd00::1", "fd00::1", normal),
            ("fd80::bac", "fd80::bac", normal),
            ("[fd80::1]", "fd80::1", normal),
            ("[fd80::1]:backup", "fd80::1", PathRank::Backup),
            ("::ffff:192.0.2.7", "192.0.2.7", normal),
            ("[::ffff:192.0.2.7]:backup", "192.0.2.7", PathRank::Backup),
            ("*", "*", normal),
            ("auto", "auto", normal),
            ("eth0:1", "eth0:1", normal),
            ("eth0:1:backup", "eth0:1", PathRank::Backup),
        ] {
            assert_eq!(parsed(text), (place.to_owned(), rank), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_the_remedy() {
        for (text, says) in [
            ("", "no address"),
            (":backup", "no address"),
            ("wlan0:", "normal, backup, or cost=N"),
            ("wlan0:bakup", "normal, backup, or cost=N"),
            ("wlan0:cost=300", "from 0 to 255"),
            ("fd00::1:backup", "[fd00::1]:backup"),
            ("[fd00::1", "not closed"),
            ("[fd00::1]backup", "only :RANK"),
            ("[eth0]:backup", "only an IPv6 address"),
            ("*:backup", "every address"),
            ("auto:backup", "every address"),
            ("0.0.0.0:cost=1", "every address"),
            ("[::]:cost=1", "every address"),
            ("[::ffff:0.0.0.0]:cost=1", "every address"),
            ("fe80::1", "link-local"),
            ("[fe80::1]:backup", "link-local"),
            ("fe80::1%eth0", "name the interface"),
            ("fe80::1%2", "name the interface"),
            ("fe80::1%eth0:backup", "name the interface"),
            ("[fe80::1%eth0]", "name the interface"),
            ("[fe80::1%eth0]:backup", "name the interface"),
        ] {
            let error = text.parse::<Bind>().expect_err(text).to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn whatever_a_user_types_is_a_value_or_an_error(text in "[a-z0-9:\\[\\]=.*%]{0,24}") {
            let _ = text.parse::<Bind>();
        }

        #[test]
        fn every_address_is_read_with_and_without_a_rank(
            bytes in any::<[u16; 8]>(),
            cost in any::<u8>(),
        ) {
            let ip = Ipv6Addr::from(bytes);
            prop_assume!(!ip.is_unicast_link_local());
            let to = BindTo::Address(IpAddr::V6(ip).to_canonical());
            let bind = Bind { to, rank: PathRank::NORMAL };
            prop_assert_eq!(ip.to_string().parse(), Ok(bind.clone()));
            let rank = PathRank::Cost(cost);
            if !ip.is_unspecified() {
                let text = format!("[{ip}]:cost={cost}");
                prop_assert_eq!(text.parse(), Ok(Bind { rank, ..bind }));
            }
        }
    }
}
