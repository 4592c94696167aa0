//! Code shared by the tests of the command line: they run the built binary.

#![allow(dead_code, reason = "each test file uses a part")]

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::Value;

pub(crate) mod relay;

/// The binary under test.
pub(crate) const MANYPATH: &str = env!("CARGO_BIN_EXE_manypath");

/// Runs `manypath` to its end, whatever the width of the terminal that the tests run in.
pub(crate) fn manypath<S: AsRef<OsStr>>(args: &[S]) -> Output {
    let mut command = Command::new(MANYPATH);
    command.args(args).env_remove("COLUMNS").stdin(Stdio::null()).output().expect("runs")
}

/// The lines that a command prints where a line has this many columns.
pub(crate) fn lines_within(columns: usize, args: &[&str]) -> Vec<String> {
    let mut command = Command::new(MANYPATH);
    let output = command.args(args).env("COLUMNS", columns.to_string()).stdin(Stdio::null());
    let text = stdout(&output.output().expect("runs"));
    text.lines().map(str::to_owned).collect()
}

/// The exit code of a finished command.
pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().expect("no signal")
}

/// Standard output of a finished command.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// Standard error of a finished command.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// A `manypath recv --json` on a free loopback port; killed when dropped.
pub(crate) struct Receiver {
    child: Child,
    out: BufReader<ChildStdout>,
    /// The ticket it printed; empty if it has none.
    pub(crate) ticket: String,
    /// All that it said when it began to listen.
    pub(crate) listening: Value,
    /// Its port.
    pub(crate) port: u64,
}

impl Receiver {
    /// Starts it with files going to `dir`.
    pub(crate) fn start(dir: &Path, more: &[&str]) -> Receiver {
        Receiver::with_progress(dir, more, false)
    }

    /// The same, and it says how much arrives if `progress`.
    pub(crate) fn with_progress(dir: &Path, more: &[&str], progress: bool) -> Receiver {
        let mut command = Command::new(MANYPATH);
        command.args(["recv", "--listen", "127.0.0.1", "--port", "0", "--dir"]).arg(dir).args(more);
        command.args(progress.then_some("--progress"));
        Receiver::spawn(command)
    }

    /// Starts `command`, a receiver without `--json`.
    pub(crate) fn spawn(mut command: Command) -> Receiver {
        command.arg("--json").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let listening = record(&mut out).unwrap_or_else(|| {
            let mut why = String::new();
            let _ = child.stderr.take().expect("piped").read_to_string(&mut why);
            panic!("the receiver did not start: {why}")
        });
        assert_eq!(listening["event"], "listening");
        let ticket = listening["ticket"].as_str().unwrap_or_default().to_owned();
        let port = listening["port"].as_u64().expect("a port");
        Receiver { child, out, ticket, port, listening }
    }

    /// The result of the next transfer.
    pub(crate) fn result(&mut self) -> Value {
        loop {
            let record = record(&mut self.out).expect("a result");
            if record["event"] != "progress" {
                return record;
            }
        }
    }

    /// Waits until this many bytes of content have arrived.
    pub(crate) fn wait_for_bytes(&mut self, bytes: u64) {
        // A record comes every 50 ms: some 20 seconds.
        for _ in 0..400 {
            let record = record(&mut self.out).expect("a record");
            assert_eq!(record["event"], "progress", "{record}");
            if record["bytes"].as_u64().expect("a number") >= bytes {
                return;
            }
        }
        panic!("nothing arrives");
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it, as a crash would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }

    /// Kills it; all that it has said on standard error.
    pub(crate) fn said(mut self) -> String {
        self.kill();
        let mut text = String::new();
        let err = self.child.stderr.as_mut().expect("piped");
        err.read_to_string(&mut text).expect("UTF-8");
        text
    }

    /// Waits for its end; exit code and standard error.
    pub(crate) fn end(mut self) -> (i32, String) {
        let status = self.child.wait().expect("ended");
        let mut text = String::new();
        let err = self.child.stderr.as_mut().expect("piped");
        err.read_to_string(&mut text).expect("UTF-8");
        (status.code().expect("no signal"), text)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn record(out: &mut impl BufRead) -> Option<Value> {
    let mut line = String::new();
    out.read_line(&mut line).expect("readable");
    (!line.is_empty()).then(|| serde_json::from_str(&line).expect("one JSON object a line"))
}

/// Runs `manypath send --json`; its exit code, its result and its standard error.
pub(crate) fn send(files: &[&Path], dest: &str, more: &[&str]) -> (i32, Value, String) {
    let output = Command::new(MANYPATH)
        .arg("send")
        .args(files)
        .args([dest, "--json"])
        .args(more)
        .stdin(Stdio::null())
        .output()
        .expect("runs");
    let result = stdout(&output);
    let value = if result.is_empty() {
        Value::Null
    } else {
        serde_json::from_str(&result).expect("one JSON object")
    };
    (code(&output), value, stderr(&output))
}

/// Bytes that look random and differ from place to place.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64 ^ len as u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// The names in a directory, sorted.
pub(crate) fn listing(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("a directory");
    let mut names: Vec<_> =
        entries.map(|e| e.expect("readable").file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

/// Says, past the test harness that hides what passing tests print, that a test did not run.
pub(crate) fn skipped(why: &str) {
    // Without a standard error there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}
