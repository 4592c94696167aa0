//! The tables that `manypath lab` prints.

use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets};
use manypath_lab::claims::{Author, Judgement, Verdict};
use manypath_lab::experiment::Experiment;
use manypath_lab::lab::Outcome;
use manypath_lab::reference::Agreement;
use manypath_lab::table::show_params;
use manypath_lab::tally::Tally;

/// Widest table, in characters.
const WIDTH: u16 = 140;

pub(super) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    table.set_header(header);
    table
}

/// How much an experiment runs.
pub(super) struct Size {
    pub(super) points: usize,
    pub(super) runs: usize,
}

/// The experiments with what they would run.
pub(super) fn list(rows: &[(&Experiment, Size)]) -> String {
    let mut table = table(&["id", "paper", "figure", "points", "runs", "claims", "what"]);
    for (experiment, size) in rows {
        let runs = match &experiment.runs_of {
            Some(other) => format!("those of {other}"),
            None => size.runs.to_string(),
        };
        table.add_row([
            experiment.id.clone(),
            experiment.paper.clone(),
            experiment.figure.clone(),
            size.points.to_string(),
            runs,
            experiment.claims.len().to_string(),
            experiment.title.clone(),
        ]);
    }
    format!("{table}\n")
}

/// Claims and agreement of each experiment, then the totals.
pub(super) fn outcomes(outcomes: &[Outcome], all_points: bool) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        text += &one(outcome, all_points);
        text.push('\n');
    }
    if outcomes.len() > 1 {
        let judged: Vec<_> = outcomes.iter().flat_map(|o| &o.judgements).collect();
        let compared: Vec<_> = outcomes.iter().flat_map(|o| &o.agreements).collect();
        let missing = outcomes.iter().map(|o| o.not_compared).sum();
        text += &format!("In all: {}\n", count_claims(&judged));
        text += &format!("        {}\n", count_agreement(&compared, missing));
    }
    let quick = outcomes.iter().any(|outcome| outcome.about.quick);
    if quick {
        text +=
            "QUICK: few seeds and thinned sweeps; nothing above has the papers' sample sizes.\n";
    }
    text
}

fn one(outcome: &Outcome, all_points: bool) -> String {
    let about = &outcome.about;
    let quick = if about.quick { "  QUICK" } else { "" };
    let mut text = format!("{}: {} ({}){quick}\n", about.id, about.title, about.figure);
    text += &format!("  {} runs, {} seeds a point", about.runs, about.seeds);
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
    if !outcome.judgements.is_empty() {
        text += &claims(&outcome.judgements);
        text += &format!("  {}\n", count_claims(&outcome.judgements.iter().collect::<Vec<_>>()));
    }
    let compared: Vec<_> = outcome.agreements.iter().collect();
    if !compared.is_empty() || outcome.not_compared > 0 {
        text += &agreement(&compared, all_points);
        text += &format!("  {}\n", count_agreement(&compared, outcome.not_compared));
    }
    for failed in &outcome.failed {
        let place = format!("{}, {}, seed {}", failed.variant, failed.point, failed.seed);
        text += &format!("  failed: {place}: {}\n    repeat: {}\n", failed.error, failed.command);
    }
    text
}

fn claims(judgements: &[Judgement]) -> String {
    let mut table =
        table(&["claim", "what is said", "measured", "expected", "reference", "verdict"]);
    for judged in judgements {
        let quick = if judged.quick { " (quick)" } else { "" };
        let mut measured = judged.measured.clone();
        if let Some(reason) = &judged.reason {
            measured =
                if measured.is_empty() { reason.clone() } else { format!("{measured}\n{reason}") };
        }
        let mut verdict = format!("{}{quick}", judged.verdict.text());
        if let Some(weight) = judged.weight() {
            verdict += &format!("; {weight}");
        }
        if let (Verdict::Explained, Some(why)) = (judged.verdict, &judged.explanation) {
            verdict += &format!(":\n{why}");
        }
        let id = match judged.of {
            Author::Paper => judged.id.clone(),
            Author::Ours => format!("{} (ours)", judged.id),
        };
        table.add_row([
            id,
            format!("{} ({})", judged.says, judged.place),
            measured,
            judged.expected.clone(),
            judged.reference.clone().unwrap_or_default(),
            verdict,
        ]);
    }
    for (number, share) in [12, 26, 24, 14, 12, 12].into_iter().enumerate() {
        if let Some(column) = table.column_mut(number) {
            column.set_constraint(ColumnConstraint::UpperBoundary(Width::Percentage(share)));
        }
    }
    format!("{table}\n")
}

fn agreement(compared: &[&Agreement], all_points: bool) -> String {
    let chosen: Vec<_> = compared.iter().filter(|a| all_points || !a.agrees).collect();
    if chosen.is_empty() {
        return String::new();
    }
    let mut table = table(&["point", "field", "ours", "reference", "ratio", "Welch p", ""]);
    let with_ci = |mean: f64, ci95: Option<f64>| match ci95 {
        Some(half) => format!("{mean:.3} ± {half:.3}"),
        None => format!("{mean:.3}"),
    };
    let show = |value: Option<f64>| value.map(|v| format!("{v:.3}")).unwrap_or_default();
    for a in chosen {
        table.add_row([
            point(a),
            a.reference.field.clone(),
            with_ci(a.ours.mean, a.ours.ci95()),
            with_ci(a.reference.mean, a.reference.ci95()),
            show(a.ratio),
            show(a.p),
            if a.agrees { "agrees" } else { "differs" }.to_owned(),
        ]);
    }
    format!("{table}\n")
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
