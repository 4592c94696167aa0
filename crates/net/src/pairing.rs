//! From two lists of addresses to paths.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use manypath_proto::is_raw_ip;

use crate::address::is_link_local_v6;
use crate::interfaces::preferred_source;
use crate::sockets::BoundAddresses;
use crate::uplinks::Uplinks;

/// Pairs of a local and a remote transport address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pairs {
    /// The paths to begin with, the primary first.
    pub paths: Vec<(SocketAddr, SocketAddr)>,
    /// The other pairs of those addresses: to be tried where a path does not answer.
    pub candidates: Vec<(SocketAddr, SocketAddr)>,
}

impl Pairs {
    /// The paths of [`pair`], and as candidates every other pair of the same family.
    pub fn of(
        locals: &[SocketAddr],
        remotes: &[SocketAddr],
        preferred: impl Fn(SocketAddr) -> Option<IpAddr>,
    ) -> Pairs {
        let mut pairs = Pairs::default();
        pairs.add(locals, remotes, &preferred);
        pairs
    }

    /// The pairs to connect to `remotes` over: of uplinks, if there are several, and of the bound
    /// addresses for the remotes that none leads to.
    pub fn towards(uplinks: &Uplinks, bound: &BoundAddresses, remotes: &[SocketAddr]) -> Pairs {
        let preferred = |remote| preferred_source(remote).ok();
        let mut pairs = Pairs::default();
        let mut others = remotes.to_vec();
        if !uplinks.places().is_empty() {
            pairs = Pairs::of_uplinks(&uplinks.towards(remotes), bound.port(), preferred);
            others.retain(|remote| uplinks.used.iter().all(|u| !u.remotes.contains(remote)));
        }
        pairs.add(&bound.sources_for(&others), &others, &preferred);
        pairs
    }

    /// These, and others behind them.
    #[must_use]
    pub fn then(mut self, others: Pairs) -> Pairs {
        self.paths.extend(others.paths);
        self.candidates.extend(others.candidates);
        self
    }

    /// Pairs each uplink with the remotes that it has a route to, and with no other. `port` is that
    /// of the local addresses, except towards remotes over IP itself.
    pub fn of_uplinks(
        uplinks: &Uplinks,
        port: u16,
        preferred: impl Fn(SocketAddr) -> Option<IpAddr>,
    ) -> Pairs {
        let mut pairs = Pairs::default();
        let leading_to = |remote: &SocketAddr| -> Vec<SocketAddr> {
            let leading = uplinks.used.iter().filter(|uplink| uplink.remotes.contains(remote));
            let port = if is_raw_ip(*remote) { 0 } else { port };
            leading.map(|uplink| SocketAddr::new(uplink.ip, port)).collect()
        };
        let mut remotes: Vec<SocketAddr> = Vec::new();
        for &remote in uplinks.used.iter().flat_map(|uplink| &uplink.remotes) {
            if !remotes.contains(&remote) {
                remotes.push(remote);
            }
        }
        // Remotes that the same uplinks lead to are matched together.
        while let Some(first) = remotes.first() {
            let locals = leading_to(first);
            let (alike, others) = remotes.into_iter().partition(|r| leading_to(r) == locals);
            let alike: Vec<SocketAddr> = alike;
            pairs.add(&locals, &alike, &preferred);
            remotes = others;
        }
        pairs
    }

    fn add(
        &mut self,
        locals: &[SocketAddr],
        remotes: &[SocketAddr],
        preferred: &impl Fn(SocketAddr) -> Option<IpAddr>,
    ) {
        let paths = pair(locals, remotes, preferred);
        for &remote in remotes {
            let fitting = Scope::of(remote).candidates(&without_repeats(locals));
            let others = fitting.into_iter().map(|local| (local, remote));
            self.candidates.extend(others.filter(|pair| !paths.contains(pair)));
        }
        self.paths.extend(paths);
    }
}

/// Matches local with remote transport addresses into paths, the primary first.
///
/// Within a family, `n` = the larger of the two counts paths come out: each remote with the source
/// that `preferred` (the kernel, see [`preferred_source`](crate::preferred_source)) names for it,
/// as long as that spreads the paths over the locals; otherwise the i-th local with the i-th
/// remote, the shorter list wrapping round. So a client with two uplinks has two paths to a server
/// with one address, and a client with one address has two paths to a server with two.
///
/// Addresses of SCTP over IP itself, which have port 0, are matched among themselves. Loopback
/// addresses are matched among themselves if both sides have some, and link-local ones of
/// IPv6 only among themselves.
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
    /// SCTP over IP itself.
    raw: bool,
    loopback: bool,
    /// A link-local address of IPv6. What is sent from one to another address, or back, is dropped.
    link_local: bool,
}

impl Scope {
    fn of(address: SocketAddr) -> Scope {
        let ip = address.ip();
        let link_local = is_link_local_v6(ip);
        let raw = is_raw_ip(address);
        Scope { v6: ip.is_ipv6(), raw, loopback: ip.is_loopback(), link_local }
    }

    /// The locals of this scope; failing that, all of its family and encapsulation but link-local
    /// ones, since a host reaches its own other addresses from loopback too.
    fn candidates(self, locals: &[SocketAddr]) -> Vec<SocketAddr> {
        let same: Vec<_> = locals.iter().copied().filter(|&l| Scope::of(l) == self).collect();
        if !same.is_empty() || self.link_local {
            return same;
        }
        let fits = |l: &SocketAddr| {
            l.is_ipv6() == self.v6 && is_raw_ip(*l) == self.raw && !is_link_local_v6(l.ip())
        };
        locals.iter().copied().filter(fits).collect()
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
mod tests;
