//! The state of one allocation.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use manypath_proto::Instant;
use turn_types::stun::message::TransactionId;

use crate::message::Access;

/// Lifetime of a permission (RFC 8656 §9).
const PERMISSION: Duration = Duration::from_secs(300);
/// Lifetime of a channel (RFC 8656 §12).
const CHANNEL: Duration = Duration::from_secs(600);

/// Names an allocation; never used again.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AllocationId(pub(super) u64);

/// An allocation of a client.
pub(super) struct Allocation {
    pub(super) id: AllocationId,
    /// The number of the user's account.
    pub(super) account: usize,
    pub(super) relayed: SocketAddr,
    pub(super) access: Access,
    pub(super) ends: Instant,
    /// The number under which others find it.
    pub(super) number: Option<u32>,
    /// How often it has followed its client to another address; `None` if it stays.
    pub(super) moves: Option<u64>,
    /// The request that made it, whose repetition gets the same answer.
    pub(super) made_by: TransactionId,
    /// Peers' addresses, each until a time.
    permissions: Vec<(IpAddr, Instant)>,
    channels: Vec<Channel>,
}

struct Channel {
    number: u16,
    peer: SocketAddr,
    ends: Instant,
}

/// Why a permission or a channel is not given.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum NotGiven {
    /// As many as one allocation may have.
    Full,
    /// The channel belongs to another peer, or the peer has another channel.
    Taken,
}

impl Allocation {
    pub(super) fn new(
        id: AllocationId,
        account: usize,
        relayed: SocketAddr,
        access: Access,
        ends: Instant,
        made_by: TransactionId,
    ) -> Allocation {
        let (permissions, channels) = (Vec::new(), Vec::new());
        Allocation {
            id,
            account,
            relayed,
            access,
            ends,
            number: None,
            moves: None,
            made_by,
            permissions,
            channels,
        }
    }

    /// The client has named this address as a peer.
    pub(super) fn permits(&self, now: Instant, peer: IpAddr) -> bool {
        self.permissions.iter().any(|&(ip, ends)| ip == peer && ends > now)
    }

    /// The peer of a channel, if it is bound and packets may pass.
    pub(super) fn peer_of_channel(&self, now: Instant, number: u16) -> Option<SocketAddr> {
        let channel = self.channels.iter().find(|c| c.number == number && c.ends > now)?;
        let may_pass = self.access == Access::Open || self.permits(now, channel.peer.ip());
        may_pass.then_some(channel.peer)
    }

    /// The channel of a peer.
    pub(super) fn channel_of_peer(&self, now: Instant, peer: SocketAddr) -> Option<u16> {
        let channel = self.channels.iter().find(|c| c.peer == peer && c.ends > now)?;
        Some(channel.number)
    }

    /// Gives a permission, or prolongs it.
    pub(super) fn permit(&mut self, now: Instant, ip: IpAddr, max: usize) -> Result<(), NotGiven> {
        self.permissions.retain(|&(_, ends)| ends > now);
        let full = self.permissions.len() >= max;
        match self.permissions.iter_mut().find(|(of, _)| *of == ip) {
            Some((_, ends)) => *ends = now + PERMISSION,
            None if full => return Err(NotGiven::Full),
            None => self.permissions.push((ip, now + PERMISSION)),
        }
        Ok(())
    }

    /// Binds a channel, or prolongs it; with it the permission.
    pub(super) fn bind(
        &mut self,
        now: Instant,
        number: u16,
        peer: SocketAddr,
        max: usize,
    ) -> Result<(), NotGiven> {
        self.channels.retain(|c| c.ends > now);
        let (same_number, same_peer) =
            (|c: &&Channel| c.number == number, |c: &&Channel| c.peer == peer);
        let bound = self.channels.iter().find(same_number);
        if bound.is_some_and(|c| c.peer != peer)
            || self.channels.iter().find(same_peer).is_some_and(|c| c.number != number)
        {
            return Err(NotGiven::Taken);
        }
        let is_new = bound.is_none();
        if is_new && self.channels.len() >= max {
            return Err(NotGiven::Full);
        }
        self.permit(now, peer.ip(), max)?;
        self.channels.retain(|c| c.number != number);
        self.channels.push(Channel { number, peer, ends: now + CHANNEL });
        Ok(())
    }
}
