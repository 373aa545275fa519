//! Encodes data that clients send back unchanged in `encrypted_content`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::member_text;

const PREFIX: &str = "threadkeep:";
const VERSION: &str = ":1\n";

/// Encodes text together with its kind. Does not encrypt the text, because the client knows the conversation anyway,
/// and all replicas would need the same encryption key to read the text.
#[must_use]
pub fn carry(kind: &str, text: &str) -> String {
    STANDARD.encode(format!("{PREFIX}{kind}{VERSION}{text}"))
}

/// Decodes the text in the `encrypted_content` of an item if the text is of the given kind.
#[must_use]
pub fn carried(kind: &str, item: &str) -> Option<String> {
    let text = decoded(item)?;
    let text = text.strip_prefix(PREFIX)?.strip_prefix(kind)?;
    text.strip_prefix(VERSION).map(str::to_owned)
}

/// Returns whether this service encoded the `encrypted_content` of an item.
#[must_use]
pub fn is_carried(item: &str) -> bool {
    decoded(item).is_some_and(|text| text.starts_with(PREFIX))
}

fn decoded(item: &str) -> Option<String> {
    let content = member_text(item, "encrypted_content")?;
    String::from_utf8(STANDARD.decode(content.as_bytes()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_decoded_only_as_its_own_kind() {
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
