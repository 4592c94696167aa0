//! Secrets that stay in memory no longer than they are used.

use std::fmt;
use std::ops::Deref;

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// A token or password, as text or as bytes. It is erased from memory when it is dropped, and is
/// not printed.
///
/// Only the value in here is erased: not one that it was copied from, nor copies that the system
/// has, such as the command line and the environment of the process.
///
/// Two are compared in a time that depends on their content. Nothing that a peer shows may be
/// compared so.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Erased<T: Zeroize>(Zeroizing<T>);

/// A token: 1 to 255 bytes where there is one.
pub type Token = Erased<Vec<u8>>;

impl<T: Zeroize> ZeroizeOnDrop for Erased<T> {}

impl<T: Zeroize> From<T> for Erased<T> {
    fn from(secret: T) -> Erased<T> {
        Erased(Zeroizing::new(secret))
    }
}

impl From<&str> for Erased<String> {
    fn from(secret: &str) -> Erased<String> {
        secret.to_owned().into()
    }
}

impl From<&[u8]> for Token {
    fn from(secret: &[u8]) -> Token {
        secret.to_vec().into()
    }
}

impl From<Erased<String>> for Token {
    /// The bytes of the text, which are not copied.
    fn from(mut secret: Erased<String>) -> Token {
        std::mem::take(&mut *secret.0).into_bytes().into()
    }
}

impl<T: Zeroize> Deref for Erased<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Without the secret.
impl<T: Zeroize> fmt::Debug for Erased<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Erased(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_erased_and_not_printed() {
        fn is_erased<T: ZeroizeOnDrop>(_: &T) {}
        let text = Erased::<String>::from("correct horse");
        is_erased(&text.0);
        assert_eq!(format!("{text:?} {text:#?}"), "Erased(..) Erased(..)");
        let bytes = Token::from(text.clone());
        is_erased(&bytes.0);
        assert_eq!(&**bytes, b"correct horse");
        assert_eq!(format!("{bytes:?}"), "Erased(..)");
    }

    #[test]
    fn text_becomes_bytes_where_it_is() {
        let text = Erased::from("correct horse".to_owned());
        let at = text.as_ptr();
        let bytes = Token::from(text);
        assert_eq!(bytes.as_ptr(), at, "no copy stays behind");
    }
}
