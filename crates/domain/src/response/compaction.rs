use std::borrow::Cow;

use serde_json::{Value, json};

use super::carried::{carried, carry};
use super::item::ItemKind;
use crate::Json;

const KIND: &str = ItemKind::Compaction.as_str();
const PREFACE: &str = "Summary of the earlier part of this conversation:\n\n";

/// Returns a compaction item with a summary.
#[must_use]
pub fn compaction_item(id: &str, summary: &str) -> Json {
    let content = carry(KIND, summary);
    let item = json!({"type": KIND, "id": id, "encrypted_content": content});
    Json::from_compact(item.to_string())
}

/// Returns whether an item is a compaction that this server did not create and cannot read.
#[must_use]
pub fn is_foreign_compaction(item: &str) -> bool {
    is_compaction(item) && carried(KIND, item).is_none()
}

/// Converts an item to a form that models can read. A summary becomes a user message, so that it does not have more
/// authority than the conversation that it replaces.
#[must_use]
pub fn readable_item(item: &str) -> Cow<'_, str> {
    let summary = Some(item).filter(|item| is_compaction(item));
    let Some(summary) = summary.and_then(|item| carried(KIND, item)) else {
        return Cow::Borrowed(item);
    };
    let text = Value::from(format!("{PREFACE}{summary}"));
    Cow::Owned(format!(
        r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":{text}}}]}}"#
    ))
}

/// Returns whether an item is a compaction.
#[must_use]
pub fn is_compaction(item: &str) -> bool {
    ItemKind::of(item) == Some(ItemKind::Compaction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_becomes_a_user_message() {
        let item = compaction_item("cmp_1", "Ada said \"é\".\n");

        assert!(!is_foreign_compaction(item.as_str()));
        assert_eq!(
            readable_item(item.as_str()),
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"Summary of the earlier part of this conversation:\n\nAda said \"é\".\n"}]}"#
        );
    }

    #[test]
    fn foreign_compactions_and_other_items_are_unchanged() {
        let mut corrupted = compaction_item("cmp_1", "a").as_str().to_owned();
        corrupted.insert(corrupted.len() - 2, '!');
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
            (&*corrupted, true),
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
