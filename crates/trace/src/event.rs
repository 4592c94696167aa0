//! Events of a trace.

use std::net::SocketAddr;

use bytes::Bytes;
use manypath_proto::{Instant, PathId, PathStats, SharedSign, StreamId, StreamRequest};
use serde::{Deserialize, Serialize};

use crate::chunk::ChunkSummary;
use crate::recording::{PathSample, Recorded, Recording, TransferSample};

/// The version of these types. It grows when a field changes its meaning or goes, not when one
/// comes.
pub const SCHEMA_VERSION: u32 = 1;

/// One line of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Record {
    /// Seconds since the start of the run, with nanoseconds.
    #[serde(rename = "time_s", with = "seconds")]
    #[cfg_attr(test, schemars(with = "f64", range(min = 0)))]
    pub time: Instant,
    /// The name of the host it happened at; for a dropped packet, of the one that sent it.
    pub host: String,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

/// Something that happened at a host. Paths are counted from 1 as in results and scenarios.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The trace of a host begins; its first line.
    Run {
        /// The version of the trace's schema.
        schema: u32,
        /// The name of the scenario.
        scenario: String,
        /// The profile of the host's engine.
        profile: String,
        /// The preset of the host's engine.
        preset: String,
        /// The seed of the run.
        seed: u64,
    },
    /// A packet was sent.
    PacketSent(PacketSummary),
    /// A packet arrived.
    PacketReceived(PacketSummary),
    /// The network dropped a packet that this host had sent.
    PacketDropped {
        /// The packet's number.
        packet: u64,
        /// Why: `loss` (at random), `queue_full`, `cut` (the link was down), `no_route`, `unmapped`
        /// (a NAT had forgotten the address), `early` (random early detection), `too_long` (longer
        /// than the link's MTU); a network may know more.
        cause: String,
        /// The number of the link it got lost on, one direction of a hop.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        link: Option<u32>,
    },
    /// A path exists from now on.
    PathAdded {
        /// The path.
        path: u16,
        /// The host's transport address on it.
        local: String,
        /// The peer's transport address on it.
        remote: String,
        /// Its state: `unconfirmed`, `active`, `potentially_failed` or `inactive`.
        state: String,
    },
    /// A path changed state (RFC 9260 §8.2, RFC 7829 §4).
    PathState {
        /// The path.
        path: u16,
        /// The state it left.
        from: String,
        /// The state it is in.
        to: String,
    },
    /// The largest packets that a path carries, as far as is known (RFC 8899).
    PathMtu {
        /// The path.
        path: u16,
        /// Bytes of an IP packet.
        mtu_bytes: u64,
        /// Why: `confirmed` (a probe of that size was answered), `black_hole` (larger ones get
        /// lost), `packet_too_big` (a router says so) or `interface` (the host's own does not take
        /// larger ones).
        reason: String,
    },
    /// A path has another rank: which paths carry data before it does.
    PathRank {
        /// The path.
        path: u16,
        /// Its rank from now on: `normal`, `cost=N` or `backup`.
        rank: String,
    },
    /// Two paths share a bottleneck (mTCP paper, section 3.2).
    SharedBottleneck {
        /// The paths.
        paths: (u16, u16),
        /// The sign that it was judged by: `fast_retransmits`, `delays` or `delay_statistics`.
        #[serde(default = "fast_retransmits")]
        sign: String,
        /// How many of these signs each of them showed.
        events: (u32, u32),
        /// How many of them came on both together.
        matched: u32,
        /// That number over the smaller of theirs.
        ratio: f64,
        /// The ratio above which a bottleneck counts as shared.
        threshold: f64,
        /// Events that the path with fewer of them had to have before that was judged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        needed: Option<u32>,
        /// A bound on the probability that this many come together by chance.
        chance: f64,
        /// How much later the second path shows a congestion, in seconds.
        lag_s: f64,
        /// The path that carries no more data because of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        suppressed: Option<u16>,
    },
    /// Two paths have too many of their hops in common (mTCP paper, section 3.3).
    SharedHops {
        /// The path that carries no more data because of it.
        path: u16,
        /// The path that it shares its hops with.
        with: u16,
        /// Their disjointness: 1 - latency of the shared links / latency of the shorter path.
        disjoint: f64,
    },
    /// A path that works carries no data from now on (mTCP paper, section 3.4.1; ranks).
    PathSuppressed {
        /// The path.
        path: u16,
        /// Why: `shared_bottleneck`, `slow`, `spare`, `shares_hops` or `dearer` (cheaper paths
        /// work).
        reason: String,
    },
    /// A path that was suppressed may carry data again (mTCP paper, section 3.4.2; ranks).
    PathRestored {
        /// The path.
        path: u16,
        /// Why: `better` (its score), `too_few` (others work), `disjoint` (it shares its hops with
        /// none that works), `again` (it shared a bottleneck long ago), `failover` (no cheaper path
        /// works), `overflow` (cheaper paths cannot carry what is offered) or `ranked` (ranks were
        /// changed).
        reason: String,
    },
    /// All SACKs of one side take another path (mTCP paper, section 3.5.2).
    PrimaryElected {
        /// The path that they take.
        path: u16,
        /// True if they are the peer's.
        by_peer: bool,
        /// Why they left the path that they took before, as far as the host knows: `failed`,
        /// `set_aside` (by the host), `silent` (no data came there while it came on others) or
        /// `better` (it works, and promises less).
        reason: String,
    },
    /// A path that the application gave was not answered in the time of a trial; a candidate may
    /// take its place.
    NoAnswer {
        /// The path.
        path: u16,
        /// The host's address on it.
        local: String,
        /// The peer's address on it.
        remote: String,
    },
    /// The host has the address of one of its paths no longer.
    AddressGone {
        /// The path.
        path: u16,
        /// The address that is gone.
        local: String,
    },
    /// A path is gone and its number may be used again.
    PathRemoved {
        /// The path.
        path: u16,
    },
    /// Variables of a path changed: what they are now.
    PathMetrics(PathMetrics),
    /// T3-rtx expired (RFC 9260 §6.3.3).
    T3Expired {
        /// The path.
        path: u16,
    },
    /// Missing reports made chunks lost that were last sent on the path (RFC 9260 §7.2.4); they
    /// wait for retransmission.
    FastRetransmit {
        /// The path.
        path: u16,
        /// How many chunks.
        chunks: u64,
    },
    /// A tail-loss probe was sent.
    TailLossProbe {
        /// The path.
        path: u16,
    },
    /// The application handed messages to the association.
    Queued {
        /// User bytes.
        bytes: u64,
        /// User bytes since the association began.
        total_bytes: u64,
    },
    /// The peer acknowledged data cumulatively.
    Acknowledged {
        /// User bytes.
        bytes: u64,
        /// User bytes since the association began.
        total_bytes: u64,
    },
    /// The application took data.
    Delivered {
        /// User bytes.
        bytes: u64,
        /// User bytes since the association began.
        total_bytes: u64,
    },
    /// From now on only the peer's receive buffer holds data back: there is data to send and room
    /// in a congestion window.
    ReceiveBufferBlocked,
    /// That is over.
    ReceiveBufferUnblocked {
        /// How long it lasted, in seconds.
        blocked_s: f64,
    },
    /// The association is established.
    Connected {
        /// True if the peer opened it.
        incoming: bool,
    },
    /// Everything sent so far is acknowledged cumulatively.
    SendBufferEmpty,
    /// The peer began a graceful shutdown.
    PeerShutdown,
    /// The peer restarted: what was unacknowledged is lost (RFC 9260 §5.2.4, action A).
    Restarted,
    /// A request to reset or add streams was answered (RFC 6525).
    StreamsReconfigured {
        /// The request: `reset_outgoing`, `reset_incoming`, `add_outgoing` or `add_incoming`.
        request: String,
        /// The streams to reset; all if there are none.
        streams: Vec<u16>,
        /// The number of streams to add.
        added: u16,
        /// The answer: `performed`, `nothing_to_do`, `denied`, `wrong_stream`,
        /// `request_in_progress`, `bad_sequence_number`, `other`, or `cancelled` if the request
        /// was not sent.
        outcome: String,
        /// True if the peer asked this end to make the request.
        by_peer: bool,
    },
    /// The peer has reset streams that it sends on (RFC 6525).
    IncomingStreamsReset {
        /// The streams; all if there are none.
        streams: Vec<u16>,
    },
    /// The peer has added streams that it sends on (RFC 6525).
    IncomingStreamsAdded {
        /// The number of new streams.
        added: u16,
        /// The number of streams that the peer may send on now.
        streams: u16,
    },
    /// The peer reported an error that does not end the association.
    PeerError {
        /// The error cause code (RFC 9260 §3.3.10).
        cause: u16,
    },
    /// A message was given up (RFC 3758, RFC 7496).
    MessageAbandoned {
        /// The stream.
        stream: u16,
        /// The payload protocol identifier.
        ppid: u32,
        /// Something of it was sent.
        was_sent: bool,
    },
    /// The association is over.
    Closed {
        /// Why, in words.
        reason: String,
    },
    /// A record of a transfer begins; its first line. See [`Recorder`](crate::Recorder).
    Recording(Recording),
    /// Counters and variables of a path, in a record.
    PathSample(PathSample),
    /// Counters of the association, in a record.
    TransferSample(TransferSample),
    /// The recorded transfer is over; the last line of a record that is not cut short.
    Recorded(Recorded),
}

/// A packet and its chunks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct PacketSummary {
    /// Numbers the packets of a run, in the order they were sent. A copy that the network made has
    /// the number of its original.
    pub packet: u64,
    /// The path, if the addresses are those of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<u16>,
    /// The host's transport address.
    pub local: String,
    /// The peer's transport address.
    pub remote: String,
    /// Length of the SCTP packet as it was sent, without IP and UDP headers.
    pub bytes: u64,
    /// Its chunks in order.
    pub chunks: Vec<ChunkSummary>,
    /// A DTLS chunk protected the packet, and `chunks` are those inside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub opened: bool,
}

/// The variables of a path that congestion control, timers and failure detection turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct PathMetrics {
    /// The path.
    pub path: u16,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Slow-start threshold.
    pub ssthresh_bytes: u64,
    /// DATA chunks in flight, headers included.
    pub flight_size_bytes: u64,
    /// Retransmission timeout, with its back-off.
    pub rto_s: f64,
    /// Smoothed round-trip time; absent until measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub srtt_s: Option<f64>,
    /// Round-trip time variation.
    pub rttvar_s: f64,
    /// Timeouts in a row.
    pub error_count: u32,
}

impl PacketSummary {
    /// A packet between two addresses of a host.
    pub fn of(
        packet: u64,
        path: Option<u16>,
        local: SocketAddr,
        remote: SocketAddr,
        sctp: &Bytes,
    ) -> PacketSummary {
        PacketSummary {
            packet,
            path,
            local: local.to_string(),
            remote: remote.to_string(),
            bytes: sctp.len() as u64,
            chunks: ChunkSummary::of_packet(sctp),
            opened: false,
        }
    }

    /// The packet with the chunks of `opened`, which it would have been without protection.
    #[must_use]
    pub fn with_opened(self, opened: &Bytes) -> PacketSummary {
        PacketSummary { chunks: ChunkSummary::of_packet(opened), opened: true, ..self }
    }
}

impl PathMetrics {
    /// The variables as they are.
    pub fn of(path: &PathStats) -> PathMetrics {
        PathMetrics {
            path: path_number(path.id),
            cwnd_bytes: path.cwnd as u64,
            ssthresh_bytes: path.ssthresh as u64,
            flight_size_bytes: path.flight_size as u64,
            rto_s: path.rto.as_secs_f64(),
            srtt_s: path.srtt.map(|srtt| srtt.as_secs_f64()),
            rttvar_s: path.rttvar.as_secs_f64(),
            error_count: path.error_count,
        }
    }
}

impl Event {
    /// The trace event for an event of the engine; `None` for those that [`Watch`](crate::Watch)
    /// sees with its figures (paths that come, data that can be read) or that only an application
    /// needs.
    pub fn of(event: &manypath_proto::Event) -> Option<Event> {
        use manypath_proto::Event as Told;
        Some(match event {
            Told::Connected { incoming } => Event::Connected { incoming: *incoming },
            Told::Readable | Told::Writable | Told::PathAdded { .. } | Told::PathRemoved { .. } => {
                return None;
            }
            Told::SackPathAgreed { .. } => return None, // the chunks of the handshake say it
            Told::NoAnswer { path, local, remote } => Event::NoAnswer {
                path: path_number(*path),
                local: local.to_string(),
                remote: remote.to_string(),
            },
            Told::AddressGone { path, local } => {
                Event::AddressGone { path: path_number(*path), local: local.to_string() }
            }
            Told::PathState { path, from, to } => Event::PathState {
                path: path_number(*path),
                from: from.name().to_owned(),
                to: to.name().to_owned(),
            },
            Told::PathMtu { path, mtu, reason } => Event::PathMtu {
                path: path_number(*path),
                mtu_bytes: *mtu as u64,
                reason: reason.name().to_owned(),
            },
            Told::PathRank { path, rank } => {
                Event::PathRank { path: path_number(*path), rank: rank.to_string() }
            }
            Told::SharedBottleneck { evidence, suppressed } => Event::SharedBottleneck {
                paths: (path_number(evidence.paths.0), path_number(evidence.paths.1)),
                sign: evidence.sign.name().to_owned(),
                events: evidence.events,
                matched: evidence.matched,
                ratio: evidence.ratio(),
                threshold: evidence.threshold,
                needed: evidence.needed,
                chance: evidence.chance,
                lag_s: evidence.lag_s,
                suppressed: suppressed.map(path_number),
            },
            Told::SharedHops { path, with, disjoint } => Event::SharedHops {
                path: path_number(*path),
                with: path_number(*with),
                disjoint: *disjoint,
            },
            Told::PathSuppressed { path, reason } => {
                Event::PathSuppressed { path: path_number(*path), reason: reason.name().to_owned() }
            }
            Told::PathRestored { path, reason } => {
                Event::PathRestored { path: path_number(*path), reason: reason.name().to_owned() }
            }
            Told::PrimaryElected { path, by_peer, reason } => Event::PrimaryElected {
                path: path_number(*path),
                by_peer: *by_peer,
                reason: reason.name().to_owned(),
            },
            Told::SendBufferEmpty => Event::SendBufferEmpty,
            Told::PeerShutdown => Event::PeerShutdown,
            Told::Restarted => Event::Restarted,
            Told::StreamsReconfigured { .. }
            | Told::IncomingStreamsReset { .. }
            | Told::IncomingStreamsAdded { .. } => return of_streams(event),
            Told::PeerError { cause } => Event::PeerError { cause: *cause },
            Told::MessageAbandoned { stream, ppid, was_sent } => {
                Event::MessageAbandoned { stream: stream.0, ppid: *ppid, was_sent: *was_sent }
            }
            Told::Closed(why) => Event::Closed { reason: why.to_string() },
            // The engine may have further events; each gets an arm of its own above.
            _ => return None,
        })
    }
}

/// The trace event for one that tells of streams that were reset or added.
fn of_streams(event: &manypath_proto::Event) -> Option<Event> {
    use manypath_proto::Event as Told;
    Some(match event {
        Told::StreamsReconfigured { request, outcome, by_peer } => {
            let (streams, added) = match request {
                StreamRequest::ResetOutgoing(list) | StreamRequest::ResetIncoming(list) => {
                    (numbers(list), 0)
                }
                StreamRequest::AddOutgoing(count) | StreamRequest::AddIncoming(count) => {
                    (Vec::new(), *count)
                }
                _ => return None,
            };
            Event::StreamsReconfigured {
                request: request.name().to_owned(),
                streams,
                added,
                outcome: outcome.name().to_owned(),
                by_peer: *by_peer,
            }
        }
        Told::IncomingStreamsReset { streams } => {
            Event::IncomingStreamsReset { streams: numbers(streams) }
        }
        Told::IncomingStreamsAdded { added, streams } => {
            Event::IncomingStreamsAdded { added: *added, streams: *streams }
        }
        _ => return None,
    })
}

fn numbers(streams: &[StreamId]) -> Vec<u16> {
    streams.iter().map(|stream| stream.0).collect()
}

/// The number of a path in traces, results and scenarios: from 1.
pub(crate) fn path_number(path: PathId) -> u16 {
    u16::from(path.0) + 1
}

/// An instant as seconds in JSON. Doubles hold nanoseconds exactly for 104 days.
pub(crate) mod seconds {
    use manypath_proto::Instant;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(at: &Instant, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(at.as_secs_f64())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Instant, D::Error> {
        let seconds = f64::deserialize(from)?;
        if !(0.0..=1e9).contains(&seconds) {
            return Err(D::Error::custom(format!("a time of {seconds} s is not in 0..1e9 s")));
        }
        Ok(Instant::from_nanos((seconds * 1e9).round() as u64))
    }
}

/// The sign of traces that name none.
fn fast_retransmits() -> String {
    SharedSign::FastRetransmits.name().to_owned()
}
