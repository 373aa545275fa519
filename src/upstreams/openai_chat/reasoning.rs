//! Reasoning as an item, and as a field of a message.

use crate::domain::Json;
use crate::upstreams::json::{Object, array, elements, find, inside_member};

/// The fields that compatible servers have for reasoning. `DeepSeek` and llama.cpp have the first one, `OpenRouter`,
/// Groq and newer versions of vLLM the second one. Groq answers 400 to a message with the first one, so reasoning goes back
/// in the field that it came in.
const FIELDS: [&str; 2] = ["reasoning_content", "reasoning"];
/// The member of an item that names its field, unless that is the first one.
const FIELD: &str = "upstream_field";

/// Reasoning: its field, and its text as the inside of a JSON string.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reasoning {
    field: usize,
    text: String,
}

impl Reasoning {
    /// The reasoning in a message of an answer.
    pub(super) fn of_message(message: &str) -> Option<Self> {
        let fields = FIELDS.into_iter().enumerate();
        let mut found = fields.filter_map(|(field, name)| {
            let text = inside_member(message, name)?.to_owned();
            Some(Self { field, text })
        });
        found.next()
    }

    /// Adds the reasoning in a delta, and returns its bytes. The first field that has some is the field of all: servers that
    /// fill several repeat the text there.
    pub(super) fn add_delta(&mut self, delta: &str) -> usize {
        let text = match self.text.is_empty() {
            true => Self::of_message(delta).map(|begin| {
                self.field = begin.field;
                begin.text
            }),
            false => inside_member(delta, FIELDS[self.field]).map(str::to_owned),
        };
        let text = text.unwrap_or_default();
        self.text.push_str(&text);
        text.len()
    }

    /// The item of this reasoning.
    pub(super) fn item(&self) -> Json {
        let part = Object::new()
            .json("type", "\"reasoning_text\"")
            .json("text", &format!("\"{}\"", self.text));
        let item = Object::new()
            .json("type", "\"reasoning\"")
            .json("summary", "[]")
            .json("content", &array(&[part.close()]));
        let item = match self.field {
            0 => item,
            field => item.text(FIELD, FIELDS[field]),
        };
        Json::from_compact(item.close())
    }

    /// Adds the text of an item. Reasoning that only another kind of upstream can read has none.
    pub(super) fn add(&mut self, item: &str) {
        let parts = elements(find(item, "content").unwrap_or_default());
        let texts = parts.filter_map(|part| inside_member(part, "text"));
        self.text.extend(texts);
        let field = inside_member(item, FIELD).unwrap_or(FIELDS[0]);
        self.field = usize::from(field == FIELDS[1]);
    }

    /// Adds the field of this reasoning to a message, if it has text.
    pub(super) fn write(&self, message: Object) -> Object {
        if self.text.is_empty() {
            return message;
        }
        message.json(FIELDS[self.field], &format!("\"{}\"", self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_goes_back_in_the_field_that_it_came_in() {
        for message in [
            r#"{"reasoning_content":"a\u0062"}"#,
            r#"{"reasoning":"a\u0062"}"#,
        ] {
            let item = Reasoning::of_message(message).unwrap().item();

            let mut reasoning = Reasoning::default();
            reasoning.add(item.as_str());
            assert_eq!(reasoning.write(Object::new()).close(), message);
        }
    }

    #[test]
    fn deltas_make_the_reasoning_of_one_field() {
        let mut reasoning = Reasoning::default();
        let deltas = [
            "{}",
            r#"{"reasoning":"a","reasoning_content":""}"#,
            r#"{"reasoning_content":"x"}"#,
            r#"{"reasoning":"\u0062"}"#,
        ];

        let bytes = deltas.map(|delta| reasoning.add_delta(delta));

        assert_eq!(bytes, [0, 1, 0, 6]);
        let message = reasoning.write(Object::new()).close();
        assert_eq!(message, r#"{"reasoning":"a\u0062"}"#);
    }

    #[test]
    fn a_message_without_text_has_no_reasoning() {
        for message in ["{}", r#"{"reasoning":null}"#, r#"{"reasoning":""}"#, "5"] {
            assert_eq!(Reasoning::of_message(message), None);
        }
        assert_eq!(Reasoning::default().write(Object::new()).close(), "{}");
    }
}
