use crate::content::{Part, part, parts, plain_text};
use crate::json::{Object, array, escaped_member};
use threadkeep_domain::member;

/// Converts content to an array if it contains media that this API accepts, and otherwise to a string.
///
/// A string is preferred, because all compatible servers accept it. Refusals therefore become text. Returns `None` if
/// nothing in the content can be expressed in this API.
pub(super) fn content(content: &str, takes_media: bool) -> Option<String> {
    let is_text = |part: &Part<'_>| matches!(part, Part::Text(_));
    let has_media =
        takes_media && parts(content).any(|part| !is_text(&part) && write(part).is_some());
    if has_media {
        let written: Vec<_> = parts(content).filter_map(write).collect();
        Some(array(&written))
    } else {
        parts(content)
            .any(|part| is_text(&part))
            .then(|| plain_text(content))
    }
}

pub(in crate::openai_chat) fn accepts(content_part: &str) -> bool {
    part(content_part).and_then(write).is_some()
}

fn write(part: Part<'_>) -> Option<String> {
    match part {
        Part::Text(text) => Some(Object::of_type("text").escaped("text", text).close()),
        Part::Image(part) => Some(image(part)),
        Part::File(part) => file(part),
    }
}

/// Converts an image with a URL. This API does not accept image ids.
fn image(part: &str) -> String {
    let url = Object::new()
        .optional("url", member(part, "image_url"))
        .optional("detail", member(part, "detail"));
    let image = Object::of_type("image_url");
    image.json("image_url", &url.close()).close()
}

/// Converts a file with an id or data. This API does not accept file URLs.
fn file(part: &str) -> Option<String> {
    escaped_member(part, "file_id").or_else(|| escaped_member(part, "file_data"))?;
    let file = Object::new().members_of(part, &["file_id", "filename", "file_data"]);
    Some(Object::of_type("file").json("file", &file.close()).close())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_one_string_with_their_escapes() {
        let parts = concat!(
            r#"[{"type":"input_text","text":"a\u00e4\n"},{"type":"output_text","text":"","annotations":[]},"#,
            r#"{"type":"refusal","refusal":"\"no\""},{"type":"unknown","text":"x"},{"text":"y"},7]"#,
        );

        assert_eq!(content(parts, true).unwrap(), r#""a\u00e4\n\"no\"""#);
        assert_eq!(plain_text(parts), r#""a\u00e4\n\"no\"""#);
        assert_eq!(content("\"alone\"", false).unwrap(), "\"alone\"");
        assert_eq!(
            content(r#"[{"type":"input_text","text":""}]"#, true).unwrap(),
            "\"\""
        );
    }

    #[test]
    fn media_and_texts_keep_their_order() {
        let parts = concat!(
            r#"[{"type":"input_image","image_url":"https:\/\/a","detail":"low"},"#,
            r#"{"type":"input_text","text":"a"},"#,
            r#"{"type":"input_image","image_url":"data:,","detail":null},"#,
            r#"{"type":"input_file","filename":"a.pdf","file_data":"data:x"},"#,
            r#"{"type":"input_file","file_id":"f"}]"#,
        );

        assert_eq!(
            content(parts, true).unwrap(),
            concat!(
                r#"[{"type":"image_url","image_url":{"url":"https:\/\/a","detail":"low"}},"#,
                r#"{"type":"text","text":"a"},"#,
                r#"{"type":"image_url","image_url":{"url":"data:,"}},"#,
                r#"{"type":"file","file":{"filename":"a.pdf","file_data":"data:x"}},"#,
                r#"{"type":"file","file":{"file_id":"f"}}]"#,
            )
        );
        assert_eq!(content(parts, false).unwrap(), "\"a\"");
    }

    #[test]
    fn unsupported_content_becomes_none() {
        for parts in [
            "[]",
            "null",
            r#"[{"type":"input_image","file_id":"f"}]"#,
            r#"[{"type":"input_file","file_url":"https://a"}]"#,
            r#"[{"type":"input_text","text":5}]"#,
            r#"[{"type":"input_audio"}]"#,
        ] {
            assert_eq!(content(parts, true), None, "{parts}");
        }
    }
}
