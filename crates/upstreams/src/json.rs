//! Builds and reads JSON as text.

use std::borrow::Cow;

use threadkeep_domain::{Json, member, quoted, unescaped};

pub(super) struct Object(String);

impl Object {
    pub(super) fn new() -> Self {
        Self("{".into())
    }

    pub(super) fn of_type(kind: &str) -> Self {
        Self::new().escaped("type", kind)
    }

    pub(super) fn json(mut self, name: &'static str, value: &str) -> Self {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        for piece in ["\"", name, "\":", value] {
            self.0.push_str(piece);
        }
        self
    }

    /// Adds a JSON value, unless it is missing or `null`.
    pub(super) fn optional(self, name: &'static str, value: Option<&str>) -> Self {
        match value {
            Some(value) if value != "null" => self.json(name, value),
            _ => self,
        }
    }

    pub(super) fn text(self, name: &'static str, value: &str) -> Self {
        self.json(name, &quoted(value))
    }

    /// Adds a string that is already JSON-escaped, without quotes.
    pub(super) fn escaped(self, name: &'static str, value: &str) -> Self {
        self.json(name, &format!("\"{value}\""))
    }

    pub(super) fn given(self, name: &'static str, value: Option<&Json>) -> Self {
        self.optional(name, value.map(Json::as_str))
    }

    pub(super) fn number(self, name: &'static str, value: Option<u64>) -> Self {
        self.optional(name, value.map(|value| value.to_string()).as_deref())
    }

    pub(super) fn boolean(self, name: &'static str, value: Option<bool>) -> Self {
        self.optional(
            name,
            value.map(|value| if value { "true" } else { "false" }),
        )
    }

    pub(super) fn flag(self, name: &'static str, value: bool) -> Self {
        self.boolean(name, value.then_some(true))
    }

    pub(super) fn members_of(self, object: &str, names: &[&'static str]) -> Self {
        let names = names.iter();
        names.fold(self, |to, name| to.optional(name, member(object, name)))
    }

    pub(super) fn close(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

pub(super) fn array(values: &[String]) -> String {
    format!("[{}]", values.join(","))
}

/// Parses a body. Returns `None` if it is not JSON.
pub(super) fn parse(body: &[u8]) -> Option<Json> {
    Json::parse(std::str::from_utf8(body).ok()?).ok()
}

/// Decodes a JSON string. Returns `None` for other values. A lone surrogate becomes a replacement character.
pub(super) fn text(json: &str) -> Option<Cow<'_, str>> {
    escaped(json)?;
    Some(match unescaped(json) {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => String::from_utf8_lossy(&bytes).into_owned().into(),
    })
}

/// Returns a JSON string without its quotes, still escaped. Returns `None` for other values.
pub(super) fn escaped(json: &str) -> Option<&str> {
    json.strip_prefix('"')?.strip_suffix('"')
}

/// Returns a non-empty string member of a compact object without its quotes, still escaped.
pub(super) fn escaped_member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    escaped(member(object, name)?).filter(|text| !text.is_empty())
}

/// Returns a non-empty string member of a compact object, decoded.
pub(super) fn text_member<'a>(object: &'a str, name: &str) -> Option<Cow<'a, str>> {
    text(member(object, name)?).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_omits_missing_values() {
        let object = Object::new()
            .optional("a", None)
            .optional("b", Some("null"))
            .optional("c", Some("1"))
            .text("d", "\"\n")
            .close();

        assert_eq!(object, r#"{"c":1,"d":"\"\n"}"#);
        assert_eq!(Object::new().close(), "{}");
        assert_eq!(array(&["1".into(), "[]".into()]), "[1,[]]");
    }

    #[test]
    fn other_values_have_no_text() {
        for json in ["1", "null", "{}", "[]"] {
            assert_eq!(text(json), None);
        }
        assert_eq!(
            text(r#""a\u00e4\ud800""#).unwrap(),
            "aä\u{fffd}\u{fffd}\u{fffd}"
        );
    }
}
