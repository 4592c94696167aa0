//! Tests of the command's information about itself, and of wrong usage.

mod common;

use common::{code, lines_within, manypath, stderr, stdout};
use serde_json::Value;

/// A ticket with the key of a receiver at 127.0.0.1.
const STRICT_TICKET: &str =
    "manypath2:aetkwaih4oymiquy7qobjgx36tejs35zeqt24qpemsnzgtfeswmrw6csxbkqcbd7aaaacqjurjia";

/// The first line of `config show` without options.
const DEFAULTS: &str = "profile fast (default), preset adaptive (default)\n";

#[test]
fn help_shows_examples_and_exit_codes() {
    let help = manypath(&["--help"]);
    assert_eq!(code(&help), 0);
    for word in [
        "demo",
        "send",
        "recv",
        "proxy",
        "perf",
        "decrypt",
        "presets",
        "config",
        "completions",
        "man",
    ] {
        assert!(stdout(&help).contains(word), "{word}");
    }
    assert!(stdout(&help).contains("no usable path"), "the exit codes");
    for command in [
        &["demo"][..],
        &["send"],
        &["recv"],
        &["proxy", "listen"],
        &["proxy", "connect"],
        &["perf", "server"],
        &["perf", "client"],
        &["decrypt"],
        &["sim", "run"],
        &["sim", "check"],
        #[cfg(target_os = "linux")]
        &["emulate"],
        #[cfg(unix)]
        &["path", "set"],
        &["config", "show"],
        &["completions"],
        &["man"],
    ] {
        let help = manypath(&[command, &["--help"]].concat());
        assert_eq!(code(&help), 0, "{command:?}");
        assert!(stdout(&help).contains("Example"), "{command:?}");
    }
}

#[test]
fn the_version_is_the_package_s() {
    let short = format!("manypath {}\n", env!("CARGO_PKG_VERSION"));
    for command in [&["-V"][..], &["send", "-V"]] {
        assert!(stdout(&manypath(command)).ends_with(&short["manypath".len()..]), "{command:?}");
    }
    assert_eq!(stdout(&manypath(&["-V"])), short);
    // `./check packaging` tests what the commit is.
    let long = stdout(&manypath(&["--version"]));
    assert!(long.starts_with(&short), "{long}");
    for key in ["commit: ", "built for: ", "features: ", "protocols: transfer 2, proxy 1"] {
        assert!(long.contains(&format!("\n{key}")), "{key} in {long}");
    }
    assert!(cfg!(not(target_os = "linux")) || long.contains("emulate"), "{long}");
}

#[test]
fn presets_are_listed_for_people_and_programs() {
    let text = stdout(&manypath(&["presets"]));
    let json: Value = serde_json::from_str(&stdout(&manypath(&["presets", "--json"]))).unwrap();
    let named =
        |list: &Value, name: &str| list.as_array().unwrap().iter().any(|p| p["name"] == name);
    for preset in [
        "sctp",
        "sctp-pf",
        "all-rtx-alt",
        "all-rtx-same",
        "fr-same-rto-alt",
        "cmt",
        "cmt-pf",
        "mtcp",
        "msacmt-rt",
        "msacmt-rtv2",
    ] {
        assert!(text.contains(preset), "{preset}");
        assert!(named(&json["presets"], preset), "{preset}");
    }
    for profile in ["rfc9260", "fast", "2006"] {
        assert!(text.contains(profile), "{profile}");
        assert!(named(&json["profiles"], profile), "{profile}");
    }
    let defaults = |list: &Value| -> Vec<Value> {
        let marked = list.as_array().unwrap().iter().filter(|entry| entry["default"] == true);
        marked.map(|entry| entry["name"].clone()).collect()
    };
    assert_eq!(defaults(&json["presets"]), ["adaptive"]);
    assert_eq!(defaults(&json["profiles"]), ["fast"]);
    let marked = text.lines().filter(|line| line.ends_with("(default)"));
    let marked: Vec<_> = marked.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(marked, ["adaptive", "fast"]);
    assert!(stdout(&manypath(&["config", "show"])).starts_with(DEFAULTS));
}

#[test]
fn the_default_is_that_of_the_commands() {
    let json = |args: &[&str]| -> Value { serde_json::from_str(&stdout(&manypath(args))).unwrap() };
    let used = json(&["config", "show", "--json"]);
    let presets = json(&["presets", "--json"]);
    let presets = presets["presets"].as_array().unwrap();
    let defaults: Vec<_> = presets.iter().filter(|preset| preset["default"] == true).collect();
    assert_eq!(defaults.len(), 1);
    assert_eq!(defaults[0]["name"], used["preset"]);
    let text = stdout(&manypath(&["presets"]));
    for name in [&used["preset"], &used["profile"]] {
        let name = name.as_str().unwrap();
        let line = text.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        assert!(line.contains("(default"), "{line}");
    }
}

#[test]
fn what_is_printed_fits_its_columns() {
    for columns in [60, 80, 120] {
        for command in [
            &["presets"][..],
            &["config", "show"],
            &["config", "show", "--all", "-v"],
            &["lab", "list"],
        ] {
            let lines = lines_within(columns, command);
            let widest = lines.iter().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= columns, "{command:?}: {widest} of {columns}\n{}", lines.join("\n"));
        }
    }
    // For other programs a row is a line.
    let rto = ["rto_initial ", "1 ms to 600 s", "[RFC 9260 §6.3.1, §16]"];
    let text = stdout(&manypath(&["config", "show"]));
    let row = text.lines().find(|line| line.starts_with(rto[0])).unwrap();
    assert!(rto.iter().all(|part| row.contains(part)), "{row}");
}

#[test]
fn the_configuration_shows_value_range_and_origin() {
    let show = ["config", "show", "--set", "transport.rto_min=123ms", "--preset", "sctp"];
    let text = stdout(&manypath(&show));
    assert!(text.starts_with("profile fast (default), preset sctp\n"), "{text}");
    let row = text.lines().find(|line| line.starts_with("rto_min ")).unwrap();
    for word in ["123 ms", "200 ms", "override", "RFC 9260"] {
        assert!(row.contains(word), "{word} in {row}");
    }
    let json = stdout(&manypath(&[&show[..], &["--json"]].concat()));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["profile"], &json["preset"]), (&"fast".into(), &"sctp".into()));
    let parameters = json["parameters"].as_array().unwrap();
    let rto_min = parameters.iter().find(|p| p["name"] == "rto_min").unwrap();
    assert_eq!(rto_min["value"], "123 ms");
    for key in ["unit", "range", "default", "origin", "source", "doc"] {
        assert!(rto_min[key].is_string(), "{key}");
    }
    assert!(parameters.iter().any(|p| p["origin"] == "preset"));
    assert_eq!(rto_min["group"], "timers");
    assert!(rto_min["rarely"].is_null(), "users set it");
    assert!(parameters.iter().any(|p| p["rarely"] == "repeats the CMT paper"));
}

/// The parameters with a row of their own in what `config show` prints.
fn parameters(text: &str) -> Vec<&str> {
    let rows = text.lines().filter(|line| line.ends_with(']') && !line.starts_with(' '));
    rows.filter_map(|line| line.split_whitespace().next()).collect()
}

#[test]
fn what_only_repeats_a_paper_is_shown_when_asked_for() {
    let json = stdout(&manypath(&["config", "show", "--json"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    let count = json["parameters"].as_array().unwrap().len();
    let usual = stdout(&manypath(&["config", "show"]));
    assert!(parameters(&usual).len() <= 65, "{usual}");
    assert!(usual.contains("\nTimers:\nrto_initial "), "{usual}");
    assert!(usual.contains("--all"), "{usual}");
    assert!(parameters(&usual).contains(&"rto_min") && !parameters(&usual).contains(&"rto_alpha"));
    let all = stdout(&manypath(&["config", "show", "--all"]));
    assert_eq!(parameters(&all).len(), count, "{all}");
    let set = stdout(&manypath(&["config", "show", "--set", "rto_alpha=0.5"]));
    assert!(parameters(&set).contains(&"rto_alpha"), "what is set is shown");
}

#[test]
fn a_configuration_file_is_read_and_wrong_keys_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("c.toml");
    let show = |text: &str| {
        std::fs::write(&file, text).unwrap();
        manypath(&["config", "show", "--config", file.to_str().unwrap()])
    };
    let good = show("[transport]\nprofile = \"2006\"\nreceive_buffer = \"96 KiB\"\n");
    assert!(stdout(&good).contains("profile 2006"));
    assert!(stdout(&good).contains("96 KiB"));
    let wrong = show("[transport]\nreceive_bufer = \"96 KiB\"\n");
    assert_eq!(code(&wrong), 2);
    assert!(stderr(&wrong).contains("receive_buffer"), "the nearest name: {}", stderr(&wrong));
    assert_eq!(code(&show("rto_min = 1\n")), 2);
    assert_eq!(code(&show("[transport\n")), 2);
}

#[test]
fn completions_and_the_manual_page_cover_the_commands() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = manypath(&["completions", shell]);
        assert_eq!(code(&script), 0);
        assert!(stdout(&script).contains("perf"), "{shell}");
    }
    let page = stdout(&manypath(&["man"]));
    assert!(page.contains(".TH manypath 1"), "{}", &page[..200]);
    for heading in ["MANYPATH SEND", "MANYPATH PERF CLIENT", "MANYPATH CONFIG SHOW", "EXAMPLES"] {
        assert!(page.contains(heading), "{heading}");
    }
    assert!(page.contains("not authorised"), "the exit codes");
}

/// The key in [`STRICT_TICKET`].
const KEY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[test]
fn wrong_usage_is_exit_code_2_and_says_what_is_wrong() {
    for (args, word) in [
        (&["frobnicate"][..], "frobnicate"),
        (&["send", "file"], "DEST"),
        (&["send", "Cargo.toml", "host:port"], "HOST:PORT"),
        (&["send", "Cargo.toml", "manypath2:abcd"], "incomplete"),
        (&["send", "Cargo.toml", "manypath1:abcd"], "older version"),
        (&["send", "Cargo.toml", "manypath9:abcd"], "newer version"),
        // A strict ticket, whose key is the SHA-256 of nothing.
        (&["send", "--insecure", "Cargo.toml", STRICT_TICKET], "demands an encrypted transfer"),
        (&["send", "Cargo.toml", "host", "--peer", "sha256:12"], "64 hexadecimal digits"),
        (&["send", "Cargo.toml", STRICT_TICKET, "--peer", KEY], "--peer is for a HOST"),
        (&["send", "--insecure", "--identity", "x", "Cargo.toml", "host"], "cannot be used with"),
        (&["recv", "--allow", "sha256:12"], "64 hexadecimal digits"),
        (&["recv", "--cert", "x"], "--key"),
        (&["recv", "--cert", "no/such", "--key", "x", "--ca", "x"], "cannot read"),
        (&["send", "Cargo.toml", "127.0.0.1", "--preset", "no-such"], "cmt-pf"),
        (&["recv", "--port", "65536"], "65536"),
        (&["recv", "--token", "short"], "6 characters"),
        (&["recv", "--insecure", "--token", "shorter"], "8 characters"),
        (&["recv", "--token", ""], "empty"),
        (&["recv", "--token-file", "no/such"], "cannot be created: No such file"),
        (&["recv", "--token", "long enough", "--token-file", "x"], "cannot be used with"),
        (&["recv", "--token-file", "Cargo.toml"], "more than one line"),
        (&["perf", "client", "127.0.0.1", "-t", "0"], "3600"),
        (&["perf", "client", "127.0.0.1", "-n", "lots"], "lots"),
        (&["perf", "client", "127.0.0.1", "--messages", "2MiB"], "1 MiB"),
        (&["perf", "client", "127.0.0.1", "--interval", "0.05"], "0.1 to 60 seconds"),
        (&["perf", "client", "127.0.0.1", "--rate", "10 bit/s"], "1 kbit/s"),
        (&["perf", "client", "127.0.0.1", "--rate", "20"], "--rate"),
        (&["config", "show", "--set", "rto_min"], "KEY=VALUE"),
        (&["config", "show", "--set", "rto_min=0s"], "rto_min"),
        (&["demo", "--size", "0"], "--size"),
        (&["completions", "tcsh"], "bash"),
    ] {
        let output = manypath(args);
        assert_eq!(code(&output), 2, "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(word), "{word} in {}", stderr(&output));
        assert_eq!(stdout(&output), "", "errors go to standard error");
    }
}
