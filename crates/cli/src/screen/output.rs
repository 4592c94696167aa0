//! Standard output, where results go.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::{Failure, Result};

/// This process has written to its standard output, or will write the content of a file there.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// Keeps results from standard output: the content of a file goes there.
pub(crate) fn reserve() {
    PRINTED.store(true, Ordering::Relaxed);
}

/// True once something was written to standard output.
pub(crate) fn has_printed() -> bool {
    PRINTED.load(Ordering::Relaxed)
}

/// Writes to standard output; a reader that went away (`| head`) is no error.
pub(crate) fn print(text: &str) -> Result<()> {
    PRINTED.store(true, Ordering::Relaxed);
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to standard output: {e}")))
        }
        _ => Ok(()),
    }
}

/// Where results go.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Out {
    /// To standard output.
    Output,
    /// To standard error: standard output has the content of a file.
    Error,
}

impl Out {
    /// Writes there. Nobody who reads any more is no error.
    pub(crate) fn print(self, text: &str) -> Result<()> {
        match self {
            Out::Output => print(text),
            Out::Error => {
                let _ = io::stderr().lock().write_all(text.as_bytes());
                Ok(())
            }
        }
    }
}
