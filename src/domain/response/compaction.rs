//! Compaction items: summaries that stand for the earlier part of a conversation.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::domain::{Json, member, member_text};

/// The beginning of each summary that this service made, which tells its items from those of other servers. Its length is a
/// multiple of three, so its base64 begins that of the whole text.
const MARK: &str = "threadkeep:compaction:1\n";
/// How a summary is shown to a model.
const PREFACE: &str = "Summary of the earlier part of this conversation:\n\n";

/// The item with that id that holds a summary. Its `encrypted_content` is base64 without encryption, so that any replica can
/// read it: a client that has the item has the conversation too.
#[must_use]
pub fn compaction_item(id: &str, summary: &str) -> Json {
    let content = STANDARD.encode(format!("{MARK}{summary}"));
    let item = json!({"type": "compaction", "id": id, "encrypted_content": content});
    Json::from_compact(item.to_string())
}

/// Whether an item is a compaction that only the server that made it can read.
#[must_use]
pub fn is_foreign_compaction(item: &str) -> bool {
    is_compaction(item) && summary_of(item).is_none()
}

/// An item as a model reads it: a summary of this service becomes a message of the user, because it must not have more
/// authority than the conversation had. All other items stay as they are.
#[must_use]
pub fn readable_item(item: &str) -> Cow<'_, str> {
    let summary = Some(item).filter(|item| is_compaction(item));
    let Some(summary) = summary.and_then(summary_of) else {
        return Cow::Borrowed(item);
    };
    let text = Value::from(format!("{PREFACE}{summary}"));
    Cow::Owned(format!(
        r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":{text}}}]}}"#
    ))
}

/// Whether an item is a compaction.
#[must_use]
pub fn is_compaction(item: &str) -> bool {
    item.starts_with('{') && member(item, "type") == Some(r#""compaction""#)
}

fn summary_of(item: &str) -> Option<String> {
    let content = member_text(item, "encrypted_content")?;
    let text = String::from_utf8(STANDARD.decode(content.as_bytes()).ok()?).ok()?;
    text.strip_prefix(MARK).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_read_back_as_a_message_of_the_user() {
        let item = compaction_item("cmp_1", "Ada said \"é\".\n");

        assert!(!is_foreign_compaction(item.as_str()));
        assert_eq!(
            readable_item(item.as_str()),
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"Summary of the earlier part of this conversation:\n\nAda said \"é\".\n"}]}"#
        );
    }

    #[test]
    fn other_compactions_and_items_stay_as_they_are() {
        let mut marked = compaction_item("cmp_1", "a").as_str().to_owned();
        marked.insert(marked.len() - 2, '!');
        for (item, is_foreign) in [
            (
                r#"{"type":"compaction","id":"cmp_1","encrypted_content":"gAAAA"}"#,
                true,
            ),
            (
                r#"{"type":"compaction","id":"cmp_1","encrypted_content":""}"#,
                true,
            ),
            (r#"{"type":"compaction","encrypted_content":7}"#, true),
            (r#"{"type":"compaction"}"#, true),
            (&*marked, true),
            (r#"{"type":"message","role":"user","content":[]}"#, false),
            (r#"{"type":"reasoning","encrypted_content":"x"}"#, false),
            ("{}", false),
            ("7", false),
        ] {
            assert_eq!(is_foreign_compaction(item), is_foreign, "{item}");
            assert_eq!(readable_item(item), item);
        }
    }
}
