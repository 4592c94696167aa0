"""Events of traces and chunks of packets. tools/make_events.py writes this file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened at a host. Paths are counted from 1."""

    time_s: float
    """Seconds since the start of the run."""

    host: str
    """The host it happened at; of a dropped packet, the one that had sent it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherEvent(Event):
    """An event of a later version of manypath."""

    event: str
    """Its name in the trace."""

    fields: dict[str, Any]
    """All else that the trace says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A chunk of a packet (RFC 9260)."""

    chunk: str
    """Its type as the RFC names it, such as DATA."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherChunk(Chunk):
    """A chunk of a later version of manypath."""

    fields: dict[str, Any]
    """All else that the trace says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataChunk(Chunk):
    """User data (§3.3.1)."""

    bytes: int
    """User bytes."""

    flags: str
    """The bits that are set, of `I`, `U`, `B` and `E`, in this order."""

    ssn: int
    """Stream sequence number."""

    stream: int
    """Stream identifier."""

    tsn: int
    """Its TSN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IDataChunk(Chunk):
    """User data whose messages may be interleaved (RFC 8260 §2.1)."""

    bytes: int
    """User bytes."""

    flags: str
    """The bits that are set, of `I`, `U`, `B` and `E`, in this order."""

    fsn: int
    """Fragment sequence number: 0 for the first fragment."""

    mid: int
    """Message identifier."""

    stream: int
    """Stream identifier."""

    tsn: int
    """Its TSN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InitChunk(Chunk):
    """Initiation (§3.3.2)."""

    a_rwnd: int
    """Advertised receiver window credit in bytes."""

    inbound_streams: int
    """Number of inbound streams."""

    initial_tsn: int
    """TSN of the first DATA chunk."""

    initiate_tag: int
    """The verification tag that the other side shall use."""

    outbound_streams: int
    """Number of outbound streams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InitAckChunk(Chunk):
    """Its acknowledgement (§3.3.3)."""

    a_rwnd: int
    """Advertised receiver window credit in bytes."""

    inbound_streams: int
    """Number of inbound streams."""

    initial_tsn: int
    """TSN of the first DATA chunk."""

    initiate_tag: int
    """The verification tag that the other side shall use."""

    outbound_streams: int
    """Number of outbound streams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SackChunk(Chunk):
    """Selective acknowledgement (§3.3.4)."""

    a_rwnd: int
    """Advertised receiver window credit in bytes."""

    cum_tsn_ack: int
    """Cumulative TSN ack."""

    duplicate_tsns: list[int]
    """TSNs that arrived more than once."""

    gap_ack_blocks: list[tuple[int, int]]
    """Gap ack blocks: first and last TSN as offsets from the cumulative TSN ack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NrSackChunk(Chunk):
    """Selective acknowledgement with non-renegable blocks (draft-tuexen-tsvwg-sctp-multipath)."""

    a_rwnd: int
    """Advertised receiver window credit in bytes."""

    cum_tsn_ack: int
    """Cumulative TSN ack."""

    duplicate_tsns: list[int]
    """TSNs that arrived more than once."""

    gap_ack_blocks: list[tuple[int, int]]
    """Gap ack blocks that the receiver may take back, as in SACK."""

    nr_gap_ack_blocks: list[tuple[int, int]]
    """Those that it will not take back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatChunk(Chunk):
    """Heartbeat (§3.3.5)."""

    bytes: int
    """Bytes of sender-specific information."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatAckChunk(Chunk):
    """Heartbeat acknowledgement (§3.3.6)."""

    bytes: int
    """Bytes of sender-specific information."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortChunk(Chunk):
    """Immediate end (§3.3.7)."""

    causes: list[int]
    """Codes of the error causes (§3.3.10)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownChunk(Chunk):
    """Graceful end (§3.3.8)."""

    cum_tsn_ack: int
    """Cumulative TSN ack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownAckChunk(Chunk):
    """Acknowledgement of a graceful end (§3.3.9)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorChunk(Chunk):
    """Errors that end nothing (§3.3.10)."""

    causes: list[int]
    """Codes of the error causes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CookieEchoChunk(Chunk):
    """The state cookie, returned (§3.3.11)."""

    bytes: int
    """Bytes of the cookie."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CookieAckChunk(Chunk):
    """Cookie acknowledgement (§3.3.12)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownCompleteChunk(Chunk):
    """Last message of a graceful end (§3.3.13)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthChunk(Chunk):
    """The HMAC over the chunks that follow (RFC 4895)."""

    algorithm: int
    """The HMAC algorithm (RFC 4895 §3.3)."""

    bytes: int
    """Bytes of the HMAC."""

    key: int
    """The number of the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DtlsChunk(Chunk):
    """The chunks of a packet, protected (draft-ietf-tsvwg-sctp-dtls-chunk)."""

    bytes: int
    """Bytes of the DTLS record, its header included."""

    restart: bool
    """The R bit: a restart key context protects them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReConfigChunk(Chunk):
    """Requests to reset or add streams, and the answers (RFC 6525)."""

    parameters: list[str]
    """The parameters: `outgoing_reset`, `incoming_reset`, `association_reset`, `response`,
    `add_outgoing` or `add_incoming`.
    """

    requests: list[int]
    """The number of each request, or of the request that a response answers."""

    results: list[int]
    """The results of the responses (RFC 6525 §4.4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AsconfChunk(Chunk):
    """Requests to change addresses (RFC 5061)."""

    address: str
    """An address of the sender that its peer knows."""

    addresses: list[str]
    """The address of each request. Unspecified ones mean the source of the packet, or with
    `delete` all others.
    """

    requests: list[str]
    """The requests: `add`, `delete`, `set_primary` or `unknown`."""

    serial: int
    """The number of the chunk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AsconfAckChunk(Chunk):
    """The answers to requests to change addresses (RFC 5061)."""

    causes: list[int]
    """The error causes, by their codes."""

    failed: list[int]
    """The numbers of the requests that failed."""

    serial: int
    """The number of the ASCONF chunk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PadChunk(Chunk):
    """Padding, beside a HEARTBEAT that measures the path's size (RFC 4820)."""

    bytes: int
    """Bytes of padding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestampChunk(Chunk):
    """When the packet was sent: a private chunk."""

    echo: int | None = None
    """The timestamp that the packet echoes, beside a SACK."""

    timestamp: int
    """Microseconds of the sender's clock, modulo 2^32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SackPathChunk(Chunk):
    """Which path SACKs take: a private chunk."""

    failed: bool
    """That path has failed: the peer shall choose another."""

    serial: int
    """Counts the changes of that path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatesChunk(Chunk):
    """Where its sender may be reached directly: a private chunk."""

    candidates: int
    """Candidates in the list."""

    seen: int
    """The last list of the peer that came; 0: none."""

    serial: int
    """Counts the sender's lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardTsnChunk(Chunk):
    """FORWARD TSN (RFC 3758), or I-FORWARD-TSN (RFC 8260)."""

    interleaved: bool
    """It is I-FORWARD-TSN."""

    new_cum_tsn: int
    """The new cumulative TSN."""

    skipped: list[tuple[int, int]]
    """Stream and SSN or MID of the messages listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EcneChunk(Chunk):
    """The echo of a mark of congestion (RFC 4960, appendix A)."""

    lowest_tsn: int
    """The lowest TSN of the marked packet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CwrChunk(Chunk):
    """The answer to an echo (RFC 4960, appendix A)."""

    lowest_tsn: int
    """The lowest TSN of the echo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownChunk(Chunk):
    """A type that is not known here."""

    bytes: int
    """Length field of the chunk, header included."""

    code: int
    """The chunk type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MalformedChunk(Chunk):
    """From here on the packet cannot be read."""

    error: str
    """The error and its position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(Event):
    """The trace of a host begins; its first line."""

    preset: str
    """The preset of the host's engine."""

    profile: str
    """The profile of the host's engine."""

    scenario: str
    """The name of the scenario."""

    schema: int
    """The version of the trace's schema."""

    seed: int
    """The seed of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketSent(Event):
    """A packet was sent."""

    bytes: int
    """Length of the SCTP packet as it was sent, without IP and UDP headers."""

    chunks: list[Chunk]
    """Its chunks in order."""

    local: str
    """The host's transport address."""

    opened: bool = False
    """A DTLS chunk protected the packet, and `chunks` are those inside."""

    packet: int
    """Numbers the packets of a run, in the order they were sent. A copy that the network made has
    the number of its original.
    """

    path: int | None = None
    """The path, if the addresses are those of one."""

    remote: str
    """The peer's transport address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketReceived(Event):
    """A packet arrived."""

    bytes: int
    """Length of the SCTP packet as it was sent, without IP and UDP headers."""

    chunks: list[Chunk]
    """Its chunks in order."""

    local: str
    """The host's transport address."""

    opened: bool = False
    """A DTLS chunk protected the packet, and `chunks` are those inside."""

    packet: int
    """Numbers the packets of a run, in the order they were sent. A copy that the network made has
    the number of its original.
    """

    path: int | None = None
    """The path, if the addresses are those of one."""

    remote: str
    """The peer's transport address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketDropped(Event):
    """The network dropped a packet that this host had sent."""

    cause: str
    """Why: `loss` (at random), `queue_full`, `cut` (the link was down), `no_route`, `unmapped` (a
    NAT had forgotten the address), `early` (random early detection), `too_long` (longer than
    the link's MTU); a network may know more.
    """

    link: int | None = None
    """The number of the link it got lost on, one direction of a hop."""

    packet: int
    """The packet's number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathAdded(Event):
    """A path exists from now on."""

    local: str
    """The host's transport address on it."""

    path: int
    """The path."""

    remote: str
    """The peer's transport address on it."""

    state: str
    """Its state: `unconfirmed`, `active`, `potentially_failed` or `inactive`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathState(Event):
    """A path changed state (RFC 9260 §8.2, RFC 7829 §4)."""

    from_: str
    """The state it left."""

    path: int
    """The path."""

    to: str
    """The state it is in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathMtu(Event):
    """The largest packets that a path carries, as far as is known (RFC 8899)."""

    mtu_bytes: int
    """Bytes of an IP packet."""

    path: int
    """The path."""

    reason: str
    """Why: `confirmed` (a probe of that size was answered), `black_hole` (larger ones get lost),
    `packet_too_big` (a router says so) or `interface` (the host's own does not take larger
    ones).
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRank(Event):
    """A path has another rank: which paths carry data before it does."""

    path: int
    """The path."""

    rank: str
    """Its rank from now on: `normal`, `cost=N` or `backup`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedBottleneck(Event):
    """Two paths share a bottleneck (mTCP paper, section 3.2)."""

    chance: float
    """A bound on the probability that this many come together by chance."""

    events: tuple[int, int]
    """How many of these signs each of them showed."""

    lag_s: float
    """How much later the second path shows a congestion, in seconds."""

    matched: int
    """How many of them came on both together."""

    needed: int | None = None
    """Events that the path with fewer of them had to have before that was judged."""

    paths: tuple[int, int]
    """The paths."""

    ratio: float
    """That number over the smaller of theirs."""

    sign: str = 'fast_retransmits'
    """The sign that it was judged by: `fast_retransmits`, `delays` or `delay_statistics`."""

    suppressed: int | None = None
    """The path that carries no more data because of it."""

    threshold: float
    """The ratio above which a bottleneck counts as shared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedHops(Event):
    """Two paths have too many of their hops in common (mTCP paper, section 3.3)."""

    disjoint: float
    """Their disjointness: 1 - latency of the shared links / latency of the shorter path."""

    path: int
    """The path that carries no more data because of it."""

    with_: int
    """The path that it shares its hops with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathSuppressed(Event):
    """A path that works carries no data from now on (mTCP paper, section 3.4.1; ranks)."""

    path: int
    """The path."""

    reason: str
    """Why: `shared_bottleneck`, `slow`, `spare`, `shares_hops` or `dearer` (cheaper paths work)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRestored(Event):
    """A path that was suppressed may carry data again (mTCP paper, section 3.4.2; ranks)."""

    path: int
    """The path."""

    reason: str
    """Why: `better` (its score), `too_few` (others work), `disjoint` (it shares its hops with none
    that works), `again` (it shared a bottleneck long ago), `failover` (no cheaper path works),
    `overflow` (cheaper paths cannot carry what is offered) or `ranked` (ranks were changed).
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimaryElected(Event):
    """All SACKs of one side take another path (mTCP paper, section 3.5.2)."""

    by_peer: bool
    """True if they are the peer's."""

    path: int
    """The path that they take."""

    reason: str
    """Why they left the path that they took before, as far as the host knows: `failed`,
    `set_aside` (by the host), `silent` (no data came there while it came on others) or `better`
    (it works, and promises less).
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class NoAnswer(Event):
    """A path that the application gave was not answered in the time of a trial; a candidate may
    take its place.
    """

    local: str
    """The host's address on it."""

    path: int
    """The path."""

    remote: str
    """The peer's address on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressGone(Event):
    """The host has the address of one of its paths no longer."""

    local: str
    """The address that is gone."""

    path: int
    """The path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRemoved(Event):
    """A path is gone and its number may be used again."""

    path: int
    """The path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathMetrics(Event):
    """Variables of a path changed: what they are now."""

    cwnd_bytes: int
    """Congestion window."""

    error_count: int
    """Timeouts in a row."""

    flight_size_bytes: int
    """DATA chunks in flight, headers included."""

    path: int
    """The path."""

    rto_s: float
    """Retransmission timeout, with its back-off."""

    rttvar_s: float
    """Round-trip time variation."""

    srtt_s: float | None = None
    """Smoothed round-trip time; absent until measured."""

    ssthresh_bytes: int
    """Slow-start threshold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class T3Expired(Event):
    """T3-rtx expired (RFC 9260 §6.3.3)."""

    path: int
    """The path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FastRetransmit(Event):
    """Missing reports made chunks lost that were last sent on the path (RFC 9260 §7.2.4); they
    wait for retransmission.
    """

    chunks: int
    """How many chunks."""

    path: int
    """The path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TailLossProbe(Event):
    """A tail-loss probe was sent."""

    path: int
    """The path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued(Event):
    """The application handed messages to the association."""

    bytes: int
    """User bytes."""

    total_bytes: int
    """User bytes since the association began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged(Event):
    """The peer acknowledged data cumulatively."""

    bytes: int
    """User bytes."""

    total_bytes: int
    """User bytes since the association began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered(Event):
    """The application took data."""

    bytes: int
    """User bytes."""

    total_bytes: int
    """User bytes since the association began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiveBufferBlocked(Event):
    """From now on only the peer's receive buffer holds data back: there is data to send and room
    in a congestion window.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiveBufferUnblocked(Event):
    """That is over."""

    blocked_s: float
    """How long it lasted, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected(Event):
    """The association is established."""

    incoming: bool
    """True if the peer opened it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendBufferEmpty(Event):
    """Everything sent so far is acknowledged cumulatively."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerShutdown(Event):
    """The peer began a graceful shutdown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarted(Event):
    """The peer restarted: what was unacknowledged is lost (RFC 9260 §5.2.4, action A)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsReconfigured(Event):
    """A request to reset or add streams was answered (RFC 6525)."""

    added: int
    """The number of streams to add."""

    by_peer: bool
    """True if the peer asked this end to make the request."""

    outcome: str
    """The answer: `performed`, `nothing_to_do`, `denied`, `wrong_stream`, `request_in_progress`,
    `bad_sequence_number`, `other`, or `cancelled` if the request was not sent.
    """

    request: str
    """The request: `reset_outgoing`, `reset_incoming`, `add_outgoing` or `add_incoming`."""

    streams: list[int]
    """The streams to reset; all if there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingStreamsReset(Event):
    """The peer has reset streams that it sends on (RFC 6525)."""

    streams: list[int]
    """The streams; all if there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingStreamsAdded(Event):
    """The peer has added streams that it sends on (RFC 6525)."""

    added: int
    """The number of new streams."""

    streams: int
    """The number of streams that the peer may send on now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerError(Event):
    """The peer reported an error that does not end the association."""

    cause: int
    """The error cause code (RFC 9260 §3.3.10)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAbandoned(Event):
    """A message was given up (RFC 3758, RFC 7496)."""

    ppid: int
    """The payload protocol identifier."""

    stream: int
    """The stream."""

    was_sent: bool
    """Something of it was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed(Event):
    """The association is over."""

    reason: str
    """Why, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording(Event):
    """A record of a transfer begins; its first line. See `Recorder`(crate::Recorder)."""

    header_bytes: int
    """Bytes of IP and UDP headers that `bytes_sent` does not have, for each packet."""

    is_protected: bool
    """Packets are encrypted and authenticated."""

    parameters: dict[str, str]
    """Its parameters that differ from profile and preset, with their values."""

    preset: str
    """Its preset."""

    profile: str
    """The profile of the sender's engine."""

    rate_bps: int | None = None
    """Bits per second that the application offers; absent if as many as the network takes."""

    schema: int
    """The version of the trace's schema."""

    started_s: float
    """When it began, in seconds since 1970 (UTC)."""

    version: str
    """The version of the program that records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathSample(Event):
    """Counters and variables of a path, in a record."""

    acked_bytes: int
    """User bytes that were last sent here and are acknowledged."""

    bytes_sent: int
    """Bytes of SCTP packets sent, without IP and UDP headers."""

    chunks_lost: int
    """Chunks last sent here that were found lost."""

    cwnd_bytes: int
    """Congestion window."""

    data_chunks_sent: int
    """DATA chunks sent, retransmissions and copies included."""

    flight_size_bytes: int
    """DATA chunks in flight, headers included."""

    mtu_bytes: int
    """The largest IP packet that is sent."""

    packets_received: int
    """Packets received."""

    packets_sent: int
    """Packets sent."""

    path: int
    """The path."""

    redundant_chunks_sent: int
    """DATA chunks sent here that were in flight on another path."""

    retransmissions: int
    """DATA chunks sent here again."""

    rtt_heartbeat_s: float | None = None
    """The round-trip time of the latest heartbeat; absent until one is answered."""

    rtt_s: float | None = None
    """The round-trip time that the latest SACK showed; absent until there is one."""

    rtt_samples: int
    """Measurements of the round-trip time."""

    rtt_via: int | None = None
    """The path on which that SACK came."""

    since_s: float
    """When it was last looked at before: whatever changed did so since."""

    state: str
    """Its state: `unconfirmed`, `active`, `potentially_failed` or `inactive`."""

    suppressed: str | None = None
    """Why it carries no data although it works; absent if it may."""

    t3_expirations: int
    """Expirations of T3-rtx."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferSample(Event):
    """Counters of the association, in a record."""

    acked_bytes: int
    """User bytes acknowledged for good."""

    peer_window_bytes: int
    """Free receive buffer of the peer, as its last SACK said."""

    queued_bytes: int
    """User bytes taken from the application."""

    receive_buffer_blocked_s: float
    """How long only that buffer held the sender back so far, in seconds."""

    since_s: float
    """When it was last looked at before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded(Event):
    """The recorded transfer is over; the last line of a record that is not cut short."""

    completed: bool
    """Everything was delivered."""

    content_bytes: int | None = None
    """Bytes of content that were to be delivered; absent if unknown."""

    transfer_time_s: float | None = None
    """The time of the transfer as its result says; absent without one."""


CHUNKS: dict[str, type[Chunk]] = {
    "DATA": DataChunk,
    "I_DATA": IDataChunk,
    "INIT": InitChunk,
    "INIT_ACK": InitAckChunk,
    "SACK": SackChunk,
    "NR_SACK": NrSackChunk,
    "HEARTBEAT": HeartbeatChunk,
    "HEARTBEAT_ACK": HeartbeatAckChunk,
    "ABORT": AbortChunk,
    "SHUTDOWN": ShutdownChunk,
    "SHUTDOWN_ACK": ShutdownAckChunk,
    "ERROR": ErrorChunk,
    "COOKIE_ECHO": CookieEchoChunk,
    "COOKIE_ACK": CookieAckChunk,
    "SHUTDOWN_COMPLETE": ShutdownCompleteChunk,
    "AUTH": AuthChunk,
    "DTLS": DtlsChunk,
    "RE_CONFIG": ReConfigChunk,
    "ASCONF": AsconfChunk,
    "ASCONF_ACK": AsconfAckChunk,
    "PAD": PadChunk,
    "TIMESTAMP": TimestampChunk,
    "SACK_PATH": SackPathChunk,
    "CANDIDATES": CandidatesChunk,
    "FORWARD_TSN": ForwardTsnChunk,
    "ECNE": EcneChunk,
    "CWR": CwrChunk,
    "UNKNOWN": UnknownChunk,
    "MALFORMED": MalformedChunk,
}


EVENTS: dict[str, type[Event]] = {
    "run": Run,
    "packet_sent": PacketSent,
    "packet_received": PacketReceived,
    "packet_dropped": PacketDropped,
    "path_added": PathAdded,
    "path_state": PathState,
    "path_mtu": PathMtu,
    "path_rank": PathRank,
    "shared_bottleneck": SharedBottleneck,
    "shared_hops": SharedHops,
    "path_suppressed": PathSuppressed,
    "path_restored": PathRestored,
    "primary_elected": PrimaryElected,
    "no_answer": NoAnswer,
    "address_gone": AddressGone,
    "path_removed": PathRemoved,
    "path_metrics": PathMetrics,
    "t3_expired": T3Expired,
    "fast_retransmit": FastRetransmit,
    "tail_loss_probe": TailLossProbe,
    "queued": Queued,
    "acknowledged": Acknowledged,
    "delivered": Delivered,
    "receive_buffer_blocked": ReceiveBufferBlocked,
    "receive_buffer_unblocked": ReceiveBufferUnblocked,
    "connected": Connected,
    "send_buffer_empty": SendBufferEmpty,
    "peer_shutdown": PeerShutdown,
    "restarted": Restarted,
    "streams_reconfigured": StreamsReconfigured,
    "incoming_streams_reset": IncomingStreamsReset,
    "incoming_streams_added": IncomingStreamsAdded,
    "peer_error": PeerError,
    "message_abandoned": MessageAbandoned,
    "closed": Closed,
    "recording": Recording,
    "path_sample": PathSample,
    "transfer_sample": TransferSample,
    "recorded": Recorded,
}

__all__ = [
    "AbortChunk",
    "Acknowledged",
    "AddressGone",
    "AsconfAckChunk",
    "AsconfChunk",
    "AuthChunk",
    "CandidatesChunk",
    "Chunk",
    "Closed",
    "Connected",
    "CookieAckChunk",
    "CookieEchoChunk",
    "CwrChunk",
    "DataChunk",
    "Delivered",
    "DtlsChunk",
    "EcneChunk",
    "ErrorChunk",
    "Event",
    "FastRetransmit",
    "ForwardTsnChunk",
    "HeartbeatAckChunk",
    "HeartbeatChunk",
    "IDataChunk",
    "IncomingStreamsAdded",
    "IncomingStreamsReset",
    "InitAckChunk",
    "InitChunk",
    "MalformedChunk",
    "MessageAbandoned",
    "NoAnswer",
    "NrSackChunk",
    "OtherChunk",
    "OtherEvent",
    "PacketDropped",
    "PacketReceived",
    "PacketSent",
    "PadChunk",
    "PathAdded",
    "PathMetrics",
    "PathMtu",
    "PathRank",
    "PathRemoved",
    "PathRestored",
    "PathSample",
    "PathState",
    "PathSuppressed",
    "PeerError",
    "PeerShutdown",
    "PrimaryElected",
    "Queued",
    "ReConfigChunk",
    "ReceiveBufferBlocked",
    "ReceiveBufferUnblocked",
    "Recorded",
    "Recording",
    "Restarted",
    "Run",
    "SackChunk",
    "SackPathChunk",
    "SendBufferEmpty",
    "SharedBottleneck",
    "SharedHops",
    "ShutdownAckChunk",
    "ShutdownChunk",
    "ShutdownCompleteChunk",
    "StreamsReconfigured",
    "T3Expired",
    "TailLossProbe",
    "TimestampChunk",
    "TransferSample",
    "UnknownChunk",
]
