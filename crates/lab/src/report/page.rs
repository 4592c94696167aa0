//! The page: one HTML file that needs nothing but itself.

use std::collections::BTreeMap;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;

use super::chapter::Chapter;
use super::figure::Figure;
use super::results::Compared;
use super::{palette, parts, value};
use crate::claims::{Author, Judgement, Verdict};
use crate::tally::Tally;

const PLOTLY: &str = include_str!("../../assets/plotly-basic.min.js");
const SCRIPT: &str = include_str!("../../assets/report.js");
const STYLE: &str = include_str!("../../assets/report.css");

/// The data for the page's script.
#[derive(Serialize)]
struct Data<'a> {
    light: [&'static str; palette::SLOTS],
    dark: [&'static str; palette::SLOTS],
    figures: BTreeMap<&'a str, &'a Figure>,
}

/// The whole page, of these chapters that have results, out of `all` experiments.
pub(crate) fn render(chapters: &[Chapter], all: usize) -> String {
    let figures = chapters.iter().flat_map(|c| &c.figures);
    let data = Data {
        light: palette::LIGHT,
        dark: palette::DARK,
        figures: figures.map(|f| (f.id.as_str(), f)).collect(),
    };
    // "</script>" inside a text would end the element.
    let json = serde_json::to_string(&data).unwrap_or_default().replace('<', "\\u003c");
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                // The browser itself keeps the page from asking anyone for anything.
                meta http-equiv="Content-Security-Policy"
                    content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:";
                meta name="color-scheme" content="light dark";
                title { "manypath: the papers' experiments" }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#main" { "Skip to the experiments" }
                (header(chapters))
                div.columns {
                    (contents(chapters))
                    main id="main" {
                        (overview(chapters, all))
                        (papers(chapters))
                    }
                }
                noscript { p.banner { "The figures are drawn by a script inside this file; the tables below each figure need none." } }
                script id="data" type="application/json" { (PreEscaped(json)) }
                script { (PreEscaped(PLOTLY)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn header(chapters: &[Chapter]) -> Markup {
    html! {
        header.top {
            div {
                p.kicker { "manypath laboratory" }
                h1 { "The papers' experiments, run again" }
            }
            div.theme role="group" aria-label="Colours" {
                button type="button" data-theme-set="auto" aria-pressed="true" { "Auto" }
                button type="button" data-theme-set="light" aria-pressed="false" { "Light" }
                button type="button" data-theme-set="dark" aria-pressed="false" { "Dark" }
            }
        }
        @if chapters.iter().any(|c| c.results.as_ref().is_some_and(|r| r.info.quick)) {
            p.banner role="note" {
                strong { "Quick runs. " }
                "Some experiments below ran with few seeds and thinned sweeps: good for a look, too few for a verdict. "
                "They are marked; run them again without " code { "--quick" } "."
            }
        }
    }
}

fn contents(chapters: &[Chapter]) -> Markup {
    html! {
        nav.toc aria-label="Experiments" {
            details open {
                summary { "Contents" }
                p { a href="#overview" { "Overview" } }
                @for (paper, inside) in by_paper(chapters) {
                    p.toc-paper { (paper_title(paper).0) }
                    ul {
                        @for chapter in inside {
                            li {
                                a href={"#" (chapter.id)} {
                                    span.toc-id { (chapter.id) }
                                    (parts::dots(chapter))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A sentence on the experiments that the page has nothing of.
fn left_out(left: usize, all: usize) -> Markup {
    let were = if left == 1 { "experiment was" } else { "experiments were" };
    html! {
        @if left > 0 {
            p.small { (left) " " (were) " not run, of " (all) ": " code { "manypath lab run all" } " runs every one." }
        }
    }
}

fn overview(chapters: &[Chapter], all: usize) -> Markup {
    let ran: Vec<_> = chapters.iter().filter_map(|c| c.results.as_ref()).collect();
    let own = || ran.iter().filter(|r| r.info.runs_of.is_none());
    let runs: usize = own().map(|r| r.info.runs).sum();
    let failed: usize = own().map(|r| r.info.failed).sum();
    let claims =
        |author| ran.iter().flat_map(|r| &r.claims).filter(move |claim| claim.of == author);
    let compared: Vec<&Compared> = ran.iter().flat_map(|r| &r.compared).collect();
    let agree = compared.iter().filter(|c| c.agrees).count();
    let version = ran.iter().map(|r| r.info.version.as_str()).find(|v| !v.is_empty());
    html! {
        section.overview id="overview" {
            p.lead {
                "Each figure below comes from transfers simulated with the very engine that manypath runs on a network. "
                "Whole lines and filled marks are ours, with 95 % confidence intervals; dashed lines and open marks are the papers' own "
                "simulator, ns-2; stars are numbers that a paper states."
            }
            div.cards {
                (card(&format!("{} of {all}", ran.len()), "experiments run", &match failed {
                    0 => format!("{} transfers simulated", parts::thousands(runs)),
                    _ => format!("{} transfers simulated, {failed} failed", parts::thousands(runs)),
                }))
                (claims_card("claims of the papers hold", &claims(Author::Paper).collect::<Vec<_>>()))
                @if claims(Author::Ours).next().is_some() {
                    (claims_card("claims of ours hold", &claims(Author::Ours).collect::<Vec<_>>()))
                }
                @if compared.is_empty() {
                    (card("–", "agreement with ns-2", "no point compared yet"))
                } @else {
                    (card(&parts::percent(agree, compared.len()), "of points agree with ns-2",
                        &format!("{agree} of {} within 5 % or inside its confidence interval", compared.len())))
                }
            }
            @if !compared.is_empty() { (agreement_overview(chapters)) }
            (left_out(all - chapters.len(), all))
            p.small {
                "All of it again: " code { "manypath lab run all && manypath lab report" }
                @if let Some(version) = version { " (manypath " (version) ")" } "."
            }
        }
    }
}

fn card(figure: &str, what: &str, more: &str) -> Markup {
    html! { div.card { p.big { (figure) } p.what { (what) } p.small { (more) } } }
}

fn claims_card(what: &str, claims: &[&Judgement]) -> Markup {
    let counts = parts::tally(claims.iter().copied());
    let words = Tally::of(claims.iter().copied());
    html! {
        div.card {
            p.big { (words.hold) " of " (words.all) }
            p.what { (what) }
            div.bar aria-hidden="true" {
                @for (verdict, count) in &counts {
                    span class={"fill " (parts::class(*verdict))} style={"flex-grow:" (count)} {}
                }
            }
            p.small {
                (words.evidence) " of those that hold do not with their mechanism switched off"
                @if words.marked > 0 { ", " (words.marked) " have a mark" }
                "; the others say “no evidence”"
                @for (verdict, count) in counts.iter().filter(|(verdict, _)| **verdict != Verdict::Holds) {
                    ", " (parts::count(*verdict, *count))
                }
            }
        }
    }
}

fn agreement_overview(chapters: &[Chapter]) -> Markup {
    html! {
        details.agreement {
            summary { "Agreement with ns-2 by experiment" }
            div.scroll tabindex="0" {
                table {
                    thead { tr { th { "Experiment" } th.number { "Points" } th.number { "Agree" } th.number { "Share" } th.number { "Largest difference" } } }
                    tbody {
                        @for chapter in chapters {
                            @let compared = chapter.results.as_ref().map_or(&[][..], |r| &r.compared[..]);
                            @if !compared.is_empty() {
                                @let agree = compared.iter().filter(|c| c.agrees).count();
                                tr {
                                    td { a href={"#" (chapter.id)} { (chapter.id) } }
                                    td.number { (compared.len()) }
                                    td.number { (agree) }
                                    td.number { (parts::percent(agree, compared.len())) }
                                    td.number { (largest(compared)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn largest(compared: &[Compared]) -> String {
    let changes = compared.iter().filter_map(|c| c.ratio).map(|r| 100.0 * (r - 1.0));
    let most = changes.max_by(|a, b| a.abs().total_cmp(&b.abs()));
    most.map_or_else(|| "–".into(), parts::signed_percent)
}

pub(crate) fn by_paper(chapters: &[Chapter]) -> Vec<(&str, Vec<&Chapter>)> {
    let mut papers: Vec<(&str, Vec<&Chapter>)> = Vec::new();
    for chapter in chapters {
        match papers.iter_mut().find(|(paper, _)| *paper == chapter.paper) {
            Some((_, inside)) => inside.push(chapter),
            None => papers.push((&chapter.paper, vec![chapter])),
        }
    }
    papers
}

/// A paper's short and full title.
pub(crate) fn paper_title(paper: &str) -> (&str, &str) {
    match paper {
        "000-cmt-pf" => (
            "CMT-PF: path failure",
            "Natarajan and others: Concurrent multipath transfer during path failure",
        ),
        "001-rtx" => (
            "Retransmission policies",
            "Caro and others: Retransmission policies for multihomed transport protocols",
        ),
        "002-cmt" => (
            "CMT",
            "Iyengar and others: Concurrent multipath transfer over independent end-to-end paths",
        ),
        "003-mtcp" => (
            "mTCP: redundant paths of an overlay",
            "Zhang and others: A transport layer approach for improving end-to-end performance and robustness using redundant paths",
        ),
        "004-msacmt" => (
            "MSACMT: redundant paths",
            "Multipath state aware concurrent multipath transfer using redundant transmission (MSACMT-RTv2)",
        ),
        "900-worlds" => ("Large worlds", "Ours: many associations in one network"),
        other => (other, ""),
    }
}

fn papers(chapters: &[Chapter]) -> Markup {
    html! {
        @for (paper, inside) in by_paper(chapters) {
            @let (short, full) = paper_title(paper);
            section.paper {
                h2 { (short) }
                @if !full.is_empty() { p.small { (full) } }
                @for chapter in inside { (experiment(chapter)) }
            }
        }
    }
}

fn experiment(chapter: &Chapter) -> Markup {
    html! {
        article.experiment id=(chapter.id) {
            header {
                p.kicker { (chapter.id) @if !chapter.figure.is_empty() { " · " (chapter.figure) } }
                h3 { (chapter.title) }
                (chips(chapter))
            }
            @if !chapter.says.is_empty() { p.says { strong { "The paper: " } (chapter.says) } }
            @if let Some(results) = &chapter.results {
                @for shown in &chapter.figures { (figure(shown, &chapter.title)) }
                @if !results.claims.is_empty() { (parts::claims(&results.claims)) }
                @if !results.compared.is_empty() { (parts::agreement(&results.compared)) }
            }
            (parts::command(&chapter.command))
            @if !chapter.notes.is_empty() {
                details.notes { summary { "Notes: what we chose, and why" } (parts::markdown(&chapter.notes)) }
            }
        }
    }
}

fn chips(chapter: &Chapter) -> Markup {
    html! {
        p.chips {
            @if let Some(results) = &chapter.results {
                @if results.info.quick { span.chip.quick { "quick run: few seeds" } }
                @for (verdict, count) in parts::tally(results.claims.iter()) {
                    span class={"chip " (parts::class(verdict))} { (parts::mark(verdict)) " " (parts::count(verdict, count)) }
                }
                @if let Some(other) = &results.info.runs_of {
                    span.chip { "uses the runs of " (other) }
                } @else if results.info.runs > 0 {
                    span.chip { (parts::thousands(results.info.runs)) " runs" }
                    @if results.info.seeds > 0 { span.chip { (results.info.seeds) @if results.info.seeds == 1 { " seed" } @else { " seeds" } " a point" } }
                }
                @if results.info.failed > 0 { span.chip.fails { (results.info.failed) " runs failed" } }
            }
        }
    }
}

fn figure(figure: &Figure, title: &str) -> Markup {
    let lines = || figure.views.iter().flat_map(|v| &v.panels).flat_map(|p| &p.lines);
    let has_interval = lines().flat_map(|l| &l.points).any(|p| p.ci > 0.0);
    let has_reference = lines().any(|l| l.reference);
    let marks = figure
        .views
        .first()
        .map(|v| v.panels.iter().flat_map(|p| p.stated.iter()).collect::<Vec<_>>());
    let marks = marks.unwrap_or_default();
    html! {
        figure.figure id={"figure-" (figure.id)} {
            @if figure.title != title { h4 { (figure.title) } }
            @if figure.views.is_empty() {
                p.empty { "These results have no point of this figure." }
            } @else {
                div.tools {
                    @if figure.views.len() > 1 {
                        div.tabs role="group" aria-label="Rules of the simulated stack" {
                            @for (i, view) in figure.views.iter().enumerate() {
                                button type="button" data-view=(i) aria-pressed=(if i == 0 { "true" } else { "false" }) { (view.name) }
                            }
                        }
                    }
                    @if has_interval {
                        button type="button" data-toggle="intervals" aria-pressed="true" { "Intervals" }
                    }
                    @if has_reference {
                        button type="button" data-toggle="reference" aria-pressed="true" { "ns-2" }
                    }
                    @if !marks.is_empty() {
                        button type="button" data-toggle="stated" aria-pressed="true" { "Paper’s numbers" }
                    }
                }
                div.plot data-figure=(figure.id) role="img" aria-label={(figure.title) ": " (figure.y.title()) " by " (figure.x.title()) "; the values are in the table below"} {}
                figcaption {
                    @if !figure.caption.is_empty() { p { (figure.caption) } }
                    @if !marks.is_empty() {
                        p { span.star { "★ " } "The paper states: "
                            @for (i, mark) in marks.iter().enumerate() {
                                @if i > 0 { "; " }
                                (mark.label) " (" (value::short(mark.y)) @if !figure.y.unit.is_empty() { " " (figure.y.unit) }
                                " at " (figure.x.text(mark.x)) ")"
                            }
                            "."
                        }
                    }
                }
                (parts::data(figure))
            }
        }
    }
}
