//! Receiving batches, mostly without copying.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::task::{Context, Poll};

use bytes::BytesMut;
use manypath_proto::{Datagram, is_raw_ip};
use quinn_udp::{EcnCodepoint, RecvMeta, UdpSockRef};
use tokio::io::Interest;

use crate::raw::{SCTP, ipv4_payload};
use crate::sockets::{Socket, UdpSockets};

/// Bytes of one receive buffer: the longest run of datagrams that the system coalesces (GRO), and
/// longer than any single datagram.
const BUFFER: usize = 1 << 16;

/// Buffers offered in one system call. With more, a sender's whole window could arrive before the
/// first acknowledgement of it leaves.
const SLOTS: usize = if quinn_udp::BATCH_SIZE < 16 { quinn_udp::BATCH_SIZE } else { 16 };

/// Most returned buffers kept for reuse.
const SPARE: usize = 32;

/// Most bytes of lent buffers that hold several datagrams each. Whoever keeps one datagram keeps
/// its whole buffer, and the peer chooses which datagrams share one: 512 bytes may keep 64 KiB.
/// Above this limit each datagram is copied on its own. A transfer that fills its buffers with its
/// own data stays below the limit, which is the largest receive buffer of the profiles.
const LENT_MAX: usize = 8 << 20;

/// How many lent buffers to check for re-use before allocating one.
const TRIES: usize = 4;

/// Most reads from a socket that reports errors of earlier sends (by ICMP) instead of datagrams.
const ERROR_TRIES: usize = 8;

/// Reads datagrams from the sockets of an endpoint.
///
/// Datagrams are parts of the buffer that the system filled, and their reader may change them. Data
/// that fills less than half of a buffer is first copied to an allocation of its size. A buffer
/// returns for reuse when its last part is dropped. Lent buffers with several datagrams have at
/// most 8 MiB together (and a batch more). Above that, each datagram is an allocation of its own,
/// so that none keeps another one's memory.
#[derive(Debug)]
pub struct UdpReceiver {
    buffers: Vec<BytesMut>,
    metas: Vec<RecvMeta>,
    lent: LentBuffers,
}

impl Default for UdpReceiver {
    fn default() -> UdpReceiver {
        UdpReceiver::new()
    }
}

impl UdpReceiver {
    /// A receiver with its buffers: one MiB on systems that receive in batches.
    pub fn new() -> UdpReceiver {
        let mut lent = LentBuffers::default();
        UdpReceiver {
            buffers: (0..SLOTS).map(|_| lent.take()).collect(),
            metas: vec![RecvMeta::default(); SLOTS],
            lent,
        }
    }

    /// Reads at most one batch from each socket into `out`. Ready after a batch from any socket,
    /// even if all its datagrams were empty. While pending, the task is woken as soon as a socket
    /// has something.
    pub fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        sockets: &UdpSockets,
        out: &mut Vec<Datagram>,
    ) -> Poll<()> {
        let mut any = false;
        for socket in sockets.sockets.iter().filter(|socket| socket.is_read()) {
            any |= self.poll_socket(cx, socket, out);
        }
        if any {
            return Poll::Ready(());
        }
        self.lent.look_at_all();
        Poll::Pending
    }

    /// Reads at most one batch from each socket now, without asking the runtime if the sockets are
    /// ready: it may not have learnt yet what has arrived. Registers no wake-up. Returns false if
    /// there was nothing to read.
    pub fn recv_now(&mut self, sockets: &UdpSockets, out: &mut Vec<Datagram>) -> bool {
        let mut any = false;
        for socket in sockets.sockets.iter().filter(|socket| socket.is_read()) {
            for _ in 0..ERROR_TRIES {
                match self.recv_batch(socket) {
                    Ok(filled) => {
                        (0..filled).for_each(|slot| self.split(slot, socket.local, out));
                        any = true;
                        break;
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(_) => {} // of an earlier send
                }
            }
        }
        any
    }

    /// Reads at most one batch from `socket`. True if there was one.
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
                    // Try this socket again later, so that the other sockets need not wait for it.
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
        if is_raw_ip(bound) {
            return self.take_raw(slot, length, bound, out);
        }
        // A datagram from UDP port 0 cannot be answered.
        if length == 0 || meta.addr.port() == 0 {
            return;
        }
        let local = SocketAddr::new(meta.dst_ip.unwrap_or(bound.ip()), bound.port());
        let stride = if meta.stride == 0 { length } else { meta.stride };
        let has_ce = meta.ecn == Some(EcnCodepoint::Ce);
        let datagram = |payload: BytesMut| {
            let mut datagram = Datagram::new(local, meta.addr, payload);
            datagram.has_ce = has_ce;
            datagram
        };
        if stride >= length || !self.lent.may_lend() {
            let filled = &self.buffers[slot][..length];
            out.extend(filled.chunks(stride).map(BytesMut::from).map(datagram));
            return;
        }
        let mut rest = if length < BUFFER / 2 {
            BytesMut::from(&self.buffers[slot][..length])
        } else {
            std::mem::replace(&mut self.buffers[slot], self.lent.take())
        };
        let mut filled = rest.split_to(length);
        self.lent.note(rest, length);
        while filled.len() > stride {
            out.push(datagram(filled.split_to(stride)));
        }
        out.push(datagram(filled));
    }

    /// Hands out the packet in `slot`, which came over IP itself. Over IPv4 its header is there.
    fn take_raw(&self, slot: usize, length: usize, bound: SocketAddr, out: &mut Vec<Datagram>) {
        let meta = self.metas[slot];
        let packet = &self.buffers[slot][..length];
        let sctp = if bound.is_ipv4() { ipv4_payload(packet, SCTP) } else { Some(0..length) };
        let Some(sctp) = sctp.filter(|sctp| !sctp.is_empty()) else { return };
        let local = SocketAddr::new(meta.dst_ip.unwrap_or(bound.ip()), 0);
        let mut remote = meta.addr;
        remote.set_port(0);
        let mut datagram = Datagram::new(local, remote, BytesMut::from(&packet[sctp]));
        datagram.has_ce = meta.ecn == Some(EcnCodepoint::Ce);
        out.push(datagram);
    }
}

/// Lent buffers that hold several datagrams each, until they can be used again.
#[derive(Debug, Default)]
struct LentBuffers {
    /// The rest of each buffer behind its datagrams, the one lent first at the front. It becomes
    /// the whole buffer again once all of its datagrams are dropped.
    lent: VecDeque<Lent>,
    /// Bytes of the buffers in `lent`.
    bytes: usize,
    spare: Vec<BytesMut>,
}

#[derive(Debug)]
struct Lent {
    rest: BytesMut,
    size: usize,
}

impl Lent {
    /// True if all datagrams of the buffer are dropped.
    fn is_back(&mut self) -> bool {
        self.rest.try_reclaim(self.size)
    }
}

impl LentBuffers {
    /// A whole buffer: a returned one, or a new one.
    fn take(&mut self) -> BytesMut {
        for _ in 0..TRIES.min(self.lent.len()) {
            if self.spare.is_empty() {
                self.look_at_first();
            }
        }
        self.spare.pop().unwrap_or_else(|| BytesMut::zeroed(BUFFER))
    }

    /// Checks if the buffer lent first is back. If not, it goes to the end of the queue.
    fn look_at_first(&mut self) {
        let Some(mut first) = self.lent.pop_front() else { return };
        if !first.is_back() {
            return self.lent.push_back(first);
        }
        self.bytes -= first.size;
        if first.size == BUFFER && self.spare.len() < SPARE {
            self.spare.push(whole(first.rest));
        }
    }

    /// True if more buffers may be lent.
    fn may_lend(&mut self) -> bool {
        if self.bytes >= LENT_MAX {
            self.look_at_all();
        }
        self.bytes < LENT_MAX
    }

    fn look_at_all(&mut self) {
        for _ in 0..self.lent.len() {
            self.look_at_first();
        }
    }

    /// Notes a lent buffer with `length` bytes of datagrams; `rest` is the part behind them.
    fn note(&mut self, mut rest: BytesMut, length: usize) {
        let size = if length < BUFFER / 2 { length } else { BUFFER };
        rest.clear();
        self.lent.push_back(Lent { rest, size });
        self.bytes += size;
    }
}

/// A reclaimed buffer with all its bytes, as they are. Setting them to zero for each use took a
/// tenth of a receiver's time.
#[allow(unsafe_code, reason = "the bytes are initialised, which the type does not know")]
fn whole(mut reclaimed: BytesMut) -> BytesMut {
    assert!(reclaimed.is_empty() && reclaimed.capacity() >= BUFFER, "reclaimed, and of full size");
    // SAFETY: the capacity was just checked. The allocation comes from `BytesMut::zeroed(BUFFER)`:
    // a reclaimed `BytesMut` is at the beginning of its allocation, and never in another one. All
    // its bytes were initialised then. Later writes were initialised too: the system's datagrams,
    // and changes by readers, who write no uninitialised memory anywhere.
    unsafe { reclaimed.set_len(BUFFER) };
    reclaimed
}

#[cfg(test)]
mod tests;
