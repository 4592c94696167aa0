//! The directory that files go to.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use manypath_files::SystemDisk;
use manypath_files::disk::Disk;

use crate::failure::{Failure, Result};
use crate::screen::Screen;

/// Creates the directory `dir`, and those above it, if it is missing.
pub(super) fn make_directory(dir: &Path, screen: &Screen) -> Result<()> {
    let failed = |e: io::Error| {
        Failure::failed(format!("cannot create the directory {}: {e}", dir.display()))
            .hint("name another directory with --dir")
    };
    match fs::metadata(dir) {
        Ok(meta) if meta.is_dir() => return Ok(()),
        Ok(_) => {
            let what = format!("{} is not a directory", dir.display());
            return Err(Failure::failed(what).hint("name a directory with --dir"));
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(failed(e)),
    }
    let missing: Vec<PathBuf> =
        dir.ancestors().take_while(|dir| is_missing(dir)).map(Path::to_owned).collect();
    fs::create_dir_all(dir).map_err(failed)?;
    // A file that is reported as stored must not lose its directory with the power.
    for dir in missing {
        let above = dir.parent().filter(|dir| !dir.as_os_str().is_empty());
        SystemDisk.sync_dir(above.unwrap_or_else(|| Path::new("."))).map_err(failed)?;
    }
    screen.line(&format!("created the directory {}", dir.display()));
    Ok(())
}

/// True if nothing is at `path`, which is empty where a relative path begins.
fn is_missing(path: &Path) -> bool {
    !path.as_os_str().is_empty() && fs::metadata(path).is_err()
}
