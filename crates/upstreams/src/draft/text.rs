use crate::client::Failure;
use crate::json::text;

/// A text that arrives as JSON-escaped fragments.
#[derive(Debug, Default)]
pub(super) struct Text {
    /// JSON-escaped, without quotes, with its original escapes.
    pub(super) json: String,
    /// Number of bytes of `json` that have been sent in pieces.
    sent: usize,
}

impl Text {
    pub(super) fn of(json: &str) -> Self {
        Self {
            json: json.into(),
            sent: 0,
        }
    }

    /// Adds JSON-escaped text, and returns the text that can be sent. If a server splits a surrogate pair, holds back
    /// the first half until the second half arrives.
    pub(super) fn push(&mut self, json: &str) -> Option<String> {
        self.json.push_str(json);
        let half = if ends_in_high_surrogate(json) { 6 } else { 0 };
        self.take_until(self.json.len() - half)
    }

    /// Replaces the text with the complete text, and returns the part that has not been sent yet. Fails if the complete
    /// text does not begin with the received text.
    pub(super) fn complete(&mut self, json: &str) -> Result<Option<String>, Failure> {
        let whole = unquoted(json);
        if !whole.starts_with(&self.decoded()) {
            return Err(Failure::malformed());
        }
        let sent = unquoted(&self.json[..self.sent]).len();
        self.json = json.into();
        self.sent = json.len();
        let rest = whole.get(sent..).unwrap_or_default();
        Ok((!rest.is_empty()).then(|| rest.into()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.json.is_empty()
    }

    pub(super) fn rest(&mut self) -> Option<String> {
        self.take_until(self.json.len())
    }

    fn take_until(&mut self, end: usize) -> Option<String> {
        let new = unquoted(&self.json[self.sent..end]);
        self.sent = end;
        (!new.is_empty()).then_some(new)
    }

    pub(super) fn decoded(&self) -> String {
        unquoted(&self.json)
    }
}

fn unquoted(json: &str) -> String {
    let quoted = format!("\"{json}\"");
    text(&quoted).map(Into::into).unwrap_or_default()
}

/// Returns whether JSON-escaped text ends with an escaped high surrogate.
fn ends_in_high_surrogate(json: &str) -> bool {
    let Some((before, [b'\\', b'u', b'd' | b'D', third, ..])) =
        json.as_bytes().split_last_chunk::<6>()
    else {
        return false;
    };
    let backslashes = before.iter().rev().take_while(|byte| **byte == b'\\');
    // if an odd number of backslashes precedes the `\u`, the backslash of the `\u` is itself escaped
    matches!(third, b'8' | b'9' | b'a'..=b'b' | b'A'..=b'B') && backslashes.count() % 2 == 0
}
