//! Configuration: [`Profile`] (constants), then [`Preset`] (policies), then overrides.
//!
//! A [`Config`] is a plain value. Every parameter is a field with its unit, range and source, and
//! the same name reaches it from TOML, the command line and the other languages' bindings.
//!
//! ```
//! # use manypath_proto::config::Config;
//! let faster = [("rto_min".to_owned(), "100 ms".to_owned())];
//! let config = Config::build("fast", "cmt-pf", &faster)?;
//! assert_eq!(config.rto_min.as_millis(), 100);
//! assert_eq!(config.get("hb_interval")?, "5 s");
//! # Ok::<(), manypath_proto::config::ConfigError>(())
//! ```

mod explain;
mod kinds;
mod params;
mod preset;
mod profile;
mod setting;
mod table;
pub mod units;

use std::borrow::Cow;
use std::fmt;

pub use explain::{Explained, Origin};
pub use kinds::{
    Cuc, InitialCwnd, InitialSsthresh, MaxBurstRule, PolicyName, RedundancyCycle, RtxPastCwnd,
    SharedVerdict, Units,
};
pub use params::{
    ACK_PATHS, CONGESTION_CONTROLS, Config, FAILURE_POLICIES, PARAMS, Param, RECOVERIES,
    REDUNDANCY_POLICIES, RTX_POLICIES, SCHEDULERS, SHARED_CONGESTION,
};
pub use preset::Preset;
pub use profile::Profile;

use crate::policy::recovery::RuleSet;

/// A value that configuration does not accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The parameter.
    pub field: String,
    /// The value it was given; empty when the error is not about a value.
    pub value: String,
    /// What would be accepted, or what to change.
    pub allowed: String,
}

impl ConfigError {
    pub(super) fn new(field: &str, value: &str, allowed: impl Into<String>) -> Self {
        Self { field: field.to_owned(), value: value.to_owned(), allowed: allowed.into() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value.as_str() {
            "" => write!(f, "{}: {}", self.field, self.allowed),
            value => write!(f, "{} = {value}: {}", self.field, self.allowed),
        }
    }
}

impl std::error::Error for ConfigError {}

impl Default for Config {
    /// The `rfc9260` profile with the `cmt-pf` preset.
    fn default() -> Self {
        Self::of(Profile::default(), Preset::DEFAULT)
    }
}

impl Config {
    /// The configuration of a preset on a profile.
    pub fn of(profile: Profile, preset: &'static Preset) -> Self {
        let mut config = Self { preset: preset.name, ..Self::from_profile(profile) };
        for (name, value) in preset.overrides {
            let set = config.set(name, value);
            debug_assert_eq!(set, Ok(()), "preset {}", preset.name);
        }
        if profile == Profile::Fast && config.shared_congestion == "mtcp" {
            config.shared_congestion = Cow::Borrowed("trial");
        }
        if profile == Profile::Fast && config.ack_path == "primary" {
            config.sack_gaps_wait = true;
            // A queue that drops the first packet of a flight and its last would cut the window twice.
            config.cut_once_per_flight = true;
        }
        if profile.is_of_ns2() {
            // None of ns-2's agents has the CMT paper's heuristic.
            config.rtx_age_heuristic = false;
            if config.scheduler == "primary" {
                config.set_agent_for_one_path();
            }
        }
        config
    }

    /// Sets the values of ns-2's agents for one path that differ from those of its agent for CMT.
    fn set_agent_for_one_path(&mut self) {
        if self.profile == Profile::Ns2 {
            self.ssthresh_floor = Units::Pmdcs(4);
        }
        self.sack_first_at_once = true;
        // cwnd does not grow during fast recovery.
        self.congestion_control = Cow::Borrowed("rfc9260");
        self.rtx_past_cwnd = RtxPastCwnd::Any;
    }

    /// The validated configuration of a preset on a profile, with overrides by name.
    ///
    /// Of several overrides of one parameter the last counts. Overrides named `profile` and
    /// `preset` replace the first two arguments, wherever they stand.
    pub fn build(
        profile: &str,
        preset: &str,
        overrides: &[(String, String)],
    ) -> Result<Self, ConfigError> {
        let last =
            |key| overrides.iter().rfind(|(name, _)| name == key).map(|(_, value)| value.as_str());
        let profile = Profile::from_name(last("profile").unwrap_or(profile))?;
        let preset = Preset::from_name(last("preset").unwrap_or(preset))?;
        let mut config = Self::of(profile, preset);
        for (name, value) in overrides {
            if name != "profile" && name != "preset" {
                config.set(name, value)?;
            }
        }
        config.validate()?;
        Ok(config)
    }

    /// Sets a parameter by name from text such as `"200 ms"`, and checks its range.
    ///
    /// Rules between parameters are left to [`validate`](Self::validate), so that the order of
    /// settings does not matter.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
        match name {
            "profile" | "preset" => Err(ConfigError::new(
                name,
                value,
                "is chosen when a configuration is built, not changed later",
            )),
            _ => Param::by_name(name).ok_or_else(|| unknown(name, value))?.set(self, value),
        }
    }

    /// The value of a parameter, as text that [`set`](Self::set) takes.
    pub fn get(&self, name: &str) -> Result<String, ConfigError> {
        match name {
            "profile" => Ok(self.profile.name().to_owned()),
            "preset" => Ok(self.preset.to_owned()),
            _ => Param::by_name(name).map(|p| p.get(self)).ok_or_else(|| unknown(name, "")),
        }
    }

    /// Checks every range, and the rules between parameters.
    pub fn validate(&self) -> Result<(), ConfigError> {
        for param in PARAMS {
            param.check(self)?;
        }
        self.check_order("rto_min", self.rto_min, "rto_initial", self.rto_initial)?;
        self.check_order("rto_initial", self.rto_initial, "rto_max", self.rto_max)?;
        if let Some(first) = self.handshake_rto {
            let most = self.handshake_rto_max;
            self.check_order("handshake_rto", first, "handshake_rto_max", most)?;
        }
        self.check_order("sack_every", self.sack_every, "sack_every_max", self.sack_every_max)?;
        if let Some(paths_max) = self.paths_max {
            self.check_order("paths_min", self.paths_min, "paths_max", paths_max)?;
        }
        let (pf, switchover) = (self.pf_max_retrans, self.primary_switchover_max_retrans);
        if self.failure == "pf" && switchover.is_some_and(|limit| limit < pf) {
            let allowed = format!("must not be below pf_max_retrans = {pf} (RFC 7829 §5)");
            let value = self.get("primary_switchover_max_retrans")?;
            return Err(ConfigError::new("primary_switchover_max_retrans", &value, allowed));
        }
        self.check_extensions()?;
        if self.recovery_without != RuleSet::NONE && self.recovery != "ns2" {
            let value = self.recovery_without.names();
            let allowed = "needs recovery = ns2, because these are its rules";
            return Err(ConfigError::new("recovery_without", &value, allowed));
        }
        if self.redundancy != "off" && !self.sfr {
            let allowed = "needs sfr = true: without it, what arrives early on one path makes chunks of \
                           another look lost";
            return Err(ConfigError::new("redundancy", &self.redundancy, allowed));
        }
        if self.association_max_retrans.is_none() && self.association_timeout.is_none() {
            let allowed = "cannot be with association_timeout = off, or the association would \
                           never end; set one of them";
            return Err(ConfigError::new("association_max_retrans", "off", allowed));
        }
        Ok(())
    }

    /// Checks the extensions that do not go with a retransmission policy, or with each other
    /// (retransmission policies paper, Figure 7).
    fn check_extensions(&self) -> Result<(), ConfigError> {
        let policy = &*self.rtx_policy;
        let rule = |is_set: bool, name: &str, with: &str, why: &str| match is_set {
            true => Err(ConfigError::new(name, "true", format!("cannot be with {with}, {why}"))),
            false => Ok(()),
        };
        let same = matches!(policy, "same" | "all_rtx_same");
        let policy_set = format!("rtx_policy = {policy}");
        let why = "which retransmits on the path that timed out; choose fr_same_rto_alt or set har = false";
        rule(self.har && same, "har", &policy_set, why)?;
        let why = "whose retransmissions arrive out of order with what is sent on the other path; \
                   choose fr_same_rto_alt or set mfr = false";
        rule(self.mfr && policy == "all_rtx_alt", "mfr", &policy_set, why)?;
        let why = "which measures every retransmission already; set one of them to false";
        rule(self.har && self.timestamp, "har", "timestamp = true", why)
    }

    /// Checks that the first of two parameters is not above the second.
    fn check_order<T: PartialOrd>(
        &self,
        low: &str,
        a: T,
        high: &str,
        b: T,
    ) -> Result<(), ConfigError> {
        if a <= b {
            return Ok(());
        }
        let allowed = format!("must not be above {high} = {}", self.get(high)?);
        Err(ConfigError::new(low, &self.get(low)?, allowed))
    }
}

/// The error for a name that is no parameter.
fn unknown(name: &str, value: &str) -> ConfigError {
    let names = PARAMS.iter().map(|param| param.name).chain(["profile", "preset"]);
    let nearest = names.min_by_key(|known| edit_distance(name, known)).unwrap_or_default();
    ConfigError::new(name, value, format!("no such parameter; did you mean {nearest}?"))
}

/// How many characters must be inserted, removed or replaced to turn `a` into `b`.
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests;
