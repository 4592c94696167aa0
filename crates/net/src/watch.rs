//! Notice of changes of this host's network: addresses, interfaces, routes.
//!
//! Nothing is read out of the notice but that there is one: what changed is seen by looking. On
//! Linux the kernel tells over a netlink socket; where there is none the list of addresses is
//! compared once a second.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::interfaces::{HostAddress, host_addresses};

/// Changes come in bursts: an interface, its address, its routes. So long the rest of one is waited
/// for.
const SETTLE: Duration = Duration::from_millis(5);

/// The time between two reports at least.
const GAP: Duration = Duration::from_millis(50);

/// How often the addresses are looked at where the kernel does not tell.
const POLL: Duration = Duration::from_secs(1);

/// Tells when something of this host's network may have changed.
#[derive(Debug)]
pub struct NetworkWatch {
    source: Source,
    /// When the next report is due; `None` if nothing was noticed since the last.
    due: Option<Pin<Box<Sleep>>>,
    /// There was notice of a change, not only the wish to look again.
    is_told: bool,
    last: Option<Instant>,
}

#[derive(Debug)]
enum Source {
    #[cfg(target_os = "linux")]
    Netlink(netlink::Listener),
    Polled {
        timer: Pin<Box<Sleep>>,
        seen: Vec<HostAddress>,
    },
}

impl NetworkWatch {
    /// Begins to watch. Must be called within a tokio runtime.
    pub fn start() -> NetworkWatch {
        #[cfg(target_os = "linux")]
        if let Ok(listener) = netlink::Listener::open() {
            return NetworkWatch::of(Source::Netlink(listener));
        }
        NetworkWatch::polling()
    }

    fn polling() -> NetworkWatch {
        let timer = Box::pin(tokio::time::sleep(POLL));
        let seen = host_addresses().unwrap_or_default();
        NetworkWatch::of(Source::Polled { timer, seen })
    }

    fn of(source: Source) -> NetworkWatch {
        NetworkWatch { source, due: None, is_told: false, last: None }
    }

    /// Ready when something may have changed since it was last ready, at most once in 50 ms: with
    /// true; with false when there was no notice of a change and [`again_in`](Self::again_in) asked
    /// for it.
    pub fn poll_changed(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        if self.source.poll(cx).is_ready() && !std::mem::replace(&mut self.is_told, true) {
            let settled = Instant::now() + SETTLE;
            self.due_at(self.last.map_or(settled, |last| settled.max(last + GAP)));
        }
        let Some(due) = self.due.as_mut() else { return Poll::Pending };
        std::task::ready!(due.as_mut().poll(cx));
        self.due = None;
        self.last = Some(Instant::now());
        Poll::Ready(std::mem::take(&mut self.is_told))
    }

    /// Is ready after `wait` at the latest, even if nothing changes: something could not be done
    /// yet.
    pub fn again_in(&mut self, wait: Duration) {
        let at = Instant::now() + wait;
        if self.due.as_ref().is_none_or(|due| due.deadline() > at) {
            self.due_at(at);
        }
    }

    fn due_at(&mut self, at: Instant) {
        self.due = Some(Box::pin(tokio::time::sleep_until(at)));
    }
}

impl Source {
    /// Ready if there was notice of a change. Everything that there is notice of has been taken
    /// then.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            #[cfg(target_os = "linux")]
            Source::Netlink(listener) => listener.poll(cx),
            Source::Polled { timer, seen } => {
                let mut has_changed = false;
                while timer.as_mut().poll(cx).is_ready() {
                    timer.as_mut().reset(Instant::now() + POLL);
                    if let Ok(list) = host_addresses() {
                        has_changed |= *seen != list;
                        *seen = list;
                    }
                }
                if has_changed { Poll::Ready(()) } else { Poll::Pending }
            }
        }
    }
}

#[cfg(target_os = "linux")]
mod netlink {
    use std::io;
    use std::task::{Context, Poll};

    use rustix::net::netlink::SocketAddrNetlink;
    use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};
    use tokio::io::Interest;
    use tokio::net::UdpSocket;

    /// Multicast groups of rtnetlink(7): RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV4_ROUTE,
    /// RTMGRP_IPV4_RULE, RTMGRP_IPV6_IFADDR, RTMGRP_IPV6_ROUTE and that of RTNLGRP_IPV6_RULE.
    const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x80 | 0x100 | 0x400 | (1 << 18);

    /// Messages taken before others have their turn; a router's table may change without end.
    const MESSAGES: usize = 64;

    /// A socket on which the kernel says what changes. The type lends it tokio's readiness, which
    /// knows no netlink; nothing else of a UDP socket is used.
    #[derive(Debug)]
    pub(super) struct Listener(UdpSocket);

    impl Listener {
        pub(super) fn open() -> io::Result<Listener> {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket =
                rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
            rustix::net::bind(&socket, &SocketAddrNetlink::new(0, GROUPS))?;
            Ok(Listener(UdpSocket::from_std(socket.into())?))
        }

        pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
            let mut any = false;
            for _ in 0..MESSAGES {
                if self.0.poll_recv_ready(cx).is_pending() {
                    return if any { Poll::Ready(()) } else { Poll::Pending };
                }
                // The contents do not matter, nor that they are cut; an overrun is a change as
                // well.
                let taken = self.0.try_io(Interest::READABLE, || {
                    let mut start = [0; 64];
                    let taken = rustix::net::recv(&self.0, &mut start[..], RecvFlags::empty());
                    taken.map(|_| ()).map_err(io::Error::from)
                });
                any |= !matches!(&taken, Err(e) if e.kind() == io::ErrorKind::WouldBlock);
            }
            cx.waker().wake_by_ref();
            Poll::Ready(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test]
    async fn without_a_change_it_says_nothing_and_a_second_look_can_be_asked_for() {
        // Where networks come and go this may see one, but not for ever.
        for mut watch in [NetworkWatch::polling(), NetworkWatch::start()] {
            let begin = Instant::now();
            watch.again_in(Duration::from_millis(20));
            poll_fn(|cx| watch.poll_changed(cx)).await;
            assert!(begin.elapsed() >= SETTLE);
        }
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn the_kernel_tells_of_changes_without_privilege() {
        assert!(netlink::Listener::open().is_ok());
    }
}
