//! `presets`, `config show`, `completions` and `man`: what the program knows about itself.

use std::io::{self, Write};

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use manypath::config::{Config, Preset, Profile};
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

/// `manypath presets`.
pub(crate) fn presets(report: &ReportArgs) -> Result<()> {
    if report.json {
        let presets: Vec<_> = Preset::ALL.iter().map(preset_json).collect();
        let profiles: Vec<_> = Profile::ALL
            .iter()
            .map(|p| json!({ "name": p.name(), "description": p.description() }))
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
    }
    text += "\nProfiles (--profile NAME):\n";
    for profile in Profile::ALL {
        text += &format!("  {:10} {}\n", profile.name(), profile.description());
    }
    text += "\nThe command line's default profile is fast, the library's rfc9260.\n";
    print(&text)
}

fn preset_json(preset: &Preset) -> serde_json::Value {
    let settings: serde_json::Map<_, _> =
        preset.overrides.iter().map(|(k, v)| ((*k).to_owned(), json!(v))).collect();
    json!({
        "name": preset.name,
        "description": preset.description,
        "source": preset.source,
        "default": preset.name == Preset::DEFAULT.name,
        "parameters": settings,
    })
}

/// `manypath config show`.
pub(crate) fn config(args: &ShowArgs) -> Result<()> {
    let config = settings::config(&args.transport)?;
    if args.report.json {
        let parameters = config.explain();
        let object = json!({
            "profile": config.profile.name(),
            "preset": config.preset,
            "parameters": parameters,
        });
        return print(&format!("{object}\n"));
    }
    print(&table(&config, args.report.verbose > 0))
}

/// The parameters in aligned columns, and with `docs` a line that explains each.
fn table(config: &Config, docs: bool) -> String {
    let rows = config.explain();
    let width =
        |f: fn(&manypath::config::Explained) -> usize| rows.iter().map(f).max().unwrap_or(0);
    let name = width(|r| r.name.len());
    let value = width(|r| r.value.len());
    let default = width(|r| r.default.len()).max("profile's".len());
    let mut text = format!("profile {}, preset {}\n\n", config.profile.name(), config.preset);
    text += &format!(
        "{:name$}  {:value$}  {:default$}  from      allowed\n",
        "parameter", "value", "profile's"
    );
    for row in &rows {
        let from = row.origin.to_string();
        let head = format!("{:name$}  {:value$}  {:default$}", row.name, row.value, row.default);
        text += &format!("{head}  {from:8}  {} ({}) [{}]\n", row.range, row.unit, row.source);
        if docs {
            text += &format!("{:name$}    {}\n", "", row.doc);
        }
    }
    text
}

/// `manypath completions`.
pub(crate) fn completions(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "manypath", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// `manypath man`: one page with a section for each command.
pub(crate) fn man() -> Result<()> {
    let mut command = Cli::command();
    command.build();
    let mut page = Vec::new();
    let write = |page: &mut Vec<u8>| -> io::Result<()> {
        let man = clap_mangen::Man::new(command.clone());
        man.render_title(page)?;
        man.render_name_section(page)?;
        man.render_synopsis_section(page)?;
        man.render_description_section(page)?;
        render_commands(&command, page)?;
        man.render_extra_section(page)?;
        man.render_version_section(page)
    };
    write(&mut page).map_err(|e| Failure::failed(format!("cannot write the manual page: {e}")))?;
    print(&String::from_utf8_lossy(&page))
}

/// The options of each command below `parent`, deepest commands only, each under its own heading.
fn render_commands(parent: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    for command in parent.get_subcommands().filter(|c| !c.is_hide_set()) {
        if command.has_subcommands() {
            render_commands(command, page)?;
            continue;
        }
        let title = command.get_bin_name().unwrap_or(command.get_name()).to_uppercase();
        let mut section = Vec::new();
        let man = clap_mangen::Man::new(command.clone());
        man.render_synopsis_section(&mut section)?;
        man.render_description_section(&mut section)?;
        man.render_options_section(&mut section)?;
        man.render_extra_section(&mut section)?;
        let section = String::from_utf8_lossy(&section).replace(".SH ", ".SS ");
        write!(page, ".SH \"{title}\"\n{section}")?;
    }
    Ok(())
}
