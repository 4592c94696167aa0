//! Finds out what keeps a host from using all its paths to a destination.
//!
//! [`examine`] looks at the host and probes the destination from every uplink. All that it sees are
//! [`Facts`]; each [`Check`] reads them and reports [`Finding`]s: one sentence, a severity, and the
//! commands that mend it. A check is one file in `checks/` and one line in its registry, and does
//! no I/O, so tests feed it facts that were written down.
//!
//! Everything that is read comes through [`System`], with a time limit. What could not be looked at
//! (without Linux, without root, without a command) is in [`Report::unseen`]; it is never taken for
//! sound.

mod causes;
mod checks;
mod facts;
mod finding;
mod host;
mod look;
mod mend;
mod probe;
mod report;
mod shell;
mod system;
#[cfg(test)]
mod testing;

pub use checks::{CHECKS, Check, check_named};
pub use facts::{Facts, Uplink, Way};
pub use finding::{Finding, Looked, Severity, Unseen};
pub use host::{
    Address, Host, Link, Lookup, Neighbour, Offloads, Prefix, Route, Rule, Ruleset, Trial, Verdict,
};
pub use look::{Options, examine};
pub use probe::{Behaviour, Dependence, Mapped, Memory, Mtu, Offset, Reach, SendError};
pub use report::{Report, UplinkLine};
pub use shell::quoted;
pub use system::{RunError, System, ThisSystem};
