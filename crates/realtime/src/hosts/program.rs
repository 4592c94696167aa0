//! Programs at hosts: how they start and how they are stopped.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use super::namespace::Namespace;

/// How often a group that ends is looked at.
const LOOK: Duration = Duration::from_millis(5);

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

/// Ends a program: SIGTERM, and SIGKILL after `patience`. One in the background ends with all
/// processes of its group.
///
/// # Errors
///
/// If the system does not say how it ended.
pub async fn stop(child: &mut Child, place: Place, patience: Duration) -> io::Result<ExitStatus> {
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    // Without a number it has ended, and been waited for.
    let Some(id) = id else { return child.wait().await };
    let target = Pid::from_raw(if place == Place::Background { -id } else { id });
    let _ = kill(target, Signal::SIGTERM);
    let ended = timeout(patience, async {
        let status = child.wait().await;
        // The number of a group is not given again while it has members.
        while place == Place::Background && kill(target, None).is_ok() {
            sleep(LOOK).await;
        }
        status
    });
    match ended.await {
        Ok(status) => status,
        Err(_) => {
            let _ = kill(target, Signal::SIGKILL);
            child.wait().await
        }
    }
}
