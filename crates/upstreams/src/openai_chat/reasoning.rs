use crate::json::{Object, array, escaped_member};
use threadkeep_domain::{Json, member_elements};

/// Names that compatible servers use for the reasoning field. `DeepSeek` and llama.cpp use the first name.
/// `OpenRouter`, Groq and newer versions of vLLM use the second.
///
/// Groq rejects the first name with 400, so reasoning is sent back in the same field in which it arrived.
const FIELDS: [&str; 2] = ["reasoning_content", "reasoning"];
/// The item member that stores the name of the reasoning field. Omitted if that name is the first one in `FIELDS`.
const FIELD: &str = "upstream_field";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Field(usize);

impl Field {
    /// Returns the first field that contains text, and its text, JSON-escaped.
    pub(super) fn find(message: &str) -> Option<(Self, &str)> {
        let mut fields = (0..FIELDS.len()).map(Self);
        fields.find_map(|field| Some((field, field.read(message)?)))
    }

    pub(super) fn read(self, message: &str) -> Option<&str> {
        escaped_member(message, FIELDS[self.0])
    }
}

pub(super) fn item(field: Field, text: &str) -> Json {
    let part = Object::of_type("reasoning_text").escaped("text", text);
    let item = Object::of_type("reasoning")
        .json("summary", "[]")
        .json("content", &array(&[part.close()]));
    let item = match field {
        Field(0) => item,
        Field(number) => item.text(FIELD, FIELDS[number]),
    };
    Json::from_compact(item.close())
}

/// Reasoning text to send back, still JSON-escaped, and the name of the field to send it in.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reasoning {
    field: Field,
    text: String,
}

impl Reasoning {
    /// Adds the text of a reasoning item, if any. Encrypted items from other kinds of upstreams do not contain text.
    pub(super) fn add(&mut self, item: &str) {
        let parts = member_elements(item, "content");
        let texts = parts.filter_map(|part| escaped_member(part, "text"));
        self.text.extend(texts);
        let field = escaped_member(item, FIELD).unwrap_or(FIELDS[0]);
        self.field = Field(usize::from(field == FIELDS[1]));
    }

    pub(super) fn write(&self, message: Object) -> Object {
        if self.text.is_empty() {
            return message;
        }
        message.escaped(FIELDS[self.field.0], &self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_is_sent_back_in_its_original_field() {
        for message in [
            r#"{"reasoning_content":"a\u0062"}"#,
            r#"{"reasoning":"a\u0062"}"#,
        ] {
            let (field, text) = Field::find(message).unwrap();

            let mut reasoning = Reasoning::default();
            reasoning.add(item(field, text).as_str());
            assert_eq!(reasoning.write(Object::new()).close(), message);
        }
    }

    #[test]
    fn the_first_field_that_has_text_is_found() {
        for (message, found) in [
            (
                r#"{"reasoning":"a","reasoning_content":""}"#,
                Some((Field(1), "a")),
            ),
            (
                r#"{"reasoning":"a","reasoning_content":"b"}"#,
                Some((Field(0), "b")),
            ),
            ("{}", None),
            (r#"{"reasoning":null}"#, None),
            (r#"{"reasoning":""}"#, None),
            ("5", None),
        ] {
            assert_eq!(Field::find(message), found);
        }
        assert_eq!(Reasoning::default().write(Object::new()).close(), "{}");
    }
}
