//! Tests that need rights which this user has in a network namespace of its own alone: each runs
//! again in a new process, in a namespace that ends with it.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

/// Set in the process that runs in the namespace.
const INSIDE: &str = "MANYPATH_TEST_NAMESPACE";

/// True in the namespace, where `lo` has 127.0.0.0/8, ::1, fd00::1 and fd00::2. Elsewhere the test
/// named `name` of this program is run there, and the answer is false. Where namespaces cannot be
/// made that is said, or an error if `CI=true` or `MANYPATH_REQUIRE_NETNS=1`.
pub fn is_inside(name: &str) -> bool {
    if is_set(INSIDE, "1") {
        run("ip link set lo up");
        for ip in ["fd00::1", "fd00::2"] {
            run(&format!("ip addr add {ip}/128 dev lo nodad"));
        }
        return true;
    }
    if namespaces_work(name) {
        run_again(name);
    }
    false
}

fn is_set(name: &str, value: &str) -> bool {
    std::env::var_os(name).is_some_and(|v| v == value)
}

/// The command that runs something in a network namespace of its own.
pub fn unshare() -> Command {
    let mut command = Command::new("unshare");
    command.arg("--net");
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if !is_root {
        command.arg("--map-root-user");
    }
    command
}

/// True if namespaces can be made here. If not, prints so, or fails where they are required.
pub fn namespaces_work(test: &str) -> bool {
    let tried = unshare().args(["ip", "link", "set", "lo", "up"]).stderr(Stdio::null()).status();
    let works = tried.is_ok_and(|status| status.success());
    if !works {
        let why = "no network namespace can be made here (needs unshare and ip, and the right to)";
        let is_required = is_set("CI", "true") || is_set("MANYPATH_REQUIRE_NETNS", "1");
        assert!(!is_required, "{why}, but CI or MANYPATH_REQUIRE_NETNS demands it");
        // Past libtest's capture.
        let _ = writeln!(std::io::stderr(), "\n*** SKIPPED {test}: {why}");
    }
    works
}

fn run_again(name: &str) {
    let this = std::env::current_exe().expect("this program");
    let mut again = unshare();
    again.arg(this).args(["--exact", name, "--nocapture"]).env(INSIDE, "1").stdin(Stdio::null());
    let output = again.output().expect("it starts");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let passed = output.status.success() && out.contains("1 passed");
    assert!(passed, "{name} failed in its namespace:\n{out}\n{err}");
}

fn run(command: &str) {
    let mut words = command.split_whitespace();
    let program = words.next().expect("a program");
    let status = Command::new(program).args(words).status();
    assert!(status.is_ok_and(|status| status.success()), "failed: {command}");
}
