//! Messages, taken apart before the library reads them.
//!
//! The library tries a message as every type that it knows and keeps the values meanwhile, so a message
//! of many small values takes it hundreds of bytes and microseconds for each. The arguments of a call
//! never reach it: they reach the tools as text, so that no number is rounded. The rest may have few
//! values, so that the library reads it quickly.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use rmcp::model::{ErrorCode, ErrorData, JsonRpcError, RequestId};

use crate::domain::{Json, has_more_values, is_named, member, members};

/// The largest message. The largest call writes a task list of 131,072 bytes, which a client that
/// escapes all that is not ASCII makes three times as long; a value of 32,768 control characters has
/// six times as many bytes.
pub(super) const MESSAGE_MAX_BYTES: u64 = 512 * 1_024;
/// Values of a message outside its arguments: clients usually describe themselves in a few dozen. Reading this many
/// takes the library less than 5 ms.
const VALUES_MAX: usize = 2_000;
/// The text that replaces the arguments.
const EMPTY: &str = "{}";

/// A message, in two parts.
pub(super) struct Message {
    /// For the library: the message with `{}` for its arguments.
    pub(super) envelope: Bytes,
    /// For the tools: the arguments, if they are an object.
    pub(super) arguments: Option<Arc<str>>,
}

/// A fault of a body, and the id of the message that it may have been meant as.
#[derive(Debug, thiserror::Error)]
pub(super) enum MessageFault {
    #[error("the body is not JSON")]
    NotJson,
    #[error("the body must be one message, not a batch")]
    Batch,
    #[error("the message has more than {VALUES_MAX} values besides its arguments")]
    TooManyValues(Option<RequestId>),
    #[error("the body is not a message")]
    NoMessage(Option<RequestId>),
}

impl Message {
    /// Takes a body apart.
    ///
    /// # Errors
    /// [`MessageFault`] of a body that is not a JSON object, or has too many values.
    pub(super) fn read(body: &[u8]) -> Result<Self, MessageFault> {
        let text = std::str::from_utf8(body).map_err(|_| MessageFault::NotJson)?;
        let json = Json::parse(text).map_err(|_| MessageFault::NotJson)?;
        if json.as_str().starts_with('[') {
            return Err(MessageFault::Batch);
        }
        if !json.is_object() {
            return Err(MessageFault::NoMessage(None));
        }
        let (envelope, arguments) = without_arguments(json.as_str());
        if has_more_values(&envelope, VALUES_MAX) {
            return Err(MessageFault::TooManyValues(id(&envelope)));
        }
        Ok(Self {
            arguments: arguments.map(Arc::from),
            envelope: envelope.into(),
        })
    }
}

impl MessageFault {
    /// The fault of an envelope that the library does not accept as a message.
    pub(super) fn of(envelope: &[u8]) -> Self {
        Self::NoMessage(std::str::from_utf8(envelope).ok().and_then(id))
    }

    /// In the form of [JSON-RPC](https://www.jsonrpc.org/specification#error_object).
    pub(super) fn into_error(self) -> JsonRpcError {
        let text = self.to_string();
        let (id, code) = match self {
            Self::NotJson => (None, ErrorCode::PARSE_ERROR),
            Self::Batch => (None, ErrorCode::INVALID_REQUEST),
            Self::TooManyValues(id) | Self::NoMessage(id) => (id, ErrorCode::INVALID_REQUEST),
        };
        JsonRpcError::new(id, ErrorData::new(code, text, None))
    }
}

/// The id of a body that may have been meant as a message.
fn id(object: &str) -> Option<RequestId> {
    serde_json::from_str(member(object, "id")?).ok()
}

/// A message with `{}` for each `params.arguments` that is an object, and the last of these.
fn without_arguments(message: &str) -> (String, Option<&str>) {
    let mut arguments = None;
    let envelope = with_changed(message, "params", |params| {
        if !params.starts_with('{') {
            return params.into();
        }
        let params = with_changed(params, "arguments", |value| {
            if !value.starts_with('{') {
                return value.into();
            }
            arguments = Some(value);
            EMPTY.into()
        });
        params.into()
    });
    (envelope, arguments)
}

/// An object with other values for the members of one name.
fn with_changed<'a>(
    object: &'a str,
    name: &str,
    mut change: impl FnMut(&'a str) -> Cow<'a, str>,
) -> String {
    let mut changed = String::new();
    for (key, value) in members(object) {
        changed.push(if changed.is_empty() { '{' } else { ',' });
        changed.push_str(key);
        changed.push(':');
        if is_named(key, name) {
            changed.push_str(&change(value));
        } else {
            changed.push_str(value);
        }
    }
    if changed.is_empty() {
        return EMPTY.into();
    }
    changed.push('}');
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, Option<String>) {
        let message = Message::read(text.as_bytes()).ok().unwrap();
        let envelope = String::from_utf8(message.envelope.into()).unwrap();
        (envelope, message.arguments.map(|text| text.to_string()))
    }

    #[test]
    fn arguments_are_taken_out_as_text() {
        let arguments = r#"{"by":9007199254740993,"n":1e400,"":[{"arguments":{}}]}"#;
        let call = |name: &str, arguments: &str| {
            format!(r#"{{"id":7,"params":{{"name":"x","{name}":{arguments}}},"method":"m"}}"#)
        };

        for name in ["arguments", r"arg\u0075ments"] {
            let (envelope, taken) = read(&call(name, arguments));
            assert_eq!(envelope, call(name, "{}"));
            assert_eq!(taken.as_deref(), Some(arguments));
        }
    }

    #[test]
    fn all_else_stays() {
        for text in [
            "{}",
            r#"{"params":{}}"#,
            r#"{"params":[{"arguments":{"a":1}}]}"#,
            r#"{"params":{"arguments":"{}","x":{"arguments":{"a":1}}}}"#,
            r#"{"params":{"arguments":null}}"#,
            r#"{"arguments":{"a":1}}"#,
        ] {
            assert_eq!(read(text), (text.to_owned(), None), "{text}");
        }
    }

    #[test]
    fn values_are_counted_outside_the_arguments() {
        let values = |count: usize| vec!["0"; count].join(",");
        let many = values(VALUES_MAX + 1);

        let inside = format!(r#"{{"params":{{"arguments":{{"x":[{many}]}}}}}}"#);
        assert!(Message::read(inside.as_bytes()).is_ok());
        let outside = format!(r#"{{"id":7,"params":[{many}]}}"#);
        let fault = Message::read(outside.as_bytes()).err();
        let id = Some(RequestId::Number(7));
        assert!(matches!(fault, Some(MessageFault::TooManyValues(found)) if found == id));
    }
}
