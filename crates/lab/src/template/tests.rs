use super::*;
use crate::lab::{Options, run};
use crate::plan::Extent;

/// Experiments of this folder, which has at least one.
fn found(root: &Path) -> Experiments {
    Experiments::find(Some(root)).unwrap()
}

#[test]
fn a_new_experiment_runs_as_it_is_and_its_claim_holds() {
    let root = tempfile::tempdir().unwrap();
    let built_in = found(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments"));
    let folder = create(root.path(), "own", "wifi-loss", &built_in).unwrap();
    assert_eq!(folder, root.path().join("own/wifi-loss"));
    let experiments = found(root.path());
    let options = Options {
        out: root.path().join("results"),
        jobs: 2.try_into().unwrap(),
        extent: Extent { quick: false, seeds: Some(vec![1, 2, 3]) },
        realtime: None,
    };
    let selected = experiments.select(&["wifi-loss".to_owned()]).unwrap();
    let outcomes = run(&experiments, &selected, &options, &Default::default(), &mut |_| {});
    let outcome = &outcomes.unwrap()[0];
    assert!(outcome.about.title.starts_with("wifi-loss: "), "{}", outcome.about.title);
    assert!(outcome.judgements.iter().all(|judged| judged.is_evidence()), "{outcome:#?}");
}

#[test]
fn a_name_is_taken_once() {
    let root = tempfile::tempdir().unwrap();
    let known = found(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments"));
    create(root.path(), "own", "one", &known).unwrap();
    let again = create(root.path(), "own", "one", &known).unwrap_err();
    assert!(again.remedy.contains("another name"), "{again}");
    let elsewhere = create(root.path(), "others", "one", &found(root.path())).unwrap_err();
    assert!(elsewhere.what.contains("already"), "{elsewhere}");
    let in_the_tree = create(root.path(), "own", "cmt-fig12", &known).unwrap_err();
    assert!(in_the_tree.what.contains("already"), "{in_the_tree}");
}

#[test]
fn names_that_would_lead_elsewhere_are_errors() {
    let root = tempfile::tempdir().unwrap();
    let known = found(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments"));
    for name in ["", "..", "a/b", "All", "all", "-x", "a b", "ä", &"a".repeat(65)] {
        assert!(create(root.path(), "own", name, &known).is_err(), "{name}");
        assert!(create(root.path(), name, "one", &known).is_err(), "{name}");
    }
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
}
