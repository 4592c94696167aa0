use std::path::Path;
use std::sync::atomic::Ordering;

use super::*;
use crate::claims::{UnderPlacebo, Verdict};

const SCENARIO: &str = r#"
seeds = 3
time_limit = "60 s"
[transport]
preset = "cmt"
[transfer]
size = "100 kB"
[[path]]
rate = "10 Mbit/s"
delay = "20 ms"
[[path]]
rate = "10 Mbit/s"
delay = "20 ms"
[sweep]
"path.2.loss" = ["0 %", "5 %"]
"#;

const CLAIMS: &str = r#"
title = "A test"
figure = "Fig. 0"
figures = ["test-a", "test-b"]
samples = { every = "100 ms", seeds = 1 }
[[derive]]
name = "largest_cwnd"
series = ["path1.cwnd_bytes"]
take = "max"
[[derive]]
name = "t3_total"
sum = ["path1_t3_expirations", "path2_t3_expirations"]
[[claim]]
id = "loss-slows"
says = "Loss slows"
where = "nowhere"
measure = "max"
field = "transfer_time_s"
at = { "path.2.loss" = "5 %" }
at_least = 0
[[claim]]
id = "no-timeouts"
says = "Without loss there are none"
where = "nowhere"
measure = "mean"
field = "t3_total"
at = { "path.2.loss" = "0 %" }
at_most = 0
"#;

fn experiments(root: &Path) -> Experiments {
    let own = root.join("999-test").join("test-one");
    let borrowing = root.join("999-test").join("test-two");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::create_dir_all(&borrowing).unwrap();
    std::fs::write(own.join("scenario.toml"), SCENARIO).unwrap();
    std::fs::write(own.join("claims.toml"), CLAIMS).unwrap();
    let reference = "path.2.loss,field,mean,std,n,source\n0 %,bytes,100000,0,3,made up\n";
    std::fs::write(own.join("reference.csv"), reference).unwrap();
    let claims = CLAIMS.replace("figures = [\"test-a\", \"test-b\"]", "runs = \"test-one\"");
    let claims = claims.replace("t3_total", "total_of_its_own");
    std::fs::write(borrowing.join("claims.toml"), claims).unwrap();
    Experiments::find(Some(root)).unwrap()
}

fn options(out: &Path, jobs: usize) -> Options<'static> {
    let jobs = NonZeroUsize::new(jobs).unwrap();
    Options { out: out.to_owned(), jobs, extent: Extent::default(), realtime: None }
}

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read(&path).unwrap())
        })
        .collect();
    all.sort();
    all
}

#[test]
fn all_files_are_the_same_whatever_the_number_of_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let experiments = experiments(&folder.path().join("experiments"));
    let selected = experiments.select(&["all".to_owned()]).unwrap();
    let mut results = Vec::new();
    for jobs in [1, 4] {
        let out = folder.path().join(format!("out-{jobs}"));
        let mut seen = Vec::new();
        let cancel = AtomicBool::new(false);
        let outcomes = run(&experiments, &selected, &options(&out, jobs), &cancel, &mut |p| {
            seen.push((p.done, p.planned, p.failed));
        });
        let outcomes = outcomes.unwrap();
        assert_eq!(seen, (1..=6).map(|done| (done, 6, 0)).collect::<Vec<_>>());
        assert_eq!(outcomes.len(), 2);
        for outcome in &outcomes {
            let holds = |judged: &Judgement| judged.verdict == Verdict::Holds;
            assert!(
                outcome.judgements.len() == 2 && outcome.judgements.iter().all(holds),
                "{outcome:?}"
            );
            assert_eq!((outcome.about.runs, outcome.about.seeds), (6, 3));
        }
        assert!(outcomes[0].agreements[0].agrees);
        assert_eq!(outcomes[1].about.runs_of.as_deref(), Some("test-one"));
        results.push((files(&out.join("test-one")), files(&out.join("test-two")), outcomes, out));
    }
    let names: Vec<_> = results[0].0.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "agreement.csv",
        "claims.json",
        "experiment.json",
        "runs.csv",
        "runs.jsonl",
        "runs.parquet",
        "samples.csv",
        "summary.csv",
    ];
    assert_eq!(names, expected);
    assert!(results[0].0 == results[1].0 && results[0].1 == results[1].1, "files differ");
    let samples = std::fs::read_to_string(results[0].3.join("test-one/samples.csv")).unwrap();
    assert!(samples.starts_with("variant,path.2.loss,seed,time_s,series,value\nscenario,0 %,1,0"));
    assert!(samples.contains(",path2.cwnd_bytes,") && !samples.contains("scenario,0 %,2,"));
    let rows = std::fs::read_to_string(results[0].3.join("test-one/runs.jsonl")).unwrap();
    let cwnd = |line: &str| {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        row["largest_cwnd"].as_f64().unwrap()
    };
    assert!(rows.lines().all(|line| cwnd(line) >= 4380.0), "the initial cwnd at least: {rows}");
    // Judging what is on disk gives the same again.
    let (.., outcomes, out) = &results[0];
    assert_eq!(judge(&experiments, &selected, &options(out, 1)).unwrap(), *outcomes);
}

#[test]
fn what_is_done_when_cancelled_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let experiments = experiments(&folder.path().join("experiments"));
    let selected = experiments.select(&["test-a".to_owned()]).unwrap();
    let cancel = AtomicBool::new(false);
    let out = folder.path().join("out");
    let outcomes = run(&experiments, &selected, &options(&out, 1), &cancel, &mut |progress| {
        if progress.done == 2 {
            cancel.store(true, Ordering::Relaxed);
        }
    });
    let about = &outcomes.unwrap()[0].about;
    assert!((2..6).contains(&about.runs), "{about:?}");
    assert_eq!(about.planned, 6);
    let lines = std::fs::read_to_string(out.join("test-one/runs.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), about.runs);
}

#[test]
fn a_derived_column_does_not_replace_a_field_of_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("experiments");
    experiments(&root);
    let claims = CLAIMS.replace("t3_total", "timeouts");
    std::fs::write(root.join("999-test/test-one/claims.toml"), claims).unwrap();
    let experiments = Experiments::find(Some(&root)).unwrap();
    let selected = experiments.select(&["test-a".to_owned()]).unwrap();
    let options = options(&folder.path().join("out"), 1);
    let cancel = AtomicBool::new(false);
    let outcomes = run(&experiments, &selected, &options, &cancel, &mut |_| {}).unwrap();
    let failed = &outcomes[0].failed;
    assert_eq!((failed.len(), outcomes[0].about.runs), (6, 0));
    assert!(failed[0].error.contains("a field `timeouts`"), "{}", failed[0].error);
}

#[test]
fn quick_runs_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let experiments = experiments(&folder.path().join("experiments"));
    let selected = experiments.select(&["999".to_owned()]).unwrap();
    let mut options = options(&folder.path().join("out"), 2);
    options.extent = Extent { quick: true, seeds: Some((1..=9).collect()) };
    let cancel = AtomicBool::new(false);
    let outcomes = run(&experiments, &selected, &options, &cancel, &mut |_| {}).unwrap();
    assert_eq!(outcomes[0].about.seeds, crate::plan::QUICK_SEEDS);
    assert!(outcomes.iter().all(|o| o.about.quick && o.judgements[0].quick));
    assert!(outcomes[0].about.command.ends_with("--quick"));
}

#[test]
fn placebos_run_beside_the_scenario_and_claims_are_judged_by_both() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("experiments");
    let _ = experiments(&root);
    let placebo = "[[placebo]]\nid = \"no-loss\"\nsays = \"Nothing is lost\"\nseeds = 2\n\
                   set = { \"path.2.loss\" = \"0 %\" }\n";
    let claims = CLAIMS.replace("[[claim]]", &format!("{placebo}[[claim]]"));
    // The first only: a placebo is written once.
    let claims = claims.replacen(placebo, "", claims.matches(placebo).count() - 1);
    let claims = claims.replace("at_least = 0", "at_least = 0.8");
    std::fs::write(root.join("999-test/test-one/claims.toml"), claims).unwrap();
    let experiments = Experiments::find(Some(&root)).unwrap();
    let selected = experiments.select(&["test-*".to_owned()]).unwrap();
    let out = folder.path().join("out");
    let cancel = AtomicBool::new(false);
    let outcomes = run(&experiments, &selected, &options(&out, 2), &cancel, &mut |_| {}).unwrap();
    // Two points, with three seeds each and two of the placebo.
    assert_eq!(outcomes[0].about.runs, 10);
    assert_eq!(outcomes[0].about.variants, ["scenario", "placebo-no-loss"]);
    for outcome in &outcomes {
        let slows = &outcome.judgements[0];
        assert_eq!(slows.verdict, Verdict::Holds, "{slows:?}");
        let under = [slows.placebo, outcome.judgements[1].placebo];
        let borrows = outcome.about.runs_of.is_some();
        // The second one says that nothing happens without loss: it needs no loss.
        let expected = [Some(UnderPlacebo::Fails), Some(UnderPlacebo::Holds)];
        if borrows {
            assert_eq!(under[1], expected[1]);
        } else {
            assert_eq!(under, expected, "{outcome:?}");
        }
    }
    let again = judge(&experiments, &selected, &options(&out, 1)).unwrap();
    assert_eq!(again[0].judgements, outcomes[0].judgements);
    let unknown = experiments_with_claim_of_no_placebo(&root);
    assert!(unknown.contains("`test-one` has no such placebo"), "{unknown}");
}

fn experiments_with_claim_of_no_placebo(root: &Path) -> String {
    let file = root.join("999-test/test-two/claims.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}placebo = \"other\"\n")).unwrap();
    Experiments::find(Some(root)).unwrap_err().to_string()
}
