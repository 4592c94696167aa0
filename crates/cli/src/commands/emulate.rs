//! `manypath emulate`: programs over the links of a scenario.

mod print;

use std::io::IsTerminal as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use manypath_realtime::hosts::{
    Hosts, Options, Place, become_root_of_own_namespace, stop as stop_program,
};
use manypath_sim::scenario::Point;
use serde_json::json;
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::args::emulate::EmulateArgs;
use crate::args::sim::ScenarioArgs;
use crate::commands::sim;
use crate::failure::{Failure, Result};
use crate::screen::Screen;
use crate::screen::output;
use crate::settings;

/// How long a program may take to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long PROGRAM may take to end after a signal to all of us.
const FOREGROUND_PATIENCE: Duration = Duration::from_secs(3);
/// How often a COMMAND that starts is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// Runs the command; returns the exit code of PROGRAM.
pub(crate) fn run(args: &EmulateArgs) -> Result<u8> {
    let (point, seed) = choose(args)?;
    let wait = settings::duration("--wait", &args.wait)?;
    // While this process has one thread.
    become_root_of_own_namespace().map_err(|error| {
        Failure::failed(format!("cannot make a user namespace: {error}"))
            .hint("run it as root, or let users make namespaces")
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Failure::failed(format!("cannot start: {e}")))?;
    runtime.block_on(emulate(args, &point, seed, wait))
}

/// The point of the scenario, and the seed.
fn choose(args: &EmulateArgs) -> Result<(Point, u64)> {
    let wanted = ScenarioArgs {
        scenario: args.scenario.clone(),
        set: args.set.clone(),
        seeds: None,
        point: args.point,
    };
    let (scenario, points) = sim::load(&wanted)?;
    let count = points.len();
    let mut points = sim::chosen(&wanted, points)?;
    if points.len() > 1 {
        let what = format!("the scenario has {count} points, and one can be emulated");
        return Err(Failure::usage(what).hint("select one: --point 1; see `manypath sim check`"));
    }
    let point = points.pop().ok_or_else(|| Failure::usage("the scenario has no points"))?;
    let seed = args.seed.or_else(|| scenario.seeds().first().copied()).unwrap_or(1);
    Ok((point, seed))
}

async fn emulate(args: &EmulateArgs, point: &Point, seed: u64, wait: Duration) -> Result<u8> {
    let screen = Screen::new(&args.report);
    let mut signals = Signals::new()?;
    let options = Options { seed, mptcp: args.mptcp };
    let mut hosts = Hosts::new(&point.run, options).map_err(|e| Failure::failed(e.to_string()))?;
    let own_host = args.host.as_deref().map_or(Ok(hosts.first()), |name| find(&hosts, name))?;
    let mut commands = Vec::new();
    for pair in args.at.chunks_exact(2) {
        commands.push((find(&hosts, &pair[0])?, &pair[1]));
    }
    screen.line(&print::introduction(hosts.plans()));

    let mut beside = Vec::new();
    let started = async {
        for (host, command) in commands {
            start_beside(args, &hosts, host, command, wait, &mut beside).await?;
        }
        Ok(())
    };
    let started = tokio::select! {
        started = started => started,
        () = signals.any() => Err(Failure::failed("interrupted")),
    };
    let status = match started {
        Ok(()) => run_program(args, &mut hosts, own_host, &mut signals).await,
        Err(failure) => Err(failure),
    };
    stop_all(beside).await;
    let code = code_of(status?);
    report(args, point, seed, code, hosts, &screen)?;
    Ok(code)
}

/// The number of a host.
fn find(hosts: &Hosts, name: &str) -> Result<usize> {
    let found = hosts.plans().iter().position(|plan| plan.name == name);
    found.ok_or_else(|| {
        let known: Vec<_> = hosts.plans().iter().map(|plan| plan.name.as_str()).collect();
        Failure::usage(format!("the scenario has no host {name}"))
            .hint(format!("name one of these: {}", known.join(", ")))
    })
}

/// Starts a COMMAND, and waits until it listens or has ended.
async fn start_beside(
    args: &EmulateArgs,
    hosts: &Hosts,
    host: usize,
    command: &str,
    wait: Duration,
    beside: &mut Vec<Child>,
) -> Result<()> {
    let name = hosts.plans()[host].name.clone();
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    direct_output(args, &mut shell);
    let before = hosts.listening(host);
    let child = hosts.spawn(host, shell, Place::Background);
    let child = child.map_err(|e| Failure::failed(format!("cannot run sh at {name}: {e}")))?;
    beside.push(child);
    let Some(child) = beside.last_mut() else { return Ok(()) };
    let until = Instant::now() + wait;
    while Instant::now() < until && hosts.listening(host) <= before {
        let ended = child.try_wait().map_err(|e| Failure::failed(format!("cannot wait: {e}")))?;
        match ended {
            Some(status) if status.success() => break,
            Some(status) => {
                let what = format!("at {name}, `{command}` failed at once: {status}");
                return Err(Failure::failed(what));
            }
            None => sleep(LOOK).await,
        }
    }
    Ok(())
}

/// Standard output belongs to the report where that is JSON.
fn direct_output(args: &EmulateArgs, command: &mut Command) {
    if args.report.json {
        command.stdout(Stdio::from(std::io::stderr()));
    }
}

/// Starts the links and PROGRAM, and waits for its end.
async fn run_program(
    args: &EmulateArgs,
    hosts: &mut Hosts,
    host: usize,
    signals: &mut Signals,
) -> Result<ExitStatus> {
    let (program, arguments) =
        args.program.split_first().ok_or_else(|| Failure::usage("there is no PROGRAM"))?;
    let mut command = Command::new(program);
    command.args(arguments);
    direct_output(args, &mut command);
    hosts.begin().map_err(|e| Failure::failed(e.to_string()))?;
    let child = hosts.spawn(host, command, Place::Foreground);
    let mut child = child
        .map_err(|e| Failure::failed(format!("cannot run {}: {e}", program.to_string_lossy())))?;
    let failed = |e| Failure::failed(format!("cannot wait for PROGRAM: {e}"));
    let is_from_terminal = tokio::select! {
        status = child.wait() => return status.map_err(failed),
        is_interrupt = signals.is_interrupt() => is_interrupt && std::io::stdin().is_terminal(),
    };
    // A terminal has told the program, too.
    if is_from_terminal && let Ok(status) = timeout(FOREGROUND_PATIENCE, child.wait()).await {
        return status.map_err(failed);
    }
    stop_program(&mut child, Place::Foreground, FOREGROUND_PATIENCE).await.map_err(failed)
}

/// Stops the COMMANDs, all at the same time.
async fn stop_all(beside: Vec<Child>) {
    let mut stopping = JoinSet::new();
    for mut child in beside {
        stopping.spawn(async move { stop_program(&mut child, Place::Background, PATIENCE).await });
    }
    // However they ended.
    stopping.join_all().await;
}

/// The exit code that shells give for a status.
fn code_of(status: ExitStatus) -> u8 {
    let signal = status.signal().map_or(1, |signal| 128 + signal);
    u8::try_from(status.code().unwrap_or(signal)).unwrap_or(1)
}

/// Ends the links and says what they did.
fn report(
    args: &EmulateArgs,
    point: &Point,
    seed: u64,
    code: u8,
    hosts: Hosts,
    screen: &Screen,
) -> Result<()> {
    let report = hosts.finish();
    let report = report.ok_or_else(|| Failure::failed("the links failed a check of their own"))?;
    let parameters: serde_json::Map<_, _> =
        point.params.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let object = json!({
        "scenario": point.run.name(),
        "parameters": parameters,
        "seed": seed,
        "exit_code": code,
        "seconds": report.seconds,
        "links": report.links,
        "lateness": report.lateness,
        "unroutable": report.unroutable,
        "undelivered": report.undelivered,
        "dropped_before_links": report.dropped_before_links,
        "warnings": report.warnings(),
    });
    if let Some(path) = &args.report_file {
        write_report(path, &format!("{object}\n"))?;
    }
    if args.report.json {
        output::print(&format!("{object}\n"))?;
    } else {
        screen.line(&print::table(&report));
    }
    for warning in report.warnings() {
        screen.line(&format!("warning: {warning}"));
    }
    Ok(())
}

fn write_report(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text)
        .map_err(|e| Failure::failed(format!("cannot write {}: {e}", path.display())))
}

/// The signals that end the command.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> Result<Signals> {
        let new = |kind| {
            signal(kind).map_err(|e| Failure::failed(format!("cannot wait for signals: {e}")))
        };
        Ok(Signals {
            interrupt: new(SignalKind::interrupt())?,
            terminate: new(SignalKind::terminate())?,
            hang_up: new(SignalKind::hangup())?,
        })
    }

    /// Waits for the next; true if it is SIGINT.
    async fn is_interrupt(&mut self) -> bool {
        tokio::select! {
            _ = self.interrupt.recv() => true,
            _ = self.terminate.recv() => false,
            _ = self.hang_up.recv() => false,
        }
    }

    async fn any(&mut self) {
        self.is_interrupt().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_shells() {
        let code = |raw| code_of(ExitStatus::from_raw(raw));
        assert_eq!((code(0), code(3 << 8), code(255 << 8), code(15)), (0, 3, 255, 143));
    }
}
