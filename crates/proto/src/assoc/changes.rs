//! Parameters that change while an association is open (RFC 6458 §8.1).

use std::sync::Arc;

use crate::assoc::Association;
use crate::config::{Config, ConfigError};
use crate::path::Path;
use crate::time::Instant;
use crate::view::PathId;

/// The parameters that [`Association::set_parameters`] takes. The others shape an association as it
/// begins.
pub const CHANGEABLE: [&str; 11] = [
    "rto_initial",
    "rto_min",
    "rto_max",
    "heartbeats",
    "hb_interval",
    "path_max_retrans",
    "association_max_retrans",
    "association_timeout",
    "sack_delay",
    "sack_every",
    "sack_every_max",
];

/// The parameters that [`Association::set_path_parameters`] takes: a path may have values of its
/// own for these.
pub const CHANGEABLE_OF_PATHS: [&str; 6] =
    ["rto_initial", "rto_min", "rto_max", "heartbeats", "hb_interval", "path_max_retrans"];

fn check_names(values: &[(&str, &str)], known: &[&str]) -> Result<(), ConfigError> {
    let wrong = values.iter().find(|(name, _)| !known.contains(name));
    wrong.map_or(Ok(()), |(name, value)| {
        let allowed =
            format!("cannot change while an association is open; {} can", known.join(", "));
        Err(ConfigError::new(name, value, allowed))
    })
}

/// The configuration with other values, which must go together.
fn changed(config: &Config, values: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let mut config = config.clone();
    for (name, value) in values {
        config.set(name, value)?;
    }
    config.validate()?;
    Ok(config)
}

impl Path {
    /// The association's configuration with the values of this path.
    fn config(&self, of_association: &Config) -> Config {
        let mut config = of_association.clone();
        [config.rto_initial, config.rto_min, config.rto_max] = self.rto.bounds();
        config.heartbeats = self.probing.has_heartbeats;
        config.hb_interval = self.probing.hb_interval;
        config.path_max_retrans = self.liveness.max_retrans;
        config
    }

    /// Takes over the values that a path may have of its own.
    fn take_values(&mut self, config: &Config) {
        self.rto.set_bounds(config);
        self.probing.has_heartbeats = config.heartbeats;
        self.probing.hb_interval = config.hb_interval;
        self.liveness.max_retrans = config.path_max_retrans;
    }
}

impl Association {
    /// Changes parameters by name, from now on, and for all paths: those of [`CHANGEABLE`], with
    /// values as [`Config::set`] takes them.
    ///
    /// # Errors
    /// Names the first parameter that cannot change, or whose value is not allowed, by itself or
    /// beside the others. Nothing has changed then.
    pub fn set_parameters(
        &mut self,
        now: Instant,
        values: &[(&str, &str)],
    ) -> Result<(), ConfigError> {
        check_names(values, &CHANGEABLE)?;
        let config = changed(&self.config, values)?;
        let is_of_paths = |(name, _): &&(&str, &str)| CHANGEABLE_OF_PATHS.contains(name);
        let of_paths: Vec<_> = values.iter().filter(is_of_paths).copied().collect();
        let of_each = |path: &Path| changed(&path.config(&config), &of_paths);
        let of_each: Vec<_> = self.paths.iter().map(of_each).collect::<Result<_, _>>()?;
        if let Some(receiver) = &mut self.rx.receiver {
            receiver.delayed.set_sack_delay(config.sack_delay);
            if values.iter().any(|(name, _)| name.starts_with("sack_every")) {
                receiver.delayed.set_sack_every(config.sack_every);
            }
        }
        self.config = Arc::new(config);
        for (id, config) in self.paths.ids().zip(of_each) {
            self.change_path(now, id, &config);
        }
        Ok(())
    }

    /// Changes parameters of one path by name, from now on: those of [`CHANGEABLE_OF_PATHS`].
    /// Without effect if there is no such path.
    ///
    /// # Errors
    /// As [`set_parameters`](Self::set_parameters).
    pub fn set_path_parameters(
        &mut self,
        now: Instant,
        path: PathId,
        values: &[(&str, &str)],
    ) -> Result<(), ConfigError> {
        check_names(values, &CHANGEABLE_OF_PATHS)?;
        let Some(p) = self.paths.get(path) else { return Ok(()) };
        let config = changed(&p.config(&self.config), values)?;
        self.change_path(now, path, &config);
        Ok(())
    }

    /// The value of a parameter of [`CHANGEABLE_OF_PATHS`] on a path, as text. `None` without such
    /// a path or such a parameter.
    pub fn path_parameter(&self, path: PathId, name: &str) -> Option<String> {
        let p = self.paths.get(path)?;
        let is_known = CHANGEABLE_OF_PATHS.contains(&name);
        is_known.then(|| p.config(&self.config).get(name).ok()).flatten()
    }

    fn change_path(&mut self, now: Instant, id: PathId, config: &Config) {
        let Some(p) = self.paths.get_mut(id) else { return };
        p.take_values(config);
        // A heartbeat in flight keeps its time for an answer.
        if self.state.is_open() && p.probing.probe.is_none() {
            self.schedule_heartbeat(now, id);
        }
    }
}
