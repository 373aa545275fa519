//! The first message of a client: its api key. The store is not asked, so that a client is let in
//! while the store is away.

use serde::Deserialize;

use crate::identity::ApiKeys;
use crate::protocols::object::Object;

/// The outcome of a first message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The key is one of ours.
    Admitted,
    /// The key is unknown.
    TurnedAway,
    /// It is not what a client begins with.
    Unexpected,
}

#[derive(Deserialize)]
struct First {
    authorization: String,
}

/// Judges the first message.
pub(super) fn judge(text: &[u8], keys: &ApiKeys) -> Verdict {
    let Ok(Object(First { authorization })) = serde_json::from_slice(text) else {
        return Verdict::Unexpected;
    };
    match keys.name_of(authorization.as_bytes()) {
        Some(_) => Verdict::Admitted,
        None => Verdict::TurnedAway,
    }
}
