use super::*;
use crate::lab::run;
use crate::plan::Extent;
use crate::shard::collect;
use crate::template;

fn options(out: &Path) -> Options<'static> {
    Options {
        out: out.to_owned(),
        jobs: 2.try_into().unwrap(),
        extent: Extent { quick: false, seeds: Some(vec![1, 2]) },
        realtime: None,
    }
}

/// An experiment of 18 points, placebos among them, and its identifier.
fn experiments(root: &Path) -> (Experiments, Vec<String>) {
    let papers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let known = Experiments::find(Some(&papers)).unwrap();
    template::create(root, "own", "made", &known).unwrap();
    (Experiments::find(Some(root)).unwrap(), vec!["made".to_owned()])
}

/// The files of the experiment's results.
fn files(out: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(out.join("made")).unwrap().map(Result::unwrap);
    let file = |entry: std::fs::DirEntry| {
        (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
    };
    entries.map(file).collect()
}

#[test]
fn units_of_two_workers_in_any_order_give_the_files_of_one_run() {
    let root = tempfile::tempdir().unwrap();
    let (experiments, ids) = experiments(&root.path().join("experiments"));
    let (one, spread) = (root.path().join("one"), root.path().join("spread"));
    let selected = experiments.select(&ids).unwrap();
    run(&experiments, &selected, &options(&one), &Default::default(), &mut |_| {}).unwrap();

    let plan = || Work::new(&experiments, &ids, &options(&spread)).unwrap();
    let (scheduler, workers) = (plan(), [plan(), plan()]);
    let kept = scheduler.open(&spread).unwrap();
    assert!(kept.known.is_empty());
    for (number, unit) in scheduler.units().iter().enumerate().rev() {
        let lines = workers[number % 2].run(&unit.tasks).unwrap();
        assert_eq!(lines.len(), unit.tasks.len());
        kept.push(&lines).unwrap();
        if number % 3 == 0 {
            // A worker that was taken for dead.
            kept.push(&lines).unwrap();
        }
    }
    let parts = [kept.path.clone()];
    collect(&experiments, &parts, &mut options(&spread), &mut |_| {}).unwrap();
    assert_eq!(files(&one), files(&spread));

    // Nothing is made twice.
    let tasks: usize = scheduler.units().iter().map(|unit| unit.tasks.len()).sum();
    assert_eq!(plan().open(&spread).unwrap().known.len(), tasks);
}

#[test]
fn a_task_without_a_result_is_named_with_its_command_and_is_made_again() {
    let root = tempfile::tempdir().unwrap();
    let (experiments, ids) = experiments(&root.path().join("experiments"));
    let out = root.path().join("out");
    let work = Work::new(&experiments, &ids, &options(&out)).unwrap();
    let kept = work.open(&out).unwrap();
    let (bad, good) = work.units().split_first().unwrap();
    for unit in good {
        kept.push(&work.run(&unit.tasks).unwrap()).unwrap();
    }
    kept.fail(&bad.tasks, "the worker died three times").unwrap();
    let parts = [kept.path.clone()];
    let outcomes = collect(&experiments, &parts, &mut options(&out), &mut |_| {}).unwrap();
    let failed = &outcomes[0].failed;
    assert_eq!(failed.len(), bad.tasks.len());
    assert_eq!(failed[0].error, "the worker died three times");
    assert_eq!(failed[0].command, bad.command);
    assert!(work.open(&out).unwrap().known.is_disjoint(&bad.tasks.iter().cloned().collect()));
}

#[test]
fn a_worker_with_another_plan_makes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let (experiments, ids) = experiments(root.path());
    let work = Work::new(&experiments, &ids, &options(root.path())).unwrap();
    let error = work.run(&["0123".to_owned()]).unwrap_err();
    assert!(error.remedy.contains("same experiments"), "{error}");
    let kept = work.open(root.path()).unwrap();
    assert!(kept.push(&["{}".to_owned()]).is_err());
}
