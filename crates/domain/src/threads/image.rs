use std::mem;
use std::time::Duration;

use super::checkpoint_image::CheckpointImages;
use super::document::Document;
use super::effects::EffectImage;
use super::owner::Owner;
use super::thread::{Life, Stamp, Thread};
use super::thread_id::ThreadId;
use super::turn::{TurnNumbers, TurnToken};
use super::write::Conditions;
use crate::json::merge_patch::merge_json;
use crate::json::text::Json;
use crate::scope::{ScopeImage, ScopePolicy};
use crate::{IdempotencyKey, Refusal, ThreadPolicy};

/// The metadata key in which a fork records its origin.
const ORIGIN: &str = "\"forked_from\"";
const WITHOUT_ORIGIN: &str = r#"{"forked_from":null}"#;

/// Maximum size in bytes of a thread's metadata in any protocol, including the origin of a fork.
pub const METADATA_MAX_BYTES: u64 = 132_096;

/// How far the creation time of an imported thread may be ahead of the store's clock, in milliseconds.
pub const AHEAD_MAX_MS: u64 = 60_000;

/// A snapshot of a thread, without its turn (the thread's lock), the fences of its effects, and its stored answers to
/// idempotent requests.
#[derive(Debug, Clone)]
pub struct Image {
    /// The data of the thread except state, scope and checkpoints. An import ignores the [`Life`], sizes and expiry.
    pub thread: Thread,
    /// The state.
    pub state: Document,
    /// Keys, tasks and history. `None` if the scope was never written.
    pub scope: Option<ScopeImage>,
    /// The checkpoints.
    pub checkpoints: CheckpointImages,
    /// The numbers of the turns.
    pub turns: TurnNumbers,
    /// The effects, oldest first.
    pub effects: Vec<EffectImage>,
}

/// The effect of an import on an existing thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IfExists {
    /// Rejects the import.
    #[default]
    Fail,
    /// Ends and archives the thread.
    Replace,
    /// Leaves the thread unchanged.
    Skip,
}

/// An image to import as a thread.
#[derive(Debug, Clone, Copy)]
pub struct Import<'a> {
    /// The content. Versions and times are preserved, including the times of keys and history items.
    pub image: &'a Image,
    /// The source, if the new thread is a fork. A fork starts at version 1, with the current time as its creation time.
    pub origin: Option<Origin>,
    /// The effect on an existing thread.
    pub if_exists: IfExists,
    /// Whether the caller has reserved the thread within the owner's limit. Without a reservation, an import that adds
    /// a thread to an owner is [rejected](Refusal::NoReservation).
    pub has_reservation: bool,
    /// The turn under which the caller replaces a thread.
    pub turn: Option<TurnToken>,
    /// The idempotency key.
    pub idempotency: Option<IdempotencyKey>,
    /// The policy for lifetimes. The caller checks the limits.
    pub policy: &'a ThreadPolicy,
}

/// The thread and the version that a fork copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The thread.
    pub id: ThreadId,
    /// The copied version.
    pub version: u64,
}

/// The parts that a fork copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Included {
    /// The state.
    pub state: bool,
    /// Keys and tasks.
    pub scope: bool,
    /// The history.
    pub history: bool,
}

/// Creates a thread as a copy of a source thread.
#[derive(Debug, Clone, Copy)]
pub struct Fork<'a> {
    /// The parts to copy.
    pub included: Included,
    /// The checkpoint whose state and metadata are copied. By default, the current state and metadata of the source are
    /// copied.
    pub checkpoint: Option<u32>,
    /// The position of the last history item to copy. By default, all items are copied.
    pub until: Option<u64>,
    /// The metadata of the new thread. `None` copies the metadata of the source. `forked_from` is always added.
    pub metadata: Option<&'a Json>,
    /// The owner; by default, the owner of the source.
    pub owner: Option<&'a Owner>,
    /// See [`Import::has_reservation`].
    pub has_reservation: bool,
    /// The idle TTL; by default, that of the source.
    pub ttl: Option<Duration>,
    /// Conditions on the source, and the idempotency key, which is stored with the new thread.
    pub conditions: Conditions,
    /// The policy for the new thread's lifetimes and for the size of its metadata; see [`Fork::check`].
    pub policy: &'a ThreadPolicy,
}

impl Image {
    /// Checks the image against the limits.
    pub fn check(&self, policy: &ThreadPolicy, scope: &ScopePolicy) -> Result<(), Refusal> {
        check_state(&self.state, policy)?;
        let limit_bytes = policy.max_metadata_bytes.max(METADATA_MAX_BYTES);
        check_metadata(&self.thread.metadata, limit_bytes)?;
        self.checkpoints.check(policy, limit_bytes)?;
        match &self.scope {
            Some(image) => image.check(scope),
            None => Ok(()),
        }
    }
}

impl Included {
    /// Copies everything.
    pub const ALL: Self = Self {
        state: true,
        scope: true,
        history: true,
    };
}

impl Origin {
    #[doc(hidden)]
    #[must_use]
    pub fn add_to(&self, metadata: &Json) -> Json {
        let (before, after) = Self::around_version(metadata, &self.id);
        Json::from_compact([&before, &*self.version.to_string(), after].concat())
    }

    /// Returns the fork's metadata as two strings, before and after the source's version. A store inserts the version
    /// between them while it copies the thread.
    #[doc(hidden)]
    pub fn around_version(metadata: &Json, id: &ThreadId) -> (String, &'static str) {
        let others = merge_json(Some(metadata), &Json::from_compact(WITHOUT_ORIGIN));
        let mut text = others.as_str().to_owned();
        text.pop();
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&format!(r#"{ORIGIN}:{{"thread_id":"{id}","version":"#));
        (text, "}}")
    }
}

impl Fork<'_> {
    /// Checks the size of the metadata in the request. Copied metadata and `forked_from` are not limited.
    pub fn check(&self) -> Result<(), Refusal> {
        let limit_bytes = self.policy.max_metadata_bytes;
        let check = |metadata| check_metadata(metadata, limit_bytes);
        self.metadata.map_or(Ok(()), check)
    }

    /// Returns the import that creates the new thread. `origin` and `image` are the results of [`Self::of`].
    pub fn import<'a>(&'a self, origin: Origin, image: &'a Image) -> Import<'a> {
        Import {
            image,
            origin: Some(origin),
            if_exists: IfExists::Fail,
            has_reservation: self.has_reservation,
            turn: None,
            idempotency: self.conditions.idempotency,
            policy: self.policy,
        }
    }

    /// Returns the origin and the image of the new thread.
    pub fn of(&self, source: &ThreadId, mut image: Image) -> Result<(Origin, Image), Refusal> {
        let thread = &mut image.thread;
        let mut version = thread.stamp.version;
        let checkpoints = mem::take(&mut image.checkpoints);
        if let Some(number) = self.checkpoint {
            let saved = checkpoints
                .take(number)
                .ok_or(Refusal::CheckpointNotFound)?;
            version = saved.version;
            thread.metadata = saved.metadata;
            image.state = saved.state;
        }
        let origin = Origin {
            id: *source,
            version,
        };
        thread.metadata = origin.add_to(self.metadata.unwrap_or(&thread.metadata));
        thread.stamp = Stamp {
            version: 1,
            life: Life::default(),
        };
        thread.ttl = self.ttl.unwrap_or(thread.ttl);
        thread.owner = self.owner.or(thread.owner.as_ref()).cloned();
        if !self.included.state {
            image.state = Document::default();
        }
        image.turns = TurnNumbers::default();
        if self.included.history {
            // no turn of the copy began them
            image.effects.iter_mut().for_each(|effect| effect.turn = 0);
        } else {
            image.effects.clear();
        }
        let scope = image.scope.take();
        image.scope = scope.and_then(|scope| scope.reduced(&self.included, self.until));
        Ok((origin, image))
    }
}

pub(super) fn check_state(state: &Document, policy: &ThreadPolicy) -> Result<(), Refusal> {
    let attempted_bytes = state.size_bytes();
    if attempted_bytes > policy.max_bytes {
        return Err(Refusal::StateTooLarge {
            limit_bytes: policy.max_bytes,
            size_bytes: Document::default().size_bytes(),
            attempted_bytes,
        });
    }
    if state.len() > policy.max_keys {
        return Err(Refusal::TooManyKeys {
            limit_keys: policy.max_keys,
        });
    }
    Ok(())
}

pub(super) fn check_metadata(metadata: &Json, limit_bytes: u64) -> Result<(), Refusal> {
    let attempted_bytes = metadata.as_str().len() as u64;
    if attempted_bytes > limit_bytes {
        return Err(Refusal::MetadataTooLarge {
            limit_bytes,
            attempted_bytes,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "thrd_0123456789abcdef0123456789abcdef";

    #[test]
    fn a_fork_records_its_origin_in_its_metadata() {
        let origin = Origin {
            id: ID.parse().unwrap(),
            version: 7,
        };
        let forked_from = format!(r#""forked_from":{{"thread_id":"{ID}","version":7}}"#);
        for (metadata, expected) in [
            ("{}", format!("{{{forked_from}}}")),
            (
                r#"{"a":{"b":{}}}"#,
                format!(r#"{{"a":{{"b":{{}}}},{forked_from}}}"#),
            ),
            (
                r#"{"forked_from":{"thread_id":"x","version":1},"n":1.0,"null":null}"#,
                format!(r#"{{"n":1.0,"null":null,{forked_from}}}"#),
            ),
        ] {
            let metadata = Json::parse(metadata).unwrap();
            assert_eq!(origin.add_to(&metadata).as_str(), expected);
        }
    }
}
