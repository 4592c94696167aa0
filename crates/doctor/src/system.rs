//! Where facts about this host come from: files and commands, each with a limit.

use std::fmt;
use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use manypath_net::Clock;

/// The time that a command may take.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(4);
/// The output of a command at most; a router's table may be long.
const OUTPUT_MAX: u64 = 32 << 20;
/// The length of a file at most.
const FILE_MAX: u64 = 1 << 20;
/// Where system commands are if they are not in the PATH of a user.
const PLACES: [&str; 3] = ["", "/usr/sbin/", "/sbin/"];

/// Why a command gave nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// It is not installed.
    Missing,
    /// It did not end in time.
    Late,
    /// It failed, and said this.
    Failed(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Missing => f.write_str("it is not installed"),
            RunError::Late => f.write_str("it did not end in time"),
            RunError::Failed(said) => write!(f, "it said: {said}"),
        }
    }
}

/// The host that is looked at. Tests put one in its place that was written down.
pub trait System: Sync {
    /// The contents of a file.
    fn read(&self, path: &str) -> io::Result<String>;
    /// The standard output of a command that only shows something.
    fn run(&self, program: &str, arguments: &[&str]) -> Result<String, RunError>;

    /// True if there is such a file or directory.
    fn has(&self, path: &str) -> bool;
}

/// This host.
#[derive(Copy, Clone, Debug, Default)]
pub struct ThisSystem;

impl System for ThisSystem {
    fn read(&self, path: &str) -> io::Result<String> {
        let mut text = String::new();
        std::fs::File::open(path)?.take(FILE_MAX).read_to_string(&mut text)?;
        Ok(text)
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<String, RunError> {
        let mut child = start(program, arguments)?;
        let output = child.stdout.take().map(reader);
        let errors = child.stderr.take().map(reader);
        let clock = Clock::start();
        let began = clock.now();
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if clock.now() - began < COMMAND_TIME_MAX => {
                    thread::sleep(Duration::from_millis(2));
                }
                _ => {
                    // Ours alone: nobody else waits for it.
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(RunError::Late);
                }
            }
        };
        let text = |pipe: Option<thread::JoinHandle<String>>| {
            pipe.and_then(|reader| reader.join().ok()).unwrap_or_default()
        };
        let (output, errors) = (text(output), text(errors));
        if status.success() {
            return Ok(output);
        }
        let said = errors.lines().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
        Err(RunError::Failed(said.trim().to_owned()))
    }

    fn has(&self, path: &str) -> bool {
        std::path::Path::new(path).exists()
    }
}

fn start(program: &str, arguments: &[&str]) -> Result<Child, RunError> {
    for place in PLACES {
        let mut command = Command::new(format!("{place}{program}"));
        command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null());
        match command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() {
            Ok(child) => return Ok(child),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(RunError::Failed(e.to_string())),
        }
    }
    Err(RunError::Missing)
}

fn reader(pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.take(OUTPUT_MAX).read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_command_gives_its_output_or_the_reason() {
        let system = ThisSystem;
        assert_eq!(system.run("echo", &["a", "b"]), Ok("a b\n".to_owned()));
        assert_eq!(system.run("no-such-command-here", &[]), Err(RunError::Missing));
        let failed = system.run("sh", &["-c", "echo no >&2; exit 3"]);
        assert_eq!(failed, Err(RunError::Failed("no".to_owned())));
        assert!(system.read("/no/such/file").is_err());
    }

    #[test]
    fn a_command_that_hangs_is_ended() {
        assert_eq!(ThisSystem.run("sleep", &["60"]), Err(RunError::Late));
    }
}
