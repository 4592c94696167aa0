//! Packets that the man in the middle makes himself.

use bytes::Bytes;
use manypath_wire::{
    DataFlags, ErrorCause, Init, PacketBuilder, SackPath, Ssn, StreamId, Tsn, chunk_type,
};

use super::{Middle, Side, built, header, index, other};
use crate::testing::hostile::init;

/// TSNs that forged DATA tries in a row.
const TSNS: u32 = 4;

/// A forged packet. All have the right ports, and the verification tag that their receiver expects.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Forgery {
    /// ABORT, as by the peer.
    Abort,
    /// ABORT under the tag of the receiver's own packets, with the T bit.
    AbortReflected,
    /// ABORT that says the peer does not protect associations.
    AbortUnprotected,
    /// SHUTDOWN that acknowledges everything.
    Shutdown,
    /// SHUTDOWN ACK.
    ShutdownAck,
    /// SHUTDOWN COMPLETE.
    ShutdownComplete,
    /// SHUTDOWN COMPLETE under the tag of the receiver's own packets, with the T bit.
    ShutdownCompleteReflected,
    /// SACK of everything that the receiver has sent, with a large window.
    Sack,
    /// SACK that closes the receiver's window.
    SackWindowZero,
    /// NR-SACK of everything.
    NrSack,
    /// SACK of what was never sent.
    SackUnsent,
    /// Messages at the next TSNs, on this stream and with this identifier.
    Data {
        /// The stream.
        stream: u16,
        /// The payload protocol identifier.
        ppid: u32,
    },
    /// HEARTBEAT.
    Heartbeat,
    /// HEARTBEAT ACK of the last heartbeat that the receiver sent in the clear, or of a guess.
    HeartbeatAck,
    /// INIT alone, as of a peer that has lost its state.
    Init,
    /// INIT, and COOKIE ECHO once INIT ACK comes: a complete restart.
    Restart,
    /// All COOKIE ECHOs that the receiver ever got.
    OldCookies,
    /// COOKIE ECHO with a cookie that nobody made.
    MadeUpCookie,
    /// INIT ACK.
    InitAck,
    /// COOKIE ACK.
    CookieAck,
    /// ERROR: the cookie is stale.
    StaleCookie,
    /// SACK PATH: SACKs come on this path from now on.
    SackPath,
    /// SACK PATH: SACKs do not arrive.
    SackPathFailed,
    /// A chunk of an unknown type that wants to be reported.
    Unknown,
    /// DTLS chunk of junk.
    Junk,
    /// DTLS chunk with the R bit.
    JunkRestart,
    /// DTLS chunk that is too short for a record.
    JunkShort,
    /// DTLS chunk, the last that was seen, with an ABORT behind it.
    BundledBehind,
    /// ABORT with a DTLS chunk behind it, the last that was seen.
    BundledBefore,
    /// The last DTLS chunk twice in one packet.
    Twice,
    /// A common header and nothing else.
    Empty,
}

impl Forgery {
    /// All of them.
    pub const ALL: [Forgery; 33] = [
        Forgery::Abort,
        Forgery::AbortReflected,
        Forgery::AbortUnprotected,
        Forgery::Shutdown,
        Forgery::ShutdownAck,
        Forgery::ShutdownComplete,
        Forgery::ShutdownCompleteReflected,
        Forgery::Sack,
        Forgery::SackWindowZero,
        Forgery::NrSack,
        Forgery::SackUnsent,
        Forgery::Data { stream: 0, ppid: 0 },
        Forgery::Data { stream: 0, ppid: 4242 },
        Forgery::Data { stream: 1, ppid: 1 << 31 },
        Forgery::Data { stream: 60_000, ppid: 4242 },
        Forgery::Heartbeat,
        Forgery::HeartbeatAck,
        Forgery::Init,
        Forgery::Restart,
        Forgery::OldCookies,
        Forgery::MadeUpCookie,
        Forgery::InitAck,
        Forgery::CookieAck,
        Forgery::StaleCookie,
        Forgery::SackPath,
        Forgery::SackPathFailed,
        Forgery::Unknown,
        Forgery::Junk,
        Forgery::JunkRestart,
        Forgery::JunkShort,
        Forgery::BundledBehind,
        Forgery::BundledBefore,
        Forgery::Twice,
    ];
}

/// An INIT that the man in the middle has made.
struct ForgedInit {
    tag: u32,
    packet: Bytes,
}

impl Middle {
    /// The packets of a forgery to a host.
    pub(super) fn forgery(&mut self, to: Side, forgery: Forgery) -> Vec<Bytes> {
        let (here, there) = (index(to), index(other(to)));
        let reflected = self.seen[there].tag;
        let tsn = self.expected_tsn(to);
        // Everything that the receiver has sent, as far as one can tell.
        let acked = Tsn(self.expected_tsn(other(to)).0.wrapping_sub(1));
        let one = |write: &dyn Fn(&mut PacketBuilder<'_>) -> bool| vec![self.packet(to, write)];
        let no_gaps = || std::iter::empty::<(u16, u16)>();
        match forgery {
            Forgery::Abort => one(&|p| p.push_abort(false, &[])),
            Forgery::AbortReflected => vec![built(header(reflected), |p| p.push_abort(true, &[]))],
            Forgery::AbortUnprotected => {
                one(&|p| p.push_abort(false, &[ErrorCause::MissingDtlsChunkSupport]))
            }
            Forgery::Shutdown => one(&|p| p.push_shutdown(acked)),
            Forgery::ShutdownAck => one(&|p| p.push_shutdown_ack()),
            Forgery::ShutdownComplete => one(&|p| p.push_shutdown_complete(false)),
            Forgery::ShutdownCompleteReflected => {
                vec![built(header(reflected), |p| p.push_shutdown_complete(true))]
            }
            Forgery::Sack => {
                one(&|p| p.push_sack(acked, 1 << 20, 0, no_gaps(), std::iter::empty()))
            }
            Forgery::SackWindowZero => {
                one(&|p| p.push_sack(acked, 0, 0, no_gaps(), std::iter::empty()))
            }
            Forgery::NrSack => {
                one(&|p| p.push_nr_sack(acked, 1 << 20, 0, [&[], &[]], std::iter::empty()))
            }
            Forgery::SackUnsent => {
                let unsent = Tsn(acked.0.wrapping_add(1 << 20));
                one(&|p| p.push_sack(unsent, 1 << 20, 0, no_gaps(), std::iter::empty()))
            }
            Forgery::Data { stream, ppid } => one(&|p| {
                // Unordered and whole: each can be delivered at once.
                let flags = DataFlags(7);
                (0..TSNS).all(|n| {
                    let tsn = Tsn(tsn.0.wrapping_add(n));
                    p.push_data(tsn, StreamId(stream), Ssn(0), ppid, flags, b"forged")
                })
            }),
            Forgery::Heartbeat => one(&|p| p.push_heartbeat(b"who is there")),
            Forgery::HeartbeatAck => {
                let info = self.seen[there].heartbeat.clone();
                let info = info.unwrap_or_else(|| Bytes::from_static(&[0; 12]));
                one(&|p| p.push_heartbeat_ack(&info))
            }
            Forgery::Init | Forgery::Restart => {
                let init = self.forged_init(to);
                self.seen[here].restart = (forgery == Forgery::Restart).then_some(init.tag);
                vec![init.packet]
            }
            Forgery::OldCookies => {
                self.seen[here].cookies.iter().map(|cookie| cookie.payload.clone()).collect()
            }
            Forgery::MadeUpCookie => one(&|p| p.push_cookie_echo(&[7; 160])),
            Forgery::InitAck => one(&|p| p.push_init_ack(&init(0x0bad, &[]))),
            Forgery::CookieAck => one(&|p| p.push_cookie_ack()),
            Forgery::StaleCookie => one(&|p| p.push_error(&[ErrorCause::StaleCookie(1)])),
            Forgery::SackPath | Forgery::SackPathFailed => {
                let failed = forgery == Forgery::SackPathFailed;
                one(&|p| p.push_sack_path(SackPath { serial: 1000, failed }))
            }
            Forgery::Unknown => one(&|p| p.push_chunk(0xc5, 0, b"unknown")),
            Forgery::Junk => vec![self.junk(to, 100, 0)],
            Forgery::JunkRestart => vec![self.junk(to, 100, 1)],
            Forgery::JunkShort => vec![self.junk(to, 5, 0)],
            Forgery::BundledBehind => self.with_last_record(to, |p, record| {
                p.push_dtls(false, record) && p.push_abort(false, &[])
            }),
            Forgery::BundledBefore => self.with_last_record(to, |p, record| {
                p.push_abort(false, &[]) && p.push_dtls(false, record)
            }),
            Forgery::Twice => self.with_last_record(to, |p, record| {
                p.push_dtls(false, record) && p.push_dtls(false, record)
            }),
            Forgery::Empty => one(&|_| true),
        }
    }

    /// An INIT with a new tag, as of a peer that protects the new association as well.
    fn forged_init(&mut self, to: Side) -> ForgedInit {
        let tag = self.rng.next_u32() | 1;
        let params = self.seen[index(to)].offer.clone().into_iter().collect();
        let init = Init { params, ..init(tag, &[]) };
        ForgedInit { tag, packet: built(header(0), |p| p.push_init(&init)) }
    }

    /// A DTLS chunk whose record has this many bytes, all random but the header: that is of the
    /// present epoch.
    fn junk(&mut self, to: Side, length: usize, flags: u8) -> Bytes {
        let mut record = vec![0; length];
        self.rng.fill(&mut record);
        if let Some(last) = self.last_record(to) {
            record[..3].copy_from_slice(&last[..3]);
        }
        // By hand, because the builder refuses a record that is too short.
        let value = [&[0], &record[..]].concat();
        self.packet(to, |p| p.push_chunk(chunk_type::DTLS, flags, &value))
    }

    /// A packet made with the record of the last short protected packet to a host; none if there
    /// was none.
    fn with_last_record(
        &self,
        to: Side,
        write: impl Fn(&mut PacketBuilder<'_>, &[u8]) -> bool,
    ) -> Vec<Bytes> {
        let record = self.last_record(to);
        record.iter().map(|record| self.packet(to, |p| write(p, record))).collect()
    }

    /// The TSN that the next DATA chunk to a host has. Of protected ones he sees how many packets
    /// there were.
    fn expected_tsn(&self, to: Side) -> Tsn {
        let seen = &self.seen[index(to)];
        Tsn(seen.next_tsn.0.wrapping_add(seen.sealed as u32))
    }

    /// The record of the last short protected packet to a host.
    fn last_record(&self, to: Side) -> Option<Bytes> {
        let kept = self.seen[index(to)].kept().iter().rev();
        kept.filter(|passing| passing.payload.len() < 500).find_map(|passing| {
            match passing.first_chunk() {
                Some(manypath_wire::Chunk::Dtls(chunk)) => Some(chunk.record),
                _ => None,
            }
        })
    }
}
