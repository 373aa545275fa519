//! The lines of an export.

use serde::Deserialize;

use crate::cli::error::CliError;
use crate::domain::parse_rfc3339;

/// A line that is longer than this is no document.
pub(super) const LINE_MAX_BYTES: usize = 64 * 1_048_576;

/// The part of a line that tells where an export goes on, or ends.
#[derive(Debug, Deserialize)]
pub(super) struct Line {
    thread: Option<Thread>,
    pub(super) cursor: Option<String>,
    pub(super) complete: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct Thread {
    id: String,
    created_at: String,
}

/// The order of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// By id.
    All,
    /// Of an owner, by the time at which threads were made.
    OfOwner,
}

impl Line {
    /// Reads a line. Only its head is kept.
    ///
    /// # Errors
    /// [`CliError::Answer`] if it is no line of an export.
    pub(super) fn read(line: &[u8]) -> Result<Self, CliError> {
        serde_json::from_slice(line).map_err(CliError::Answer)
    }

    /// Whether the line is a document, without reading it.
    pub(super) fn is_document(line: &[u8]) -> bool {
        line.starts_with(b"{\"format\"")
    }

    /// The cursor behind that document; none if the line is not a document.
    pub(super) fn place(&self, order: Order) -> Option<String> {
        let thread = self.thread.as_ref()?;
        match order {
            Order::All => Some(thread.id.clone()),
            Order::OfOwner => {
                let created_ms = parse_rfc3339(&thread.created_at)?;
                Some(format!("{created_ms}-{}", thread.id))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_says_where_an_export_goes_on() {
        let line = br#"{"format":1,"thread":{"id":"thrd_a","version":1,"created_at":"1970-01-01T00:00:01.007Z"},"state":{"cursor":1}}"#;

        assert!(Line::is_document(line));
        let line = Line::read(line).unwrap();
        assert_eq!(line.place(Order::All).as_deref(), Some("thrd_a"));
        assert_eq!(line.place(Order::OfOwner).as_deref(), Some("1007-thrd_a"));
        assert_eq!((line.cursor, line.complete), (None, None));
    }

    #[test]
    fn the_last_line_is_no_document() {
        for line in [&br#"{"complete":true}"#[..], br#"{"cursor":"thrd_a"}"#] {
            assert!(!Line::is_document(line));
            assert!(Line::read(line).unwrap().place(Order::All).is_none());
        }
    }
}
