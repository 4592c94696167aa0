//! Chunks that the scripted peer sends, written in a few words.

use std::net::IpAddr;

use bytes::Bytes;
use manypath_wire::{
    Abort, Asconf, AsconfAck, AsconfRequest, AsconfResponse, Chunk, Cwr, Data, DataFlags, Ecne,
    ErrorCause, ErrorChunk, ForwardTsn, HeartbeatInfo, IData, Init, Mid, PacketBuilder, Parameter,
    Params, ReConfig, ReConfigParameter, Shutdown, SkippedMessage, Ssn, StreamId, Tsn,
};

/// The scripted peer's first TSN, so that its first chunk is `data(1)`.
pub const PEER_INITIAL_TSN: u32 = 1;
/// The scripted peer's verification tag.
pub const PEER_TAG: u32 = 0x7ee7_0001;
/// The a_rwnd that the scripted peer advertises unless told otherwise, in bytes.
pub const PEER_RWND: u32 = 1 << 20;

/// A chunk of the scripted peer.
///
/// TSNs are relative: those of the peer begin with [`PEER_INITIAL_TSN`], and those of the endpoint
/// count from 1, whatever its initial TSN is.
#[derive(Clone, Debug)]
pub enum PeerChunk {
    /// A chunk as it is.
    Plain(Chunk),
    /// A SACK.
    Sack(SackSpec),
    /// A SHUTDOWN that acknowledges the endpoint's TSNs up to this one.
    Shutdown(u32),
    /// An ECNE for a packet of the endpoint with this lowest TSN.
    Ecne(u32),
    /// Any type, flags and value.
    Raw(u8, u8, Vec<u8>),
}

/// The fields of a SACK of the peer.
#[derive(Clone, Debug)]
pub struct SackSpec {
    cum: u32,
    a_rwnd: u32,
    flags: u8,
    gaps: Vec<(u16, u16)>,
    /// The non-renegable blocks of an NR-SACK.
    nr_gaps: Option<Vec<(u16, u16)>>,
    duplicates: Vec<u32>,
}

/// DATA with this TSN: a whole ordered message of one byte on stream 0, its SSN the TSN less one.
pub fn data(tsn: u32) -> PeerChunk {
    PeerChunk::Plain(Chunk::Data(Data {
        tsn: Tsn(tsn),
        stream: StreamId(0),
        ssn: Ssn(tsn.wrapping_sub(PEER_INITIAL_TSN) as u16),
        ppid: 0,
        flags: DataFlags::BEGIN | DataFlags::END,
        payload: Bytes::from_static(b"x"),
    }))
}

/// I-DATA with this TSN: a whole ordered message of one byte on stream 0, its MID the TSN less one.
pub fn i_data(tsn: u32) -> PeerChunk {
    PeerChunk::Plain(Chunk::IData(IData {
        tsn: Tsn(tsn),
        stream: StreamId(0),
        mid: Mid(tsn.wrapping_sub(PEER_INITIAL_TSN)),
        ppid_or_fsn: 0,
        flags: DataFlags::BEGIN | DataFlags::END,
        payload: Bytes::from_static(b"x"),
    }))
}

/// A SACK that acknowledges the endpoint's TSNs up to `cum`.
pub fn sack(cum: u32) -> PeerChunk {
    let (gaps, duplicates) = (Vec::new(), Vec::new());
    PeerChunk::Sack(SackSpec { cum, a_rwnd: PEER_RWND, flags: 0, gaps, nr_gaps: None, duplicates })
}

/// An NR-SACK that acknowledges the endpoint's TSNs up to `cum`.
pub fn nr_sack(cum: u32) -> PeerChunk {
    let mut chunk = sack(cum);
    chunk.sack_mut().nr_gaps = Some(Vec::new());
    chunk
}

/// FORWARD TSN of the peer that skips its TSNs up to `tsn`, and on these streams the ordered
/// messages up to these SSNs.
pub fn forward_tsn(tsn: u32, streams: &[(u16, u16)]) -> PeerChunk {
    let skipped = streams.iter().map(|&(stream, ssn)| SkippedMessage {
        stream: StreamId(stream),
        unordered: false,
        mid: Mid(ssn.into()),
    });
    PeerChunk::Plain(Chunk::ForwardTsn(ForwardTsn::new(Tsn(tsn), false, skipped)))
}

/// I-FORWARD-TSN of the peer that skips its TSNs up to `tsn`, and these messages.
pub fn i_forward_tsn(tsn: u32, skipped: &[SkippedMessage]) -> PeerChunk {
    PeerChunk::Plain(Chunk::ForwardTsn(ForwardTsn::new(Tsn(tsn), true, skipped.iter().copied())))
}

/// INIT with valid values.
pub fn init() -> PeerChunk {
    PeerChunk::Plain(Chunk::Init(init_values()))
}

/// INIT ACK with valid values and a state cookie.
pub fn init_ack() -> PeerChunk {
    PeerChunk::Plain(Chunk::InitAck(init_values()))
        .param(Parameter::StateCookie(Bytes::from_static(b"the peer's cookie")))
}

fn init_values() -> Init {
    Init {
        initiate_tag: PEER_TAG,
        a_rwnd: PEER_RWND,
        outbound_streams: 10,
        inbound_streams: 10,
        initial_tsn: Tsn(PEER_INITIAL_TSN),
        params: Params::default(),
    }
}

/// COOKIE ECHO.
pub fn cookie_echo(cookie: &Bytes) -> PeerChunk {
    PeerChunk::Plain(Chunk::CookieEcho(cookie.clone()))
}

/// COOKIE ACK.
pub fn cookie_ack() -> PeerChunk {
    PeerChunk::Plain(Chunk::CookieAck)
}

/// HEARTBEAT with this information.
pub fn heartbeat(info: &'static [u8]) -> PeerChunk {
    PeerChunk::Plain(Chunk::Heartbeat(HeartbeatInfo(Bytes::from_static(info))))
}

/// HEARTBEAT ACK with this information.
pub fn heartbeat_ack(info: &Bytes) -> PeerChunk {
    PeerChunk::Plain(Chunk::HeartbeatAck(HeartbeatInfo(info.clone())))
}

/// ABORT with these causes, the T bit clear.
pub fn abort(causes: &[ErrorCause]) -> PeerChunk {
    let causes = causes.iter().cloned().collect();
    PeerChunk::Plain(Chunk::Abort(Abort { tag_reflected: false, causes }))
}

/// ERROR with one cause.
pub fn error(cause: ErrorCause) -> PeerChunk {
    PeerChunk::Plain(Chunk::Error(ErrorChunk { causes: [cause].into_iter().collect() }))
}

/// SHUTDOWN that acknowledges the endpoint's TSNs up to `cum`.
pub fn shutdown(cum: u32) -> PeerChunk {
    PeerChunk::Shutdown(cum)
}

/// ECNE for a packet of the endpoint whose lowest TSN is this one.
pub fn ecne(tsn: u32) -> PeerChunk {
    PeerChunk::Ecne(tsn)
}

/// CWR that answers the endpoint's echo of this TSN of the peer.
pub fn cwr(tsn: u32) -> PeerChunk {
    PeerChunk::Plain(Chunk::Cwr(Cwr { lowest_tsn: Tsn(tsn) }))
}

/// SHUTDOWN ACK.
pub fn shutdown_ack() -> PeerChunk {
    PeerChunk::Plain(Chunk::ShutdownAck)
}

/// SHUTDOWN COMPLETE, the T bit clear.
pub fn shutdown_complete() -> PeerChunk {
    PeerChunk::Plain(Chunk::ShutdownComplete { tag_reflected: false })
}

/// RE-CONFIG with these parameters. TSNs in them are as they are.
pub fn re_config(parameters: impl Into<Vec<ReConfigParameter>>) -> PeerChunk {
    PeerChunk::Plain(Chunk::ReConfig(ReConfig { parameters: parameters.into() }))
}

/// ASCONF with these requests, from an end one of whose addresses is this. Its number counts from
/// 1, as TSNs of the peer do.
pub fn asconf(
    serial: u32,
    address: impl Into<IpAddr>,
    requests: impl Into<Vec<AsconfRequest>>,
) -> PeerChunk {
    let (address, requests) = (address.into(), requests.into());
    PeerChunk::Plain(Chunk::Asconf(Asconf { serial, address, requests }))
}

/// ASCONF-ACK for the chunk of this number, with these responses.
pub fn asconf_ack(serial: u32, responses: impl Into<Vec<AsconfResponse>>) -> PeerChunk {
    PeerChunk::Plain(Chunk::AsconfAck(AsconfAck { serial, responses: responses.into() }))
}

/// A chunk of any type with a value of four bytes.
pub fn unknown(ty: u8) -> PeerChunk {
    PeerChunk::Raw(ty, 0, b"what".to_vec())
}

impl PeerChunk {
    fn data_mut(&mut self) -> &mut Data {
        match self {
            PeerChunk::Plain(Chunk::Data(data)) => data,
            other => panic!("{other:?} is no DATA"),
        }
    }

    fn init_mut(&mut self) -> &mut Init {
        match self {
            PeerChunk::Plain(Chunk::Init(init) | Chunk::InitAck(init)) => init,
            other => panic!("{other:?} is neither INIT nor INIT ACK"),
        }
    }

    fn sack_mut(&mut self) -> &mut SackSpec {
        match self {
            PeerChunk::Sack(sack) => sack,
            other => panic!("{other:?} is no SACK"),
        }
    }

    // ---- I-DATA ----

    /// Sets the stream, the MID and what is the FSN without the flag B, and the PPID with it.
    pub fn message(mut self, stream: u16, mid: u32, ppid_or_fsn: u32) -> PeerChunk {
        let PeerChunk::Plain(Chunk::IData(data)) = &mut self else { panic!("no I-DATA") };
        (data.stream, data.mid, data.ppid_or_fsn) = (StreamId(stream), Mid(mid), ppid_or_fsn);
        self
    }

    // ---- DATA ----

    /// Sets the stream and the SSN.
    pub fn stream(mut self, stream: u16, ssn: u16) -> PeerChunk {
        (self.data_mut().stream, self.data_mut().ssn) = (StreamId(stream), Ssn(ssn));
        self
    }

    /// Sets the user data, also of I-DATA.
    pub fn payload(mut self, payload: impl Into<Bytes>) -> PeerChunk {
        match &mut self {
            PeerChunk::Plain(Chunk::IData(data)) => data.payload = payload.into(),
            _ => self.data_mut().payload = payload.into(),
        }
        self
    }

    /// The same, of `len` bytes.
    pub fn len(self, len: usize) -> PeerChunk {
        self.payload(vec![b'x'; len])
    }

    /// Sets the flags, also of I-DATA: "B", "E", "U", "I" in any combination.
    pub fn flags(mut self, letters: &str) -> PeerChunk {
        let flag = |letter| match letter {
            'B' => DataFlags::BEGIN,
            'E' => DataFlags::END,
            'U' => DataFlags::UNORDERED,
            'I' => DataFlags::IMMEDIATE,
            other => panic!("DATA has no flag {other}"),
        };
        let flags = letters.chars().map(flag).fold(DataFlags(0), |a, b| a | b);
        match &mut self {
            PeerChunk::Plain(Chunk::IData(data)) => data.flags = flags,
            _ => self.data_mut().flags = flags,
        }
        self
    }

    // ---- INIT, INIT ACK ----

    /// Sets the initiate tag.
    pub fn tag(mut self, tag: u32) -> PeerChunk {
        self.init_mut().initiate_tag = tag;
        self
    }

    /// Sets the numbers of outbound and inbound streams.
    pub fn streams(mut self, outbound: u16, inbound: u16) -> PeerChunk {
        let init = self.init_mut();
        (init.outbound_streams, init.inbound_streams) = (outbound, inbound);
        self
    }

    /// Sets the initial TSN.
    pub fn tsn(mut self, tsn: u32) -> PeerChunk {
        self.init_mut().initial_tsn = Tsn(tsn);
        self
    }

    /// Appends a parameter.
    pub fn param(mut self, parameter: Parameter) -> PeerChunk {
        let init = self.init_mut();
        let old: Vec<Parameter> = init.params.iter().map_while(Result::ok).collect();
        init.params = old.into_iter().chain([parameter]).collect();
        self
    }

    /// Removes all parameters.
    pub fn no_params(mut self) -> PeerChunk {
        self.init_mut().params = Params::default();
        self
    }

    // ---- SACK ----

    /// Appends a gap ack block: the endpoint's TSNs `first` to `last` arrived.
    pub fn gap(mut self, first: u32, last: u32) -> PeerChunk {
        let sack = self.sack_mut();
        let cum = sack.cum;
        sack.gaps.push((first.wrapping_sub(cum) as u16, last.wrapping_sub(cum) as u16));
        self
    }

    /// Appends a non-renegable gap ack block to an NR-SACK.
    pub fn nr_gap(mut self, first: u32, last: u32) -> PeerChunk {
        let sack = self.sack_mut();
        let cum = sack.cum;
        let Some(blocks) = sack.nr_gaps.as_mut() else { panic!("a SACK has no such blocks") };
        blocks.push((first.wrapping_sub(cum) as u16, last.wrapping_sub(cum) as u16));
        self
    }

    /// Appends a duplicate TSN.
    pub fn duplicate(mut self, tsn: u32) -> PeerChunk {
        self.sack_mut().duplicates.push(tsn);
        self
    }

    /// Sets the SACK's flags.
    pub fn sack_flags(mut self, flags: u8) -> PeerChunk {
        self.sack_mut().flags = flags;
        self
    }

    /// Sets a_rwnd in a SACK, INIT or INIT ACK, in bytes.
    pub fn rwnd(mut self, bytes: u32) -> PeerChunk {
        match &mut self {
            PeerChunk::Sack(sack) => sack.a_rwnd = bytes,
            _ => self.init_mut().a_rwnd = bytes,
        }
        self
    }

    // ---- ABORT, SHUTDOWN COMPLETE ----

    /// Sets the T bit: the packet's tag is reflected.
    pub fn reflected(mut self) -> PeerChunk {
        match &mut self {
            PeerChunk::Plain(
                Chunk::ShutdownComplete { tag_reflected }
                | Chunk::Abort(Abort { tag_reflected, .. }),
            ) => *tag_reflected = true,
            other => panic!("{other:?} has no T bit"),
        }
        self
    }

    /// Writes the chunk; `base` is the endpoint's TSN that counts as 0.
    pub(super) fn push(&self, base: Tsn, packet: &mut PacketBuilder<'_>) -> bool {
        match self {
            PeerChunk::Plain(chunk) => packet.push(chunk),
            PeerChunk::Sack(SackSpec {
                nr_gaps: Some(nr_gaps),
                cum,
                a_rwnd,
                flags,
                gaps,
                duplicates,
            }) => {
                let duplicates = duplicates.iter().map(|&d| base.add(d));
                packet.push_nr_sack(base.add(*cum), *a_rwnd, *flags, [gaps, nr_gaps], duplicates)
            }
            PeerChunk::Sack(s) => packet.push_sack(
                base.add(s.cum),
                s.a_rwnd,
                s.flags,
                s.gaps.iter().copied(),
                s.duplicates.iter().map(|&d| base.add(d)),
            ),
            PeerChunk::Shutdown(cum) => {
                packet.push(&Chunk::Shutdown(Shutdown { cum_tsn_ack: base.add(*cum) }))
            }
            PeerChunk::Ecne(tsn) => packet.push_ecne(Ecne { lowest_tsn: base.add(*tsn) }),
            PeerChunk::Raw(ty, flags, value) => packet.push_chunk(*ty, *flags, value),
        }
    }
}
