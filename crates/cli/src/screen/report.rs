//! The result of a transfer, as JSON and as text.

use manypath::Association;
use serde::Serialize;
use std::io::ErrorKind;
use std::time::Duration;

use manypath_files::frame::{FileHeader, Kind, Outcome, SIZE_UNKNOWN, Summary, Unnamed};
use manypath_files::relative::printable;
use manypath_transfer::{EntryOutcome, Event, Unsent, Why};

use crate::connect::security::peer_key;
use crate::failure::Failure;
use crate::paths::{PathReport, TimedNotice};
use crate::screen::Screen;
use crate::screen::figures::{bit_rate, size};
use crate::screen::layout;
use crate::screen::shares::{self, Share};

/// As many files as are listed, and as many more that were not stored; of more, only the first are,
/// and all are counted.
const FILES_LISTED: usize = 10_000;
/// Files that were not stored and that a person is told by name.
const FAILURES_TOLD: usize = 100;
/// Files that a person is told by name.
const FILES_TOLD: usize = 3;
/// Columns of a name that a person is told, at most and at least.
const NAME_MAX: usize = 60;
const NAME_MIN: usize = 8;

/// The result of one transfer. The keys are a public contract.
#[derive(Debug, Serialize)]
pub(crate) struct TransferResult {
    /// Only simulations have one.
    pub scenario: Option<String>,
    /// The preset used.
    pub preset: &'static str,
    /// Only simulations have one.
    pub seed: Option<u64>,
    /// Packets were encrypted and authenticated.
    pub encrypted: bool,
    /// The key that the other end proved to have; null if it was not encrypted, or not connected.
    pub peer_key: Option<String>,
    /// Everything arrived and was stored.
    pub completed: bool,
    /// The error, if there was one.
    pub error: Option<String>,
    /// Content bytes delivered to the receiving application.
    pub bytes: u64,
    /// Content bytes that were not sent, as the receiver had them.
    pub resumed_bytes: u64,
    /// From the first content handed to the association to the last delivered.
    pub transfer_time_s: f64,
    /// Content bits per second over that time.
    pub goodput_bps: u64,
    /// From the receiver's Welcome to the first content delivered.
    pub first_byte_s: Option<f64>,
    /// How long the peer's receive buffer alone kept the sender from sending; null at the receiver.
    pub receive_buffer_blocked_s: Option<f64>,
    /// Longest pause between two deliveries of content to the receiving application.
    pub max_delivery_gap_s: Option<f64>,
    /// 99th-percentile latency of messages of content, from `send` to the acknowledgement of the
    /// last byte; null at the receiver.
    pub message_latency_p99_s: Option<f64>,
    /// Bytes sent on all paths, SCTP headers included, for each content byte delivered; null at the
    /// receiver.
    pub overhead: Option<f64>,
    /// Only simulations have one.
    pub trace_hash: Option<String>,
    /// The association's paths as this side sees them.
    pub paths: Vec<PathReport>,
    /// Events and decisions about paths, in order.
    pub notices: Vec<TimedNotice>,
    /// The first files and directories and what became of them.
    pub files: Vec<FileReport>,
    /// How many files and directories there were.
    pub files_total: u32,
    /// How many of them were not stored.
    pub files_failed: u32,
    /// How many of them are directories.
    #[serde(skip)]
    pub directories: Count,
    /// Hidden files that the sender left out, as the receiver takes none; null at the receiver.
    pub files_omitted: Option<usize>,
    /// The digest, if one file was transferred.
    pub sha256: Option<String>,
}

impl TransferResult {
    /// Notes how the association was protected.
    pub(crate) fn secured(&mut self, association: &Association) {
        self.encrypted = association.is_protected();
        self.peer_key = peer_key(association);
    }
}

/// The outcome of one file.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FileReport {
    /// Name at the receiver.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Digest of the content; null for directories and what was not stored.
    pub sha256: Option<String>,
    /// `stored`, or why not.
    pub status: &'static str,
    /// The reason for people, if it was not stored.
    pub error: Option<String>,
    /// It is no directory.
    #[serde(skip)]
    pub is_file: bool,
}

/// A number of entries, and how many of them were not stored.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// All of them.
    pub total: u32,
    /// Those not stored.
    pub failed: u32,
}

/// The reason why the first file was not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FirstFailure {
    /// The file and the reason.
    pub text: String,
    /// The remedy, if known.
    pub hint: Option<&'static str>,
}

/// The list of files, bounded.
#[derive(Debug, Default)]
pub(crate) struct FileLog {
    listed: Vec<FileReport>,
    /// Listed files that were not stored.
    failures_listed: usize,
    /// All entries that are over.
    pub total: u32,
    /// Those not stored.
    pub failed: u32,
    /// The directories among them.
    pub directories: Count,
    /// Why the first of them was not.
    pub first_failure: Option<FirstFailure>,
}

impl FileLog {
    /// Notes what an event tells of an entry.
    pub(crate) fn note(&mut self, event: &Event<'_>) {
        match event {
            Event::Entry(EntryOutcome { header, outcome, text, sha256 }) => {
                self.add(header, *outcome, text, *sha256);
            }
            Event::Unsent(unsent) => self.add_unsent(unsent),
            Event::Unnamed(unnamed) => self.add_unnamed(unnamed),
            _ => {}
        }
    }

    /// Notes what became of an entry.
    pub(super) fn add(
        &mut self,
        header: &FileHeader,
        outcome: Outcome,
        text: &str,
        sha256: Option<[u8; 32]>,
    ) {
        let hint = outcome.hint();
        self.count(header.kind, outcome, || FirstFailure {
            text: format!("{}: {text}", printable(header.name.as_str())),
            hint,
        });
        self.list(FileReport {
            name: header.name.as_str().to_owned(),
            bytes: header.size,
            sha256: if outcome == Outcome::Stored { sha256.map(hex) } else { None },
            status: outcome.name(),
            error: (outcome != Outcome::Stored).then(|| text.to_owned()),
            is_file: header.kind != Kind::Directory,
        });
    }

    /// Notes an entry that the sender cannot send.
    fn add_unsent(&mut self, entry: &Unsent) {
        let (text, hint) = (entry.to_string(), remedy(entry));
        self.count(entry.kind, entry.outcome(), || FirstFailure { text, hint });
        self.list(FileReport {
            name: entry.name.clone(),
            bytes: entry.size,
            sha256: None,
            status: entry.outcome().name(),
            error: Some(entry.why.to_string()),
            is_file: entry.kind != Kind::Directory,
        });
    }

    /// Notes an entry that the receiver cannot store because of its name.
    fn add_unnamed(&mut self, entry: &Unnamed) {
        let outcome = Outcome::NameRefused;
        self.count(entry.kind, outcome, || FirstFailure {
            text: format!("{}: {}", entry.name, entry.why),
            hint: Some("rename it"),
        });
        self.list(FileReport {
            name: entry.name.clone(),
            bytes: entry.size,
            sha256: None,
            status: outcome.name(),
            error: Some(entry.why.to_string()),
            is_file: entry.kind != Kind::Directory,
        });
    }

    fn count(&mut self, kind: Kind, outcome: Outcome, why: impl FnOnce() -> FirstFailure) {
        self.total += 1;
        let is_directory = u32::from(kind == Kind::Directory);
        self.directories.total += is_directory;
        if outcome != Outcome::Stored {
            self.failed += 1;
            self.directories.failed += is_directory;
            self.first_failure.get_or_insert_with(why);
        }
    }

    fn list(&mut self, report: FileReport) {
        let failures = usize::from(report.error.is_some());
        let stored = self.listed.len() - self.failures_listed;
        let listed = if failures > 0 { self.failures_listed } else { stored };
        if listed < FILES_LISTED {
            self.failures_listed += failures;
            self.listed.push(report);
        }
    }

    /// Why the command fails, if a file was not stored.
    pub(crate) fn failure(&self) -> Option<Failure> {
        let first = self.first_failure.as_ref()?;
        let failure = Failure::failed(format!("{}: {}", self.not_stored(), first.text));
        Some(match first.hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        })
    }

    /// How many were not stored: "1 of 3 files not stored".
    fn not_stored(&self) -> String {
        let files = Count {
            total: self.total - self.directories.total,
            failed: self.failed - self.directories.failed,
        };
        let (count, one, more) = match files.failed {
            0 => (self.directories, "directory", "directories"),
            _ => (files, "file", "files"),
        };
        match count {
            Count { total: 1, .. } => format!("the {one} is not stored"),
            Count { total, failed } => format!("{failed} of {total} {more} not stored; the first"),
        }
    }
}

impl TransferResult {
    /// A result of which only the files and the outcome are known yet.
    pub(crate) fn new(
        preset: &'static str,
        files: FileLog,
        error: Option<String>,
    ) -> TransferResult {
        let digests: Vec<_> = files.listed.iter().filter_map(|f| f.sha256.as_ref()).collect();
        // The digest of the only file.
        let sha256 = match digests[..] {
            [only] => Some(only.clone()),
            _ => None,
        };
        TransferResult {
            scenario: None,
            preset,
            seed: None,
            encrypted: false,
            peer_key: None,
            completed: error.is_none(),
            error,
            bytes: 0,
            resumed_bytes: 0,
            transfer_time_s: 0.0,
            goodput_bps: 0,
            first_byte_s: None,
            receive_buffer_blocked_s: None,
            max_delivery_gap_s: None,
            message_latency_p99_s: None,
            overhead: None,
            trace_hash: None,
            paths: Vec::new(),
            notices: Vec::new(),
            files_total: files.total,
            files_failed: files.failed,
            directories: files.directories,
            files_omitted: None,
            files: files.listed,
            sha256,
        }
    }

    /// Adds what was measured; `time` from first content sent to last delivered.
    pub(crate) fn measured(&mut self, summary: &Summary, time: Duration) {
        self.bytes = summary.bytes;
        self.transfer_time_s = time.as_secs_f64();
        if !time.is_zero() {
            self.goodput_bps = (summary.bytes as f64 * 8.0 / time.as_secs_f64()) as u64;
        }
        if summary.bytes > 0 {
            self.first_byte_s = Some(summary.first_byte_ns as f64 / 1e9);
            self.max_delivery_gap_s = Some(summary.max_delivery_gap_ns as f64 / 1e9);
        }
    }

    /// Tells a person how it went, and what each path carried.
    pub(crate) fn tell(&self, screen: &Screen, shares: &[Share]) {
        let (columns, content) = (screen.columns(), self.bytes);
        screen.line(&self.summary());
        let lines = [self.names(columns), shares::text(content, shares)];
        lines.iter().flatten().for_each(|line| screen.line(&format!("  {line}")));
    }

    /// Tells a person what was not stored, and why. The error of the command tells of a single
    /// entry.
    pub(crate) fn tell_failures(&self, screen: &Screen) {
        if self.files_failed < 2 {
            return;
        }
        let failed = self.files.iter().filter_map(|file| Some((file, file.error.as_ref()?)));
        for (file, why) in failed.take(FAILURES_TOLD) {
            let name = printable(&file.name);
            screen.line(&format!("not stored: {name} ({}): {}", file.status, printable(why)));
        }
        if let more @ 1.. = (self.files_failed as usize).saturating_sub(FAILURES_TOLD) {
            screen.line(&format!("not stored: {more} more; --json lists them"));
        }
    }

    fn summary(&self) -> String {
        let before = match self.resumed_bytes {
            0 => String::new(),
            bytes => format!(" ({} were there before)", size(bytes)),
        };
        let (files, stored) = self.counted();
        format!(
            "{}{before} in {:.2} s, {}; longest pause {:.2} s; {stored} of {files} {} stored and verified",
            size(self.bytes),
            self.transfer_time_s,
            bit_rate(self.goodput_bps as f64),
            self.max_delivery_gap_s.unwrap_or(0.0),
            if files == 1 { "file" } else { "files" },
        )
    }

    /// How many files there were, and how many of them were stored.
    fn counted(&self) -> (u32, u32) {
        let files = self.files_total - self.directories.total;
        (files, files - (self.files_failed - self.directories.failed))
    }

    /// The names and sizes of the first files that were stored; `None` if none was.
    fn names(&self, columns: usize) -> Option<String> {
        let is_stored = |file: &&FileReport| file.is_file && file.status == Outcome::Stored.name();
        let name = |file: &FileReport| {
            let size = match file.bytes {
                SIZE_UNKNOWN => String::new(),
                bytes => size(bytes),
            };
            let room = NAME_MAX.min(columns.saturating_sub(layout::width(&size) + 4)).max(NAME_MIN);
            let name = layout::shortened(&printable(&file.name), room);
            format!("{name} {size}").trim_end().to_owned()
        };
        let first = self.files.iter().filter(is_stored).take(FILES_TOLD);
        let mut words: Vec<_> = first.map(name).collect();
        let (_, stored) = self.counted();
        if let more @ 1.. = (stored as usize).saturating_sub(words.len()) {
            words.push(format!("and {more} more"));
        }
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// The result as one line of JSON.
    pub(crate) fn json_line(&self) -> String {
        // Plain numbers, strings and lists: this cannot fail.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

/// The remedy for an entry that cannot be sent, if known.
pub(crate) fn remedy(unsent: &Unsent) -> Option<&'static str> {
    match &unsent.why {
        Why::Name(_) => Some("rename it, or send it by itself with --as NAME"),
        Why::Unreadable { kind: ErrorKind::NotFound, .. } => Some("check the name"),
        Why::Unreadable { kind: ErrorKind::PermissionDenied, .. } => {
            Some("ask its owner for permission, or leave it out")
        }
        Why::NoFile => Some("pipe its contents into `manypath send -`, which sends standard input"),
        _ => None,
    }
}

/// A digest as people compare it.
pub(crate) fn hex(digest: [u8; 32]) -> String {
    data_encoding::HEXLOWER.encode(&digest)
}

#[cfg(test)]
mod tests;
