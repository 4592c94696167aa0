//! The manypath command: sends files over several network paths at once.

mod args;
mod commands;
mod connect;
mod control;
mod failure;
mod latency;
mod live;
mod paths;
mod record;
mod runs;
mod screen;
mod settings;
mod signals;
mod version;

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
        Command::Demo(args) => block_on(commands::demo::run(args)),
        Command::Send(args) => block_on(commands::send::run(args)),
        Command::Recv(args) => block_on(commands::recv::run(args)),
        Command::Names(args) => block_on(commands::names::run(args)),
        Command::Perf(PerfCommand::Server(args)) => block_on(commands::perf::server::run(*args)),
        Command::Perf(PerfCommand::Client(args)) => block_on(commands::perf::client::run(*args)),
        Command::Proxy(ProxyCommand::Listen(args)) => block_on(commands::proxy::listen::run(*args)),
        Command::Proxy(ProxyCommand::Connect(args)) => {
            block_on(commands::proxy::connect::run(*args))
        }
        Command::Paths(args) => block_on(commands::paths::run(args)),
        Command::Doctor(args) => match block_on(commands::doctor::run(args)) {
            Ok(code) => return ExitCode::from(code),
            Err(failure) => Err(failure),
        },
        #[cfg(unix)]
        Command::Path(command) => block_on(commands::path::run(command)),
        #[cfg(unix)]
        Command::Top(args) => block_on(commands::top::run(args)),
        Command::Relay(args) => block_on(commands::relay::run(args)),
        Command::Decrypt(args) => commands::decrypt::run(&args),
        Command::Sim(command) => commands::sim::run(&command),
        Command::Lab(command) => commands::lab::run(&command),
        Command::Replay(args) => commands::replay::run(&args),
        #[cfg(target_os = "linux")]
        Command::Emulate(args) => match commands::emulate::run(&args) {
            Ok(code) => return ExitCode::from(code),
            Err(failure) => Err(failure),
        },
        Command::Presets(report) => commands::show::presets(&report),
        Command::Config(ConfigCommand::Show(args)) => commands::show::config(&args),
        Command::Completions { shell } => commands::show::completions(shell),
        Command::Man => commands::man::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if is_json() && !screen::output::has_printed() {
                let result = serde_json::json!({ "completed": false, "error": failure.message });
                // The error below is the same.
                let _ = screen::output::print(&format!("{result}\n"));
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
