//! `presets`, `config show` and `completions`: what the program knows about itself.

use clap::CommandFactory;
use clap_complete::Shell;
use manypath::config::{Config, Explained, Origin, Preset, Profile, Rows};
use serde_json::json;

use crate::args::{Cli, ReportArgs, ShowArgs, TransportArgs};
use crate::failure::Result;
use crate::screen::output;
use crate::screen::sheet::{beside, columns, wrapped};
use crate::settings;

/// `manypath presets`.
pub(crate) fn presets(report: &ReportArgs) -> Result<()> {
    let default = settings::config(&TransportArgs::default())?;
    if report.json {
        let presets: Vec<_> = Preset::ALL.iter().map(|p| preset_json(p, &default)).collect();
        let profiles: Vec<_> = Profile::ALL
            .iter()
            .map(|p| {
                let is_default = *p == Profile::default();
                json!({ "name": p.name(), "description": p.description(), "default": is_default })
            })
            .collect();
        return output::print(&format!(
            "{}\n",
            json!({ "presets": presets, "profiles": profiles })
        ));
    }
    output::print(&presets_text(&default, columns()))
}

/// The presets and profiles; `default` is what a command uses without options.
fn presets_text(default: &Config, columns: Option<usize>) -> String {
    let mut text = String::from("Presets (--preset NAME):\n");
    for preset in Preset::ALL {
        text += &format!("  {}{}\n", preset.name, mark(preset.name == default.preset));
        let values = |values: &[(&str, &str)]| {
            values.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" ")
        };
        let mut lines = vec![
            preset.description.to_owned(),
            format!("source: {}", preset.source),
            format!("sets: {}", values(preset.overrides)),
        ];
        for (profile, own) in preset.for_profiles {
            lines.push(format!("with {}: {}", profile.name(), values(own)));
        }
        for line in lines {
            text += &wrapped(&format!("      {line}\n"), columns, 2);
        }
    }
    text += "\nProfiles (--profile NAME):\n";
    for profile in Profile::ALL {
        let description = format!("{}{}", profile.description(), mark(profile == default.profile));
        text += &beside(&format!("  {:8} ", profile.name()), &description, columns);
        text.push('\n');
    }
    text
}

/// Marks the default in a list.
fn mark(is_default: bool) -> &'static str {
    if is_default { " (default)" } else { "" }
}

fn preset_json(preset: &Preset, default: &Config) -> serde_json::Value {
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
        "default": preset.name == default.preset,
        "parameters": object(preset.overrides),
        "for_profiles": for_profiles,
    })
}

/// `manypath config show`.
pub(crate) fn config(args: &ShowArgs) -> Result<()> {
    let config = settings::config(&args.transport)?;
    if args.report.json {
        return output::print(&format!("{}\n", config_json(&config)));
    }
    let docs = args.report.verbose > 0;
    let rows = if args.all { Rows::All } else { Rows::Usual };
    // The library's table has a line for each parameter, which only programs want that long.
    let mut text = match columns() {
        Some(columns) => parameters(&config, rows, docs, columns),
        None => config.table(rows, docs),
    };
    if !args.all {
        let note = "Parameters that only repeat a paper or a simulator are left out: --all shows them, too.";
        text += &wrapped(&format!("\n{note}\n"), columns(), 0);
    }
    output::print(&text)
}

/// Least columns for the values that a parameter may take, beside its value.
const ALLOWED_MIN: usize = 24;

fn is_shown(row: &Explained, rows: Rows) -> bool {
    rows == Rows::All || row.hidden.is_none() || row.origin == Origin::Override
}

/// The parameters in lines of at most `columns`: name, value, and the values it may have.
fn parameters(config: &Config, rows: Rows, docs: bool, columns: usize) -> String {
    let all = config.explain();
    let shown: Vec<_> = all.iter().filter(|row| is_shown(row, rows)).collect();
    let widest = |of: fn(&Explained) -> usize| shown.iter().map(|row| of(row)).max().unwrap_or(0);
    let (name, value) = (widest(|row| row.name.len()), widest(|row| row.value.len()));
    let mut text = format!("profile {}, preset {}\n", config.profile.name(), config.preset);
    let mut group = None;
    for row in shown {
        if group.replace(row.group) != Some(row.group) {
            text += &format!("\n{}:\n", row.group.title());
        }
        let lead = format!("{:name$}  {:value$}  ", row.name, row.value);
        let mut allowed = format!("{} ({})", row.range, row.unit);
        if row.origin != Origin::Profile {
            allowed = format!("{allowed}; {}, not {}", row.origin, row.default);
        }
        text += &match columns.checked_sub(lead.len()) {
            Some(rest) if rest >= ALLOWED_MIN => beside(&lead, &allowed, Some(columns)),
            _ => format!("{}\n{}", lead.trim_end(), beside("    ", &allowed, Some(columns))),
        };
        text.push('\n');
        if docs {
            let hidden = row.hidden.map_or(String::new(), |why| format!(" [{why}]"));
            let doc = format!("{} [{}]{hidden}", row.doc, row.source);
            text += &(beside("    ", &doc, Some(columns)) + "\n");
        }
    }
    text
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
    output::print(&String::from_utf8_lossy(&script))
}

#[cfg(test)]
mod tests {
    use manypath::{ConnectTarget, RelayUse, Security};

    use super::*;
    use crate::args::{BindArgs, ReportArgs};
    use crate::connect::near::Near;
    use crate::connect::transport::{self, Listening};
    use crate::screen::Screen;

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
        let endpoint = if accept {
            let listening = Listening {
                bind: &loopback,
                port: 0,
                ip: None,
                relays: Vec::new(),
                relay_use: RelayUse::Beside,
                relay_numbers: false,
            };
            transport::open(config, listening, Security::Plain).unwrap()
        } else {
            let screen = Screen::new(&ReportArgs { json: false, quiet: true, verbose: 0 });
            let bind = BindArgs { bind: loopback.to_vec() };
            let near = Near::new(config, Security::Plain, &screen).bind(&bind);
            near.open().unwrap().endpoint
        };
        (shown, endpoint)
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
