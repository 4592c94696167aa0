//! Where both ends get a token from that the user chose.

mod file;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;

use manypath_trust::{Erased, Token};
use zeroize::Zeroizing;

use crate::connect::exposed::Secret;
use crate::failure::{Failure, Result};
use crate::screen::Screen;
use manypath_files::frame::TOKEN_MAX;

/// Length of a random token in bytes.
const TOKEN_LEN: usize = 16;
/// Shortest token that a user may choose, where it is proved without being shown.
const TOKEN_MIN: usize = 6;
/// Shortest token that a user may choose for transfers in plain.
const TOKEN_MIN_IN_PLAIN: usize = 8;

/// The environment variable with a token.
const VARIABLE: &str = "MANYPATH_TOKEN";
/// The name of a file that stands for a question at the terminal.
const ASK: &str = "-";

/// The token of a server, and whether a person chose it. A token file that is missing is made.
pub(crate) fn to_serve(
    source: Option<Source<'_>>,
    is_protected: bool,
    screen: &Screen,
) -> Result<(Token, bool)> {
    let Some(source) = source else { return Ok((random()?[..].into(), false)) };
    if let Source::File(file) = &source {
        file::make(file, screen)?;
    }
    if let Some(warning) = source.warning() {
        screen.line(&warning);
    }
    let name = source.name();
    let token = source.read(Reader::Server)?;
    let least = if is_protected { TOKEN_MIN } else { TOKEN_MIN_IN_PLAIN };
    if token.len() < least {
        let what = format!("{name}: shorter than {least} characters; strangers could guess it");
        return Err(Failure::usage(what));
    }
    Ok((token, true))
}

fn random() -> Result<Zeroizing<[u8; TOKEN_LEN]>> {
    let mut token = Zeroizing::new([0; TOKEN_LEN]);
    getrandom::fill(&mut *token).map_err(|e| Failure::failed(format!("no random numbers: {e}")))?;
    Ok(token)
}

/// The end that reads a token.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// The one that serves. Its user is asked twice, lest a slip of the finger be in a new token.
    Server,
    /// The one that connects to what this command serves.
    ClientOf(&'static str),
}

/// A place where a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source<'a> {
    /// `--token`.
    CommandLine(&'a Erased<String>),
    /// `--token-file`.
    File(&'a Path),
    /// The environment variable.
    Variable(Token),
    /// The user, who is asked at the terminal.
    Prompt,
}

impl<'a> Source<'a> {
    /// The source that these options name, or else the environment variable if it is not empty.
    pub(crate) fn new(
        token: Option<&'a Erased<String>>,
        file: Option<&'a Path>,
    ) -> Option<Source<'a>> {
        Source::choose(token, file, std::env::var_os(VARIABLE))
    }

    fn choose(
        token: Option<&'a Erased<String>>,
        file: Option<&'a Path>,
        variable: Option<OsString>,
    ) -> Option<Source<'a>> {
        match (token, file, variable) {
            (Some(token), ..) => Some(Source::CommandLine(token)),
            (None, Some(file), _) if file == Path::new(ASK) => Some(Source::Prompt),
            (None, Some(file), _) => Some(Source::File(file)),
            (None, None, Some(value)) if !value.is_empty() => {
                Some(Source::Variable(value.into_encoded_bytes().into()))
            }
            (None, None, _) => None,
        }
    }

    /// The user, if there is one to ask.
    pub(crate) fn terminal() -> Option<Source<'a>> {
        io::stdin().is_terminal().then_some(Source::Prompt)
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Source::CommandLine(_) => "--token".to_owned(),
            Source::File(file) => format!("--token-file {}", file.display()),
            Source::Variable(_) => VARIABLE.to_owned(),
            Source::Prompt => "the token".to_owned(),
        }
    }

    /// A warning for the user if others can see the token.
    pub(crate) fn warning(&self) -> Option<String> {
        match self {
            Source::CommandLine(_) => Some(format!(
                "Note: other users of this host can see the token in --token; \
                 --token-file and {VARIABLE} hide it."
            )),
            Source::File(file) => Secret::Token.warning(file),
            Source::Variable(_) | Source::Prompt => None,
        }
    }

    /// The token, 1..=255 bytes.
    pub(crate) fn read(self, reader: Reader) -> Result<Token> {
        let name = self.name();
        let token = match self {
            Source::CommandLine(token) => token.clone().into(),
            Source::File(file) => file::read(file, reader)?,
            Source::Variable(token) => token,
            Source::Prompt => ask(reader == Reader::Server)?,
        };
        match token.len() {
            0 => Err(Failure::usage(format!("{name}: empty"))),
            1..=TOKEN_MAX => Ok(token),
            _ => Err(Failure::usage(format!("{name}: longer than {TOKEN_MAX} bytes"))),
        }
    }
}

/// Asks at the terminal, without echo.
fn ask(new: bool) -> Result<Token> {
    // From now on an interruption ends the question, so that the terminal gets its echo back,
    // instead of the process. Without such a handler it ends both.
    #[cfg(unix)]
    let _interrupts = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt());
    let prompt = |text: &str| {
        let answer = rpassword::prompt_password(text).map(Erased::from);
        answer.map_err(|e| match e.kind() {
            io::ErrorKind::Interrupted => Failure::failed("interrupted"),
            _ => Failure::usage(format!("cannot ask for the token: {e}"))
                .hint(format!("name a file with --token-file, or set {VARIABLE}")),
        })
    };
    let token = prompt("Token: ")?;
    if new && prompt("The same again: ")? != token {
        return Err(Failure::usage("the two tokens differ"));
    }
    Ok(token.into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::tempdir;

    use super::*;
    use crate::failure::Exit;

    #[test]
    fn what_is_nearest_to_the_user_wins() {
        let (file, variable) = (Path::new("secret"), || Some(OsString::from("of the variable")));
        let choose = Source::choose;
        let token = "a".into();
        let given = choose(Some(&token), None, variable());
        assert_eq!(given, Some(Source::CommandLine(&token)));
        assert_eq!(choose(None, Some(file), variable()), Some(Source::File(file)));
        assert_eq!(choose(None, Some(Path::new("-")), variable()), Some(Source::Prompt));
        let of_variable = Source::Variable(b"of the variable"[..].into());
        assert_eq!(choose(None, None, variable()), Some(of_variable));
        assert_eq!(choose(None, None, Some(OsString::new())), None);
        assert_eq!(choose(None, None, None), None);
    }

    #[test]
    fn a_file_has_the_token_on_its_only_line() {
        let dir = tempdir().unwrap();
        let file = dir.path().join("token");
        let read = |content: &[u8]| {
            fs::write(&file, content).unwrap();
            Source::File(&file).read(Reader::Server)
        };
        for content in [&b"correct horse"[..], b"correct horse\n", b"correct horse\r\n"] {
            assert_eq!(&**read(content).unwrap(), b"correct horse");
        }
        // Spaces and bytes that are no text belong to it.
        assert_eq!(&**read(b" \xff\r \n").unwrap(), b" \xff\r ");
        assert_eq!(read(&[b'a'; 255]).unwrap().len(), 255);
        for (content, why) in [
            (&b""[..], "empty"),
            (b"\n", "empty"),
            (b"a\nb\n", "more than one line"),
            (b"a\n\n", "more than one line"),
            (&[b'a'; 256], "longer than 255"),
            (&[b'a'; 10_000], "longer than 255"),
        ] {
            let failure = read(content).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.message.contains(why), "{failure}");
        }
        let missing = dir.path().join("none");
        let client = Reader::ClientOf("manypath recv");
        let missing = Source::File(&missing).read(client).unwrap_err();
        assert!(missing.message.contains("cannot read it"), "{missing}");
        assert!(missing.hint.unwrap().contains("`manypath recv --token-file FILE` makes"));
    }

    #[test]
    fn other_sources_have_the_same_limits() {
        let given = Source::CommandLine(&"x".into()).read(Reader::Server).unwrap();
        let of_variable = Source::Variable(b"x"[..].into()).read(Reader::Server).unwrap();
        assert_eq!((&**given, &**of_variable), (&b"x"[..], &b"x"[..]));
        for (source, why) in [
            (Source::CommandLine(&"".into()), "--token: empty"),
            (Source::Variable(vec![b'a'; 256].into()), "MANYPATH_TOKEN: longer than 255"),
        ] {
            let failure = source.read(Reader::Server).unwrap_err();
            assert!(failure.message.contains(why), "{failure}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_user_is_told_who_else_can_see_the_token() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempdir().unwrap();
        let file = dir.path().join("token");
        fs::write(&file, "correct horse").unwrap();
        let warns = |mode| {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            Source::File(&file).warning().is_some()
        };
        assert!(warns(0o644) && warns(0o640) && warns(0o604));
        assert!(!warns(0o600) && !warns(0o400));
        let warning = Source::CommandLine(&"correct horse".into()).warning().unwrap();
        assert!(warning.contains("other users") && !warning.contains("horse"));
        assert_eq!(Source::Variable(b"correct horse"[..].into()).warning(), None);
    }
}
