//! Values with units, as scenario files write them, on axes; and numbers as texts.

use serde::Serializer;

/// A value's number and unit: "7 %" is 7 and "%".
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|(i, c)| {
            let exponent =
                matches!(c, 'e' | 'E') && text[i + 1..].starts_with(|d: char| d.is_ascii_digit());
            !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+') || exponent)
        })
        .map_or(text.len(), |(i, _)| i);
    let number: f64 = text[..end].parse().ok()?;
    number.is_finite().then(|| (number, text[end..].trim()))
}

/// True if two texts have the same value, such as "0.50 %" and "0.5 %".
pub(crate) fn same(a: &str, b: &str) -> bool {
    a == b || matches!((split(a), split(b)), (Some(a), Some(b)) if a == b)
}

/// The unit of an axis over these values, or the texts themselves if they are not numbers of one
/// unit.
pub(crate) fn axis(texts: &[String], categories: bool) -> (String, Vec<String>) {
    let parts: Option<Vec<_>> = texts.iter().map(|t| split(t)).collect();
    match parts {
        Some(parts) if !categories && !parts.is_empty() => {
            // "0" needs no unit.
            let units: Vec<_> = parts.iter().filter(|(n, u)| *n != 0.0 || !u.is_empty()).collect();
            let unit = units.first().map_or("", |(_, unit)| unit);
            if units.iter().all(|(_, u)| *u == unit) {
                return (unit.to_owned(), Vec::new());
            }
            (String::new(), texts.to_vec())
        }
        _ => (String::new(), texts.to_vec()),
    }
}

/// The number of a value with this unit; zero needs none.
pub(crate) fn number(text: &str, unit: &str) -> Option<f64> {
    split(text).filter(|(n, u)| *u == unit || *n == 0.0).map(|(number, _)| number)
}

/// A number with four significant digits and no trailing zeros.
pub(crate) fn short(x: f64) -> String {
    digits(x, 4)
}

/// A number with three decimals at most, as fit for its size.
pub(crate) fn digits(x: f64, significant: i32) -> String {
    if x == 0.0 || !x.is_finite() {
        return if x == 0.0 { "0".into() } else { "–".into() };
    }
    let magnitude = x.abs().log10().floor() as i32;
    let decimals = (significant - 1 - magnitude).clamp(0, 9) as usize;
    let text = format!("{x:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A mean and the half width of its interval: "33.2 ± 0.8".
pub(crate) fn with_interval(mean: f64, ci: f64) -> String {
    if ci <= 0.0 {
        return short(mean);
    }
    // As many decimals as the interval's two leading digits ask for.
    let decimals = (1 - ci.log10().floor() as i32).clamp(0, 6) as usize;
    format!("{mean:.decimals$} ± {ci:.decimals$}")
}

/// Writes six significant digits: more than a screen shows, and a third of the page's size.
pub(crate) fn rounded<S: Serializer>(x: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    let rounded: f64 = format!("{x:.5e}").parse().unwrap_or(*x);
    if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
        return serializer.serialize_i64(rounded as i64);
    }
    serializer.serialize_f64(rounded)
}
