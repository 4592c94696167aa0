//! This host's clock beside that of a time server (SNTP, RFC 4330).

use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::socket::receive;

/// The UDP port of time servers.
const PORT: u16 = 123;
/// How long an answer is waited for, and how often it is asked for.
const WAIT: Duration = Duration::from_millis(700);
const TRIES: usize = 2;
/// Bytes of a message.
const LEN: usize = 48;
/// Seconds from 1900 to 1970.
const ERA: f64 = 2_208_988_800.0;

/// The difference of a time server's clock from this one.
#[derive(Clone, Debug, PartialEq)]
pub struct Offset {
    /// The server, as the user or a file names it.
    pub server: String,
    /// By how many seconds its clock is ahead of this one.
    pub ahead_s: f64,
}

/// Seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the clock is what is looked at")]
pub(crate) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

/// Asks a time server.
pub(crate) fn offset(server: &str) -> Option<Offset> {
    let address = address(server)?;
    let any = if address.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(address).ok()?;
    for _ in 0..TRIES {
        let mut request = [0; LEN];
        request[0] = 0x23; // version 4, client
        let nonce = getrandom::u64().unwrap_or(0x6d61_6e79_7061_7468).to_be_bytes();
        request[40..48].copy_from_slice(&nonce);
        let sent = now();
        if socket.send(&request).is_err() {
            continue;
        }
        let mut answer = [0; 128];
        let Ok(Some(len)) = receive(&socket, WAIT, &mut answer) else { continue };
        if let Some(ahead_s) = read(&answer[..len], &nonce, sent, now()) {
            return Some(Offset { server: server.to_owned(), ahead_s });
        }
    }
    None
}

fn address(server: &str) -> Option<SocketAddr> {
    if let Ok(address) = server.parse() {
        return Some(address);
    }
    let named = match server.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') => (host, port.parse().ok()?),
        _ => (server.trim_matches(['[', ']']), PORT),
    };
    named.to_socket_addrs().ok()?.next()
}

/// The difference, from an answer to the request with this nonce.
fn read(answer: &[u8], nonce: &[u8; 8], sent: f64, received: f64) -> Option<f64> {
    let is_answer = answer.len() >= LEN
        && answer[0] & 0x07 == 4
        // A server whose own clock is not set says so.
        && answer[0] >> 6 != 3
        && (1..=15).contains(&answer[1])
        && &answer[24..32] == nonce;
    if !is_answer {
        return None;
    }
    let at = |from: usize| {
        let word = |at: usize| answer.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
        let (seconds, fraction) = (word(from)?, word(from + 4)?);
        // The era that began in 2036 has small numbers.
        let era = if seconds & 0x8000_0000 == 0 { 4_294_967_296.0 } else { 0.0 };
        Some(f64::from(seconds) + era - ERA + f64::from(fraction) / 4_294_967_296.0)
    };
    let (there, back) = (at(32)?, at(40)?);
    Some(((there - sent) + (back - received)) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(nonce: &[u8; 8], unix: u32) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        (bytes[0], bytes[1]) = (0x24, 2);
        bytes[24..32].copy_from_slice(nonce);
        for at in [32, 40] {
            bytes[at..at + 4].copy_from_slice(&(unix.wrapping_add(2_208_988_800)).to_be_bytes());
        }
        bytes
    }

    #[test]
    fn a_server_an_hour_ahead_is_an_hour_ahead() {
        let nonce = [7; 8];
        let bytes = answer(&nonce, 1_800_003_600);
        let ahead = read(&bytes, &nonce, 1_800_000_000.0, 1_800_000_000.2).unwrap();
        assert!((ahead - 3599.9).abs() < 0.001, "{ahead}");
        // After 2036 the counter has begun again.
        let bytes = answer(&nonce, 2_200_000_000);
        assert!(read(&bytes, &nonce, 2_200_000_000.0, 2_200_000_000.0).unwrap().abs() < 0.001);
    }

    #[test]
    fn other_answers_say_nothing() {
        let nonce = [7; 8];
        let good = answer(&nonce, 1_800_000_000);
        assert_eq!(read(&good[..47], &nonce, 0.0, 0.0), None);
        assert_eq!(read(&good, &[8; 8], 0.0, 0.0), None);
        for (at, value) in [(0, 0xe4), (0, 0x23), (1, 0), (1, 16)] {
            let mut bad = good;
            bad[at] = value;
            assert_eq!(read(&bad, &nonce, 0.0, 0.0), None, "byte {at}");
        }
    }
}
