//! How a command ends when it does not end well: an exit code, what went wrong, what to try.

use std::fmt;

use manypath_files::ticket;

/// The documented exit codes (0 is success; clap itself exits with 2 on bad usage).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// The work was tried and failed.
    Failed = 1,
    /// The command line or a file it names is wrong; nothing was tried.
    Usage = 2,
    /// The transfer was interrupted; the same command goes on from there.
    Interrupted = 3,
    /// No path to the peer works.
    NoPath = 4,
    /// The peer does not accept our token.
    NotAuthorised = 5,
}

/// An error for a person: what and where, and what to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The process's exit code.
    pub exit: Exit,
    /// The error and its place; one sentence without a full stop.
    pub message: String,
    /// The remedy, if known.
    pub hint: Option<String>,
}

/// The result of a command or a part of one.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A message may repeat what the user typed, so a ticket in it is hidden.
    fn new(exit: Exit, message: String) -> Failure {
        Failure { exit, message: ticket::hidden(&message), hint: None }
    }

    /// A failure with exit code 1.
    pub(crate) fn failed(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Failed, message.into())
    }

    /// A failure with exit code 2.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, message.into())
    }

    /// A failure with exit code 3.
    pub(crate) fn interrupted(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Interrupted, message.into())
    }

    /// A failure with exit code 4.
    pub(crate) fn no_path(message: impl Into<String>) -> Failure {
        Failure::new(Exit::NoPath, message.into())
    }

    /// A failure with exit code 5.
    pub(crate) fn not_authorised(message: impl Into<String>) -> Failure {
        Failure::new(Exit::NotAuthorised, message.into())
    }

    /// Adds what to try.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(ticket::hidden(&hint.into()));
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  try: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}
