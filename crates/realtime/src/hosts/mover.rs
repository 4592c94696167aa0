//! The real-time loop: packets from interfaces into the network, and out of it on time.
//!
//! The network's time is the time since the start, so a late wake-up delays the packets that were
//! due and nothing after them.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use manypath_proto::Instant as SimInstant;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl;
use nix::unistd::gettid;
use tokio::time::Instant;
use tun_rs::SyncDevice;

use super::crossing::{Arrival, Crossing};
use super::report::Report;

/// Longest IP packet.
const PACKET_MAX: usize = 65_535;
/// Packets taken from an interface before the others and the clock have their turn.
const BATCH: usize = 16;
/// The kernel wakes up to 0.1 % of a long wait late: this much before its end, a shorter wait
/// follows.
const LAST_WAIT: Duration = Duration::from_millis(1);
/// Priority of the loop where the system grants no real-time priority.
const NICE: i32 = -20;

/// The network and its interfaces before the start.
#[derive(Debug)]
pub(super) struct Moving {
    crossing: Crossing,
    interfaces: Vec<Interface>,
}

struct Interface {
    device: SyncDevice,
    /// A program removed it.
    is_gone: bool,
}

impl std::fmt::Debug for Interface {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interface").field("is_gone", &self.is_gone).finish_non_exhaustive()
    }
}

/// The loop on its thread. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Running {
    start: Instant,
    /// Closed to end the loop.
    stop: UnixStream,
    thread: JoinHandle<Report>,
}

impl Running {
    pub(super) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Ends the loop. `None` if it has failed a check of its own.
    pub(super) fn stop(self) -> Option<Report> {
        drop(self.stop);
        self.thread.join().ok()
    }
}

impl Moving {
    /// `devices` are the interfaces by their numbers.
    pub(super) fn new(crossing: Crossing, devices: Vec<SyncDevice>) -> Moving {
        let interface = |device| Interface { device, is_gone: false };
        Moving { crossing, interfaces: devices.into_iter().map(interface).collect() }
    }

    /// Starts the loop on a thread of its own.
    pub(super) fn start(self) -> io::Result<Running> {
        let (stop, stopped) = UnixStream::pair()?;
        let (started, start) = channel();
        let thread = std::thread::Builder::new().name("links".to_owned());
        let thread = thread.spawn(move || {
            become_punctual();
            let start = Instant::now();
            // Whoever waits for it holds the other end.
            let _ = started.send(start);
            self.run(start, &stopped)
        })?;
        let start = start.recv().map_err(|_| io::Error::other("their thread has ended"))?;
        Ok(Running { start, stop, thread })
    }

    fn run(mut self, start: Instant, stopped: &UnixStream) -> Report {
        let mut buffer = vec![0; PACKET_MAX];
        loop {
            self.deliver(start);
            let ready = match self.wait(start, stopped) {
                Ok(ready) => ready,
                Err(Errno::EINTR) => continue,
                // The system has no memory: nothing to be done about it here.
                Err(_) => break,
            };
            let Some(ready) = ready else { break };
            for number in ready {
                // What is due goes first, and sets the time at which packets enter.
                self.deliver(start);
                self.take(number, &mut buffer);
            }
        }
        self.crossing.report(start.elapsed())
    }

    /// Waits for the next event, a packet or the end. Returns the interfaces that have packets;
    /// `None` at the end.
    fn wait(&self, start: Instant, stopped: &UnixStream) -> Result<Option<Vec<usize>>, Errno> {
        let in_use = self.interfaces.iter().enumerate().filter(|(_, own)| !own.is_gone);
        let numbers: Vec<usize> = in_use.clone().map(|(number, _)| number).collect();
        let wanted = in_use.map(|(_, own)| own.device.as_fd()).chain([stopped.as_fd()]);
        let mut polled: Vec<_> = wanted.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        let left = self
            .crossing
            .next_event()
            .map(|at| (at - SimInstant::ZERO).saturating_sub(start.elapsed()));
        ppoll(&mut polled, left.map(wait_for).map(Into::into), None)?;
        let is_ready = |fd: &PollFd<'_>| fd.revents().is_none_or(|events| !events.is_empty());
        if polled.last().is_some_and(is_ready) {
            return Ok(None);
        }
        let ready = numbers.into_iter().zip(&polled).filter(|(_, fd)| is_ready(fd));
        Ok(Some(ready.map(|(number, _)| number).collect()))
    }

    /// Takes a batch of packets from an interface.
    fn take(&mut self, number: usize, buffer: &mut [u8]) {
        for _ in 0..BATCH {
            match self.interfaces[number].device.recv(buffer) {
                Ok(length) => self.crossing.enter(number, &buffer[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.interfaces[number].is_gone = true;
                    return;
                }
            }
        }
    }

    /// Hands over the packets that are due, and lets the network's time run to the present.
    fn deliver(&mut self, start: Instant) {
        loop {
            let now = SimInstant::ZERO + start.elapsed();
            let Some(Arrival { interface, planned, packet }) = self.crossing.poll(now) else {
                return;
            };
            let now = SimInstant::ZERO + start.elapsed();
            let sent = self.interfaces[interface].device.send(&packet);
            self.crossing.note_delivery(planned, now, sent.is_ok());
        }
    }
}

/// Gives this thread what the system allows: it works without, less well. It is the only one that
/// has deadlines, and it sleeps between them.
fn become_punctual() {
    let _ = prctl::set_timerslack(1);
    let mut command = Command::new("chrt");
    command.args(["--fifo", "--pid", "1", &gettid().to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if !command.status().is_ok_and(|status| status.success()) {
        let _ = rustix::process::setpriority_process(None, NICE);
    }
}

/// How long to sleep for an event that comes after `left`.
fn wait_for(left: Duration) -> Duration {
    if left > 2 * LAST_WAIT { left - LAST_WAIT } else { left }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_waits_end_with_a_short_one() {
        let [short, long] = [1500, 40_000].map(Duration::from_micros);
        assert_eq!(wait_for(short), short);
        assert_eq!(wait_for(long), long - LAST_WAIT);
    }
}
