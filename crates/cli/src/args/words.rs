//! The words of `send` that are no options: FILE... DEST, also with options between them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, value_parser};

const WORDS: &str = "words";

/// Files and directories, and where they go.
///
/// The last word is the destination. As two arguments, clap would take the word before an option
/// for the destination.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    /// Files and directories to send.
    pub files: Vec<PathBuf>,
    /// The destination as it was typed.
    pub dest: String,
}

impl Args for Words {
    fn augment_args(command: Command) -> Command {
        let words = Arg::new(WORDS)
            .value_name("FILE... DEST")
            .value_parser(value_parser!(OsString))
            .action(ArgAction::Append)
            .num_args(1..)
            .required(true)
            .help(
                "FILE: a file or directory to send; -: standard input. DEST: a ticket, a NAME in \
                 the local network, HOST[:PORT][,HOST[:PORT]...], or @FILE with one of them",
            )
            .long_help(
                "FILE: a file or directory to send; -: standard input\n\n\
                 DEST: a ticket, a NAME in the local network, HOST[:PORT][,HOST[:PORT]...], or \
                 @FILE with one of them. One word without dot and port is a NAME: the receiver \
                 that announces it is taken, or the host of that name if there is no such receiver",
            );
        command.arg(words).override_usage("manypath send [OPTIONS] <FILE>... <DEST>")
    }

    fn augment_args_for_update(command: Command) -> Command {
        Words::augment_args(command)
    }
}

impl FromArgMatches for Words {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Words, Error> {
        let mut words: Vec<OsString> =
            matches.get_many(WORDS).unwrap_or_default().cloned().collect();
        let dest = match words.pop() {
            Some(dest) if !words.is_empty() => dest,
            _ => {
                return Err(Error::raw(
                    ErrorKind::MissingRequiredArgument,
                    "a FILE and a DEST are needed: manypath send FILE... DEST\n",
                ));
            }
        };
        let dest = dest.into_string().map_err(|_| {
            Error::raw(ErrorKind::InvalidUtf8, "DEST, the last word, is not valid UTF-8\n")
        })?;
        Ok(Words { files: words.into_iter().map(PathBuf::from).collect(), dest })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Words::from_arg_matches(matches)?;
        Ok(())
    }
}
