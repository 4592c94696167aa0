//! The manypath command: sends files over several network paths at once.
#![allow(dead_code)]

mod args;
mod dest;
mod emulator;
mod failure;
mod settings;
mod show;
mod ticket;
mod transfer;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command, ConfigCommand};

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Presets(report) => show::presets(&report),
        Command::Config(ConfigCommand::Show(args)) => show::config(&args),
        Command::Completions { shell } => show::completions(shell),
        Command::Man => show::man(),
        _ => Ok(()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("manypath: {failure}");
            ExitCode::from(failure.exit as u8)
        }
    }
}
