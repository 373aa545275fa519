use crate::json::{Object, text, text_member};
use threadkeep_domain::member;

/// Image types that the API accepts as data.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
const PDF: &str = "application/pdf";

/// Converts an `input_image` part to a block. Returns `None` if the API would reject the image type.
pub(super) fn image(part: &str) -> Option<String> {
    let url = text(member(part, "image_url")?)?;
    block("image", &source(&url, &IMAGES)?)
}

/// Converts an `input_file` part to a block. The API accepts PDF documents, either as data or by URL.
pub(super) fn document(part: &str) -> Option<String> {
    let url = text_member(part, "file_data").or_else(|| text_member(part, "file_url"))?;
    block("document", &source(&url, &[PDF])?)
}

fn block(kind: &str, source: &str) -> Option<String> {
    Some(Object::of_type(kind).json("source", source).close())
}

fn source(url: &str, types: &[&str]) -> Option<String> {
    let Some(data) = url.strip_prefix("data:") else {
        return Some(Object::of_type("url").text("url", url).close());
    };
    let (kind, data) = data.split_once(";base64,")?;
    // ignores parameters of the media type
    let kind = kind.split(';').next().unwrap_or_default();
    types.contains(&kind).then(|| {
        let source = Object::of_type("base64").text("media_type", kind);
        source.text("data", data).close()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_is_sent_by_url_or_as_data() {
        for (url, source) in [
            (
                r"https:\/\/a\/b.png",
                r#"{"type":"url","url":"https://a/b.png"}"#,
            ),
            (
                "data:image/png;base64,AA+/",
                r#"{"type":"base64","media_type":"image/png","data":"AA+/"}"#,
            ),
            (
                "data:image/webp;q=1;base64,",
                r#"{"type":"base64","media_type":"image/webp","data":""}"#,
            ),
        ] {
            let part = format!(r#"{{"type":"input_image","image_url":"{url}"}}"#);
            let block = format!(r#"{{"type":"image","source":{source}}}"#);
            assert_eq!(image(&part), Some(block));
        }
        let pdf = r#"{"type":"input_file","file_data":"data:application/pdf;base64,AA"}"#;
        assert_eq!(
            document(pdf).unwrap(),
            r#"{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AA"}}"#
        );
        let by_url = r#"{"type":"input_file","file_url":"https://a/b.pdf"}"#;
        assert_eq!(
            document(by_url).unwrap(),
            r#"{"type":"document","source":{"type":"url","url":"https://a/b.pdf"}}"#
        );
    }

    #[test]
    fn unsupported_media_becomes_none() {
        for url in ["data:image/bmp;base64,AA", "data:,a", "data:image/png,a"] {
            let part = format!(r#"{{"type":"input_image","image_url":"{url}"}}"#);
            assert_eq!(image(&part), None);
        }
        for part in [
            r#"{"type":"input_file","file_id":"f"}"#,
            r#"{"type":"input_file","file_data":"data:text/csv;base64,AA"}"#,
        ] {
            assert_eq!(document(part), None);
        }
    }
}
