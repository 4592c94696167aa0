//! `manypath lab compare`.

use indexmap::IndexMap;
use manypath_lab::changes::{Both, Changes, ClaimChange, MeanChange, SIGNIFICANCE, between};
use manypath_lab::claims::Verdict;
use manypath_lab::placebo::is_placebo;
use manypath_lab::stats::Summary;
use manypath_lab::table::show_params;

use super::find::{find, wrong};
use crate::args::lab::CompareArgs;
use crate::failure::{Failure, Result};
use crate::screen::output::print;
use crate::screen::sheet::{Sheet, columns, wrapped};

/// Most fields of an experiment that are printed without `--all`.
const MOST_FIELDS: usize = 10;

/// Prints what changed between two folders of results.
pub(super) fn run(args: &CompareArgs) -> Result<()> {
    let experiments = find(&args.experiments)?;
    let all = between(&experiments, &args.ids, &args.a, &args.b, &args.ignore).map_err(wrong)?;
    let changed = all.iter().filter(|changes| !changes.is_none()).count();
    if args.report.json {
        let lines = all.iter().map(|changes| serde_json::to_string(changes).map(|l| l + "\n"));
        let text: std::result::Result<String, _> = lines.collect();
        print(&text.map_err(|e| Failure::failed(e.to_string()))?)?;
    } else if !args.report.quiet {
        print(&text(&all, args.all))?;
    }
    match changed {
        0 => Ok(()),
        _ if !args.strict => Ok(()),
        _ => Err(Failure::failed(format!("{changed} of {} experiments changed", all.len()))),
    }
}

fn text(all: &[Changes], shows_all: bool) -> String {
    let mut text = String::new();
    for changes in all.iter().filter(|changes| !changes.is_none()) {
        text += &one(changes, shows_all);
        text.push('\n');
    }
    let runs: usize = all.iter().map(|changes| changes.runs.both).sum();
    let equal: usize = all.iter().map(|changes| changes.runs.equal).sum();
    let verdicts = all.iter().flat_map(|c| &c.claims).filter(|c| c.is_of_verdict()).count();
    let means: usize = all.iter().map(|changes| changes.means.len()).sum();
    let same = all.iter().filter(|changes| changes.is_none()).count();
    text += &format!(
        "{same} of {} experiments are the same; {equal} of {runs} runs are equal; {verdicts} verdicts \
         and {means} means changed\n",
        all.len()
    );
    // The tables fit already.
    wrapped(&text, columns(), 2)
}

fn one(changes: &Changes, shows_all: bool) -> String {
    let mut text = format!("{}: ", changes.id);
    match &changes.versions {
        Both { a: None, .. } => return text + "only the second folder has results\n",
        Both { b: None, .. } => return text + "only the first folder has results\n",
        Both { a: Some(a), b: Some(b) } if a != b => text += &format!("versions {a} and {b}, "),
        _ => {}
    }
    let runs = &changes.runs;
    text += &format!("{} of {} runs are equal", runs.equal, runs.both);
    for (count, which) in [(runs.only.a, "first"), (runs.only.b, "second")] {
        if count > 0 {
            text += &format!(", {count} only in the {which} folder");
        }
    }
    text.push('\n');
    let verdicts = |change: &&ClaimChange| shows_all || change.is_of_verdict();
    let claims: Vec<_> = changes.claims.iter().filter(verdicts).collect();
    if !claims.is_empty() {
        text += &claims_table(&claims);
    }
    text + &means(changes, shows_all)
}

fn claims_table(claims: &[&ClaimChange]) -> String {
    let mut table = Sheet::new(["claim", "what is said", "first", "second"]);
    for claim in claims {
        let shown = |verdict: Option<Verdict>, measured: &Option<String>| match verdict {
            Some(verdict) => {
                format!("{}\n{}", verdict.text(), measured.as_deref().unwrap_or_default())
            }
            None => "no such claim".to_owned(),
        };
        table.row([
            claim.id.clone(),
            claim.says.clone(),
            shown(claim.verdicts.a, &claim.measured.a),
            shown(claim.verdicts.b, &claim.measured.b),
        ]);
    }
    table.text(columns())
}

/// The fields whose means differ, or with `--all` each mean.
fn means(changes: &Changes, shows_all: bool) -> String {
    let mut text = String::new();
    if shows_all && !changes.means.is_empty() {
        let mut table = Sheet::new(["point", "field", "first", "second", "change", "p"]);
        for mean in &changes.means {
            table.row(row(mean));
        }
        text += &table.text(columns());
    }
    let mut fields: IndexMap<&str, Vec<&MeanChange>> = IndexMap::new();
    for mean in changes.means.iter().filter(|mean| !is_placebo(&mean.variant)) {
        fields.entry(&mean.field).or_default().push(mean);
    }
    if !shows_all && !fields.is_empty() {
        let header = ["field", "means", "change", "for instance", "first", "second"];
        let mut table = Sheet::new(header);
        for (field, means) in fields.iter().take(MOST_FIELDS) {
            table.row(field_row(field, means));
        }
        text += &table.text(columns());
        if let Some(more @ 1..) = fields.len().checked_sub(MOST_FIELDS) {
            text += &format!("  {more} more fields; --all shows every mean\n");
        }
    }
    let untested = changes.means.iter().filter(|mean| mean.p.is_none()).count();
    if changes.tested > 0 {
        text += &format!(
            "  {} of {} means differ, placebos included (p below {SIGNIFICANCE}; chance makes {:.1} of them)\n",
            changes.means.len() - untested,
            changes.tested,
            changes.tested as f64 * SIGNIFICANCE
        );
    }
    if untested > 0 {
        text +=
            &format!("  {untested} means of single runs differ; more seeds would tell chance\n");
    }
    text
}

/// A field: how many of its means differ, by how much, and the first of them.
fn field_row(field: &str, means: &[&MeanChange]) -> [String; 6] {
    let changes = || means.iter().filter_map(|mean| mean.change);
    let (least, most) = changes().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), own| {
        (least.min(own), most.max(own))
    });
    let change = match changes().count() {
        0 => String::new(),
        1 => percent(most),
        _ => format!("{} to {}", percent(least), percent(most)),
    };
    let example = means.first().map(|mean| row(mean));
    let [point, _, first, second, ..] = example.unwrap_or_default();
    [field.to_owned(), means.len().to_string(), change, point, first, second]
}

fn percent(change: f64) -> String {
    format!("{:+.1} %", 100.0 * change)
}

fn row(mean: &MeanChange) -> [String; 6] {
    let shown = |summary: &Summary| {
        let decimals = if summary.mean.abs() < 100.0 { 4 } else { 0 };
        let half = summary.ci95().map(|half| format!(" ± {half:.decimals$}"));
        format!("{:.decimals$}{}", summary.mean, half.unwrap_or_default())
    };
    let p = mean.p.map(|p| if p < 1e-6 { "< 1e-6".to_owned() } else { format!("{p:.1e}") });
    [
        format!("{}, {}", mean.variant, show_params(&mean.params)),
        mean.field.clone(),
        shown(&mean.values.a),
        shown(&mean.values.b),
        mean.change.map(percent).unwrap_or_default(),
        p.unwrap_or_default(),
    ]
}
