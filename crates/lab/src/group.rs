//! Groups of runs by what was observed in them, where nothing that was set says it.

use serde::Deserialize;

use crate::cell::Cell;

/// The value of runs in which the column is not known.
pub const UNKNOWN: &str = "unknown";

/// A `[[group]]` table as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupEntry {
    name: String,
    of: String,
    width: Option<String>,
}

/// A parameter whose value is not set but observed: runs are grouped by it instead of by what was
/// swept.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The name of the parameter.
    pub name: String,
    /// The field or derived column that gives its value.
    pub of: String,
    width: Option<Width>,
}

/// How wide the groups of a number are.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Width {
    /// In the column's unit.
    step: f64,
    /// Values are shown as percentages.
    is_percent: bool,
}

/// Where a group stands among the others of its parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Its number: groups of a width are ordered by it.
    Step(i64),
    /// In the order in which they are found.
    Found,
}

impl Group {
    /// Checks what was written.
    ///
    /// # Errors
    ///
    /// What is wrong.
    pub fn new(entry: GroupEntry) -> Result<Group, String> {
        let GroupEntry { name, of, width } = entry;
        if ["variant", "field", "seed"].contains(&name.as_str()) || name.is_empty() {
            return Err(format!("a group cannot be named `{name}`"));
        }
        Ok(Group { name, of, width: width.as_deref().map(read_width).transpose()? })
    }

    /// The group of a run with that value in the column: the multiple of the width that is nearest,
    /// of two the larger. Without a width every value is a group.
    pub fn value(&self, cell: &Cell) -> (Place, String) {
        let Some(width) = self.width else {
            let text = cell.text();
            let text = if text.is_empty() { UNKNOWN.to_owned() } else { text.into_owned() };
            return (Place::Found, text);
        };
        let Some(number) = cell.number() else { return (Place::Found, UNKNOWN.to_owned()) };
        let step = (number / width.step + 0.5).floor();
        let scale = if width.is_percent { 100.0 } else { 1.0 };
        // Twelve digits hide that a multiple of 0.01 is not exact.
        let shown = (step * width.step * scale * 1e12).round() / 1e12;
        let unit = if width.is_percent { " %" } else { "" };
        (Place::Step(step as i64), format!("{shown}{unit}"))
    }
}

fn read_width(text: &str) -> Result<Width, String> {
    let (number, is_percent) = match text.strip_suffix('%') {
        Some(number) => (number.trim(), true),
        None => (text.trim(), false),
    };
    let step = number.parse::<f64>().ok().filter(|step| step.is_finite() && *step > 0.0);
    let step = step.ok_or_else(|| format!("`width = \"{text}\"`: write \"1 %\", or a number"))?;
    Ok(Width { step: if is_percent { step / 100.0 } else { step }, is_percent })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(text: &str) -> Result<Group, String> {
        Group::new(toml::from_str(text).map_err(|e: toml::de::Error| e.message().to_owned())?)
    }

    #[test]
    fn a_value_belongs_to_the_nearest_multiple_of_the_width() {
        let percent = group("name = 'loss'\nof = 'x'\nwidth = '1 %'").unwrap();
        let of = |value: f64| percent.value(&Cell::Float(value));
        assert_eq!(of(0.0), (Place::Step(0), "0 %".to_owned()));
        assert_eq!(of(0.0149), (Place::Step(1), "1 %".to_owned()));
        assert_eq!(of(0.015), (Place::Step(2), "2 %".to_owned()));
        assert_eq!(of(0.0699), (Place::Step(7), "7 %".to_owned()));
        assert_eq!(percent.value(&Cell::Null), (Place::Found, UNKNOWN.to_owned()));
        let plain = group("name = 'loss'\nof = 'x'\nwidth = '0.25'").unwrap();
        assert_eq!(plain.value(&Cell::Float(-0.3)), (Place::Step(-1), "-0.25".to_owned()));
    }

    #[test]
    fn without_a_width_every_value_is_a_group() {
        let group = group("name = 'policy'\nof = 'preset'").unwrap();
        assert_eq!(group.value(&Cell::Text("cmt".to_owned())), (Place::Found, "cmt".to_owned()));
        assert_eq!(group.value(&Cell::Int(3)), (Place::Found, "3".to_owned()));
    }

    #[test]
    fn errors_say_what_is_wrong() {
        for (text, error) in [
            ("name = 'a'\nof = 'x'\nwidth = '0 %'", "`width = \"0 %\"`: write"),
            ("name = 'a'\nof = 'x'\nwidth = 'wide'", "write \"1 %\", or a number"),
            ("name = 'seed'\nof = 'x'", "cannot be named `seed`"),
            ("name = 'a'", "missing field `of`"),
        ] {
            let found = group(text).unwrap_err();
            assert!(found.contains(error), "{text}: {found}");
        }
    }
}
