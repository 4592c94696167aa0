//! Records that are wrong, hostile or cut short.

use std::io::BufRead;

use manypath_replay::{Network, Record, RecordError, Replay};
use manypath_sim::TraceTo;
use manypath_sim::scenario::{RunOptions, Scenario};

const SCENARIO: &str = r#"
    time_limit = "60 s"
    transport = { profile = "fast", preset = "adaptive" }
    transfer = { size = "3 MB" }
    [[path]]
    rate = "10 Mbit/s"
    delay = "10 ms"
"#;

/// The lines of a good record.
fn recorded() -> String {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("record.jsonl");
    let run = &Scenario::parse("known", SCENARIO).unwrap().points().unwrap()[0].run;
    let trace = TraceTo { record: Some(file.clone()), ..TraceTo::default() };
    run.run(1, &RunOptions { trace: Some(trace), ..RunOptions::default() }).unwrap();
    std::fs::read_to_string(file).unwrap()
}

fn read(text: &str) -> Result<Record, RecordError> {
    Record::read(text.as_bytes())
}

#[test]
fn texts_of_a_record_stay_texts_in_the_scenario() {
    let mut record = read(&recorded()).unwrap();
    record.paths[0].remote = "10.0.0.1\nseeds = 7\n[[path]]".to_owned();
    let network = Network::estimate(&record).unwrap();
    let replay = Replay::new(&record, &network);
    assert_eq!(Scenario::parse("replay", replay.scenario()).unwrap().seeds(), [1]);
    assert!(replay.run(None, 1).unwrap().time_s.is_some());

    record.recording.preset = "adaptive\"\nmtu = \"1400".to_owned();
    let error = Replay::new(&record, &network).run(None, 1).unwrap_err();
    assert!(error.what.contains("preset"), "{error}");
    assert!(Replay::new(&record, &network).run(Some("cmt"), 1).is_ok(), "another one will do");
}

#[test]
fn a_record_that_is_cut_short_is_read_up_to_there() {
    let whole = recorded();
    let (count, part) = (read(&whole).unwrap().transfer.len(), &whole[..whole.len() / 2]);
    let record = read(part).unwrap();
    assert!(record.end.is_none() && (1..count).contains(&record.transfer.len()));
    assert!(record.bytes() > 0 && Network::estimate(&record).is_ok());
}

#[test]
fn what_is_no_record_or_of_another_version_is_refused() {
    assert!(matches!(read(""), Err(RecordError::NotARecord)));
    assert!(matches!(read("no JSON\n"), Err(RecordError::NotARecord)));
    let whole = recorded();
    let first = whole.as_bytes().lines().next().unwrap().unwrap();
    let later = whole.replacen("\"schema\":1", "\"schema\":99", 1);
    assert!(first.contains("\"schema\":1"), "{first}");
    assert!(matches!(read(&later), Err(RecordError::Version { found: 99 })));
    for time in ["1e308", "-1.0", "1e12"] {
        for key in ["since_s", "rtt_s"] {
            let at = whole.find(&format!("\"{key}\":")).unwrap() + key.len() + 3;
            let end = at + whole[at..].find([',', '}']).unwrap();
            let wrong = format!("{}{time}{}", &whole[..at], &whole[end..]);
            assert!(matches!(read(&wrong), Err(RecordError::Time(_))), "{key} {time}");
        }
    }
    let damaged = whole.replacen("\"event\":\"path_sample\"", "\"event\":7", 1);
    assert!(matches!(read(&damaged), Err(RecordError::Line(_))));
    assert!(Network::estimate(&read(&first).unwrap()).is_err(), "nothing was sent");
}
