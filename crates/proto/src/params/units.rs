//! Values with units, as a person writes them: `"200 ms"`, `"64 KiB"`, `"10 Mbit/s"`, `"1 %"`.
//!
//! One set of rules serves configuration, the command line and scenario files. Every printer writes
//! the shortest exact form, and its parser reads that form back to the same value.

use std::time::Duration;

/// A text that is not a value of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {kind}: write {forms}")]
#[non_exhaustive]
pub struct UnitError {
    /// The expected kind: "duration", "size", "rate" or "ratio".
    pub kind: &'static str,
    /// The text that was found.
    pub text: String,
    /// The accepted forms.
    pub forms: &'static str,
}

/// The forms of a duration.
pub const DURATION_FORMS: &str = "a number and ns, us, ms, s, min or h, such as \"200 ms\"";
/// The forms of a size.
pub const SIZE_FORMS: &str = "whole bytes, or a number and B, kB, MB, GB, TB (powers of 1000), \
                              KiB, MiB, GiB or TiB (powers of 1024), such as \"64 KiB\"";
/// The forms of a rate.
pub const RATE_FORMS: &str = "a number and bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s, B/s, kB/s, MB/s, \
                              GB/s, KiB/s, MiB/s or GiB/s, such as \"10 Mbit/s\"";
/// The forms of a ratio.
pub const RATIO_FORMS: &str = "a number from 0 to 1, a percentage from 0 % to 100 %, or a fraction, \
                               such as \"0.01\", \"1 %\" or \"1/8\"";

/// Names of units, and the number of base units in each. Printing tries them in order up to the
/// base unit; the names after it are only read.
type UnitTable = [(&'static str, u64)];

const DURATIONS: &UnitTable = &[
    ("h", 3_600_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
    ("µs", 1_000),           // U+00B5 micro sign
    ("μs", 1_000),           // U+03BC Greek mu
    ("min", 60_000_000_000), // not printed: "60 s" is what the RFC writes
];

const SIZES: &UnitTable = &[
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("B", 1),
    ("KB", 1_000),
];

const RATES: &UnitTable = &[
    ("Tbit/s", 1_000_000_000_000),
    ("Gbit/s", 1_000_000_000),
    ("Mbit/s", 1_000_000),
    ("kbit/s", 1_000),
    ("bit/s", 1),
    ("Gbps", 1_000_000_000),
    ("Mbps", 1_000_000),
    ("kbps", 1_000),
    ("bps", 1),
    ("GB/s", 8_000_000_000),
    ("MB/s", 8_000_000),
    ("kB/s", 8_000),
    ("B/s", 8),
    ("GiB/s", 8 << 30),
    ("MiB/s", 8 << 20),
    ("KiB/s", 8 << 10),
];

/// Reads a duration: `"200 ms"`, `"1 s"`, `"30us"`, `"2 min"`, `"0"`. Finer than 1 ns is rounded.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let error = || UnitError { kind: "duration", text: text.to_owned(), forms: DURATION_FORMS };
    let (number, unit) = split(text);
    // Zero is the same in every unit. For any other bare number the unit would be a guess.
    let nanoseconds = match unit {
        "" if number == "0" => 0,
        _ => scale(number, factor(DURATIONS, unit).ok_or_else(error)?).ok_or_else(error)?.0,
    };
    let seconds = u64::try_from(nanoseconds / 1_000_000_000).map_err(|_| error())?;
    Ok(Duration::new(seconds, (nanoseconds % 1_000_000_000) as u32))
}

/// Writes a duration in the largest of h, s, ms, us and ns that divides it.
pub fn print_duration(value: Duration) -> String {
    print(DURATIONS, value.as_nanos(), "s")
}

/// Reads a size in bytes: `"64 KiB"`, `"1 MB"` (10^6), `"8 MiB"` (2^23), `"1500 B"`, `"1500"`.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let error = || UnitError { kind: "size", text: text.to_owned(), forms: SIZE_FORMS };
    let (number, unit) = split(text);
    let unit = if unit.is_empty() { "B" } else { unit };
    match scale(number, factor(SIZES, unit).ok_or_else(error)?) {
        Some((bytes, true)) => u64::try_from(bytes).map_err(|_| error()),
        _ => Err(error()),
    }
}

/// Writes a size in the largest unit that divides it.
pub fn print_size(bytes: u64) -> String {
    print(SIZES, bytes.into(), "B")
}

/// Reads a rate in bit/s: `"10 Mbit/s"`, `"1 Gbit/s"`, `"100 kB/s"`. Finer than 1 bit/s is rounded.
pub fn parse_rate(text: &str) -> Result<u64, UnitError> {
    let error = || UnitError { kind: "rate", text: text.to_owned(), forms: RATE_FORMS };
    let (number, unit) = split(text);
    let (bits, _) = scale(number, factor(RATES, unit).ok_or_else(error)?).ok_or_else(error)?;
    u64::try_from(bits).map_err(|_| error())
}

/// Writes a rate, given in bit/s, in the largest of the bit units that divides it.
pub fn print_rate(bits_per_second: u64) -> String {
    print(RATES, bits_per_second.into(), "bit/s")
}

/// Reads a ratio between 0 and 1: `"0.01"`, `"1 %"`, `"1/8"`.
pub fn parse_ratio(text: &str) -> Result<f64, UnitError> {
    let error = || UnitError { kind: "ratio", text: text.to_owned(), forms: RATIO_FORMS };
    let trimmed = text.trim();
    let value = if let Some(percent) = trimmed.strip_suffix('%') {
        // Shifting the exponent rounds once, so that "0.1 %" is exactly the number 0.001.
        let percent = decimal(percent.trim()).ok_or_else(error)?;
        format!("{percent}e-2").parse().ok()
    } else if let Some((numerator, denominator)) = trimmed.split_once('/') {
        let part = |text: &str| decimal(text.trim())?.parse::<f64>().ok();
        part(numerator).zip(part(denominator)).map(|(n, d)| n / d)
    } else {
        decimal(trimmed).and_then(|number| number.parse().ok())
    };
    value.filter(|ratio| (0.0..=1.0).contains(ratio)).ok_or_else(error)
}

/// Writes a ratio as the shortest decimal number that reads back to the same value.
pub fn print_ratio(ratio: f64) -> String {
    format!("{ratio}")
}

/// Splits "200 ms" into "200" and "ms".
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

fn factor(table: &UnitTable, unit: &str) -> Option<u64> {
    table.iter().find(|(name, _)| *name == unit).map(|&(_, factor)| factor)
}

/// The text, if it is a plain decimal number such as "1.5", without sign and exponent.
fn decimal(text: &str) -> Option<&str> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    (digits(whole) && digits(fraction)).then_some(text)
}

/// The decimal number times `factor`, rounded to nearest. The flag is true if that is exact.
fn scale(number: &str, factor: u64) -> Option<(u128, bool)> {
    let (whole, fraction) = decimal(number)?.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    let power = 10_u128.checked_pow(fraction.len().try_into().ok()?)?;
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let scaled = digits.checked_mul(factor.into())?;
    Some((scaled.checked_add(power / 2)? / power, scaled.is_multiple_of(power)))
}

/// The value in the first unit of the table that divides it; 0 in the unit `zero`.
fn print(table: &UnitTable, value: u128, zero: &str) -> String {
    let mut dividing = table.iter().filter(|&&(_, factor)| value.is_multiple_of(factor.into()));
    match dividing.next() {
        Some(&(unit, factor)) if value > 0 => format!("{} {unit}", value / u128::from(factor)),
        _ => format!("0 {zero}"), // a table holds a unit of 1, so only zero comes here
    }
}

#[cfg(test)]
mod tests;
