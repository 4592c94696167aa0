//! Sending batches.

use std::io;
use std::net::SocketAddr;

use manypath_proto::Transmit;
use quinn_udp::{EcnCodepoint, UdpSockRef};
use tokio::io::Interest;

use crate::refused::{Refused, SendFailures};
use crate::sockets::{Socket, UdpSockets};

/// Packets for one path on their way into a socket: all of `transmit.segment_size` bytes but the
/// last, which may be shorter.
#[derive(Debug)]
pub struct Outgoing {
    /// From where to where.
    pub transmit: Transmit,
    /// The packets, one behind the other.
    pub bytes: Vec<u8>,
    /// The local and remote address as the engine knows them. Those of `transmit` differ for a path
    /// through a relay.
    pub(crate) origin: (SocketAddr, SocketAddr),
    /// How many bytes longer the packets of the batch are than the engine's.
    pub(crate) overhead: usize,
    /// How many of the bytes the system has taken, or refused for good.
    done: usize,
}

impl Outgoing {
    /// A batch of which nothing is sent yet.
    pub fn new(transmit: Transmit, bytes: Vec<u8>) -> Outgoing {
        let origin = (transmit.local, transmit.remote);
        Outgoing { transmit, bytes, origin, overhead: 0, done: 0 }
    }
}

/// Packets that were too long of which the driver is told.
const REFUSED_MAX: usize = 16;

/// Result of sending a batch.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The system took it, or refused part of it, which is as good as lost on the way and counted
    /// in [`SendFailures`].
    Done,
    /// The socket's buffer is full; offer the same batch again when
    /// [`UdpSockets::poll_writable`] says so.
    Blocked,
}

impl UdpSockets {
    /// Hands a batch to the socket of its local address, as one system call where the system
    /// segments. Errors are losses: a dead interface is seen by the engine as a path that no longer
    /// answers.
    pub fn try_send(&mut self, batch: &mut Outgoing) -> Sent {
        let Some(index) = self.socket_for(batch.transmit.local) else {
            self.drop_batch(batch);
            return Sent::Done;
        };
        let socket = &mut self.sockets[index];
        if batch.transmit.may_fragment {
            let _ = socket.let_fragment(true); // without it the send fails, which is counted
        }
        let sent = match socket.send_rest(batch) {
            Ok(sent) => sent,
            Err(_) => send_singly(socket, batch, &mut self.failures, &mut self.refused),
        };
        if batch.transmit.may_fragment && !socket.fragments() {
            let _ = socket.let_fragment(false);
        }
        sent
    }

    /// Counts what is left of a batch as not sent.
    pub fn drop_batch(&mut self, batch: &Outgoing) {
        self.failures.dropped += packets(batch, batch.bytes.len() - batch.done);
    }
}

fn packets(batch: &Outgoing, bytes: usize) -> u64 {
    bytes.div_ceil(batch.transmit.segment_size.max(1)) as u64
}

impl Socket {
    /// Offers all that is left of the batch: at once, or over IP itself packet by packet, as only
    /// UDP is segmented.
    fn send_rest(&self, batch: &mut Outgoing) -> io::Result<Sent> {
        let end = batch.bytes.len();
        if !self.is_raw() {
            return self.send_up_to(batch, end);
        }
        let segment = batch.transmit.segment_size.max(1);
        while batch.done < end {
            let next = (batch.done + segment).min(end);
            if self.send_up_to(batch, next)? == Sent::Blocked {
                return Ok(Sent::Blocked);
            }
        }
        Ok(Sent::Done)
    }

    /// Offers the batch's bytes up to `end` in one call.
    fn send_up_to(&self, batch: &mut Outgoing, end: usize) -> io::Result<Sent> {
        let segment = batch.transmit.segment_size;
        let contents = &batch.bytes[batch.done..end];
        let transmit = quinn_udp::Transmit {
            destination: batch.transmit.remote,
            ecn: batch.transmit.is_ect.then_some(EcnCodepoint::Ect0),
            contents,
            segment_size: (contents.len() > segment).then_some(segment),
            // A bound socket has its source; naming it again would only make a vanished address
            // look like an unsupported option.
            src_ip: self.is_wildcard().then(|| batch.transmit.local.ip()),
        };
        let send = || self.state.try_send(UdpSockRef::from(&self.io), &transmit);
        match self.io.try_io(Interest::WRITABLE, send) {
            Ok(()) => {
                batch.done = end;
                Ok(Sent::Done)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Sent::Blocked),
            Err(error) => Err(error),
        }
    }
}

/// After a batch was refused: packet by packet, so that one refusal loses one packet, and so that
/// the cause is known. If single packets pass, segmentation was at fault and stays off for this
/// socket; if they do not either, it was the path, and segmentation may be used again.
fn send_singly(
    socket: &mut Socket,
    batch: &mut Outgoing,
    failures: &mut SendFailures,
    too_long: &mut Vec<Refused>,
) -> Sent {
    let segment = batch.transmit.segment_size.max(1);
    let mut refused = false;
    while batch.done < batch.bytes.len() {
        let end = (batch.done + segment).min(batch.bytes.len());
        match socket.send_up_to(batch, end) {
            Ok(Sent::Done) => {}
            Ok(Sent::Blocked) => return Sent::Blocked,
            Err(error) => {
                refused = true;
                if quinn_udp::is_msg_size_err(&error) && too_long.len() < REFUSED_MAX {
                    let (local, remote) = batch.origin;
                    let len = end - batch.done - batch.overhead.min(end - batch.done);
                    too_long.push(Refused { local, remote, len });
                }
                let lost = if is_packet_error(&error) { end } else { batch.bytes.len() };
                failures.count(&error, packets(batch, lost - batch.done));
                batch.done = lost;
            }
        }
    }
    if refused {
        socket.reset_state();
    }
    Sent::Done
}

/// True if the next packet may fare better than this one did.
fn is_packet_error(error: &io::Error) -> bool {
    quinn_udp::is_msg_size_err(error)
}

#[cfg(test)]
mod tests;
