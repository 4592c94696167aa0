//! The smaller parts of the page: verdicts, tables, notes.

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::chapter::Chapter;
use super::figure::{Figure, Shape, View, unique};
use super::results::Compared;
use super::value;
use crate::claims::{Author, Judgement, UnderPlacebo, Verdict};

/// The page's class of a verdict.
pub(crate) fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Undecided => "undecided",
        Verdict::Explained => "explained",
        Verdict::Fails => "fails",
        Verdict::NotRun => "not-run",
    }
}

/// How many claims have a verdict, in words.
pub(crate) fn count(verdict: Verdict, claims: usize) -> String {
    let word = match verdict {
        Verdict::Holds if claims == 1 => "holds",
        Verdict::Holds => "hold",
        Verdict::Undecided => "undecided",
        Verdict::Explained => "explained",
        Verdict::Fails => "unmet",
        Verdict::NotRun => "not run",
    };
    format!("{claims} {word}")
}

/// A sign for a verdict, so that colour is not all that tells them apart.
pub(crate) fn mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "✓",
        Verdict::Undecided => "?",
        Verdict::Explained => "≈",
        Verdict::Fails => "✗",
        Verdict::NotRun => "–",
    }
}

/// How many claims have each verdict.
pub(crate) fn tally<'a>(claims: impl Iterator<Item = &'a Judgement>) -> BTreeMap<Verdict, usize> {
    let mut tally = BTreeMap::new();
    for claim in claims {
        *tally.entry(claim.verdict).or_default() += 1;
    }
    tally
}

/// One sign for each claim, for the table of contents.
pub(crate) fn dots(chapter: &Chapter) -> Markup {
    let claims = chapter.results.as_ref().map_or(&[][..], |r| &r.claims[..]);
    let counts = tally(claims.iter());
    let words: Vec<_> = counts.iter().map(|(v, n)| count(*v, *n)).collect();
    html! {
        span.dots title=(words.join(", ")) {
            @for (verdict, number) in counts {
                span class=(class(verdict)) { (mark(verdict)) (number) }
            }
        }
    }
}

/// A share in whole percent, never rounded up to all.
pub(crate) fn percent(part: usize, of: usize) -> String {
    if of == 0 {
        return "–".into();
    }
    let share = 100.0 * part as f64 / of as f64;
    let shown = if part < of { share.min(99.9) } else { share };
    format!("{} %", value::digits(shown, 3))
}

/// A change in percent with its sign.
pub(crate) fn signed_percent(change: f64) -> String {
    let sign = if change < 0.0 { "−" } else { "+" };
    format!("{sign}{} %", value::digits(change.abs(), 2))
}

/// A count with its thousands apart.
pub(crate) fn thousands(n: usize) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// The claims of an experiment with what became of them: the paper's, then ours.
pub(crate) fn claims(claims: &[Judgement]) -> Markup {
    let of = |author| claims.iter().filter(move |claim| claim.of == author).collect::<Vec<_>>();
    html! {
        @for (author, title) in [(Author::Paper, "What the paper claims"), (Author::Ours, "Beside the paper: what we claim")] {
            @let claims = of(author);
            @if !claims.is_empty() {
                table.claims {
                    caption { (title) }
                    thead { tr { th { "Verdict" } th { "Claim" } th { "Expected" } th { "Measured" } th { "Without the mechanism" } th { "ns-2" } } }
                    tbody { @for claim in claims { (row_of_claim(claim)) } }
                }
            }
        }
    }
}

fn row_of_claim(claim: &Judgement) -> Markup {
    let unmet = claim.is_unmet();
    let cause = claim.cause.as_ref().map(|cause| cause.says.clone());
    html! {
        tr id={"claim-" (claim.id)} {
            td data-label="Verdict" {
                span class={"chip " (class(claim.verdict))} { (mark(claim.verdict)) " " (verdict_of_one(claim.verdict)) }
                @if let Some(weight) = claim.weight() { span.measure { (weight) } }
            }
            td data-label="Claim" {
                (claim.says)
                @if !claim.place.is_empty() { span.place { " " (claim.place) } }
                @if !claim.measure.is_empty() { span.measure { (claim.measure) } }
                @if let Some(mark) = claim.mark { span.measure { "marked: " (mark.text()) } }
                @for text in [&cause, &claim.explanation, &claim.reason].into_iter().flatten() {
                    p.explanation {
                        @if unmet { strong { "Why: " } }
                        (text)
                    }
                }
                @if claim.verdict == Verdict::Fails {
                    p.explanation { "No explanation yet." }
                }
                @if let Some(second) = claim.second_words() {
                    p.explanation { strong { "Second verdict: " } (second) }
                }
            }
            td data-label="Expected" { (claim.expected) }
            td data-label="Measured" { @if claim.measured.is_empty() { "–" } @else { (claim.measured) } }
            td data-label="Without the mechanism" { (under_placebo(claim)) }
            td data-label="ns-2" { (claim.reference.as_deref().unwrap_or("–")) }
        }
    }
}

/// The claim's verdict with the mechanism off.
fn under_placebo(claim: &Judgement) -> Markup {
    let word = match claim.placebo {
        None => return html! { "–" },
        Some(UnderPlacebo::Fails) => "does not hold",
        Some(UnderPlacebo::Undecided) => "cannot be decided",
        Some(UnderPlacebo::Holds) => "holds as well",
    };
    html! {
        (word)
        @if let Some(measured) = claim.placebo_measured.as_deref().filter(|text| !text.is_empty()) { ": " (measured) }
        @if let Some(says) = &claim.placebo_says { span.measure { (says) } }
    }
}

fn verdict_of_one(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Undecided => "cannot be decided",
        Verdict::Explained => "explained",
        Verdict::Fails => "does not hold",
        Verdict::NotRun => "not run",
    }
}

/// The comparison with the papers' simulator: a sentence, and the points that differ.
pub(crate) fn agreement(compared: &[Compared]) -> Markup {
    let agree = compared.iter().filter(|c| c.agrees).count();
    let mut differ: Vec<&Compared> = compared.iter().filter(|c| !c.agrees).collect();
    let distance = |c: &Compared| c.ratio.map_or(0.0, |r| (r - 1.0).abs());
    differ.sort_by(|a, b| distance(b).total_cmp(&distance(a)));
    let params = unique(compared.iter().flat_map(|c| c.params.keys().cloned()));
    let variants = unique(compared.iter().map(|c| c.variant.clone()));
    html! {
        p.agree {
            strong { (percent(agree, compared.len())) } " of " (compared.len())
            " points agree with ns-2 (within 5 %, or inside its 95 % interval)."
        }
        @if !differ.is_empty() {
            details {
                summary { (differ.len()) @if differ.len() == 1 { " point that differs" } @else { " points that differ" } }
                div.scroll tabindex="0" {
                    table {
                        thead { tr {
                            @if variants.len() > 1 { th { "Variant" } }
                            @for name in &params { th { (name) } }
                            th { "Field" } th.number { "Ours" } th.number { "ns-2" } th.number { "Difference" } th.number { "Welch p" }
                        } }
                        tbody {
                            @for point in differ {
                                tr {
                                    @if variants.len() > 1 { td { (point.variant) } }
                                    @for name in &params { td { (point.params.get(name).map_or("", String::as_str)) } }
                                    td { (point.field) }
                                    td.number { (value::with_interval(point.ours, point.ours_ci95.unwrap_or(0.0))) }
                                    td.number { (value::with_interval(point.reference, point.reference_ci95.unwrap_or(0.0))) }
                                    td.number { (point.ratio.map_or_else(|| "–".into(), |r| signed_percent(100.0 * (r - 1.0)))) }
                                    td.number { (point.p.map_or_else(|| "–".into(), |p| if p < 0.001 { "< 0.001".into() } else { value::digits(p, 2) })) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The command that repeats an experiment.
pub(crate) fn command(command: &str) -> Markup {
    html! {
        p.command {
            code { (command) }
            button type="button" data-copy=(command) { "Copy" }
        }
    }
}

/// How many moments of a figure over time its table shows.
const MOMENTS: usize = 25;

/// The figure's values as tables, for readers who cannot see it or who want the numbers.
pub(crate) fn data(figure: &Figure) -> Markup {
    html! {
        details.data {
            summary { "The values" }
            @for view in &figure.views {
                @for panel in &view.panels {
                    @let title = table_title(view, &panel.title, figure.views.len() > 1);
                    div.scroll tabindex="0" {
                        table {
                            @if !title.is_empty() { caption { (title) } }
                            thead { tr {
                                th { (figure.x.title()) }
                                @for line in &panel.lines { th.number { (line.name) @if line.reference { ", ns-2" } } }
                            } }
                            tbody {
                                @for x in rows(figure, view) {
                                    tr {
                                        th { (figure.x.text(x)) }
                                        @for line in &panel.lines { td.number { (cell(figure, &line.points, x)) } }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn table_title(view: &View, panel: &str, several: bool) -> String {
    match (several, panel.is_empty()) {
        (true, true) => view.name.clone(),
        (true, false) => format!("{}: {panel}", view.name),
        (false, _) => panel.to_owned(),
    }
}

fn rows(figure: &Figure, view: &View) -> Vec<f64> {
    let points = view.panels.iter().flat_map(|p| &p.lines).flat_map(|l| &l.points);
    let mut xs: Vec<f64> = points.map(|p| p.x).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    if figure.kind == Shape::Time && xs.len() > MOMENTS {
        let (first, last) = (xs[0], xs[xs.len() - 1]);
        let step = (last - first) / (MOMENTS - 1) as f64;
        return (0..MOMENTS).map(|i| first + step * i as f64).collect();
    }
    xs
}

fn cell(figure: &Figure, points: &[super::figure::Point], x: f64) -> String {
    let point = if figure.kind == Shape::Time {
        // The value that holds at that moment.
        points.iter().take_while(|p| p.x <= x + 1e-9).last()
    } else {
        points.iter().find(|p| p.x == x)
    };
    point.map_or_else(|| "–".into(), |p| value::with_interval(p.y, p.ci))
}

/// Markdown as HTML. What is HTML in it stays text, links that leave the page stay, others become
/// their words.
pub(crate) fn markdown(text: &str) -> Markup {
    let mut events: Vec<Event<'_>> = Vec::new();
    let (mut in_title, mut links) = (false, Vec::new());
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            // The experiment's title stands above already.
            Event::Start(Tag::Heading { level: HeadingLevel::H1, .. }) => in_title = true,
            Event::End(TagEnd::Heading(HeadingLevel::H1)) => in_title = false,
            _ if in_title => {}
            Event::Start(Tag::Heading { id, classes, attrs, .. }) => {
                events.push(Event::Start(Tag::Heading {
                    level: HeadingLevel::H5,
                    id,
                    classes,
                    attrs,
                }));
            }
            Event::End(TagEnd::Heading(_)) => {
                events.push(Event::End(TagEnd::Heading(HeadingLevel::H5)))
            }
            Event::Html(html) | Event::InlineHtml(html) => events.push(Event::Text(html)),
            Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => {}
            Event::Start(Tag::Link { ref dest_url, .. }) => {
                let kept = dest_url.starts_with("https://");
                links.push(kept);
                if kept {
                    events.push(event);
                }
            }
            Event::End(TagEnd::Link) => {
                if links.pop().unwrap_or(false) {
                    events.push(event);
                }
            }
            other => events.push(other),
        }
    }
    let mut html = String::new();
    pulldown_cmark::html::push_html(&mut html, events.into_iter());
    html! { div.prose { (PreEscaped(html)) } }
}
