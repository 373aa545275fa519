use sha2::{Digest, Sha256};

use super::kinds::prefix;
use threadkeep_domain::scope::ItemId;
use threadkeep_domain::{IdempotencyKey, ThreadId};

/// Size of a generated item id before hex encoding.
const DIGEST_BYTES: usize = 24;
const CONVERSATION: &str = "conv_";
const THREAD: &str = "thrd_";

/// Returns the id of the thread that stores a conversation, or `None` if the conversation id is invalid.
pub(super) fn thread_of(conversation: &str) -> Option<ThreadId> {
    let rest = conversation.strip_prefix(CONVERSATION)?;
    format!("{THREAD}{rest}").parse().ok()
}

pub(super) fn conversation_of(id: &ThreadId) -> String {
    let id = id.as_str();
    format!("{CONVERSATION}{}", id.strip_prefix(THREAD).unwrap_or(id))
}

/// Generates the id of the item at `index`. If the request has an idempotency key, repeats of the request get the same
/// id. Otherwise, the id is random.
pub(super) fn item_id(kind: &str, request: Option<IdempotencyKey>, index: usize) -> ItemId {
    let digits: [u8; DIGEST_BYTES] = match request {
        Some(IdempotencyKey { digest, request }) => {
            let mut hash = Sha256::new();
            hash.update(digest.0);
            hash.update(request.0);
            hash.update((index as u64).to_be_bytes());
            let hash: [u8; 32] = hash.finalize().into();
            let (first, _) = hash.split_first_chunk().expect("a hash has 32 bytes");
            *first
        }
        None => rand::random(),
    };
    let id = format!("{}{}", prefix(kind), hex::encode(digits));
    id.parse().expect("prefixes and digits are visible")
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadkeep_domain::Fingerprint;

    #[test]
    fn a_conversation_has_the_id_of_its_thread() {
        let id = thread_of("conv_0123456789abcdef0123456789abcdef").unwrap();

        assert_eq!(id.as_str(), "thrd_0123456789abcdef0123456789abcdef");
        assert_eq!(
            conversation_of(&id),
            "conv_0123456789abcdef0123456789abcdef"
        );
        for bad in [
            "",
            "conv_",
            "conv_1",
            "thrd_0123456789abcdef0123456789abcdef",
            "conv_thrd_0123456789abcdef0123456789abcdef",
            "conv_0123456789abcdef0123456789abcde/",
        ] {
            assert_eq!(thread_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_repeat_gives_its_items_the_same_ids() {
        let key = |digest| IdempotencyKey {
            digest: Fingerprint([digest; 16]),
            request: Fingerprint([7; 16]),
        };
        let first = item_id("message", Some(key(1)), 0);

        assert_eq!(first.as_str().len(), "msg_".len() + 48);
        assert_eq!(item_id("message", Some(key(1)), 0), first);
        assert_ne!(item_id("message", Some(key(1)), 1), first);
        assert_ne!(item_id("message", Some(key(2)), 0), first);
        assert_ne!(item_id("message", None, 0), item_id("message", None, 0));
        assert!(
            item_id("function_call", None, 0)
                .as_str()
                .starts_with("fc_")
        );
    }
}
