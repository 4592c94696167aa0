//! Chunks, without their payload.

use bytes::Bytes;
use manypath_wire::{
    Asconf, AsconfAck, AsconfRequest, AsconfResponse, Causes, Checksum, Chunk, Init, Packet,
    ReConfigParameter,
};
use serde::{Deserialize, Serialize};

/// The fields of a chunk. Field names are RFC 9260's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "chunk", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ChunkSummary {
    /// User data (§3.3.1).
    Data {
        /// Its TSN.
        tsn: u32,
        /// Stream identifier.
        stream: u16,
        /// Stream sequence number.
        ssn: u16,
        /// User bytes.
        bytes: u64,
        /// The bits that are set, of `I`, `U`, `B` and `E`, in this order.
        flags: String,
    },
    /// User data whose messages may be interleaved (RFC 8260 §2.1).
    IData {
        /// Its TSN.
        tsn: u32,
        /// Stream identifier.
        stream: u16,
        /// Message identifier.
        mid: u32,
        /// Fragment sequence number: 0 for the first fragment.
        fsn: u32,
        /// User bytes.
        bytes: u64,
        /// The bits that are set, of `I`, `U`, `B` and `E`, in this order.
        flags: String,
    },
    /// Initiation (§3.3.2).
    Init(InitSummary),
    /// Its acknowledgement (§3.3.3).
    InitAck(InitSummary),
    /// Selective acknowledgement (§3.3.4).
    Sack {
        /// Cumulative TSN ack.
        cum_tsn_ack: u32,
        /// Advertised receiver window credit in bytes.
        a_rwnd: u32,
        /// Gap ack blocks: first and last TSN as offsets from the cumulative TSN ack.
        gap_ack_blocks: Vec<(u16, u16)>,
        /// TSNs that arrived more than once.
        duplicate_tsns: Vec<u32>,
    },
    /// Selective acknowledgement with non-renegable blocks (draft-tuexen-tsvwg-sctp-multipath).
    NrSack {
        /// Cumulative TSN ack.
        cum_tsn_ack: u32,
        /// Advertised receiver window credit in bytes.
        a_rwnd: u32,
        /// Gap ack blocks that the receiver may take back, as in SACK.
        gap_ack_blocks: Vec<(u16, u16)>,
        /// Those that it will not take back.
        nr_gap_ack_blocks: Vec<(u16, u16)>,
        /// TSNs that arrived more than once.
        duplicate_tsns: Vec<u32>,
    },
    /// Heartbeat (§3.3.5).
    Heartbeat {
        /// Bytes of sender-specific information.
        bytes: u64,
    },
    /// Heartbeat acknowledgement (§3.3.6).
    HeartbeatAck {
        /// Bytes of sender-specific information.
        bytes: u64,
    },
    /// Immediate end (§3.3.7).
    Abort {
        /// Codes of the error causes (§3.3.10).
        causes: Vec<u16>,
    },
    /// Graceful end (§3.3.8).
    Shutdown {
        /// Cumulative TSN ack.
        cum_tsn_ack: u32,
    },
    /// Acknowledgement of a graceful end (§3.3.9).
    ShutdownAck,
    /// Errors that end nothing (§3.3.10).
    Error {
        /// Codes of the error causes.
        causes: Vec<u16>,
    },
    /// The state cookie, returned (§3.3.11).
    CookieEcho {
        /// Bytes of the cookie.
        bytes: u64,
    },
    /// Cookie acknowledgement (§3.3.12).
    CookieAck,
    /// Last message of a graceful end (§3.3.13).
    ShutdownComplete,
    /// The HMAC over the chunks that follow (RFC 4895).
    Auth {
        /// The number of the key.
        key: u16,
        /// The HMAC algorithm (RFC 4895 §3.3).
        algorithm: u16,
        /// Bytes of the HMAC.
        bytes: u64,
    },
    /// The chunks of a packet, protected (draft-ietf-tsvwg-sctp-dtls-chunk).
    Dtls {
        /// The R bit: a restart key context protects them.
        restart: bool,
        /// Bytes of the DTLS record, its header included.
        bytes: u64,
    },
    /// Requests to reset or add streams, and the answers (RFC 6525).
    ReConfig {
        /// The parameters: `outgoing_reset`, `incoming_reset`, `association_reset`, `response`,
        /// `add_outgoing` or `add_incoming`.
        parameters: Vec<String>,
        /// The number of each request, or of the request that a response answers.
        requests: Vec<u32>,
        /// The results of the responses (RFC 6525 §4.4).
        results: Vec<u32>,
    },
    /// Requests to change addresses (RFC 5061).
    Asconf {
        /// The number of the chunk.
        serial: u32,
        /// An address of the sender that its peer knows.
        address: String,
        /// The requests: `add`, `delete`, `set_primary` or `unknown`.
        requests: Vec<String>,
        /// The address of each request. Unspecified ones mean the source of the packet, or with
        /// `delete` all others.
        addresses: Vec<String>,
    },
    /// The answers to requests to change addresses (RFC 5061).
    AsconfAck {
        /// The number of the ASCONF chunk.
        serial: u32,
        /// The numbers of the requests that failed.
        failed: Vec<u32>,
        /// The error causes, by their codes.
        causes: Vec<u16>,
    },
    /// Padding, beside a HEARTBEAT that measures the path's size (RFC 4820).
    Pad {
        /// Bytes of padding.
        bytes: u64,
    },
    /// When the packet was sent: a private chunk.
    Timestamp {
        /// Microseconds of the sender's clock, modulo 2^32.
        timestamp: u32,
        /// The timestamp that the packet echoes, beside a SACK.
        echo: Option<u32>,
    },
    /// Which path SACKs take: a private chunk.
    SackPath {
        /// Counts the changes of that path.
        serial: u32,
        /// That path has failed: the peer shall choose another.
        failed: bool,
    },
    /// Where its sender may be reached directly: a private chunk.
    Candidates {
        /// Counts the sender's lists.
        serial: u32,
        /// The last list of the peer that came; 0: none.
        seen: u32,
        /// Candidates in the list.
        candidates: u64,
    },
    /// FORWARD TSN (RFC 3758), or I-FORWARD-TSN (RFC 8260).
    ForwardTsn {
        /// The new cumulative TSN.
        new_cum_tsn: u32,
        /// It is I-FORWARD-TSN.
        interleaved: bool,
        /// Stream and SSN or MID of the messages listed.
        skipped: Vec<(u16, u32)>,
    },
    /// The echo of a mark of congestion (RFC 4960, appendix A).
    Ecne {
        /// The lowest TSN of the marked packet.
        lowest_tsn: u32,
    },
    /// The answer to an echo (RFC 4960, appendix A).
    Cwr {
        /// The lowest TSN of the echo.
        lowest_tsn: u32,
    },
    /// A type that is not known here.
    Unknown {
        /// The chunk type.
        code: u8,
        /// Length field of the chunk, header included.
        bytes: u64,
    },
    /// From here on the packet cannot be read.
    Malformed {
        /// The error and its position.
        error: String,
    },
}

/// The fields of INIT and INIT ACK.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InitSummary {
    /// The verification tag that the other side shall use.
    pub initiate_tag: u32,
    /// Advertised receiver window credit in bytes.
    pub a_rwnd: u32,
    /// Number of outbound streams.
    pub outbound_streams: u16,
    /// Number of inbound streams.
    pub inbound_streams: u16,
    /// TSN of the first DATA chunk.
    pub initial_tsn: u32,
}

impl InitSummary {
    fn of(init: &Init) -> InitSummary {
        InitSummary {
            initiate_tag: init.initiate_tag,
            a_rwnd: init.a_rwnd,
            outbound_streams: init.outbound_streams,
            inbound_streams: init.inbound_streams,
            initial_tsn: init.initial_tsn.0,
        }
    }
}

impl ChunkSummary {
    /// The chunks of an SCTP packet, whose checksum is not looked at.
    pub fn of_packet(packet: &Bytes) -> Vec<ChunkSummary> {
        let malformed = |error: manypath_wire::DecodeError| ChunkSummary::Malformed {
            error: error.to_string(),
        };
        match Packet::parse(packet.clone(), Checksum::Ignore) {
            Ok(packet) => packet
                .chunks()
                .map(|chunk| chunk.map_or_else(malformed, |chunk| ChunkSummary::of(&chunk)))
                .collect(),
            Err(error) => vec![malformed(error)],
        }
    }

    /// One chunk.
    pub fn of(chunk: &Chunk) -> ChunkSummary {
        match chunk {
            Chunk::Data(data) => ChunkSummary::Data {
                tsn: data.tsn.0,
                stream: data.stream.0,
                ssn: data.ssn.0,
                bytes: data.payload.len() as u64,
                flags: flags(data.flags),
            },
            Chunk::IData(data) => ChunkSummary::IData {
                tsn: data.tsn.0,
                stream: data.stream.0,
                mid: data.mid.0,
                fsn: data.fsn(),
                bytes: data.payload.len() as u64,
                flags: flags(data.flags),
            },
            Chunk::Init(init) => ChunkSummary::Init(InitSummary::of(init)),
            Chunk::InitAck(init) => ChunkSummary::InitAck(InitSummary::of(init)),
            Chunk::Sack(sack) => ChunkSummary::Sack {
                cum_tsn_ack: sack.cum_tsn_ack.0,
                a_rwnd: sack.a_rwnd,
                gap_ack_blocks: sack.gap_ack_blocks().map(|b| (b.start, b.end)).collect(),
                duplicate_tsns: sack.duplicate_tsns().map(|tsn| tsn.0).collect(),
            },
            Chunk::NrSack(sack) => ChunkSummary::NrSack {
                cum_tsn_ack: sack.cum_tsn_ack.0,
                a_rwnd: sack.a_rwnd,
                gap_ack_blocks: sack.gap_ack_blocks().map(|b| (b.start, b.end)).collect(),
                nr_gap_ack_blocks: sack.nr_gap_ack_blocks().map(|b| (b.start, b.end)).collect(),
                duplicate_tsns: sack.duplicate_tsns().map(|tsn| tsn.0).collect(),
            },
            Chunk::Heartbeat(info) => ChunkSummary::Heartbeat { bytes: info.0.len() as u64 },
            Chunk::HeartbeatAck(info) => ChunkSummary::HeartbeatAck { bytes: info.0.len() as u64 },
            Chunk::Abort(abort) => ChunkSummary::Abort { causes: codes(&abort.causes) },
            Chunk::Shutdown(shutdown) => {
                ChunkSummary::Shutdown { cum_tsn_ack: shutdown.cum_tsn_ack.0 }
            }
            Chunk::ShutdownAck => ChunkSummary::ShutdownAck,
            Chunk::Error(error) => ChunkSummary::Error { causes: codes(&error.causes) },
            Chunk::CookieEcho(cookie) => ChunkSummary::CookieEcho { bytes: cookie.len() as u64 },
            Chunk::CookieAck => ChunkSummary::CookieAck,
            Chunk::ShutdownComplete { .. } => ChunkSummary::ShutdownComplete,
            Chunk::Auth(auth) => ChunkSummary::Auth {
                key: auth.key,
                algorithm: auth.algorithm,
                bytes: auth.hmac.len() as u64,
            },
            Chunk::Dtls(dtls) => {
                ChunkSummary::Dtls { restart: dtls.restart, bytes: dtls.record.len() as u64 }
            }
            Chunk::ReConfig(chunk) => re_config(&chunk.parameters),
            Chunk::Asconf(chunk) => asconf(chunk),
            Chunk::AsconfAck(chunk) => asconf_ack(chunk),
            Chunk::Pad(pad) => ChunkSummary::Pad { bytes: u64::from(pad.length) },
            Chunk::Timestamp(ts) => {
                ChunkSummary::Timestamp { timestamp: ts.timestamp, echo: ts.echo }
            }
            Chunk::SackPath(path) => {
                ChunkSummary::SackPath { serial: path.serial, failed: path.failed }
            }
            Chunk::Candidates(chunk) => ChunkSummary::Candidates {
                serial: chunk.serial,
                seen: chunk.seen,
                candidates: chunk.list.len() as u64,
            },
            Chunk::ForwardTsn(chunk) => ChunkSummary::ForwardTsn {
                new_cum_tsn: chunk.new_cum_tsn.0,
                interleaved: chunk.is_interleaved,
                skipped: chunk.skipped().map(|m| (m.stream.0, m.mid.0)).collect(),
            },
            Chunk::Ecne(chunk) => ChunkSummary::Ecne { lowest_tsn: chunk.lowest_tsn.0 },
            Chunk::Cwr(chunk) => ChunkSummary::Cwr { lowest_tsn: chunk.lowest_tsn.0 },
            Chunk::Unknown(chunk) => {
                ChunkSummary::Unknown { code: chunk.ty(), bytes: chunk.raw().len() as u64 }
            }
        }
    }
}

fn re_config(all: &[ReConfigParameter]) -> ChunkSummary {
    let name = |parameter: &ReConfigParameter| match parameter {
        ReConfigParameter::OutgoingReset(_) => "outgoing_reset",
        ReConfigParameter::IncomingReset { .. } => "incoming_reset",
        ReConfigParameter::AssociationReset { .. } => "association_reset",
        ReConfigParameter::Response(_) => "response",
        ReConfigParameter::AddOutgoing { .. } => "add_outgoing",
        ReConfigParameter::AddIncoming { .. } => "add_incoming",
    };
    let response = |parameter: &ReConfigParameter| match parameter {
        ReConfigParameter::Response(response) => Some(*response),
        _ => None,
    };
    let number = |p: &ReConfigParameter| p.request().or_else(|| Some(response(p)?.request));
    ChunkSummary::ReConfig {
        parameters: all.iter().map(|p| name(p).to_owned()).collect(),
        requests: all.iter().filter_map(number).collect(),
        results: all.iter().filter_map(response).map(|r| r.result.0).collect(),
    }
}

fn asconf(chunk: &Asconf) -> ChunkSummary {
    let name = |request: &AsconfRequest| match request {
        AsconfRequest::Add { .. } => "add",
        AsconfRequest::Delete { .. } => "delete",
        AsconfRequest::SetPrimary { .. } => "set_primary",
        AsconfRequest::Unknown(_) => "unknown",
    };
    let address = |request: &AsconfRequest| match request {
        AsconfRequest::Add { address, .. }
        | AsconfRequest::Delete { address, .. }
        | AsconfRequest::SetPrimary { address, .. } => address.to_string(),
        AsconfRequest::Unknown(_) => String::new(),
    };
    ChunkSummary::Asconf {
        serial: chunk.serial,
        address: chunk.address.to_string(),
        requests: chunk.requests.iter().map(|request| name(request).to_owned()).collect(),
        addresses: chunk.requests.iter().map(address).collect(),
    }
}

fn asconf_ack(chunk: &AsconfAck) -> ChunkSummary {
    let errors = chunk.responses.iter().filter_map(|response| match response {
        AsconfResponse::Error { request, causes } => Some((*request, codes(causes))),
        _ => None,
    });
    let (failed, causes): (Vec<_>, Vec<_>) = errors.unzip();
    ChunkSummary::AsconfAck { serial: chunk.serial, failed, causes: causes.concat() }
}

fn codes(causes: &Causes) -> Vec<u16> {
    causes.iter().map_while(Result::ok).map(|cause| cause.code()).collect()
}

fn flags(flags: manypath_wire::DataFlags) -> String {
    let all = [
        (flags.immediate(), 'I'),
        (flags.unordered(), 'U'),
        (flags.begin(), 'B'),
        (flags.end(), 'E'),
    ];
    all.iter().filter(|(is_set, _)| *is_set).map(|(_, name)| *name).collect()
}
