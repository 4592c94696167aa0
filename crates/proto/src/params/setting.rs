//! How the type of a parameter is read, printed and bounded.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::chunk_types::ChunkTypes;
use super::kinds::{
    Cuc, InitialCwnd, InitialSsthresh, MaxBurstRule, Ns2Release, RedundancyCycle, RedundancyOrder,
    RtxPastCwnd, SharedVerdict, Units,
};
use super::ns2_rules::RuleSet;
use super::units;

/// A type that a parameter can have.
pub(crate) trait Setting: Sized {
    /// True if TOML writes the value without quotes.
    const BARE: bool = false;
    /// The names that a value chooses from; empty if it is no choice.
    const CHOICES: &'static [&'static str] = &[];

    /// Reads the trimmed text, if it has one of the accepted forms.
    fn parse(text: &str) -> Option<Self>;
    /// Writes the value so that `parse` gives it back.
    fn print(&self) -> String;
    /// The accepted forms, for messages.
    fn forms() -> String;
    /// True if the value makes sense, whatever the parameter.
    fn is_valid(&self) -> bool {
        true
    }
}

/// The values one parameter may take.
pub(crate) trait Allowed<T> {
    fn contains(&self, value: &T) -> bool;
    fn describe(&self) -> String;
}

/// Every valid value of the type.
pub(crate) struct Any;

/// A value in the range, or "off".
pub(super) struct OrOff<T>(pub(super) RangeInclusive<T>);

impl<T: Setting> Allowed<T> for Any {
    fn contains(&self, value: &T) -> bool {
        value.is_valid()
    }
    fn describe(&self) -> String {
        T::forms()
    }
}

impl<T: Setting + PartialOrd> Allowed<T> for RangeInclusive<T> {
    fn contains(&self, value: &T) -> bool {
        RangeInclusive::contains(self, value)
    }
    fn describe(&self) -> String {
        format!("{} to {}", self.start().print(), self.end().print())
    }
}

impl<T: Setting + PartialOrd> Allowed<Option<T>> for OrOff<T> {
    fn contains(&self, value: &Option<T>) -> bool {
        value.as_ref().is_none_or(|value| self.0.contains(value))
    }
    fn describe(&self) -> String {
        format!("{}, or off", self.0.describe())
    }
}

/// "a, b or c"
pub(crate) fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

impl Setting for Duration {
    fn parse(text: &str) -> Option<Self> {
        units::parse_duration(text).ok()
    }
    fn print(&self) -> String {
        units::print_duration(*self)
    }
    fn forms() -> String {
        units::DURATION_FORMS.to_owned()
    }
}

/// In the parameter table a `usize` is a size in bytes.
impl Setting for usize {
    fn parse(text: &str) -> Option<Self> {
        units::parse_size(text).ok()?.try_into().ok()
    }
    fn print(&self) -> String {
        units::print_size(*self as u64)
    }
    fn forms() -> String {
        units::SIZE_FORMS.to_owned()
    }
}

/// In the parameter table an `f64` is a ratio.
impl Setting for f64 {
    fn parse(text: &str) -> Option<Self> {
        units::parse_ratio(text).ok()
    }
    fn print(&self) -> String {
        units::print_ratio(*self)
    }
    fn forms() -> String {
        units::RATIO_FORMS.to_owned()
    }
}

/// In the parameter table an integer of fixed width is a plain count.
macro_rules! count {
    ($($type:ty),+) => {$(
        impl Setting for $type {
            const BARE: bool = true;

            fn parse(text: &str) -> Option<Self> {
                text.parse().ok()
            }
            fn print(&self) -> String {
                self.to_string()
            }
            fn forms() -> String {
                "a whole number".to_owned()
            }
        }
    )+};
}
count!(u16, u32);

impl Setting for bool {
    const BARE: bool = true;

    fn parse(text: &str) -> Option<Self> {
        match text {
            "true" | "on" => Some(true),
            "false" | "off" => Some(false),
            _ => None,
        }
    }
    fn print(&self) -> String {
        self.to_string()
    }
    fn forms() -> String {
        "true or false".to_owned()
    }
}

impl<T: Setting> Setting for Option<T> {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "off" => Some(None),
            _ => T::parse(text).map(Some),
        }
    }
    fn print(&self) -> String {
        self.as_ref().map_or_else(|| "off".to_owned(), T::print)
    }
    fn forms() -> String {
        format!("{}, or \"off\"", T::forms())
    }
    fn is_valid(&self) -> bool {
        self.as_ref().is_none_or(T::is_valid)
    }
}

impl Setting for RuleSet {
    fn parse(text: &str) -> Option<Self> {
        Self::from_names(text)
    }
    fn print(&self) -> String {
        self.names()
    }
    fn forms() -> String {
        "none, or names of rules with commas between".to_owned()
    }
}

impl Setting for ChunkTypes {
    fn parse(text: &str) -> Option<Self> {
        Self::from_names(text)
    }
    fn print(&self) -> String {
        self.names()
    }
    fn forms() -> String {
        "none, or names or numbers of chunk types with commas between".to_owned()
    }
}

impl Setting for Units {
    fn parse(text: &str) -> Option<Self> {
        let count = |unit| text.strip_suffix(unit)?.trim_end().parse().ok();
        if let Some(count) = count("pmdcs") {
            return Some(Self::Pmdcs(count));
        }
        if let Some(count) = count("mtu") {
            return Some(Self::Mtu(count));
        }
        units::parse_size(text).ok().map(Self::Bytes)
    }
    fn print(&self) -> String {
        match self {
            Self::Pmdcs(count) => format!("{count} pmdcs"),
            Self::Mtu(count) => format!("{count} mtu"),
            Self::Bytes(bytes) => units::print_size(*bytes),
        }
    }
    fn forms() -> String {
        "1 pmdcs or more, 1 mtu or more, or a size of 512 B to 4 GiB, such as \"4 pmdcs\""
            .to_owned()
    }
    fn is_valid(&self) -> bool {
        Units::is_valid(*self)
    }
}

impl Setting for InitialCwnd {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "rfc9260" => Some(Self::Rfc9260),
            _ => Units::parse(text).map(Self::Fixed),
        }
    }
    fn print(&self) -> String {
        match self {
            Self::Rfc9260 => "rfc9260".to_owned(),
            Self::Fixed(units) => units.print(),
        }
    }
    fn forms() -> String {
        format!("rfc9260, {}", Units::forms())
    }
    fn is_valid(&self) -> bool {
        match self {
            Self::Rfc9260 => true,
            Self::Fixed(units) => units.is_valid(),
        }
    }
}

impl Setting for InitialSsthresh {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "peer_rwnd" => Some(Self::PeerRwnd),
            "unlimited" => Some(Self::Unlimited),
            _ => units::parse_size(text).ok().map(Self::Bytes),
        }
    }
    fn print(&self) -> String {
        match self {
            Self::PeerRwnd => "peer_rwnd".to_owned(),
            Self::Unlimited => "unlimited".to_owned(),
            Self::Bytes(bytes) => units::print_size(*bytes),
        }
    }
    fn forms() -> String {
        "peer_rwnd, unlimited, or a size of 512 B to 4 GiB".to_owned()
    }
    fn is_valid(&self) -> bool {
        match *self {
            Self::PeerRwnd | Self::Unlimited => true,
            Self::Bytes(bytes) => Units::Bytes(bytes).is_valid(),
        }
    }
}

/// Types of [`named`](super::kinds) variants.
macro_rules! choice {
    ($($type:ty),+) => {$(
        impl Setting for $type {
            const CHOICES: &'static [&'static str] = Self::NAMES;

            fn parse(text: &str) -> Option<Self> {
                Self::from_name(text)
            }
            fn print(&self) -> String {
                self.name().to_owned()
            }
            fn forms() -> String {
                list(Self::NAMES)
            }
        }
    )+};
}
choice!(
    Cuc,
    MaxBurstRule,
    Ns2Release,
    RedundancyCycle,
    RedundancyOrder,
    RtxPastCwnd,
    SharedVerdict
);
