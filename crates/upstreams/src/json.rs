//! JSON text in pieces.

use std::borrow::Cow;

use threadkeep_domain::{member, quoted, unescaped};

/// An object in the making.
pub(super) struct Object(String);

impl Object {
    pub(super) fn new() -> Self {
        Self("{".into())
    }

    /// Adds a member whose value is JSON.
    pub(super) fn json(mut self, name: &'static str, value: &str) -> Self {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        for piece in ["\"", name, "\":", value] {
            self.0.push_str(piece);
        }
        self
    }

    /// Adds a member whose value is JSON, unless it is missing or `null`.
    pub(super) fn optional(self, name: &'static str, value: Option<&str>) -> Self {
        match value {
            Some(value) if value != "null" => self.json(name, value),
            _ => self,
        }
    }

    /// Adds a member whose value is that text.
    pub(super) fn text(self, name: &'static str, value: &str) -> Self {
        self.json(name, &quoted(value))
    }

    pub(super) fn close(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// An array of JSON values.
pub(super) fn array(values: &[String]) -> String {
    format!("[{}]", values.join(","))
}

/// The text of a JSON string; a lone surrogate in it becomes a replacement character. None for other values.
pub(super) fn text(json: &str) -> Option<Cow<'_, str>> {
    inside(json)?;
    Some(match unescaped(json) {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => String::from_utf8_lossy(&bytes).into_owned().into(),
    })
}

/// A JSON string without its quotes, escaped as it is. None for other values.
pub(super) fn inside(json: &str) -> Option<&str> {
    json.strip_prefix('"')?.strip_suffix('"')
}

/// A member of a compact value that is a string which is not empty, without its quotes.
pub(super) fn inside_member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    inside(member(object, name)?).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_leaves_out_what_is_missing() {
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
