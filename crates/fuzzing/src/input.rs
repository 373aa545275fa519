use std::fmt;

/// Separates the parts of an input. Stands on its own line.
pub(super) const SEPARATOR: &[u8] = b"\n---\n";

#[derive(Clone, Copy)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns the input as text, without the line feed that editors add at the end of a file.
    pub fn text(self) -> Option<&'a str> {
        let text = std::str::from_utf8(self.0).ok()?;
        Some(text.strip_suffix('\n').unwrap_or(text))
    }

    /// Splits the text into parts. Replaces missing parts with copies of the last part, because code that compares two
    /// values often has a special case for equal values.
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

/// Parses JSON. Returns `None` if `serde_json` rejects the text, for example because of lone surrogates, deep nesting
/// or a number outside the range of a double.
pub fn json(text: &str) -> Option<serde_json::Value> {
    serde_json::from_str(text).ok()
}
