//! Rights to make namespaces, for users who are not root.

use std::fs;
use std::io;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{geteuid, getgid, getuid};

/// Makes this process root of a user namespace of its own, unless it is root already. Only there:
/// files and processes outside see the user.
///
/// # Errors
///
/// If the process has several threads already, or the system does not let users make namespaces.
pub fn become_root_of_own_namespace() -> io::Result<()> {
    if geteuid().is_root() {
        return Ok(());
    }
    let (user, group) = (getuid(), getgid());
    unshare(CloneFlags::CLONE_NEWUSER)?;
    // Without this the kernel refuses a map of groups (user_namespaces(7)).
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}
