use std::path::PathBuf;

use super::*;

/// Results of an experiment `made` with these values of `time_s`: of each seed from 1 on, at two
/// points.
fn results(root: &Path, name: &str, times: &[f64], verdict: &str) -> PathBuf {
    let out = root.join(name);
    let folder = out.join("made");
    std::fs::create_dir_all(&folder).unwrap();
    let about = serde_json::json!({
        "id": "made", "title": "", "paper": "", "figure": "", "says": "", "figures": [],
        "command": "", "quick": false, "seeds": times.len(), "runs": 0, "planned": 0, "failed": 0,
        "incomplete": 0, "runs_of": null, "variants": ["scenario"], "parameters": ["loss"],
        "version": name,
    });
    std::fs::write(folder.join("experiment.json"), about.to_string()).unwrap();
    let claims = serde_json::json!([{
        "id": "fast", "says": "It is fast", "where": "", "measure": "", "expected": "",
        "measured": format!("{}", times[0]), "value": null, "ci95": null, "reference": null,
        "verdict": verdict, "reason": null, "explanation": null, "quick": false,
    }]);
    std::fs::write(folder.join("claims.json"), claims.to_string()).unwrap();
    let mut lines = String::new();
    for (loss, factor) in [("0 %", 1.0), ("5 %", 0.0)] {
        for (seed, time) in (1..).zip(times) {
            let row = serde_json::json!({
                "experiment": "made", "variant": "scenario", "loss": loss, "seed": seed,
                "time_s": 1.0 + time * factor, "packets": 7,
            });
            lines += &format!("{row}\n");
        }
    }
    std::fs::write(folder.join("runs.jsonl"), lines).unwrap();
    out
}

fn compared(a: &Path, b: &Path, ignored: &[&str]) -> Changes {
    let experiments = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let experiments = Experiments::find(Some(&experiments)).unwrap();
    let ignored: Vec<_> = ignored.iter().map(|&field| field.to_owned()).collect();
    between(&experiments, &[], a, b, &ignored).unwrap().remove(0)
}

#[test]
fn equal_results_have_no_changes() {
    let root = tempfile::tempdir().unwrap();
    let a = results(root.path(), "a", &[1.0, 1.1, 0.9], "holds");
    let b = results(root.path(), "b", &[1.0, 1.1, 0.9], "holds");
    let changes = compared(&a, &b, &[]);
    assert!(changes.is_none(), "{changes:?}");
    assert_eq!((changes.runs.both, changes.runs.equal), (6, 6));
}

#[test]
fn a_change_that_every_seed_shows_is_told_from_chance() {
    let root = tempfile::tempdir().unwrap();
    // Seeds differ by more than what changes: only pairs show it.
    let before = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let slower: Vec<_> =
        (0..).zip(before).map(|(i, t)| t + 0.2 + 0.01 * f64::from(i % 2)).collect();
    let noisy: Vec<_> = (0..).zip(before).map(|(i, t)| t + 0.2 * f64::from(i % 3 - 1)).collect();
    let a = results(root.path(), "a", &before, "holds");
    let b = results(root.path(), "b", &slower, "fails");
    let c = results(root.path(), "c", &noisy, "holds");
    let changes = compared(&a, &b, &[]);
    assert_eq!(changes.runs.fields, [("time_s".to_owned(), 6)].into());
    let [mean] = &changes.means[..] else { panic!("{changes:?}") };
    assert_eq!((mean.field.as_str(), &mean.params[0].1[..]), ("time_s", "0 %"));
    assert!(
        mean.p.unwrap() < 1e-4 && (mean.change.unwrap() - 0.205 / 4.5).abs() < 0.001,
        "{mean:?}"
    );
    assert!(changes.claims[0].is_of_verdict());
    assert_eq!(
        changes.claims[0].verdicts,
        Both { a: Some(Verdict::Holds), b: Some(Verdict::Fails) }
    );

    let by_chance = compared(&a, &c, &[]);
    assert_eq!((by_chance.means.len(), by_chance.runs.equal), (0, 8));
    assert!(!by_chance.claims[0].is_of_verdict() || by_chance.claims.is_empty());
}

#[test]
fn one_run_has_no_test_and_each_of_its_changes_is_told() {
    let root = tempfile::tempdir().unwrap();
    let a = results(root.path(), "a", &[1.0], "holds");
    let b = results(root.path(), "b", &[1.0001], "holds");
    let changes = compared(&a, &b, &[]);
    assert_eq!((changes.means.len(), changes.tested), (1, 0));
    assert_eq!(changes.means[0].p, None);
}

#[test]
fn other_seeds_are_compared_as_independent_samples() {
    let root = tempfile::tempdir().unwrap();
    let a = results(root.path(), "a", &[1.0, 1.1, 0.9, 1.0, 1.05, 0.95], "holds");
    let b = results(root.path(), "b", &[2.0, 2.1, 1.9, 2.0], "holds");
    let changes = compared(&a, &b, &[]);
    assert_eq!(changes.runs.only, Both { a: 4, b: 0 });
    assert_eq!(changes.means.len(), 1);
    assert!(changes.means[0].p.unwrap() < 1e-4, "{changes:?}");
}

#[test]
fn ignored_fields_may_differ() {
    let root = tempfile::tempdir().unwrap();
    let a = results(root.path(), "a", &[1.0, 1.1], "holds");
    let b = results(root.path(), "b", &[1.0, 1.2], "holds");
    assert!(compared(&a, &b, &["time_s"]).is_none());
    assert!(!compared(&a, &b, &["packets"]).is_none());
}

#[test]
fn a_folder_without_results_and_a_name_without_any_are_errors() {
    let root = tempfile::tempdir().unwrap();
    let a = results(root.path(), "a", &[1.0], "holds");
    let experiments = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let experiments = Experiments::find(Some(&experiments)).unwrap();
    let empty = root.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let failed = |names: &[String], b: &Path| between(&experiments, names, &a, b, &[]).unwrap_err();
    assert!(failed(&[], &empty).remedy.contains("lab run"));
    assert!(failed(&[], &root.path().join("none")).remedy.contains("lab-results"));
    assert!(failed(&["mode".to_owned()], &a).remedy.contains("made"));
    std::fs::write(a.join("made/runs.jsonl"), "{").unwrap();
    assert!(failed(&[], &a).place.ends_with("runs.jsonl"));
}
