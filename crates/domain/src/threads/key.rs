use std::borrow::Borrow;
use std::fmt;

use crate::{Heap, heap};

const MAX_BYTES: usize = 256;
const ANY_KEY_MAX_BYTES: usize = 65_536;

/// A key in a thread's state. In `/v1`, a key is 1 to 256 bytes of UTF-8 without control characters. In other
/// protocols, a key may be any UTF-8 of up to 65,536 bytes. Keys are sorted bytewise.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Box<str>);

/// An invalid key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Empty, or over 256 bytes.
    #[error("a key has 1 to 256 bytes")]
    Length,
    /// Over 65,536 bytes.
    #[error("a key has at most 65,536 bytes")]
    TooLong,
    /// U+0000 to U+001F or U+007F.
    #[error("a key must not contain control characters")]
    ControlCharacter,
    /// Not UTF-8 after decoding.
    #[error("a key must be UTF-8")]
    Utf8,
}

impl Key {
    /// Parses a key by the rules of `/v1`.
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

    /// Parses a key of any protocol. Checks only the size.
    pub fn any(text: impl Into<Box<str>>) -> Result<Self, KeyError> {
        let text = text.into();
        if text.len() > ANY_KEY_MAX_BYTES {
            return Err(KeyError::TooLong);
        }
        Ok(Self(text))
    }

    /// Decodes a valid JSON string, and parses it as a `/v1` key. Fails for a lone surrogate escape.
    pub fn from_json(string: &str) -> Result<Self, KeyError> {
        Self::new(unescape(string)?)
    }

    /// Decodes a valid JSON string, and parses it as a key of any protocol. Fails for a lone surrogate escape.
    pub fn any_from_json(string: &str) -> Result<Self, KeyError> {
        Self::any(unescape(string)?)
    }

    /// Returns the key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the number of bytes that the key takes up in a state, as a JSON string followed by a colon.
    #[must_use]
    pub fn field_bytes(&self) -> usize {
        let more: usize = self.0.bytes().map(escape_bytes).sum();
        self.0.len() + more + 3
    }

    /// Appends the key as a JSON string, with only the escapes that JSON requires.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        out.push(b'"');
        if self.0.bytes().all(|byte| escape_bytes(byte) == 0) {
            out.extend_from_slice(self.0.as_bytes());
        } else {
            for byte in self.0.bytes() {
                write_escaped(byte, out);
            }
        }
        out.push(b'"');
    }
}

/// Returns the number of bytes that escaping adds to `byte` (RFC 8259, section 7).
fn escape_bytes(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | 0x08 | b'\t' | b'\n' | 0x0c | b'\r' => 1,
        0..0x20 => 5,
        _ => 0,
    }
}

fn write_escaped(byte: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match byte {
        b'"' | b'\\' => out.extend([b'\\', byte]),
        0x08 => out.extend(b"\\b"),
        b'\t' => out.extend(b"\\t"),
        b'\n' => out.extend(b"\\n"),
        0x0c => out.extend(b"\\f"),
        b'\r' => out.extend(b"\\r"),
        0..0x20 => {
            out.extend(b"\\u00");
            out.extend([byte >> 4, byte & 0xf].map(|digit| HEX[usize::from(digit)]));
        }
        _ => out.push(byte),
    }
}

fn unescape(string: &str) -> Result<String, KeyError> {
    serde_json::from_str(string).map_err(|_| KeyError::Utf8)
}

impl Heap for Key {
    fn heap_bytes(&self) -> u64 {
        heap::block(self.0.len())
    }
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
        assert!(Key::any("k".repeat(65_536)).is_ok());
        assert_eq!(Key::any("k".repeat(65_537)), Err(KeyError::TooLong));
    }

    #[test]
    fn encoded_keys_match_a_json_library() {
        let controls: String = ('\0'..='\u{20}').chain(['\u{7f}']).collect();
        for text in [
            "plain",
            "q\"uote",
            "back\\slash",
            "a/b",
            "é\u{2028}😀",
            ".",
            "",
            &controls,
        ] {
            let key = Key::any(text).unwrap();
            let mut json = Vec::new();

            key.write_json(&mut json);

            assert_eq!(json, serde_json::to_vec(text).unwrap());
            let string = std::str::from_utf8(&json).unwrap();
            assert_eq!(Key::any_from_json(string), Ok(key.clone()));
            assert_eq!(json.len() + 1, key.field_bytes());
        }
    }
}
