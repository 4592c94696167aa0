//! Configuration to and from TOML.

use serde::ser::{Serialize, SerializeMap, Serializer};
use toml::{Table, Value};

use super::{Config, ConfigError, PARAMS};

impl Config {
    /// The validated configuration in a TOML text: `profile`, `preset`, and any parameter by name.
    ///
    /// Without a profile or preset it starts from the [default](Self::default).
    pub fn from_toml_str(text: &str) -> Result<Self, ConfigError> {
        let table: Table = text
            .parse()
            .map_err(|e: toml::de::Error| ConfigError::new("configuration", "", e.to_string()))?;
        Self::default_with(&Self::overrides(&table)?)
    }

    /// The entries of a TOML table as overrides for [`build`](Self::build).
    ///
    /// A string carries its unit; a bare number is in bytes or whatever the parameter counts. A
    /// time but 0 needs its unit.
    pub fn overrides(table: &Table) -> Result<Vec<(String, String)>, ConfigError> {
        table.iter().map(|(name, value)| Ok((name.clone(), text_of(name, value)?))).collect()
    }

    /// The whole configuration as TOML, one parameter a line;
    /// [`from_toml_str`](Self::from_toml_str) reads it back.
    pub fn to_toml(&self) -> String {
        let mut text =
            format!("profile = \"{}\"\npreset = \"{}\"\n", self.profile.name(), self.preset);
        for param in PARAMS.iter() {
            let value = param.get(self);
            text += &if param.bare {
                format!("{} = {value}\n", param.name)
            } else {
                format!("{} = \"{value}\"\n", param.name)
            };
        }
        text
    }
}

/// A TOML value as the text that [`Config::set`] takes.
fn text_of(name: &str, value: &Value) -> Result<String, ConfigError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Boolean(switch) => Ok(switch.to_string()),
        Value::Datetime(_) | Value::Array(_) | Value::Table(_) => Err(ConfigError::new(
            name,
            &value.to_string(),
            "must be a string, a number, true or false",
        )),
    }
}

/// A map from `profile`, `preset` and every parameter to its text.
impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(PARAMS.len() + 2))?;
        map.serialize_entry("profile", self.profile.name())?;
        map.serialize_entry("preset", self.preset)?;
        for param in PARAMS.iter() {
            map.serialize_entry(param.name, &param.get(self))?;
        }
        map.end()
    }
}
