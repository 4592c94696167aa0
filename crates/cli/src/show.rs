//! `presets`, `config show` and `completions`: what the program knows about itself.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;
use manypath::config::{Config, Preset, Profile, Rows};
use serde_json::json;

use crate::args::{Cli, ReportArgs, ShowArgs};
use crate::failure::{Failure, Result};
use crate::settings;

/// Writes to standard output; a reader that went away (`| head`) is no error.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to standard output: {e}")))
        }
        _ => Ok(()),
    }
}

/// Where results go.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Out {
    /// To standard output.
    Output,
    /// To standard error: standard output has the content of a file.
    Error,
}

impl Out {
    /// Writes there. Nobody who reads any more is no error.
    pub(crate) fn print(self, text: &str) -> Result<()> {
        match self {
            Out::Output => print(text),
            Out::Error => {
                let _ = io::stderr().lock().write_all(text.as_bytes());
                Ok(())
            }
        }
    }
}

/// `manypath presets`.
pub(crate) fn presets(report: &ReportArgs) -> Result<()> {
    if report.json {
        let presets: Vec<_> = Preset::ALL.iter().map(preset_json).collect();
        let profiles: Vec<_> = Profile::ALL
            .iter()
            .map(|p| {
                let is_default = *p == Profile::default();
                json!({ "name": p.name(), "description": p.description(), "default": is_default })
            })
            .collect();
        return print(&format!("{}\n", json!({ "presets": presets, "profiles": profiles })));
    }
    let mut text = String::from("Presets (--preset NAME):\n");
    for preset in Preset::ALL {
        let default = if preset.name == Preset::DEFAULT.name { " (default)" } else { "" };
        text += &format!("  {:10} {}{default}\n", preset.name, preset.description);
        text += &format!("  {:10} source: {}\n", "", preset.source);
        let settings: Vec<_> = preset.overrides.iter().map(|(k, v)| format!("{k}={v}")).collect();
        text += &format!("  {:10} sets: {}\n", "", settings.join(" "));
        for (profile, values) in preset.for_profiles {
            let values: Vec<_> = values.iter().map(|(k, v)| format!("{k}={v}")).collect();
            text += &format!("  {:10} with {}: {}\n", "", profile.name(), values.join(" "));
        }
    }
    text += "\nProfiles (--profile NAME):\n";
    for profile in Profile::ALL {
        let default = if profile == Profile::default() { " (default)" } else { "" };
        text += &format!("  {:10} {}{default}\n", profile.name(), profile.description());
    }
    print(&text)
}

fn preset_json(preset: &Preset) -> serde_json::Value {
    let object = |values: &[(&str, &str)]| -> serde_json::Map<_, _> {
        values.iter().map(|(k, v)| ((*k).to_owned(), json!(v))).collect()
    };
    let for_profiles: serde_json::Map<_, _> = preset
        .for_profiles
        .iter()
        .map(|(profile, values)| (profile.name().to_owned(), json!(object(values))))
        .collect();
    json!({
        "name": preset.name,
        "description": preset.description,
        "source": preset.source,
        "default": preset.name == Preset::DEFAULT.name,
        "parameters": object(preset.overrides),
        "for_profiles": for_profiles,
    })
}

/// `manypath config show`.
pub(crate) fn config(args: &ShowArgs) -> Result<()> {
    let config = settings::config(&args.transport)?;
    if args.report.json {
        return print(&format!("{}\n", config_json(&config)));
    }
    let docs = args.report.verbose > 0;
    if args.all {
        return print(&config.table(Rows::All, docs));
    }
    let mut text = config.table(Rows::Usual, docs);
    text += "\nParameters that only repeat a paper or a simulator are left out: --all shows them, too.\n";
    print(&text)
}

fn config_json(config: &Config) -> serde_json::Value {
    json!({
        "profile": config.profile.name(),
        "preset": config.preset,
        "parameters": config.explain(),
    })
}

/// `manypath completions`.
pub(crate) fn completions(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "manypath", &mut script);
    print(&String::from_utf8_lossy(&script))
}

#[cfg(test)]
mod tests {
    use manypath::{ConnectTarget, Security};

    use super::*;
    use crate::args::TransportArgs;
    use crate::transport;

    /// The values that `config show` prints for these options, and an endpoint that a command opens
    /// with them.
    fn shown_and_opened(
        profile: &str,
        preset: &str,
        accept: bool,
    ) -> (serde_json::Value, manypath::Endpoint) {
        let (profile, preset) = (Some(profile.to_owned()), Some(preset.to_owned()));
        let args = TransportArgs { preset, profile, set: vec![], config: None };
        let shown = config_json(&settings::config(&args).unwrap());
        let (config, loopback) = (settings::config(&args).unwrap(), ["127.0.0.1".parse().unwrap()]);
        let endpoint = match accept {
            true => transport::open(config, &loopback, 0, Security::Plain),
            false => transport::open_via(config, &loopback, vec![], Security::Plain),
        };
        (shown, endpoint.unwrap())
    }

    #[tokio::test]
    async fn what_is_shown_is_what_both_ends_run() {
        for profile in Profile::ALL {
            for preset in Preset::ALL {
                let (at_server, server) = shown_and_opened(profile.name(), preset.name, true);
                let (at_client, client) = shown_and_opened(profile.name(), preset.name, false);
                let target = ConnectTarget::new(server.local_addresses());
                let (ours, theirs) = tokio::join!(client.connect(target), server.accept());
                let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
                for (shown, association) in [(at_client, &ours), (at_server, &theirs)] {
                    let runs = config_json(&association.config().expect("it is open"));
                    assert_eq!(shown, runs, "{} {}", profile.name(), preset.name);
                }
            }
        }
    }
}
