//! Every parameter of every profile with every preset, as a text under version control: a changed
//! value is a line of a diff.
//!
//! `UPDATE_GOLDEN=1 cargo test -p manypath-proto --lib config::golden` rewrites it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use super::{Config, PARAMS, Preset, Profile};

/// Parameters in alphabetical order, so that reordering [`PARAMS`] changes nothing.
fn values(config: &Config) -> BTreeMap<&'static str, String> {
    PARAMS.iter().map(|param| (param.name, param.get(config))).collect()
}

fn section(text: &mut String, title: &str, config: &Config, base: &BTreeMap<&'static str, String>) {
    let _ = writeln!(text, "\n[{title}]");
    for (name, value) in
        values(config).iter().filter(|(name, value)| base.get(*name) != Some(*value))
    {
        let _ = writeln!(text, "{name} = {value}");
    }
}

/// The profile rfc9260, then the differences of each other profile from it, and of each preset from
/// its profile.
fn table() -> String {
    let mut text = "# Written by the test config::golden: see there.\n".to_owned();
    let constants = |profile| Config::from_profile(profile);
    section(&mut text, "rfc9260", &constants(Profile::Rfc9260), &BTreeMap::new());
    for profile in &Profile::ALL[1..] {
        let base = values(&constants(Profile::Rfc9260));
        section(&mut text, profile.name(), &constants(*profile), &base);
    }
    for profile in Profile::ALL {
        let base = values(&constants(profile));
        for preset in Preset::ALL {
            let title = format!("{} {}", profile.name(), preset.name);
            section(&mut text, &title, &Config::of(profile, preset), &base);
        }
    }
    text
}

#[test]
fn values_of_profiles_and_presets_are_as_they_were() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/config/golden.txt");
    let now = table();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, now).expect("a file");
        return;
    }
    let kept = std::fs::read_to_string(&file).expect("a file");
    for (kept, now) in kept.lines().zip(now.lines()) {
        assert_eq!(kept, now, "UPDATE_GOLDEN=1 renews src/config/golden.txt");
    }
    assert_eq!(kept.lines().count(), now.lines().count());
}
