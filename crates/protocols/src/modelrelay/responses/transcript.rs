//! Converts the items of a response to the lines of a stream.
//!
//! Clients append every delta and cannot remove it again. If an upstream connection breaks, the partial text therefore
//! remains in the answer. If the model's next attempt begins with the same text, the stream continues after that text.
//! Otherwise, the new text follows an empty line. Calls and JSON documents are sent only when they are complete,
//! because clients use every part that they receive.

use serde_json::{Value, json};

use super::body::Echo;
use super::object::{Call, calls_for_client, of_usage, stop_reason, text_of_message};
use crate::modelrelay::RelayError;
use threadkeep_domain::{ItemKind, Json, Outcome, ResponseId, Status, member};
use threadkeep_responses::{ResponseEvent, ResponseRequest, StreamItem, TextKind};

/// Separates the text of an interrupted attempt from its replacement.
const GAP: &str = "\n\n";

#[derive(Debug, PartialEq)]
pub(super) struct Line {
    pub(super) kind: &'static str,
    pub(super) json: Value,
}

/// The part of a stream that the reader has already received.
#[derive(Debug)]
pub(super) struct Transcript {
    id: ResponseId,
    model: String,
    echo: Echo,
    has_started: bool,
    /// All deltas so far.
    content: String,
    attempt: Attempt,
    /// Number of calls for the client so far.
    calls: usize,
}

/// The text of one attempt at a model's answer.
#[derive(Debug, Default)]
struct Attempt {
    /// The text that the client has received from this attempt, or from the previous one while this one repeats it.
    received: String,
    /// Number of bytes that this attempt has repeated from the previous one, or `None` once `received` is its own text.
    repeated: Option<usize>,
    /// True if the attempt was interrupted. The next text then belongs to a new attempt.
    is_broken: bool,
}

impl Line {
    fn new(kind: &'static str, mut members: Value) -> Self {
        let mut json = json!({ "type": kind });
        if let (Some(json), Some(members)) = (json.as_object_mut(), members.as_object_mut()) {
            json.append(members);
        }
        Self { kind, json }
    }

    pub(super) fn keepalive() -> Self {
        Self::new("keepalive", json!({}))
    }

    /// Builds the last line of a failed response.
    pub(super) fn error(error: &RelayError) -> Self {
        let (status, code, message) = error.shown();
        Self::new(
            "error",
            json!({"code": code, "message": message, "status": status.as_u16()}),
        )
    }
}

impl Transcript {
    pub(super) fn new(id: ResponseId, request: &ResponseRequest) -> Self {
        Self {
            id,
            model: request.model.clone(),
            echo: Echo::of(request),
            has_started: false,
            content: String::new(),
            attempt: Attempt::default(),
            calls: 0,
        }
    }

    /// Returns whether the first line was sent.
    pub(super) fn has_started(&self) -> bool {
        self.has_started
    }

    pub(super) fn start(&mut self) -> Line {
        self.has_started = true;
        Line::new(
            "start",
            json!({"request_id": self.id.to_string(), "model": self.model}),
        )
    }

    pub(super) fn lines(&mut self, item: &StreamItem) -> Vec<Line> {
        match item {
            StreamItem::Created if !self.has_started => vec![self.start()],
            StreamItem::Created | StreamItem::Running => Vec::new(),
            StreamItem::Event(event) => self.event(event),
            StreamItem::Ended(ended) => vec![self.end(&ended.outcome)],
            StreamItem::Failed(error, _) => {
                vec![Line::error(&RelayError::Response(std::sync::Arc::clone(
                    error,
                )))]
            }
        }
    }

    fn event(&mut self, event: &ResponseEvent) -> Vec<Line> {
        match event {
            ResponseEvent::TextDelta { text_ref, delta }
                if matches!(text_ref.kind, TextKind::Text | TextKind::Refusal)
                    && !self.echo.is_json =>
            {
                let text = self.attempt.add(delta);
                self.update(text)
            }
            ResponseEvent::ItemDone { item, is_cut, .. } => self.done(item, *is_cut),
            _ => Vec::new(),
        }
    }

    /// Returns the lines for the end of an item. The item may be incomplete because the attempt was interrupted.
    fn done(&mut self, item: &Json, is_cut: bool) -> Vec<Line> {
        if ItemKind::of(item.as_str()) == Some(ItemKind::Reasoning) {
            return Vec::new();
        }
        if !is_cut && member(item.as_str(), "status") == Some(r#""incomplete""#) {
            self.attempt.break_off();
            return Vec::new();
        }
        let text = match self.echo.is_json {
            true => text_of_message(item),
            false => self.attempt.end(),
        };
        let mut lines = self.update(text);
        if let Some(call) = Call::of(item) {
            lines.extend(self.call(&call));
        }
        lines
    }

    fn update(&mut self, delta: Option<String>) -> Vec<Line> {
        let Some(delta) = delta.filter(|delta| !delta.is_empty()) else {
            return Vec::new();
        };
        self.content.push_str(&delta);
        let mut members = json!({ "delta": delta });
        // clients that build the document apply patches and ignore deltas
        if let Some(document) = self.document() {
            members["patch"] = json!([{"op": "replace", "path": "", "value": document}]);
        }
        vec![Line::new("update", members)]
    }

    /// Parses the content as JSON. Returns `None` if the content is invalid or the request did not ask for JSON.
    fn document(&self) -> Option<Value> {
        let content = self.echo.is_json.then_some(&self.content)?;
        serde_json::from_str(content).ok()
    }

    fn call(&mut self, call: &Call<'_>) -> Vec<Line> {
        let stop = json!({"tool_calls": [call.to_json(&self.echo)]});
        if let Some(result) = call.result() {
            let mut stop = stop;
            stop["tool_result"] = result;
            return vec![Line::new("tool_use_stop", stop)];
        }
        if !call.is_for_client() {
            return Vec::new();
        }
        let index = self.calls;
        self.calls += 1;
        let part =
            |arguments| json!({"tool_call_delta": call.to_delta(&self.echo, index, arguments)});
        vec![
            Line::new("tool_use_start", part("")),
            Line::new("tool_use_delta", part(call.arguments())),
            Line::new("tool_use_stop", stop),
        ]
    }

    fn end(&mut self, outcome: &Outcome) -> Line {
        if let Status::Failed(failure) = &outcome.status {
            return Line::error(&RelayError::Failed(failure.clone()));
        }
        let mut members = json!({
            "content": self.content,
            "tool_calls": calls_for_client(outcome, &self.echo),
            "usage": of_usage(&outcome.usage),
            "stop_reason": stop_reason(outcome),
            "model": self.model,
        });
        if let Some(document) = self.document() {
            members["payload"] = document;
        }
        Line::new("completion", members)
    }
}

impl Attempt {
    /// Adds a delta from the model. Returns the text that the client has not received yet.
    fn add(&mut self, delta: &str) -> Option<String> {
        if std::mem::take(&mut self.is_broken) {
            self.repeated = (!self.received.is_empty()).then_some(0);
        }
        let Some(repeated) = self.repeated else {
            self.received.push_str(delta);
            return Some(delta.to_owned());
        };
        let rest = &self.received[repeated..];
        if rest.starts_with(delta) {
            self.repeated = Some(repeated + delta.len());
            return None;
        }
        self.repeated = None;
        if let Some(new) = delta.strip_prefix(rest) {
            let new = new.to_owned();
            self.received.push_str(&new);
            return Some(new);
        }
        self.received.truncate(repeated);
        self.received.push_str(delta);
        Some(format!("{GAP}{}", self.received))
    }

    /// Marks the attempt as interrupted. `received` keeps its text, with which the next attempt may begin.
    fn break_off(&mut self) {
        self.is_broken = true;
    }

    /// Completes the attempt. Returns the text that the client has not received yet.
    fn end(&mut self) -> Option<String> {
        let Self {
            received, repeated, ..
        } = std::mem::take(self);
        let repeated = repeated?;
        // true if this attempt ended within the text that it repeated
        let is_shorter = (1..received.len()).contains(&repeated);
        is_shorter.then(|| format!("{GAP}{}", &received[..repeated]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the deltas that a client receives. Each attempt has a flag that is true if the attempt is interrupted.
    fn deltas(attempts: &[(&[&str], bool)]) -> Vec<String> {
        let mut attempt = Attempt::default();
        let mut deltas = Vec::new();
        for (pieces, is_broken) in attempts {
            for piece in *pieces {
                deltas.extend(attempt.add(piece));
            }
            match is_broken {
                true => attempt.break_off(),
                false => deltas.extend(attempt.end()),
            }
        }
        deltas
    }

    #[test]
    fn a_repeated_text_continues_where_the_stream_broke_off() {
        for (again, expected) in [
            (
                &["One ", "two ", "three"][..],
                &["One ", "tw", "o ", "three"][..],
            ),
            (&["One tw"], &["One ", "tw"]),
            (&["One two"], &["One ", "tw", "o"]),
            (&["One ten"], &["One ", "tw", "\n\nOne ten"]),
            (&["On", "ce"], &["One ", "tw", "\n\nOnce"]),
            (&["One"], &["One ", "tw", "\n\nOne"]),
            (&["Other"], &["One ", "tw", "\n\nOther"]),
            (&[], &["One ", "tw"]),
        ] {
            let all = deltas(&[(&["One ", "tw"], true), (again, false)]);
            assert_eq!(all, expected, "{again:?}");
        }
        let twice = deltas(&[(&["a", "b"], true), (&["a"], true), (&["a", "bc"], false)]);
        assert_eq!(twice, ["a", "b", "c"]);
        let next = deltas(&[(&["a"], true), (&["ab"], false), (&["ab"], false)]);
        assert_eq!(next, ["a", "b", "ab"]);
    }

    proptest! {
        #[test]
        fn the_text_of_the_last_attempt_ends_the_content(
            attempts in prop::collection::vec(prop::collection::vec("[ab]{1,3}", 0..4), 1..4),
        ) {
            let attempts: Vec<Vec<&str>> = attempts
                .iter()
                .map(|pieces| pieces.iter().map(String::as_str).collect())
                .collect();
            let last = attempts.len() - 1;
            let numbered = attempts.iter().enumerate();
            let made: Vec<_> = numbered.map(|(at, pieces)| (&pieces[..], at < last)).collect();

            let content = deltas(&made).concat();

            let text = attempts[last].concat();
            prop_assert!(content.ends_with(&text), "{content:?} {text:?}");
            let paragraph = content.rsplit(GAP).next().unwrap();
            prop_assert!(text.is_empty() || paragraph == text, "{content:?} {text:?}");
        }
    }
}
