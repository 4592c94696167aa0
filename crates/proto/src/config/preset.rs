//! Presets: whole systems, each a few parameters on top of a profile.

use super::ConfigError;
use super::setting::list;

/// A whole system by name. A new one is one more entry of [`Preset::ALL`].
#[derive(Debug, PartialEq, Eq)]
pub struct Preset {
    /// Name in configuration, such as `cmt-pf`.
    pub name: &'static str,
    /// What it is, in one line.
    pub description: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// Parameters that differ from the profile, as in a configuration file.
    pub overrides: &'static [(&'static str, &'static str)],
}

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

/// One path at a time with a retransmission policy of Caro's; the extensions har, timestamp and mfr are
/// switched on beside it.
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

/// CMT-PF with NR-SACK and a redundant path. The paper says of MSACMT-RT that after a timeout a path gets heartbeats
/// only until it is active.
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
    /// The preset used when none is named: `cmt-pf`.
    pub const DEFAULT: &'static Self = &Self::ALL[6];

    /// All presets.
    pub const ALL: &'static [Self] = &[
        Self {
            name: "sctp",
            description: "one path at a time, the others stand by for failover",
            source: "RFC 9260",
            overrides: &[("scheduler", "primary"), ("failure", "pmr")],
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
        },
        Self {
            name: "all-rtx-alt",
            description: "one path for new data, all retransmissions on the next one",
            source: "Caro, Amer, Stewart, Computer Communications 2006; RFC 2960",
            overrides: single!["all_rtx_alt", ("mfr", "false")],
        },
        Self {
            name: "all-rtx-same",
            description: "one path for new data and for all retransmissions",
            source: "Caro, Amer, Stewart, Computer Communications 2006",
            overrides: single!["all_rtx_same"],
        },
        Self {
            name: "fr-same-rto-alt",
            description: "one path for new data and fast retransmissions, the next after a timeout",
            source: "Caro, Amer, Stewart, Computer Communications 2006",
            overrides: single!["fr_same_rto_alt"],
        },
        Self {
            name: "cmt",
            description: "all paths at once",
            source: "Iyengar, Amer, Stewart, IEEE/ACM ToN 2006",
            overrides: cmt![("failure", "pmr")],
        },
        Self {
            name: "cmt-pf",
            description: "all paths at once, none while it is potentially failed",
            source: "Natarajan, Ekiz, Amer, Stewart, Computer Communications 2009",
            // CMT-PF2, which the paper finds clearly superior to CMT-PF1.
            overrides: cmt![("failure", "pf"), ("pf_recovery_cwnd", "2")],
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
        },
        Self {
            name: "msacmt-rt",
            description: "all paths at once, the worst of them duplicating the best",
            source: "Multipath State Aware CMT using redundant transmission (MSACMT-RTv2), section 3",
            overrides: msacmt!["msacmt_rt"],
        },
        Self {
            name: "msacmt-rtv2",
            description: "all paths at once, the worst at times duplicating the one expected to fail",
            source: "Multipath State Aware CMT using redundant transmission (MSACMT-RTv2), Algorithm 1",
            overrides: msacmt!["msacmt_rtv2"],
        },
    ];

    /// The preset of that name.
    pub fn from_name(name: &str) -> Result<&'static Self, ConfigError> {
        Self::ALL.iter().find(|preset| preset.name == name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|preset| preset.name).collect();
            ConfigError::new("preset", name, format!("must be {}", list(&names)))
        })
    }
}
