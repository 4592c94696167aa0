//! Requests to a running process, and its answers: a line of JSON each.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use manypath_live::Process as Figures;

use crate::screen::figures;

/// Longest request in bytes.
pub(crate) const REQUEST_MAX: usize = 4096;
/// Longest answer in bytes that a client takes.
pub(crate) const ANSWER_MAX: usize = 8 << 20;
/// Associations in an answer, at most.
pub(crate) const ASSOCIATIONS_MAX: usize = 1000;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Request {
    /// The associations and their paths.
    Paths,
    /// Gives the paths from an interface or an address a rank.
    SetRank {
        /// The name of the interface, or the address.
        place: String,
        /// `normal`, `cost=N` or `backup`.
        rank: String,
    },
    /// The figures of the process now, for a live view.
    Figures {
        /// The past from this time of the process on; all of it if null.
        since_ms: Option<u64>,
    },
    /// Gives a path a rank.
    SetPathRank {
        /// Its association.
        association: u64,
        /// Its number.
        path: u16,
        /// `normal`, `cost=N` or `backup`.
        rank: String,
    },
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(crate) enum Answer {
    /// To [`Request::Paths`].
    Paths(Process),
    /// To [`Request::Figures`].
    Figures(Figures),
    /// To [`Request::SetRank`] and [`Request::SetPathRank`]: it is done.
    RankSet {
        /// The command that the process runs.
        command: String,
        /// Paths that have the rank now.
        paths: usize,
    },
    /// The request was not carried out.
    Refused {
        /// Why, in words.
        reason: String,
    },
}

/// A process and its associations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Process {
    /// Its number.
    pub(crate) pid: u32,
    /// The command that it runs: `send`, `recv`, `perf client` or `perf server`.
    pub(crate) command: String,
    /// The associations, at most [`ASSOCIATIONS_MAX`].
    pub(crate) associations: Vec<AssociationState>,
}

/// An association.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct AssociationState {
    /// Its number within the process.
    pub(crate) association: u64,
    /// Its paths.
    pub(crate) paths: Vec<PathState>,
}

/// A path. Further facts are those of results: see docs/cli.md.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PathState {
    /// Its number, from 1.
    pub(crate) path: u16,
    /// The name of the interface that has our address; null if none has it, as on a relay.
    pub(crate) interface: Option<String>,
    /// Our transport address.
    pub(crate) local: String,
    /// The peer's transport address.
    pub(crate) remote: String,
    /// `unconfirmed`, `active`, `potentially_failed` or `inactive`.
    pub(crate) state: String,
    /// `normal`, `cost=N` or `backup`.
    pub(crate) rank: String,
    /// Why it carries no data though it works; null if it may.
    pub(crate) suppressed: Option<String>,
    /// The other facts that results have of a path.
    #[serde(flatten)]
    pub(crate) more: serde_json::Map<String, Value>,
}

impl PathState {
    /// Its smoothed round-trip time in words.
    pub(crate) fn rtt(&self) -> String {
        let seconds = self.more.get("srtt_s").and_then(Value::as_f64);
        let seconds = seconds.filter(|s| (0.0..1e6).contains(s));
        seconds.map_or_else(|| "-".to_owned(), |s| format!("{:.1} ms", 1000.0 * s))
    }

    /// The amount that it has sent, in words.
    pub(crate) fn sent(&self) -> String {
        let bytes = self.more.get("bytes_sent").and_then(Value::as_u64);
        bytes.map_or_else(|| "-".to_owned(), figures::size)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_are_read_as_they_are_written() {
        let set = r#"{"request":"set_rank","place":"wlan0","rank":"backup"}"#;
        let request: Request = serde_json::from_str(set).unwrap();
        assert_eq!(serde_json::to_string(&request).unwrap(), set);
        assert_eq!(serde_json::to_string(&Request::Paths).unwrap(), r#"{"request":"paths"}"#);
        for wrong in ["", "{}", "[]", r#"{"request":"stop"}"#, r#"{"request":"set_rank"}"#] {
            assert!(serde_json::from_str::<Request>(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_is_a_message_or_an_error(bytes in any::<Vec<u8>>()) {
            let _ = serde_json::from_slice::<Request>(&bytes);
            let _ = serde_json::from_slice::<Answer>(&bytes);
        }
    }
}
