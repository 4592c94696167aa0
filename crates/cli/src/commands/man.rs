//! `manypath man`: one page with a section for each command.

use std::io::{self, Write};

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::Cli;
use crate::failure::{Failure, Result};
use crate::screen::output;

/// `manypath man`.
pub(crate) fn run() -> Result<()> {
    let page = page().map_err(|e| Failure::failed(format!("cannot write the manual page: {e}")))?;
    output::print(&String::from_utf8_lossy(&page))
}

fn page() -> io::Result<Vec<u8>> {
    // The commit would change the page with each build.
    let mut command = Cli::command().long_version(None::<&str>);
    command.build();
    let mut page = Vec::new();
    // No date, as the page is made with each build. clap_mangen would leave the argument out.
    let version = command.get_version().unwrap_or_default();
    writeln!(page, ".TH manypath 1 \"\" \"manypath {version}\" \"User Commands\"")?;
    let man = Man::new(command.clone());
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    render_commands(&command, &mut page)?;
    verbatim_section("SH", &command, &mut page)?;
    // The empty line between two breaks is a space already.
    Ok(String::from_utf8_lossy(&page).replace(".br\n\n.br\n", ".sp\n").into_bytes())
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
        let man = Man::new(command.clone());
        man.render_synopsis_section(&mut section)?;
        man.render_description_section(&mut section)?;
        man.render_options_section(&mut section)?;
        let section = String::from_utf8_lossy(&section).replace(".SH ", ".SS ");
        write!(page, ".SH \"{title}\"\n{section}")?;
        verbatim_section("SS", command, page)?;
    }
    Ok(())
}

/// The text after the options, such as examples, line by line as it is; its first line is the
/// heading.
fn verbatim_section(level: &str, command: &Command, page: &mut Vec<u8>) -> io::Result<()> {
    let Some(text) = command.get_after_long_help().or_else(|| command.get_after_help()) else {
        return Ok(());
    };
    let text = text.to_string();
    let (heading, lines) = text.split_once('\n').unwrap_or((&text, ""));
    let heading = heading.trim_end_matches(':').to_uppercase();
    writeln!(page, ".{level} \"{heading}\"\n.nf")?;
    for line in lines.lines() {
        writeln!(page, "{}", escaped(line))?;
    }
    writeln!(page, ".fi")
}

/// A line of text for roff: its characters as in a terminal, fit to be copied, and no request.
fn escaped(line: &str) -> String {
    let mut text = String::from(if line.starts_with(['.', '\'']) { "\\&" } else { "" });
    for character in line.chars() {
        match character {
            '\\' => text += "\\e",
            '-' => text += "\\-",
            '\'' => text += "\\(aq",
            '`' => text += "\\(ga",
            '^' => text += "\\(ha",
            '~' => text += "\\(ti",
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_as_it_is() {
        assert_eq!(escaped("  a --b 'c' ~/d"), "  a \\-\\-b \\(aqc\\(aq \\(ti/d");
        assert_eq!(escaped(".SH x"), "\\&.SH x");
        assert_eq!(escaped("'\\"), "\\&\\(aq\\e");
    }

    #[test]
    fn the_page_has_examples_as_they_are_and_no_commit() {
        let page = String::from_utf8(page().unwrap()).unwrap();
        assert!(page.contains(".SS \"EXAMPLES\"\n.nf\n  manypath demo\n"), "{page}");
        assert!(page.contains(".SH \"EXIT CODES\"\n.nf\n  0  done\n"));
        assert!(!page.contains("commit"));
        assert!(page.starts_with(".TH manypath 1 \"\" \"manypath 0."), "{page}");
    }
}
