//! Where a sender's secret comes from: a ticket, a code, or a token.

use std::path::Path;

use manypath::{AssocClosed, Association};
use manypath_names::Proof;
use manypath_trust::{Erased, Token};

use crate::args::SendArgs;
use crate::connect::code;
use crate::connect::dest::{Destination, Local};
use crate::connect::token::{Reader, Source};
use crate::connect::transport::{self, Answer};
use crate::failure::{Failure, Result};
use crate::screen::Screen;
use manypath_files::frame::reason;
use manypath_files::relative::printable;

/// Where the secret is that the receiver wants: a code, or a token.
#[derive(Debug)]
pub(crate) struct Sources<'a> {
    code: Option<code::Source<'a>>,
    token: Option<Source<'a>>,
}

impl<'a> Sources<'a> {
    /// The places that the options name, or that there are. To be asked again when it is known who
    /// a word of DEST is.
    pub(crate) fn new(args: &'a SendArgs, dest: &Destination) -> Result<Sources<'a>> {
        let has_certificate = args.security.certificates.cert.is_some();
        let only = |code| Ok(Sources { code: Some(code), token: None });
        let has_token = args.token.is_some() || args.token_file.is_some();
        if let Some(code) = dest.code() {
            if args.code.code.is_some() || has_token || has_certificate {
                return Err(Failure::usage("DEST is a code, which is the only secret needed")
                    .hint("leave out --code, --token, --token-file and --cert"));
            }
            return only(code::Source::Dest(code.clone()));
        }
        if let Some(code) = &args.code.code {
            return match dest {
                Destination::Ticket(_) => {
                    Err(Failure::usage("--code is for a NAME or HOST; a ticket contains its token"))
                }
                _ => only(code::Source::CommandLine(code)),
            };
        }
        if let Some(local) = dest.local() {
            let Local { name, proof, .. } = local;
            let wants_certificate = *proof == Proof::Certificate;
            if wants_certificate != has_certificate {
                let what = if wants_certificate {
                    format!("{name} wants a certificate of its senders")
                } else {
                    format!("{name} has a key, not a certificate")
                };
                return Err(Failure::usage(what).hint(if wants_certificate {
                    "--cert FILE --key FILE --ca FILE"
                } else {
                    "leave out --cert, --key and --ca"
                }));
            }
            if *proof == Proof::Code && !has_token {
                return only(code::Source::elsewhere().ok_or_else(|| code::missing(name))?);
            }
        }
        let given = TokenOptions { token: args.token.as_ref(), file: args.token_file.as_deref() };
        let token = token_source(given, has_certificate, dest)?;
        // Without a secret anybody who announces the name would get the files.
        if let Some(local) = dest.local()
            && token.is_none()
            && !has_certificate
        {
            let what = format!("{} wants the token that its user chose", local.name);
            return Err(
                Failure::usage(what).hint("give it with --token-file, or in MANYPATH_TOKEN")
            );
        }
        Ok(Sources { code: None, token })
    }

    /// The secret is a code.
    pub(crate) fn is_code(&self) -> bool {
        self.code.is_some()
    }

    /// The secret, as the password of an exchange. May ask the user.
    pub(crate) fn read(self, dest: &Destination, screen: &Screen) -> Result<Token> {
        match self.code {
            Some(code) => {
                let code = code.read(dest.host().unwrap_or("the receiver"))?;
                Ok(code.password().as_bytes().into())
            }
            None => token(dest, self.token, "manypath recv", screen),
        }
    }
}

/// The kind of secret that an end shows or proves.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum SecretKind {
    /// The token of a ticket.
    Ticket,
    /// A token that a person gave.
    Token,
    /// The code that a receiver shows.
    Code,
    /// None was given.
    Nothing,
}

impl SecretKind {
    /// The kind of `token`, which is no code, for this destination.
    pub(crate) fn of(dest: &Destination, token: &[u8]) -> SecretKind {
        match dest {
            Destination::Ticket(_) => SecretKind::Ticket,
            _ if token.is_empty() => SecretKind::Nothing,
            _ => SecretKind::Token,
        }
    }

    /// The failure when `peer`, which runs the command `server`, does not accept the secret.
    pub(crate) fn wrong(self, server: &str, peer: &str) -> Failure {
        let given = |how: &str| format!("{how} that `{server}` was started with, or its ticket");
        match self {
            SecretKind::Ticket => {
                Failure::not_authorised(format!("{peer} does not accept this ticket any more"))
                    .hint(format!(
                        "use the ticket that `{server}` prints now; each start makes a new one"
                    ))
            }
            SecretKind::Token => {
                Failure::not_authorised(format!("{peer} does not accept this token"))
                    .hint(given("give the token"))
            }
            SecretKind::Nothing => Failure::not_authorised(format!("{peer} wants a token"))
                .hint(given("give the token (--token-file, or MANYPATH_TOKEN)")),
            SecretKind::Code => self.not_proved(server, peer),
        }
    }

    /// The failure when the peer could not prove that it has the secret.
    pub(crate) fn not_proved(self, server: &str, peer: &str) -> Failure {
        let (what, hint) = match self {
            SecretKind::Code => (
                "code",
                format!(
                    "check the code that `{server}` shows now, each start makes a new one; nothing \
                     was sent, and nobody has learnt the code"
                ),
            ),
            _ => (
                "token",
                format!(
                    "check the token that `{server}` was started with; nothing was sent, and nobody \
                     has learnt it"
                ),
            ),
        };
        Failure::not_authorised(format!(
            "{peer} does not know this {what}, or somebody is in between"
        ))
        .hint(hint)
    }

    /// The failure when this end proved its secret, and the peer then did anything but prove the
    /// same: an impostor that checked a guess does that.
    pub(crate) fn unproved(
        self,
        server: &str,
        peer: &str,
        closed: Option<&AssocClosed>,
    ) -> Failure {
        if let Some(AssocClosed::PeerAborted { reason, .. }) = closed
            && reason.starts_with(reason::NOT_AUTHORISED.as_bytes())
        {
            return self.wrong(server, peer);
        }
        let how =
            closed.map_or("it gave no proof".to_owned(), |closed| printable(&closed.to_string()));
        let what = if self == SecretKind::Code { "code" } else { "token" };
        Failure::not_authorised(format!("{peer} did not prove that it knows the {what}: {how}"))
            .hint(format!(
                "run the command again if you trust the network in between; each time somebody \
                 who poses as {peer} can check one guess at the {what}"
            ))
    }
}

/// The answer of a peer whose key nobody knows, to which no token was proved. A true one has sent
/// this end away; whoever welcomes it is another.
pub(crate) async fn unproved(association: &Association, peer: &str, answer: Answer) -> Answer {
    match answer {
        Answer::Welcome => {
            transport::abort(association, reason::NOT_AUTHORISED).await;
            Answer::Failed(asks_for_no_token(peer))
        }
        other => other,
    }
}

/// The failure when a peer whose key nobody knows asks for no token.
pub(crate) fn asks_for_no_token(peer: &str) -> Failure {
    let what = format!("{peer} asks for no token, so it may be anybody; nothing was sent");
    Failure::not_authorised(what)
        .hint("give its token with --token-file or in MANYPATH_TOKEN, or its key with --peer")
}

/// The options of the command line that name a token.
pub(crate) struct TokenOptions<'a> {
    /// `--token`.
    pub(crate) token: Option<&'a Erased<String>>,
    /// `--token-file`.
    pub(crate) file: Option<&'a Path>,
}

/// Where the token is, if it is not in the ticket. Without any, the receiver says that it wants
/// one.
pub(crate) fn token_source<'a>(
    TokenOptions { token, file }: TokenOptions<'a>,
    has_certificate: bool,
    dest: &Destination,
) -> Result<Option<Source<'a>>> {
    match dest {
        Destination::Ticket(_) if token.is_some() || file.is_some() => {
            let option = if token.is_some() { "--token" } else { "--token-file" };
            Err(Failure::usage(format!("{option} is for a HOST; a ticket contains its token")))
        }
        Destination::Ticket(_) => Ok(None),
        // The receiver knows the sender by its certificate.
        _ if has_certificate => Ok(None),
        _ => Ok(Source::new(token, file).or_else(Source::terminal)),
    }
}

/// The token of `server`, the command at the other end. May ask the user.
pub(crate) fn token(
    dest: &Destination,
    source: Option<Source<'_>>,
    server: &'static str,
    screen: &Screen,
) -> Result<Token> {
    match (dest, source) {
        (Destination::Ticket(ticket), _) => Ok(ticket.token.clone()),
        (_, None) => Ok(Token::default()),
        (_, Some(source)) => {
            if let Some(warning) = source.warning() {
                screen.line(&warning);
            }
            source.read(Reader::ClientOf(server))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use manypath_trust::Fingerprint;

    use super::*;
    use crate::args::{Cli, Command};
    use crate::failure::Exit;

    fn args(more: &[&str]) -> SendArgs {
        let words = ["manypath", "send", "file", "laptop"].into_iter().chain(more.iter().copied());
        let Command::Send(args) = Cli::try_parse_from(words).unwrap().command else { panic!() };
        args
    }

    fn local(proof: Proof) -> Destination {
        let key = (proof != Proof::Certificate).then(|| Fingerprint::of(b"key"));
        let addresses = vec!["192.0.2.7:9899".parse().unwrap()];
        Destination::Local(Local { name: "laptop".to_owned(), addresses, key, proof })
    }

    #[test]
    fn a_code_or_token_of_the_command_line_is_taken() {
        for (more, is_code) in [(["--code", "1"], true), (["--token", "secret"], false)] {
            let args = args(&more);
            for proof in [Proof::Code, Proof::Token] {
                let sources = Sources::new(&args, &local(proof)).unwrap();
                assert_eq!(sources.is_code(), is_code);
                assert_eq!(sources.token.is_some(), !is_code);
            }
        }
    }

    #[test]
    fn certificates_are_for_those_who_have_them() {
        let files = ["--cert", "a", "--key", "b"];
        for (more, proof, says) in [
            (&files[..], Proof::Code, "has a key"),
            (&files[..], Proof::Token, "has a key"),
            (&["--token", "secret"][..], Proof::Certificate, "wants a certificate"),
        ] {
            let args = args(more);
            let failure = Sources::new(&args, &local(proof)).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.message.contains(says) && failure.hint.is_some(), "{failure}");
        }
        let args = args(&files);
        let sources = Sources::new(&args, &local(Proof::Certificate)).unwrap();
        assert!(!sources.is_code() && sources.token.is_none());
    }

    #[test]
    fn a_ticket_takes_no_code_beside_it() {
        let ticket = "manypath2:aitkweaaaebagbafaydqqcikbmga2dqpaecmaaaca5qla3rj";
        let args = args(&["--code", "482-109-357"]);
        let failure = Sources::new(&args, &Destination::parse(ticket).unwrap()).unwrap_err();
        assert!(failure.message.contains("--code is for a NAME or HOST"), "{failure}");
    }
}
