//! The figures of a process, as all views and other processes get them.

use serde::{Deserialize, Serialize};

/// A process and what it does now. As JSON, its keys are a public contract (docs/live.md).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// The number of the process.
    pub pid: u32,
    /// The command that it runs: `send`, `recv`, `perf client`, `perf server` or `relay`.
    pub command: String,
    /// Milliseconds since it began; samples and events count from there too.
    pub now_ms: u64,
    /// The associations that it watches, in the order in which they were opened.
    pub associations: Vec<AssociationFigures>,
    /// Associations that are not in the list because it is full.
    pub unlisted: u64,
    /// The latest events, oldest first.
    pub events: Vec<Happened>,
}

/// An association.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AssociationFigures {
    /// Its number within the process.
    pub association: u64,
    /// The peer's transport address, as it was when the association was opened.
    pub peer: String,
    /// Its packets are encrypted and authenticated.
    pub encrypted: bool,
    /// Milliseconds since it is watched.
    pub age_ms: u64,
    /// Bytes of content to be sent or received in all, if that is known.
    pub total_bytes: Option<u64>,
    /// How many of them there are.
    pub done_bytes: u64,
    /// User bytes that the peer has acknowledged.
    pub acked_bytes: u64,
    /// User bytes delivered to the application.
    pub received_bytes: u64,
    /// User bits per second that the peer acknowledged in the last second.
    pub up_bps: f64,
    /// User bits per second that were delivered in the last second.
    pub down_bps: f64,
    /// Its paths, by their number.
    pub paths: Vec<PathFigures>,
}

/// A path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathFigures {
    /// Its number, from 1.
    pub path: u16,
    /// The interface that has our address; null if none has it, as on a relay.
    pub interface: Option<String>,
    /// Our transport address.
    pub local: String,
    /// The peer's transport address.
    pub remote: String,
    /// The relay that our address is on; null for a direct path.
    pub relay: Option<String>,
    /// `unconfirmed`, `active`, `potentially_failed` or `inactive`.
    pub state: String,
    /// `normal`, `cost=N` or `backup`.
    pub rank: String,
    /// Why it carries no data although it works, in words; null if it may.
    pub why: Option<String>,
    /// User bits per second of this path that the peer acknowledged in the last second.
    pub up_bps: f64,
    /// Bits per second of packets received on it in the last second, headers included.
    pub down_bps: f64,
    /// Smoothed round-trip time in seconds, once measured.
    pub srtt_s: Option<f64>,
    /// The shortest round-trip time in seconds.
    pub rtt_min_s: Option<f64>,
    /// Retransmission timeout in seconds.
    pub rto_s: f64,
    /// Chunks found lost per chunk sent in the last ten seconds, 0 to 1; null if none was sent.
    pub loss: Option<f64>,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Data in flight.
    pub flight_bytes: u64,
    /// The largest IP packet.
    pub mtu_bytes: u64,
    /// Counters since the path was added.
    pub counters: Counters,
    /// The past, oldest first.
    pub samples: Vec<Sample>,
}

impl PathFigures {
    /// The words for its state, as [`state_words`] gives them.
    pub fn state_words(&self) -> String {
        state_words(&self.state, self.why.is_some())
    }

    /// The interface, or else the address without its port.
    pub fn short_name(&self) -> &str {
        let without_port = || self.local.rsplit_once(':').map_or(&*self.local, |(ip, _)| ip);
        self.interface.as_deref().unwrap_or_else(without_port)
    }
}

/// Counters of a path since it was added.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// SCTP packets sent.
    pub packets_sent: u64,
    /// SCTP packets received.
    pub packets_received: u64,
    /// Their bytes, without IP and UDP headers.
    pub bytes_sent: u64,
    /// Bytes of the packets received, without IP and UDP headers.
    pub bytes_received: u64,
    /// User bytes that were last sent here and are acknowledged.
    pub bytes_acked: u64,
    /// DATA chunks sent.
    pub data_chunks_sent: u64,
    /// DATA chunks sent here again.
    pub retransmissions: u64,
    /// Chunks last sent here that were found lost.
    pub chunks_lost: u64,
    /// Expirations of T3-rtx.
    pub t3_expirations: u64,
    /// Heartbeats sent.
    pub heartbeats_sent: u64,
}

/// A path over 0.1 s, or over 1 s if that is more than a minute ago. As JSON, an array.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Row", into = "Row")]
pub struct Sample {
    /// Its end, in milliseconds since the process began.
    pub at_ms: u64,
    /// User bits per second acknowledged.
    pub up_bps: f64,
    /// Bits per second of packets received.
    pub down_bps: f64,
    /// Smoothed round-trip time in seconds, at its end.
    pub srtt_s: Option<f64>,
    /// DATA chunks sent.
    pub sent: u64,
    /// Chunks found lost.
    pub lost: u64,
    /// Congestion window in bytes, at its end.
    pub cwnd_bytes: u64,
}

/// A sample as JSON.
type Row = (u64, u64, u64, Option<f64>, u64, u64, u64);

impl From<Row> for Sample {
    fn from(row: Row) -> Sample {
        let (at_ms, up, down, srtt_s, sent, lost, cwnd_bytes) = row;
        Sample { at_ms, up_bps: up as f64, down_bps: down as f64, srtt_s, sent, lost, cwnd_bytes }
    }
}

impl From<Sample> for Row {
    fn from(s: Sample) -> Row {
        let srtt = s.srtt_s.map(|s| (s * 1e6).round() / 1e6);
        (s.at_ms, s.up_bps as u64, s.down_bps as u64, srtt, s.sent, s.lost, s.cwnd_bytes)
    }
}

/// An event, as a sentence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Happened {
    /// Its number within the process, from 0.
    pub number: u64,
    /// When it was, in milliseconds since the process began.
    pub at_ms: u64,
    /// The sentence. Parts of it may come from the peer.
    pub text: String,
}

/// The words for the state of a path, the same in every view: `unconfirmed`, `active`, `idle`,
/// `potentially failed` or `inactive`. `name` is the state's name in results. A path is idle if it
/// works and carries no data.
pub fn state_words(name: &str, is_suppressed: bool) -> String {
    match (name, is_suppressed) {
        ("active", true) => "idle".to_owned(),
        (name, _) => name.replace('_', " "),
    }
}

/// A number with three digits or so and a prefix: `19.8M`.
pub fn short(value: f64) -> String {
    // A rate that cannot be told is none, and zero has no sign: a sum of no rates is -0.0.
    let value = if value.is_nan() || value <= 0.0 { 0.0 } else { value };
    match value {
        v if v >= 9.995e9 => format!("{:.1}G", v / 1e9),
        v if v >= 999.5e6 => format!("{:.2}G", v / 1e9),
        v if v >= 999.5e3 => format!("{:.1}M", v / 1e6),
        v if v >= 999.5 => format!("{:.1}k", v / 1e3),
        v => format!("{v:.0}"),
    }
}

/// A count of bytes as a person reads it; 1 MB is 10^6 bytes.
pub fn bytes(count: u64) -> String {
    with_unit(count as f64, "B")
}

/// A rate as a person reads it.
pub fn bit_rate(bits_per_second: f64) -> String {
    with_unit(bits_per_second, "bit/s")
}

fn with_unit(value: f64, unit: &str) -> String {
    let text = short(value);
    match text.strip_suffix(['k', 'M', 'G']) {
        Some(number) => format!("{number} {}{unit}", &text[number.len()..]),
        None => format!("{text} {unit}"),
    }
}

/// A time in seconds as a person reads it.
pub fn time(seconds: f64) -> String {
    let whole = seconds.round().clamp(0.0, 1e9) as u64;
    match whole {
        0..=99 => format!("{whole} s"),
        100..=5999 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_prefixes() {
        let all = [0.0, 999.0, 999.6, 19_800_000.0, 1.25e9, 40e9].map(short);
        assert_eq!(all, ["0", "999", "1.0k", "19.8M", "1.25G", "40.0G"]);
        assert_eq!([bytes(7), bytes(64_000), bit_rate(4e7)], ["7 B", "64.0 kB", "40.0 Mbit/s"]);
        assert_eq!([time(3.4), time(125.0), time(7300.0)], ["3 s", "2 min 05 s", "2 h 01 min"]);
    }

    #[test]
    fn zero_has_no_sign_and_no_rate_is_less() {
        let none: f64 = [].iter().sum();
        for value in [none, -0.0, -0.4, -7.0, f64::NAN, 0.2] {
            assert_eq!((short(value), bit_rate(value)), ("0".to_owned(), "0 bit/s".to_owned()));
        }
    }

    #[test]
    fn a_state_has_the_words_of_the_rfcs() {
        let words = |name| state_words(name, false);
        assert_eq!(words("potentially_failed"), "potentially failed");
        assert_eq!(
            ["unconfirmed", "active", "inactive"].map(words),
            ["unconfirmed", "active", "inactive"]
        );
        assert_eq!(state_words("active", true), "idle");
        assert_eq!(state_words("inactive", true), "inactive");
    }

    #[test]
    fn a_sample_is_a_short_array() {
        let sample = Sample {
            at_ms: 1200,
            up_bps: 8000.7,
            srtt_s: Some(0.040_000_04),
            sent: 3,
            ..Sample::default()
        };
        let text = serde_json::to_string(&sample).unwrap();
        assert_eq!(text, "[1200,8000,0,0.04,3,0,0]");
        let read: Sample = serde_json::from_str(&text).unwrap();
        assert_eq!((read.at_ms, read.up_bps, read.srtt_s), (1200, 8000.0, Some(0.04)));
    }

    #[test]
    fn a_path_is_called_by_its_interface_or_address() {
        let mut path = PathFigures { local: "[fd00::1]:9899".to_owned(), ..Default::default() };
        assert_eq!(path.short_name(), "[fd00::1]");
        path.interface = Some("eth0".to_owned());
        assert_eq!(path.short_name(), "eth0");
    }
}
