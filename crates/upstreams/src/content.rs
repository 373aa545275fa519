//! Reads the content of the messages and tool results of a prompt. Each codec then writes the content in its own
//! format.

use std::borrow::Cow;

use super::json::{Object, escaped, escaped_member, text};
use threadkeep_domain::{Json, elements, member};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// JSON-escaped text without quotes, including refusals.
    Text(&'a str),
    /// An object with a non-empty `image_url`.
    Image(&'a str),
    /// An object with `file_id`, `file_data` or `file_url`.
    File(&'a str),
}

/// Reads the parts of `content`: an array of parts, or a string that counts as one text part. Skips unknown parts.
pub(super) fn parts(content: &str) -> impl Iterator<Item = Part<'_>> {
    let alone = escaped(content).map(Part::Text);
    alone.into_iter().chain(elements(content).filter_map(part))
}

pub(super) fn part(part: &str) -> Option<Part<'_>> {
    let string = |name| escaped(member(part, name)?);
    let kind = text(member(part, "type")?)?;
    match &*kind {
        "input_text" | "output_text" | "text" => string("text").map(Part::Text),
        "refusal" => string("refusal").map(Part::Text),
        "input_image" => escaped_member(part, "image_url").map(|_| Part::Image(part)),
        "input_file" => Some(Part::File(part)),
        _ => None,
    }
}

/// Concatenates the text parts of some content to one JSON string.
pub(super) fn plain_text(content: &str) -> String {
    let texts = parts(content).filter_map(|part| match part {
        Part::Text(text) => Some(text),
        _ => None,
    });
    format!("\"{}\"", texts.collect::<String>())
}

/// Converts arguments to a JSON object, for servers that parse arguments. Invalid arguments become the string member
/// `INVALID_JSON` of a new object, as Anthropic's documentation recommends.
pub(super) fn arguments_object(arguments: &str) -> Cow<'_, str> {
    if arguments.trim().is_empty() {
        "{}".into()
    } else if Json::parse_object(arguments, 1).is_ok() {
        arguments.into()
    } else {
        let object = Object::new().text("INVALID_JSON", arguments);
        object.close().into()
    }
}

/// Wraps the input of a custom tool in function arguments, for servers that do not support custom tools.
pub(super) fn input_object(input: &str) -> String {
    Object::new().text("input", input).close()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_an_object() {
        for (arguments, sent) in [
            ("", "{}"),
            (" \n", "{}"),
            (r#"{"a": 1.0}"#, r#"{"a": 1.0}"#),
            ("{\"k", r#"{"INVALID_JSON":"{\"k"}"#),
            ("[1]", r#"{"INVALID_JSON":"[1]"}"#),
        ] {
            assert_eq!(arguments_object(arguments), sent);
        }
    }

    #[test]
    fn parts_of_each_form_are_read() {
        let content = concat!(
            r#"[{"type":"input_text","text":"a\n"},{"type":"refusal","refusal":"no"},"#,
            r#"{"type":"input_image","image_url":"u"},{"type":"input_image","file_id":"f"},"#,
            r#"{"type":"input_file","file_id":"f"},{"type":"unknown"},7]"#,
        );

        let image = r#"{"type":"input_image","image_url":"u"}"#;
        let file = r#"{"type":"input_file","file_id":"f"}"#;
        assert_eq!(
            parts(content).collect::<Vec<_>>(),
            [
                Part::Text("a\\n"),
                Part::Text("no"),
                Part::Image(image),
                Part::File(file)
            ]
        );
        assert_eq!(plain_text(content), r#""a\nno""#);
        assert_eq!(plain_text("\"b\""), "\"b\"");
    }
}
