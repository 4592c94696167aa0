//! From the command line to the engine's configuration.

use std::path::Path;
use std::time::Duration;

use manypath::config::{Config, units};

use manypath_trust::Erased;

use crate::args::TransportArgs;
use crate::connect::via;
use crate::failure::{Failure, Result};

/// Parameters in place of those of the default preset where paths lead through relays. Such paths
/// often share a bottleneck, so each is tried, not only those whose delays change alike.
const WITH_RELAYS: &[(&str, &str)] = &[("shared_congestion", "trial")];

/// The configuration that `args` and its file describe; the command line wins over the file.
pub(crate) fn config(args: &TransportArgs) -> Result<Config> {
    config_with(args, &[])
}

/// The configuration of a command that may send through relays.
pub(crate) fn config_via(args: &TransportArgs, via: &[Erased<String>]) -> Result<Config> {
    let defaults: &[(&str, &str)] = if via::wanted(via).is_empty() { &[] } else { WITH_RELAYS };
    config_with(args, defaults)
}

/// The same with `defaults` of a command in place of those of the default preset; they do not apply
/// where the user names a preset.
pub(crate) fn config_with(args: &TransportArgs, defaults: &[(&str, &str)]) -> Result<Config> {
    let mut overrides = overrides(args)?;
    if !overrides.iter().any(|(key, _)| key == "preset") {
        let defaults = defaults.iter().map(|&(key, value)| (key.to_owned(), value.to_owned()));
        overrides.splice(0..0, defaults);
    }
    let config = Config::default_with(&overrides);
    // What runs, so that `config show` prints it.
    config.and_then(|config| config.for_sockets(0)).map_err(|e| {
        Failure::usage(e.to_string()).hint("see `manypath config show` and `manypath presets`")
    })
}

/// Keys and values that the user wants, the later ones before the earlier ones.
fn overrides(args: &TransportArgs) -> Result<Vec<(String, String)>> {
    let mut overrides = match &args.config {
        Some(path) => from_file(path)?,
        None => Vec::new(),
    };
    let named = [("profile", &args.profile), ("preset", &args.preset)];
    for (key, value) in named {
        overrides.extend(value.iter().map(|value| (key.to_owned(), value.clone())));
    }
    for setting in &args.set {
        let (key, value) = setting.split_once('=').ok_or_else(|| {
            Failure::usage(format!("--set {setting}: not KEY=VALUE"))
                .hint("write it like --set rto_min=100ms")
        })?;
        let key = key.trim();
        let key = key.strip_prefix("transport.").unwrap_or(key);
        overrides.push((key.to_owned(), value.trim().to_owned()));
    }
    Ok(overrides)
}

fn from_file(path: &Path) -> Result<Vec<(String, String)>> {
    let in_file = |e: &dyn std::fmt::Display| Failure::usage(format!("{}: {e}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| in_file(&e))?;
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| in_file(&e))?;
    let mut overrides = Vec::new();
    for (key, value) in &table {
        match (key.as_str(), value) {
            ("transport", toml::Value::Table(transport)) => {
                overrides = Config::overrides(transport).map_err(|e| in_file(&e))?;
            }
            _ => {
                let what = format!("{key} is not a table this file can have");
                return Err(in_file(&what).hint("put the parameters under [transport]"));
            }
        }
    }
    Ok(overrides)
}

/// A duration given to the option `option`.
pub(crate) fn duration(option: &str, text: &str) -> Result<Duration> {
    units::parse_duration(text).map_err(|e| Failure::usage(format!("{option}: {e}")))
}

/// A size in bytes given to the option `option`.
pub(crate) fn size(option: &str, text: &str) -> Result<u64> {
    units::parse_size(text).map_err(|e| Failure::usage(format!("{option}: {e}")))
}

/// A rate in bit/s given to the option `option`; at least 1 kbit/s.
pub(crate) fn rate(option: &str, text: &str) -> Result<u64> {
    let rate = units::parse_rate(text).map_err(|e| Failure::usage(format!("{option}: {e}")))?;
    if rate < 1000 {
        return Err(Failure::usage(format!("{option}: {text} is less than 1 kbit/s")));
    }
    Ok(rate)
}

/// A ratio from 0 to 1 given to the option `option`.
pub(crate) fn ratio(option: &str, text: &str) -> Result<f64> {
    units::parse_ratio(text).map_err(|e| Failure::usage(format!("{option}: {e}")))
}

/// The value of `--stall-timeout`; `None` for "off".
pub(crate) fn stall_limit(text: &str) -> Result<Option<Duration>> {
    match text {
        "off" => Ok(None),
        text => duration("--stall-timeout", text)
            .map(|limit| Some(limit.max(Duration::from_millis(20)))),
    }
}

#[cfg(test)]
mod tests {
    use manypath::{EndpointOptions, Security};

    use super::*;

    fn args() -> TransportArgs {
        TransportArgs { preset: None, profile: None, set: vec![], config: None }
    }

    #[test]
    fn the_command_line_wins_over_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("c.toml");
        let text = "[transport]\npreset = \"cmt\"\nprofile = \"rfc9260\"\nrto_min = \"300 ms\"\nrto_max = \"9 s\"\n";
        std::fs::write(&file, text).unwrap();
        let set = vec!["transport.rto_min=200ms".to_owned()];
        let args = TransportArgs { preset: Some("sctp".into()), set, config: Some(file), ..args() };
        let config = config(&args).unwrap();
        assert_eq!((config.preset, config.profile.name()), ("sctp", "rfc9260"));
        assert_eq!(config.rto_min, Duration::from_millis(200));
        assert_eq!(config.rto_max, Duration::from_secs(9));
    }

    /// The library opens what the commands open: every field is the same.
    #[test]
    fn the_default_is_the_librarys() {
        let of_command = config(&args()).unwrap();
        assert_eq!((of_command.preset, of_command.profile.name()), ("adaptive", "fast"));
        for options in
            [EndpointOptions::client(Security::Plain), EndpointOptions::server(Security::Plain)]
        {
            assert_eq!(options.config.for_sockets(0).unwrap(), of_command);
        }
    }

    #[test]
    fn a_preset_alone_is_on_the_default_profile() {
        let config = config(&TransportArgs { preset: Some("cmt".into()), ..args() }).unwrap();
        assert_eq!((config.preset, config.profile.name()), ("cmt", "fast"));
    }

    #[test]
    fn with_relays_the_preset_is_the_same_and_every_path_is_tried() {
        let of = |via: &[&str], preset: Option<&str>| {
            let via: Vec<Erased<String>> = via.iter().map(|&relay| relay.into()).collect();
            let args = TransportArgs { preset: preset.map(str::to_owned), ..args() };
            let config = config_via(&args, &via).unwrap();
            (config.preset, config.get("shared_congestion").unwrap())
        };
        let relay = ["turn:ann:secret@192.0.2.1"];
        assert_eq!(of(&relay, None), ("adaptive", "trial".to_owned()));
        assert_eq!(of(&[], None), ("adaptive", "trial_of_alike".to_owned()));
        assert_eq!(of(&relay, Some("cmt")), ("cmt", "off".to_owned()));
    }

    #[test]
    fn defaults_of_a_command_hold_unless_a_preset_is_named() {
        let of = |preset: Option<&str>| {
            let args = TransportArgs { preset: preset.map(str::to_owned), ..args() };
            let config = config_with(&args, &[("shared_congestion", "off")]).unwrap();
            config.get("shared_congestion").unwrap()
        };
        assert_eq!(of(None), "off");
        assert_eq!(of(Some("adaptive")), "trial_of_alike");
    }

    #[test]
    fn wrong_settings_are_usage_errors_that_name_them() {
        for (set, named) in
            [("rto_min", "KEY=VALUE"), ("rto_mim=1s", "rto_min"), ("rto_min=x", "rto_min")]
        {
            let args = TransportArgs { set: vec![set.to_owned()], ..args() };
            let failure = config(&args).unwrap_err();
            assert_eq!(failure.exit, crate::failure::Exit::Usage);
            assert!(failure.message.contains(named), "{failure}");
        }
    }

    #[test]
    fn off_is_no_limit_to_stalls() {
        assert_eq!(stall_limit("off").unwrap(), None);
        assert_eq!(stall_limit("90 s").unwrap(), Some(Duration::from_secs(90)));
        assert_eq!(stall_limit("soon").unwrap_err().exit, crate::failure::Exit::Usage);
    }
}
