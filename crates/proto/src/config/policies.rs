//! The policies of a configuration: one entry each, from which the [`Config`] field and its row of
//! [`POLICIES`] are made.

use std::ops::{Deref, DerefMut};

use crate::params::{Any, Params, Profile, Row, Setting, list, of_profile, row};
use crate::policy::ack_path::AckPathPolicy;
use crate::policy::cc::CongestionControl;
use crate::policy::fail::FailurePolicy;
use crate::policy::path_set::shared::SharedPolicy;
use crate::policy::rank::RankPolicy;
use crate::policy::recovery::LossRecovery;
use crate::policy::redundant::RedundancyPolicy;
use crate::policy::rtx::RtxPolicy;
use crate::policy::sched::Scheduler;
use crate::policy::stream_sched::StreamScheduler;
use crate::policy::{Factory, Family, known};

/// A policy's row, and the value before which it is printed; empty if it is the last of its group.
pub(super) struct Placed {
    pub(super) row: Row<Config>,
    pub(super) before: &'static str,
}

/// An entry reads: group and place, doc, `name: family, source, default: its name in the rfc9260
/// profile`, then the names in other profiles as [`of_profile`] takes them, and `hidden:` as for a
/// value.
macro_rules! policies {
    ($(
        [$group:ident, before $before:literal]
        $(#[doc = $doc:literal])+
        $name:ident: $family:ty, $source:literal,
        default: $default:literal $(, papers: $papers:literal)? $(, ns2: $ns2:literal)?
        $(, hidden: $hidden:literal)?;
    )+) => {
        /// The configuration of an endpoint: a plain value, made from a [`Profile`], a
        /// [`Preset`](super::Preset) and overrides. It has the fields of [`Params`] as its own.
        ///
        /// The engine expects one that [`validate`](Config::validate) accepts.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Config {
            /// The profile it started from.
            pub profile: Profile,
            /// Name of the preset it started from.
            pub preset: &'static str,
            /// The values that policies are made from.
            pub params: Params,
            $(
                $(#[doc = $doc])+
                #[doc = concat!("\n\nSource: ", $source, ".")]
                pub $name: Factory<$family>,
            )+
        }

        impl Config {
            /// The constants of a profile, with the policies of plain SCTP.
            pub(super) fn from_profile(profile: Profile) -> Self {
                Self {
                    profile,
                    preset: "sctp",
                    params: Params::of(profile),
                    $($name: of_profile!(
                        profile, const { known($default) } $(, papers: const { known($papers) })?
                        $(, ns2: const { known($ns2) })?
                    ),)+
                }
            }
        }

        /// Every policy, in the order they are printed.
        pub(super) static POLICIES: &[Placed] = &[$(Placed {
            row: row!(
                Config, $group, [$($doc)+], $name: Factory<$family>, "policy", Any, $source
                $(, hidden: $hidden)?
            ),
            before: $before,
        }),+];
    };
}

impl Deref for Config {
    type Target = Params;

    fn deref(&self) -> &Params {
        &self.params
    }
}

impl DerefMut for Config {
    fn deref_mut(&mut self) -> &mut Params {
        &mut self.params
    }
}

/// Text chooses one of manypath's policies; a program may set its own.
impl<P: Family + ?Sized> Setting for Factory<P> {
    const CHOICES: &'static [&'static str] = P::NAMES;

    fn parse(text: &str) -> Option<Self> {
        Self::named(text)
    }
    fn print(&self) -> String {
        self.to_string()
    }
    fn forms() -> String {
        list(P::NAMES)
    }
}

policies! {
    [Failure, before "path_max_retrans"]
    /// Policy that decides when a path is potentially failed or inactive.
    failure: dyn FailurePolicy, "pmr: RFC 9260 §8.2; pf: RFC 7829, CMT-PF paper; mtcp: mTCP paper, section 3.5",
        default: "pmr";

    [Sacks, before "ack_path_as_asked"]
    /// Policy that chooses the path of each SACK.
    ack_path: dyn AckPathPolicy, "last_received: RFC 9260 §6.4; primary: mTCP paper, section 3.1.5",
        default: "last_received";

    [Congestion, before "initial_cwnd"]
    /// Congestion control of each path.
    congestion_control: dyn CongestionControl, "rfc9260: RFC 9260 §7.2; rfc2960: RFC 2960 §7.2; cubic: RFC 9438 with RFC 9406, docs/cubic.md; \
         lia: RFC 6356; balia: draft-walid-mptcp-congestion-control-04; \
         bbr: draft-ietf-ccwg-bbr, docs/bbr.md; bbr-draft: without its deviations",
        default: "rfc9260", papers: "rfc2960";

    [Recovery, before "ns2_release"]
    /// Policy that finds and recovers losses. standard: by RFC 9260, and with sfr by the CMT paper.
    /// ns2: as ns-2's agents do, with sfr the one for CMT, without it those for one path.
    recovery: dyn LossRecovery, "standard: RFC 9260 §7.2, CMT paper, section III-A; ns2: ns-2 2.35",
        default: "standard", ns2: "ns2", hidden: "repeats ns-2";

    [Recovery, before "missing_reports"]
    /// Policy that chooses the path of each retransmission.
    rtx_policy: dyn RtxPolicy, "CMT paper, section IV-B; all_rtx_alt, all_rtx_same, fr_same_rto_alt: retransmission policies paper, \
         sections 2 and 3; pipe_cwnd: mTCP paper, section 3.1.4; soonest: implementation",
        default: "same";

    [Paths, before "max_paths"]
    /// Policy that chooses the path of new data.
    scheduler: dyn Scheduler, "primary: RFC 9260 §6.4; fill_first: CMT paper, section III; fill_in_turn: CMT-PF paper, Fig. 2; \
         pipe_cwnd: mTCP paper, section 3.1.4",
        default: "primary";

    [Paths, before "overflow_after"]
    /// Policy that decides when a path with a cost carries data: overflow, when the cheaper ones
    /// fail or cannot carry what is offered; failover, when they fail. Backup paths carry data only
    /// when all others fail.
    rank_policy: dyn RankPolicy, "docs/priorities.md; RFC 8684 §3.3.8 for backup paths",
        default: "overflow";

    [SharedBottlenecks, before "shared_retry"]
    /// Policy that detects paths that share a bottleneck.
    shared_congestion: dyn SharedPolicy, "mtcp: mTCP paper, section 3.2; rfc8382: RFC 8382, section 3; trial, trial_of_alike: docs/mtcp.md",
        default: "off";

    [Redundancy, before "redundancy_review"]
    /// Policy that sends chunks on a second path, too: all that another path sends, or what is
    /// late. Needs sfr.
    redundancy: dyn RedundancyPolicy, "MSACMT-RTv2 paper, Algorithm 1 and section 3",
        default: "off";

    [Packets, before ""]
    /// Policy that chooses the stream of the next user data. fcfs: in the order in which messages
    /// were given; rr: streams in turn; rr_packet: the same, a stream for each packet; prio: the
    /// stream of the greatest priority; fair: all streams alike, by bytes; wfq: by their priorities
    /// as weights. Without message_interleaving a message that has begun is finished first.
    stream_scheduler: dyn StreamScheduler, "RFC 8260 §3; docs/rfc8260.md",
        default: "fcfs", hidden: "serves programs with several streams";
}
