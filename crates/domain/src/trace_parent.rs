use std::fmt;
use std::str::FromStr;

use super::Heap;

/// Length of a version 00 header: `00-`, the trace id, `-`, the span id, `-` and the flags.
const LEN: usize = 55;
const SAMPLED: u8 = 1;

/// The position of a request in a trace, as defined by [W3C Trace Context](https://www.w3.org/TR/trace-context/).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceParent {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    flags: u8,
}

/// A malformed `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a traceparent is `00-`, 32 hex digits, `-`, 16 hex digits, `-` and 2 hex digits")]
pub struct TraceParentError;

impl Heap for TraceParent {
    fn heap_bytes(&self) -> u64 {
        0
    }
}

impl TraceParent {
    /// Creates a value from its parts. The specification forbids ids that are all zeros, but this function does not
    /// check for them.
    #[must_use]
    pub fn new(trace_id: [u8; 16], span_id: [u8; 8], is_sampled: bool) -> Self {
        Self {
            trace_id,
            span_id,
            flags: if is_sampled { SAMPLED } else { 0 },
        }
    }

    /// Returns the trace id.
    #[must_use]
    pub fn trace_id(&self) -> [u8; 16] {
        self.trace_id
    }

    /// Returns the span id.
    #[must_use]
    pub fn span_id(&self) -> [u8; 8] {
        self.span_id
    }

    /// Returns whether the caller may have recorded the trace.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// Replaces the span.
    #[must_use]
    pub fn with_span(self, span_id: [u8; 8]) -> Self {
        Self { span_id, ..self }
    }
}

/// Parses a header of version 00. In headers of later versions, reads only the part that version 00 defines, as the
/// specification requires. Drops unknown flags.
impl FromStr for TraceParent {
    type Err = TraceParentError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (header, rest) = text
            .as_bytes()
            .split_at_checked(LEN)
            .ok_or(TraceParentError)?;
        let separators = [header[2], header[35], header[52]];
        let version = decode::<1>(&header[..2])?[0];
        let has_end = rest.is_empty() || version > 0 && rest[0] == b'-';
        let trace_id = decode(&header[3..35])?;
        let span_id = decode(&header[36..52])?;
        let [flags] = decode(&header[53..])?;
        let is_valid = separators == *b"---" && version != 0xff && has_end;
        if !is_valid || trace_id == [0; 16] || span_id == [0; 8] {
            return Err(TraceParentError);
        }
        Ok(Self::new(trace_id, span_id, flags & SAMPLED != 0))
    }
}

/// Decodes lowercase hex only.
fn decode<const N: usize>(digits: &[u8]) -> Result<[u8; N], TraceParentError> {
    let mut bytes = [0; N];
    if digits.iter().any(u8::is_ascii_uppercase) {
        return Err(TraceParentError);
    }
    hex::decode_to_slice(digits, &mut bytes).map_err(|_| TraceParentError)?;
    Ok(bytes)
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; LEN];
        text[..3].copy_from_slice(b"00-");
        text[35] = b'-';
        text[52..].copy_from_slice(if self.is_sampled() { b"-01" } else { b"-00" });
        let _ = hex::encode_to_slice(self.trace_id, &mut text[3..35]);
        let _ = hex::encode_to_slice(self.span_id, &mut text[36..52]);
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_trace_parent_is_read_back_from_its_text() {
        let parent: TraceParent = TEXT.parse().unwrap();

        assert_eq!(parent.to_string(), TEXT);
        assert!(parent.is_sampled());
        let unsampled = TEXT.replace("-01", "-00");
        assert_eq!(
            unsampled.parse::<TraceParent>().unwrap().to_string(),
            unsampled
        );
        assert_eq!(
            parent.with_span([1; 8]).to_string(),
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0101010101010101-01"
        );
    }

    #[test]
    fn later_versions_and_unknown_flags_are_read_as_version_00() {
        for (text, read) in [
            (TEXT.replace("00-4", "cc-4"), TEXT.to_owned()),
            (
                format!("{}-more", TEXT.replace("00-4", "01-4")),
                TEXT.to_owned(),
            ),
            (TEXT.replace("-01", "-ff"), TEXT.to_owned()),
            (TEXT.replace("-01", "-fe"), TEXT.replace("-01", "-00")),
        ] {
            assert_eq!(
                text.parse::<TraceParent>().unwrap().to_string(),
                read,
                "{text}"
            );
        }
    }

    #[test]
    fn malformed_headers_are_rejected() {
        for text in [
            String::new(),
            "00-0-0-0".into(),
            TEXT[..54].into(),
            format!("{TEXT}-more"),
            format!("{TEXT}0"),
            TEXT.replace("00-4", "ff-4"),
            format!("{}more", TEXT.replace("00-4", "01-4")),
            TEXT.to_uppercase(),
            TEXT.replace('-', "_"),
            TEXT.replace('f', "g"),
            TEXT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            TEXT.replace("00f067aa0ba902b7", &"0".repeat(16)),
            format!("{}é", &TEXT[..53]),
        ] {
            assert_eq!(text.parse::<TraceParent>(), Err(TraceParentError), "{text}");
        }
    }
}
