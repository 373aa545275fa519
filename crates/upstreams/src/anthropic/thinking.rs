//! Stores content blocks in items, so that later requests can return the blocks to the API unchanged.

use std::borrow::Cow;

use crate::json::{Object, array, escaped, escaped_member};
use threadkeep_domain::{Json, carried, carry, member, members, object_of};

/// Name of the item member that holds the original block. Upstreams of other kinds ignore this member.
const BLOCK: &str = "anthropic_block";
/// Label of a thinking block in an item's `encrypted_content`. The block is stored there because many clients send back
/// no other member.
const CARRIED: &str = "thinking";
/// Type of an item for a block that has no matching item type.
const OTHER: &str = "\"anthropic_block\"";

pub(super) fn is_thinking(block: &str) -> bool {
    matches!(
        escaped_member(block, "type"),
        Some("thinking" | "redacted_thinking")
    )
}

pub(super) fn begun() -> Json {
    Json::from_compact(r#"{"type":"reasoning","summary":[]}"#)
}

/// Converts a content block to an item. Thinking becomes the summary of a `reasoning` item, because Anthropic's API
/// returns only summarized thinking.
pub(super) fn item(block: &str) -> Json {
    let item = if is_thinking(block) {
        let summary = escaped_member(block, "thinking").map(|text| {
            Object::of_type("summary_text")
                .escaped("text", text)
                .close()
        });
        let summary: Vec<_> = summary.into_iter().collect();
        Object::of_type("reasoning")
            .json("summary", &array(&summary))
            .text("encrypted_content", &carry(CARRIED, block))
    } else {
        Object::new().json("type", OTHER).json(BLOCK, block)
    };
    Json::from_compact(item.close())
}

/// Returns the block in an item, or `None` if the item comes from an upstream of another kind.
pub(super) fn block(item: &str) -> Option<Cow<'_, str>> {
    let stored = member(item, BLOCK).map(Cow::Borrowed);
    match member(item, "type")? {
        "\"reasoning\"" => {
            // earlier versions of threadkeep also stored thinking in this member
            let block = stored.or_else(|| Some(parsed(&carried(CARRIED, item)?)?.into()));
            block.filter(|block| is_thinking(block))
        }
        OTHER => stored.filter(|block| escaped_member(block, "type").is_some()),
        _ => None,
    }
}

fn parsed(block: &str) -> Option<String> {
    Some(Json::parse(block).ok()?.as_str().to_owned())
}

#[derive(Debug)]
pub(super) struct Thinking {
    begin: String,
    /// JSON-escaped, without quotes.
    text: String,
    /// A JSON string, with quotes.
    signature: Option<String>,
}

impl Thinking {
    pub(super) fn begin(block: &str) -> Self {
        let text = escaped_member(block, "thinking").unwrap_or_default();
        Self {
            begin: block.into(),
            text: text.into(),
            signature: None,
        }
    }

    /// Adds a delta, and returns its size in bytes. A new signature replaces the previous one.
    pub(super) fn add(&mut self, delta: &str) -> usize {
        if let Some(text) = escaped_member(delta, "thinking") {
            self.text.push_str(text);
            return text.len();
        }
        let signature = member(delta, "signature").filter(|json| escaped(json).is_some());
        self.signature = signature.map(str::to_owned).or(self.signature.take());
        signature.map_or(0, str::len)
    }

    pub(super) fn end(&self) -> String {
        let text = format!("\"{}\"", self.text);
        let mut values: Vec<_> = members(&self.begin)
            .map(|(key, value)| match key {
                "\"thinking\"" => (key, text.as_str()),
                "\"signature\"" => (key, self.signature.as_deref().unwrap_or(value)),
                _ => (key, value),
            })
            .collect();
        let new_signature = self
            .signature
            .as_deref()
            .map(|json| ("\"signature\"", json));
        for (key, value) in [Some(("\"thinking\"", text.as_str())), new_signature]
            .into_iter()
            .flatten()
        {
            let is_known = values.iter().any(|(known, _)| *known == key);
            if !is_known && value != "\"\"" {
                values.push((key, value));
            }
        }
        object_of(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_sent_back_unchanged() {
        for (block_json, kind) in [
            (
                r#"{"type":"thinking","thinking":"a\u0062","signature":"s=","new":1}"#,
                "reasoning",
            ),
            (r#"{"type":"redacted_thinking","data":"x"}"#, "reasoning"),
            (r#"{"type":"server_tool_use","id":"a"}"#, "anthropic_block"),
        ] {
            let item = item(block_json);

            assert_eq!(block(item.as_str()).as_deref(), Some(block_json));
            assert_eq!(escaped_member(item.as_str(), "type"), Some(kind));
        }
        let item = item(r#"{"type":"thinking","thinking":"a\u0062","signature":"s"}"#);
        assert_eq!(
            member(item.as_str(), "summary"),
            Some(r#"[{"type":"summary_text","text":"a\u0062"}]"#)
        );
    }

    #[test]
    fn a_block_is_restored_from_encrypted_content_alone() {
        let thought = r#"{"type":"thinking","thinking":"a","signature":"s"}"#;
        let content = |text: &str| {
            let content = carry(CARRIED, text);
            format!(r#"{{"type":"reasoning","summary":[],"encrypted_content":"{content}"}}"#)
        };

        assert_eq!(block(&content(thought)).as_deref(), Some(thought));
        for wrong in [
            r#"{"type":"text","text":"a"}"#,
            "{",
            "1",
            "",
            r#"{"type":"thinking"},{}"#,
        ] {
            assert_eq!(block(&content(wrong)), None, "{wrong}");
        }
        let old = format!(r#"{{"type":"reasoning","anthropic_block":{thought}}}"#);
        assert_eq!(block(&old).as_deref(), Some(thought));
    }

    #[test]
    fn items_of_other_kinds_have_no_block() {
        for item in [
            r#"{"type":"reasoning","summary":[],"encrypted_content":"x"}"#,
            r#"{"type":"reasoning","anthropic_block":{"type":"text","text":"a"}}"#,
            r#"{"type":"reasoning","anthropic_block":"x"}"#,
            r#"{"type":"anthropic_block","anthropic_block":{}}"#,
            r#"{"type":"web_search_call"}"#,
        ] {
            assert_eq!(block(item), None, "{item}");
        }
    }

    #[test]
    fn deltas_complete_a_block() {
        let mut thinking =
            Thinking::begin(r#"{"type":"thinking","thinking":"","signature":"","new":1}"#);
        for (delta, bytes) in [
            (r#"{"type":"thinking_delta","thinking":"a"}"#, 1),
            (r#"{"type":"thinking_delta","thinking":"\"b"}"#, 3),
            (r#"{"type":"signature_delta","signature":"old"}"#, 5),
            (r#"{"type":"signature_delta","signature":"s"}"#, 3),
            (r#"{"type":"new"}"#, 0),
        ] {
            assert_eq!(thinking.add(delta), bytes);
        }
        assert_eq!(
            thinking.end(),
            r#"{"type":"thinking","thinking":"a\"b","signature":"s","new":1}"#
        );

        let mut short = Thinking::begin(r#"{"type":"thinking"}"#);
        short.add(r#"{"thinking":"a"}"#);
        short.add(r#"{"signature":"s"}"#);
        assert_eq!(
            short.end(),
            r#"{"type":"thinking","thinking":"a","signature":"s"}"#
        );
        let redacted = r#"{"type":"redacted_thinking","data":"x"}"#;
        assert_eq!(Thinking::begin(redacted).end(), redacted);
    }
}
