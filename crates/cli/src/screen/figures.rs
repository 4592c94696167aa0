//! Rates, sizes and times as a person reads them.

pub(crate) use manypath_live::figures::time;
use tokio::time::Instant;

/// Time over which the rates shown are smoothed, in seconds.
const SMOOTHING_S: f64 = 0.5;

/// A smoothed rate of a growing count of bytes.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    last: Option<(Instant, u64)>,
    bits_per_second: Option<f64>,
}

impl Rate {
    /// Adds what is counted now; the rate in bit/s.
    pub(crate) fn update(&mut self, now: Instant, bytes: u64) -> f64 {
        if let Some((then, before)) = self.last.replace((now, bytes)) {
            let seconds = (now - then).as_secs_f64();
            if seconds > 0.0 {
                let new = bytes.saturating_sub(before) as f64 * 8.0 / seconds;
                let old = self.bits_per_second.unwrap_or(new);
                // An interval weighs the more the longer it is.
                let weight = 1.0 - (-seconds / SMOOTHING_S).exp();
                self.bits_per_second = Some(old + weight * (new - old));
            }
        }
        self.bits_per_second.unwrap_or(0.0)
    }
}

/// A rate as a person reads it.
pub(crate) fn bit_rate(bits_per_second: f64) -> String {
    decimal(bits_per_second, "bit/s")
}

/// A size as a person reads it; 1 MB is 10^6 bytes.
pub(crate) fn size(bytes: u64) -> String {
    decimal(bytes as f64, "B")
}

/// A count with a comma behind the thousands.
pub(crate) fn thousands(count: usize) -> String {
    let digits = count.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

fn decimal(value: f64, unit: &str) -> String {
    // Zero has no sign here, and what would be rounded to 1000 has the next prefix.
    let value = if value.is_nan() || value <= 0.0 { 0.0 } else { value };
    let (scaled, prefix) = match value {
        v if v >= 999.95e6 => (v / 1e9, "G"),
        v if v >= 999.95e3 => (v / 1e6, "M"),
        v if v >= 999.5 => (v / 1e3, "k"),
        v => return format!("{v:.0} {unit}"),
    };
    format!("{scaled:.1} {prefix}{unit}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn numbers_are_shown_with_prefixes() {
        assert_eq!(bit_rate(39_400_000.0), "39.4 Mbit/s");
        assert_eq!((size(999), size(60_000_000)), ("999 B".to_owned(), "60.0 MB".to_owned()));
        assert_eq!((size(1000), size(999_960)), ("1.0 kB".to_owned(), "1.0 MB".to_owned()));
        assert_eq!([999.6, 999_999_999.0].map(bit_rate), ["1.0 kbit/s", "1.0 Gbit/s"]);
        assert_eq!([-0.0, -3.0, f64::NAN].map(bit_rate), ["0 bit/s"; 3]);
    }

    #[test]
    fn counts_have_commas() {
        assert_eq!([7, 999, 1000, 138_946].map(thousands), ["7", "999", "1,000", "138,946"]);
    }

    #[tokio::test]
    async fn a_rate_follows_over_half_a_second() {
        let (start, mut rate) = (Instant::now(), Rate::default());
        assert_eq!(rate.update(start, 0), 0.0);
        assert_eq!(rate.update(start + Duration::from_secs(1), 1000), 8000.0);
        let next = rate.update(start + Duration::from_millis(1500), 1000);
        assert!((next - 8000.0 / std::f64::consts::E).abs() < 1e-6, "{next}");
    }
}
