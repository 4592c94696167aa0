//! Addresses of pages on a router, and of no other host.

use std::fmt;
use std::net::IpAddr;

/// Bytes of a path at most.
const PATH_MAX: usize = 512;

/// A page of a router over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Url {
    host: IpAddr,
    pub(super) port: u16,
    /// Begins with a slash; visible ASCII.
    pub(super) path: String,
}

impl Url {
    /// Reads `http://HOST[:PORT][/PATH]`, where the host is the address of the router; `None` for
    /// anything else.
    pub(super) fn parse(text: &str, gateway: IpAddr) -> Option<Url> {
        let rest = strip_scheme(text)?;
        let begin = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(begin);
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().ok().filter(|&port| port != 0)?),
            None => (authority, 80),
        };
        // Names would have to be looked up, and could be anybody's.
        if host.parse::<IpAddr>() != Ok(gateway) {
            return None;
        }
        Url { host: gateway, port, path: String::new() }.with_path(path)
    }

    /// The page that a reference in this page names; `None` if it is not on the router.
    pub(super) fn join(&self, reference: &str) -> Option<Url> {
        if reference.starts_with("//") {
            return None;
        }
        if reference.starts_with('/') {
            return self.with_path(reference);
        }
        let first = reference.split(['/', '?', '#']).next().unwrap_or_default();
        if first.contains(':') {
            return Url::parse(reference, self.host);
        }
        let folder = self.path.rfind('/').map_or("/", |slash| &self.path[..=slash]);
        self.with_path(&format!("{folder}{reference}"))
    }

    /// The host and port for the header of a request.
    pub(super) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    fn with_path(&self, path: &str) -> Option<Url> {
        let path = path.split('#').next().unwrap_or_default();
        let is_plain = path.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_plain || path.len() > PATH_MAX {
            return None;
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Some(Url { host: self.host, port: self.port, path })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority(), self.path)
    }
}

fn strip_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    if scheme.eq_ignore_ascii_case("http") { Some(rest) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GATEWAY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 168, 1, 1));

    #[test]
    fn only_pages_on_the_router_are_read() {
        let parsed = |text: &str| Url::parse(text, GATEWAY).map(|url| url.to_string());
        for (text, expected) in [
            ("http://192.168.1.1:5000/root.xml", "http://192.168.1.1:5000/root.xml"),
            ("HTTP://192.168.1.1", "http://192.168.1.1:80/"),
            ("http://192.168.1.1?a=b", "http://192.168.1.1:80/?a=b"),
            ("http://192.168.1.1/a#b", "http://192.168.1.1:80/a"),
        ] {
            assert_eq!(parsed(text).as_deref(), Some(expected));
        }
        for text in [
            "https://192.168.1.1/",
            "ftp://192.168.1.1/",
            "http://192.168.1.2/",
            "http://router/",
            "http://192.168.1.1@192.168.1.2/",
            "http://user@192.168.1.1/",
            "http://192.168.1.1:0/",
            "http://192.168.1.1:65536/",
            "http://192.168.1.1:+80/x y",
            "http://192.168.1.1/a b",
            "http://192.168.1.1/\r\nX: y",
            "http://3232235777/",
            "",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
        let long = format!("http://192.168.1.1/{}", "a".repeat(PATH_MAX));
        assert_eq!(parsed(&long), None);
    }

    #[test]
    fn references_stay_on_the_router() {
        let base = Url::parse("http://192.168.1.1:5000/upnp/root.xml", GATEWAY).unwrap();
        let joined = |text: &str| base.join(text).map(|url| url.to_string());
        for (text, expected) in [
            ("/ctl", "http://192.168.1.1:5000/ctl"),
            ("ctl?a=http://x", "http://192.168.1.1:5000/upnp/ctl?a=http://x"),
            ("http://192.168.1.1:49152/ctl", "http://192.168.1.1:49152/ctl"),
        ] {
            assert_eq!(joined(text).as_deref(), Some(expected));
        }
        for text in ["//10.0.0.1/ctl", "http://10.0.0.1/ctl", "file:///etc", "https://192.168.1.1/"]
        {
            assert_eq!(joined(text), None, "{text}");
        }
    }
}
