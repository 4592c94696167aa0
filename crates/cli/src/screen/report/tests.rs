use super::*;
use manypath_files::frame::Kind;
use manypath_files::relative::RelativePath;

fn header(name: &str) -> FileHeader {
    let name = RelativePath::from_bytes(name.as_bytes()).unwrap();
    FileHeader { index: 0, kind: Kind::File, size: 4, mode: None, modified: None, name }
}

#[test]
fn one_digest_is_the_result_s_several_are_the_files() {
    let mut one = FileLog::default();
    one.add(&header("a"), Outcome::Stored, "", Some([1; 32]));
    let mut two = FileLog::default();
    two.add(&header("a"), Outcome::Stored, "", Some([1; 32]));
    two.add(&header("b"), Outcome::Stored, "", Some([2; 32]));
    two.add(&header("c"), Outcome::DiskFull, "full", Some([3; 32]));
    let first = two.first_failure.as_ref().unwrap();
    assert_eq!((first.text.as_str(), first.hint), ("c: full", Outcome::DiskFull.hint()));
    let one = TransferResult::new("cmt-pf", one, None);
    assert_eq!(one.sha256, Some("01".repeat(32)));
    let two = TransferResult::new("cmt-pf", two, Some("why".to_owned()));
    assert_eq!((two.sha256.as_ref(), two.files_failed, two.completed), (None, 1, false));
    assert_eq!(two.files[2].sha256, None, "what is not stored has no digest");
}

#[test]
fn the_contract_s_keys_are_all_there() {
    let result = TransferResult::new("cmt-pf", FileLog::default(), None);
    let value: serde_json::Value = serde_json::from_str(&result.json_line()).unwrap();
    for key in [
        "scenario",
        "preset",
        "seed",
        "completed",
        "bytes",
        "transfer_time_s",
        "goodput_bps",
        "first_byte_s",
        "receive_buffer_blocked_s",
        "max_delivery_gap_s",
        "message_latency_p99_s",
        "overhead",
        "trace_hash",
        "paths",
        "notices",
        "files",
        "sha256",
    ] {
        assert!(value.get(key).is_some(), "{key}");
    }
}

/// The line about files with these names, all of 4 bytes.
fn told(names: &[&str], columns: usize) -> Option<String> {
    let mut files = FileLog::default();
    for name in names {
        files.add(&header(name), Outcome::Stored, "", Some([1; 32]));
    }
    TransferResult::new("adaptive", files, None).names(columns)
}

#[test]
fn a_person_is_told_the_first_names_and_how_many_more_there_are() {
    assert_eq!(told(&["big.iso"], 80).as_deref(), Some("big.iso 4 B"));
    let names: Vec<_> = (0..15).map(|n| format!("photos/{n}.jpeg")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let expected = "photos/0.jpeg 4 B, photos/1.jpeg 4 B, photos/2.jpeg 4 B, and 12 more";
    assert_eq!(told(&names, 80).as_deref(), Some(expected));
    assert_eq!(told(&[], 80), None);
    let long = format!("{}end.txt", "deep/".repeat(30));
    let said = told(&[&long], 60).expect("a name");
    assert!(said.starts_with("deep/") && said.ends_with("/end.txt 4 B"), "{said}");
    assert!(layout::width(&said) <= 58, "{said}");
}

#[test]
fn what_was_not_stored_is_not_told_by_name() {
    let mut files = FileLog::default();
    files.add(&header("a"), Outcome::DiskFull, "full", None);
    assert_eq!(TransferResult::new("adaptive", files, None).names(80), None);
}
