//! Query parameters of a stream of events. Unknown parameters are ignored.

use crate::openai::fault::Fault;
use threadkeep_http::{decode_parameter, parameters};

/// `?stream=&starting_after=`.
#[derive(Debug, PartialEq)]
pub(super) struct StreamQuery {
    pub(super) is_streamed: bool,
    /// Number of the last event that the caller has received.
    pub(super) after: Option<u64>,
}

impl StreamQuery {
    /// Parses the query. Browsers send the header value `last_event_id` when they reconnect. The query parameter
    /// `starting_after` takes precedence over that header.
    pub(super) fn read(query: &str, last_event_id: Option<&str>) -> Result<Self, Fault> {
        let (mut is_streamed, mut after) = (false, None);
        for (name, value) in parameters(query) {
            let value = decode_parameter(value);
            let value = value.as_deref();
            match &*decode_parameter(name).unwrap_or_default() {
                "stream" => is_streamed = flag(value)?,
                "starting_after" => after = Some(number(value, "starting_after")?),
                _ => {}
            }
        }
        if is_streamed && after.is_none() {
            let header = last_event_id.filter(|id| !id.is_empty());
            after = header
                .map(|id| number(Some(id), "Last-Event-ID"))
                .transpose()?;
        }
        Ok(Self { is_streamed, after })
    }
}

fn flag(value: Option<&str>) -> Result<bool, Fault> {
    match value {
        Some("true" | "True") => Ok(true),
        Some("false" | "False") => Ok(false),
        _ => Err(Fault::wrong_type("stream", "a boolean")),
    }
}

fn number(value: Option<&str>, name: &str) -> Result<u64, Fault> {
    let is_number = |value: &&str| value.bytes().all(|byte| byte.is_ascii_digit());
    let number = value.filter(is_number).and_then(|value| value.parse().ok());
    number.ok_or_else(|| Fault::wrong_type(name, "the number of an event"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_begins_after_the_parameter_or_the_header() {
        for (query, header, is_streamed, after) in [
            ("", None, false, None),
            ("", Some("x"), false, None),
            ("stream=true", None, true, None),
            ("stream=true", Some("7"), true, Some(7)),
            ("stream=true&starting_after=3", Some("7"), true, Some(3)),
            ("include[]=a&stream=false", Some("7"), false, None),
        ] {
            let read = StreamQuery::read(query, header).unwrap();
            assert_eq!(read, StreamQuery { is_streamed, after }, "{query}");
        }
    }

    #[test]
    fn wrong_values_are_faults() {
        for (query, header) in [
            ("stream=yes", None),
            ("stream=%FF", None),
            ("stream=true&starting_after=", None),
            ("stream=true&starting_after=-1", None),
            ("stream=true&starting_after=99999999999999999999", None),
            ("stream=true", Some("a")),
        ] {
            assert!(StreamQuery::read(query, header).is_err(), "{query}");
        }
    }
}
