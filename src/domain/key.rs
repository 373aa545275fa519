//! Keys of a state.

use std::borrow::Borrow;
use std::fmt;

const MAX_BYTES: usize = 256;

/// A key of a state: 1 to 256 bytes of UTF-8 without control characters.
///
/// Keys are ordered by their bytes, which is the order in which a state shows them.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Box<str>);

/// Why a text is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Empty, or over 256 bytes.
    #[error("a key has 1 to 256 bytes")]
    Length,
    /// U+0000 to U+001F or U+007F.
    #[error("a key holds no control characters")]
    ControlCharacter,
    /// A path segment that does not decode to UTF-8.
    #[error("a key is UTF-8")]
    Utf8,
}

impl Key {
    /// The key that `text` is.
    ///
    /// # Errors
    /// When the length or a character is outside the rule.
    pub fn new(text: impl Into<Box<str>>) -> Result<Self, KeyError> {
        let text = text.into();
        if text.is_empty() || text.len() > MAX_BYTES {
            return Err(KeyError::Length);
        }
        if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
            return Err(KeyError::ControlCharacter);
        }
        Ok(Self(text))
    }

    /// The key that a JSON string stands for; the text is JSON by construction.
    ///
    /// # Errors
    /// [`KeyError`]; a lone surrogate escape is no UTF-8.
    pub fn from_json(string: &str) -> Result<Self, KeyError> {
        let text: String = serde_json::from_str(string).map_err(|_| KeyError::Utf8)?;
        Self::new(text)
    }

    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Bytes of the key as a JSON string with its colon, which is its share of a state's size.
    #[must_use]
    pub fn field_bytes(&self) -> usize {
        let escapes = self.0.bytes().filter(|byte| needs_escape(*byte)).count();
        self.0.len() + escapes + 3
    }

    /// Appends the key as a JSON string.
    ///
    /// Only `"` and `\` need an escape: the rule leaves no control characters.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        out.push(b'"');
        if self.0.bytes().any(needs_escape) {
            for byte in self.0.bytes() {
                if needs_escape(byte) {
                    out.push(b'\\');
                }
                out.push(byte);
            }
        } else {
            out.extend_from_slice(self.0.as_bytes());
        }
        out.push(b'"');
    }
}

fn needs_escape(byte: u8) -> bool {
    byte == b'"' || byte == b'\\'
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_holds_at_its_edges() {
        assert_eq!(Key::new(""), Err(KeyError::Length));
        assert!(Key::new("k".repeat(256)).is_ok());
        assert_eq!(Key::new("k".repeat(257)), Err(KeyError::Length));
        assert_eq!(Key::new("a\u{1f}"), Err(KeyError::ControlCharacter));
        assert_eq!(Key::new("a\u{7f}"), Err(KeyError::ControlCharacter));
        assert!(Key::new("é / . \u{80}").is_ok());
    }

    #[test]
    fn the_json_form_is_what_a_json_library_writes() {
        for text in ["plain", "q\"uote", "back\\slash", "a/b", "é\u{2028}😀", "."] {
            let key = Key::new(text).unwrap();
            let mut json = Vec::new();

            key.write_json(&mut json);

            assert_eq!(json, serde_json::to_vec(text).unwrap());
            assert_eq!(json.len() + 1, key.field_bytes());
        }
    }
}
