//! Searches the input of a response for images and files that the upstream does not support.

use crate::values::model::{MediaCarrier, Model};
use crate::values::request::InputItem;
use threadkeep_domain::{ItemKind, member_elements, member_text};

/// Position of an image or a file in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaAt {
    pub item: usize,
    /// Member of the item: `content` or `output`.
    pub member: &'static str,
    /// Index of the part in the member.
    pub part: usize,
}

/// Returns the position of the first image or file that `upstream` does not support.
pub(crate) fn refused(upstream: &dyn Model, input: &[InputItem]) -> Option<MediaAt> {
    input.iter().enumerate().find_map(|(item, input)| {
        let (carrier, name) = carrier_of(input.value.as_str())?;
        let mut parts = member_elements(input.value.as_str(), name);
        let part = parts.position(|part| is_media(part) && !upstream.takes(carrier, part))?;
        Some(MediaAt {
            item,
            member: name,
            part,
        })
    })
}

/// Returns the kind of an item that can contain images or files, and the name of the member that lists its parts.
fn carrier_of(item: &str) -> Option<(MediaCarrier, &'static str)> {
    match ItemKind::of(item)? {
        ItemKind::Message => {
            let carrier = match &*member_text(item, "role")? {
                "user" => MediaCarrier::User,
                "assistant" => MediaCarrier::Assistant,
                _ => MediaCarrier::System,
            };
            Some((carrier, "content"))
        }
        kind if kind.is_output() => Some((MediaCarrier::Result, "output")),
        _ => None,
    }
}

fn is_media(part: &str) -> bool {
    matches!(
        member_text(part, "type").as_deref(),
        Some("input_image" | "input_file")
    )
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use tokio::sync::mpsc::Sender;

    use super::*;
    use crate::{ModelAnswer, Piece, Question, UpstreamError};
    use threadkeep_domain::Json;

    #[derive(Debug)]
    struct ImagesOfUsers;

    #[async_trait]
    impl Model for ImagesOfUsers {
        async fn answer(
            &self,
            _: &Question<'_>,
            _: Option<&Sender<Piece>>,
        ) -> Result<ModelAnswer, UpstreamError> {
            Err(UpstreamError::Failed)
        }

        fn takes(&self, carrier: MediaCarrier, part: &str) -> bool {
            carrier == MediaCarrier::User && part.contains("input_image")
        }
    }

    #[test]
    fn media_is_found_only_in_messages_and_results() {
        let image = r#"{"type":"input_image","image_url":"u"}"#;
        let file = r#"{"type":"input_file","file_id":"f"}"#;
        for (item, expected) in [
            (
                format!(r#"{{"type":"message","role":"user","content":[{image}]}}"#),
                None,
            ),
            (
                format!(r#"{{"type":"message","role":"user","content":[{image},{file}]}}"#),
                Some(("content", 1)),
            ),
            (
                format!(r#"{{"type":"message","role":"system","content":[{image}]}}"#),
                Some(("content", 0)),
            ),
            (
                format!(r#"{{"type":"function_call_output","output":[{image}]}}"#),
                Some(("output", 0)),
            ),
            (
                r#"{"type":"function_call_output","output":"text"}"#.into(),
                None,
            ),
            (
                r#"{"type":"reasoning","content":[7,null,"a",[1],true]}"#.into(),
                None,
            ),
            (
                r#"{"type":"message","role":"user","content":[7,null,"a",[1],true]}"#.into(),
                None,
            ),
            (r#"{"type":"message","content":[1]}"#.into(), None),
            (format!(r#"{{"type":"mcp_call","output":[{image}]}}"#), None),
        ] {
            let value = Json::parse(&item).unwrap();
            let input = InputItem {
                id: "a".into(),
                counted_bytes: 0,
                value,
            };
            let found = refused(&ImagesOfUsers, &[input]);
            let expected = expected.map(|(member, part)| MediaAt {
                item: 0,
                member,
                part,
            });
            assert_eq!(found, expected, "{item}");
        }
    }
}
