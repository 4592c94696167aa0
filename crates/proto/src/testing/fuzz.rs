//! Arbitrary bytes as a script: what a fuzzer, or a test with random bytes, runs.

use std::net::SocketAddr;

use bytes::Bytes;
use manypath_wire::{
    Auth, Chunk, CommonHeader, Data, ErrorCause, IData, OutgoingReset, Parameter, ReConfig,
    ReConfigParameter, ReConfigResponse, ReConfigResult, UnknownParameter, chunk_type, hmac_id,
};

use super::*;
use crate::config::{Preset, Profile};
use crate::{Candidate, CandidateKind};

/// Bytes as a source of small decisions; zeros when they are used up.
struct Source<'a>(&'a [u8]);

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn below(&mut self, n: u8) -> u8 {
        self.byte() % n
    }

    fn short(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// Mostly small, sometimes anything.
    fn number(&mut self) -> u32 {
        match self.below(8) {
            0 => u32::from(self.short()) << 16 | u32::from(self.short()),
            1 => self.short().into(),
            _ => self.byte().into(),
        }
    }

    fn take(&mut self, n: usize) -> Vec<u8> {
        let n = n.min(self.0.len());
        let (taken, rest) = self.0.split_at(n);
        self.0 = rest;
        taken.to_vec()
    }
}

/// Values that the peer has seen and may use.
#[derive(Default)]
struct Seen {
    cookies: Vec<Bytes>,
    heartbeats: Vec<(SocketAddr, SocketAddr, Bytes)>,
    /// The highest of the endpoint's TSNs.
    highest: u32,
    largest_packet: usize,
    /// Messages are interleaved.
    interleaves: bool,
    /// The number of the endpoint's latest request to reset or add streams.
    request: u32,
}

/// Runs the script that `bytes` stand for: packets with the right checksum, and mostly the right
/// tag, commands, and time, on an endpoint in varied states.
///
/// # Panics
/// If the endpoint does, if an invariant of an association breaks, or if it sends what it must not.
pub fn run(bytes: &[u8]) {
    let mut source = Source(bytes);
    let mut t = setup(&mut source).start();
    if bytes.len().is_multiple_of(2) {
        let base = t.pairs[0].0;
        let host = Candidate { kind: CandidateKind::Host, base, address: base };
        t.endpoint.set_candidates(t.now(), [host]);
    }
    let mut seen = Seen::default();
    if source.below(4) != 0 {
        open(&mut t, &mut source, &mut seen);
    }
    // Every step takes at least one byte, and no script is long.
    for _ in 0..300 {
        if source.0.is_empty() {
            break;
        }
        step(&mut t, &mut source, &mut seen);
        look(&mut t, &mut seen);
    }
    assert!(seen.largest_packet <= 65_535);
    // With nothing more to come, every association ends or falls silent, in bounded time.
    t.run(Duration::from_secs(120));
    look(&mut t, &mut seen);
}

fn setup(source: &mut Source<'_>) -> Setup {
    let setup = if source.below(2) == 0 { Setup::client() } else { Setup::server() };
    let setup = setup.paths(source.below(3) + 1);
    let preset = &Preset::ALL[usize::from(source.byte()) % Preset::ALL.len()];
    let setup = setup.preset(preset.name);
    let profile = Profile::ALL[usize::from(source.byte()) % Profile::ALL.len()];
    let setup = setup.profile(profile.name());
    let setup = match source.below(4) {
        0 => setup.set("receive_buffer", "4000").set("send_buffer", "6000"),
        1 => setup.set("rtx_policy", "asap").set("max_paths", "3"),
        _ => setup,
    };
    // With RFC 9260 alone, and with everything that is not in it.
    let extensions = source.below(4);
    let setup = if extensions.is_multiple_of(2) { setup.set("nr_sack", "true") } else { setup };
    let setup = match extensions / 2 {
        0 => setup.set("message_interleaving", "true").set("stream_scheduler", "wfq"),
        _ => setup,
    };
    let setup = if extensions == 3 { setup.set("authentication", "true") } else { setup };
    let setup = setup.set("stream_reconfiguration", "true");
    setup.max_associations(3)
}

fn open(t: &mut Script, source: &mut Source<'_>, seen: &mut Seen) {
    let knows_extensions = source.below(4) != 0;
    let with_extensions = |chunk: PeerChunk| {
        if knows_extensions { authenticating(chunk.param(extensions())) } else { chunk }
    };
    if source.below(2) == 0 {
        t.connect();
        look(t, seen);
        t.peer(with_extensions(init_ack()));
        t.peer(cookie_ack());
    } else {
        t.peer(with_extensions(init()));
        look(t, seen);
        if let Some(cookie) = seen.cookies.last().cloned() {
            t.peer(cookie_echo(&cookie));
        }
    }
    look(t, seen);
}

/// The Supported Extensions of a peer that knows all chunks beyond RFC 9260.
fn extensions() -> Parameter {
    const TYPES: &[u8] = &[
        chunk_type::NR_SACK,
        chunk_type::SACK_PATH,
        chunk_type::TIMESTAMP,
        chunk_type::I_DATA,
        chunk_type::CANDIDATES,
        chunk_type::RE_CONFIG,
    ];
    Parameter::SupportedExtensions(Bytes::from_static(TYPES))
}

/// The INIT or INIT ACK of a peer that wants DATA authenticated (RFC 4895).
fn authenticating(chunk: PeerChunk) -> PeerChunk {
    chunk
        .param(Parameter::Random(Bytes::from_static(&[7; 32])))
        .param(Parameter::AuthenticatedChunks(Bytes::from_static(&[chunk_type::DATA])))
        .param(Parameter::HmacAlgorithms(vec![hmac_id::SHA_1]))
}

/// Takes note of what was sent.
fn look(t: &mut Script, seen: &mut Seen) {
    t.events();
    for s in t.take_sent() {
        seen.largest_packet = seen.largest_packet.max(s.packet.bytes().len());
        for chunk in s.packet.chunks() {
            match chunk.expect("the endpoint sends well-formed chunks") {
                Chunk::Init(init) => t.learn(&init),
                Chunk::InitAck(init) => {
                    t.learn(&init);
                    seen.cookies.extend(init.params.iter().find_map(|p| match p {
                        Ok(Parameter::StateCookie(cookie)) => Some(cookie),
                        _ => None,
                    }));
                }
                Chunk::Heartbeat(info) => {
                    seen.heartbeats.push((s.local, s.remote, info.0));
                    let excess = seen.heartbeats.len().saturating_sub(8);
                    seen.heartbeats.drain(..excess);
                }
                Chunk::ReConfig(ReConfig { parameters }) => {
                    let latest =
                        parameters.iter().filter_map(ReConfigParameter::request).next_back();
                    seen.request = latest.unwrap_or(seen.request);
                }
                Chunk::IData(IData { tsn, .. }) | Chunk::Data(Data { tsn, .. }) => {
                    let tsn = tsn.distance_from(t.base);
                    seen.highest = if tsn < 1 << 31 { tsn.max(seen.highest) } else { seen.highest };
                }
                _ => {}
            }
        }
    }
    for id in t.endpoint.associations().collect::<Vec<_>>() {
        let assoc = t.endpoint.assoc(id).expect("it is listed");
        assert!(assoc.paths().count() <= assoc.config().max_paths as usize);
        seen.interleaves |= assoc.interleaves();
    }
}

fn step(t: &mut Script, source: &mut Source<'_>, seen: &mut Seen) {
    match source.below(16) {
        0..=6 => {
            let count = source.below(4) + 1;
            let chunks: Vec<_> = (0..count).map(|_| chunk(source, seen)).collect();
            peer_sends(t, source, &chunks);
        }
        7 => {
            let raw = source.below(64).into();
            let body = source.take(raw);
            let (ty, flags) = (source.below(16), source.byte());
            peer_sends(t, source, &[PeerChunk::Raw(ty, flags, body)]);
        }
        8 | 9 => {
            let ms = u64::from(source.byte()) * [1, 10, 100, 1000][usize::from(source.below(4))];
            t.run_ms(ms);
        }
        10 | 11 => {
            let (len, count) = (source.short() % 5000, source.below(8));
            command(t, |a, now| {
                for _ in 0..count {
                    let message = Bytes::from(vec![0; len.into()]);
                    let stream = StreamId(len % 3);
                    let _ = a.send(now, SendOptions { stream, ..SendOptions::default() }, message);
                }
            });
        }
        12 => command(t, |a, now| while a.recv(now).is_some() {}),
        13 => {
            for (local, remote, info) in std::mem::take(&mut seen.heartbeats) {
                t.peer_from((local, remote), heartbeat_ack(&info));
            }
        }
        14 => {
            let path = PathId(source.below(4));
            let remote = SocketAddr::from(([10, 7, 7, source.below(4)], PORT));
            match source.below(6) {
                0 => command(t, |a, now| a.remove_path(now, path)),
                1 => command(t, |a, now| a.set_primary(now, path)),
                2 | 3 => reconfigure(t, source),
                _ => {
                    let local = t.pairs[0].0;
                    command(t, |a, now| _ = a.add_path(now, local, remote));
                }
            }
        }
        _ => match source.below(4) {
            0 => command(t, |a, now| a.shutdown(now)),
            1 => command(t, |a, now| a.abort(now, b"fuzz")),
            2 => {
                let closed = t
                    .endpoint
                    .associations()
                    .find(|&id| t.endpoint.assoc(id).is_some_and(|a| a.closed().is_some()));
                closed.into_iter().for_each(|id| t.endpoint.forget(id));
            }
            _ => {
                let paths = t.pairs.clone();
                let _ = t.endpoint.connect(t.now, ConnectTo::new(paths, PEER_PORT));
                t.settle();
            }
        },
    }
}

/// Asks for other streams. The association may refuse it.
fn reconfigure(t: &mut Script, source: &mut Source<'_>) {
    let (what, stream) = (source.below(4), StreamId(source.below(4).into()));
    let one_or_all = source.below(2) == 0;
    let streams = if one_or_all { std::slice::from_ref(&stream) } else { &[] };
    command(t, |a, now| {
        let _ = match what {
            0 | 1 => a.reset_streams(now, streams),
            2 => a.request_stream_reset(now, streams),
            _ => a.add_streams(now, stream.0, stream.0),
        };
    });
}

/// A parameter of RE-CONFIG, whose number mostly is one that counts.
fn re_config_parameter(source: &mut Source<'_>, seen: &Seen) -> ReConfigParameter {
    let request = PEER_INITIAL_TSN + u32::from(source.below(12));
    let streams = (0..source.below(3)).map(|_| StreamId(source.below(12).into())).collect();
    match source.below(8) {
        0 | 1 => ReConfigParameter::OutgoingReset(OutgoingReset {
            request,
            response: seen.request,
            last_tsn: Tsn(source.number()),
            streams,
        }),
        2 => ReConfigParameter::IncomingReset { request, streams },
        3 => ReConfigParameter::AssociationReset { request },
        4 => ReConfigParameter::AddOutgoing { request, streams: source.short() % 900 },
        5 => ReConfigParameter::AddIncoming { request, streams: source.short() % 900 },
        _ => ReConfigParameter::Response(ReConfigResponse {
            request: seen.request,
            result: ReConfigResult(source.below(8).into()),
            next_tsns: None,
        }),
    }
}

/// Gives the first association a command.
fn command(t: &mut Script, command: impl FnOnce(&mut Association, Instant)) {
    let now = t.now;
    let first = t.endpoint.associations().next();
    if let Some(id) = first {
        command(t.endpoint.assoc_mut(id).expect("it is listed"), now);
        t.settle();
    }
}

fn peer_sends(t: &mut Script, source: &mut Source<'_>, chunks: &[PeerChunk]) {
    let is_init = matches!(chunks[0], PeerChunk::Plain(Chunk::Init(_)));
    let tag = match source.below(16) {
        0 => source.number(),
        1 => PEER_TAG,
        _ if is_init => 0,
        _ => t.tag,
    };
    let pair = match source.below(8) {
        0 => (t.pairs[0].0, SocketAddr::from(([10, 0, 0, 2], 4000 + u16::from(source.below(9))))),
        1 => (t.pairs[0].0, SocketAddr::from(([10, 5, 5, source.below(9)], PORT))),
        n => t.pairs[usize::from(n) % t.pairs.len()],
    };
    let header =
        CommonHeader { source_port: PEER_PORT, destination_port: PORT, verification_tag: tag };
    let mut bytes = t.packet(header, chunks.to_vec());
    if source.below(16) == 0 {
        bytes.truncate(usize::from(source.byte()).max(12));
    }
    t.peer_bytes(pair, bytes);
}

fn auth(source: &mut Source<'_>) -> PeerChunk {
    PeerChunk::Plain(Chunk::Auth(Auth {
        flags: source.byte(),
        key: source.below(2).into(),
        algorithm: source.below(4).into(),
        hmac: source.take(32).into(),
    }))
}

fn chunk(source: &mut Source<'_>, seen: &Seen) -> PeerChunk {
    match source.below(16) {
        0..=3 => {
            let tsn = source.number().wrapping_add(1);
            let letters = ["BE", "B", "E", "", "BEU", "BEI", "BU", "EU"];
            let flags = letters[usize::from(source.below(8))];
            let len =
                if source.below(4) == 0 { source.short() % 1400 } else { source.below(4).into() };
            let (stream, ssn) = (source.below(3).into(), u16::from(source.below(32)));
            // The other kind of chunk ends the association at once.
            if seen.interleaves {
                i_data(tsn).message(stream, ssn.into(), tsn % 8).flags(flags).len(len.into())
            } else {
                data(tsn).stream(stream, ssn).flags(flags).len(len.into())
            }
        }
        4..=7 => {
            let back = if source.below(8) == 0 { source.number() } else { source.below(8).into() };
            let cum = seen.highest.wrapping_sub(back);
            let is_nr = source.below(2) == 0;
            let chunk = if is_nr { nr_sack(cum) } else { sack(cum) };
            let mut chunk = chunk.sack_flags(source.byte() & 0x80);
            if source.below(4) == 0 {
                chunk = chunk.rwnd(source.number());
            }
            for _ in 0..source.below(4) {
                let first = cum.wrapping_add(source.below(12).into());
                let last = first.wrapping_add(source.below(4).into());
                chunk = if is_nr && source.below(2) == 0 {
                    chunk.nr_gap(first, last)
                } else {
                    chunk.gap(first, last)
                };
            }
            chunk
        }
        8 => {
            let tag = if source.below(2) == 0 { PEER_TAG } else { source.number() };
            let init =
                init().tag(tag).rwnd(source.number().wrapping_add(1400)).tsn(source.number());
            match source.below(4) {
                0 => init.param(std::net::IpAddr::from([10, 0, source.below(3), 2]).into()),
                1 => init.param(Parameter::Unknown(UnknownParameter::new(source.short(), b"?"))),
                2 => init.param(extensions()),
                _ => init,
            }
        }
        9 => init_ack().streams(source.short(), source.short()),
        10 => match seen.cookies.get(usize::from(source.byte()) % seen.cookies.len().max(1)) {
            Some(cookie) => cookie_echo(cookie),
            None => cookie_ack(),
        },
        11 => match source.below(3) {
            0 => cookie_ack(),
            1 => heartbeat(b"of the peer"),
            _ => heartbeat_ack(&Bytes::from(source.take(12))),
        },
        12 => match source.below(6) {
            0 => shutdown(seen.highest.wrapping_sub(source.below(4).into())),
            1 => shutdown_ack(),
            2 => shutdown_complete(),
            3 => shutdown_complete().reflected(),
            4 => abort(&[]).reflected(),
            _ => abort(&[ErrorCause::UserInitiatedAbort(Bytes::from_static(b"x"))]),
        },
        13 if source.below(8) == 0 => auth(source),
        13 => error(ErrorCause::StaleCookie(source.number())),
        14 => error(ErrorCause::Unknown { code: source.short(), value: Bytes::new() }),
        _ => match source.below(8) {
            3 => PeerChunk::Raw(chunk_type::RE_CONFIG, 0, source.take(40)),
            4..=6 => {
                let count = source.below(2) + 1;
                let parameters = (0..count).map(|_| re_config_parameter(source, seen));
                re_config(parameters.collect::<Vec<_>>())
            }
            0 => PeerChunk::Raw(chunk_type::SACK_PATH, source.byte(), source.take(8)),
            1 => PeerChunk::Raw(chunk_type::TIMESTAMP, source.byte(), source.take(8)),
            2 => PeerChunk::Raw(chunk_type::CANDIDATES, source.byte(), source.take(40)),
            _ => unknown(source.byte() | 0x0f),
        },
    }
}
