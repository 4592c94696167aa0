//! The share of each path in what was carried.

use crate::screen::figures::size;

/// Paths that are listed; of the others, their number.
const LISTED: usize = 6;

/// The amount that a path carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// The name of the path.
    pub label: String,
    /// User bytes that it carried, those of the protocol above included.
    pub bytes: u64,
}

/// `wlan0 145.0 MB (73 %), lte0 55.0 MB (27 %)`: how the paths share `content`, the bytes that a
/// person knows of. `None` if nothing was carried.
pub(crate) fn text(content: u64, shares: &[Share]) -> Option<String> {
    let sum: u128 = shares.iter().map(|share| u128::from(share.bytes)).sum();
    if sum == 0 || content == 0 {
        return None;
    }
    let one = |share: &Share| {
        let bytes = (u128::from(content) * u128::from(share.bytes) + sum / 2) / sum;
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        format!("{} {} ({})", share.label, size(bytes), percent(share.bytes as f64 / sum as f64))
    };
    let mut words: Vec<_> = shares.iter().take(LISTED).map(one).collect();
    if let more @ 1.. = shares.len().saturating_sub(LISTED) {
        let rest: u64 = shares.iter().skip(LISTED).map(|share| share.bytes).sum();
        let of_all = percent(rest as f64 / sum as f64);
        words.push(format!("{more} more ({of_all})"));
    }
    Some(words.join(", "))
}

fn percent(share: f64) -> String {
    match (share * 100.0).round() {
        0.0 if share > 0.0 => "< 1 %".to_owned(),
        100.0 if share < 1.0 => "> 99 %".to_owned(),
        whole => format!("{whole} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(label: &str, bytes: u64) -> Share {
        Share { label: label.to_owned(), bytes }
    }

    #[test]
    fn paths_share_what_was_sent() {
        let two = [share("wlan0", 145_100_000), share("lte0", 54_900_000)];
        let said = text(200_000_000, &two);
        assert_eq!(said.as_deref(), Some("wlan0 145.1 MB (73 %), lte0 54.9 MB (27 %)"));
        // The frames of the protocol are not content.
        let said = text(6_000, &[share("lo", 300_000)]);
        assert_eq!(said.as_deref(), Some("lo 6.0 kB (100 %)"));
    }

    #[test]
    fn a_path_that_carried_nothing_is_told_and_one_with_little_too() {
        let three = [share("wlan0", 999_999), share("lte0", 0), share("eth0", 1)];
        let said = text(1_000_000, &three);
        let expected = "wlan0 1.0 MB (> 99 %), lte0 0 B (0 %), eth0 1 B (< 1 %)";
        assert_eq!(said.as_deref(), Some(expected));
        assert_eq!(text(0, &three), None);
        assert_eq!(text(1_000_000, &[share("wlan0", 0)]), None);
        assert_eq!(text(1_000_000, &[]), None);
    }

    #[test]
    fn many_paths_are_counted() {
        let many: Vec<_> = (0..8).map(|n| share(&format!("eth{n}"), 10)).collect();
        let said = text(80, &many).expect("shares");
        assert!(said.ends_with("eth5 10 B (13 %), 2 more (25 %)"), "{said}");
    }
}
