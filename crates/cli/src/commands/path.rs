//! `manypath path`: shows the paths of running processes, and changes their ranks.

use manypath::PathRank;
use serde_json::{Value, json};

use crate::args::{PathCommand, PathListArgs, PathSetArgs};
use crate::control::client::{self, Heard};
use crate::control::protocol::{Answer, Process, Request};
use crate::failure::{Failure, Result};
use crate::screen::Screen;
use crate::screen::output;
use crate::screen::sheet::{Sheet, columns};
use manypath_files::relative::printable;

/// `manypath path`.
pub(crate) async fn run(command: PathCommand) -> Result<()> {
    match command {
        PathCommand::List(args) => list(args).await,
        PathCommand::Set(args) => set(args).await,
    }
}

async fn list(args: PathListArgs) -> Result<()> {
    let screen = Screen::new(&args.report);
    let heard = client::ask(args.pid, &Request::Paths).await;
    if let (Some(pid), true) = (args.pid, heard.is_empty()) {
        return Err(no_such(pid));
    }
    let mut processes = Vec::new();
    for Heard { pid, answer } in heard {
        match answer {
            Ok(Answer::Paths(process)) => processes.push(process),
            Ok(other) => screen.line(&format!("process {pid}: {}", refusal(other))),
            Err(error) => screen.line(&format!("process {pid}: {error}")),
        }
    }
    if let (Some(pid), true) = (args.pid, processes.is_empty()) {
        return Err(Failure::failed(format!("process {pid} did not say what its paths are")));
    }
    if args.report.json {
        return output::print(&format!("{}\n", json!({ "processes": processes })));
    }
    if processes.is_empty() {
        screen.line("No process of this user runs.");
        return Ok(());
    }
    output::print(&text(&processes))
}

/// The processes as a table. What they say is not to be trusted with the terminal.
fn text(processes: &[Process]) -> String {
    let header = ["process", "command", "path", "from", "to", "state", "rank", "RTT", "sent"];
    let mut table = Sheet::new(header);
    for process in processes {
        let name = [process.pid.to_string(), printable(&process.command)];
        let paths = process.associations.iter().flat_map(|association| &association.paths);
        let mut count = 0;
        for path in paths {
            count += 1;
            let interface = path.interface.as_ref().map_or(String::new(), |i| format!(" ({i})"));
            let idle = path.suppressed.as_ref().map_or(String::new(), |why| format!(", {why}"));
            let row = [
                path.path.to_string(),
                printable(&(path.local.clone() + &interface)),
                printable(&path.remote),
                printable(&(path.state.clone() + &idle)),
                printable(&path.rank),
                path.rtt(),
                path.sent(),
            ];
            table.row(name.iter().chain(&row));
        }
        if count == 0 {
            table.row([name[0].as_str(), name[1].as_str(), "-"]);
        }
    }
    table.text(columns())
}

async fn set(args: PathSetArgs) -> Result<()> {
    let screen = Screen::new(&args.report);
    let rank: PathRank = args.rank;
    let request = Request::SetRank { place: args.place.clone(), rank: rank.to_string() };
    let heard = client::ask(args.pid, &request).await;
    if heard.is_empty() {
        let nobody = || Failure::failed("no process of this user runs");
        return Err(args.pid.map_or_else(nobody, no_such));
    }
    let mut results: Vec<Value> = Vec::new();
    let (mut done, mut reasons) = (0, Vec::new());
    for Heard { pid, answer } in heard {
        let (command, paths, reason) = match answer {
            Ok(Answer::RankSet { command, paths }) => (Some(command), paths, None),
            Ok(other) => (None, 0, Some(refusal(other))),
            Err(error) => (None, 0, Some(error)),
        };
        results.push(json!({
            "pid": pid, "command": command, "paths": paths, "error": reason,
        }));
        match (command, reason) {
            (Some(command), _) => {
                done += 1;
                let what = if paths == 1 { "1 path".to_owned() } else { format!("{paths} paths") };
                screen
                    .line(&format!("{command} (process {pid}): {} is {rank}: {what}", args.place));
            }
            (None, reason) => {
                reasons.push(format!("process {pid}: {}", reason.unwrap_or_default()))
            }
        }
    }
    if args.report.json {
        let result = json!({ "place": args.place, "rank": rank, "processes": results });
        output::print(&format!("{result}\n"))?;
    }
    if done > 0 {
        return Ok(());
    }
    Err(Failure::failed(format!("nothing was changed: {}", reasons.join("; ")))
        .hint("see `manypath path list` for the paths, and name an interface or address of theirs"))
}

pub(crate) fn no_such(pid: u32) -> Failure {
    Failure::failed(format!("process {pid} is no manypath of this user that can be asked"))
        .hint("see `manypath path list`")
}

/// The words of an answer that is not the expected one.
pub(crate) fn refusal(answer: Answer) -> String {
    match answer {
        Answer::Refused { reason } => reason,
        Answer::Paths(_) | Answer::Figures(_) | Answer::RankSet { .. } => {
            "it answered something else".to_owned()
        }
    }
}
