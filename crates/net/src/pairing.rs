//! From two lists of addresses to paths.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

/// Matches local with remote transport addresses into paths, the primary first.
///
/// Within a family, `n` = the larger of the two counts paths come out: each remote with the source
/// that `preferred` (the kernel, see [`preferred_source`](crate::preferred_source)) names for it,
/// as long as that spreads the paths over the locals; otherwise the i-th local with the i-th
/// remote, the shorter list wrapping round. So a client with two uplinks has two paths to a server
/// with one address, and a client with one address has two paths to a server with two.
///
/// Loopback addresses are matched among themselves if both sides have some.
pub fn pair(
    locals: &[SocketAddr],
    remotes: &[SocketAddr],
    preferred: impl Fn(SocketAddr) -> Option<IpAddr>,
) -> Vec<(SocketAddr, SocketAddr)> {
    let locals = without_repeats(locals);
    let remotes = without_repeats(remotes);
    let mut scopes: Vec<Scope> = Vec::new();
    for &remote in &remotes {
        let scope = Scope::of(remote);
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    let mut paths = Vec::new();
    for scope in scopes {
        let remotes: Vec<_> = remotes.iter().copied().filter(|&r| Scope::of(r) == scope).collect();
        paths.extend(pair_scope(&scope.candidates(&locals), &remotes, &preferred));
    }
    paths
}

/// The properties that both ends of a path must share.
#[derive(Copy, Clone, PartialEq, Eq)]
struct Scope {
    v6: bool,
    loopback: bool,
}

impl Scope {
    fn of(address: SocketAddr) -> Scope {
        Scope { v6: address.is_ipv6(), loopback: address.ip().is_loopback() }
    }

    /// The locals of this scope; failing that, all of its family, since a host reaches its own
    /// other addresses from loopback too.
    fn candidates(self, locals: &[SocketAddr]) -> Vec<SocketAddr> {
        let same: Vec<_> = locals.iter().copied().filter(|&l| Scope::of(l) == self).collect();
        if !same.is_empty() {
            return same;
        }
        locals.iter().copied().filter(|l| l.is_ipv6() == self.v6).collect()
    }
}

fn pair_scope(
    locals: &[SocketAddr],
    remotes: &[SocketAddr],
    preferred: &impl Fn(SocketAddr) -> Option<IpAddr>,
) -> Vec<(SocketAddr, SocketAddr)> {
    if locals.is_empty() || remotes.is_empty() {
        return Vec::new();
    }
    if let Some(mut paths) = by_preference(locals, remotes, preferred) {
        let used: BTreeSet<_> = paths.iter().map(|&(local, _)| local).collect();
        let unused = locals.iter().filter(|l| !used.contains(l));
        let spare: Vec<_> = unused.enumerate().map(|(i, &l)| (l, wrapped(remotes, i))).collect();
        paths.extend(spare);
        return paths;
    }
    (0..locals.len().max(remotes.len()))
        .map(|i| (wrapped(locals, i), wrapped(remotes, i)))
        .collect()
}

/// Each remote with the kernel's choice, if all choices are ours and either no local repeats or
/// none is left out.
fn by_preference(
    locals: &[SocketAddr],
    remotes: &[SocketAddr],
    preferred: &impl Fn(SocketAddr) -> Option<IpAddr>,
) -> Option<Vec<(SocketAddr, SocketAddr)>> {
    let mut paths = Vec::with_capacity(remotes.len());
    let mut used = BTreeSet::new();
    for &remote in remotes {
        let source = preferred(remote)?;
        let local = *locals.iter().find(|l| l.ip() == source)?;
        used.insert(local);
        paths.push((local, remote));
    }
    (used.len() == remotes.len() || used.len() == locals.len()).then_some(paths)
}

fn wrapped(list: &[SocketAddr], i: usize) -> SocketAddr {
    list[i % list.len()]
}

fn without_repeats(list: &[SocketAddr]) -> Vec<SocketAddr> {
    let mut seen = BTreeSet::new();
    list.iter().copied().filter(|&a| seen.insert(a)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addrs(list: &[&str]) -> Vec<SocketAddr> {
        list.iter().map(|a| a.parse().unwrap()).collect()
    }

    /// Pairs, with the kernel's routes as (remote, source); the result as `local>remote`.
    fn paired(locals: &[&str], remotes: &[&str], routes: &[(&str, &str)]) -> Vec<String> {
        let route = |remote: SocketAddr| {
            let to = remote.ip().to_string();
            routes.iter().find(|r| r.0 == to).map(|r| r.1.parse().unwrap())
        };
        pair(&addrs(locals), &addrs(remotes), route)
            .iter()
            .map(|(l, r)| format!("{}>{}", l.ip(), r.ip()))
            .collect()
    }

    #[test]
    fn two_uplinks_to_one_address_are_two_paths() {
        let paths =
            paired(&["10.0.1.2:1", "10.0.2.2:1"], &["192.0.2.1:9"], &[("192.0.2.1", "10.0.2.2")]);
        assert_eq!(
            paths,
            ["10.0.2.2>192.0.2.1", "10.0.1.2>192.0.2.1"],
            "the kernel's choice first"
        );
    }

    #[test]
    fn one_address_to_two_is_two_paths() {
        let paths = paired(
            &["10.0.1.2:1"],
            &["192.0.2.1:9", "192.0.2.2:9"],
            &[("192.0.2.1", "10.0.1.2"), ("192.0.2.2", "10.0.1.2")],
        );
        assert_eq!(paths, ["10.0.1.2>192.0.2.1", "10.0.1.2>192.0.2.2"]);
    }

    #[test]
    fn two_by_two_follows_the_routes_when_they_differ() {
        let paths = paired(
            &["10.0.1.2:1", "10.0.2.2:1"],
            &["10.0.2.9:9", "10.0.1.9:9"],
            &[("10.0.2.9", "10.0.2.2"), ("10.0.1.9", "10.0.1.2")],
        );
        assert_eq!(paths, ["10.0.2.2>10.0.2.9", "10.0.1.2>10.0.1.9"]);
    }

    #[test]
    fn one_default_route_for_all_falls_back_to_order() {
        let routes = [("192.0.2.1", "10.0.1.2"), ("192.0.2.2", "10.0.1.2")];
        let paths = paired(&["10.0.1.2:1", "10.0.2.2:1"], &["192.0.2.1:9", "192.0.2.2:9"], &routes);
        assert_eq!(paths, ["10.0.1.2>192.0.2.1", "10.0.2.2>192.0.2.2"]);
    }

    #[test]
    fn no_route_and_uneven_lists_wrap() {
        let paths =
            paired(&["10.0.1.2:1", "10.0.2.2:1"], &["1.1.1.1:9", "2.2.2.2:9", "3.3.3.3:9"], &[]);
        assert_eq!(paths, ["10.0.1.2>1.1.1.1", "10.0.2.2>2.2.2.2", "10.0.1.2>3.3.3.3"]);
    }

    #[test]
    fn families_never_mix_and_the_first_remote_leads() {
        let paths =
            paired(&["10.0.1.2:1", "[2001:db8::2]:1"], &["[2001:db8::1]:9", "192.0.2.1:9"], &[]);
        assert_eq!(paths, ["2001:db8::2>2001:db8::1", "10.0.1.2>192.0.2.1"]);
        assert!(paired(&["10.0.1.2:1"], &["[2001:db8::1]:9"], &[]).is_empty());
    }

    #[test]
    fn loopback_keeps_to_itself_where_it_can() {
        let paths = paired(&["10.0.1.2:1", "127.0.0.1:1"], &["127.0.0.1:9", "192.0.2.1:9"], &[]);
        assert_eq!(paths, ["127.0.0.1>127.0.0.1", "10.0.1.2>192.0.2.1"]);
        assert_eq!(paired(&["127.0.0.1:1"], &["10.0.1.2:9"], &[]), ["127.0.0.1>10.0.1.2"]);
    }

    #[test]
    fn repeats_make_no_second_path() {
        assert_eq!(paired(&["127.0.0.2:1", "127.0.0.2:1"], &["127.0.0.3:9"; 2], &[]).len(), 1);
        assert!(paired(&[], &["127.0.0.3:9"], &[]).is_empty());
    }
}
