//! `manypath doctor` on this host, whatever its network is. `tests/doctor` breaks hosts on purpose.

mod common;

use common::{code, manypath, stderr, stdout};
use serde_json::Value;

fn json(args: &[&str]) -> (i32, Value) {
    let output = manypath(&[&["doctor", "--json", "--quiet"], args].concat());
    let report = serde_json::from_str(&stdout(&output));
    (code(&output), report.unwrap_or_else(|e| panic!("{e}: {}", stderr(&output))))
}

#[test]
fn the_checks_are_listed_with_their_findings() {
    let list = stdout(&manypath(&["doctor", "--list"]));
    assert!(list.contains("rp-filter") && list.contains("finds: mtu, mtu-lower"), "{list}");
    let (exit, list) = json(&["--list"]);
    assert_eq!(exit, 0);
    let checks = list["checks"].as_array().unwrap();
    assert!(checks.len() >= 18, "{checks:?}");
    assert!(checks.iter().all(|c| !c["about"].as_str().unwrap().is_empty()));
}

#[test]
fn one_check_reports_its_findings_only() {
    let (exit, report) = json(&["--only", "buffers", "--time-server", "127.0.0.1:9"]);
    let findings = report["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1, "{report}");
    assert_eq!(findings[0]["id"], "udp-buffers");
    let expected = match report["worst"].as_str().unwrap() {
        "ok" | "note" => 0,
        "warning" => 10,
        other => panic!("{other}"),
    };
    assert_eq!(exit, expected, "{report}");
}

#[test]
fn a_destination_on_this_host_is_said_to_be_one() {
    let (_, report) = json(&["127.0.0.1:9", "--time-server", "127.0.0.1:9"]);
    assert_eq!(report["destination"][0], "127.0.0.1:9");
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.iter().any(|f| f["id"] == "dest-here"), "{report}");
    let unseen = report["unseen"].as_array().unwrap();
    assert!(unseen.iter().any(|u| u["what"] == "clock"), "the time server is silent: {report}");
    let text = stdout(&manypath(&["doctor", "127.0.0.1:9", "--time-server", "127.0.0.1:9"]));
    assert!(text.contains("dest-here: The destination is this host"), "{text}");
    assert!(text.contains("not seen clock"), "{text}");
}

#[test]
fn an_uplink_that_does_not_exist_is_an_error_and_a_wrong_option_too() {
    let (exit, report) = json(&["--bind", "no-such0", "--time-server", "127.0.0.1:9"]);
    assert_eq!((exit, report["findings"][0]["id"].as_str()), (11, Some("no-such-uplink")));
    for (args, word) in [
        (&["doctor", "--only", "routs"][..], "routes"),
        (&["doctor", "--long=1h"], "10 min"),
        (&["doctor", "--stun", "a:b"], "HOST:PORT"),
        (&["doctor", "host:port"], "HOST:PORT"),
        (&["doctor", "--list", "host"], "cannot be used with"),
    ] {
        let output = manypath(args);
        assert_eq!(code(&output), 2, "{args:?}");
        assert!(stderr(&output).contains(word), "{args:?}: {}", stderr(&output));
    }
}
