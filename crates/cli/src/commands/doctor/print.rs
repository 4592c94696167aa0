//! The report for people: uplinks, findings with their commands, what was not seen.

use console::{StyledObject, style};
use manypath_doctor::{Finding, Report, Severity, UplinkLine};

use crate::screen::sheet::{beside, columns, wrapped};
use crate::screen::shown;

/// The report as text: `verbose` shows what is sound as well, `quiet` only warnings and errors.
pub(super) fn text(report: &Report, verbose: u8, quiet: bool) -> String {
    let mut text = String::new();
    if !quiet {
        text += &uplinks(&report.uplinks);
    }
    let least = match (quiet, verbose) {
        (true, _) => Severity::Warning,
        (false, 0) => Severity::Note,
        (false, _) => Severity::Ok,
    };
    for finding in report.findings.iter().filter(|finding| finding.severity >= least) {
        text += &shown_finding(finding);
    }
    if quiet {
        return text;
    }
    for unseen in &report.unseen {
        let (what, why) = (shown(&unseen.what), shown(&unseen.why));
        let lead = format!("{:8} ", style("not seen").dim());
        text += &(beside(&lead, &format!("{what}: {why}."), columns()) + "\n");
        if let Some(command) = &unseen.mend {
            text += &format!("    {}\n", shown(command));
        }
    }
    text + &wrapped(&summary(report), columns(), 2)
}

fn uplinks(lines: &[UplinkLine]) -> String {
    let name = lines.iter().map(|line| line.name.len()).max().unwrap_or(0);
    let place = |line: &UplinkLine| {
        let via = line.gateway.as_ref().map_or(String::new(), |ip| format!(" via {ip}"));
        format!("{}{via}", line.addresses.join(", "))
    };
    let places: Vec<String> = lines.iter().map(place).collect();
    let width = places.iter().map(String::len).max().unwrap_or(0);
    let mut text = String::new();
    for (line, place) in lines.iter().zip(&places) {
        let shown_name = shown(&line.name);
        let line = format!("{shown_name:name$}  {place:width$}  {}", state(line));
        text += &(wrapped(line.trim_end(), columns(), name + 2) + "\n");
    }
    text
}

fn state(line: &UplinkLine) -> String {
    match (line.answers, line.rtt_s) {
        (None, _) => line.mapped.as_ref().map_or(String::new(), |m| format!("seen as {m}")),
        (Some(false), _) => "does not answer".to_owned(),
        (Some(true), rtt) => {
            let mut parts =
                vec![rtt.map_or("answers".to_owned(), |s| format!("answers in {:.1} ms", s * 1e3))];
            parts.extend(line.mtu_bytes.map(|bytes| format!("packets of {bytes} bytes")));
            parts.extend(line.mapped.as_ref().map(|mapped| format!("seen as {mapped}")));
            parts.join(", ")
        }
    }
}

fn shown_finding(finding: &Finding) -> String {
    let lead = format!("{:8} ", coloured(finding.severity));
    let said = format!("{}: {}", style(finding.id).bold(), shown(&finding.sentence));
    let mut text = beside(&lead, &said, columns()) + "\n";
    // Comments of the shell, so that all of it can be pasted.
    for (remark, commands) in [
        ("", &finding.mend),
        ("    # at the destination:\n", &finding.mend_at_destination),
        ("    # to keep it over a restart:\n", &finding.keep),
    ] {
        if commands.is_empty() {
            continue;
        }
        text += remark;
        for command in commands {
            text += &format!("    {}\n", shown(command));
        }
    }
    text
}

fn coloured(severity: Severity) -> StyledObject<&'static str> {
    let name = style(severity.name());
    match severity {
        Severity::Ok => name.green(),
        Severity::Note => name.cyan(),
        Severity::Warning => name.yellow(),
        Severity::Error => name.red(),
    }
}

fn summary(report: &Report) -> String {
    let count = |severity| report.findings.iter().filter(|f| f.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let plural = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    let bind =
        report.bind.as_ref().map(|names| format!(" Use them all with --bind {}.", shown(names)));
    let bind = bind.unwrap_or_default();
    match errors + warnings {
        0 => format!("Nothing keeps this host from using its paths.{bind}\n"),
        _ => format!("{}, {}.{bind}\n", plural(errors, "error"), plural(warnings, "warning")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(findings: Vec<Finding>) -> Report {
        let worst = findings.iter().map(|f| f.severity).max().unwrap_or(Severity::Ok);
        let line = |name: &str, answers| UplinkLine {
            name: name.to_owned(),
            addresses: vec!["10.1.0.2".to_owned()],
            gateway: Some("10.1.0.1".to_owned()),
            answers: Some(answers),
            rtt_s: answers.then_some(0.0123),
            mtu_bytes: answers.then_some(1500),
            mapped: None,
            nat_mapping: None,
            nat_filtering: None,
            port_mapping: None,
        };
        Report {
            destination: vec!["192.0.2.9:9899".to_owned()],
            uplinks: vec![line("eth0", true), line("wlan0", false)],
            worst,
            findings,
            unseen: Vec::new(),
            bind: None,
        }
    }

    #[test]
    fn findings_have_their_commands_on_lines_of_their_own() {
        let found =
            Finding::warning("gro-off", "GRO is off on eth0.").mend("ethtool -K eth0 gro on");
        let text = text(&report(vec![found, Finding::ok("mtu", "All arrive.")]), 0, false);
        assert!(text.contains("eth0   10.1.0.2 via 10.1.0.1  answers in 12.3 ms"), "{text}");
        assert!(text.contains("wlan0  10.1.0.2 via 10.1.0.1  does not answer"), "{text}");
        assert!(text.contains("\n    ethtool -K eth0 gro on\n"), "{text}");
        assert!(text.contains("0 errors, 1 warning."), "{text}");
        assert!(!text.contains("All arrive"), "only with -v: {text}");
    }

    #[test]
    fn quiet_leaves_warnings_and_errors() {
        let found = vec![Finding::error("a", "Bad."), Finding::note("b", "Known.")];
        assert_eq!(text(&report(found), 0, true).lines().count(), 1);
        assert!(text(&report(Vec::new()), 0, true).is_empty());
        let all = text(&report(vec![Finding::ok("mtu", "All arrive.")]), 1, false);
        assert!(all.contains("All arrive") && all.contains("Nothing keeps"), "{all}");
    }
}
