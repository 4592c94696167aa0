//! Scenario files that are wrong, each with the message it must give, and files that no one wrote.

use std::fs;
use std::path::{Path, PathBuf};

use manypath_sim::scenario::{RunOptions, Scenario};
use proptest::prelude::*;

/// The beginning of a bad file's first line; the rest is the message after the file's name.
const MARK: &str = "#= ";

fn bad_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenario_files/bad");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn message_of(path: &Path) -> String {
    let result = Scenario::load(path).and_then(|scenario| scenario.points());
    match result {
        Err(error) => error.to_string(),
        Ok(_) => "no error".to_owned(),
    }
}

#[test]
fn every_bad_file_is_refused_with_line_reason_and_remedy() {
    let mut wrong = String::new();
    for path in bad_files() {
        let text = fs::read_to_string(&path).unwrap();
        let first = text.lines().next().unwrap();
        let expected = first.strip_prefix(MARK).unwrap_or_else(|| panic!("{path:?}: no {MARK}"));
        let folder = format!("{}/", path.parent().unwrap().display());
        let message = message_of(&path).replace(&folder, "");
        let name = path.file_name().unwrap().to_string_lossy();
        let got = message.strip_prefix(&format!("{name}:")).unwrap_or(&message);
        // Lists of presets and policies grow; such a message is compared as far as it is certain.
        let is_as_expected = match expected.strip_suffix(" …") {
            Some(beginning) => got.starts_with(beginning),
            None => got == expected,
        };
        if !is_as_expected {
            wrong += &format!("{name}\n  says    {got}\n  not     {expected}\n");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Pieces of which scenario files consist, so that arbitrary combinations come far.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("[[path]]\n"),
        Just("[transport]\n"),
        Just("[transfer]\n"),
        Just("[[node]]\nname = \"a\"\n"),
        Just("[[node]]\nname = \"b\"\n"),
        Just("[[link]]\nfrom = \"a\"\nto = \"b\"\n"),
        Just("[[flow]]\nfrom = \"a\"\nto = \"b\"\n"),
        Just("[[traffic]]\nfrom = \"a\"\nto = \"b\"\n"),
        Just("[[event]]\nat = \"1 s\"\n"),
        Just("[sweep]\n"),
        Just("[[sweep.case]]\nname = \"x\"\n"),
        Just("size = \"1 kB\"\n"),
        Just("rate = \"1 Mbit/s\"\n"),
        Just("delay = \"1 ms\"\n"),
        Just("loss = { forward = \"1 %\", reverse = [] }\n"),
        Just("rank = \"backup\"\n"),
        Just("relay = true\n"),
        Just("[nat.near]\n"),
        Just("[[nat.far]]\n"),
        Just("nat = \"far\"\nchange = \"reboot\"\n"),
        Just("loss = 0.5\n"),
        Just("queue = \"2 bdp\"\n"),
        Just("queue = \"0.0001 bdp\"\n"),
        Just("hops = [{ rate = \"infinite\", delay = \"0\" }]\n"),
        Just("down = [{ at = \"1 s\", hop = 7 }]\n"),
        Just("cross = { load = \"900 %\" }\n"),
        Just("\"path.1.loss\" = [\"1 %\", 0.1, {}]\n"),
        Just("path = [1, {}, [[]]]\n"),
        Just("link = \"a-b\"\n"),
        Just("seeds = [1, 2]\n"),
        Just("preset = \"appstripe\"\n"),
        Just("[set]\n"),
        Just("x.y.z = 1\n"),
        Just("\"\" = 1\n"),
        Just("= [\n"),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary_text_never_panics(text in ".{0,200}") {
        let _ = Scenario::parse("any", &text).and_then(|scenario| scenario.points());
    }

    #[test]
    fn arbitrary_pieces_of_scenarios_never_panic(text in pieces()) {
        let _ = Scenario::parse("any", &text).and_then(|scenario| scenario.points());
    }

    #[test]
    fn arbitrary_settings_never_panic(name in "[a-z0-9_.]{0,20}", value in ".{0,20}") {
        let text = "transfer.size = \"1 kB\"\n[[path]]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
        let mut scenario = Scenario::parse("any", text).unwrap();
        if scenario.set(&name, &value).is_ok() {
            let _ = scenario.points();
        }
    }
}

/// Scenarios that are right: a base, and any of these lines for each path.
fn good() -> impl Strategy<Value = String> {
    let lines = vec![
        "loss = \"5 %\"",
        "queue = \"5 packets\"",
        "duplicate = \"2 %\"",
        "reorder = { probability = \"5 %\", by = \"30 ms\" }",
        "jitter = { forward = \"3 ms\", reverse = \"0 ms\" }",
        "corrupt = \"5 %\"",
        "red = { min = \"1 packets\", max = \"4 packets\", gentle = false }",
        "down = [{ at = \"100 ms\", for = \"700 ms\", after = \"first data\" }]",
        "rate_changes = [{ at = \"300 ms\", to = \"200 kbit/s\", direction = \"forward\" }]",
        "delay_changes = [{ at = \"200 ms\", to = \"80 ms\" }]",
        "loss_changes = [{ at = \"1 s\", to = { model = \"gilbert-elliott\", to_bad = \"5 %\", to_good = \"50 %\" } }]",
        "cross = { load = { forward = \"120 %\", reverse = \"0 %\" }, nodes = 2 }",
    ];
    let path = prop::sample::subsequence(lines, 0..12).prop_map(|lines| {
        format!("[[path]]\nrate = \"2 Mbit/s\"\ndelay = \"20 ms\"\n{}\n", lines.join("\n"))
    });
    let preset = prop::sample::select(vec!["sctp", "sctp-pf", "cmt", "cmt-pf", "appstripe"]);
    (preset, prop::collection::vec(path, 1..4)).prop_map(|(preset, paths)| {
        let head = format!("transfer.size = \"200 kB\"\ntransport.preset = \"{preset}\"\n");
        head + "time_limit = \"20 s\"\n" + &paths.concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn what_is_accepted_runs_and_repeats(text in good(), seed in 0u64..1000) {
        let points = Scenario::parse("good", &text).and_then(|scenario| scenario.points());
        let run = points.map_err(|error| TestCaseError::fail(error.to_string()))?[0].run.clone();
        let options = RunOptions { check_invariants: true, ..RunOptions::default() };
        let result = run.run(seed, &options).map(|output| output.result);
        prop_assert!(result.is_ok(), "{result:?}");
        let again = run.run(seed, &RunOptions { is_lean: true, ..RunOptions::default() });
        let hash = |result: &manypath_sim::scenario::RunResult| result.transfer.trace_hash.clone();
        prop_assert_eq!(result.as_ref().map(hash), again.as_ref().map(|o| hash(&o.result)));
    }
}
