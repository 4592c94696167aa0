//! The origin of each value of a configuration.

use std::fmt;

use serde::Serialize;

use super::{Config, Group, PARAMS, Param, Preset, Profile};

/// The origin of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Origin {
    /// The profile.
    Profile,
    /// The preset.
    Preset,
    /// A file, the command line or the program.
    Override,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Profile => "profile",
            Self::Preset => "preset",
            Self::Override => "override",
        })
    }
}

/// One parameter of a configuration, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explained {
    /// Name of the parameter.
    pub name: &'static str,
    /// Its subject.
    pub group: Group,
    /// Its value.
    pub value: String,
    /// Unit or kind of its value.
    pub unit: &'static str,
    /// The allowed values.
    pub range: String,
    /// Its value in the profile alone.
    pub default: String,
    /// Where its value comes from.
    pub origin: Origin,
    /// Where it is specified.
    pub source: &'static str,
    /// Why users leave it alone, such as "repeats ns-2"; `None` for one that users set.
    #[serde(rename = "rarely")] // the name that scripts know
    pub hidden: Option<&'static str>,
    /// Its meaning.
    pub doc: &'static str,
}

impl Config {
    /// Every parameter with its group, value, unit, range, default, origin and source.
    pub fn explain(&self) -> Vec<Explained> {
        let constants = Self::from_profile(self.profile);
        let preset = Preset::from_name(self.preset).unwrap_or(Preset::DEFAULT);
        let of_preset = Self::of(self.profile, preset);
        let explain = |param: &Param| {
            let (value, default) = (param.get(self), param.get(&constants));
            let is_of_preset = preset.values(self.profile).any(|(name, _)| name == param.name);
            let origin = if value != param.get(&of_preset) {
                Origin::Override
            } else if is_of_preset || value != default {
                Origin::Preset
            } else {
                Origin::Profile
            };
            Explained {
                name: param.name,
                group: param.group,
                value,
                unit: param.unit,
                range: param.allowed(),
                default,
                origin,
                source: param.source,
                hidden: param.hidden,
                doc: param.doc,
            }
        };
        PARAMS.iter().map(explain).collect()
    }
}

/// The rows of [`Config::table`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// The parameters that users set, and those that were overridden.
    Usual,
    /// Every parameter.
    All,
}

impl Config {
    /// A table for people, with a row for each parameter and a heading for each group. With `docs`,
    /// a line below each row says what the parameter means.
    pub fn table(&self, rows: Rows, docs: bool) -> String {
        let all = self.explain();
        let is_shown = |row: &&Explained| {
            rows == Rows::All || row.hidden.is_none() || row.origin == Origin::Override
        };
        let shown: Vec<_> = all.iter().filter(is_shown).collect();
        let width = |cell: fn(&Explained) -> usize, head: &str| {
            shown.iter().map(|row| cell(row)).max().unwrap_or(0).max(head.len())
        };
        let heads = ["parameter", "value", "profile's"];
        let name = width(|row| row.name.len(), heads[0]);
        let value = width(|row| row.value.len(), heads[1]);
        let default = width(|row| row.default.len(), heads[2]);
        let mark = |is_default| if is_default { " (default)" } else { "" };
        let profile = mark(self.profile == Profile::default());
        let preset = mark(self.preset == Preset::DEFAULT.name);
        let mut text = format!("profile {}{profile}, ", self.profile.name());
        text += &format!("preset {}{preset}\n\n", self.preset);
        let [a, b, c] = heads;
        text += &format!("{a:name$}  {b:value$}  {c:default$}  from      allowed\n");
        let mut group = None;
        for row in &shown {
            if group.replace(row.group) != Some(row.group) {
                text += &format!("\n{}:\n", row.group.title());
            }
            let (a, b, c, from) = (row.name, &row.value, &row.default, row.origin.to_string());
            let allowed = format!("{} ({}) [{}]", row.range, row.unit, row.source);
            text += &format!("{a:name$}  {b:value$}  {c:default$}  {from:8}  {allowed}\n");
            if docs {
                let hidden = row.hidden.map_or(String::new(), |why| format!(" [{why}]"));
                text += &format!("{:name$}    {}{hidden}\n", "", row.doc);
            }
        }
        text
    }
}

/// The [table](Config::table) of every parameter.
impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table(Rows::All, false))
    }
}
