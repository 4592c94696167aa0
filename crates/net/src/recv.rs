//! Receiving batches, mostly without copying.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use manypath_proto::Datagram;
use quinn_udp::{RecvMeta, UdpSockRef};
use tokio::io::Interest;

use crate::sockets::{Socket, UdpSockets};

/// Bytes of one receive buffer: the longest run of datagrams the system coalesces (GRO), and more
/// than any single one.
const BUFFER: usize = 1 << 16;

/// Buffers offered in one system call. More would let a sender's whole window pass before the first
/// acknowledgement of it leaves.
const SLOTS: usize = if quinn_udp::BATCH_SIZE < 16 { quinn_udp::BATCH_SIZE } else { 16 };

/// Buffers kept for reuse when nobody reads them any more.
const SPARE: usize = 32;

/// Bytes of buffers with several datagrams that may be lent at a time. Whoever keeps one datagram
/// keeps all that came with it, and the peer chooses what comes together: 64 KiB for 512 bytes.
/// Beyond this each datagram is copied on its own. It is the largest receive buffer of the
/// profiles: a transfer that fills its buffers with its own data does not get there.
const LENT_MAX: usize = 8 << 20;

/// Tries at a socket that reports errors (of earlier sends, by ICMP) instead of datagrams.
const ERROR_TRIES: usize = 8;

/// Reads datagrams from the sockets of an endpoint.
///
/// Datagrams are slices of the buffer that the system filled. A buffer that came back less than
/// half full is copied to an allocation of its size first. Buffers return for reuse when the last
/// slice of them is dropped. All that are lent for several datagrams together have at most 8 MiB
/// (and a batch more): from there on each datagram is an allocation of its own, so that what is
/// kept pins no other.
#[derive(Debug)]
pub struct UdpReceiver {
    buffers: Vec<Box<[u8]>>,
    metas: Vec<RecvMeta>,
    spare: Arc<SpareBuffers>,
}

impl Default for UdpReceiver {
    fn default() -> UdpReceiver {
        UdpReceiver::new()
    }
}

impl UdpReceiver {
    /// A receiver with its buffers, one MiB on systems that receive in batches.
    pub fn new() -> UdpReceiver {
        let spare = Arc::new(SpareBuffers::default());
        UdpReceiver {
            buffers: (0..SLOTS).map(|_| spare.take()).collect(),
            metas: vec![RecvMeta::default(); SLOTS],
            spare,
        }
    }

    /// Reads at most one batch from each socket into `out`. Ready after a batch from any socket,
    /// even if it held nothing but empty datagrams; when pending, the task is woken as soon as one
    /// of the sockets has something.
    pub fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        sockets: &UdpSockets,
        out: &mut Vec<Datagram>,
    ) -> Poll<()> {
        let mut any = false;
        for socket in &sockets.sockets {
            any |= self.poll_socket(cx, socket, out);
        }
        if any { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Reads at most one batch from `socket`, and says whether there was one.
    fn poll_socket(
        &mut self,
        cx: &mut Context<'_>,
        socket: &Socket,
        out: &mut Vec<Datagram>,
    ) -> bool {
        let mut errors = 0;
        while socket.io.poll_recv_ready(cx).is_ready() {
            let result = socket.io.try_io(Interest::READABLE, || self.recv_batch(socket));
            match result {
                Ok(filled) => {
                    for slot in 0..filled {
                        self.split(slot, socket.local, out);
                    }
                    return true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) if errors < ERROR_TRIES => errors += 1,
                Err(_) => {
                    // Its time will come again; the other sockets are not to wait for it.
                    cx.waker().wake_by_ref();
                    return false;
                }
            }
        }
        false
    }

    fn recv_batch(&mut self, socket: &Socket) -> io::Result<usize> {
        let mut buffers = self.buffers.iter_mut();
        let mut slices: [IoSliceMut<'_>; SLOTS] = std::array::from_fn(|_| {
            IoSliceMut::new(buffers.next().map_or(&mut [], |buffer| &mut buffer[..]))
        });
        socket.state.recv(UdpSockRef::from(&socket.io), &mut slices, &mut self.metas)
    }

    /// Hands out the datagrams in `slot`.
    fn split(&mut self, slot: usize, bound: SocketAddr, out: &mut Vec<Datagram>) {
        let meta = self.metas[slot];
        let length = meta.len.min(BUFFER);
        if length == 0 {
            return;
        }
        let local = SocketAddr::new(meta.dst_ip.unwrap_or(bound.ip()), bound.port());
        let stride = if meta.stride == 0 { length } else { meta.stride };
        let datagram = |payload| Datagram::new(local, meta.addr, payload);
        if stride >= length || self.spare.lent() >= LENT_MAX {
            let filled = &self.buffers[slot][..length];
            out.extend(filled.chunks(stride).map(Bytes::copy_from_slice).map(datagram));
            return;
        }
        let bytes = if length < BUFFER / 2 {
            Box::from(&self.buffers[slot][..length])
        } else {
            std::mem::replace(&mut self.buffers[slot], self.spare.take())
        };
        let mut bytes = Bytes::from_owner(self.spare.lend(bytes, length));
        while !bytes.is_empty() {
            out.push(datagram(bytes.split_to(stride.min(bytes.len()))));
        }
    }
}

/// A buffer of several datagrams while slices of it are read.
struct Filled {
    bytes: Box<[u8]>,
    length: usize,
    home: Arc<SpareBuffers>,
}

impl AsRef<[u8]> for Filled {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Drop for Filled {
    fn drop(&mut self) {
        self.home.take_back(std::mem::take(&mut self.bytes));
    }
}

/// Buffers between two uses, already mapped and set to zero once, and how much is lent.
#[derive(Debug, Default)]
struct SpareBuffers {
    spare: Mutex<Vec<Box<[u8]>>>,
    lent: AtomicUsize,
}

impl SpareBuffers {
    fn take(&self) -> Box<[u8]> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.unwrap_or_else(|| vec![0; BUFFER].into_boxed_slice())
    }

    /// Bytes of the buffers that are lent.
    fn lent(&self) -> usize {
        self.lent.load(Ordering::Relaxed)
    }

    /// Lends a buffer of which `length` bytes are filled, until the last slice of it is dropped.
    fn lend(self: &Arc<Self>, bytes: Box<[u8]>, length: usize) -> Filled {
        self.lent.fetch_add(bytes.len(), Ordering::Relaxed);
        Filled { bytes, length, home: Arc::clone(self) }
    }

    fn take_back(&self, bytes: Box<[u8]>) {
        self.lent.fetch_sub(bytes.len(), Ordering::Relaxed);
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes.len() == BUFFER && spare.len() < SPARE {
            spare.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests;
