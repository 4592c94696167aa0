//! Findings, and what could not be looked at.

use serde::Serialize;

/// How much a finding matters.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It was looked at and is sound.
    Ok,
    /// Worth knowing; all paths work without a change.
    Note,
    /// A path works only in part, only with some options, or at a cost.
    Warning,
    /// A path that could work does not.
    Error,
}

impl Severity {
    /// The name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Ok => "ok",
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// A finding of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The kind of finding; a public name.
    pub id: &'static str,
    /// The name of the check.
    pub check: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// The interface, address or host that it is about.
    pub place: Option<String>,
    /// The finding in one sentence.
    pub sentence: String,
    /// Commands for this host that mend it, in order.
    pub mend: Vec<String>,
    /// Commands for the destination that mend it.
    pub mend_at_destination: Vec<String>,
    /// Commands that keep the change over a restart, where that is one command.
    pub keep: Vec<String>,
}

impl Finding {
    fn new(id: &'static str, severity: Severity, sentence: String) -> Finding {
        let (mend, mend_at_destination, keep) = (Vec::new(), Vec::new(), Vec::new());
        let (check, place) = ("", None);
        Finding { id, check, severity, place, sentence, mend, mend_at_destination, keep }
    }

    /// A finding that says that something is sound.
    pub fn ok(id: &'static str, sentence: impl Into<String>) -> Finding {
        Finding::new(id, Severity::Ok, sentence.into())
    }

    /// A note.
    pub fn note(id: &'static str, sentence: impl Into<String>) -> Finding {
        Finding::new(id, Severity::Note, sentence.into())
    }

    /// A warning.
    pub fn warning(id: &'static str, sentence: impl Into<String>) -> Finding {
        Finding::new(id, Severity::Warning, sentence.into())
    }

    /// An error.
    pub fn error(id: &'static str, sentence: impl Into<String>) -> Finding {
        Finding::new(id, Severity::Error, sentence.into())
    }

    /// Names the interface, address or host.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Finding {
        self.place = Some(place.into());
        self
    }

    /// Adds a command for this host.
    #[must_use]
    pub fn mend(mut self, command: impl Into<String>) -> Finding {
        self.mend.push(command.into());
        self
    }

    /// Adds commands for this host.
    #[must_use]
    pub fn mend_all(mut self, commands: impl IntoIterator<Item = String>) -> Finding {
        self.mend.extend(commands);
        self
    }

    /// Adds a command for the destination.
    #[must_use]
    pub fn mend_at_destination(mut self, command: impl Into<String>) -> Finding {
        self.mend_at_destination.push(command.into());
        self
    }

    /// Adds a command that keeps the change.
    #[must_use]
    pub fn keep(mut self, command: impl Into<String>) -> Finding {
        self.keep.push(command.into());
        self
    }

    /// Leaves `sudo` out of the commands, for root.
    pub(crate) fn without_sudo(&mut self) {
        for command in self.mend.iter_mut().chain(&mut self.keep) {
            *command = command.replace("sudo ", "");
        }
    }
}

/// Something that could not be looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unseen {
    /// The subject, such as "firewall".
    pub what: String,
    /// The reason, in one sentence.
    pub why: String,
    /// The command that makes it visible, if there is one.
    pub mend: Option<String>,
}

impl Unseen {
    /// Something that was not seen, and why.
    pub fn new(what: impl Into<String>, why: impl Into<String>) -> Unseen {
        Unseen { what: what.into(), why: why.into(), mend: None }
    }

    /// Adds the command that makes it visible.
    #[must_use]
    pub fn mend(mut self, command: impl Into<String>) -> Unseen {
        self.mend = Some(command.into());
        self
    }
}

/// The results of checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// The findings, in the order of the checks.
    pub findings: Vec<Finding>,
    /// Subjects that could not be looked at.
    pub unseen: Vec<Unseen>,
}

impl Looked {
    /// Adds a finding.
    pub fn find(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Adds something that could not be looked at.
    pub fn miss(&mut self, unseen: Unseen) {
        if !self.unseen.contains(&unseen) {
            self.unseen.push(unseen);
        }
    }
}
