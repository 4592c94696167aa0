//! The one place that forms a configuration: from a profile, a preset and overrides, and then for
//! the kind of network. It also makes an association's policies.

use super::{Config, ConfigError, Preset, Profile};
use crate::policy::fail::InDoubt;
use crate::policy::{Needs, Policies, path_set};

impl Default for Config {
    /// The default of every program and binding, where neither profile nor preset is named: the
    /// `fast` profile with the `adaptive` preset.
    fn default() -> Self {
        Self::of(Profile::default(), Preset::DEFAULT)
    }
}

impl Config {
    /// The configuration of a preset on a profile.
    pub fn of(profile: Profile, preset: &'static Preset) -> Self {
        let mut config = Self { preset: preset.name, ..Self::from_profile(profile) };
        for (name, value) in preset.values(profile) {
            let set = config.set(name, value);
            debug_assert_eq!(set, Ok(()), "preset {}", preset.name);
        }
        config
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

    /// The [default](Self::default) with overrides by name, as [`build`](Self::build) takes them.
    pub fn default_with(overrides: &[(String, String)]) -> Result<Self, ConfigError> {
        Self::build(Profile::default().name(), Preset::DEFAULT.name, overrides)
    }

    /// A policy of each family, for one association.
    pub(crate) fn policies(&self) -> Policies {
        Policies {
            sched: self.scheduler.build(self),
            rtx: self.rtx_policy.build(self),
            fail: self.failure.build(self),
            ack_path: self.ack_path.build(self),
            path_set: path_set::build(self, self.shared_congestion.build(self)),
            rank: self.rank_policy.build(self),
            redundant: self.redundancy.build(self),
            needs: Needs::default(),
            in_doubt: InDoubt::default(),
        }
        .settled()
    }

    /// The events and questions that the configuration's policies need.
    pub fn needs(&self) -> Needs {
        self.policies().needs
    }

    /// True if a detector may set all but one of the paths aside that share a bottleneck.
    pub fn finds_shared_bottlenecks(&self) -> bool {
        self.shared_congestion.build(self).is_on()
    }

    /// The receive buffer of an association in the beginning, in bytes: `receive_buffer_initial`,
    /// or `receive_buffer` if that is less.
    pub fn first_receive_buffer(&self) -> usize {
        self.receive_buffer.min(self.receive_buffer_initial)
    }

    /// This configuration for use on sockets: packets travel in UDP, and need their checksum.
    ///
    /// A relay adds `relay_header` bytes to each packet. Without `pmtu_discovery`, which measures
    /// each path, `mtu` is reduced by as much. The header is 0 without relays; applying this again
    /// then changes nothing.
    ///
    /// # Errors
    /// As for [`validate`](Self::validate), and if `checksum` is false.
    pub fn for_sockets(&self, relay_header: usize) -> Result<Self, ConfigError> {
        self.validate()?;
        if !self.checksum {
            let allowed = "must be true on sockets: real networks damage packets";
            return Err(ConfigError::new("checksum", "false", allowed));
        }
        if self.zero_checksum {
            let allowed = "must be false on sockets: there is no DTLS below SCTP";
            return Err(ConfigError::new("zero_checksum", "true", allowed));
        }
        let mtu = if self.pmtu_discovery { self.mtu } else { self.mtu - relay_header };
        let mut config = self.clone();
        (config.udp_encapsulation, config.mtu) = (true, mtu);
        Ok(config)
    }

    /// This configuration for two ends on one host with emulated links between them. They do not
    /// tell each other their real addresses, which would lead around the links.
    pub fn for_emulation(&self) -> Self {
        let mut config = self.clone();
        (config.advertise_addresses, config.checksum) = (false, true);
        config
    }

    /// This configuration for a simulated network, which loses packets but damages none.
    #[cfg(feature = "testing")]
    pub fn for_simulation(&self) -> Self {
        let mut config = self.clone();
        config.checksum = false;
        config
    }
}
