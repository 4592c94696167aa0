//! Presets: whole systems, each a few parameters on top of a profile.

use super::{ConfigError, Profile};
use crate::params::list;

/// Parameters by name, with their values as in a configuration file.
type Values = &'static [(&'static str, &'static str)];

/// A whole system by name. A new one is one more entry of [`Preset::ALL`].
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preset {
    /// Name in configuration, such as `cmt-pf`.
    pub name: &'static str,
    /// Its description, in one line.
    pub description: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// Parameters that differ from the profile, as in a configuration file.
    pub overrides: &'static [(&'static str, &'static str)],
    /// Further parameters that differ with one profile only; they override
    /// [`overrides`](Self::overrides).
    pub for_profiles: &'static [(Profile, &'static [(&'static str, &'static str)])],
}

/// Values that differ with a profile.
type ForProfile = (Profile, Values);

/// ns-2's agents for one path differ in this from the agent for CMT, apart from their recovery.
/// Their cwnd does not grow during fast recovery.
const SINGLE_ON_NS2: Values = &[
    ("ssthresh_floor", "4 pmdcs"),
    ("sack_first_at_once", "true"),
    ("congestion_control", "rfc9260"),
    ("rtx_past_cwnd", "any"),
];

/// Plain SCTP on ns-2 before release 3.8 of its module, with CMT's floor. The SACK for the first
/// DATA is delayed, as in RFC 2960.
const SINGLE_BEFORE_38: Values = &[("congestion_control", "rfc9260"), ("rtx_past_cwnd", "any")];

/// Sending on one path at a time, on each release of ns-2's module.
const SINGLE: &[ForProfile] = &[
    (Profile::Ns2, SINGLE_ON_NS2),
    (Profile::Ns2Release37, SINGLE_BEFORE_38),
    (Profile::Ns2Release36, SINGLE_BEFORE_38),
    (Profile::Ns2Release35, SINGLE_BEFORE_38),
    (Profile::Ns2Release34, SINGLE_BEFORE_38),
];

/// CMT on ns-2, whose agents do not have the CMT paper's heuristic.
const CMT_ON_NS2: Values = &[("rtx_age_heuristic", "false")];

/// A queue that overflows often drops the first and the last packet of a flight. One cut is enough.
const CMT_PF_ON_FAST: ForProfile = (Profile::Fast, &[("cut_once_per_flight", "true")]);

/// CMT on each release of ns-2's module.
const CMT: &[ForProfile] = &[
    (Profile::Ns2, CMT_ON_NS2),
    (Profile::Ns2Release37, CMT_ON_NS2),
    (Profile::Ns2Release36, CMT_ON_NS2),
    (Profile::Ns2Release35, CMT_ON_NS2),
    (Profile::Ns2Release34, CMT_ON_NS2),
];

/// CMT-PF on each release of ns-2's module, and with the fast profile.
const CMT_PF: &[ForProfile] = &[CMT_PF_ON_FAST, CMT[0], CMT[1], CMT[2], CMT[3], CMT[4]];

/// A path that works again is found within 0.1 s, or two RTTs if that is more.
const ADAPTIVE_ON_FAST: ForProfile = (Profile::Fast, &[("hb_probe_max", "100 ms")]);

/// A single path carries all SACKs, so they must be few. A queue that drops the first and the last
/// packet of a flight would cut the window twice.
const MTCP_ON_FAST: ForProfile = (
    Profile::Fast,
    &[("shared_congestion", "trial"), ("sack_gaps_wait", "true"), ("cut_once_per_flight", "true")],
);

/// Concurrent multipath transfer as its authors recommend it: all three algorithms, RTX-SSTHRESH.
macro_rules! cmt {
    ($($more:expr),* $(,)?) => {
        &[
            ("scheduler", "fill_first"),
            ("rtx_policy", "ssthresh"),
            ("sfr", "true"),
            ("cuc", "v2"),
            ("dac", "true"),
            ("rtx_age_heuristic", "true"),
            $($more),*
        ]
    };
}

/// A path at a time with one of Caro's retransmission policies; the extensions `har`, `timestamp`
/// and `mfr` are set in addition.
macro_rules! single {
    ($rtx:literal $(, $more:expr)*) => {
        &[
            ("scheduler", "primary"),
            ("failure", "pmr"),
            ("rtx_policy", $rtx),
            $($more),*
        ]
    };
}

/// CMT-PF with NR-SACK and a redundant path. According to the MSACMT-RT paper, a path gets only
/// heartbeats after a timeout until it is active.
macro_rules! msacmt {
    ($policy:literal) => {
        cmt![
            ("failure", "pf"),
            ("pf_recovery_cwnd", "2"),
            ("nr_sack", "true"),
            ("redundancy", $policy),
        ]
    };
}

impl Preset {
    /// The preset used when none is named: `adaptive`.
    pub const DEFAULT: &'static Self = &Self::ALL[7];

    /// All presets.
    pub const ALL: &'static [Self] = &[
        Self {
            name: "sctp",
            description: "one path at a time, the others stand by for failover",
            source: "RFC 9260",
            overrides: &[("scheduler", "primary"), ("failure", "pmr")],
            for_profiles: SINGLE,
        },
        Self {
            name: "sctp-pf",
            description: "one path at a time, leaving it at the first timeout",
            source: "RFC 7829",
            overrides: &[
                ("scheduler", "primary"),
                ("failure", "pf"),
                // RFC 7829 §3.2 leaves the cwnd as the timeout set it.
                ("pf_recovery_cwnd", "1"),
            ],
            for_profiles: SINGLE,
        },
        Self {
            name: "all-rtx-alt",
            description: "one path for new data, all retransmissions on the next one",
            source: "Caro, Amer, Stewart, Computer Communications 2006; RFC 2960",
            overrides: single!["all_rtx_alt", ("mfr", "false")],
            for_profiles: SINGLE,
        },
        Self {
            name: "all-rtx-same",
            description: "one path for new data and for all retransmissions",
            source: "Caro, Amer, Stewart, Computer Communications 2006",
            overrides: single!["all_rtx_same"],
            for_profiles: SINGLE,
        },
        Self {
            name: "fr-same-rto-alt",
            description: "one path for new data and fast retransmissions, the next after a timeout",
            source: "Caro, Amer, Stewart, Computer Communications 2006",
            overrides: single!["fr_same_rto_alt"],
            for_profiles: SINGLE,
        },
        Self {
            name: "cmt",
            description: "all paths at once",
            source: "Iyengar, Amer, Stewart, IEEE/ACM ToN 2006",
            overrides: cmt![("failure", "pmr")],
            for_profiles: CMT,
        },
        Self {
            name: "cmt-pf",
            description: "all paths at once, none while it is potentially failed",
            source: "Natarajan, Ekiz, Amer, Stewart, Computer Communications 2009",
            // CMT-PF2, which the paper finds clearly superior to CMT-PF1.
            overrides: cmt![("failure", "pf"), ("pf_recovery_cwnd", "2")],
            for_profiles: CMT_PF,
        },
        Self {
            name: "adaptive",
            description: "all paths at once over links that lose, delay and change",
            source: "BBRv3, RFC 8985, expected delivery; docs/which-preset.md",
            overrides: cmt![
                ("failure", "pf"),
                ("pf_recovery_cwnd", "2"),
                ("congestion_control", "bbr"),
                ("recovery", "rack"),
                ("scheduler", "soonest"),
                ("rtx_policy", "soonest"),
                ("redundancy", "late"),
                ("cut_once_per_flight", "true"),
                ("shared_congestion", "trial_of_alike"),
                ("shared_retry", "60 s"),
                ("receive_buffer", "128 MiB"),
                ("receive_buffer_initial", "8 MiB"),
                ("send_buffer", "128 MiB"),
                ("send_buffer_initial", "8 MiB"),
            ],
            for_profiles: &[ADAPTIVE_ON_FAST],
        },
        Self {
            name: "mtcp",
            description: "all paths at once, those that share a bottleneck as one",
            source: "Zhang, Lai, Krishnamurthy, Peterson, Wang, USENIX 2004",
            overrides: &[
                ("scheduler", "pipe_cwnd"),
                ("rtx_policy", "pipe_cwnd"),
                ("pipe_accounting", "true"),
                ("sfr", "true"),
                ("cuc", "v2"),
                ("ack_path", "primary"),
                ("failure", "mtcp"),
                ("shared_congestion", "mtcp"),
                ("paths_max", "5"),
                ("suppress_below", "10"),
                ("path_review_interval", "10 s"),
            ],
            for_profiles: &[MTCP_ON_FAST],
        },
        Self {
            name: "msacmt-rt",
            description: "all paths at once, the worst of them duplicating the best",
            source: "Multipath State Aware CMT using redundant transmission (MSACMT-RTv2), section 3",
            overrides: msacmt!["msacmt_rt"],
            for_profiles: CMT,
        },
        Self {
            name: "msacmt-rtv2",
            description: "all paths at once, the worst at times duplicating the one expected to fail",
            source: "Multipath State Aware CMT using redundant transmission (MSACMT-RTv2), Algorithm 1",
            overrides: msacmt!["msacmt_rtv2"],
            for_profiles: CMT,
        },
    ];

    /// The preset's settings on a profile. Later ones override earlier ones.
    pub(super) fn values(
        &self,
        profile: Profile,
    ) -> impl Iterator<Item = (&'static str, &'static str)> {
        let more = self.for_profiles.iter().filter(move |(of, _)| *of == profile);
        self.overrides.iter().chain(more.flat_map(|(_, values)| *values)).copied()
    }

    /// The preset of that name.
    pub fn from_name(name: &str) -> Result<&'static Self, ConfigError> {
        Self::ALL.iter().find(|preset| preset.name == name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|preset| preset.name).collect();
            ConfigError::new("preset", name, format!("must be {}", list(&names)))
        })
    }
}
