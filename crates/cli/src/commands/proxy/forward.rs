//! The values of `-L`, `-R` and `-D`.

use std::fmt;
use std::str::FromStr;

use manypath_proxy::frame::{HOST_MAX, HostPort};

/// Where to listen: `[BIND:]PORT`, on loopback unless an address is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListenAt(pub(crate) HostPort);

/// `[BIND:]PORT:HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Forward {
    pub(crate) at: HostPort,
    pub(crate) to: HostPort,
}

/// A text that is no forward, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForwardError(&'static str);

impl fmt::Display for ForwardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for ForwardError {}

const FORWARD: ForwardError =
    ForwardError("write it like 8080:host:80, 0.0.0.0:8080:host:80 or [::1]:8080:[2001:db8::7]:80");
const LISTEN: ForwardError = ForwardError("write it like 1080, 192.0.2.7:1080 or [::1]:1080");

impl FromStr for ListenAt {
    type Err = ForwardError;

    fn from_str(text: &str) -> Result<ListenAt, ForwardError> {
        listen(&parts(text).ok_or(LISTEN)?).map(ListenAt).ok_or(LISTEN)
    }
}

impl FromStr for Forward {
    type Err = ForwardError;

    fn from_str(text: &str) -> Result<Forward, ForwardError> {
        let parts = parts(text).ok_or(FORWARD)?;
        let (at, to) = parts.split_at_checked(parts.len().wrapping_sub(2)).ok_or(FORWARD)?;
        let port = to[1].parse().ok().filter(|port| *port != 0).ok_or(FORWARD)?;
        let to = host(to[0]).map(|host| HostPort { host, port }).ok_or(FORWARD)?;
        Ok(Forward { at: listen(at).ok_or(FORWARD)?, to })
    }
}

/// The parts between the colons that are not in brackets, brackets taken off.
fn parts(text: &str) -> Option<Vec<&str>> {
    let (mut parts, mut rest) = (Vec::new(), text);
    loop {
        let (part, after) = match rest.strip_prefix('[') {
            Some(inner) => inner.split_once(']')?,
            None => rest.split_at(rest.find(':').unwrap_or(rest.len())),
        };
        parts.push(part);
        if after.is_empty() {
            return Some(parts);
        }
        rest = after.strip_prefix(':')?;
    }
}

fn listen(parts: &[&str]) -> Option<HostPort> {
    let (bind, port) = match parts {
        [port] => ("localhost", port),
        ["" | "*", port] => ("::", port),
        [bind, port] => (*bind, port),
        _ => return None,
    };
    Some(HostPort { host: host(bind)?, port: port.parse().ok()? })
}

fn host(text: &str) -> Option<String> {
    let is_name = text.bytes().all(|b| b.is_ascii_graphic()) && text.len() <= HOST_MAX;
    (is_name && !text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(String, String)> {
        let forward: Forward = text.parse().ok()?;
        Some((forward.at.to_string(), forward.to.to_string()))
    }

    #[test]
    fn forwards_read_as_those_of_ssh_do() {
        for (text, at, to) in [
            ("8080:host:80", "localhost:8080", "host:80"),
            ("0.0.0.0:5432:db:5432", "0.0.0.0:5432", "db:5432"),
            ("[::1]:1:[2001:db8::7]:2", "[::1]:1", "[2001:db8::7]:2"),
            ("*:1:a:2", "[::]:1", "a:2"),
            ("0:a:2", "localhost:0", "a:2"),
        ] {
            assert_eq!(read(text), Some((at.to_owned(), to.to_owned())), "{text}");
        }
        for text in
            ["", "1", "1:2", "a:b:c", "1:h:0", "1:h:65536", "1::2", "[::1:1:h:2", "1:2:3:h:5"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn places_to_listen_are_loopback_by_default() {
        let read = |text: &str| text.parse::<ListenAt>().map(|at| at.0.to_string());
        assert_eq!(read("1080").as_deref(), Ok("localhost:1080"));
        assert_eq!(read("192.0.2.7:1080").as_deref(), Ok("192.0.2.7:1080"));
        assert!(read("a:b").is_err() && read("1:2:3").is_err() && read("").is_err());
    }
}
