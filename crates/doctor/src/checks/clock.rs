//! This host's clock.

use super::Check;
use crate::facts::Facts;
use crate::finding::{Finding, Looked};

/// Certificates, one-time passwords and the times of files suffer above this.
const WRONG_S: f64 = 5.0;
/// The program cannot be installed in the future; a file system's clock may differ by some of it.
const BEFORE_INSTALLED_S: i64 = 600;

/// The clock.
pub(super) struct Clock;

impl Check for Clock {
    fn name(&self) -> &'static str {
        "clock"
    }

    fn about(&self) -> &'static str {
        "this host's clock beside a time server, for certificates and the times of files"
    }

    fn ids(&self) -> &'static [&'static str] {
        &["clock-wrong", "clock"]
    }

    fn look(&self, facts: &Facts, looked: &mut Looked) {
        // Of several servers the one in the middle: one of them may be wrong itself.
        let mut offsets: Vec<_> = facts.offsets.iter().collect();
        offsets.sort_by(|a, b| a.ahead_s.total_cmp(&b.ahead_s));
        if let Some(middle) = offsets.get(offsets.len() / 2) {
            let (ahead, server) = (middle.ahead_s, &middle.server);
            if ahead.abs() <= WRONG_S {
                let sentence =
                    format!("The clock differs from that of {server} by {:.1} s.", ahead.abs());
                return looked.find(Finding::ok("clock", sentence));
            }
            let direction = if ahead > 0.0 { "behind" } else { "ahead of" };
            let sentence = format!(
                "The clock is {} {direction} that of {server}, so certificates may count as not valid.",
                duration(ahead.abs())
            );
            return looked.find(mend(
                facts,
                Finding::warning("clock-wrong", sentence),
                Some(ahead),
            ));
        }
        let early = facts.installed_s.map(|installed| installed - facts.now_s);
        if let Some(early) = early.filter(|&early| early > BEFORE_INSTALLED_S) {
            let sentence = format!(
                "The clock is at least {} behind: this program was installed later than that.",
                duration(early as f64)
            );
            let finding = Finding::warning("clock-wrong", sentence);
            looked.find(mend(facts, finding, Some(early as f64)));
        }
    }
}

fn mend(facts: &Facts, finding: Finding, ahead: Option<f64>) -> Finding {
    if facts.has_timedatectl {
        return finding.mend("sudo timedatectl set-ntp true");
    }
    // As a difference, so that it does not matter when it is pasted.
    let ahead = ahead.unwrap_or(0.0).round() as i64;
    finding.mend(format!("sudo date -s \"@$(($(date +%s) + {ahead}))\""))
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} h", s / 3600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}
