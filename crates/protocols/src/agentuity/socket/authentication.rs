//! Checks the API key in a client's first message. The check does not access the store, so clients can connect even
//! while the store is unavailable.

use actix_web::http::Method;
use serde::Deserialize;

use crate::object::Object;
use threadkeep_http::missing;
use threadkeep_identity::ApiKeys;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Admitted,
    /// The key is unknown, or lacks the right to write threads.
    KeyRejected,
    Unexpected,
}

#[derive(Deserialize)]
struct First {
    authorization: String,
}

pub(super) fn judge(text: &[u8], keys: &ApiKeys) -> Verdict {
    let Ok(Object(First { authorization })) = serde_json::from_slice(text) else {
        return Verdict::Unexpected;
    };
    match keys.find(authorization.as_bytes()) {
        Some(key) if missing(key, &Method::POST, "/thread/ws").is_none() => Verdict::Admitted,
        _ => Verdict::KeyRejected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadkeep_identity::ApiKey;

    #[test]
    fn only_a_key_that_may_write_threads_is_admitted() {
        let key = |name: &str, rights: &str| ApiKey {
            name: name.into(),
            rights: rights.parse().unwrap(),
        };
        let keys = [
            ("all", "all"),
            ("threads", "threads+kv"),
            ("read", "threads.read+kv"),
        ];
        let keys = ApiKeys::new(keys.map(|(name, rights)| (key(name, rights), name)));
        let judge = |secret: &str| {
            judge(
                format!(r#"{{"authorization":"{secret}"}}"#).as_bytes(),
                &keys,
            )
        };

        assert_eq!(judge("all"), Verdict::Admitted);
        assert_eq!(judge("threads"), Verdict::Admitted);
        assert_eq!(judge("read"), Verdict::KeyRejected);
        assert_eq!(judge("unknown"), Verdict::KeyRejected);
    }
}
