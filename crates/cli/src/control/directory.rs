//! The directory of control sockets.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Sockets that are looked at, at most: more belong to no ordinary user.
const SOCKETS_MAX: usize = 1000;
/// Entries of a directory that are looked at to find them.
const ENTRIES_MAX: usize = 10_000;

/// The user that this process acts as.
pub(super) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The places where the directory may be, the best first: in `XDG_RUNTIME_DIR`, if that is this
/// user's, or else in the directory of temporary files.
pub(super) fn candidates() -> Vec<PathBuf> {
    candidates_of(std::env::var_os("XDG_RUNTIME_DIR"), std::env::temp_dir(), user())
}

fn candidates_of(runtime: Option<OsString>, temporary: PathBuf, user: u32) -> Vec<PathBuf> {
    let runtime = runtime.map(PathBuf::from).filter(|dir| dir.is_absolute());
    let own = |dir: &PathBuf| fs::metadata(dir).is_ok_and(|m| m.is_dir() && m.uid() == user);
    let runtime = runtime.filter(own).map(|dir| dir.join("manypath"));
    runtime.into_iter().chain([temporary.join(format!("manypath-{user}"))]).collect()
}

/// Makes the directory if it is not there.
///
/// # Errors
/// It cannot be made, or what is there is not private to this user.
pub(super) fn make(dir: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(e),
    }
    check(dir)
}

/// An error unless the directory is one, is this user's, and no other user may do anything there.
/// In a directory that others can write to, somebody else may have made it.
pub(super) fn check(dir: &Path) -> io::Result<()> {
    // Not through a link, which may be another user's.
    let found = fs::symlink_metadata(dir)?;
    let refused = |why: &str| {
        let text = format!("{} {why}", dir.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
    };
    if !found.is_dir() {
        return refused("is no directory");
    }
    if found.uid() != user() {
        return refused("belongs to another user");
    }
    if found.mode() & 0o077 != 0 {
        return refused("is open to other users; chmod it to 700");
    }
    Ok(())
}

/// The socket of a process.
pub(super) fn socket(dir: &Path, pid: u32) -> PathBuf {
    dir.join(format!("{pid}.sock"))
}

/// The sockets of this user in a directory, by the number of their process. None if the directory
/// is not private to this user.
pub(super) fn sockets(dir: &Path) -> Vec<(u32, PathBuf)> {
    let entries = check(dir).and_then(|()| fs::read_dir(dir));
    let entries = entries.into_iter().flatten().take(ENTRIES_MAX).filter_map(Result::ok);
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let name = entry.file_name();
            let pid = name.to_str()?.strip_suffix(".sock")?;
            let pid = pid.parse().ok().filter(|number: &u32| number.to_string() == pid)?;
            let metadata = fs::symlink_metadata(entry.path()).ok()?;
            let is_own = metadata.file_type().is_socket() && metadata.uid() == user();
            is_own.then(|| (pid, entry.path()))
        })
        .take(SOCKETS_MAX)
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn scratch() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn the_directory_of_the_session_comes_first_if_it_is_this_users() {
        let here = scratch();
        let temporary = PathBuf::from("/tmp");
        let fallback = temporary.join(format!("manypath-{}", user()));
        let of = |dir: Option<&Path>| {
            candidates_of(dir.map(|dir| dir.as_os_str().to_owned()), temporary.clone(), user())
        };
        assert_eq!(of(Some(here.path())), [here.path().join("manypath"), fallback.clone()]);
        assert_eq!(of(None), vec![fallback.clone()]);
        assert_eq!(of(Some(Path::new("relative"))), vec![fallback.clone()]);
        assert_eq!(of(Some(Path::new("/no/such"))), [fallback]);
        let others = candidates_of(Some(here.path().into()), temporary, user() + 1);
        assert_eq!(others.len(), 1, "as with sudo, which keeps the variable");
    }

    #[test]
    fn what_is_not_private_is_refused() {
        let here = scratch();
        let dir = here.path().join("manypath");
        make(&dir).unwrap();
        make(&dir).expect("it is there");
        assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);

        fs::set_permissions(&dir, fs::Permissions::from_mode(0o750)).unwrap();
        let error = make(&dir).unwrap_err();
        assert!(error.to_string().contains("open to other users"), "{error}");
        assert_eq!(sockets(&dir), [], "nor is anything there trusted");

        let link = here.path().join("link");
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
        symlink(&dir, &link).unwrap();
        assert!(make(&link).unwrap_err().to_string().contains("no directory"));
        let file = here.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(make(&file).unwrap_err().to_string().contains("no directory"));
    }

    #[test]
    fn only_sockets_named_by_a_process_count() {
        let here = scratch();
        let dir = here.path().join("manypath");
        make(&dir).unwrap();
        let _listening: Vec<_> = ["12.sock", "7.sock", "007.sock", "x.sock", "-1.sock", "9"]
            .map(|name| UnixListener::bind(dir.join(name)).unwrap())
            .into();
        fs::write(dir.join("8.sock"), "").unwrap();
        symlink(dir.join("7.sock"), dir.join("10.sock")).unwrap();
        let found: Vec<u32> = sockets(&dir).into_iter().map(|(pid, _)| pid).collect();
        assert_eq!(found, [7, 12]);
    }
}
