//! The parameters: one entry each, from which the [`Config`] field and its row of [`PARAMS`] are
//! made.

use std::borrow::Cow;
use std::time::Duration;

use super::kinds::{
    Cuc, InitialCwnd, InitialSsthresh, MaxBurstRule, PolicyName, RedundancyCycle, RtxPastCwnd,
    SharedVerdict, Units,
};
use super::setting::{Allowed, Any, OneOf, OrOff, Setting};
use super::{ConfigError, Profile};
use crate::policy;
use crate::policy::recovery::RuleSet;

/// Names of the policies that choose the path of new data.
pub const SCHEDULERS: &[&str] = policy::sched::NAMES;
/// Names of the policies that choose the path of a retransmission.
pub const RTX_POLICIES: &[&str] = policy::rtx::NAMES;
/// Names of the policies that detect the failure of a path.
pub const FAILURE_POLICIES: &[&str] = policy::fail::NAMES;
/// Names of the congestion controllers.
pub const CONGESTION_CONTROLS: &[&str] = policy::cc::NAMES;
/// Names of the policies that find and recover losses.
pub const RECOVERIES: &[&str] = policy::recovery::NAMES;
/// Names of the policies that choose the path of a SACK.
pub const ACK_PATHS: &[&str] = policy::ack_path::NAMES;
/// Names of the policies that find paths which share a bottleneck.
pub const SHARED_CONGESTION: &[&str] = policy::path_set::shared::NAMES;
/// Names of the policies that send data on a second path, too.
pub const REDUNDANCY_POLICIES: &[&str] = policy::redundant::NAMES;

/// One parameter: what it is called, what it means and how it is read and written.
pub struct Param {
    /// Name, the same in every API.
    pub name: &'static str,
    /// What it counts or selects: "time", "bytes", "packets", "switch", "policy" and so on.
    pub unit: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    allowed: fn() -> String,
    get: fn(&Config) -> String,
    set: fn(&mut Config, &str) -> Result<(), ConfigError>,
    check: fn(&Config) -> Result<(), ConfigError>,
    /// Whether TOML writes it without quotes.
    pub(super) bare: bool,
}

impl Param {
    /// The parameter of that name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        PARAMS.iter().find(|param| param.name == name)
    }

    /// The values it may take, in words.
    pub fn allowed(&self) -> String {
        (self.allowed)()
    }

    /// Its value in a configuration, as text that `set` takes.
    pub fn get(&self, config: &Config) -> String {
        (self.get)(config)
    }

    /// Sets it in a configuration; an error leaves the configuration as it was.
    pub fn set(&self, config: &mut Config, text: &str) -> Result<(), ConfigError> {
        (self.set)(config, text)
    }

    /// Checks its value in a configuration.
    pub(super) fn check(&self, config: &Config) -> Result<(), ConfigError> {
        (self.check)(config)
    }
}

/// Reads a value into its field; the field is unchanged when the value is not allowed.
fn set<T: Setting>(
    field: &mut T,
    name: &str,
    text: &str,
    allowed: &impl Allowed<T>,
) -> Result<(), ConfigError> {
    let text = text.trim();
    let value = T::parse(text).filter(|value| allowed.contains(value));
    *field = value.ok_or_else(|| not_allowed(name, text, allowed))?;
    Ok(())
}

fn check<T: Setting>(field: &T, name: &str, allowed: &impl Allowed<T>) -> Result<(), ConfigError> {
    match allowed.contains(field) {
        true => Ok(()),
        false => Err(not_allowed(name, &field.print(), allowed)),
    }
}

fn not_allowed<T: Setting>(name: &str, value: &str, allowed: &impl Allowed<T>) -> ConfigError {
    let (range, forms) = (allowed.describe(), T::forms());
    let more = match range == forms || T::parse(value).is_some() {
        true => String::new(),
        false => format!("; write {forms}"),
    };
    ConfigError::new(name, value, format!("must be {range}{more}"))
}

/// An entry reads: doc, `name: type, unit, allowed values, source, default: value of the rfc9260
/// profile`, then `fast:`, `papers:` and `ns2:` where those
/// profiles differ, and `r35:` for the older release of ns-2's module. The ns2 profile is the 2006
/// profile but for its own values, and `ns2-3.5` is the ns2 profile but for its own.
macro_rules! params {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident: $type:ty, $unit:literal, $allowed:expr, $source:literal,
        default: $default:expr $(, fast: $fast:expr)? $(, papers: $papers:expr)? $(, ns2: $ns2:expr)?
            $(, r35: $r35:expr)?;
    )+) => {
        /// The configuration of an endpoint: a plain value, made from a [`Profile`], a
        /// [`Preset`](super::Preset) and overrides.
        ///
        /// The engine expects one that [`validate`](Config::validate) accepts.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Config {
            /// The profile it started from.
            pub profile: Profile,
            /// Name of the preset it started from.
            pub preset: &'static str,
            $(
                $(#[doc = $doc])+
                #[doc = concat!("\n\nUnit: ", $unit, ". Allowed: `", stringify!($allowed), "`.")]
                #[doc = concat!(" Source: ", $source, ".")]
                pub $name: $type,
            )+
        }

        impl Config {
            /// The constants of a profile, with the policies of plain SCTP.
            pub(super) fn from_profile(profile: Profile) -> Self {
                Self {
                    profile,
                    preset: "sctp",
                    $($name: {
                        let value = $default;
                        $(let value = if profile == Profile::Fast { $fast } else { value };)?
                        $(let value = if profile.is_of_the_papers() { $papers } else { value };)?
                        $(let value = if profile.is_of_ns2() { $ns2 } else { value };)?
                        $(let value = if profile == Profile::Ns2Release35 { $r35 } else { value };)?
                        value
                    },)+
                }
            }
        }

        /// Every parameter, in the order they are printed.
        pub static PARAMS: &[Param] = &[$(Param {
            name: stringify!($name),
            unit: $unit,
            doc: concat!($($doc),+).trim_ascii(),
            source: $source,
            allowed: || Allowed::<$type>::describe(&$allowed),
            get: |config| config.$name.print(),
            set: |config, text| set(&mut config.$name, stringify!($name), text, &$allowed),
            check: |config| check(&config.$name, stringify!($name), &$allowed),
            bare: <$type as Setting>::BARE,
        }),+];
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

params! {
    // ---- Sizes and limits ----

    /// IP MTU of a path: IP header, UDP header if any, and SCTP packet. With pmtu_discovery the
    /// size that is tried first; what a path really carries is found out.
    mtu: usize, "bytes", 512..=65_535, "RFC 9260 §7.3",
        default: 1500;
    /// Whether each path's largest packet is found by padded HEARTBEATs. A path begins with packets
    /// of 1280 bytes, 1500 are tried at once, and a path that swallows large packets gets smaller
    /// ones. Off, all packets stay at mtu, and IP may cut them into fragments.
    pmtu_discovery: bool, "switch", Any, "RFC 8899",
        default: false, fast: true;
    /// Largest packet that pmtu_discovery tries, where this host's interface takes it.
    pmtu_max: usize, "bytes", 576..=65_535, "RFC 8899 §5.1.2 (MAX_PLPMTU); 9000: jumbo frames",
        default: 9000;
    /// Upper limit on the user data of one DATA chunk; off: as much as fits the MTU.
    pmdcs_limit: Option<usize>, "bytes", OrOff(64..=65_487), "RFC 9260 §6.9; papers: 1468-byte chunks",
        default: None, papers: Some(1452);
    /// Receive buffer of an association; what is free of it is advertised as a_rwnd.
    receive_buffer: usize, "bytes", 1500..=2 * GIB, "RFC 9260 §6.2; at least 1500 by §3.3.2",
        default: MIB, fast: 8 * MIB, papers: 64 * KIB;
    /// Send buffer of an association: user data queued or not yet acknowledged. Sending waits when
    /// it is full.
    send_buffer: usize, "bytes", 1500..=2 * GIB, "implementation",
        default: 4 * MIB, fast: 8 * MIB, papers: 64 * MIB;
    /// Outbound streams requested; the peer may allow fewer.
    outbound_streams: u16, "streams", 1..=65_535, "RFC 9260 §5.1.1",
        default: 16;
    /// Inbound streams allowed to the peer at most.
    inbound_streams: u16, "streams", 1..=65_535, "RFC 9260 §5.1.1",
        default: 2048;
    /// Paths of an association at most; further address pairs are ignored.
    max_paths: u32, "paths", 1..=32, "implementation",
        default: 8;

    // ---- Retransmission timeout ----

    /// RTO of a path before its first RTT measurement (RTO.Initial).
    rto_initial: Duration, "time", ms(1)..=secs(600), "RFC 9260 §6.3.1, §16",
        default: secs(1), papers: secs(3);
    /// Lower bound of the RTO (RTO.Min). Lower fails over sooner, but an RTO below the RTT and the
    /// peer's SACK delay retransmits what was not lost and cuts cwnd to one packet for nothing.
    rto_min: Duration, "time", ms(1)..=secs(600), "RFC 9260 §6.3.1, §16",
        default: secs(1), fast: ms(200);
    /// Upper bound of the RTO (RTO.Max). Lower notices sooner that a failed path is back, and
    /// probes it more often.
    rto_max: Duration, "time", ms(1)..=secs(600), "RFC 9260 §6.3.1, §16",
        default: secs(60), fast: secs(10);
    /// Weight of a new measurement in SRTT (RTO.Alpha).
    rto_alpha: f64, "ratio", 0.001..=1.0, "RFC 9260 §6.3.1, §16",
        default: 0.125;
    /// Weight of a new measurement in RTTVAR (RTO.Beta).
    rto_beta: f64, "ratio", 0.001..=1.0, "RFC 9260 §6.3.1, §16",
        default: 0.25;

    // ---- Association and failure detection ----

    /// How long a state cookie stays valid (Valid.Cookie.Life).
    valid_cookie_life: Duration, "time", secs(1)..=HOUR, "RFC 9260 §5.1.3, §16",
        default: secs(60);
    /// INIT or COOKIE ECHO retransmissions before the association is given up
    /// (Max.Init.Retransmits).
    max_init_retransmits: u32, "retransmissions", 0..=255, "RFC 9260 §5.1, §16",
        default: 8, fast: 64;
    /// First timeout of INIT, and anew of COOKIE ECHO: each has a back-off of its own, from here up
    /// to handshake_rto_max; off: they share the RTO of their path and its back-off. Too low costs
    /// a repeated packet where the RTT is longer.
    handshake_rto: Option<Duration>, "time", OrOff(ms(10)..=secs(600)), "RFC 9260 §5.1 takes RTO.Initial; fast: implementation",
        default: None, fast: Some(ms(250));
    /// Upper bound of the time between two INITs or two COOKIE ECHOs. With handshake_rto only.
    handshake_rto_max: Duration, "time", ms(10)..=secs(600), "implementation",
        default: secs(60), fast: secs(1);
    /// Whether INIT is sent on all paths at once rather than on one after the other. The path of
    /// the first answer becomes the primary.
    handshake_on_all_paths: bool, "switch", Any, "implementation; RFC 9260 §5.1 takes one after the other",
        default: false, fast: true;
    /// Whether what the application has queued by then leaves with COOKIE ECHO, as far as whole
    /// chunks fit its packet: it is there a round trip sooner, and repeated with it.
    data_with_cookie: bool, "switch", Any, "RFC 9260 §5.1 (C) allows it",
        default: false, fast: true;
    /// Consecutive timeouts of a path beyond which it is inactive (Path.Max.Retrans, PMR). Lower
    /// fails over sooner and more often takes a burst of loss for a failure.
    path_max_retrans: u32, "timeouts", 0..=255, "RFC 9260 §8.2, §16",
        default: 5;
    /// Consecutive timeouts of the association, over all paths, beyond which the peer counts as
    /// unreachable (Association.Max.Retrans); off: association_timeout alone decides.
    association_max_retrans: Option<u32>, "timeouts", OrOff(0..=10_000), "RFC 9260 §8.1, §16",
        default: Some(10), fast: None;
    /// Answers a second, of all kinds together, to packets of no association: INIT ACK, ABORT,
    /// SHUTDOWN COMPLETE, stale cookies; off: no limit. In a flood INITs that come again are
    /// answered first.
    stateless_answers: Option<u32>, "answers", OrOff(100..=1_000_000), "implementation",
        default: None, fast: Some(1000);
    /// How long an association survives without any usable path; off: association_max_retrans alone
    /// decides.
    association_timeout: Option<Duration>, "time", OrOff(secs(1)..=DAY), "implementation",
        default: None, fast: Some(secs(60));
    /// Whether idle active paths are probed with HEARTBEATs. The probes that verify a path or bring
    /// one back are sent in any case.
    heartbeats: bool, "switch", Any, "RFC 9260 §8.3",
        default: true;
    /// Interval of HEARTBEATs on an idle path, to which its RTO and the jitter are added
    /// (HB.interval).
    hb_interval: Duration, "time", ms(10)..=DAY, "RFC 9260 §8.3, §16",
        default: secs(30), fast: secs(5);
    /// Packets with a HEARTBEAT sent at once when an association is established, at most
    /// (HB.Max.Burst); max_paths or more verifies all paths at once.
    hb_max_burst: u32, "packets", 1..=32, "RFC 9260 §5.4, §16",
        default: 1, fast: 32, ns2: 32;
    /// Interval of the first probes of a potentially failed or inactive path, doubling from there,
    /// where the RTO is longer; off: one probe per RTO.
    hb_first_probe: Option<Duration>, "time", OrOff(ms(1)..=secs(60)), "implementation",
        default: None, fast: Some(ms(250));
    /// Upper bound of the time between probes of a potentially failed or inactive path: how late a path that is
    /// back may be noticed; off: no bound.
    hb_probe_max: Option<Duration>, "time", OrOff(ms(10)..=HOUR), "implementation",
        default: None, fast: Some(ms(500));
    /// Whether paths that failed, or time out while none works, are probed (hb_first_probe,
    /// hb_probe_max) although they carry data; the answer has what is outstanding sent again at
    /// once. Lost probes count as no timeouts then, T3-rtx counts. Off, T3-rtx alone finds out.
    probe_with_data: bool, "switch", Any, "implementation; RFC 9260 §8.3 probes idle paths",
        default: false, fast: true;
    /// Whether a path may work one way only: a HEARTBEAT is also answered on other paths if its own
    /// has failed or the peer repeats it, and SACKs leave a path that has failed for one that
    /// works.
    one_way_paths: bool, "switch", Any, "implementation; RFC 9260 §6.4 answers where the question came from",
        default: false, fast: true;
    /// Policy that says when a path is potentially failed or inactive.
    failure: PolicyName, "policy", OneOf(FAILURE_POLICIES), "pmr: RFC 9260 §8.2; pf: RFC 7829, CMT-PF paper; mtcp: mTCP paper, section 3.5",
        default: Cow::Borrowed("pmr");
    /// Consecutive timeouts of a path beyond which it is potentially failed (PFMR);
    /// path_max_retrans or more: never.
    pf_max_retrans: u32, "timeouts", 0..=255, "RFC 7829 §3.2",
        default: 0;
    /// RTO without the ack of anything that was sent on a path after which it is potentially failed (chi). With
    /// failure = mtcp; and with ack_path = primary how long the primary may bring no DATA while others do.
    silence_rtos: u32, "RTO", 1..=100, "mTCP paper, section 3.5.1",
        default: 2;
    /// cwnd of a potentially failed path when a HEARTBEAT ACK makes it active: 1 is CMT-PF1, 2 is
    /// CMT-PF2.
    pf_recovery_cwnd: u32, "MTU", 1..=10, "CMT-PF paper, section III-A",
        default: 1;
    /// Consecutive timeouts of the primary path beyond which another path becomes primary for good
    /// (PSMR), at least pf_max_retrans; off: the primary path carries data again as soon as it
    /// answers.
    primary_switchover_max_retrans: Option<u32>, "timeouts", OrOff(0..=255), "RFC 7829 §5",
        default: None;
    /// Whether new data may use a path that is not yet verified.
    data_before_verification: bool, "switch", Any, "RFC 9260 §5.4 forbids it; RFC 2960 allowed it",
        default: false, papers: true;
    /// Whether a path that answers a heartbeat while no other works, a new one too, carries at once
    /// what is outstanding, rather than after its T3-rtx; and whether the packets of a peer that
    /// returns are answered by a heartbeat whatever the back-off of the probes. A path that the
    /// application adds is asked after hb_first_probe again, doubling, if that is sooner than the
    /// RTO.
    rtx_when_path_answers: bool, "switch", Any, "implementation",
        default: false, fast: true;
    /// Whether the next attempt of an unanswered handshake takes the next path, and the path on which it is
    /// answered becomes the primary; off, the first path is the primary.
    handshake_moves_primary: bool, "switch", Any, "implementation; the papers' primary is given",
        default: true, papers: false;
    /// Whether the side that associates probes every path, that of the handshake too, and sends no new DATA
    /// while one of them has not answered. With data_before_verification paths carry SACKs at once.
    verify_all_paths_first: bool, "switch", Any, "ns-2's SCTP module from release 3.7 on",
        default: false, ns2: true, r35: false;

    // ---- Acknowledgement ----

    /// How long a SACK may wait for more data (SACK.Delay).
    sack_delay: Duration, "time", Duration::ZERO..=ms(500), "RFC 9260 §6.2, §16; never above 500 ms",
        default: ms(200), fast: ms(25);
    /// Whether the packet that fills the last gap is acknowledged at once, like those that arrive while TSNs
    /// are missing; off, its SACK is delayed like any other.
    sack_filled_gap_at_once: bool, "switch", Any, "implementation; RFC 2960 §6.7 speaks of gaps only",
        default: true, papers: false;
    /// Whether the SACK for the first DATA of an association is sent at once: cwnd is smallest then, and
    /// the RTT not yet measured.
    sack_first_at_once: bool, "switch", Any, "implementation; RFC 2960 §6.2 has no exception",
        default: true, papers: false;
    /// Packets with data after which a SACK is sent.
    sack_every: u32, "packets", 1..=64, "RFC 9260 §6.2",
        default: 2;
    /// Upper limit to which sack_every grows at high packet rates; equal to it, it does not grow.
    sack_every_max: u32, "packets", 1..=64, "RFC 9260 §6.2 says 2",
        default: 2, fast: 16;
    /// Whether reordering does not hurry SACKs, as with dac, while packets of several paths come so fast that sack_every
    /// has grown: with a SACK each, which lists what every other path still has under way, one path can be too slow for
    /// the SACKs of all. On with the profile fast and ack_path = primary.
    sack_gaps_wait: bool, "switch", Any, "implementation; RFC 9260 §6.7 says each packet while TSNs are missing",
        default: false;
    /// Whether a SACK is sent at once when a receive buffer that was nearly full has room again.
    window_updates: bool, "switch", Any, "RFC 9260 §6.2; ns-2 2.35 does not",
        default: true, papers: false;
    /// Non-renegable SACKs (NR-SACK): they also tell which TSNs above the cumulative TSN ack the receiver keeps
    /// whatever happens, so that the sender need not hold them any longer. Used if the peer has it as well.
    nr_sack: bool, "switch", Any, "draft-tuexen-tsvwg-sctp-multipath; RFC 9260 has none",
        default: false;
    /// Policy that chooses the path of a SACK.
    ack_path: PolicyName, "policy", OneOf(ACK_PATHS),
        "last_received: RFC 9260 §6.4; primary: mTCP paper, section 3.1.5",
        default: Cow::Borrowed("last_received");
    /// Whether an end that is connected to takes ack_path = primary for a peer that announces SACK PATH chunks, and with
    /// it sack_gaps_wait instead of dac, so that only the end which sends has to be configured.
    ack_path_as_asked: bool, "switch", Any, "implementation; docs/mtcp.md",
        default: false, fast: true;
    /// Missing reports after which a TSN is marked for fast retransmit.
    missing_reports: u32, "reports", 1..=32, "RFC 9260 §7.2.4; RFC 2960: 4",
        default: 3, papers: 4;

    /// Whether a TSN is skipped now and then and sent a round trip late, to find out a peer that
    /// acknowledges what it has not received, which has us send faster than its link carries. The
    /// first after some 256 KiB without a loss, later more and more seldom. Not with redundancy.
    ack_tests: bool, "switch", Any, "Savage et al. 1999, section 4; RFC 9260 has none",
        default: false, fast: true;

    // ---- Congestion control ----

    /// Congestion controller of a path.
    congestion_control: PolicyName, "policy", OneOf(CONGESTION_CONTROLS),
        "rfc9260: RFC 9260 §7.2; rfc2960: RFC 2960 §7.2",
        default: Cow::Borrowed("rfc9260"), papers: Cow::Borrowed("rfc2960");
    /// cwnd of a path before its first data.
    initial_cwnd: InitialCwnd, "window", Any, "RFC 9260 §7.2.1; fast: RFC 6928; RFC 2960: 2 MTU; ns-2 2.35: RFC 4960",
        default: InitialCwnd::Rfc9260,
        fast: InitialCwnd::Fixed(Units::Pmdcs(10)),
        papers: InitialCwnd::Fixed(Units::Mtu(2)),
        ns2: InitialCwnd::Fixed(Units::Bytes(4380)),
        r35: InitialCwnd::Fixed(Units::Pmdcs(2));
    /// ssthresh of a path before its first loss.
    initial_ssthresh: InitialSsthresh, "window", Any, "RFC 9260 §7.2.1",
        default: InitialSsthresh::Unlimited, papers: InitialSsthresh::PeerRwnd,
        ns2: InitialSsthresh::Bytes(65_536);
    /// Lower bound of ssthresh after a loss.
    ssthresh_floor: Units, "window", Any, "RFC 9260 §7.2.3, §7.2.1; RFC 2960: 2 MTU",
        default: Units::Pmdcs(4), papers: Units::Mtu(2), ns2: Units::Pmdcs(2);
    /// Lower bound of cwnd as it decays when idle.
    idle_cwnd_floor: Units, "window", Any, "RFC 9260 §7.2.1; RFC 2960: 2 MTU; ns-2 2.35: 4",
        default: Units::Pmdcs(4), papers: Units::Mtu(2), ns2: Units::Pmdcs(4), r35: Units::Pmdcs(2);
    /// Upper limit on the growth of cwnd per SACK in slow start (L times PMDCS). Larger keeps
    /// growth at one cwnd per RTT when SACKs are few.
    slow_start_increase_max: Units, "window", Any, "RFC 9260 §7.2.1; RFC 3465; RFC 2960: 1 MTU",
        default: Units::Pmdcs(1), fast: Units::Pmdcs(16), papers: Units::Mtu(1), ns2: Units::Pmdcs(1);
    /// Packets a path may send at once (Max.Burst); 0: no limit.
    max_burst: u32, "packets", 0..=10_000, "RFC 9260 §6.1 (D), §16",
        default: 4, fast: 0;
    /// How Max.Burst is applied.
    max_burst_rule: MaxBurstRule, "choice", Any, "RFC 9260 §6.1 (D); CMT-PF paper, section II-D; ns-2 2.35",
        default: MaxBurstRule::Rfc9260, papers: MaxBurstRule::PerSack, ns2: MaxBurstRule::AfterFastRetransmit;
    /// Whether packets of a path are spread over its RTT rather than sent in bursts.
    pacing: bool, "switch", Any, "implementation",
        default: false, fast: true;
    /// Whether cwnd halves for every RTO without data, down to ssthresh_floor.
    idle_cwnd_decay: bool, "switch", Any, "RFC 9260 §7.2.1",
        default: true;
    /// Whether a chunk that missing reports made lost counts as outstanding on the path that lost it until it
    /// is acknowledged, as mTCP's pipe does: the ack of a retransmission then makes room on both paths, and
    /// a timeout empties the count of its path. Off, a lost chunk leaves the flight at once.
    pipe_accounting: bool, "switch", Any, "mTCP paper, section 3.1.2; not RFC 9260 §7.2.4",
        default: false;
    /// Whether all paths share one congestion window, which every loss cuts, rather than have one each.
    combined_window: bool, "switch", Any, "mTCP paper, section 5.2 (\"combined\")",
        default: false;
    /// Whether the last outstanding TSN is sent again before T3-rtx expires, to draw a SACK.
    tail_loss_probe: bool, "switch", Any, "as RFC 8985 §7 for TCP",
        default: false, fast: true;

    // ---- Several paths ----

    /// Policy that chooses the path of new data.
    scheduler: PolicyName, "policy", OneOf(SCHEDULERS),
        "primary: RFC 9260 §6.4; fill_first: CMT paper, section III; fill_in_turn: CMT-PF paper, Fig. 2; \
         pipe_cwnd: mTCP paper, section 3.1.4",
        default: Cow::Borrowed("primary");
    /// Policy that chooses the path of a retransmission.
    rtx_policy: PolicyName, "policy", OneOf(RTX_POLICIES),
        "CMT paper, section IV-B; all_rtx_alt, all_rtx_same, fr_same_rto_alt: retransmission policies paper, \
         sections 2 and 3; pipe_cwnd: mTCP paper, section 3.1.4",
        default: Cow::Borrowed("same");
    /// Policy that finds paths which share a bottleneck.
    shared_congestion: PolicyName, "policy", OneOf(SHARED_CONGESTION),
        "mtcp: mTCP paper, section 3.2; rfc8382: RFC 8382, section 3; trial: docs/mtcp.md",
        default: Cow::Borrowed("off");
    /// How near in time the fast retransmits of two paths are that count as one congestion. Longer misses fewer
    /// bottlenecks that are shared, and finds more that are not.
    shared_interval: Duration, "time", ms(1)..=secs(10), "mTCP paper, sections 3.2.1 and 5.4",
        default: ms(200), fast: ms(100);
    /// How it is judged whether so many fast retransmits came together by chance.
    shared_verdict: SharedVerdict, "choice", Any,
        "mTCP paper, section 3.2.2: its letter is wait, its Tables 3 and 5 are measured",
        default: SharedVerdict::Measured, fast: SharedVerdict::Sequential;
    /// Fraction of the fast retransmits that must come together for a bottleneck to count as shared (delta).
    shared_delta: f64, "ratio", 0.01..=1.0, "mTCP paper, sections 3.2.1 and 5.4",
        default: 0.5;
    /// Probability with which chance may make independent paths look as if they shared a bottleneck (zeta).
    /// Lower takes more fast retransmits for a verdict.
    shared_zeta: f64, "ratio", 0.0001..=0.99, "mTCP paper, section 3.2.2, without a value",
        default: 0.02, fast: 0.05;
    /// Step of the search for the time by which one path shows a congestion later than another.
    shared_lag_step: Duration, "time", ms(1)..=secs(1), "mTCP paper, section 3.2.2, without a value",
        default: ms(10);
    /// Paths that stay in use even if they share a bottleneck (the d of MP_d). More is faster and more robust, and
    /// less fair to other flows.
    paths_min: u32, "paths", 1..=32, "mTCP paper, section 3.4.1",
        default: 1;
    /// Paths that carry data at most (k): those with the best scores, and the others are spares; off: all that work.
    paths_max: Option<u32>, "paths", OrOff(1..=32), "mTCP paper, section 3.3",
        default: None;
    /// A path that is slower than the fastest by this factor carries no more data (omega); off: however slow.
    suppress_below: Option<u32>, "factor", OrOff(2..=1_000_000), "mTCP paper, section 3.4.1",
        default: None;
    /// How often the paths in use are compared with each other and with the unused ones, which are probed then;
    /// off: never.
    path_review_interval: Option<Duration>, "time", OrOff(ms(100)..=HOUR), "mTCP paper, section 3.4.2, without a value",
        default: None;
    /// By which factor the score of an unused path must exceed that of the worst path in use for it to be used,
    /// too.
    path_addition_gain: u32, "factor", 1..=1000, "mTCP paper, section 3.4.2: \"much higher\"",
        default: 2;
    /// Policy that lets one path duplicate what another sends. Needs sfr.
    redundancy: PolicyName, "policy", OneOf(REDUNDANCY_POLICIES), "MSACMT-RTv2 paper, Algorithm 1 and section 3",
        default: Cow::Borrowed("off");
    /// Flights in a row without a timeout after which msacmt_rtv2 goes from redundancy to new data on all paths,
    /// or ranks the paths anew.
    redundancy_review: u32, "flights", 1..=10_000, "MSACMT-RTv2 paper, section 3.1: 10",
        default: 10;
    /// When msacmt_rtv2 comes back to redundancy from new data on all paths: after a failure only
    /// (keep), or after each review of all paths as well (restart).
    redundancy_cycle: RedundancyCycle, "choice", Any, "MSACMT-RTv2 paper, Algorithm 1, step 11: keep",
        default: RedundancyCycle::Keep;
    /// How losses are found and recovered. standard: RFC 9260, with sfr the CMT paper. ns2: the
    /// agents of ns-2, with sfr that for CMT, without it those for one path.
    recovery: PolicyName, "policy", OneOf(RECOVERIES), "standard: RFC 9260 §7.2, CMT paper, section III-A; ns2: ns-2 2.35",
        default: Cow::Borrowed("standard"), ns2: Cow::Borrowed("ns2");
    /// Rules of ns-2's agents that recovery = ns2 leaves out, to measure the effect of each.
    recovery_without: RuleSet, "rules", Any, "docs of policy::recovery::Rule",
        default: RuleSet::NONE;
    /// Split fast retransmit: missing reports are counted per path.
    sfr: bool, "switch", Any, "CMT paper, section III-A",
        default: false;
    /// Multiple fast retransmit (MFR): missing reports may make a chunk lost again after its fast retransmit,
    /// if what was sent later arrives (with sfr: on the same path); off: only T3-rtx finds a lost
    /// retransmission. Not with all_rtx_alt, whose retransmissions another path may delay.
    mfr: bool, "switch", Any, "retransmission policies paper, section 4.3; RFC 9260 §7.2.4 has none",
        default: false, fast: true;
    /// Heartbeat after RTO (HAR): after each expiry of T3-rtx a HEARTBEAT is sent at once to the path it
    /// expired on, if there is another, so that its backed-off RTO is measured anew. Not with
    /// retransmissions on the same path.
    har: bool, "switch", Any, "retransmission policies paper, section 4.1",
        default: false;
    /// Timestamps (TS): packets with DATA or SACK carry a chunk of 12 bytes, by which the RTT of
    /// retransmissions, too, is measured; DATA chunks are 12 bytes shorter. Used if the peer has it as well.
    timestamp: bool, "switch", Any, "retransmission policies paper, section 4.2; RFC 9260 has none",
        default: false;
    /// cwnd update for CMT: growth follows a pseudo-cumack per path.
    cuc: Cuc, "choice", Any, "CMT paper, section III-B",
        default: Cuc::Off;
    /// Delayed ack for CMT: reordering does not hurry SACKs, which say how many packets they ack.
    /// Needs sfr.
    dac: bool, "switch", Any, "CMT paper, section III-C",
        default: false;
    /// Which paths may send the one packet of retransmissions that ignores cwnd.
    rtx_past_cwnd: RtxPastCwnd, "choice", Any, "RFC 9260 §7.2.4 (3), §6.3.3 (E3); ns-2 2.35",
        default: RtxPastCwnd::Any, papers: RtxPastCwnd::Loser;
    /// Whether a loss of what was sent before the window was cut never cuts it again, even if it is found by
    /// the very SACK that ends the recovery, as the last losses of a flight are. Off, that one cuts again: after
    /// an overshoot the window is then lower, and fewer retransmissions are lost. With sfr only: without it a
    /// recovery lasts until its exit point is acknowledged. On with the profile fast and ack_path = primary.
    cut_once_per_flight: bool, "switch", Any, "RFC 9260 §7.2.4 (6) says once; CMT paper",
        default: false, papers: true;
    /// Whether a T3-rtx expiry spares TSNs sent less than one SRTT ago.
    rtx_age_heuristic: bool, "switch", Any, "CMT paper, section IV-C",
        default: false;

    // ---- Packets ----

    /// Whether packets travel in UDP datagrams, whose header then counts in the MTU.
    udp_encapsulation: bool, "switch", Any, "RFC 6951",
        default: true, papers: false;
    /// Whether INIT and INIT ACK list our addresses, if we have several. Off, the peer uses only those it
    /// is given, or sees packets from: for a host behind relays or a NAT.
    advertise_addresses: bool, "switch", Any, "RFC 9260 §5.1.2",
        default: true;
    /// Whether the CRC32c of packets is computed and checked. Off is for virtual networks only,
    /// where nothing can corrupt a packet; sockets refuse it, and the simulator has it off in any case.
    checksum: bool, "switch", Any, "RFC 9260 §6.8",
        default: true;
}
