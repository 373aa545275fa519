use std::fmt;
use std::sync::Arc;

const MAX_CHARACTERS: usize = 64;

/// The name of a namespace: 1 to 64 characters, without white space or control characters. Clones share the text.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Namespace(Arc<str>);

/// An invalid namespace name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NamespaceError {
    /// Empty, or over 64 characters.
    #[error("a namespace has 1 to 64 characters")]
    Length,
    /// White space or a control character.
    #[error("a namespace must not contain white space or control characters")]
    Invisible,
    /// Not UTF-8 after percent-decoding.
    #[error("a namespace must be UTF-8")]
    Utf8,
}

impl Namespace {
    /// Parses a name.
    pub fn new(text: &str) -> Result<Self, NamespaceError> {
        if !(1..=MAX_CHARACTERS).contains(&text.chars().count()) {
            return Err(NamespaceError::Length);
        }
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(NamespaceError::Invisible);
        }
        Ok(Self(text.into()))
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Namespace({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_holds_at_its_edges() {
        assert_eq!(Namespace::new(""), Err(NamespaceError::Length));
        assert!(Namespace::new(&"é".repeat(64)).is_ok());
        assert_eq!(Namespace::new(&"n".repeat(65)), Err(NamespaceError::Length));
        for text in ["a b", "a\u{a0}b", "\u{2028}", "a\n", "\u{7f}", "\u{85}"] {
            assert_eq!(Namespace::new(text), Err(NamespaceError::Invisible));
        }
        for text in ["/", ".", "..", "a/b", "😀", "%2F", "\""] {
            assert!(Namespace::new(text).is_ok(), "{text}");
        }
    }
}
