//! The list of claims and the README agree with the experiments.

use std::fs;
use std::path::{Path, PathBuf};

use manypath_lab::claims::{Author, Mark};
use manypath_lab::experiment::Experiments;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(file: &str) -> String {
    let path = root().join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The numbers in the first line of a Markdown table that begins so: all claims; those that hold as
/// evidence, with a mark, and without evidence; those that cannot be decided; those that do not
/// hold.
fn counts(text: &str, line: &str) -> Vec<usize> {
    let line = text.lines().find(|own| own.starts_with(line)).unwrap_or_else(|| panic!("{line}"));
    line.split('|').filter_map(|cell| cell.trim().parse().ok()).collect()
}

#[test]
fn the_list_of_claims_has_those_of_the_experiments_and_no_others() {
    let list = read("experiments/CLAIMS.md");
    let experiments = Experiments::find(Some(&root().join("experiments"))).unwrap();
    let (mut all, mut of_papers) = (0, 0);
    for experiment in experiments.all() {
        for claim in &experiment.claims {
            all += 1;
            of_papers += usize::from(claim.of == Author::Paper);
            let says = format!("{} ({})", claim.says, claim.place).replace('|', "\\|");
            let says = says.split_whitespace().collect::<Vec<_>>().join(" ");
            let id = format!("| `{}`", experiment.id);
            let is_listed = list.lines().any(|line| line.starts_with(&id) && line.contains(&says));
            let remedy = "after `lab run all`: `lab report --claims experiments/CLAIMS.md`";
            assert!(is_listed, "{}/{} is not listed; {remedy}", experiment.id, claim.id);
        }
    }
    let rows = list.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, all, "claims are listed that are no more");
    assert_eq!(counts(&list, "| **all** |")[0], of_papers, "not all were run");
}

#[test]
fn the_readme_counts_the_claims_as_the_list_does() {
    let counts = counts(&read("experiments/CLAIMS.md"), "| **all** |");
    let [all, evidence, marked, open, undecided, fail] = counts[..] else { panic!("{counts:?}") };
    let hold = evidence + marked + open;
    assert_eq!(hold + undecided + fail, all);
    let readme = read("README.md");
    let readme = readme.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = format!(
        "Of {all} claims {hold} hold, {undecided} cannot be decided, and {fail} do not hold. Of those \
         that hold {evidence} fail once their mechanism is switched off or made worse, {marked} have a \
         mark because they prove less, and {open} hold without it as well"
    );
    assert!(readme.contains(&expected), "the README does not say: {expected}");
}

#[test]
fn what_does_not_hold_has_a_cause_that_is_explained_once() {
    let experiments = Experiments::find(Some(&root().join("experiments"))).unwrap();
    let claims = || experiments.all().iter().flat_map(|e| e.claims.iter().map(move |c| (e, c)));
    for (experiment, claim) in claims() {
        let is_open = claim.explanation.is_some() && claim.cause.is_none();
        assert!(!is_open, "{}/{} has an explanation without a cause", experiment.id, claim.id);
    }
    let causes: toml::Table = toml::from_str(&read("experiments/causes.toml")).unwrap();
    for cause in causes["cause"].as_array().unwrap() {
        let id = cause["id"].as_str().unwrap();
        let is_used = claims().any(|(_, c)| c.cause.as_ref().is_some_and(|own| own.id == id));
        assert!(is_used, "no claim names the cause `{id}`");
    }
}

#[test]
fn marks_are_those_that_were_found() {
    let experiments = Experiments::find(Some(&root().join("experiments"))).unwrap();
    let claims = experiments.all().iter().flat_map(|e| &e.claims);
    let marks: Vec<_> = claims.filter_map(|claim| claim.mark).collect();
    let counts = Mark::ALL.map(|mark| marks.iter().filter(|own| **own == mark).count());
    // Tables 3 and 5 of mTCP, both tables of CMT-PF with fitted cross-traffic, Table 2 of MSACMT
    // with fitted links; MSACMT's two lines, RON's 18 s and a threshold that only takes paths away;
    // three timelines of CMT-PF.
    assert_eq!(counts, [38, 28, 31], "{:?}", Mark::ALL);
}

#[test]
fn the_list_begins_with_the_causes() {
    let list = read("experiments/CLAIMS.md");
    let causes = list.find("\n## By cause\n").expect("a page by cause");
    assert!(causes < list.find("\n## CMT-PF").expect("the tables"), "the causes come first");
    let inside = &list[causes..];
    let rows = inside.lines().take_while(|line| !line.starts_with("## CMT"));
    let rows: Vec<_> = rows.filter(|line| line.starts_with("| ")).skip(2).collect();
    assert!(rows.iter().all(|row| !row.starts_with("| not known |")), "{rows:?}");
    let claims: usize = rows.iter().flat_map(|row| counts(row, "| ").into_iter().next()).sum();
    assert_eq!(claims, counts(&list, "| **all** |")[5], "every claim that does not hold is there");
}
