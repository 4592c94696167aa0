//! Link-local addresses of IPv6 (RFC 4291 §2.5.6), which mean a host only together with an
//! interface (RFC 4007).

use std::net::Ipv6Addr;

/// The remedy where the address is another host's.
pub(crate) const OTHER_ADDRESS: &str =
    "use another address of that host: a global or unique local one (fd…), or one of IPv4";

/// The error if `text` begins with such an address or one with an interface, in brackets or not:
/// `fe80::7`, `fe80::7%eth0`, `[fe80::7%2]:9899`.
pub(crate) fn error(text: &str) -> Option<String> {
    let inner = text.trim_start_matches('[');
    let (ip, after) = inner.split_at(inner.find(['%', ']']).unwrap_or(inner.len()));
    let ip: Ipv6Addr = ip.parse().ok()?;
    (ip.is_unicast_link_local() || after.starts_with('%')).then(|| {
        format!(
            "{text}: link-local addresses (fe80::…) and addresses with an interface (%) are not \
             supported here"
        )
    })
}
