//! The manypath command: sends files over several network paths at once.

mod args;
mod bind;
mod code;
mod control;
mod decrypt;
mod demo;
mod dest;
mod doctor;
#[cfg(target_os = "linux")]
mod emulate;
mod exposed;
mod failure;
mod figures;
mod found;
mod host;
mod lab;
mod labels;
mod latency;
mod layout;
mod link_local;
mod live;
mod man;
mod names;
mod notices;
mod overlay;
mod paths;
mod perf;
mod progress;
mod proxy;
mod qr;
mod reach;
mod record;
mod recv;
mod relay;
mod replay;
mod runs;
mod screen;
mod security;
mod settings;
mod shares;
mod sheet;
mod show;
mod signals;
mod sim;
mod strangers;
mod token;
mod transfer;
mod transport;
mod uplinks;
mod version;
mod via;

use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use manypath_files::ticket;

use args::{Cli, Command, ConfigCommand, PerfCommand, ProxyCommand};
use failure::{Failure, Result};

fn main() -> ExitCode {
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => return wrong_usage(&error),
    };
    let result = match command {
        Command::Demo(args) => block_on(demo::run(args)),
        Command::Send(args) => block_on(transfer::sender::run(args)),
        Command::Recv(args) => block_on(recv::run(args)),
        Command::Names(args) => block_on(names::run(args)),
        Command::Perf(PerfCommand::Server(args)) => block_on(perf::server::run(*args)),
        Command::Perf(PerfCommand::Client(args)) => block_on(perf::client::run(*args)),
        Command::Proxy(ProxyCommand::Listen(args)) => block_on(proxy::listen::run(*args)),
        Command::Proxy(ProxyCommand::Connect(args)) => block_on(proxy::connect::run(*args)),
        Command::Paths(args) => block_on(overlay::run(args)),
        Command::Doctor(args) => match block_on(doctor::run(args)) {
            Ok(code) => return ExitCode::from(code),
            Err(failure) => Err(failure),
        },
        #[cfg(unix)]
        Command::Path(command) => block_on(control::path::run(command)),
        #[cfg(unix)]
        Command::Top(args) => block_on(live::top::run(args)),
        Command::Relay(args) => block_on(relay::run(args)),
        Command::Decrypt(args) => decrypt::run(&args),
        Command::Sim(command) => sim::run(&command),
        Command::Lab(command) => lab::run(&command),
        Command::Replay(args) => replay::run(&args),
        #[cfg(target_os = "linux")]
        Command::Emulate(args) => match emulate::run(&args) {
            Ok(code) => return ExitCode::from(code),
            Err(failure) => Err(failure),
        },
        Command::Presets(report) => show::presets(&report),
        Command::Config(ConfigCommand::Show(args)) => show::config(&args),
        Command::Completions { shell } => show::completions(shell),
        Command::Man => man::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if is_json() && !show::has_printed() {
                let result = serde_json::json!({ "completed": false, "error": failure.message });
                // The error below is the same.
                let _ = show::print(&format!("{result}\n"));
            }
            eprintln!("{}", screen::fitted(&format!("manypath: {failure}")));
            ExitCode::from(failure.exit as u8)
        }
    }
}

/// True with `--json`. Words after `--` are of another program.
fn is_json() -> bool {
    std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json")
}

/// Says what is wrong with a command line, or what it asks for, as clap does. A ticket at the wrong
/// place is not repeated.
fn wrong_usage(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    let words: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let tickets = words.iter().map(String::as_str).filter(|word| ticket::hidden(word) != *word);
    let hidden = ticket::hidden_of(&text, tickets);
    if hidden == text {
        error.exit();
    }
    eprint!("{}", screen::shown(&hidden));
    ExitCode::from(failure::Exit::Usage as u8)
}

/// Runs a command that uses the network.
fn block_on<T>(command: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::failed(format!("cannot start: {e}")))?;
    let result = runtime.block_on(command);
    // Long enough for the last packets to leave; threads that still read files are not waited for.
    runtime.shutdown_timeout(Duration::from_millis(100));
    result
}
