use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// The key of an entry: 1 to 1,024 bytes of UTF-8 without control characters. Keys are sorted bytewise. Clones share
/// the text.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryKey(Arc<str>);

/// An invalid entry key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EntryKeyError {
    /// Empty, or over 1,024 bytes.
    #[error("a key has 1 to 1024 bytes")]
    Length,
    /// U+0000 to U+001F or U+007F to U+009F.
    #[error("a key must not contain control characters")]
    ControlCharacter,
    /// Not UTF-8 after percent-decoding.
    #[error("a key must be UTF-8")]
    Utf8,
}

impl EntryKey {
    /// Maximum bytes of a key.
    pub const MAX_BYTES: usize = 1_024;

    /// Parses a key.
    pub fn new(text: &str) -> Result<Self, EntryKeyError> {
        if text.is_empty() || text.len() > Self::MAX_BYTES {
            return Err(EntryKeyError::Length);
        }
        if text.chars().any(char::is_control) {
            return Err(EntryKeyError::ControlCharacter);
        }
        Ok(Self(text.into()))
    }

    /// Returns the key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for EntryKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for EntryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntryKey({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_holds_at_its_edges() {
        assert_eq!(EntryKey::new(""), Err(EntryKeyError::Length));
        assert!(EntryKey::new(&"k".repeat(1_024)).is_ok());
        let long = "é".repeat(513);
        assert_eq!(EntryKey::new(&long), Err(EntryKeyError::Length));
        for text in ["a\u{1f}", "\0", "\u{7f}", "a\u{85}"] {
            let refused = EntryKey::new(text);
            assert_eq!(refused, Err(EntryKeyError::ControlCharacter));
        }
        assert!(EntryKey::new("é / . ?#% \u{a0}😀").is_ok());
    }
}
