//! One host: a thread in namespaces of its own.
//!
//! The thread has its own network, mounts, host name and process numbers. What it starts is in
//! there too. The first process is `cat`, which reads from a pipe that this process holds. When
//! `cat` ends, because the pipe is closed or this process is killed, the kernel kills every other
//! process of the host.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::sethostname;
use tun_rs::{DeviceBuilder, SyncDevice};

use super::HostsError;
use super::plan::HostPlan;

/// The first process of a host. Its /proc shows the processes of the host; without the right to
/// mount it, programs that look for themselves there by number fail. A process whose parent has
/// ended leaves no zombie, because CHLD is ignored; an `env` that is not of coreutils cannot do so.
const FIRST_PROCESS: &str = "mount -t proc proc /proc 2>/dev/null; exec 3>&1 >/dev/null 2>&1; \
    if env --ignore-signal=CHLD true; then ignore='env --ignore-signal=CHLD'; fi; \
    echo >&3; exec 3>&-; exec $ignore cat";

type Work = Box<dyn FnOnce() + Send>;

/// A host. Dropping it kills whatever runs there.
#[derive(Debug)]
pub(super) struct Namespace {
    work: Option<Sender<Work>>,
    thread: Option<JoinHandle<()>>,
    /// `None` once this is dropped.
    first: Option<Child>,
    /// Its number as seen from here.
    first_id: u32,
    devices: Vec<String>,
}

/// How long the end of a host is waited for. A program that nobody has waited for keeps it.
const END: Duration = Duration::from_secs(1);

/// Results of the thread once the host exists.
type Made = (Child, Vec<SyncDevice>);

impl Namespace {
    /// Makes a host with its interfaces. `names` are lines for its /etc/hosts.
    pub(super) fn start(
        plan: &HostPlan,
        names: &str,
        mptcp: bool,
    ) -> Result<(Namespace, Vec<SyncDevice>), HostsError> {
        let (work, orders) = channel::<Work>();
        let (made, answer) = channel();
        let (own, own_names) = (plan.clone(), names.to_owned());
        let thread = std::thread::Builder::new().name(format!("host {}", plan.host_name()));
        let thread = thread.spawn(move || {
            let result = make(&own, &own_names, mptcp);
            let is_made = result.is_ok();
            if made.send(result).is_ok() && is_made {
                work_inside(&orders);
            }
        });
        let system = |step| {
            let host = plan.name.clone();
            move |error| HostsError::System { host, step, error }
        };
        let thread = thread.map_err(system("start a thread"))?;
        let ended = || io::Error::other("its thread has ended");
        let (first, devices) = answer.recv().map_err(|_| system("go on")(ended()))??;
        let names = plan.interfaces.iter().map(|interface| interface.device.clone()).collect();
        let (work, thread) = (Some(work), Some(thread));
        let (first_id, first) = (first.id(), Some(first));
        Ok((Namespace { work, thread, first, first_id, devices: names }, devices))
    }

    /// Does `work` on the thread of the host and waits for its result.
    pub(super) fn inside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let (done, answer) = channel();
        let order: Work = Box::new(move || drop(done.send(work())));
        let gone = || io::Error::other("the host is gone");
        let sender = self.work.as_ref().ok_or_else(gone)?;
        sender.send(order).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())
    }

    /// Bound UDP sockets and listening TCP sockets.
    pub(super) fn listening(&self) -> usize {
        // Seen from here, the first process has another number than in the host.
        let own = Path::new("/proc").join(self.first_id.to_string()).join("net");
        let count = |file: &str, is_wanted: fn(&str) -> bool| {
            let text = fs::read_to_string(own.join(file)).unwrap_or_default();
            text.lines().skip(1).filter(|line| is_wanted(line)).count()
        };
        let is_listening: fn(&str) -> bool = |line| line.split_whitespace().nth(3) == Some("0A");
        ["tcp", "tcp6"].iter().map(|file| count(file, is_listening)).sum::<usize>()
            + ["udp", "udp6", "raw"].iter().map(|file| count(file, |_| true)).sum::<usize>()
    }

    /// Packets that the system dropped on their way to the first link, because nobody took them
    /// from the interface in time.
    pub(super) fn dropped_by_interfaces(&self) -> u64 {
        let own = Path::new("/proc").join(self.first_id.to_string()).join("net/dev");
        let text = fs::read_to_string(own).unwrap_or_default();
        text.lines().filter_map(|line| dropped_to_send(line, &self.devices)).sum()
    }
}

/// Of a line of /proc/net/dev, the packets that were to be sent and dropped, if the line is of one
/// of these devices.
fn dropped_to_send(line: &str, devices: &[String]) -> Option<u64> {
    // Eight counters of received packets, then bytes, packets, errs, drop.
    let (name, counters) = line.split_once(':')?;
    devices.iter().any(|device| device == name.trim()).then_some(())?;
    counters.split_whitespace().nth(11)?.parse().ok()
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Some(mut first) = self.first.take() {
            // Its input ends, so it ends, and with it all processes of the host.
            first.stdin = None;
            let (ended, end) = channel();
            let waits = move || drop((first.wait(), ended.send(())));
            if std::thread::Builder::new().spawn(waits).is_ok() {
                let _ = end.recv_timeout(END);
            }
        }
        self.work = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn work_inside(orders: &Receiver<Work>) {
    while let Ok(work) = orders.recv() {
        // The thread holds the host together, whatever becomes of an order.
        let _ = catch_unwind(AssertUnwindSafe(work));
    }
}

fn make(plan: &HostPlan, names: &str, mptcp: bool) -> Result<Made, HostsError> {
    let failed = |step| {
        let host = plan.name.clone();
        move |error: io::Error| HostsError::System { host, step, error }
    };
    let own = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS;
    unshare(own).map_err(io::Error::from).map_err(failed("make namespaces"))?;
    sethostname(plan.host_name()).map_err(io::Error::from).map_err(failed("set its name"))?;
    let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, flags, None::<&str>)
        .map_err(io::Error::from)
        .map_err(failed("detach its mounts"))?;
    add_names(names).map_err(failed("write its /etc/hosts"))?;
    for setting in ["all", "default"] {
        // Interfaces have IPv4 addresses only; a kernel without IPv6 has nothing to turn off.
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{setting}/disable_ipv6"), "1");
    }
    let devices = plan.interfaces.iter().map(|interface| open(&interface.device));
    let devices: Vec<_> =
        devices.collect::<io::Result<_>>().map_err(failed("open /dev/net/tun"))?;
    configure(plan, mptcp)?;
    // Last, since the next process is the first of its namespace.
    unshare(CloneFlags::CLONE_NEWPID)
        .map_err(io::Error::from)
        .map_err(failed("make a process namespace"))?;
    let first = first_process().map_err(failed("start its first process"))?;
    Ok((first, devices))
}

/// Opens a TUN device, which goes when it is closed.
fn open(name: &str) -> io::Result<SyncDevice> {
    let device = DeviceBuilder::new().name(name).enable(false).build_sync()?;
    device.set_nonblocking(true)?;
    Ok(device)
}

/// Adds lines to what programs of the host see as /etc/hosts. Where there is none, there is no
/// resolver that would read it.
fn add_names(names: &str) -> io::Result<()> {
    const HOSTS: &str = "/etc/hosts";
    let Ok(before) = fs::read(HOSTS) else { return Ok(()) };
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(&before)?;
    if !before.ends_with(b"\n") {
        file.write_all(b"\n")?;
    }
    file.write_all(names.as_bytes())?;
    file.flush()?;
    let readable = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o644);
    file.as_file().set_permissions(readable)?;
    // The file stays mounted without its name.
    mount(Some(file.path()), HOSTS, None::<&str>, MsFlags::MS_BIND, None::<&str>)?;
    Ok(())
}

/// Runs the commands of `ip` that give the interfaces their addresses and routes.
fn configure(plan: &HostPlan, mptcp: bool) -> Result<(), HostsError> {
    let refused = |message: String| HostsError::Ip { host: plan.name.clone(), message };
    let mut command = Command::new("ip");
    command.args(["-batch", "-"]).stdin(Stdio::piped());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            refused("not found; install it with: apt-get install iproute2".to_owned())
        }
        _ => refused(error.to_string()),
    });
    let mut child = child?;
    let mut input = child.stdin.take();
    // A pipe holds more than the commands of 250 paths' worth of a host would be short of; if `ip`
    // ends early, its message says why.
    let _ = input.as_mut().map(|input| input.write_all(plan.commands(mptcp).as_bytes()));
    drop(input);
    let output = child.wait_with_output().map_err(|error| refused(error.to_string()))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(refused(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }
}

/// Starts the first process and waits until it has mounted /proc.
fn first_process() -> io::Result<Child> {
    let mut command = Command::new("sh");
    command.args(["-c", FIRST_PROCESS]).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let mut ready = [0; 1];
    if let Some(mut output) = child.stdout.take() {
        io::Read::read_exact(&mut output, &mut ready)?;
    }
    Ok(child)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_read_from_the_counters_of_own_devices() {
        let devices = ["path1".to_owned()];
        let line = " path1: 1 2 3 4 5 6 7 8 100 10 0 42 0 0 0 0";
        assert_eq!(dropped_to_send(line, &devices), Some(42));
        assert_eq!(dropped_to_send(&line.replace("path1", "path10"), &devices), None);
        assert_eq!(dropped_to_send("Inter-|   Receive  |  Transmit", &devices), None);
        assert_eq!(dropped_to_send("path1: 1 2", &devices), None);
    }
}
