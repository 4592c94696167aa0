//! One parameter: its description, and how its text is read, written and checked.

use serde::Serialize;

use super::setting::{Allowed, Setting};
use super::{Config, ConfigError, PARAMS};

/// The subject of a parameter, under which it is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Group {
    /// The retransmission timeout.
    Timers,
    /// Opening an association, and answering strangers.
    Handshake,
    /// When paths and associations count as failed, and what happens then.
    Failure,
    /// Probes of idle and failed paths.
    Heartbeats,
    /// When and where acknowledgements are sent.
    Sacks,
    /// Congestion windows.
    Congestion,
    /// Finding losses, and sending again.
    Recovery,
    /// Which paths carry data.
    Paths,
    /// Paths that share a bottleneck.
    SharedBottlenecks,
    /// Sending data on a second path, too.
    Redundancy,
    /// Memory of an association.
    Buffers,
    /// Sizes and form of packets, and which data goes first.
    Packets,
    /// Keys of protected associations.
    Keys,
}

impl Group {
    /// The heading above its parameters.
    pub fn title(self) -> &'static str {
        match self {
            Self::Timers => "Timers",
            Self::Handshake => "Handshake",
            Self::Failure => "Failure",
            Self::Heartbeats => "Heartbeats",
            Self::Sacks => "SACKs",
            Self::Congestion => "Congestion",
            Self::Recovery => "Recovery",
            Self::Paths => "Several paths",
            Self::SharedBottlenecks => "Shared bottlenecks",
            Self::Redundancy => "Redundancy",
            Self::Buffers => "Buffers",
            Self::Packets => "Packets",
            Self::Keys => "Keys",
        }
    }
}

/// One parameter: what it is called, what it means and how it is read and written.
#[non_exhaustive]
pub struct Param {
    /// Name, the same in every API.
    pub name: &'static str,
    /// Its subject.
    pub group: Group,
    /// The kind of its value: "time", "bytes", "packets", "switch", "policy" and so on.
    pub unit: &'static str,
    /// Its meaning, in words.
    pub doc: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// The names that it chooses from; empty if it chooses from none.
    pub choices: &'static [&'static str],
    /// Why users leave it alone, such as "repeats ns-2"; `None` for one that users set.
    pub rarely: Option<&'static str>,
    pub(super) allowed: fn() -> String,
    pub(super) get: fn(&Config) -> String,
    pub(super) set: fn(&mut Config, &str) -> Result<(), ConfigError>,
    pub(super) check: fn(&Config) -> Result<(), ConfigError>,
    /// True if TOML writes it without quotes.
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
pub(super) fn set<T: Setting>(
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

/// Checks the value of a field.
pub(super) fn check<T: Setting>(
    field: &T,
    name: &str,
    allowed: &impl Allowed<T>,
) -> Result<(), ConfigError> {
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
