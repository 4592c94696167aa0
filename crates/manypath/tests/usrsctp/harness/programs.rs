//! The programs of `tests/interop`: built once, started, read, and ended with their test.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout};

use super::soon;

/// After this many seconds the programs end by themselves, whatever became of the tests.
const LIFETIME_S: &str = "50";

const NEEDS: &str = "the interoperability tests need a C compiler, make and usrsctp \
    (Debian: apt install build-essential libusrsctp-dev); MANYPATH_SKIP_USRSCTP=1 skips them";

fn directory() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("interop")
}

const PION_NEEDS: &str = "the tests against pion need Go, make and pion's source (Debian: apt \
    install golang-go golang-github-pion-sctp-dev); MANYPATH_SKIP_PION=1 skips them";

/// Builds the programs in C, once for this process.
pub(super) fn build() {
    static BUILT: OnceLock<Result<(), String>> = OnceLock::new();
    panic_unless(BUILT.get_or_init(|| make("all", NEEDS)));
}

/// Builds the program in Go, once for this process.
pub(super) fn build_pion() {
    static BUILT: OnceLock<Result<(), String>> = OnceLock::new();
    panic_unless(BUILT.get_or_init(|| make("pion", PION_NEEDS)));
}

fn make(target: &str, needs: &str) -> Result<(), String> {
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/interop");
    let out = format!("OUT={}", directory().display());
    let made = Command::new("make")
        .args(["--silent", "-C", sources, &out, target])
        .output()
        .map_err(|error| format!("make did not start ({error}); {needs}"))?;
    let errors = String::from_utf8_lossy(&made.stderr);
    if made.status.success() { Ok(()) } else { Err(format!("{needs}\n{errors}")) }
}

fn panic_unless(built: &Result<(), String>) {
    if let Err(what) = built {
        panic!("{what}");
    }
}

/// A UDP port that is free on every address and that no other test of this process gets. Below the
/// range from which the kernel gives ports to sockets that ask for any, so that it stays free.
pub fn free_udp_port() -> u16 {
    static NEXT: OnceLock<AtomicU32> = OnceLock::new();
    let next = NEXT.get_or_init(|| AtomicU32::new(std::process::id().wrapping_mul(61)));
    loop {
        let port = 10_000 + (next.fetch_add(1, Ordering::Relaxed) % 20_000) as u16;
        if UdpSocket::bind(("0.0.0.0", port)).is_ok() {
            return port;
        }
    }
}

/// A running program that prints JSON lines. It is killed when dropped.
struct Program {
    child: Child,
    output: Lines<BufReader<ChildStdout>>,
    name: &'static str,
}

impl Program {
    fn start(prefix: &[String], name: &'static str, args: &[String]) -> Program {
        let program = directory().join(name).display().to_string();
        let mut words = prefix.iter().cloned().chain([program]).chain(args.iter().cloned());
        let mut child = tokio::process::Command::new(words.next().expect("a program"))
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{name} did not start: {error}"));
        let stdout = child.stdout.take().expect("piped");
        Program { child, output: BufReader::new(stdout).lines(), name }
    }

    async fn line(&mut self) -> Option<Value> {
        let line = self.output.next_line().await.expect("its output")?;
        let parsed = serde_json::from_str(&line);
        Some(parsed.unwrap_or_else(|error| panic!("{}: {error}: {line}", self.name)))
    }

    /// Waits until it says that it listens.
    async fn listening(&mut self) {
        let line = soon("a program listens", self.line()).await;
        let listens = line.as_ref().is_some_and(|l| l["event"] == "listening");
        assert!(listens, "{} does not listen: {line:?}", self.name);
    }

    /// The last line, when it has ended.
    async fn result(&mut self) -> Value {
        let mut last = Value::Null;
        while let Some(line) = self.line().await {
            last = line;
        }
        self.child.wait().await.expect("its end");
        last
    }
}

/// usrsctp_peer, the other end of the association.
pub struct Peer {
    program: Program,
    /// Its UDP port.
    pub udp_port: u16,
}

impl Peer {
    /// Starts it, listening on `local`; `prefix` is a command that runs it elsewhere.
    pub async fn listen(prefix: &[String], local: &[IpAddr], task: &str) -> Peer {
        Peer::listen_on(free_udp_port(), prefix, local, task).await
    }

    /// The same, on the UDP port `udp_port`.
    pub async fn listen_on(udp_port: u16, prefix: &[String], local: &[IpAddr], task: &str) -> Peer {
        let mut peer = Peer::start(prefix, "listen", udp_port, local, &[], task);
        peer.program.listening().await;
        peer
    }

    /// Starts it on the UDP port `udp_port`; it connects to a port of these addresses. Ports of 0
    /// mean IP itself.
    pub async fn connect_from(
        udp_port: u16,
        prefix: &[String],
        local: &[IpAddr],
        (remote, remote_port): (&[IpAddr], u16),
        task: &str,
    ) -> Peer {
        let target = [
            ("--remote", list(remote)),
            ("--remote-udp-port", remote_port.to_string()),
            ("--remote-sctp-port", manypath::DEFAULT_PORT.to_string()),
        ];
        Peer::start(prefix, "connect", udp_port, local, &target, task)
    }

    fn start(
        prefix: &[String],
        role: &str,
        udp_port: u16,
        local: &[IpAddr],
        more: &[(&str, String)],
        task: &str,
    ) -> Peer {
        let mut args: Vec<String> =
            [role, "--json", "--timeout", LIFETIME_S, "--local"].map(str::to_owned).into();
        args.extend([list(local), "--udp-port".to_owned(), udp_port.to_string()]);
        args.extend(more.iter().flat_map(|(name, value)| [(*name).to_owned(), value.clone()]));
        args.extend(task.split_whitespace().map(str::to_owned));
        Peer { program: Program::start(prefix, "usrsctp_peer", &args), udp_port }
    }

    /// Waits for its end and returns its report.
    pub async fn report(mut self) -> Report {
        Report(self.program.result().await)
    }

    /// Ends it without a word to anyone.
    pub async fn kill(mut self) {
        self.program.child.kill().await.expect("killed");
    }
}

fn list(addresses: &[IpAddr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// The result of usrsctp_peer, see its README.
#[derive(Debug)]
pub struct Report(Value);

impl Report {
    /// Checks that all was as the peer was told to expect, and how the association ended.
    pub fn assert_ok(&self, closed_by: &str) {
        let Report(report) = self;
        assert_eq!(report["ok"], true, "the peer says: {}\n{report}", report["error"]);
        assert_eq!(report["closed_by"], closed_by, "{report}");
        assert_eq!(report["ppid_mismatches"], 0, "{report}");
    }

    /// A number of the report.
    pub fn number(&self, key: &str) -> u64 {
        self.0[key].as_u64().unwrap_or_else(|| panic!("no {key} in {}", self.0))
    }

    /// A text of the report.
    pub fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_else(|| panic!("no {key} in {}", self.0))
    }

    /// The events of this name.
    pub fn events(&self, name: &str) -> Vec<&Value> {
        let events = self.0["events"].as_array().expect("events");
        events.iter().filter(|event| event["event"] == name).collect()
    }

    /// The addresses that the peer saw change to `state`.
    pub fn paths(&self, state: &str) -> Vec<&str> {
        let paths = self.events("path").into_iter().filter(|path| path["state"] == state);
        paths.filter_map(|path| path["address"].as_str()).collect()
    }
}

/// pion_peer, which returns what it gets.
pub struct Pion {
    program: Program,
}

impl Pion {
    /// Starts it between two UDP addresses. `role` is `listen` or `connect`.
    pub async fn start(role: &str, local: SocketAddr, remote: SocketAddr, options: &str) -> Pion {
        let mut args = vec![role.to_owned(), local.to_string(), remote.to_string()];
        args.extend(options.split_whitespace().map(str::to_owned));
        let mut program = Program::start(&[], "pion_peer", &args);
        program.listening().await;
        Pion { program }
    }

    /// Waits for its end and returns its report.
    pub async fn report(mut self) -> Report {
        let report = soon("pion_peer ends", self.program.result()).await;
        assert!(report["error"].is_null(), "{report}");
        Report(report)
    }
}

/// udp_lossy, in front of one address.
pub struct Relay {
    program: Program,
}

impl Relay {
    /// Relays from `port` to `target_port`, both of `ip`.
    pub async fn start(ip: IpAddr, port: u16, target_port: u16, options: &str) -> Relay {
        let mut args = vec![format!("{ip}:{port}"), format!("{ip}:{target_port}")];
        args.extend(["--lifetime", LIFETIME_S].map(str::to_owned));
        args.extend(options.split_whitespace().map(str::to_owned));
        let mut program = Program::start(&[], "udp_lossy", &args);
        program.listening().await;
        Relay { program }
    }

    /// Ends it; returns what it did to the datagrams.
    pub async fn finish(mut self) -> Value {
        let pid = self.program.child.id().expect("runs").to_string();
        let told = Command::new("sh").args(["-c", "kill -TERM \"$0\"", &pid]).status();
        assert!(told.is_ok_and(|status| status.success()), "udp_lossy can be told to end");
        soon("udp_lossy ends", self.program.result()).await
    }
}

/// Waits a moment, for a test about what happens in the middle of a transfer.
pub async fn pause(milliseconds: u64) {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}
