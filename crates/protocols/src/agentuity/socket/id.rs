use std::borrow::Cow;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::limits::ID_MAX_BYTES;

/// A JSON string of up to 256 bytes, including its quotes. Answers repeat the id unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestId(Box<str>);

impl RequestId {
    pub(super) fn of(json: &RawValue) -> Option<Self> {
        let text = json.get();
        let is_id = text.starts_with('"') && text.len() <= ID_MAX_BYTES;
        is_id.then(|| Self(text.into()))
    }

    /// Finds the id at the beginning of a message, even if the rest of the message is invalid.
    pub(super) fn find_in(start: &[u8]) -> Option<Self> {
        let mut found = None;
        let mut deserializer = serde_json::Deserializer::from_slice(start);
        // parsing fails at the end of `start`, if not earlier
        deserializer.deserialize_map(Search(&mut found)).ok();
        found
    }

    pub(super) fn as_json(&self) -> &str {
        &self.0
    }
}

struct Search<'a>(&'a mut Option<RequestId>);

impl<'de> Visitor<'de> for Search<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while self.0.is_none()
            && let Some(name) = members.next_key::<Cow<'de, str>>()?
        {
            if name == "id" {
                *self.0 = RequestId::of(members.next_value()?);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(start: &str) -> Option<String> {
        RequestId::find_in(start.as_bytes()).map(|id| id.as_json().to_owned())
    }

    #[test]
    fn an_id_is_found_even_if_the_rest_is_truncated_or_invalid() {
        let id = Some("\"a-1\"".to_owned());

        assert_eq!(found(r#"{"id":"a-1","action":"save","data":{"user_da"#), id);
        assert_eq!(found(r#" { "id" : "a-1" , nonsense"#), id);
        assert_eq!(
            found(r#"{"action":"save","data":{"x":[1]},"id":"a-1"}"#),
            id
        );
        assert_eq!(found(r#"{"id":"\ud83d"}"#), Some(r#""\ud83d""#.into()));
    }

    #[test]
    fn no_id_is_found_if_it_is_missing_or_invalid() {
        let long = format!(r#"{{"id":"{}"}}"#, "a".repeat(ID_MAX_BYTES - 1));

        for start in [
            "",
            "{",
            "[1]",
            "nonsense",
            r#"{"id":7}"#,
            r#"{"id":"cut"#,
            &long,
        ] {
            assert_eq!(found(start), None, "{start}");
        }
        assert_eq!(RequestId::find_in(b"{\"id\":\"\xff\"}"), None);
    }
}
