//! The values: one entry each, from which the [`Params`] field and its row of [`VALUES`] are made.

use std::time::Duration;

use manypath_wire::chunk_type;

use super::chunk_types::ChunkTypes;
use super::kinds::{
    Cuc, InitialCwnd, InitialSsthresh, MaxBurstRule, Ns2Release, RedundancyCycle, RedundancyOrder,
    RtxPastCwnd, SharedVerdict, Units,
};
use super::ns2_rules::RuleSet;
use super::profile::{Profile, of_profile};
use super::row::{Row, row};
use super::setting::{Any, OrOff};

/// Under `[Group]`, an entry reads: doc, `name: type, unit, allowed values, source,` and the values
/// of profiles as [`of_profile`] takes them. `hidden:` ends an entry that users leave alone, and
/// says why; `manypath config show` prints it with `--all` only.
macro_rules! values {
    ($(
        [$group:ident]
        $(
            $(#[doc = $doc:literal])+
            $name:ident: $type:ty, $unit:literal, $allowed:expr, $source:literal,
            default: $default:expr $(, fast: $fast:expr)? $(, papers: $papers:expr)?
            $(, ns2: $ns2:expr)? $(, r37: $r37:expr)? $(, r36: $r36:expr)?
            $(, r35: $r35:expr)? $(, r34: $r34:expr)? $(, hidden: $hidden:literal)?;
        )+
    )+) => {
        /// The values of a configuration: all of it but the policies, which are made from them.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub struct Params {
            $($(
                $(#[doc = $doc])+
                #[doc = concat!("\n\nUnit: ", $unit, ". Allowed: `", stringify!($allowed), "`.")]
                #[doc = concat!(" Source: ", $source, ".")]
                pub $name: $type,
            )+)+
        }

        impl Params {
            /// The constants of a profile.
            pub(crate) fn of(profile: Profile) -> Self {
                Self {
                    $($($name: of_profile!(
                        profile, $default $(, fast: $fast)? $(, papers: $papers)? $(, ns2: $ns2)?
                        $(, r37: $r37)? $(, r36: $r36)? $(, r35: $r35)? $(, r34: $r34)?
                    ),)+)+
                }
            }
        }

        /// Every value, in the order they are printed.
        pub(crate) static VALUES: &[Row<Params>] = &[$($(row!(
            Params, $group, [$($doc)+], $name: $type, $unit, $allowed, $source
            $(, hidden: $hidden)?
        ),)+)+];
    };
}

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const HOUR: Duration = secs(3600);
const DAY: Duration = secs(86_400);
const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const GIB: usize = 1 << 30;

values! {
    [Timers]
    /// RTO of a path before its first RTT measurement (RTO.Initial).
    rto_initial: Duration, "time", ms(1)..=secs(600), "RFC 9260 §6.3.1, §16",
        default: secs(1), papers: secs(3);
    /// Lower bound of the RTO (RTO.Min). A lower bound fails over sooner. An RTO below the RTT plus
    /// the peer's SACK delay retransmits what was not lost, and cuts cwnd to one packet for
    /// nothing.
    rto_min: Duration, "time", ms(1)..=secs(600), "RFC 9260 §6.3.1, §16",
        default: secs(1), fast: ms(200);
    /// Upper bound of the RTO (RTO.Max). A lower bound notices sooner that a failed path is back,
    /// and probes it more often.
    rto_max: Duration, "time", ms(1)..=secs(600), "RFC 9260 §6.3.1, §16",
        default: secs(60), fast: secs(10);
    /// Weight of a new measurement in SRTT (RTO.Alpha).
    rto_alpha: f64, "ratio", 0.001..=1.0, "RFC 9260 §6.3.1, §16",
        default: 0.125, hidden: "is a constant of RFC 9260";
    /// Weight of a new measurement in RTTVAR (RTO.Beta).
    rto_beta: f64, "ratio", 0.001..=1.0, "RFC 9260 §6.3.1, §16",
        default: 0.25, hidden: "is a constant of RFC 9260";

    [Handshake]
    /// Retransmissions of INIT or COOKIE ECHO before the attempt is given up
    /// (Max.Init.Retransmits).
    max_init_retransmits: u32, "retransmissions", 0..=255, "RFC 9260 §5.1, §16",
        default: 8, fast: 64;
    /// First timeout of INIT, and again of COOKIE ECHO. It doubles up to handshake_rto_max. Where
    /// the RTT is longer, a packet is repeated for nothing. Off: both use the RTO of their path.
    handshake_rto: Option<Duration>, "time", OrOff(ms(10)..=secs(600)), "RFC 9260 §5.1 takes RTO.Initial; fast: implementation",
        default: None, fast: Some(ms(250));
    /// Upper bound of the time between two INITs or two COOKIE ECHOs, if handshake_rto is set.
    handshake_rto_max: Duration, "time", ms(10)..=secs(600), "implementation",
        default: secs(60), fast: secs(1);
    /// Sends INIT on all paths at once instead of on one after the other. The path of the first
    /// answer becomes the primary.
    handshake_on_all_paths: bool, "switch", Any, "implementation; RFC 9260 §5.1 takes one after the other",
        default: false, fast: true;
    /// Pads repeated INITs to 576 bytes of an IPv4 packet. A peer under a flood may then answer
    /// them whatever its limit (stateless_answers), since its answer is no longer.
    pad_repeated_init: bool, "switch", Any, "implementation; RFC 4820 §4",
        default: false, fast: true, hidden: "matters where servers are flooded";
    /// Sends queued data together with COOKIE ECHO, as far as whole chunks fit the packet. The data
    /// arrives a round trip sooner, and is repeated with COOKIE ECHO.
    data_with_cookie: bool, "switch", Any, "RFC 9260 §5.1 (C) allows it",
        default: false, fast: true;
    /// How long a state cookie stays valid (Valid.Cookie.Life).
    valid_cookie_life: Duration, "time", secs(1)..=HOUR, "RFC 9260 §5.1.3, §16",
        default: secs(60);
    /// Limit on answers per second to packets that belong to no association: INIT ACK, ABORT,
    /// SHUTDOWN COMPLETE and stale cookies together. During a flood, repeated INITs are answered
    /// first. An INIT ACK does not count if its cookie came back, or if it is no longer than an
    /// INIT of 512 bytes or more. Off: no limit.
    stateless_answers: Option<u32>, "answers", OrOff(100..=1_000_000), "implementation",
        default: None, fast: Some(1000);
    /// Lists all local addresses in INIT and INIT ACK. Without the list, the peer uses only
    /// addresses that it was given or that packets come from: right behind relays or a NAT.
    advertise_addresses: bool, "switch", Any, "RFC 9260 §5.1.2",
        default: true;
    /// Outbound streams to request; the peer may allow fewer.
    outbound_streams: u16, "streams", 1..=65_535, "RFC 9260 §5.1.1",
        default: 16;
    /// Most inbound streams that the peer may use.
    inbound_streams: u16, "streams", 1..=65_535, "RFC 9260 §5.1.1",
        default: 2048;
    /// Takes the next path for the next attempt of a handshake, and makes the path that is answered
    /// the primary. Off, the first path is the primary.
    handshake_moves_primary: bool, "switch", Any, "implementation; the papers' primary is given",
        default: true, papers: false, hidden: "repeats the papers";
    /// Makes the side that associates probe every path, that of the handshake too, and send no new
    /// DATA while one of them has not answered. With data_before_verification paths carry SACKs at
    /// once.
    verify_all_paths_first: bool, "switch", Any, "ns-2's SCTP module from release 3.7 on",
        default: false, ns2: true, r36: false, hidden: "repeats ns-2";

    [Failure]
    /// Consecutive timeouts that a path may have; one more makes it inactive (Path.Max.Retrans,
    /// PMR). A lower limit fails over sooner, and takes a burst of loss for a failure more often.
    path_max_retrans: u32, "timeouts", 0..=255, "RFC 9260 §8.2, §16",
        default: 5;
    /// Consecutive timeouts that a path may have; one more makes it potentially failed (PFMR). At
    /// path_max_retrans or more, no path is ever potentially failed.
    pf_max_retrans: u32, "timeouts", 0..=255, "RFC 7829 §3.2",
        default: 0;
    /// cwnd of a potentially failed path when a HEARTBEAT ACK makes it active: 1 is CMT-PF1, 2 is
    /// CMT-PF2.
    pf_recovery_cwnd: u32, "MTU", 1..=10, "CMT-PF paper, section III-A",
        default: 1, hidden: "repeats the CMT-PF paper";
    /// A path is potentially failed when nothing sent on it is acknowledged for this many RTOs
    /// (chi). Used with failure = mtcp. With ack_path = primary, also how long the primary may
    /// bring no DATA while other paths do.
    silence_rtos: u32, "RTO", 1..=100, "mTCP paper, section 3.5.1",
        default: 2;
    /// Consecutive timeouts of the primary path after which another path becomes the primary for
    /// good (PSMR); at least pf_max_retrans. Off: the primary carries data again as soon as it
    /// answers.
    primary_switchover_max_retrans: Option<u32>, "timeouts", OrOff(0..=255), "RFC 7829 §5",
        default: None;
    /// Consecutive timeouts over all paths that an association may have; one more ends it
    /// (Association.Max.Retrans). Off: association_timeout alone decides.
    association_max_retrans: Option<u32>, "timeouts", OrOff(0..=10_000), "RFC 9260 §8.1, §16",
        default: Some(10), fast: None;
    /// Time that an association survives without any usable path, if nothing arrives of the peer
    /// either. Off: association_max_retrans alone decides.
    association_timeout: Option<Duration>, "time", OrOff(secs(1)..=DAY), "implementation",
        default: None, fast: Some(secs(60));
    /// Copes with paths that work in one direction only. A HEARTBEAT whose own path has failed, or
    /// that the peer repeats, is also answered on other paths. SACKs leave a failed path for one
    /// that works.
    one_way_paths: bool, "switch", Any, "implementation; RFC 9260 §6.4 answers where the question came from",
        default: false, fast: true;
    /// When no other path works, a path that answers a HEARTBEAT carries outstanding data at once,
    /// without waiting for its T3-rtx. Packets of a peer that comes back are answered by a
    /// HEARTBEAT at once. A path that the application adds is probed again after hb_first_probe,
    /// doubling, if that is sooner than the RTO.
    rtx_when_path_answers: bool, "switch", Any, "implementation",
        default: false, fast: true;
    /// Lets new data use a path that is not verified yet.
    data_before_verification: bool, "switch", Any, "RFC 9260 §5.4 forbids it; RFC 2960 allowed it",
        default: false, papers: true, hidden: "repeats RFC 2960";

    [Heartbeats]
    /// Probes idle active paths with HEARTBEATs. Probes that verify a path or bring one back are
    /// always sent.
    heartbeats: bool, "switch", Any, "RFC 9260 §8.3",
        default: true;
    /// Interval between HEARTBEATs on an idle path (HB.interval). The RTO of the path and a random
    /// jitter are added.
    hb_interval: Duration, "time", ms(10)..=DAY, "RFC 9260 §8.3, §16",
        default: secs(30), fast: secs(5);
    /// Most packets with a HEARTBEAT that are sent at once when an association opens
    /// (HB.Max.Burst). At max_paths or more, all paths are verified at once.
    hb_max_burst: u32, "packets", 1..=32, "RFC 9260 §5.4, §16",
        default: 1, fast: 32, ns2: 32;
    /// Interval of the first probes of a potentially failed or inactive path, if its RTO is longer.
    /// It doubles with each probe. If an answer is later than the next probe, the path is measured
    /// once more at once: it may have been held while the network came up. Off: one probe per RTO.
    hb_first_probe: Option<Duration>, "time", OrOff(ms(1)..=secs(60)), "implementation",
        default: None, fast: Some(ms(250));
    /// Longest time between probes of a potentially failed or inactive path: how late a path that
    /// is back may be noticed. It is exceeded on a path that stays silent: a fortieth of the
    /// silence, while no path works an eighth, at most 900 ms if data waits. While the peer is
    /// heard there and does not answer, the time grows up to hb_interval. Off: no bound.
    hb_probe_max: Option<Duration>, "time", OrOff(ms(10)..=HOUR), "implementation",
        default: None, fast: Some(ms(500));
    /// Also probes failed paths that carry data, at the intervals of hb_first_probe and
    /// hb_probe_max, and all paths that time out while none works. The answer retransmits
    /// outstanding data at once. A lost probe then counts as no timeout. Off, T3-rtx alone notices
    /// that such a path works.
    probe_with_data: bool, "switch", Any, "implementation; RFC 9260 §8.3 probes idle paths",
        default: false, fast: true;

    [Sacks]
    /// Longest time that a SACK waits for more data (SACK.Delay).
    sack_delay: Duration, "time", Duration::ZERO..=ms(500), "RFC 9260 §6.2, §16; never above 500 ms",
        default: ms(200), fast: ms(25);
    /// Data packets per SACK.
    sack_every: u32, "packets", 1..=64, "RFC 9260 §6.2",
        default: 2;
    /// Asks the peer for a SACK without delay (I bit) where data waits for it: with the chunk that
    /// fills the windows, once in a round trip, with probes of a closed window, and with
    /// retransmissions while nothing else is in flight. Costs the peer a SACK each time.
    immediate_sacks: bool, "switch", Any, "RFC 9260 §6.1, RFC 7053 §4",
        default: false, hidden: "helps where windows hold few packets";
    /// Most data packets per SACK, reached at high packet rates, to a peer that announced that it
    /// bears this (chunk type 0xb7 in Supported Extensions); others get sack_every. Equal to
    /// sack_every, the number never grows.
    sack_every_max: u32, "packets", 1..=64, "RFC 9260 §6.2 says 2",
        default: 2, fast: 16;
    /// While data arrives on several paths so fast that sack_every has grown, packets out of order
    /// do not hurry SACKs. Otherwise each packet would draw a SACK, too many for one path. On with
    /// the profile fast and the preset mtcp.
    sack_gaps_wait: bool, "switch", Any, "implementation; RFC 9260 §6.7 says each packet while TSNs are missing",
        default: false, hidden: "repeats the mTCP paper";
    /// Delayed acks for CMT: packets out of order do not hurry SACKs, and each SACK says how many
    /// packets it acknowledges. Needs sfr.
    dac: bool, "switch", Any, "CMT paper, section III-C",
        default: false, hidden: "repeats the CMT paper";
    /// Non-renegable SACKs: the receiver also lists TSNs above the cumulative TSN ack that it will
    /// keep whatever happens, and the sender frees them. Used if the peer supports it.
    nr_sack: bool, "switch", Any, "draft-tuexen-tsvwg-sctp-multipath; RFC 9260 has none",
        default: false;
    /// Sends SACKs by ack_path = primary, with sack_gaps_wait and without dac, to a peer that opens
    /// an association and announces SACK PATH chunks. Only the sending end then needs
    /// configuration.
    ack_path_as_asked: bool, "switch", Any, "implementation; docs/mtcp.md",
        default: false, fast: true;
    /// Skips a TSN now and then and sends it a round trip late, to catch peers that acknowledge
    /// data they did not receive. Such peers make a sender exceed the capacity of their link. The
    /// first test comes after about 256 KiB without a loss, later ones ever more rarely. Not used
    /// with redundancy.
    ack_tests: bool, "switch", Any, "Savage et al. 1999, section 4; RFC 9260 has none",
        default: false, fast: true;
    /// Sends the SACK for the first DATA of an association at once: cwnd is smallest then, and the
    /// RTT unknown.
    sack_first_at_once: bool, "switch", Any, "implementation; RFC 2960 §6.2 has no exception",
        default: true, papers: false, hidden: "repeats RFC 2960";
    /// Acknowledges the packet that fills the last gap at once, like those that arrive while TSNs
    /// are missing. Off, its SACK is delayed like any other.
    sack_filled_gap_at_once: bool, "switch", Any, "implementation; RFC 2960 §6.7 speaks of gaps only",
        default: true, papers: false, hidden: "repeats RFC 2960";
    /// Sends a SACK at once when a receive buffer that was nearly full has room again.
    window_updates: bool, "switch", Any, "RFC 9260 §6.2; ns-2 2.35 does not",
        default: true, papers: false, hidden: "repeats ns-2";

    [Congestion]
    /// cwnd of a path before its first data.
    initial_cwnd: InitialCwnd, "window", Any, "RFC 9260 §7.2.1; fast: RFC 6928; RFC 2960: 2 MTU; ns-2 2.35: RFC 4960",
        default: InitialCwnd::Rfc9260,
        fast: InitialCwnd::Fixed(Units::Pmdcs(10)),
        papers: InitialCwnd::Fixed(Units::Mtu(2)),
        ns2: InitialCwnd::Fixed(Units::Bytes(4380)),
        r37: InitialCwnd::Fixed(Units::Pmdcs(2));
    /// ssthresh of a path before its first loss.
    initial_ssthresh: InitialSsthresh, "window", Any, "RFC 9260 §7.2.1",
        default: InitialSsthresh::Unlimited, papers: InitialSsthresh::PeerRwnd,
        ns2: InitialSsthresh::Bytes(65_536), hidden: "repeats RFC 2960";
    /// Lower bound of ssthresh after a loss.
    ssthresh_floor: Units, "window", Any, "RFC 9260 §7.2.3, §7.2.1; RFC 2960: 2 MTU",
        default: Units::Pmdcs(4), papers: Units::Mtu(2), ns2: Units::Pmdcs(2), hidden: "repeats RFC 2960";
    /// Most that cwnd grows per SACK in slow start (L times PMDCS). A larger limit keeps growth at
    /// one cwnd per RTT when SACKs are few.
    slow_start_increase_max: Units, "window", Any, "RFC 9260 §7.2.1; RFC 3465; RFC 2960: 1 MTU",
        default: Units::Pmdcs(1), fast: Units::Pmdcs(16), papers: Units::Mtu(1), ns2: Units::Pmdcs(1);
    /// cwnd update for CMT: cwnd grows by a pseudo-cumack per path.
    cuc: Cuc, "choice", Any, "CMT paper, section III-B",
        default: Cuc::Off, hidden: "repeats the CMT paper";
    /// Most packets that a path sends at once (Max.Burst). 0: no limit.
    max_burst: u32, "packets", 0..=10_000, "RFC 9260 §6.1 (D), §16",
        default: 4, fast: 0;
    /// How Max.Burst limits what is sent.
    max_burst_rule: MaxBurstRule, "choice", Any, "RFC 9260 §6.1 (D); CMT-PF paper, section II-D; ns-2 2.35",
        default: MaxBurstRule::Rfc9260, papers: MaxBurstRule::PerSack, ns2: MaxBurstRule::AfterFastRetransmit, hidden: "repeats the papers";
    /// Spreads the packets of a path over its RTT instead of sending them in bursts.
    pacing: bool, "switch", Any, "implementation",
        default: false, fast: true;
    /// Halves cwnd for every RTO without data, down to ssthresh_floor.
    idle_cwnd_decay: bool, "switch", Any, "RFC 9260 §7.2.1",
        default: true, hidden: "repeats RFC 2960";
    /// Lower bound of cwnd as it decays when idle.
    idle_cwnd_floor: Units, "window", Any, "RFC 9260 §7.2.1; RFC 2960: 2 MTU; ns-2 2.35: 4",
        default: Units::Pmdcs(4), papers: Units::Mtu(2), ns2: Units::Pmdcs(4), r37: Units::Pmdcs(2),
        hidden: "repeats RFC 2960";
    /// Counts a chunk that missing reports made lost as outstanding on its path until it is
    /// acknowledged, as mTCP's pipe does. The ack of a retransmission then makes room on both
    /// paths, and a timeout empties the count of its path. Off, a lost chunk leaves the flight at
    /// once.
    pipe_accounting: bool, "switch", Any, "mTCP paper, section 3.1.2; not RFC 9260 §7.2.4",
        default: false, hidden: "repeats the mTCP paper";
    /// Uses one congestion window for all paths, which every loss cuts, instead of one per path.
    combined_window: bool, "switch", Any, "mTCP paper, section 5.2 (\"combined\")",
        default: false, hidden: "repeats the mTCP paper";

    [Recovery]
    /// Release of ns-2's agents whose rules recovery = ns2 has.
    ns2_release: Ns2Release, "choice", Any, "docs of policy::recovery::Rule",
        default: Ns2Release::R38, r37: Ns2Release::R37, r36: Ns2Release::R36,
        r35: Ns2Release::R35, r34: Ns2Release::R34, hidden: "repeats ns-2";
    /// Rules of ns-2's agents that recovery = ns2 leaves out, to find what each is worth.
    recovery_without: RuleSet, "rules", Any, "docs of policy::recovery::Rule",
        default: RuleSet::NONE, hidden: "repeats ns-2";
    /// Missing reports that mark a TSN for fast retransmit.
    missing_reports: u32, "reports", 1..=32, "RFC 9260 §7.2.4; RFC 2960: 4",
        default: 3, papers: 4, hidden: "repeats RFC 2960";
    /// Split fast retransmit (SFR): counts missing reports per path.
    sfr: bool, "switch", Any, "CMT paper, section III-A",
        default: false, hidden: "repeats the CMT paper";
    /// Multiple fast retransmit (MFR): missing reports may mark a chunk again after its fast
    /// retransmit, if what was sent later arrives (with sfr, on the same path). Off, only T3-rtx
    /// finds a lost retransmission. Not with all_rtx_alt, whose retransmissions another path may
    /// delay.
    mfr: bool, "switch", Any, "retransmission policies paper, section 4.3; RFC 9260 §7.2.4 has none",
        default: false, fast: true;
    /// Heartbeat after RTO (HAR): each expiry of T3-rtx sends a HEARTBEAT on its path at once, if
    /// there is another path, to measure the backed-off RTO again. Not with retransmissions on the
    /// same path.
    har: bool, "switch", Any, "retransmission policies paper, section 4.1",
        default: false, hidden: "repeats the retransmission policies paper";
    /// Timestamps (TS): packets with DATA or SACK carry a chunk of 12 bytes that also measures the
    /// RTT of retransmissions. DATA chunks are 12 bytes shorter. Used if the peer supports it.
    timestamp: bool, "switch", Any, "retransmission policies paper, section 4.2; RFC 9260 has none",
        default: false, hidden: "repeats the retransmission policies paper";
    /// Sends the last outstanding packet again before T3-rtx expires, to draw a SACK.
    tail_loss_probe: bool, "switch", Any, "as RFC 8985 §7 for TCP",
        default: false, fast: true;
    /// Spares TSNs sent less than one SRTT ago when T3-rtx expires.
    rtx_age_heuristic: bool, "switch", Any, "CMT paper, section IV-C",
        default: false, hidden: "repeats the CMT paper";
    /// Never cuts the window twice for losses among what was sent before the cut, not even if the
    /// SACK that ends the recovery finds the second loss. Off, that SACK cuts again: after an
    /// overshoot the window is then lower, and fewer retransmissions are lost. With sfr only;
    /// without it a recovery lasts until its exit point is acknowledged. On with the profile fast
    /// and the preset mtcp.
    cut_once_per_flight: bool, "switch", Any, "RFC 9260 §7.2.4 (6) says once; CMT paper",
        default: false, papers: true, hidden: "repeats the papers";
    /// Which paths may send the one packet of retransmissions that ignores cwnd.
    rtx_past_cwnd: RtxPastCwnd, "choice", Any, "RFC 9260 §7.2.4 (3), §6.3.3 (E3); ns-2 2.35",
        default: RtxPastCwnd::Any, papers: RtxPastCwnd::Loser, hidden: "repeats the papers";

    [Paths]
    /// Most paths of an association; further pairs of addresses are ignored.
    max_paths: u32, "paths", 1..=32, "implementation",
        default: 8;
    /// Paths that stay in use even if they share a bottleneck (the d of MP_d). More paths are
    /// faster and more robust, and less fair to other flows.
    paths_min: u32, "paths", 1..=32, "mTCP paper, section 3.4.1",
        default: 1;
    /// Most paths that carry data (k): those with the best scores. The others are spares. Off: all
    /// paths that work.
    paths_max: Option<u32>, "paths", OrOff(1..=32), "mTCP paper, section 3.3",
        default: None;
    /// A path slower than the fastest by this factor carries no more data (omega). Off: no path is
    /// too slow.
    suppress_below: Option<u32>, "factor", OrOff(2..=1_000_000), "mTCP paper, section 3.4.1",
        default: None;
    /// Interval at which the paths in use are compared with each other and with the unused ones,
    /// which are probed for it. Off: never.
    path_review_interval: Option<Duration>, "time", OrOff(ms(100)..=HOUR), "mTCP paper, section 3.4.2, without a value",
        default: None;
    /// An unused path is taken into use if its score exceeds that of the worst path in use by this
    /// factor.
    path_addition_gain: u32, "factor", 1..=1000, "mTCP paper, section 3.4.2: \"much higher\"",
        default: 2, hidden: "repeats the mTCP paper";
    /// How long data waits for cheaper paths before a path with a cost carries some, with
    /// rank_policy = overflow; at least four round trips, or ten in slow start. Shorter is faster,
    /// longer is cheaper: a burst that the cheaper paths carry within this time stays on them.
    overflow_after: Duration, "time", ms(10)..=HOUR, "docs/priorities.md",
        default: ms(500);

    [SharedBottlenecks]
    /// A path that was set aside for a shared bottleneck is used again after this time, and each
    /// time it is found again after twice as long as before, up to 16 times this. Off: only if it
    /// promises much more than the paths in use, or too few work.
    shared_retry: Option<Duration>, "time", OrOff(secs(1)..=HOUR), "implementation",
        default: None;
    /// Fast retransmits of two paths within this time count as one congestion. A longer time misses
    /// fewer shared bottlenecks, and reports more that are not shared.
    shared_interval: Duration, "time", ms(1)..=secs(10), "mTCP paper, sections 3.2.1 and 5.4",
        default: ms(200), fast: ms(100);
    /// Test by which simultaneous fast retransmits are told from chance.
    shared_verdict: SharedVerdict, "choice", Any,
        "mTCP paper, section 3.2.2: its letter is wait, its Tables 3 and 5 are measured",
        default: SharedVerdict::Measured, fast: SharedVerdict::Sequential, hidden: "repeats the mTCP paper";
    /// Fraction of the fast retransmits that must coincide for a bottleneck to count as shared
    /// (delta).
    shared_delta: f64, "ratio", 0.01..=1.0, "mTCP paper, sections 3.2.1 and 5.4",
        default: 0.5, hidden: "repeats the mTCP paper";
    /// Probability with which chance may make independent paths look as if they shared a bottleneck
    /// (zeta). A lower one needs more fast retransmits for a verdict.
    shared_zeta: f64, "ratio", 0.0001..=0.99, "mTCP paper, section 3.2.2, without a value",
        default: 0.02, fast: 0.05;
    /// Step of the search for the time by which one path shows a congestion later than another.
    shared_lag_step: Duration, "time", ms(1)..=secs(1), "mTCP paper, section 3.2.2, without a value",
        default: ms(10), hidden: "repeats the mTCP paper";

    [Redundancy]
    /// Consecutive flights without a timeout after which msacmt_rtv2 leaves redundancy for new data
    /// on all paths, or ranks the paths again.
    redundancy_review: u32, "flights", 1..=10_000, "MSACMT-RTv2 paper, section 3.1: 10",
        default: 10, hidden: "repeats the MSACMT-RTv2 paper";
    /// When msacmt_rtv2 returns to redundancy: only after a failure (keep), or also after each
    /// review of all paths (restart), which come less often while the order of the paths stays the
    /// same (dynamic).
    redundancy_cycle: RedundancyCycle, "choice", Any, "MSACMT-RTv2 paper, Algorithm 1, step 11: keep",
        default: RedundancyCycle::Keep;
    /// Quality that comes first when msacmt_rt, msacmt_rt_once and msacmt_rtv2 rank paths.
    redundancy_order: RedundancyOrder, "choice", Any, "MSACMT-RTv2 paper, section 3.1: rtt",
        default: RedundancyOrder::Rtt, hidden: "repeats the MSACMT-RTv2 paper";

    [Buffers]
    /// Receive buffer of an association, at most. Its free part is advertised as a_rwnd.
    receive_buffer: usize, "bytes", 1500..=2 * GIB, "RFC 9260 §6.2; at least 1500 by §3.3.2",
        default: MIB, fast: 8 * MIB, papers: 64 * KIB;
    /// Receive buffer in the beginning, if less. It grows with what the application reads in a
    /// round-trip time and with what paths bring out of order, as far as the endpoint has memory.
    receive_buffer_initial: usize, "bytes", 1500..=2 * GIB, "implementation",
        default: 2 * GIB, hidden: "buffers grow by themselves";
    /// Send buffer of an association, at most: user data that is queued or not yet acknowledged.
    /// Sending waits while it is full.
    send_buffer: usize, "bytes", 1500..=2 * GIB, "implementation",
        default: 4 * MIB, fast: 8 * MIB, papers: 64 * MIB;
    /// Send buffer in the beginning, if less. It grows to twice of what is in flight, as far as the
    /// endpoint has memory.
    send_buffer_initial: usize, "bytes", 1500..=2 * GIB, "implementation",
        default: 2 * GIB, hidden: "buffers grow by themselves";

    [Packets]
    /// IP MTU of a path: IP header, UDP header if any, and SCTP packet. With pmtu_discovery, the
    /// size that is tried first.
    mtu: usize, "bytes", 512..=65_535, "RFC 9260 §7.3",
        default: 1500;
    /// Finds the largest packet of each path by padded HEARTBEATs. A path begins with packets of
    /// 1280 bytes and tries 1500 at once; a path that swallows large packets gets smaller ones.
    /// Off, all packets stay at mtu, and IP may fragment them.
    pmtu_discovery: bool, "switch", Any, "RFC 8899",
        default: false, fast: true;
    /// Largest packet that pmtu_discovery tries, if the local interface allows it.
    pmtu_max: usize, "bytes", 576..=65_535, "RFC 8899 §5.1.2 (MAX_PLPMTU); 9000: jumbo frames",
        default: 9000;
    /// Most user data in one DATA chunk. Off: as much as fits the MTU.
    pmdcs_limit: Option<usize>, "bytes", OrOff(64..=65_487), "RFC 9260 §6.9; papers: 1468-byte chunks",
        default: None, papers: Some(1452), hidden: "repeats the papers";
    /// Sends packets in UDP datagrams, whose header counts in the MTU. Always on over sockets.
    udp_encapsulation: bool, "switch", Any, "RFC 6951",
        default: true, papers: false;
    /// Computes and checks the CRC32c of packets. Off only on simulated networks, where nothing
    /// damages a packet unseen; sockets refuse it.
    checksum: bool, "switch", Any, "RFC 9260 §6.8",
        default: true, hidden: "serves the simulator";
    /// Tells peers that packets may come without their CRC32c, and leaves it out to peers that say
    /// so, because DTLS below SCTP detects damage (RFC 8261). For programs that carry the packets
    /// of the engine in DTLS; sockets refuse it, since UDP detects less.
    zero_checksum: bool, "switch", Any, "RFC 9653 §5, §6",
        default: false, hidden: "serves programs with DTLS below SCTP";
    /// Lets routers mark packets instead of dropping them, if the peer wants that, too: a mark cuts
    /// the window as a loss does, and nothing is sent again. SCTP cannot tell a path that erases
    /// marks from one without congestion.
    ecn: bool, "switch", Any, "RFC 4960, appendix A; docs/ecn.md",
        default: false, hidden: "needs routers that mark";
    /// Interleaves messages of different streams, if the peer wants that, too: user data travels in
    /// I-DATA chunks, which are 4 bytes longer than DATA. A long message on one stream then does
    /// not hold up those of others, if stream_scheduler is another one than fcfs. Messages that are
    /// too long to be delivered whole are delivered in parts, and these alternate, too.
    message_interleaving: bool, "switch", Any, "RFC 8260 §2; docs/rfc8260.md",
        default: false, hidden: "serves programs with several streams";
    /// Offers the peer to give up messages: one whose lifetime is over, or that was retransmitted
    /// often enough, is not sent again, and the peer skips it. Messages without such limits stay
    /// reliable.
    partial_reliability: bool, "switch", Any, "RFC 3758, RFC 7496; docs/rfc3758.md",
        default: true, papers: false, hidden: "costs nothing while no message has a limit";
    /// Lets programs reset and add streams while an association is open, and lets its peer ask for
    /// that, if the peer has the extension, too. The peer may add streams up to inbound_streams.
    stream_reconfiguration: bool, "switch", Any, "RFC 6525; docs/rfc6525.md",
        default: false, fast: true, hidden: "serves programs with several streams";
    /// Tells the peer of addresses that this host gets and loses while an association is open, and
    /// lets the peer do the same, if it has the extension, too. Both ends then authenticate the
    /// chunks for it, whatever authentication is, unless all packets are protected.
    address_reconfiguration: bool, "switch", Any, "RFC 5061; docs/rfc5061.md",
        default: false, hidden: "serves programs that talk to other stacks";

    [Keys]
    /// Offers the peer to authenticate chunks by keys of the handshake, and of the application if
    /// it has any. Each end says which chunks it takes only so. Associations whose packets are
    /// protected do without.
    authentication: bool, "switch", Any, "RFC 4895; docs/rfc4895.md",
        default: false, hidden: "serves programs that talk to other stacks";
    /// The chunks that count only if they are authenticated, by name or number: data, sack,
    /// cookie_echo and so on. Only with authentication.
    authenticated_chunks: ChunkTypes, "chunk types", Any, "RFC 4895 §3.2, RFC 5061 §4.1",
        default: ChunkTypes::of(&[chunk_type::ASCONF, chunk_type::ASCONF_ACK]),
        hidden: "serves programs that talk to other stacks";
    /// Ends an association whose peer has not shown within this time that it has the right keys.
    key_timeout: Duration, "time", ms(100)..=secs(600), "implementation",
        default: secs(15), hidden: "is best left alone";
    /// Associations that peers have opened and whose key management is not complete, at most: half
    /// as many of one network (/24, or /64 of IPv6), a quarter of one address. A newer one takes
    /// the place of the oldest of its own address or network, or of the largest network, so that
    /// peers who never complete it keep nobody out.
    key_managements_max: u32, "associations", 1..=65_536, "implementation",
        default: 256, hidden: "is best left alone";
    /// Packets that one key protects before it is replaced.
    rekey_packets: u32, "packets", 10..=16_777_216, "RFC 9147 §4.5.3: 2^24.5 packets with AES-GCM",
        default: 1 << 20;
    /// Age at which a key is replaced.
    rekey_interval: Option<Duration>, "time", OrOff(secs(1)..=secs(2_592_000)),
        "draft-porfiri-tsvwg-sctp-dtls-handshake, Rekeying Policy: an hour", default: Some(HOUR);
    /// Time for which replaced keys still open packets of slow paths.
    old_keys_kept: Duration, "time", ms(100)..=secs(600),
        "draft-porfiri-tsvwg-sctp-dtls-handshake, Drain Timer: 120 s", default: secs(120), hidden: "is best left alone";
}
