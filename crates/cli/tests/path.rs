//! `--bind` with ranks, and `manypath path` beside running commands, over loopback.
#![cfg(target_os = "linux")] // every address of 127.0.0.0/8 is there

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use common::{MANYPATH, code, manypath, stderr, stdout};
use serde_json::Value;

const CHEAP: &str = "127.0.0.3";
const DEAR: &str = "127.0.0.4";

/// Runs `manypath path` with the sockets of this directory.
fn path(runtime: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(MANYPATH);
    command.arg("path").args(args).env("XDG_RUNTIME_DIR", runtime).env("TMPDIR", runtime);
    command.stdin(Stdio::null()).output().expect("runs")
}

fn json(output: &Output) -> Value {
    assert_eq!(code(output), 0, "{}", stderr(output));
    serde_json::from_str(&stdout(output)).expect("JSON")
}

/// A measurement under way: 40 Mbit/s from two addresses.
struct Running {
    runtime: tempfile::TempDir,
    server: Child,
    client: Child,
    out: BufReader<ChildStdout>,
}

impl Running {
    fn start(bind: &str, seconds: &str) -> Running {
        let runtime = tempfile::tempdir().unwrap();
        let command = |args: &[&str]| {
            let mut command = Command::new(MANYPATH);
            command.args(args).env("XDG_RUNTIME_DIR", runtime.path());
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("starts")
        };
        let serve = ["perf", "server", "--once", "--listen", "127.0.0.1", "--port", "0", "--json"];
        let mut server = command(&serve);
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let listening: Value = serde_json::from_str(&line).unwrap();
        let dest = format!("127.0.0.1:{}", listening["port"]);
        let measure = ["perf", "client", &dest, "--rate", "40Mbit/s", "-t", seconds, "--json"];
        // A scheduler that uses all paths of a rank, however little there is to send. And a machine
        // that stands still for less than a second is no path that fails.
        let patient = ["--preset", "cmt-pf", "--set", "rto_min=1s", "--bind", bind];
        let mut client = command(&[&measure[..], &patient].concat());
        let out = BufReader::new(client.stdout.take().unwrap());
        Running { runtime, server, client, out }
    }

    /// The paths of the client as `path list` has them, from a local address each.
    fn paths(&self) -> Vec<Value> {
        let pid = self.client.id().to_string();
        let listed = path(self.runtime.path(), &["list", &pid, "--json"]);
        if code(&listed) != 0 {
            return Vec::new();
        }
        let listed = json(&listed);
        let paths = listed["processes"][0]["associations"][0]["paths"].as_array();
        paths.cloned().unwrap_or_default()
    }

    /// Waits until this is true of the path from an address; the path then.
    fn until(&self, local: &str, is_true: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..1000 {
            let paths = self.paths();
            let own =
                paths.iter().find(|p| p["local"].as_str().is_some_and(|a| a.starts_with(local)));
            if let Some(path) = own.filter(|path| is_true(path)) {
                return path.clone();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{local}: {:#?}", self.paths());
    }

    /// The result of the client.
    fn result(mut self) -> Value {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        assert!(self.client.wait().unwrap().success());
        let names: Vec<_> = fs::read_dir(self.runtime.path().join("manypath"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        let gone = format!("{}.sock", self.client.id());
        assert!(names.iter().all(|name| name.to_str() != Some(&gone)), "it removes its socket");
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for child in [&mut self.client, &mut self.server] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn chunks(path: &Value) -> u64 {
    path["data_chunks_sent"].as_u64().expect("a count")
}

#[test]
fn a_backup_is_idle_until_a_command_says_otherwise() {
    let running = Running::start(&format!("{CHEAP},{DEAR}:backup"), "4");
    running.until(CHEAP, |path| chunks(path) > 1000);
    let dear = running.until(DEAR, |path| path["state"] == "active");
    assert_eq!((chunks(&dear), &dear["rank"]), (0, &"backup".into()), "{dear}");
    assert_eq!(dear["suppressed"], "dearer");

    let set = json(&path(running.runtime.path(), &["set", DEAR, "normal", "--json"]));
    let all = set["processes"].as_array().unwrap();
    let of = |pid: u32| all.iter().find(|p| p["pid"] == pid).expect("it is asked").clone();
    let (client, server) = (of(running.client.id()), of(running.server.id()));
    assert_eq!((&client["command"], &client["paths"]), (&"perf client".into(), &1.into()));
    assert_eq!(server["paths"], 1, "it is the peer's address there: {server}");
    running.until(DEAR, |path| chunks(path) > 100 && path["suppressed"].is_null());

    let pid = running.client.id().to_string();
    let set = path(running.runtime.path(), &["set", CHEAP, "cost=3", "--pid", &pid]);
    assert_eq!(code(&set), 0, "{}", stderr(&set));
    assert!(stderr(&set).contains("127.0.0.3 is cost=3: 1 path"), "{}", stderr(&set));
    let idle = running.until(CHEAP, |path| path["rank"] == "cost=3");
    let table = stdout(&path(running.runtime.path(), &["list"]));
    for word in ["perf client", "perf server", "cost=3", "active, dearer", DEAR] {
        assert!(table.contains(word), "{word} in\n{table}");
    }

    let result = running.result();
    let paths = result["paths"].as_array().unwrap();
    let last = |local: &str| {
        paths.iter().find(|p| p["local"].as_str().unwrap().starts_with(local)).unwrap()
    };
    assert_eq!((&last(CHEAP)["rank"], &last(DEAR)["rank"]), (&"cost=3".into(), &"normal".into()));
    let after = chunks(last(CHEAP)) - chunks(&idle);
    assert!(after < 50, "{after} chunks on the path that is dear now");
    let notices = result["notices"].as_array().unwrap();
    let ranks: Vec<_> = notices.iter().filter(|n| n["event"] == "path_rank").collect();
    assert_eq!(ranks.len(), 2, "{notices:#?}");
    assert_eq!((&ranks[0]["rank"], &ranks[1]["rank"]), (&"normal".into(), &"cost=3".into()));
}

#[test]
fn what_cannot_be_done_says_why() {
    let runtime = tempfile::tempdir().unwrap();
    let nobody = path(runtime.path(), &["set", "wlan0", "backup"]);
    assert_eq!(code(&nobody), 1);
    assert!(stderr(&nobody).contains("no process of this user runs"), "{}", stderr(&nobody));
    assert_eq!(json(&path(runtime.path(), &["list", "--json"]))["processes"], Value::Array(vec![]));
    let none = path(runtime.path(), &["list", "1"]);
    assert_eq!(code(&none), 1, "{}", stderr(&none));
    for wrong in [&["set", "wlan0", "cheap"][..], &["set", "wlan0"], &["list", "x"]] {
        let wrong = path(runtime.path(), wrong);
        assert_eq!(code(&wrong), 2, "{}", stderr(&wrong));
    }
    for (bind, says) in [
        ("eth0,wlan0:bakup", "bakup"),
        ("fd00::1:backup", "[fd00::1]:backup"),
        ("*:backup", "every"),
    ] {
        let wrong = manypath(&["perf", "client", "127.0.0.1", "--bind", bind]);
        assert_eq!(code(&wrong), 2, "{}", stderr(&wrong));
        assert!(stderr(&wrong).contains(says), "{}", stderr(&wrong));
    }
}

#[test]
fn a_directory_that_others_can_open_is_not_used() {
    let runtime = tempfile::tempdir().unwrap();
    let dir = runtime.path().join("manypath");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
    // Not even the socket of a process that answers.
    let socket = std::os::unix::net::UnixListener::bind(dir.join("7.sock")).unwrap();
    let listed = json(&path(runtime.path(), &["list", "--json"]));
    assert_eq!(listed["processes"], Value::Array(vec![]));
    drop(socket);
}

#[test]
fn the_socket_of_a_killed_process_disappears() {
    let mut running = Running::start(CHEAP, "20");
    running.until(CHEAP, |path| chunks(path) > 0);
    running.client.kill().unwrap();
    running.client.wait().unwrap();
    let pid = running.client.id();
    let socket = running.runtime.path().join("manypath").join(format!("{pid}.sock"));
    assert!(socket.exists(), "it had no time to remove it");
    let listed = json(&path(running.runtime.path(), &["list", "--json"]));
    let pids: Vec<_> = listed["processes"].as_array().unwrap().iter().map(|p| &p["pid"]).collect();
    assert_eq!(pids, [running.server.id()]);
    assert!(!socket.exists());
}
