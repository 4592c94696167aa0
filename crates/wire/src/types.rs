//! Numbers that have a meaning of their own.

/// A newtype for a serial number: it wraps, and "before" is only defined within half its space.
macro_rules! serial_number {
    ($(#[$doc:meta])* $name:ident, $int:ty) => {
        $(#[$doc])*
        ///
        /// It wraps around and compares by the serial number arithmetic of RFC 1982. There is no
        /// `Ord`: numbers half the space apart are neither less nor greater.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name(pub $int);

        impl $name {
            const HALF: $int = 1 << (<$int>::BITS - 1);

            /// The number that follows.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.wrapping_add(1))
            }

            /// The number before.
            #[must_use]
            pub const fn prev(self) -> Self {
                Self(self.0.wrapping_sub(1))
            }

            /// The number `n` after this one. `n` of half the space or more wraps past "before".
            #[must_use]
            pub const fn add(self, n: $int) -> Self {
                Self(self.0.wrapping_add(n))
            }

            /// True if this number comes before `other`.
            #[must_use]
            pub const fn lt(self, other: Self) -> bool {
                self.0 != other.0 && other.0.wrapping_sub(self.0) < Self::HALF
            }

            /// True if this number is `other` or comes before it.
            #[must_use]
            pub const fn le(self, other: Self) -> bool {
                other.0.wrapping_sub(self.0) < Self::HALF
            }

            /// True if this number comes after `other`.
            #[must_use]
            pub const fn gt(self, other: Self) -> bool {
                other.lt(self)
            }

            /// True if this number is `other` or comes after it.
            #[must_use]
            pub const fn ge(self, other: Self) -> bool {
                other.le(self)
            }

            /// How many steps lead from `earlier` to this number, modulo the number space.
            #[must_use]
            pub const fn distance_from(self, earlier: Self) -> $int {
                self.0.wrapping_sub(earlier.0)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

serial_number! {
    /// A transmission sequence number (RFC 9260 §1.6), which numbers DATA chunks.
    Tsn, u32
}

serial_number! {
    /// A stream sequence number (RFC 9260 §1.6), which numbers ordered messages of one stream.
    Ssn, u16
}

serial_number! {
    /// A message identifier (RFC 8260 §2.1), which numbers the messages of one stream, ordered and
    /// unordered ones apart.
    Mid, u32
}

/// A stream identifier: which of the streams of one direction a message belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct StreamId(pub u16);

impl std::fmt::Display for StreamId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_numbers_compare_across_the_wrap() {
        let last = Tsn(u32::MAX);
        assert!(last.lt(Tsn(0)) && last.le(Tsn(0)) && Tsn(0).gt(last) && Tsn(0).ge(last));
        assert!(!Tsn(0).lt(last) && !Tsn(0).le(last) && !last.gt(Tsn(0)));
        assert_eq!(last.next(), Tsn(0));
        assert_eq!(Tsn(0).prev(), last);
        assert_eq!(Tsn(3).distance_from(Tsn(u32::MAX - 1)), 5);
        assert_eq!(Tsn(u32::MAX - 1).add(5), Tsn(3));
        assert!(Ssn(65535).lt(Ssn(0)) && Ssn(0).gt(Ssn(65535)));
    }

    #[test]
    fn equal_numbers_are_neither_less_nor_greater() {
        let n = Tsn(7);
        assert!(n.le(n) && n.ge(n) && !n.lt(n) && !n.gt(n));
    }

    #[test]
    fn numbers_half_the_space_apart_do_not_compare() {
        // RFC 1982 §3.2 leaves this pair undefined; here every comparison is false.
        let (a, b) = (Tsn(1), Tsn(1 + (1 << 31)));
        assert!(!a.lt(b) && !b.lt(a) && !a.gt(b) && !b.gt(a) && !a.le(b) && !a.ge(b));
        assert!(a.lt(b.prev()) && b.next().lt(a));
    }
}
