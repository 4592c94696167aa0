//! A packet that is being built, and sealed at its end if the association's packets are protected.

use std::ops::{Deref, DerefMut};

use manypath_dtls::{HEADER_LEN, SealError};
use manypath_wire::{
    COMMON_HEADER_LEN, CommonHeader, DTLS_CONTENT_OFFSET, DTLS_RECORD_OFFSET, Dtls, PacketBuilder,
    fill_checksum,
};

use crate::assoc::Association;
use crate::assoc::protect::protection::Protection;
use crate::event::AssocClosed;

/// A packet under construction. It leaves room before the chunks for the headers of protection, of
/// which its [`PacketBuilder`] knows nothing. End with [`finish`](Self::finish) or
/// [`discard`](Self::discard).
#[must_use = "a packet is complete only after `finish`"]
pub(crate) struct OutgoingPacket<'a> {
    builder: PacketBuilder<'a>,
    is_sealed: bool,
    /// It has a checksum, whatever the peer accepts.
    needs_checksum: bool,
}

impl<'a> Deref for OutgoingPacket<'a> {
    type Target = PacketBuilder<'a>;

    #[inline]
    fn deref(&self) -> &PacketBuilder<'a> {
        &self.builder
    }
}

impl DerefMut for OutgoingPacket<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.builder
    }
}

impl<'a> OutgoingPacket<'a> {
    /// Begins a packet at the end of `out`, of at most `max_len` bytes before it is sealed.
    #[inline]
    pub(crate) fn new(
        out: &'a mut Vec<u8>,
        header: CommonHeader,
        max_len: usize,
        is_sealed: bool,
    ) -> OutgoingPacket<'a> {
        if is_sealed {
            out.resize(out.len() + DTLS_CONTENT_OFFSET, 0);
        }
        let builder = PacketBuilder::new(out, header, max_len);
        OutgoingPacket { builder, is_sealed, needs_checksum: false }
    }

    /// Gives the packet a checksum, whatever the peer accepts.
    pub(crate) fn require_checksum(&mut self) {
        self.needs_checksum = true;
    }

    /// Removes the packet from the buffer.
    pub(crate) fn discard(self) {
        let (out, start) = self.builder.into_parts();
        out.truncate(start - if self.is_sealed { DTLS_CONTENT_OFFSET } else { 0 });
    }

    /// Completes the packet. Returns its length on the wire, in bytes.
    ///
    /// # Errors
    /// If the keys may seal no more packets. The packet is then removed from the buffer.
    #[inline]
    pub(crate) fn finish(
        self,
        protection: Option<&mut Protection>,
        checksum: bool,
    ) -> Result<usize, SealError> {
        match protection {
            Some(protection) if self.is_sealed => self.seal(protection, checksum),
            _ => Ok(self.builder.finish(checksum)),
        }
    }

    #[inline(never)]
    fn seal(self, protection: &mut Protection, checksum: bool) -> Result<usize, SealError> {
        let (out, behind) = self.builder.into_parts();
        let start = behind - DTLS_CONTENT_OFFSET;
        out.copy_within(behind..behind + COMMON_HEADER_LEN, start);
        let chunk = start + COMMON_HEADER_LEN;
        let record = chunk + DTLS_RECORD_OFFSET;
        debug_assert_eq!(record + HEADER_LEN, behind + COMMON_HEADER_LEN);
        let sealed = match &mut protection.sealing {
            Some(keys) => keys.seal(out, record),
            None => Err(SealError::Exhausted { epoch: 0 }),
        };
        if let Err(error) = sealed {
            out.truncate(start);
            return Err(error);
        }
        let Some(header) = Dtls::header(false, out.len() - record) else {
            out.truncate(start);
            return Err(SealError::Exhausted { epoch: 0 });
        };
        out[chunk..record].copy_from_slice(&header);
        let len = crate::sizes::padded(out.len() - start);
        out.resize(start + len, 0);
        if checksum {
            fill_checksum(&mut out[start..]);
        }
        Ok(len)
    }
}

impl Association {
    /// Completes a packet. Returns its length on the wire, in bytes. `None` if it cannot be
    /// protected any more, which ends the association.
    #[inline]
    pub(crate) fn finish(&mut self, mut packet: OutgoingPacket<'_>) -> Option<usize> {
        if let Some(authentication) = &mut self.authentication {
            authentication.authenticate(&mut packet);
        }
        let checksum = self.writes_checksum() || (packet.needs_checksum && self.config.checksum);
        match packet.finish(self.protection.as_deref_mut(), checksum) {
            Ok(len) => Some(len),
            Err(_) => {
                self.keys_are_exhausted();
                None
            }
        }
    }

    /// True if packets get their CRC32c. A peer that accepts checksum 0 gets it in INIT and COOKIE
    /// ECHO all the same (RFC 9653 §5.2): all packets have it before the association is open.
    #[inline]
    fn writes_checksum(&self) -> bool {
        self.config.checksum && !(self.agreed.zero_checksum && self.state.is_open())
    }

    #[cold]
    fn keys_are_exhausted(&mut self) {
        let reason = "the keys have protected as many packets as they may, and no new ones came";
        self.close(AssocClosed::NotProtected { reason: reason.to_owned(), by_peer: false });
    }

    /// True if packets are sealed by default.
    #[inline]
    pub(crate) fn seals(&self) -> bool {
        self.protection.as_ref().is_some_and(|p| p.sealing.is_some())
    }
}
