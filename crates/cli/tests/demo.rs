//! `demo`, shortened: two processes, two emulated paths, an outage.

mod common;

use common::{code, manypath, stderr, stdout};
use serde_json::Value;

#[test]
fn the_demo_survives_its_outage_without_a_long_pause() {
    let args = ["demo", "--json", "--size", "16 MB", "--down", "2 s", "--for", "1 s"];
    let output = manypath(&args);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let result: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(result["completed"], true);
    assert_eq!(result["verified"], true);
    assert_eq!(result["bytes"], 16_000_000);
    let number = |key: &str| result[key].as_f64().unwrap();
    assert!(number("max_delivery_gap_s") <= 1.0, "{result}");
    assert!(number("single_path_s") > 6.4 && number("single_path_s") < 7.0, "{result}");
    assert!(number("transfer_time_s") < number("single_path_s"), "two paths beat one: {result}");
    let paths = result["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 2, "no way around the emulated links: {result}");
    for path in paths {
        assert!(path["bytes_acked"].as_u64().unwrap() > 2_000_000, "both carry data: {result}");
    }
}
