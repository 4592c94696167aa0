//! The Heartbeat Information (RFC 9260 §8.3), which a HEARTBEAT carries and its answer returns.
//!
//! It holds the path, the time of sending, and a code that only this end can make. So no list of
//! sent heartbeats is kept, and an answer counts for ten minutes, even if the RTT has become longer
//! than any such list would last.
//!
//! | bytes | content |
//! | --- | --- |
//! | 0 to 7 | the code: 64 bits of HMAC-SHA-256 over path and time, the nonce of RFC 9260 §5.4 |
//! | 8 to 11 | 5 bits of the path's number, 27 bits of the time in units of 8.192 µs |
//!
//! On a verified path of a protected association the code is left out, because only the peer can
//! answer.
//!
//! A heartbeat between two addresses that are no path yet, a check, has two more bytes of zeros.
//! The code covers both addresses then.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::{BufMut, Bytes};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::datagram::AddressPair;
use crate::path::Path;
use crate::rng::Rng;
use crate::time::Instant;
use crate::view::{PathId, PathState};

/// Bytes of the Heartbeat Information.
pub(super) const INFO_LEN: usize = 12;
/// Bytes of the code.
const CODE_LEN: usize = 8;
/// Bytes of the information without the code.
const SHORT_LEN: usize = INFO_LEN - CODE_LEN;
/// Bytes of the information of a check.
pub(crate) const CHECK_INFO_LEN: usize = INFO_LEN + 2;
/// Bytes of the key: the block size of SHA-256.
const KEY_LEN: usize = 64;
/// Low bits of the nanoseconds that are left out: the unit is 8.192 µs.
const UNIT_BITS: u32 = 13;
/// Bits of the time that are sent: it wraps around after 18 minutes.
const TIME_BITS: u32 = 27;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;
/// How long an answer counts after its heartbeat was sent.
const COUNTS_FOR: Duration = Duration::from_secs(600);

/// A heartbeat that was sent, as its answer shows it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeartbeatInfo {
    pub(crate) path: PathId,
    pub(crate) code: u64,
    /// When it was sent, rounded down to a multiple of 8.192 µs.
    pub(crate) sent_at: Instant,
}

/// Writes and reads the Heartbeat Information of an association.
#[derive(Debug)]
pub(crate) struct InfoCodec {
    key: [u8; KEY_LEN],
}

impl InfoCodec {
    pub(crate) fn new(mut rng: Rng) -> InfoCodec {
        let mut key = [0; KEY_LEN];
        rng.fill(&mut key);
        InfoCodec { key }
    }

    /// The information for a heartbeat that is sent now, and its code.
    pub(crate) fn write(&self, path: &Path, now: Instant, is_protected: bool) -> (Vec<u8>, u64) {
        let units = now.as_nanos() >> UNIT_BITS;
        let word = u64::from(path.id.0) << TIME_BITS | units & TIME_MASK;
        let mut info = Vec::with_capacity(INFO_LEN);
        let is_short = is_protected && path.liveness.state != PathState::Unconfirmed;
        let code = if is_short { units } else { self.code(path, units) };
        if !is_short {
            info.put_u64(code);
        }
        info.put_u32(word as u32);
        (info, code)
    }

    /// The heartbeat of this information, if this end sent it in the last ten minutes on a path
    /// that still exists.
    pub(crate) fn read<'p>(
        &self,
        info: &Bytes,
        now: Instant,
        is_protected: bool,
        path: impl FnOnce(PathId) -> Option<&'p Path>,
    ) -> Option<HeartbeatInfo> {
        let is_short = is_protected && info.len() == SHORT_LEN;
        let (code, word) = info.split_at_checked(if is_short { 0 } else { CODE_LEN })?;
        let word = u64::from(u32::from_be_bytes(word.try_into().ok()?));
        let path = path(PathId((word >> TIME_BITS) as u8))?;
        let (units, sent_at) = sending_time(word, now)?;
        let (code, is_ours) = if is_short {
            // A path may be verified by a check, and probed, in the moment in which it is created.
            let is_since = units >= path.created.as_nanos() >> UNIT_BITS;
            (units, path.liveness.state != PathState::Unconfirmed && is_since)
        } else {
            let own = self.code(path, units);
            (own, own.to_be_bytes() == code)
        };
        (is_ours && now - sent_at <= COUNTS_FOR).then_some(HeartbeatInfo {
            path: path.id,
            code,
            sent_at,
        })
    }

    /// The information for a check that is sent now.
    pub(crate) fn write_check(&self, pair: AddressPair, now: Instant) -> [u8; CHECK_INFO_LEN] {
        let units = now.as_nanos() >> UNIT_BITS;
        let mut info = [0; CHECK_INFO_LEN];
        info[..CODE_LEN].copy_from_slice(&self.check_code(pair, units).to_be_bytes());
        let word = (units & TIME_MASK) as u32;
        info[CODE_LEN..INFO_LEN].copy_from_slice(&word.to_be_bytes());
        info
    }

    /// When the check of this information was sent, if this end sent it between these addresses in
    /// the last ten minutes.
    pub(crate) fn read_check(
        &self,
        info: &[u8],
        now: Instant,
        pair: AddressPair,
    ) -> Option<Instant> {
        let info: &[u8; CHECK_INFO_LEN] = info.try_into().ok()?;
        let (code, rest) = info.split_first_chunk::<CODE_LEN>()?;
        let word = u64::from(u32::from_be_bytes(*rest.first_chunk()?));
        let (units, sent_at) = sending_time(word, now)?;
        let is_ours = self.check_code(pair, units).to_be_bytes() == *code;
        (is_ours && now - sent_at <= COUNTS_FOR).then_some(sent_at)
    }

    fn check_code(&self, pair: AddressPair, units: u64) -> u64 {
        let mut mac = <Hmac<Sha256> as KeyInit>::new((&self.key).into());
        // No path has so much to cover.
        mac.update(b"a check between two addresses");
        for address in [pair.local, pair.remote] {
            update_with_address(&mut mac, address);
        }
        mac.update(&units.to_be_bytes());
        first_bits(mac)
    }

    /// The code of a heartbeat. It covers the path's creation and remote address too, because
    /// another path may get the same number later.
    fn code(&self, path: &Path, units: u64) -> u64 {
        let mut mac = <Hmac<Sha256> as KeyInit>::new((&self.key).into());
        mac.update(&[path.id.0]);
        mac.update(&path.created.as_nanos().to_be_bytes());
        update_with_address(&mut mac, path.remote);
        mac.update(&units.to_be_bytes());
        first_bits(mac)
    }
}

fn update_with_address(mac: &mut Hmac<Sha256>, address: SocketAddr) {
    mac.update(&match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    });
    mac.update(&address.port().to_be_bytes());
}

fn first_bits(mac: Hmac<Sha256>) -> u64 {
    let full = mac.finalize().into_bytes();
    u64::from_be_bytes(std::array::from_fn(|i| full[i]))
}

/// The time of sending whose low bits are in `word`, in units and as an instant.
fn sending_time(word: u64, now: Instant) -> Option<(u64, Instant)> {
    let now_units = now.as_nanos() >> UNIT_BITS;
    let age = now_units.wrapping_sub(word) & TIME_MASK;
    let units = now_units.checked_sub(age)?;
    Some((units, Instant::from_nanos(units << UNIT_BITS)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::path::{NewPath, Origin};

    fn path(id: u8, remote: &str, created: Instant) -> Path {
        let config = Config::build("fast", "cmt-pf", &[]).expect("valid");
        let local = "192.0.2.1:9899".parse().expect("an address");
        let remote = remote.parse().expect("an address");
        let of = NewPath {
            id: PathId(id),
            pair: AddressPair { local, remote },
            origin: Origin::Named,
            peer_rwnd: 65_536,
            link_mtu: None,
            overhead: 0,
        };
        Path::new(&config, created, of)
    }

    fn codec(seed: u64) -> InfoCodec {
        InfoCodec::new(Rng::from_number(seed))
    }

    const CREATED: Instant = Instant::from_millis(7);

    #[test]
    fn an_answer_says_when_it_was_asked_for_ten_minutes() {
        let codec = codec(1);
        let there = path(31, "198.51.100.1:9899", CREATED);
        for asked in [9, 1_234_567, 5_000_000_000_000] {
            let asked = Instant::from_nanos(CREATED.as_nanos() + asked);
            let (info, code) = codec.write(&there, asked, false);
            assert_eq!(info.len(), INFO_LEN);
            let read =
                |after| codec.read(&info.clone().into(), asked + after, false, |_| Some(&there));
            for after in [0, 1, 2_400, 61_000, 599_000].map(Duration::from_millis) {
                let question = read(after).expect("it counts");
                assert_eq!((question.path, question.code), (PathId(31), code));
                let early = asked - question.sent_at;
                assert!(early < Duration::from_nanos(8193), "{early:?} too early");
            }
            for after in [601, 1099, 1100, 1101, 2199, 100_000] {
                assert_eq!(read(Duration::from_secs(after)), None, "after {after} s");
            }
        }
    }

    #[test]
    fn a_changed_answer_does_not_count() {
        let codec = codec(1);
        let there = path(1, "198.51.100.1:9899", CREATED);
        let now = Instant::from_millis(60_000);
        let (info, _) = codec.write(&there, now, false);
        let later = now + Duration::from_secs(1);
        for bit in 0..8 * INFO_LEN {
            let mut changed = info.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let the_path = |id| Some(&there).filter(|path| path.id == id);
            let read = codec.read(&changed.into(), later, false, the_path);
            assert_eq!(read, None, "bit {bit}");
        }
        for length in [0, 7, 8, 11, 13] {
            let mut cut = info.clone();
            cut.resize(length, 0);
            assert_eq!(codec.read(&cut.into(), later, false, |_| Some(&there)), None);
        }
    }

    /// Only the peer can answer there, and it has shown that it is at this address.
    #[test]
    fn a_protected_path_is_asked_without_a_code_once_it_is_verified() {
        let codec = codec(1);
        let mut there = path(3, "198.51.100.1:9899", CREATED);
        let now = Instant::from_millis(60_000);
        let (long, _) = codec.write(&there, now, true);
        assert_eq!(long.len(), INFO_LEN, "it is not verified yet");
        there.liveness.state = PathState::Active;
        let (at_once, _) = codec.write(&there, there.created, true);
        let answer = Bytes::from(at_once);
        assert!(codec.read(&answer, now, true, |_| Some(&there)).is_some(), "rounded down");
        let (short, code) = codec.write(&there, now, true);
        assert_eq!(short.len(), SHORT_LEN);
        let read = |info: &[u8], at, is_protected, of: &Path| {
            codec.read(&Bytes::copy_from_slice(info), at, is_protected, |_| Some(of))
        };
        let later = now + Duration::from_secs(2);
        for info in [&long, &short] {
            assert!(read(info, later, true, &there).is_some());
        }
        assert_eq!(read(&short, later, true, &there).map(|q| q.code), Some(code));
        assert_eq!(read(&short, later, false, &there), None, "anybody can send this");
        assert_eq!(read(&short, now + Duration::from_secs(601), true, &there), None);
        for length in 0..SHORT_LEN {
            assert_eq!(read(&short[..length], later, true, &there), None);
        }
        let newer = path(3, "198.51.100.1:9899", later);
        assert_eq!(read(&short, later, true, &newer), None, "that was another path");
        there.liveness.state = PathState::Unconfirmed;
        assert_eq!(read(&short, later, true, &there), None, "it verifies nothing");
    }

    #[test]
    fn a_question_belongs_to_one_path_of_one_association() {
        let there = path(1, "198.51.100.1:9899", CREATED);
        let now = Instant::from_millis(60_000);
        let (info, _) = codec(1).write(&there, now, false);
        let info = Bytes::from(info);
        let others = [
            path(2, "198.51.100.1:9899", CREATED),
            path(1, "198.51.100.2:9899", CREATED),
            path(1, "198.51.100.1:9898", CREATED),
            path(1, "[2001:db8::1]:9899", CREATED),
            path(1, "198.51.100.1:9899", Instant::from_millis(8)),
        ];
        for other in &others {
            assert_eq!(codec(1).read(&info, now, false, |_| Some(other)), None, "{other:?}");
        }
        assert_eq!(codec(1).read(&info, now, false, |_| None), None);
        assert_eq!(codec(2).read(&info, now, false, |_| Some(&there)), None);
        assert!(codec(1).read(&info, now, false, |_| Some(&there)).is_some());
    }
}
