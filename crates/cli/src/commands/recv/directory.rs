//! The directory that files go to.

use std::path::Path;

use crate::failure::{Failure, Result};
use crate::screen::Screen;

/// Creates the directory `dir`, and those above it, if it is missing.
pub(super) fn make_directory(dir: &Path, screen: &Screen) -> Result<()> {
    match manypath_transfer::make_directory(dir) {
        Ok(false) => Ok(()),
        Ok(true) => {
            screen.line(&format!("created the directory {}", dir.display()));
            Ok(())
        }
        Err(_) if dir.exists() && !dir.is_dir() => {
            let what = format!("{} is not a directory", dir.display());
            Err(Failure::failed(what).hint("name a directory with --dir"))
        }
        Err(e) => {
            Err(Failure::failed(format!("cannot create the directory {}: {e}", dir.display()))
                .hint("name another directory with --dir"))
        }
    }
}
