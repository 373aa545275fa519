//! The input of a property.

use std::fmt;

/// Stands on a line of its own between the parts of an input.
pub(super) const SEPARATOR: &[u8] = b"\n---\n";

/// The bytes of one input.
#[derive(Clone, Copy)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The input as bytes.
    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// The input as text. An editor's line feed at the end of the file is no part of it.
    pub fn text(self) -> Option<&'a str> {
        let text = std::str::from_utf8(self.0).ok()?;
        Some(text.strip_suffix('\n').unwrap_or(text))
    }

    /// The parts of a text. Where some are missing, the last one stands for them too: code that
    /// compares two values often has a special case for equal ones.
    pub fn parts<const N: usize>(self) -> Option<[&'a str; N]> {
        let separator = std::str::from_utf8(SEPARATOR).ok()?;
        let mut parts = self.text()?.split(separator);
        let mut last = parts.next()?;
        Some([(); N].map(|()| {
            let part = last;
            last = parts.next().unwrap_or(last);
            part
        }))
    }
}

impl fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes: {:?}",
            self.0.len(),
            self.0.escape_ascii().to_string()
        )
    }
}

/// A text as a JSON library reads it, if it can: it takes no numbers past a double, no lone
/// surrogates and no deep nesting.
pub fn json(text: &str) -> Option<serde_json::Value> {
    serde_json::from_str(text).ok()
}
