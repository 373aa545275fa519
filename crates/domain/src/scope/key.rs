use std::borrow::Borrow;
use std::fmt;

use super::ScopeError;
use crate::{Heap, heap};

/// Maximum bytes of a value.
pub const VALUE_MAX_BYTES: usize = 32_768;
const NAMESPACED_MAX_BYTES: usize = 128;
const FREE_MAX_BYTES: usize = 1_024;

/// The syntax of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRule {
    /// Up to 128 bytes: segments of `[A-Za-z0-9][A-Za-z0-9_.-]*`, separated by `/`.
    Namespaced,
    /// Any text of up to 1,024 bytes, including the empty text.
    Free,
}

/// A key that follows a [`KeyRule`]. Keys are sorted bytewise.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScopeKey(Box<str>);

/// A value: text of up to 32,768 bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct ScopeValue(Box<str>);

impl KeyRule {
    fn check(self, text: &str) -> Result<(), ScopeError> {
        let limit_bytes = match self {
            Self::Namespaced => NAMESPACED_MAX_BYTES,
            Self::Free => FREE_MAX_BYTES,
        };
        if text.len() > limit_bytes {
            return Err(ScopeError::KeyTooLong { limit_bytes });
        }
        if self == Self::Namespaced && !text.split('/').all(is_segment) {
            return Err(ScopeError::KeyFormat);
        }
        Ok(())
    }
}

fn is_segment(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    text.bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric())
        && text.bytes().all(is_inner)
}

impl ScopeKey {
    /// Parses a key.
    pub fn new(text: impl Into<Box<str>>, rule: KeyRule) -> Result<Self, ScopeError> {
        let text = text.into();
        rule.check(&text)?;
        Ok(Self(text))
    }

    /// Wraps stored text without checking it again.
    pub fn from_stored(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Heap for ScopeKey {
    fn heap_bytes(&self) -> u64 {
        heap::block(self.0.len())
    }
}

impl Heap for ScopeValue {
    fn heap_bytes(&self) -> u64 {
        heap::block(self.0.len())
    }
}

impl Borrow<str> for ScopeKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Keeps keys out of logs.
impl fmt::Debug for ScopeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScopeKey({} bytes)", self.0.len())
    }
}

impl ScopeValue {
    /// Checks the size of a value.
    pub fn new(text: impl Into<Box<str>>) -> Result<Self, ScopeError> {
        let text = text.into();
        if text.len() > VALUE_MAX_BYTES {
            return Err(ScopeError::ValueTooLarge {
                limit_bytes: VALUE_MAX_BYTES,
            });
        }
        Ok(Self(text))
    }

    /// Wraps stored text without checking it again.
    pub fn from_stored(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the value as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Unwraps the text.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0.into()
    }
}

/// Keeps values out of logs.
impl fmt::Debug for ScopeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScopeValue({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaced_keys_are_segments() {
        for good in ["a", "user/name", "A1/b_c.d-e/9", &"k".repeat(128)] {
            assert!(ScopeKey::new(good, KeyRule::Namespaced).is_ok(), "{good}");
        }
        for bad in [
            "", "/", "a/", "/a", "a//b", "_a", ".a", "-", "a b", "é", "a:b", "a\n",
        ] {
            let key = ScopeKey::new(bad, KeyRule::Namespaced);
            assert_eq!(key, Err(ScopeError::KeyFormat), "{bad}");
        }
        let long = ScopeKey::new("k".repeat(129), KeyRule::Namespaced);
        assert_eq!(long, Err(ScopeError::KeyTooLong { limit_bytes: 128 }));
    }

    #[test]
    fn free_keys_are_any_text() {
        for good in ["", "a b", "\n", "é/:", &"k".repeat(1_024)] {
            assert!(ScopeKey::new(good, KeyRule::Free).is_ok());
        }
        let long = ScopeKey::new("k".repeat(1_025), KeyRule::Free);
        assert_eq!(long, Err(ScopeError::KeyTooLong { limit_bytes: 1_024 }));
    }

    #[test]
    fn values_are_bounded_by_bytes() {
        assert!(ScopeValue::new("é".repeat(16_384)).is_ok());
        let long = ScopeValue::new("x".repeat(32_769));
        assert_eq!(
            long,
            Err(ScopeError::ValueTooLarge {
                limit_bytes: 32_768
            })
        );
    }
}
