//! Reads and writes the envelope `{"state"?,"metadata"?}`, which contains a thread's state and is sent as a string.

use memchr::memchr2_iter;

use super::error::RequestError;
use threadkeep_domain::{Json, KeyedValues, keyed_values_of_any_key, member};

const EMPTY: &str = "{}";
/// Number of nesting levels around a value: the envelope and the state.
const AROUND: usize = 2;

/// Reads the state from an envelope. A missing state counts as empty. Metadata is ignored, because clients send back
/// the metadata that they have loaded.
///
/// An object without `state` and `metadata` is the state itself, in the format of earlier client versions. The client
/// reads such objects in the same way.
pub(super) fn read_envelope(text: &str, max_keys: u32) -> Result<KeyedValues, RequestError> {
    if text.is_empty() {
        return Ok(KeyedValues::new());
    }
    let envelope = Json::parse_object(text, AROUND).map_err(|_| RequestError::Envelope)?;
    let text = envelope.as_str();
    let state = match member(text, "state") {
        Some("null") => EMPTY,
        Some(state) => state,
        None if member(text, "metadata").is_some() => EMPTY,
        None => text,
    };
    Ok(keyed_values_of_any_key(state, max_keys)?)
}

/// Appends the envelope to `out` as a JSON string. `state` and `metadata` are compact JSON. Empty members are omitted.
pub(super) fn write_envelope(state: &str, metadata: &str, out: &mut String) {
    let state = ("state", state);
    let metadata = ("metadata", metadata);
    let mut before = '{';
    out.push('"');
    for (name, object) in [state, metadata] {
        if object == EMPTY {
            continue;
        }
        out.push(before);
        out.push_str("\\\"");
        out.push_str(name);
        out.push_str("\\\":");
        write_escaped(object, out);
        before = ',';
    }
    if before == '{' {
        out.push('{');
    }
    out.push_str("}\"");
}

/// Appends compact JSON to a JSON string. Only quotes and backslashes need to be escaped, because compact JSON contains
/// no control characters.
fn write_escaped(json: &str, out: &mut String) {
    let mut done = 0;
    for at in memchr2_iter(b'"', b'\\', json.as_bytes()) {
        out.push_str(&json[done..at]);
        out.push('\\');
        done = at;
    }
    out.push_str(&json[done..]);
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn written(state: &str, metadata: &str) -> String {
        let mut out = String::new();
        write_envelope(state, metadata, &mut out);
        serde_json::from_str(&out).unwrap()
    }

    fn read(text: &str) -> Result<Value, String> {
        let state = read_envelope(text, 9).map_err(|error| error.to_string())?;
        let member = |(key, value): &(threadkeep_domain::Key, threadkeep_domain::Value)| {
            let mut json = Vec::new();
            value.write_json(&mut json);
            let value = serde_json::from_slice(&json).unwrap();
            (key.as_str().to_owned(), value)
        };
        Ok(Value::Object(state.iter().map(member).collect()))
    }

    #[test]
    fn empty_members_are_omitted() {
        assert_eq!(written("{}", "{}"), "{}");
        assert_eq!(written(r#"{"a":1}"#, "{}"), r#"{"state":{"a":1}}"#);
        assert_eq!(written("{}", r#"{"a":1}"#), r#"{"metadata":{"a":1}}"#);
        let both = r#"{"state":{"a":1},"metadata":{"b":2}}"#;
        assert_eq!(written(r#"{"a":1}"#, r#"{"b":2}"#), both);
    }

    #[test]
    fn values_are_preserved_as_text() {
        let state = r#"{"":9007199254740993,"a\"\\\n":"\ud83d \u0041 é😀","b":1e400}"#;

        assert_eq!(written(state, "{}"), format!(r#"{{"state":{state}}}"#));
    }

    #[test]
    fn the_state_is_read_and_the_metadata_is_not() {
        assert_eq!(read(""), Ok(json!({})));
        assert_eq!(read(r#"{"metadata":{"a":1}}"#), Ok(json!({})));
        assert_eq!(read(r#"{"state":null}"#), Ok(json!({})));
        let text = r#" { "state" : {"state":1,"":[ ]} , "metadata": 7, "later": 8 } "#;
        assert_eq!(read(text), Ok(json!({"state": 1, "": []})));
    }

    #[test]
    fn a_state_without_an_envelope_is_accepted() {
        assert_eq!(read(r#"{"a":1,"b":[]}"#), Ok(json!({"a": 1, "b": []})));
        assert_eq!(read("{}"), Ok(json!({})));
    }

    #[test]
    fn an_invalid_state_is_rejected() {
        for text in ["[]", "7", "{", r#"{"state":[]}"#, r#"{"state":7}"#, "null"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
