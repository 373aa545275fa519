//! Splits messages before the MCP library reads them.
//!
//! To read a message, the library tries all types that it supports, and buffers the values. Buffering costs hundreds of
//! bytes and a few microseconds per value. The arguments of a call therefore bypass the library and reach the tools as
//! text, which also keeps numbers exact. The number of values in the rest of a message is limited.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::RequestId;

use super::fault::{MessageFault, VALUES_MAX};
use threadkeep_domain::{has_more_values, is_named, member, member_text, members};

const EMPTY: &str = "{}";

pub(super) struct Message {
    /// The message for the library, with `{}` as its arguments.
    pub(super) envelope: String,
    /// The arguments for the tools, if they are an object.
    pub(super) arguments: Option<Arc<str>>,
}

impl Message {
    /// Splits a message. `json` is compact.
    pub(super) fn read(json: &str) -> Result<Self, MessageFault> {
        if !json.starts_with('{') {
            return Err(MessageFault::NoMessage(None));
        }
        let (envelope, arguments) = without_arguments(json);
        if has_more_values(&envelope, VALUES_MAX) {
            return Err(MessageFault::TooManyValues(id(&envelope)));
        }
        Ok(Self {
            arguments: arguments.map(Arc::from),
            envelope,
        })
    }

    /// Returns the id, or `None` for notifications.
    pub(super) fn id(&self) -> Option<RequestId> {
        id(&self.envelope)
    }

    pub(super) fn method(&self) -> Option<Cow<'_, str>> {
        member_text(&self.envelope, "method")
    }
}

/// Returns the id in a body, even if the body is not a message.
fn id(object: &str) -> Option<RequestId> {
    serde_json::from_str(member(object, "id")?).ok()
}

/// Replaces `params.arguments` with `{}` if it is an object, and returns that object. If the member is repeated,
/// replaces every such object and returns the last object.
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

/// Replaces the values of all members named `name`.
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
        let message = Message::read(text).ok().unwrap();
        let arguments = message.arguments.map(|text| text.to_string());
        (message.envelope, arguments)
    }

    #[test]
    fn arguments_are_extracted_as_text() {
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
    fn everything_else_is_preserved() {
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
        assert!(Message::read(&inside).is_ok());
        let outside = format!(r#"{{"id":7,"params":[{many}]}}"#);
        let fault = Message::read(&outside).err();
        let id = Some(RequestId::Number(7));
        assert!(matches!(fault, Some(MessageFault::TooManyValues(found)) if found == id));
    }
}
