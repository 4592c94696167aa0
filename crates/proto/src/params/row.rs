//! A parameter: its description, and how its text is read, written and checked.

use serde::Serialize;

use super::error::ConfigError;
use super::setting::{Allowed, Setting};

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

/// A parameter, which is a field of `Owner`: its name, its meaning, and how to read and write it.
pub(crate) struct Row<Owner> {
    pub(crate) name: &'static str,
    pub(crate) group: Group,
    pub(crate) unit: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) source: &'static str,
    pub(crate) choices: &'static [&'static str],
    pub(crate) hidden: Option<&'static str>,
    pub(crate) allowed: fn() -> String,
    pub(crate) get: fn(&Owner) -> String,
    pub(crate) set: fn(&mut Owner, &str) -> Result<(), ConfigError>,
    pub(crate) check: fn(&Owner) -> Result<(), ConfigError>,
    /// True if TOML writes it without quotes.
    pub(crate) bare: bool,
}

/// `None`, or the given value.
macro_rules! optional {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}
pub(crate) use optional;

/// The [`Row`] of a field.
macro_rules! row {
    ($owner:ty, $group:ident, [$($doc:literal)+], $name:ident: $type:ty, $unit:expr, $allowed:expr,
     $source:expr $(, hidden: $hidden:literal)?) => {
        $crate::params::Row::<$owner> {
            name: stringify!($name),
            group: $crate::params::Group::$group,
            unit: $unit,
            doc: concat!($($doc),+).trim_ascii(),
            source: $source,
            choices: <$type as $crate::params::Setting>::CHOICES,
            hidden: $crate::params::optional!($($hidden)?),
            allowed: || $crate::params::Allowed::<$type>::describe(&$allowed),
            get: |owner| $crate::params::Setting::print(&owner.$name),
            set: |owner, text| {
                $crate::params::set(&mut owner.$name, stringify!($name), text, &$allowed)
            },
            check: |owner| $crate::params::check(&owner.$name, stringify!($name), &$allowed),
            bare: <$type as $crate::params::Setting>::BARE,
        }
    };
}
pub(crate) use row;

/// Reads a value into its field. The field is unchanged if the value is not allowed.
pub(crate) fn set<T: Setting>(
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
pub(crate) fn check<T: Setting>(
    field: &T,
    name: &str,
    allowed: &impl Allowed<T>,
) -> Result<(), ConfigError> {
    if allowed.contains(field) { Ok(()) } else { Err(not_allowed(name, &field.print(), allowed)) }
}

fn not_allowed<T: Setting>(name: &str, value: &str, allowed: &impl Allowed<T>) -> ConfigError {
    let (range, forms) = (allowed.describe(), T::forms());
    let more = if range == forms || T::parse(value).is_some() {
        String::new()
    } else {
        format!("; write {forms}")
    };
    ConfigError::new(name, value, format!("must be {range}{more}"))
}
