//! Programs at hosts: how they start and how they are stopped.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::namespace::Namespace;

/// Where a program belongs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The terminal is its own: it reads from it and gets its signals.
    Foreground,
    /// It reads nothing and is stopped with everything it started.
    Background,
}

/// Starts a program in a host.
pub(super) fn spawn(host: &Namespace, mut command: Command, place: Place) -> io::Result<Child> {
    if place == Place::Background {
        command.stdin(Stdio::null()).process_group(0);
    }
    let runtime = Handle::current();
    // A child is in the namespaces of the thread that starts it.
    host.inside(move || {
        let _entered = runtime.enter();
        command.spawn()
    })?
}

/// Asks a program to end (SIGTERM) and waits for it. Returns false if it did not end within
/// `patience`; it runs until its host is dropped then.
pub async fn stop(child: &mut Child, place: Place, patience: Duration) -> bool {
    let pid = child.id().and_then(|id| i32::try_from(id).ok());
    // Without a number it has ended, and been waited for.
    let Some(pid) = pid else { return true };
    let pid = Pid::from_raw(if place == Place::Background { -pid } else { pid });
    let _ = kill(pid, Signal::SIGTERM);
    timeout(patience, child.wait()).await.is_ok()
}
