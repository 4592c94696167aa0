//! The memory of the man in the middle: the packets to one host.

use bytes::Bytes;
use manypath_proto::Instant;
use manypath_wire::{Checksum, Chunk, Data, IData, Packet, Parameter, Tsn};

use super::forge::Forgery;
use super::{Middle, Passing, Side, built, header, index, other};

/// Packets kept to be repeated, of each host.
const KEPT: usize = 64;

/// The packets to one host, as far as he needs them.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The verification tag that the host expects.
    pub(super) tag: u32,
    /// The last packet on each path.
    pub(super) last: Vec<Passing>,
    /// The TSN that the next DATA chunk to the host has, as far as one can tell.
    pub(super) next_tsn: Tsn,
    /// Protected packets to the host.
    pub(super) sealed: u64,
    /// The DTLS Key Management parameter that the host got.
    pub(super) offer: Option<Parameter>,
    /// The information of the last heartbeat to the host that was readable.
    pub(super) heartbeat: Option<Bytes>,
    /// COOKIE ECHOs to the host, as they were.
    pub(super) cookies: Vec<Passing>,
    /// Our tag in an INIT to the host that was forged.
    pub(super) restart: Option<u32>,
    /// Old packets and new ones, to be repeated.
    kept: Vec<Passing>,
    passed: usize,
}

impl Seen {
    pub(super) fn kept(&self) -> &[Passing] {
        &self.kept
    }

    /// Keeps the first ones, and the last of the others.
    fn keep(&mut self, passing: &Passing) {
        if self.kept.len() < KEPT {
            self.kept.push(passing.clone())
        } else {
            let at = KEPT / 4 + self.passed % (KEPT - KEPT / 4);
            self.kept[at] = passing.clone();
        }
        self.passed += 1;
    }
}

impl Middle {
    /// Remembers a packet. True if it answers a forged INIT: nobody else is to see it.
    pub(super) fn note(&mut self, now: Instant, passing: &Passing) -> bool {
        let to = passing.to;
        let Ok(packet) = Packet::parse(passing.payload.clone(), Checksum::Ignore) else {
            return false;
        };
        let tag = packet.header.verification_tag;
        if self.seen[index(other(to))].restart == Some(tag)
            && let Some(Ok(Chunk::InitAck(answer))) = packet.chunks().next()
        {
            self.seen[index(other(to))].restart = None;
            let cookie = answer.params.iter().find_map(|p| match p {
                Ok(Parameter::StateCookie(cookie)) => Some(cookie),
                _ => None,
            });
            let cookie = cookie.unwrap_or_default();
            let echo = built(header(answer.initiate_tag), |p| p.push_cookie_echo(&cookie));
            let (local, remote) = (passing.remote, passing.local);
            let echo = Passing { to: other(to), path: passing.path, local, remote, payload: echo };
            self.put(now, echo, true);
            return true;
        }
        let mut chunks = packet.chunks();
        let first = chunks.next().and_then(Result::ok);
        let seen = &mut self.seen[index(to)];
        let reflects = matches!(&first, Some(Chunk::Abort(abort)) if abort.tag_reflected);
        if tag != 0 && !reflects && tag != seen.tag {
            (seen.tag, seen.sealed) = (tag, 0);
        }
        match &first {
            Some(Chunk::Init(init) | Chunk::InitAck(init)) => {
                seen.next_tsn = init.initial_tsn;
                let is_offer = |p: &Parameter| matches!(p, Parameter::DtlsKeyManagement(_));
                seen.offer = init.params.iter().filter_map(Result::ok).find(is_offer);
            }
            Some(Chunk::CookieEcho(_)) => seen.cookies.push(passing.clone()),
            Some(Chunk::Dtls(_)) => seen.sealed += 1,
            _ => {}
        }
        for chunk in first.into_iter().chain(chunks.map_while(Result::ok)) {
            match chunk {
                Chunk::Data(Data { tsn, .. }) | Chunk::IData(IData { tsn, .. })
                    if tsn.ge(seen.next_tsn) =>
                {
                    seen.next_tsn = tsn.next();
                }
                Chunk::Heartbeat(info) => seen.heartbeat = Some(info.0),
                _ => {}
            }
        }
        seen.keep(passing);
        let known = seen.last.iter_mut().find(|known| known.path == passing.path);
        match known {
            Some(known) => *known = passing.clone(),
            None => seen.last.push(passing.clone()),
        }
        false
    }

    /// Carries an order out.
    pub(super) fn carry_out(&mut self, now: Instant, to: Side, forgery: Forgery) {
        for last in self.seen[index(to)].last.clone() {
            for payload in self.forgery(to, forgery) {
                self.put(now, Passing { payload, ..last.clone() }, true);
            }
        }
    }
}
