//! Maps the app's names of threads to thread ids.

use sha2::{Digest, Sha256};

use threadkeep_domain::{Json, ThreadId, member};
use threadkeep_service::ConversationLabel;

/// Length-prefixed namespace for hashed names. `threadIdFor` of the TypeScript package uses the same namespace, so the
/// package's history for `AgentKit` and this protocol derive the same thread ids.
const SPACE: &str = "8:agentkit";
const DIGEST_BYTES: usize = 24;
const NAME_MAX_BYTES: usize = 256;
/// The member of a thread's metadata that contains its names.
const MEMBER: &str = "agentkit";
pub(super) const TITLE_MAX_CHARS: usize = 200;

/// Returns the thread id for a name, or `None` if the name is invalid. A name that is a thread id maps to itself.
pub(super) fn thread_id_of(name: &str) -> Option<ThreadId> {
    if let Ok(id) = name.parse() {
        return Some(id);
    }
    let fits = (1..=NAME_MAX_BYTES).contains(&name.len());
    if !fits || name.chars().any(char::is_control) {
        return None;
    }
    let digest = Sha256::digest(format!("{SPACE}{}:{name}", name.len()));
    format!("thrd_{}", hex::encode(&digest[..DIGEST_BYTES]))
        .parse()
        .ok()
}

/// Returns a thread's name and title. If the stored name belongs to a different thread, the name is the thread's id.
pub(super) fn label(id: &ThreadId, metadata: &Json) -> ConversationLabel {
    let name = text_at(metadata, "id").filter(|name| thread_id_of(name) == Some(*id));
    ConversationLabel {
        id: name.unwrap_or_else(|| id.to_string()),
        title: title_of(metadata),
    }
}

/// Returns whether the metadata contains `name`.
pub(super) fn is_named(metadata: &Json, name: &str) -> bool {
    text_at(metadata, "id").is_some_and(|known| known == name)
}

/// Returns the title in the metadata, unless it is blank.
pub(super) fn title_of(metadata: &Json) -> Option<String> {
    let title = text_at(metadata, "title").filter(|title| !title.trim().is_empty())?;
    Some(title.chars().take(TITLE_MAX_CHARS).collect())
}

/// Builds a metadata patch that sets the given name and title. A blank title removes the existing title.
pub(super) fn patch(name: Option<&str>, title: Option<&str>) -> Json {
    let mut names = serde_json::Map::new();
    if let Some(name) = name {
        names.insert("id".into(), name.into());
    }
    if let Some(title) = title {
        let title = Some(title).filter(|title| !title.trim().is_empty());
        names.insert("title".into(), title.into());
    }
    Json::from_compact(serde_json::json!({ MEMBER: names }).to_string())
}

fn text_at(metadata: &Json, name: &str) -> Option<String> {
    let names = member(metadata.as_str(), MEMBER)?;
    let names = names.starts_with('{').then_some(names)?;
    serde_json::from_str(member(names, name)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    #[test]
    fn names_are_mapped_as_by_the_typescript_package() {
        let id = thread_id_of("ü").unwrap();
        assert_eq!(
            id.as_str(),
            "thrd_f75d395a7c864d5a790723d7805a464992d428ba7ae5402c"
        );
        assert_eq!(thread_id_of(id.as_str()), Some(id));
        assert!(thread_id_of(&"x".repeat(256)).is_some());
        for bad in ["", "a\nb", "a\u{7f}", "\u{85}", &"x".repeat(257)] {
            assert_eq!(thread_id_of(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_thread_is_shown_under_its_name() {
        let id = thread_id_of("chat 1").unwrap();
        for (metadata, name, title) in [
            (
                r#"{"agentkit":{"id":"chat 1","title":"T"}}"#,
                "chat 1",
                Some("T"),
            ),
            (
                r#"{"agentkit":{"id":"chat 2","title":" "}}"#,
                id.as_str(),
                None,
            ),
            (r#"{"agentkit":"chat 1"}"#, id.as_str(), None),
            (r#"{"agentkit":{"id":1,"title":["T"]}}"#, id.as_str(), None),
            ("{}", id.as_str(), None),
        ] {
            let label = label(&id, &json(metadata));
            assert_eq!((&*label.id, label.title.as_deref()), (name, title));
        }
    }

    #[test]
    fn a_long_title_is_cut_and_an_empty_one_removed() {
        let long = patch(Some("a"), Some(&"é".repeat(300)));
        assert_eq!(title_of(&long).unwrap(), "é".repeat(200));
        assert_eq!(
            patch(None, Some(" ")).as_str(),
            r#"{"agentkit":{"title":null}}"#
        );
        assert_eq!(patch(None, None).as_str(), r#"{"agentkit":{}}"#);
    }
}
