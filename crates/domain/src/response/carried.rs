//! Texts of this service in `encrypted_content`, the member of items that clients send back unchanged.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::member_text;

/// Prefix of texts made by this service.
const MARK: &str = "threadkeep:";
/// The version of the texts.
const VERSION: &str = ":1\n";

/// The content that carries a text of that kind. It is base64 without encryption, so that any replica can read it: a client
/// that has the item has the conversation too.
#[must_use]
pub fn carry(kind: &str, text: &str) -> String {
    STANDARD.encode(format!("{MARK}{kind}{VERSION}{text}"))
}

/// The text of that kind that an item carries.
#[must_use]
pub fn carried(kind: &str, item: &str) -> Option<String> {
    let text = decoded(item)?;
    let text = text.strip_prefix(MARK)?.strip_prefix(kind)?;
    text.strip_prefix(VERSION).map(str::to_owned)
}

/// Whether only this service can read the content of an item.
#[must_use]
pub fn is_carried(item: &str) -> bool {
    decoded(item).is_some_and(|text| text.starts_with(MARK))
}

fn decoded(item: &str) -> Option<String> {
    let content = member_text(item, "encrypted_content")?;
    String::from_utf8(STANDARD.decode(content.as_bytes()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_back_from_an_item_of_its_kind() {
        let item = |content: &str| format!(r#"{{"type":"a","encrypted_content":"{content}"}}"#);
        let own = item(&carry("compaction", "Ada said \"é\".\n"));

        assert_eq!(
            carried("compaction", &own).as_deref(),
            Some("Ada said \"é\".\n")
        );
        assert_eq!(carried("thinking", &own), None);
        assert!(is_carried(&own));
        for other in ["gAAAAABpM0Yj", "", "!", &STANDARD.encode("thread")] {
            assert!(!is_carried(&item(other)), "{other}");
        }
        assert!(!is_carried(r#"{"encrypted_content":null}"#));
    }
}
