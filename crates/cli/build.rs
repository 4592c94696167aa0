//! Tells the program which commit it is built from, for `--version`.
//!
//! It watches only what changes the answer: a new commit builds the command again, and nothing
//! else. Builds for debugging are not told, because each commit would build all tests of the
//! command again.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the crates, relative to this one.
const CRATES: &str = "../../crates";
/// Other sources of the program, relative to this crate.
const OTHERS: [&str; 3] = ["../../experiments", "../../Cargo.toml", "../../Cargo.lock"];
/// Where this crate is in its repository, as git prints it.
const PLACE: &str = "crates/cli/";
/// Digits of a commit that are shown.
const DIGITS: usize = 12;
/// Names the commit where no repository does, such as in packages of distributions.
const VARIABLE: &str = "MANYPATH_COMMIT";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    let is_debug = env::var("PROFILE").is_ok_and(|profile| profile == "debug");
    let told = env::var(VARIABLE).ok().and_then(|text| word(&text));
    let commit = told.or_else(|| {
        if is_debug {
            Some("not looked up (debug build)".to_owned())
        } else {
            packaged().or_else(checked_out)
        }
    });
    println!("cargo::rustc-env={VARIABLE}={}", commit.as_deref().unwrap_or("unknown"));
    println!("cargo::rustc-env=MANYPATH_TARGET={}", env::var("TARGET").unwrap_or_default());
}

/// The text, if it is one word.
fn word(text: &str) -> Option<String> {
    let text = text.trim();
    let is_word = !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
    is_word.then(|| text.to_owned())
}

fn here() -> PathBuf {
    PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default())
}

/// The commit that `cargo package` wrote into a crate from a registry.
fn packaged() -> Option<String> {
    let text = fs::read_to_string(here().join(".cargo_vcs_info.json")).ok()?;
    let digits = text.split_once("\"sha1\"")?.1.split('"').nth(1)?;
    let is_commit = digits.len() >= DIGITS && digits.chars().all(|c| c.is_ascii_hexdigit());
    is_commit.then(|| digits[..DIGITS].to_owned())
}

/// The commit of the repository, if this crate is a part of it.
fn checked_out() -> Option<String> {
    // An archive of the sources may lie in another repository.
    if git(&["rev-parse", "--show-prefix"])? != PLACE {
        return None;
    }
    git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    let commit = git(&["rev-parse", &format!("--short={DIGITS}"), "HEAD"])?;
    for name in ["HEAD", "refs/heads", "packed-refs", "reftable"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]) {
            watch(&here().join(path));
        }
    }
    let sources = sources();
    for source in &sources {
        watch(&here().join(source));
    }
    let status = ["status", "--porcelain", "--untracked-files=no", "--"];
    let words: Vec<&str> = status.into_iter().chain(sources.iter().map(String::as_str)).collect();
    let changes = git(&words)?;
    Some(if changes.is_empty() { commit } else { format!("{commit}, changed since") })
}

/// The sources of the program, relative to this crate. A change of any builds the command again
/// anyway.
fn sources() -> Vec<String> {
    let crates = fs::read_dir(here().join(CRATES)).into_iter().flatten().flatten();
    let names = crates.filter_map(|entry| entry.file_name().into_string().ok());
    let parts =
        names.flat_map(|name| ["src", "Cargo.toml"].map(|part| format!("{CRATES}/{name}/{part}")));
    let mut sources: Vec<String> = parts.chain(OTHERS.map(str::to_owned)).collect();
    sources.sort();
    sources
}

/// Runs this again when the file changes, or any in the directory.
fn watch(path: &Path) {
    // One that is not there would run it each time.
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

/// The output of git in this crate's directory, if there is a git and it succeeds.
fn git(args: &[&str]) -> Option<String> {
    // Optional locks are for writing the index, which is no business of a build.
    let output = Command::new("git")
        .arg("--no-optional-locks")
        .args(args)
        .current_dir(here())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim_end().to_owned())
}
