//! The tables that `manypath lab` prints.

use manypath_lab::claims::{Author, Judgement, Verdict};
use manypath_lab::experiment::Experiment;
use manypath_lab::lab::Outcome;
use manypath_lab::reference::Agreement;
use manypath_lab::table::show_params;
use manypath_lab::tally::Tally;

use crate::screen::sheet::{Sheet, wrapped};

/// Least columns for the claims as a table; in fewer, its cells would be columns of words.
const CLAIMS_COLUMNS: usize = 120;

/// Most means that differ from the reference and are printed without `--all-points`.
const MOST_POINTS: usize = 10;

/// How much an experiment runs.
pub(super) struct Size {
    pub(super) points: usize,
    pub(super) runs: usize,
}

/// The experiments with what they would run.
pub(super) fn list(rows: &[(&Experiment, Size)], columns: Option<usize>) -> String {
    let mut table = Sheet::new(["id", "paper", "figure", "points", "runs", "claims", "what"]);
    for (experiment, size) in rows {
        table.row([
            experiment.id.clone(),
            experiment.paper.clone(),
            experiment.figure.clone(),
            size.points.to_string(),
            runs(experiment, size),
            experiment.claims.len().to_string(),
            experiment.title.clone(),
        ]);
    }
    if columns.is_none_or(|columns| table.width() <= columns) {
        return table.text(columns);
    }
    let papers = rows.chunk_by(|(a, _), (b, _)| a.paper == b.paper);
    papers.map(|rows| list_of_paper(rows, columns)).collect::<Vec<_>>().join("\n")
}

/// The experiments of one paper, with what a narrow terminal has room for.
fn list_of_paper(rows: &[(&Experiment, Size)], columns: Option<usize>) -> String {
    let mut table = Sheet::new(["id", "runs", "claims", "what"]);
    for (experiment, size) in rows {
        table.row([
            experiment.id.clone(),
            runs(experiment, size),
            experiment.claims.len().to_string(),
            format!("{}: {}", experiment.figure, experiment.title),
        ]);
    }
    let paper = rows.first().map_or("", |(experiment, _)| experiment.paper.as_str());
    format!("{paper}\n{}", table.text(columns))
}

fn runs(experiment: &Experiment, size: &Size) -> String {
    match &experiment.runs_of {
        Some(other) => format!("those of {other}"),
        None => size.runs.to_string(),
    }
}

/// Claims and agreement of each experiment, then the totals.
pub(super) fn outcomes(outcomes: &[Outcome], all_points: bool, columns: Option<usize>) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        text += &one(outcome, all_points, columns);
        text.push('\n');
    }
    if outcomes.len() > 1 {
        let judged: Vec<_> = outcomes.iter().flat_map(|o| &o.judgements).collect();
        let compared: Vec<_> = outcomes.iter().flat_map(|o| &o.agreements).collect();
        let missing = outcomes.iter().map(|o| o.not_compared).sum();
        text += "In all:\n";
        for counts in [count_claims(&judged), count_agreement(&compared, missing)] {
            text += &wrapped(&format!("  {counts}\n"), columns, 2);
        }
    }
    let quick = outcomes.iter().any(|outcome| outcome.about.quick);
    if quick {
        let note =
            "QUICK: few seeds and thinned sweeps; nothing above has the papers' sample sizes.\n";
        text += &wrapped(note, columns, 0);
    }
    text
}

fn one(outcome: &Outcome, all_points: bool, columns: Option<usize>) -> String {
    let about = &outcome.about;
    let quick = if about.quick { "  QUICK" } else { "" };
    let seeds = if about.seeds == 1 { "seed" } else { "seeds" };
    let mut text = format!("{}: {} ({}){quick}\n", about.id, about.title, about.figure);
    text += &format!("  {} runs, {} {seeds} a point", about.runs, about.seeds);
    for (count, what) in [
        (about.failed, "failed"),
        (about.incomplete, "did not complete"),
        (about.planned.saturating_sub(about.runs + about.failed), "not done"),
    ] {
        if count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    text.push('\n');
    text = wrapped(&text, columns, 2);
    if !outcome.judgements.is_empty() {
        text += &claims(&outcome.judgements, columns);
        let counts = count_claims(&outcome.judgements.iter().collect::<Vec<_>>());
        text += &wrapped(&format!("  {counts}\n"), columns, 2);
    }
    let compared: Vec<_> = outcome.agreements.iter().collect();
    if !compared.is_empty() || outcome.not_compared > 0 {
        text += &agreement(&compared, all_points, columns);
        let counts = count_agreement(&compared, outcome.not_compared);
        text += &wrapped(&format!("  {counts}\n"), columns, 2);
    }
    for failed in &outcome.failed {
        let place = format!("{}, {}, seed {}", failed.variant, failed.point, failed.seed);
        text += &wrapped(&format!("  failed: {place}: {}\n", failed.error), columns, 2);
        // In one line, so that it can be pasted.
        text += &format!("    repeat: {}\n", failed.command);
    }
    text
}

/// The claims: a table in wide terminals, else records. Other programs get records, too, where
/// each value is one line.
fn claims(judgements: &[Judgement], columns: Option<usize>) -> String {
    let is_table = columns.is_some_and(|columns| columns >= CLAIMS_COLUMNS);
    let header = ["claim", "verdict", "what is said", "measured", "expected", "reference"];
    let mut sheet = Sheet::new(header.into_iter().chain((!is_table).then_some("explanation")));
    for judged in judgements {
        let mut verdict = verdict(judged);
        let why = why(judged);
        if is_table && !why.is_empty() {
            verdict += &format!(":\n{why}");
        }
        let id = match judged.of {
            Author::Paper => judged.id.clone(),
            Author::Ours => format!("{} (ours)", judged.id),
        };
        let measured = [Some(judged.measured.as_str()), judged.reason.as_deref()];
        let measured = measured.into_iter().flatten().filter(|text| !text.is_empty());
        let measured = measured.collect::<Vec<_>>().join("\n");
        sheet.row([
            id,
            verdict,
            format!("{} ({})", judged.says, judged.place),
            measured,
            judged.expected.clone(),
            judged.reference.clone().unwrap_or_default(),
            why,
        ]);
    }
    if is_table { sheet.tall().text(columns) } else { format!("\n{}\n", sheet.records(columns)) }
}

/// Why a claim does not hold, and what the paper's own simulator says.
fn why(judged: &Judgement) -> String {
    let is_explained = judged.verdict == Verdict::Explained;
    let why = if is_explained { judged.why() } else { None };
    let fault = judged.cause.as_ref().map(|cause| format!("{}: ", cause.fault.text()));
    let why = why.map(|why| fault.unwrap_or_default() + &why);
    why.into_iter().chain(judged.second_words()).collect::<Vec<_>>().join("\n")
}

fn verdict(judged: &Judgement) -> String {
    let quick = if judged.quick { " (quick)" } else { "" };
    let weight = judged.weight().map_or(String::new(), |weight| format!("; {weight}"));
    format!("{}{quick}{weight}", judged.verdict.text())
}

/// The means that differ from those of the reference, some of them, or with `all_points` each mean.
fn agreement(compared: &[&Agreement], all_points: bool, columns: Option<usize>) -> String {
    let chosen: Vec<_> = compared.iter().filter(|a| all_points || !a.agrees).collect();
    if chosen.is_empty() {
        return String::new();
    }
    let most = if all_points { chosen.len() } else { MOST_POINTS };
    let is_tested = chosen.iter().any(|a| a.p.is_some());
    let mut header = vec!["point", "field", "ours", "reference", "ratio"];
    header.extend(is_tested.then_some("Welch p"));
    header.extend(all_points.then_some(""));
    let mut table = Sheet::new(header);
    let with_ci = |mean: f64, ci95: Option<f64>| match ci95 {
        Some(half) => format!("{mean:.3} ± {half:.3}"),
        None => format!("{mean:.3}"),
    };
    let show = |value: Option<f64>| value.map(|v| format!("{v:.3}")).unwrap_or_default();
    for a in chosen.iter().take(most) {
        let mut row = vec![
            point(a),
            a.reference.field.clone(),
            with_ci(a.ours.mean, a.ours.ci95()),
            with_ci(a.reference.mean, a.reference.ci95()),
            show(a.ratio),
        ];
        row.extend(is_tested.then(|| show(a.p)));
        row.push(if a.agrees { "agrees" } else { "differs" }.to_owned());
        table.row(row);
    }
    let mut text = String::from("  means that differ from the reference:\n");
    if all_points {
        text = "  means and the reference:\n".to_owned();
    }
    text += &table.text(columns);
    if let Some(more @ 1..) = chosen.len().checked_sub(most) {
        text += &format!("  {more} more differ; --all-points shows every mean\n");
    }
    text
}

/// The point of a mean, with the variant where the reference names it.
fn point(agreement: &Agreement) -> String {
    let params = show_params(&agreement.reference.params);
    match &agreement.reference.variant {
        Some(variant) => format!("variant = {variant}, {params}"),
        None => params,
    }
}

/// The papers' claims and ours, each counted.
fn count_claims(judged: &[&Judgement]) -> String {
    let count = |author: Author, whose: &str| {
        let tally = Tally::of(judged.iter().copied().filter(|j| j.of == author));
        (tally.all > 0).then(|| format!("{whose}: {tally}"))
    };
    let counts = [count(Author::Paper, "claims"), count(Author::Ours, "claims of ours")];
    counts.into_iter().flatten().collect::<Vec<_>>().join("\n  ")
}

fn count_agreement(compared: &[&Agreement], not_compared: usize) -> String {
    let agree = compared.iter().filter(|a| a.agrees).count();
    let share = 100.0 * agree as f64 / compared.len().max(1) as f64;
    let all = compared.len();
    let mut text = format!("agreement with the reference: {agree} of {all} means ({share:.1} %)");
    if not_compared > 0 {
        text += &format!(", {not_compared} not compared for lack of runs");
    }
    text
}
