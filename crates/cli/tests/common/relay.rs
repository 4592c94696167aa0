//! A relay for tests.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

use super::MANYPATH;

/// A `manypath relay --json` on a free port; killed when dropped.
pub(crate) struct Relay {
    child: Child,
    out: BufReader<ChildStdout>,
    /// The `listening` event.
    pub(crate) listening: Value,
}

impl Relay {
    /// Starts it at a free port of this address.
    pub(crate) fn start(ip: &str, more: &[&str]) -> Relay {
        Relay::start_at(ip, "0", more)
    }

    /// Starts it at this port.
    pub(crate) fn start_at(ip: &str, port: &str, more: &[&str]) -> Relay {
        let mut child = Command::new(MANYPATH)
            .args(["relay", "--json", "--listen", ip, "--port", port])
            .args(["--allow-peer", "127.0.0.0/8"])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        out.read_line(&mut line).expect("readable");
        let listening: Value = serde_json::from_str(&line).expect("an object");
        assert_eq!(listening["event"], "listening");
        Relay { child, out, listening }
    }

    /// The port that it listens on.
    pub(crate) fn port(&self) -> String {
        let address = self.address();
        address.rsplit_once(':').expect("a port").1.to_owned()
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> String {
        self.listening["addresses"][0].as_str().expect("an address").to_owned()
    }

    /// The word for `--via` that it invented.
    pub(crate) fn word(&self) -> String {
        self.listening["via"][0].as_str().expect("a word").to_owned()
    }

    /// Waits for the next event of this kind.
    pub(crate) fn event(&mut self, kind: &str) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.out.read_line(&mut line).expect("readable"), 0, "it ended");
            let event: Value = serde_json::from_str(&line).expect("an object");
            if event["event"] == kind {
                return event;
            }
        }
    }

    /// Stops it; what it counted.
    pub(crate) fn stop(mut self) -> Value {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().expect("runs").success());
        let mut text = String::new();
        self.out.read_to_string(&mut text).expect("UTF-8");
        assert_eq!(self.child.wait().expect("ended").code(), Some(0));
        serde_json::from_str(&text).expect("an object")
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
