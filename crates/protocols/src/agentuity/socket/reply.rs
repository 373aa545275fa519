use super::envelope::write_envelope;
use super::error::RequestError;
use super::id::RequestId;
use threadkeep_domain::Json;

pub(super) const ADMITTED: &str = r#"{"success":true}"#;
/// Answer to an unknown API key. The client does not retry after this answer.
pub(super) const KEY_REJECTED: &str = r#"{"success":false,"error":"the api key is not known"}"#;

/// Renders a successful answer. `thread` contains the state and metadata of the requested thread, if it exists.
pub(super) fn done(id: &RequestId, thread: Option<(String, Json)>) -> String {
    match thread {
        Some((state, metadata)) => restored(id, &state, metadata.as_str()),
        None => format!(r#"{{"id":{},"success":true}}"#, id.as_json()),
    }
}

fn restored(id: &RequestId, state: &str, metadata: &str) -> String {
    // assumes that one byte in eight is a quote that must be escaped
    let capacity = (state.len() + metadata.len()) / 8 * 9 + 128;
    let mut text = String::with_capacity(capacity);
    text.push_str(r#"{"id":"#);
    text.push_str(id.as_json());
    text.push_str(r#","success":true,"data":"#);
    write_envelope(state, metadata, &mut text);
    text.push('}');
    text
}

pub(super) fn refused(id: Option<&RequestId>, error: &RequestError) -> String {
    let message = serde_json::Value::String(error.message());
    match id {
        Some(id) => {
            let id = id.as_json();
            format!(r#"{{"id":{id},"success":false,"error":{message}}}"#)
        }
        None => format!(r#"{{"success":false,"error":{message}}}"#),
    }
}
