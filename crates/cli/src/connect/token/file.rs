//! Files with a token on their only line.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use data_encoding::BASE32_NOPAD;
use manypath_trust::Token;
use zeroize::Zeroizing;

use super::{Reader, random};
use crate::failure::{Failure, Result};
use crate::screen::Screen;
use manypath_files::frame::TOKEN_MAX;

/// Makes a file with a random token, for this user only, unless there is a file. Of several
/// processes that make it at the same time, all get the token of the first.
pub(super) fn make(file: &Path, screen: &Screen) -> Result<()> {
    if file.symlink_metadata().is_ok() {
        return Ok(());
    }
    let mut line = Zeroizing::new(BASE32_NOPAD.encode(&*random()?));
    line.make_ascii_lowercase();
    let line = Zeroizing::new(format!("{}\n", *line));
    match manypath_trust::create_private(file, line.as_bytes()) {
        Ok(()) => {
            let file = file.display();
            screen.line(&format!("made a random token in {file}, which only its owner can read"));
            Ok(())
        }
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(Failure::usage(format!(
            "--token-file {}: there is no such file, and it cannot be created: {}",
            file.display(),
            cause(&e)
        ))
        .hint("name a file in a directory that is there and yours")),
    }
}

/// The system's error, without the name of the temporary file.
fn cause(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|e| e.source());
    inner.map_or_else(|| error.to_string(), ToString::to_string)
}

/// The token in a file.
pub(super) fn read(file: &Path, reader: Reader) -> Result<Token> {
    let name = file.display();
    let wrong = |why: String| Failure::usage(format!("--token-file {name}: {why}"));
    match line(file) {
        Ok(Ok(line)) => Ok(line),
        Ok(Err(why)) => Err(wrong(why.to_owned()).hint("the file has the token on its only line")),
        Err(e) => {
            let failure = wrong(format!("cannot read it: {e}"));
            Err(match reader {
                Reader::ClientOf(server) if e.kind() == io::ErrorKind::NotFound => {
                    failure.hint(format!(
                        "`{server} --token-file FILE` makes such a file on the other machine; copy it \
                         from there"
                    ))
                }
                _ => failure.hint("the file has the token on its only line"),
            })
        }
    }
}

/// The only line of a file, without its end; or what is wrong with the file.
fn line(file: &Path) -> io::Result<std::result::Result<Token, &'static str>> {
    // With the end of the line, and one byte to see that it is too long.
    let most = TOKEN_MAX + 3;
    // Never moved as it grows, so that no copy stays behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(most + 1));
    File::open(file)?.take(most as u64).read_to_end(&mut bytes)?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        bytes.pop_if(|byte| *byte == b'\r');
    }
    Ok(if bytes.contains(&b'\n') {
        Err("more than one line")
    } else {
        Ok(std::mem::take(&mut *bytes).into())
    })
}
