//! The list of claims: every claim with its verdict as Markdown, for the folder of the experiments.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::chapter::Chapter;
use super::page::{by_paper, paper_title};
use crate::claims::{Author, Fault, Judgement, Mark, Second, UnderPlacebo, Verdict};
use crate::tally::Tally;

/// A claim with the experiment that it belongs to.
type Claims<'c> = Vec<(&'c Chapter, &'c Judgement)>;

/// The whole list. Experiments that were not run are left out.
pub(crate) fn render(chapters: &[Chapter]) -> String {
    let mut text = String::from(
        "# What the papers claim, and what was measured\n\n\
         Made by `manypath lab run all && manypath lab report --claims FILE`. Intervals [judge](../docs/laboratory.md#measures) a claim: it *holds* or *does not \
         hold* if chance cannot explain that, and else *cannot be decided*. A claim that holds is *evidence* if it does not hold once the mechanism it is about \
         is switched off (its [placebo](../docs/laboratory.md#placebos)). Some that hold say less than others and have a [mark](../docs/laboratory.md#marks-and-causes): \
         *fitted*, *by construction*, *a step of a timeline*.\n\n",
    );
    text += &table(chapters, Author::Paper);
    if chapters.iter().any(|chapter| !claims_of(chapter, Author::Ours).is_empty()) {
        text += "\nClaims of ours, beside the papers:\n\n";
        text += &table(chapters, Author::Ours);
    }
    text += &by_cause(chapters);
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

/// The papers' claims that do not hold, by the party whose doing it is and then by cause: how many,
/// one explanation, and how many of them the paper's own simulator holds.
fn by_cause(chapters: &[Chapter]) -> String {
    let of = |chapter| claims_of(chapter, Author::Paper).into_iter().map(move |c| (chapter, c));
    let all: Claims<'_> = chapters.iter().flat_map(of).collect();
    let unmet: Claims<'_> = all.into_iter().filter(|(_, claim)| claim.is_unmet()).collect();
    if unmet.is_empty() {
        return String::new();
    }
    // Claims without a cause come last.
    let mut causes: BTreeMap<(bool, Option<Fault>, &str), Claims<'_>> = BTreeMap::new();
    for (chapter, claim) in unmet {
        let cause = claim.cause.as_ref();
        let (fault, id) = (cause.map(|cause| cause.fault), cause.map(|cause| cause.id.as_str()));
        causes
            .entry((cause.is_none(), fault, id.unwrap_or_default()))
            .or_default()
            .push((chapter, claim));
    }
    let mut text = String::from(
        "\n## By cause\n\nThe papers' claims that do not hold: whose doing it is, and what the paper's own simulator says of the same claims.\n\n\
         | whose doing | claims | in | explanation | the paper's own simulator |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    for ((_, fault, _), claims) in causes {
        let mut inside: Vec<_> = claims.iter().map(|(c, _)| format!("`{}`", c.id)).collect();
        inside.dedup();
        let cause = claims.iter().find_map(|(_, claim)| claim.cause.as_ref());
        text += &line([
            fault.map_or("not known", Fault::text).to_owned(),
            claims.len().to_string(),
            inside.join(", "),
            cause.map_or("No explanation yet.", |cause| cause.says.as_str()).to_owned(),
            second_verdicts(&claims),
        ]);
    }
    text
}

/// `2 hold, 3 do not, 1 not known`.
fn second_verdicts(claims: &Claims<'_>) -> String {
    let count = |wanted: Option<Second>| {
        let of = |claim: &Judgement| claim.simulator.as_ref().map(|second| second.verdict);
        claims.iter().filter(|(_, claim)| of(claim) == wanted).count()
    };
    let kinds = [
        (Some(Second::Holds), "held"),
        (Some(Second::Fails), "not held either"),
        (Some(Second::Undecided), "undecided"),
        (None, "not known"),
    ];
    let kinds = kinds.map(|(wanted, words)| (count(wanted), words));
    let kinds = kinds.into_iter().filter(|(count, _)| *count > 0);
    kinds.map(|(count, words)| format!("{count} {words}")).collect::<Vec<_>>().join(", ")
}

fn claims_of(chapter: &Chapter, author: Author) -> Vec<&Judgement> {
    let claims = chapter.results.iter().flat_map(|results| &results.claims);
    claims.filter(|claim| claim.of == author).collect()
}

/// The counts, a paper a line.
fn table(chapters: &[Chapter], author: Author) -> String {
    let mut text = String::from(
        "| | claims | hold, and do not without the mechanism | hold, marked | hold, no evidence | cannot be decided | do not hold |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
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
    line([
        name.to_owned(),
        (tally.all - tally.not_run).to_string(),
        tally.evidence.to_string(),
        tally.marked.to_string(),
        tally.without_evidence().to_string(),
        tally.undecided.to_string(),
        tally.fail.to_string(),
    ])
}

fn row(chapter: &Chapter, claim: &Judgement) -> String {
    let ours = if claim.of == Author::Ours { " (ours)" } else { "" };
    let mut verdict = match &claim.cause {
        Some(cause) if claim.is_unmet() => format!("does not hold: {}", cause.fault.text()),
        _ => claim.verdict.text().to_owned(),
    };
    if claim.verdict == Verdict::Holds {
        let weight = claim.mark.map(Mark::text).or((!claim.is_evidence()).then_some("no evidence"));
        verdict += &weight.map(|weight| format!(", {weight}")).unwrap_or_default();
    } else {
        // The cause is explained above, once for all its claims.
        for reason in [&claim.explanation, &claim.reason].into_iter().flatten() {
            let _ = write!(verdict, ". {reason}");
        }
    }
    if let Some(second) = claim.second_words() {
        verdict.truncate(verdict.trim_end_matches('.').len());
        let _ = write!(verdict, "; {second}");
    }
    let without = match claim.placebo {
        None => String::new(),
        Some(UnderPlacebo::Fails) => "does not hold".to_owned(),
        Some(UnderPlacebo::Undecided) => "cannot be decided".to_owned(),
        Some(UnderPlacebo::Holds) => "holds".to_owned(),
    };
    let measured = claim.placebo_measured.iter().filter(|text| !text.is_empty());
    let without = measured.fold(without, |text, measured| format!("{text}: {measured}"));
    line([
        format!("`{}`{ours}", chapter.id),
        format!("{} ({})", claim.says, claim.place),
        claim.expected.clone(),
        claim.measured.clone(),
        verdict,
        without,
    ])
}

/// A line of a table in Markdown.
fn line<const N: usize>(cells: [String; N]) -> String {
    let cells = cells.map(|cell| cell.split_whitespace().collect::<Vec<_>>().join(" "));
    format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}
