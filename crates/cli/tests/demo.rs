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

/// A text without white space and numbers, which differ by run and by width of the terminal.
fn words(text: &str) -> String {
    let text = match text.split_once("SHA-256") {
        // A hash has letters, too.
        Some((before, after)) => {
            format!("{before}SHA-256 {}", after.split_once("With").map_or("", |(_, rest)| rest))
        }
        None => text.to_owned(),
    };
    text.chars().filter(|c| c.is_alphabetic() || "(%)".contains(*c)).collect()
}

/// The lines that the picture of the README shows last.
fn last_lines_of_the_picture() -> String {
    let picture = include_str!("../../../docs/figures/demo.svg");
    let (_, last) = picture.split_once("id=\"last\"").expect("a last frame");
    let texts = last.split("<text").skip(1).map(|part| {
        let (_, text) = part.split_once('>').expect("the end of a tag");
        text.split_once('<').expect("the end of a text").0
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_picture_of_the_readme_shows_what_the_demo_says_today() {
    // Both paths are up for long enough to say how fast they are, on a busy host, too.
    let output = manypath(&["demo", "--size", "20 MB", "--down", "3.5 s", "--for", "0.1 s"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let said = stderr(&output);
    let introduction = said.lines().next().unwrap_or_default();
    let now = format!("$ manypath demo\n{introduction}\n{}", stdout(&output));
    let picture = last_lines_of_the_picture();
    assert_eq!(
        words(&picture),
        words(&now),
        "renew the picture with docs/figures/demo.py; it shows:\n{picture}\nand the demo says:\n{now}"
    );
}
