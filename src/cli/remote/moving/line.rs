use serde::Deserialize;

use crate::cli::error::CliError;
use threadkeep_domain::parse_rfc3339;

pub(super) const LINE_MAX_BYTES: usize = 64 * 1_048_576;

const DOCUMENT: &[u8] = b"{\"format\"";
/// Prefix of an error line, which reports a thread that the server could not read.
const ERROR: &[u8] = b"{\"error\"";

/// The members of a line that determine where an export resumes or ends.
#[derive(Debug, Deserialize)]
pub(super) struct Line {
    thread: Option<Thread>,
    pub(super) cursor: Option<String>,
    pub(super) complete: Option<bool>,
    /// Only in the last line: the number of threads that could not be read.
    #[serde(default)]
    pub(super) failed: u64,
    /// Only in lines that report an unreadable thread: the cursor that resumes the export after this thread.
    #[serde(rename = "place")]
    error_cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Thread {
    id: String,
    created_at: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    All,
    /// The threads of one owner, by creation time.
    ByOwner,
}

impl Line {
    pub(super) fn read(line: &[u8]) -> Result<Self, CliError> {
        serde_json::from_slice(line).map_err(CliError::Answer)
    }

    /// Checks only the prefix of the line.
    pub(super) fn is_document(line: &[u8]) -> bool {
        line.starts_with(DOCUMENT)
    }

    pub(super) fn is_error(line: &[u8]) -> bool {
        line.starts_with(ERROR)
    }

    /// Returns whether a file that starts with `head` could be a complete or partial export.
    pub(super) fn may_begin(head: &[u8]) -> bool {
        let begins = |with: &[u8]| head.iter().zip(with).all(|(byte, other)| byte == other);
        let lines = [DOCUMENT, ERROR, b"{\"complete\":true", b"{\"cursor\":"];
        lines.into_iter().any(begins)
    }

    /// Returns the cursor of the thread in this line, to resume an export after it, or `None` for other kinds of lines.
    pub(super) fn resume_cursor(&self, order: Order) -> Option<String> {
        if let Some(cursor) = &self.error_cursor {
            return Some(cursor.clone());
        }
        let thread = self.thread.as_ref()?;
        match order {
            Order::All => Some(thread.id.clone()),
            Order::ByOwner => {
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
    fn a_document_yields_the_resume_cursor() {
        let line = br#"{"format":1,"thread":{"id":"thrd_a","version":1,"created_at":"1970-01-01T00:00:01.007Z"},"state":{"cursor":1}}"#;

        assert!(Line::is_document(line));
        let line = Line::read(line).unwrap();
        assert_eq!(line.resume_cursor(Order::All).as_deref(), Some("thrd_a"));
        assert_eq!(
            line.resume_cursor(Order::ByOwner).as_deref(),
            Some("1007-thrd_a")
        );
        assert_eq!((line.cursor, line.complete), (None, None));
    }

    #[test]
    fn an_error_line_yields_the_resume_cursor() {
        let line = br#"{"error":"unreadable","thread_id":"thrd_a","place":"7-thrd_a"}"#;

        assert!(Line::is_error(line) && !Line::is_document(line));
        let line = Line::read(line).unwrap();
        assert_eq!(
            line.resume_cursor(Order::ByOwner).as_deref(),
            Some("7-thrd_a")
        );
    }

    #[test]
    fn other_files_are_not_accepted_as_exports() {
        for head in [
            "",
            "{",
            "{\"format\":1,\"thread",
            "{\"complete\":true}\n",
            "{\"complete\":true,\"failed\":1}\n",
            "{\"error\":\"unreadable\"",
            "{\"cu",
        ] {
            assert!(Line::may_begin(head.as_bytes()), "{head}");
        }
        for head in ["\n", "text", "{}", "[{\"format\":1", "{\"formal\":1"] {
            assert!(!Line::may_begin(head.as_bytes()), "{head}");
        }
    }

    #[test]
    fn the_last_line_is_not_a_document() {
        for line in [&br#"{"complete":true}"#[..], br#"{"cursor":"thrd_a"}"#] {
            assert!(!Line::is_document(line));
            assert!(
                Line::read(line)
                    .unwrap()
                    .resume_cursor(Order::All)
                    .is_none()
            );
        }
    }
}
