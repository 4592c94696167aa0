//! The list of claims: every claim with its verdict as Markdown, for the folder of the experiments.

use std::fmt::Write;

use super::chapter::Chapter;
use super::page::{by_paper, paper_title};
use crate::claims::{Author, Judgement, UnderPlacebo, Verdict};
use crate::tally::Tally;

/// A claim with the experiment that it belongs to.
type Claims<'c> = Vec<(&'c Chapter, &'c Judgement)>;

/// The whole list. Experiments that were not run are left out.
pub(crate) fn render(chapters: &[Chapter]) -> String {
    let mut text = String::from(
        "# What the papers claim, and what was measured\n\n\
         Made by `manypath lab run all && manypath lab report --claims FILE`. A claim that holds is *evidence* if it does not hold \
         once the mechanism it is about is switched off (its placebo, in [`claims.toml`](../docs/laboratory.md#placebos)). A claim cannot be decided if \
         it holds with and without the mechanism, or if what was measured is within chance.\n\n",
    );
    text += &table(chapters, Author::Paper);
    if chapters.iter().any(|chapter| !claims_of(chapter, Author::Ours).is_empty()) {
        text += "\nClaims of ours, beside the papers:\n\n";
        text += &table(chapters, Author::Ours);
    }
    for (paper, inside) in by_paper(chapters) {
        let (short, full) = paper_title(paper);
        let inside: Vec<_> = inside.into_iter().filter(|c| c.results.is_some()).collect();
        if inside.is_empty() {
            continue;
        }
        let _ = write!(text, "\n## {short}\n\n");
        if !full.is_empty() {
            let _ = write!(text, "{full}\n\n");
        }
        text += "| experiment | claim | expected | measured | verdict | without the mechanism |\n";
        text += "| --- | --- | --- | --- | --- | --- |\n";
        for chapter in inside {
            for author in [Author::Paper, Author::Ours] {
                for claim in claims_of(chapter, author) {
                    text += &row(chapter, claim);
                }
            }
        }
    }
    text
}

fn claims_of(chapter: &Chapter, author: Author) -> Vec<&Judgement> {
    let claims = chapter.results.iter().flat_map(|results| &results.claims);
    claims.filter(|claim| claim.of == author).collect()
}

/// The counts, a paper a line.
fn table(chapters: &[Chapter], author: Author) -> String {
    let mut text = String::from(
        "| | claims | hold, and do not without the mechanism | cannot be decided | do not hold |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    let mut all: Claims<'_> = Vec::new();
    for (paper, inside) in by_paper(chapters) {
        let claims = |chapter| claims_of(chapter, author).into_iter().map(move |c| (chapter, c));
        let own: Claims<'_> = inside.into_iter().flat_map(claims).collect();
        if !own.is_empty() {
            text += &counts(paper_title(paper).0, &own);
        }
        all.extend(own);
    }
    text + &counts("**all**", &all)
}

fn counts(name: &str, claims: &Claims<'_>) -> String {
    let tally = Tally::of(claims.iter().map(|(_, claim)| *claim));
    let (evidence, unsure) = (tally.evidence, tally.cannot_be_decided());
    format!("| {name} | {} | {evidence} | {unsure} | {} |\n", tally.all - tally.not_run, tally.fail)
}

fn row(chapter: &Chapter, claim: &Judgement) -> String {
    let ours = if claim.of == Author::Ours { " (ours)" } else { "" };
    let mut verdict = claim.verdict.text().to_owned();
    if claim.verdict == Verdict::Holds && !claim.is_evidence() {
        verdict += ", no evidence";
    }
    let reasons = [&claim.explanation, &claim.reason].into_iter().flatten();
    let reasons = reasons.filter(|_| claim.verdict != Verdict::Holds);
    for reason in reasons {
        let _ = write!(verdict, ". {reason}");
    }
    let without = match claim.placebo {
        None => String::new(),
        Some(UnderPlacebo::Fails) => "does not hold".to_owned(),
        Some(UnderPlacebo::Undecided) => "cannot be decided".to_owned(),
        Some(UnderPlacebo::Holds) => "holds".to_owned(),
    };
    let measured = claim.placebo_measured.iter().filter(|text| !text.is_empty());
    let without = measured.fold(without, |text, measured| format!("{text}: {measured}"));
    let cells = [
        format!("`{}`{ours}", chapter.id),
        format!("{} ({})", claim.says, claim.place),
        claim.expected.clone(),
        claim.measured.clone(),
        verdict,
        without,
    ];
    let cells = cells.map(|cell| cell.split_whitespace().collect::<Vec<_>>().join(" "));
    format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}
