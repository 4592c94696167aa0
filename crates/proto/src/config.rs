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
mod form;
mod param;
mod policies;
mod preset;
mod table;

pub use explain::{Explained, Origin, Rows};
pub use param::{PARAMS, Param};
pub use policies::Config;
pub use preset::Preset;

use manypath_wire::chunk_type;

use crate::params::RuleSet;
pub use crate::params::{
    ChunkTypes, ConfigError, Cuc, Group, InitialCwnd, InitialSsthresh, MaxBurstRule, Ns2Release,
    Params, Profile, RedundancyCycle, RedundancyOrder, RtxPastCwnd, SharedVerdict, Units, units,
};

impl Config {
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

    /// True if chunks are authenticated in associations that are not protected: if that is asked
    /// for, and for requests to change addresses (RFC 5061 §4.1.1).
    pub(crate) fn authenticates(&self) -> bool {
        self.authentication || self.address_reconfiguration
    }

    /// The chunks that count only if they are authenticated.
    pub(crate) fn required_authentication(&self) -> ChunkTypes {
        let asked = if self.authentication { self.authenticated_chunks } else { ChunkTypes::NONE };
        if self.address_reconfiguration {
            asked.with(&[chunk_type::ASCONF, chunk_type::ASCONF_ACK])
        } else {
            asked
        }
    }

    /// Checks every range, and the rules between parameters.
    pub fn validate(&self) -> Result<(), ConfigError> {
        for param in PARAMS.iter() {
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
        let pf = self.failure.build(self).pf_max_retrans();
        if let (Some(pf), Some(limit)) = (pf, self.primary_switchover_max_retrans)
            && limit < pf
        {
            let allowed = format!("must not be below pf_max_retrans = {pf} (RFC 7829 §5)");
            let value = self.get("primary_switchover_max_retrans")?;
            return Err(ConfigError::new("primary_switchover_max_retrans", &value, allowed));
        }
        self.check_extensions()?;
        if self.recovery_without != RuleSet::NONE && !self.recovery.build(self).has_optional_rules()
        {
            let value = self.recovery_without.names();
            let allowed = "needs recovery = ns2, whose rules they are";
            return Err(ConfigError::new("recovery_without", &value, allowed));
        }
        if !self.sfr && self.redundancy.build(self).needs().roles {
            let allowed = "needs sfr = true: without it, what arrives early on one path makes chunks of \
                           another look lost";
            return Err(ConfigError::new("redundancy", self.redundancy.name(), allowed));
        }
        if self.association_max_retrans.is_none() && self.association_timeout.is_none() {
            let allowed = "cannot be with association_timeout = off, or the association would \
                           never end; set one of them";
            return Err(ConfigError::new("association_max_retrans", "off", allowed));
        }
        Ok(())
    }

    /// Checks for extensions that a retransmission policy, or another extension, excludes
    /// (retransmission policies paper, Figure 7).
    fn check_extensions(&self) -> Result<(), ConfigError> {
        let policy = self.rtx_policy.build(self);
        let rule = |is_set: bool, name: &str, with: &str, why: &str| {
            if is_set {
                Err(ConfigError::new(name, "true", format!("cannot be with {with}, {why}")))
            } else {
                Ok(())
            }
        };
        let policy_set = format!("rtx_policy = {}", self.rtx_policy);
        let why = "which retransmits on the path that timed out; choose fr_same_rto_alt or set har = false";
        rule(self.har && policy.stays_after_timeout(), "har", &policy_set, why)?;
        let why = "whose retransmissions arrive out of order with what is sent on the other path; \
                   choose fr_same_rto_alt or set mfr = false";
        rule(self.mfr && policy.leaves_after_fast_retransmit(), "mfr", &policy_set, why)?;
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

/// The error for an unknown name.
fn unknown(name: &str, value: &str) -> ConfigError {
    let names = PARAMS.iter().map(|param| param.name).chain(["profile", "preset"]);
    let nearest = names.min_by_key(|known| edit_distance(name, known)).unwrap_or_default();
    ConfigError::new(name, value, format!("no such parameter; did you mean {nearest}?"))
}

/// Number of characters to insert, remove or replace to turn `a` into `b`.
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
impl Config {
    /// This configuration with changes.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Config)) -> Config {
        change(&mut self);
        self
    }
}

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;
