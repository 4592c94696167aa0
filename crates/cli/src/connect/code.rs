//! Where `send` gets the code from that a receiver shows.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use manypath_trust::{Code, Erased};
use zeroize::Zeroizing;

use crate::failure::{Failure, Result};

/// The environment variable with a code.
const VARIABLE: &str = "MANYPATH_CODE";
/// Longest line that is read as a code.
const LINE_MAX: u64 = 100;

/// A place where a code is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source<'a> {
    /// DEST is the code.
    Dest(Code),
    /// `--code`.
    CommandLine(&'a Erased<String>),
    /// The environment variable.
    Variable(Erased<String>),
    /// The user, who is asked at the terminal.
    Prompt,
}

impl<'a> Source<'a> {
    /// The environment variable if it is not empty, or else the user if there is one to ask.
    pub(crate) fn elsewhere() -> Option<Source<'a>> {
        let value = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
        match value {
            Some(value) => Some(Source::Variable(value.to_string_lossy().into_owned().into())),
            None => io::stdin().is_terminal().then_some(Source::Prompt),
        }
    }

    /// The code, of the receiver with this name in questions.
    pub(crate) fn read(self, receiver: &str) -> Result<Code> {
        let (name, text) = match self {
            Source::Dest(code) => return Ok(code),
            Source::CommandLine(text) => ("--code", text.clone()),
            Source::Variable(text) => (VARIABLE, text),
            Source::Prompt => return ask(receiver),
        };
        text.parse().map_err(|e| Failure::usage(format!("{name}: {e}")))
    }
}

/// The failure if there is a code to give, and nobody to ask.
pub(crate) fn missing(receiver: &str) -> Failure {
    Failure::usage(format!("{receiver} wants the code that it shows"))
        .hint(format!("give it with --code, or in the environment variable {VARIABLE}"))
}

/// Asks at the terminal, again after a slip of the finger. The code is seen while it is typed: it
/// is on the other screen anyway.
fn ask(receiver: &str) -> Result<Code> {
    let mut input = io::stdin().lock();
    loop {
        eprint!("Code that {receiver} shows: ");
        let _ = io::stderr().flush();
        let mut line = Zeroizing::new(Vec::with_capacity(LINE_MAX as usize));
        (&mut input)
            .take(LINE_MAX)
            .read_until(b'\n', &mut line)
            .map_err(|e| Failure::usage(format!("cannot ask for the code: {e}")))?;
        if line.is_empty() {
            return Err(missing(receiver));
        }
        match String::from_utf8_lossy(&line).parse() {
            Ok(code) => return Ok(code),
            Err(e) => eprintln!("{e}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;

    #[test]
    fn a_code_is_read_wherever_it_is() {
        let code: Code = "123-456-789".parse().unwrap();
        assert_eq!(Source::CommandLine(&"123 456 789".into()).read("laptop"), Ok(code.clone()));
        assert_eq!(Source::Variable("123456789".into()).read("laptop"), Ok(code));
    }

    #[test]
    fn what_is_no_code_is_said_with_its_place() {
        for (source, place) in [
            (Source::CommandLine(&"123".into()), "--code: a code has nine digits"),
            (Source::Variable("correct".into()), "MANYPATH_CODE: a code has nine"),
            (Source::Variable("cabana-anvill".into()), "MANYPATH_CODE: no code has the word"),
        ] {
            let failure = source.read("laptop").unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.message.starts_with(place), "{failure}");
        }
        let missing = missing("laptop");
        assert!(missing.hint.unwrap().contains("--code"));
    }
}
