//! The report from made-up results; `tests/report` looks at the page in a browser.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::figure::{Figure, Shape};
use super::palette::{self, Palette};
use super::results::{Mean, Params, Results};
use super::*;
use crate::cell::{Cell, Fields};
use crate::claims::Verdict;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/report/fixture")
}

fn experiment(folder: &str) -> Experiment {
    Experiment::load(&fixture().join("experiments").join(folder)).unwrap()
}

fn experiments() -> Vec<Experiment> {
    let folders = ["000-cmt-pf/made-bars", "000-cmt-pf/made-later", "000-cmt-pf/made-time"];
    let others = ["001-rtx/made-facets", "002-cmt/made-lines"];
    folders.into_iter().chain(others).map(experiment).collect()
}

fn chapters() -> Vec<Chapter> {
    read(&experiments(), &fixture().join("results")).unwrap()
}

fn drawn<'a>(chapters: &'a [Chapter], id: &str) -> &'a Figure {
    let mut figures = chapters.iter().flat_map(|c| &c.figures);
    figures.find(|f| f.id == id).unwrap()
}

fn mean(params: &[(&str, &str)], field: &str, mean: f64, ci95: f64) -> Mean {
    let params: Params = params.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    let (variant, field) = ("scenario".into(), field.into());
    Mean { variant, params, field, mean, ci95: Some(ci95), n: 10, by_seed: BTreeMap::new() }
}

fn results(means: Vec<Mean>) -> Results {
    let info = chapters().swap_remove(0).results.unwrap().info;
    Results { info, means, reference: vec![], claims: vec![], compared: vec![], samples: vec![] }
}

/// The figure of one `[[figure]]` table over these means.
fn built(text: &str, means: Vec<Mean>) -> Result<Figure, (String, String)> {
    let specs = spec::parse(Path::new("figures.toml"), text).unwrap();
    build(&specs[0].1, &results(means), &mut Palette::default())
}

fn parse_error(text: &str) -> String {
    spec::parse(Path::new("figures.toml"), text).unwrap_err().to_string()
}

#[test]
fn a_line_has_our_means_with_their_interval_and_the_reference_beside_it() {
    let chapters = chapters();
    let figure = drawn(&chapters, "made-lines");
    let results = chapters[4].results.as_ref().unwrap();
    assert_eq!((figure.kind, figure.x.unit.as_str()), (Shape::Lines, "%"));
    let views: Vec<_> = figure.views.iter().map(|v| v.variant.as_str()).collect();
    assert_eq!(views, ["scenario", "packaged"]);
    let lines = &figure.views[0].panels[0].lines;
    let names: Vec<_> = lines.iter().map(|l| (l.name.as_str(), l.reference)).collect();
    assert_eq!(&names[..2], [("RTX-SAME", false), ("RTX-SAME", true)]);
    assert_eq!(lines.len(), 10);
    let row = results.means.iter().find(|m| m.params["path.2.loss"] == "7 %").unwrap();
    let point = lines[0].points.iter().find(|p| p.x == 7.0).unwrap();
    assert_eq!((point.y, Some(point.ci), point.n), (row.mean, row.ci95, 30));
    assert_eq!(lines[1].points.len(), 5, "the reference has every second loss rate");
    assert_eq!(lines[0].slot, lines[1].slot, "a policy and its reference share a colour");
    assert_eq!(figure.views[0].panels[0].stated.len(), 2);
}

#[test]
fn each_variant_has_its_own_reference_beside_it() {
    let of = |variant: &str, value| Mean {
        variant: variant.into(),
        ..mean(&[("loss", "1 %")], "ack_time_s", value, 0.1)
    };
    let means = ["scenario", "packaged", "packaged-2mtu"].map(|variant| of(variant, 1.0));
    let results =
        Results { reference: vec![of("", 2.0), of("packaged-2mtu", 3.0)], ..results(means.into()) };
    let text = "[[figure]]\nx = 'loss'\ny = 'ack_time_s'";
    let specs = spec::parse(Path::new("figures.toml"), text).unwrap();
    let figure = build(&specs[0].1, &results, &mut Palette::default()).unwrap();
    let drawn = figure.views.iter().map(|view| {
        let lines = view.panels[0].lines.iter().filter(|line| line.reference);
        (
            view.variant.as_str(),
            lines.flat_map(|line| &line.points).map(|p| p.y).collect::<Vec<_>>(),
        )
    });
    let expected = [("scenario", vec![2.0]), ("packaged", vec![2.0]), ("packaged-2mtu", vec![3.0])];
    assert_eq!(drawn.collect::<Vec<_>>(), expected);
}

#[test]
fn a_reference_without_an_interval_gets_student_s() {
    let chapters = chapters();
    let reference = &chapters[4].results.as_ref().unwrap().reference[0];
    // t(29, 97.5 %) = 2.045; the file gives a deviation of 1.3 over 30 runs.
    let expected = 2.04523 * 1.3 / 30f64.sqrt();
    assert!((reference.ci95.unwrap() - expected).abs() < 1e-4, "{:?}", reference.ci95);
}

#[test]
fn values_of_different_units_are_categories_in_their_order() {
    let chapters = chapters();
    let figure = drawn(&chapters, "made-bars");
    assert_eq!(figure.x.categories, ["32 KiB", "64 KiB", "128 KiB", "1 MiB"]);
    let cmt = &figure.views[0].panels[0].lines[0];
    assert_eq!(cmt.points.iter().map(|p| p.x).collect::<Vec<_>>(), [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(cmt.points[0].y, 3.0, "3e6 bit/s in Mbit/s");
}

#[test]
fn facets_are_panels_and_a_mark_belongs_to_its_own() {
    let chapters = chapters();
    let panels = &drawn(&chapters, "made-facets").views[0].panels;
    let titles: Vec<_> = panels.iter().map(|p| p.title.as_str()).collect();
    assert_eq!(titles, ["Primary 3 %", "Primary 5 %", "Primary 8 %"]);
    assert_eq!(panels.iter().map(|p| p.stated.len()).collect::<Vec<_>>(), [0, 1, 0]);
}

#[test]
fn a_scatter_pairs_two_fields_of_a_point() {
    let chapters = chapters();
    let figure = drawn(&chapters, "made-scatter");
    let points = figure.views[0].panels[0].lines.iter().flat_map(|l| &l.points);
    assert_eq!(points.clone().count(), 54, "3 primaries, 6 alternates, 3 policies");
    assert!(
        points.clone().all(|p| (p.y / p.x - 4.0).abs() < 1e-3),
        "the fixture's time is 4 timeouts"
    );
}

#[test]
fn samples_are_lines_over_time() {
    let chapters = chapters();
    let figure = drawn(&chapters, "made-time");
    let panels = &figure.views[0].panels;
    let titles: Vec<_> = panels.iter().map(|p| p.title.as_str()).collect();
    assert_eq!(titles, ["CMT", "CMT-PF"]);
    let line = &panels[0].lines[0];
    assert_eq!((line.name.as_str(), line.points.len(), line.points[0].y), ("path 1", 600, 3.0));
}

#[test]
fn a_change_is_in_percent_of_the_line_named() {
    let text = "[[figure]]\nx = 'loss'\ny = 't'\nrelative_to = { policy = 'same' }";
    let means = vec![
        mean(&[("loss", "1 %"), ("policy", "same")], "t", 20.0, 1.0),
        mean(&[("loss", "1 %"), ("policy", "cwnd")], "t", 15.0, 0.6),
    ];
    let figure = built(text, means).unwrap();
    let lines = &figure.views[0].panels[0].lines;
    assert_eq!((lines[0].points[0].y, lines[0].points[0].ci), (0.0, 0.0));
    assert_eq!(lines[1].points[0].y, -25.0);
    // 100 · √((0.6/20)² + (0.75 · 1/20)²) = 4.80
    assert!((lines[1].points[0].ci - 4.802).abs() < 1e-3, "{}", lines[1].points[0].ci);
    assert_eq!(figure.y.unit, "%");
}

#[test]
fn the_interval_of_a_change_is_of_the_pairs_of_seeds() {
    let mut runs = crate::table::Table::new();
    // Seeds differ by far more than the policies do.
    for seed in 1..=5 {
        for (policy, factor) in [("same", 1.0), ("cwnd", 0.75)] {
            let params = vec![("loss", "1 %"), ("policy", policy), ("none", "")];
            let params = params.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
            let value = Cell::Float(10.0 * factor * seed as f64 + f64::from(seed == 2));
            let fields = Fields::from_iter([("t".to_owned(), value)]);
            runs.push(&"scenario".into(), &Arc::new(params), seed, fields);
        }
    }
    let mut results = results(vec![
        mean(&[("loss", "1 %"), ("policy", "same")], "t", 30.2, 19.6),
        mean(&[("loss", "1 %"), ("policy", "cwnd")], "t", 22.7, 14.7),
    ]);
    results.add_runs("t", &runs);
    let text = "[[figure]]\nx = 'loss'\ny = 't'\nrelative_to = { policy = 'same' }";
    let specs = spec::parse(Path::new("figures.toml"), text).unwrap();
    let figure = build(&specs[0].1, &results, &mut Palette::default()).unwrap();
    let point = &figure.views[0].panels[0].lines[1].points[0];
    // The pairs, by the laboratory's statistics; as independent means it would be 69 points.
    let pairs: Vec<_> = (1..=5)
        .map(|s| (7.5 * f64::from(s) + f64::from(s == 2), 10.0 * f64::from(s) + f64::from(s == 2)))
        .collect();
    let expected = crate::stats::paired_ratio(&pairs).unwrap();
    assert!((point.y - 100.0 * (expected.value - 1.0)).abs() < 1e-9, "{}", point.y);
    assert!((point.ci - 100.0 * expected.ci95().unwrap()).abs() < 1e-9, "{}", point.ci);
    assert!(point.ci > 0.0 && point.ci < 2.0, "{}", point.ci);
}

#[test]
fn only_the_values_asked_for_are_drawn_and_0_50_is_0_5() {
    let text = "[[figure]]\nx = 'loss'\ny = 't'\nwhere = { buffer = '64 KiB' }\nstated = [{ x = '0.50 %', y = 1, label = 'l' }]";
    let means = vec![
        mean(&[("loss", "0.5 %"), ("buffer", "64 KiB")], "t", 1.0, 0.1),
        mean(&[("loss", "0.5 %"), ("buffer", "32 KiB")], "t", 2.0, 0.1),
    ];
    let figure = built(text, means).unwrap();
    let panel = &figure.views[0].panels[0];
    assert_eq!(panel.lines.len(), 1);
    assert_eq!((panel.lines[0].points[0].y, panel.stated[0].x), (1.0, 0.5));
}

#[test]
fn a_name_that_the_results_do_not_have_is_an_error_that_lists_those_they_have() {
    let means = || vec![mean(&[("loss", "1 %")], "t", 1.0, 0.1)];
    let (what, remedy) = built("[[figure]]\nx = 'loss'\ny = 'time'", means()).unwrap_err();
    assert_eq!((what.as_str(), remedy.as_str()), ("y: the results have no \"time\"", "one of: t"));
    let (what, _) = built("[[figure]]\nx = 'los'\ny = 't'", means()).unwrap_err();
    assert!(what.contains("x: the results have no \"los\""), "{what}");
    let stated = "[[figure]]\nx = 'loss'\ny = 't'\nstated = [{ x = '64 KiB', y = 1, label = '' }]";
    assert!(built(stated, means()).unwrap_err().0.contains("no value of loss"));
}

#[test]
fn errors_in_a_file_name_its_line() {
    let unknown = parse_error(
        "[[figure]]\nx = 'a'\ny = 'b'\n\n[[figure]]\nid = 'c'\nx = 'a'\ny = 'b'\nylabel = 'd'\n",
    );
    assert!(unknown.starts_with("figures.toml:9: ") && unknown.contains("ylabel"), "{unknown}");
    assert!(unknown.contains("y_label"), "the keys there are: {unknown}");
    let missing = parse_error("\n[[figure]]\nid = 'c'\ny = 'b'\n");
    assert!(missing.starts_with("figures.toml:2: x is missing"), "{missing}");
    let twice = parse_error("[[figure]]\nx = 'a'\ny = 'b'\n[[figure]]\nx = 'a'\ny = 'c'\n");
    assert!(twice.contains(":4: a second figure without id (the first: line 1)"), "{twice}");
    let path = parse_error("[[figure]]\nid = '../up'\nx = 'a'\ny = 'b'\n");
    assert!(path.contains("no name for a file"), "{path}");
    let scale = parse_error("[[figure]]\nx = 'a'\ny = 'b'\ny_scale = 0\n");
    assert!(scale.contains("y_scale = 0"), "{scale}");
    let cut = parse_error("[[figure]]\nx = 'a\n");
    assert!(cut.starts_with("figures.toml:2: "), "{cut}");
}

#[test]
fn a_bad_number_in_the_results_names_file_and_line() {
    let out = tempfile::tempdir().unwrap();
    let dir = out.path().join("made-lines");
    std::fs::create_dir(&dir).unwrap();
    let about = "made-lines/experiment.json";
    std::fs::copy(fixture().join("results").join(about), out.path().join(about)).unwrap();
    std::fs::write(dir.join("summary.csv"), "variant,field,mean\nscenario,t,1\nscenario,t,one\n")
        .unwrap();
    let error = read(&experiments()[4..], out.path()).err().unwrap().to_string();
    assert!(error.contains("summary.csv:3: column mean: \"one\" is no number"), "{error}");
    std::fs::write(dir.join("summary.csv"), "variant,field,mean\nscenario,t\n").unwrap();
    let error = read(&experiments()[4..], out.path()).err().unwrap().to_string();
    assert!(error.contains("summary.csv:2: "), "{error}");
}

#[test]
fn a_policy_keeps_its_colour_and_no_two_lines_of_a_figure_share_one() {
    let mut palette = Palette::default();
    let keys = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    let first = palette.slots(&keys(&["made up", "cwnd", "same"]));
    let second = palette.slots(&keys(&["same", "other", "made up"]));
    assert_eq!((first[0], first[2]), (second[2], second[0]));
    let all = palette.slots(&keys(&["a", "b", "c", "d", "cmt", "same", "pf1", "sctp"]));
    let mut distinct = all.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), palette::SLOTS, "{all:?}");
}

#[test]
fn colours_stand_out_on_their_grounds() {
    let luminance = |hex: &str| {
        let part = |i: usize| {
            let v = f64::from(u8::from_str_radix(&hex[i..i + 2], 16).unwrap()) / 255.0;
            if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    };
    for (colours, ground) in [(palette::LIGHT, "#ffffff"), (palette::DARK, "#1b1f25")] {
        for colour in colours {
            let (a, b) = (luminance(colour), luminance(ground));
            let contrast = (a.max(b) + 0.05) / (a.min(b) + 0.05);
            assert!(contrast >= 3.0, "{colour} on {ground}: {contrast:.2}");
        }
    }
}

#[test]
fn the_page_needs_nothing_else_and_texts_stay_texts() {
    let mut chapters = chapters();
    chapters[4].notes =
        "# T\n<script>alert(1)</script>\n\n[a](other.md) [b](https://example.org)".into();
    chapters[4].figures[0].title = "</script><img src=x>".into();
    let page = page::render(&chapters, 5);
    assert!(page.contains("default-src 'none'"));
    assert!(!page.contains("src=\"http") && !page.contains("<link rel=\"stylesheet\""));
    assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert"));
    assert!(!page.contains("<img src=x>") && page.contains("\\u003c/script>\\u003cimg"));
    assert!(page.contains("<a href=\"https://example.org\">b</a>") && !page.contains("other.md"));
    assert!(page.len() < 1_500_000, "{} bytes", page.len());
}

#[test]
fn the_page_counts_claims_and_shows_unmet_ones() {
    let chapters = chapters();
    let claims = chapters.iter().filter_map(|c| c.results.as_ref()).flat_map(|r| &r.claims);
    let tally = parts::tally(claims);
    let counts =
        [Verdict::Holds, Verdict::Explained, Verdict::Fails, Verdict::NotRun].map(|v| tally[&v]);
    assert_eq!(counts, [2, 1, 1, 1]);
    let mut chapters = chapters;
    chapters.retain(|chapter| chapter.results.is_some());
    let page = page::render(&chapters, 5);
    for part in [
        "4 of 5",
        "does not hold",
        "No explanation yet.",
        "half the queue",
        "The paper does not say how long its queues are.",
        "does not hold it either (ns-2, release 3.6): 31.0 ± 1.1 s",
        "points that differ",
        "manypath lab run made-lines",
        // The claims of the papers, and ours; what the mechanism off makes of them.
        "1 of 4",
        "1 of 1",
        "Beside the paper: what we claim",
        "Every policy is RTX-SAME",
        "without the mechanism it does not",
        "and also without it: no evidence",
        "1 experiment was not run, of 5",
        "quick run: few seeds",
        "9\u{202f}002 transfers",
        "2 failed",
    ] {
        assert!(page.contains(part), "{part:?} is not on the page");
    }
    for part in ["An experiment that was not run", "It will be as it was.", "made-later"] {
        assert!(!page.contains(part), "{part:?} is on the page");
    }
}

#[test]
fn pictures_need_no_fonts_and_say_what_they_show() {
    let out = tempfile::tempdir().unwrap();
    let options = Options {
        results: fixture().join("results"),
        out: out.path().join("sub/report.html"),
        figures: Some(out.path().join("figures")),
        claims: Some(out.path().join("claims.md")),
    };
    let written = write(&experiments(), &options).unwrap();
    assert_eq!((written.experiments, written.figures, written.pictures), (4, 6, 16));
    let page = std::fs::read_to_string(&options.out).unwrap();
    assert!(page.contains("1 experiment was not run, of 5") && !page.contains("made-later"));
    let list = std::fs::read_to_string(out.path().join("claims.md")).unwrap();
    assert!(list.contains("| **all** | 3 | 1 | 0 | 0 | 0 | 2 |"), "{list}");
    assert!(list.contains("| **all** | 1 | 0 | 0 | 1 | 0 | 0 |"), "ours: {list}");
    assert!(list.contains("| holds, no evidence | holds: 1.1, 1.1, 1.0 |\n"), "{list}");
    assert!(!list.contains("An experiment that was not run"), "{list}");
    let cause = "| an unpublished parameter | 1 | `made-lines` | The paper does not say how long its queues are. | 1 not held either |\n";
    assert!(list.contains(cause), "{list}");
    assert!(
        list.contains("| not known | 1 | `made-lines` | No explanation yet. | 1 not known |\n")
    );
    let (causes, tables) = (list.find("## By cause"), list.find("## CMT-PF"));
    assert!(causes.is_some() && causes < tables, "the causes come first: {list}");
    let row = "| does not hold: an unpublished parameter. The paper's queue length is not stated; with half the queue the time is within 2 %; \
               the paper's own simulator does not hold it either (ns-2, release 3.6): 31.0 ± 1.1 s |";
    assert!(list.contains(row), "{list}");
    let svg = std::fs::read_to_string(out.path().join("figures/made-lines.svg")).unwrap();
    assert!(svg.contains("<title>Transfer time with a receive buffer of 64 KB</title>"));
    assert!(!svg.contains("<text") && !svg.contains("font-family"), "text is drawn as paths");
    let pixels = std::fs::read(out.path().join("figures/made-lines-packaged.png")).unwrap();
    assert!(pixels.starts_with(b"\x89PNG\r\n"));
    let again = write(&experiments(), &options).map(|_| ());
    again.unwrap();
    let same = std::fs::read_to_string(out.path().join("figures/made-lines.svg")).unwrap();
    assert_eq!(svg, same, "the same results give the same picture");
}

#[test]
fn the_same_figure_id_in_two_experiments_is_an_error() {
    let mut twice = experiments();
    twice.push(experiment("002-cmt/made-lines"));
    let error = read(&twice, &fixture().join("results")).err().unwrap().to_string();
    assert!(error.contains("figure \"made-lines\" is also in"), "{error}");
}

#[test]
fn numbers_are_as_long_as_their_interval_warrants() {
    assert_eq!(value::with_interval(33.2149, 0.8123), "33.21 ± 0.81");
    assert_eq!(value::with_interval(33.2149, 12.3), "33 ± 12");
    assert_eq!(value::with_interval(33.2149, 0.0), "33.21");
    assert_eq!((value::short(0.1 + 0.2), value::short(-1500.0)), ("0.3".into(), "-1500".into()));
    assert_eq!(parts::thousands(1234567), "1\u{202f}234\u{202f}567");
    assert_eq!(
        (parts::percent(999, 1000), parts::percent(5, 5)),
        ("99.9 %".into(), "100 %".into())
    );
    assert_eq!(parts::percent(9999, 10000), "99.9 %", "not all");
}
