//! Derives titles from the user's first message.

use std::borrow::Cow;

use super::UseAgent;
use super::messages::is_of_user;
use threadkeep_domain::{ThreadId, member};
use threadkeep_service::{ListedConversation, ServiceError};
use threadkeep_store::PREVIEW_BYTES_MAX;

/// Title of a thread without user messages. The React hook treats a thread with exactly this title as untitled.
pub(super) const UNTITLED: &str = "New conversation";

const DERIVED_MAX_CHARS: usize = 80;
/// Number of items, oldest first, to search for a user message.
const OPENING_ITEMS: usize = 8;

impl UseAgent {
    /// Adds titles to the untitled conversations of a page.
    pub(super) async fn add_titles(
        &self,
        conversations: &mut [ListedConversation],
    ) -> Result<(), ServiceError> {
        // most histories begin with a user message
        for (items, more_than) in [(1, 0), (OPENING_ITEMS, 1)] {
            let mut untitled: Vec<_> = conversations
                .iter_mut()
                .filter(|listed| listed.label.title.is_none() && listed.messages > more_than)
                .collect();
            let ids: Vec<ThreadId> = untitled.iter().map(|listed| listed.thread).collect();
            let previews = self.conversations.preview(&ids, items).await?;
            for (listed, preview) in untitled.iter_mut().zip(previews) {
                let preview = preview.unwrap_or_default();
                listed.label.title = preview.opening.iter().find_map(|value| derive_title(value));
            }
        }
        for listed in conversations {
            listed.label.title.get_or_insert_with(|| UNTITLED.into());
        }
        Ok(())
    }

    /// Returns `given`, or a title that is derived from the thread's messages if `given` is `None`.
    pub(super) async fn title_or(
        &self,
        given: Option<String>,
        id: &ThreadId,
    ) -> Result<String, ServiceError> {
        if let Some(title) = given {
            return Ok(title);
        }
        let previews = self.conversations.preview(&[*id], OPENING_ITEMS).await?;
        let preview = previews.into_iter().next().flatten().unwrap_or_default();
        let title = preview.opening.iter().find_map(|value| derive_title(value));
        Ok(title.unwrap_or_else(|| UNTITLED.into()))
    }
}

/// Derives a title from a user message: the first non-blank line, truncated at a word boundary.
fn derive_title(value: &str) -> Option<String> {
    let content = content(value)?;
    let line = content
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())?;
    let Some((end, _)) = line.char_indices().nth(DERIVED_MAX_CHARS) else {
        return Some(line.into());
    };
    let cut = &line[..end];
    let is_between_words = line[end..].starts_with(char::is_whitespace);
    let words = cut.rsplit_once(char::is_whitespace);
    let words = words.map_or(cut, |(words, _)| words.trim_end());
    Some(if is_between_words { cut } else { words }.into())
}

/// Returns the text of a user message. `value` may be truncated.
fn content(value: &str) -> Option<Cow<'_, str>> {
    // a truncated value can be up to three bytes shorter than the limit, because values are cut between characters
    if value.len() + 4 > PREVIEW_BYTES_MAX {
        return cut_content(value).map(Cow::Owned);
    }
    let is_of_user = is_of_user(value);
    let content = is_of_user.then(|| member(value, "content"))??;
    serde_json::from_str(content).ok().map(Cow::Owned)
}

/// Finds the text in a truncated value. `MEMBER` matches only a member name, because quotes in strings are escaped.
fn cut_content(value: &str) -> Option<String> {
    const MEMBER: &str = r#""content":""#;
    let (before, content) = value.split_once(MEMBER)?;
    let is_of_user = before.contains(r#""kind":"user""#) || content.contains(r#""kind":"user""#);
    if !is_of_user {
        return None;
    }
    // this limit is enough for the longest title: 80 surrogate pairs, which take 960 bytes when escaped
    let mut quoted = String::from("\"");
    let mut rest = content;
    while !rest.is_empty() && !rest.starts_with('"') && quoted.len() < 2_048 {
        let len = escape_bytes(rest);
        let Some(part) = rest.get(..len) else { break };
        quoted.push_str(part);
        rest = &rest[len..];
    }
    quoted.push('"');
    serde_json::from_str(&quoted).ok()
}

/// Returns the size in bytes of the first character or escape. An escaped surrogate pair counts as one character.
fn escape_bytes(text: &str) -> usize {
    let is_high = |digits: &str| {
        u32::from_str_radix(digits, 16).is_ok_and(|unit| (0xd800..0xdc00).contains(&unit))
    };
    match text.as_bytes() {
        [b'\\', b'u', ..] if text.get(2..6).is_some_and(is_high) => 12,
        [b'\\', b'u', ..] => 6,
        [b'\\', ..] => 2,
        _ => text.chars().next().map_or(0, char::len_utf8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user_message(content: &str) -> String {
        serde_json::json!({"kind": "user", "id": "1", "content": content}).to_string()
    }

    #[test]
    fn a_title_is_the_first_line_cut_at_a_word() {
        let words = "word ".repeat(30);
        let exact = format!("{} more", "x".repeat(80));
        for (content, title) in [
            ("Hello", "Hello"),
            ("\n  \n Hello \nthere", "Hello"),
            (&words, words[..79].trim_end()),
            (&exact, &exact[..80]),
            (&"é".repeat(100), &"é".repeat(80)),
        ] {
            assert_eq!(
                derive_title(&user_message(content)).as_deref(),
                Some(title),
                "{content}"
            );
        }
    }

    #[test]
    fn only_user_messages_give_titles() {
        for value in [
            r#"{"kind":"agent","content":"a"}"#,
            r#"{"kind":"user","content":["a"]}"#,
            r#"{"kind":"user","content":" "}"#,
            r#"{"kind":"user"}"#,
            r#""user""#,
            "1",
        ] {
            assert_eq!(derive_title(value), None, "{value}");
        }
    }

    #[test]
    fn a_truncated_value_gives_the_same_title() {
        let line = "a \"quote\" \\ 😀 é\t";
        let long = user_message(&format!("{line}{}", "x ".repeat(4_000)));
        let escaped = long.replace('😀', "\\ud83d\\ude00").replace('é', "\\u00e9");
        let title = derive_title(&long[..4_096]);
        assert!(
            title
                .as_ref()
                .is_some_and(|title| title.starts_with("a \"quote\" \\ 😀 é"))
        );
        assert_eq!(derive_title(&escaped[..4_096]), title);
        // truncated inside an escape, and before the content
        for end in 0..200 {
            assert!(
                cut_content(&escaped[..end])
                    .is_none_or(|text| line.starts_with(&text) || text.starts_with(line))
            );
        }
    }
}
