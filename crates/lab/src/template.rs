//! The folder of a new experiment, to fill in.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::LabError;
use crate::experiment::Experiments;

const FILES: [(&str, &str); 4] = [
    ("README.md", include_str!("../template/README.md")),
    ("scenario.toml", include_str!("../template/scenario.toml")),
    ("claims.toml", include_str!("../template/claims.toml")),
    ("figures.toml", include_str!("../template/figures.toml")),
];

/// Longest name, in bytes.
const LONGEST_NAME: usize = 64;

/// Writes a new experiment that runs as it is: `root/group/name`. Returns its folder.
///
/// # Errors
///
/// If a name is not one of lower-case letters, digits and hyphens, `known` has an experiment of
/// that name, or the folder exists or cannot be written.
pub fn create(
    root: &Path,
    group: &str,
    name: &str,
    known: &Experiments,
) -> Result<PathBuf, LabError> {
    check(group)?;
    check(name)?;
    if let Some(other) = known.get(name).filter(|other| !other.is_built_in) {
        let what = format!("`{name}` is an experiment already");
        return Err(LabError::file(&other.folder, what, "choose another name"));
    }
    let (above, folder) = (root.join(group), root.join(group).join(name));
    let bad = |error: std::io::Error| {
        let remedy = match error.kind() {
            ErrorKind::AlreadyExists => "choose another name, or remove it",
            _ => "name a folder that can be written with `--experiments`",
        };
        LabError::file(&folder, error, remedy)
    };
    std::fs::create_dir_all(&above).map_err(bad)?;
    // Of two commands at a time only one gets it.
    std::fs::create_dir(&folder).map_err(bad)?;
    for (file, text) in FILES {
        std::fs::write(folder.join(file), text.replace("NAME", name)).map_err(bad)?;
    }
    Ok(folder)
}

fn check(name: &str) -> Result<(), LabError> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_named = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    // Selects all experiments.
    if name == "all" || !is_named || name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
        return Err(LabError {
            place: name.to_owned(),
            what: "not the name of an experiment or a group".to_owned(),
            remedy: format!(
                "use at most {LONGEST_NAME} lower-case letters, digits and hyphens, such as wifi-loss"
            ),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
