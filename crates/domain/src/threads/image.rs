//! A thread as a whole, to be moved or copied.

use std::mem;
use std::time::Duration;

use super::checkpoint_image::CheckpointImages;
use super::document::Document;
use super::owner::Owner;
use super::thread::{Life, Stamp, Thread};
use super::thread_id::ThreadId;
use super::turn::TurnToken;
use super::write::Conditions;
use crate::json::merge_patch::merge_json;
use crate::json::text::Json;
use crate::scope::{ScopeImage, ScopePolicy};
use crate::{IdempotencyKey, Refusal, ThreadPolicy};

/// The member of the metadata of a fork that says what it is a copy of.
const ORIGIN: &str = "\"forked_from\"";
/// A merge patch that removes it.
const WITHOUT_ORIGIN: &str = r#"{"forked_from":null}"#;

/// Bytes of the largest metadata that a thread has by any protocol, the member of a fork included.
pub const METADATA_MAX_BYTES: u64 = 132_096;

/// The most milliseconds that the first write of an imported thread may be ahead of the store's clock.
pub const AHEAD_MAX_MS: u64 = 60_000;

/// Everything in a thread at one moment, except its turn and the answers that are remembered with it.
#[derive(Debug, Clone)]
pub struct Image {
    /// All but state and scope. An import takes no life, sizes or expiry from it.
    pub thread: Thread,
    /// The state.
    pub state: Document,
    /// Keys, tasks and history, if anything was ever written there.
    pub scope: Option<ScopeImage>,
    /// The checkpoints.
    pub checkpoints: CheckpointImages,
}

/// The effect of an import on a thread that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IfExists {
    /// It is refused.
    #[default]
    Fail,
    /// It ends the thread, which goes into the archive.
    Replace,
    /// It leaves the thread as it is.
    Skip,
}

/// An image that is to become a thread.
#[derive(Debug, Clone, Copy)]
pub struct Import<'a> {
    /// The content of the thread. Version and times stay, also those of the keys and of the history's items.
    pub image: &'a Image,
    /// The thread that the image was forked from. A fork begins with version 1, now.
    pub origin: Option<Origin>,
    /// The effect on a thread that exists.
    pub if_exists: IfExists,
    /// Whether a place is reserved for one more thread of its owner, or none is needed. Without one, an import that gives
    /// the owner another thread is refused with [`Refusal::NoPlace`].
    pub has_place: bool,
    /// The turn that the import belongs to, for a thread that is replaced.
    pub turn: Option<TurnToken>,
    /// The identity of a repeat.
    pub idempotency: Option<IdempotencyKey>,
    /// Lifetimes. The limits are for the caller to check.
    pub policy: &'a ThreadPolicy,
}

/// A thread, and a version of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The thread.
    pub id: ThreadId,
    /// The version that was copied.
    pub version: u64,
}

/// The parts of a thread that a fork copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Included {
    /// The state.
    pub state: bool,
    /// Keys and tasks.
    pub scope: bool,
    /// The history.
    pub history: bool,
}

/// A new thread that is to be a copy of another one, the source.
#[derive(Debug, Clone, Copy)]
pub struct Fork<'a> {
    /// The parts to copy.
    pub included: Included,
    /// The checkpoint that state and metadata are copied from; those of the source if none is given.
    pub checkpoint: Option<u32>,
    /// The place of the last item of the history to copy; all are copied if none is given.
    pub until: Option<u64>,
    /// The metadata instead of the copied ones. Either way they get the member `forked_from`.
    pub metadata: Option<&'a Json>,
    /// The owner; that of the source if none is given.
    pub owner: Option<&'a Owner>,
    /// As that of an [`Import`].
    pub has_place: bool,
    /// The idle TTL; that of the source if none is given.
    pub ttl: Option<Duration>,
    /// The conditions on the source. A repeat is remembered with the new thread.
    pub conditions: Conditions,
    /// Lifetimes of the new thread. The limit of its metadata is for the caller to check.
    pub policy: &'a ThreadPolicy,
}

impl Image {
    /// Checks that a thread may have all that.
    ///
    /// # Errors
    /// [`Refusal`] of the limit that it passes.
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
    /// All of them.
    pub const ALL: Self = Self {
        state: true,
        scope: true,
        history: true,
    };
}

impl Origin {
    /// The metadata of a fork, given those that it is based on.
    #[doc(hidden)]
    #[must_use]
    pub fn mark(&self, metadata: &Json) -> Json {
        let (before, after) = Self::around_version(metadata, &self.id);
        Json::from_compact([&before, &*self.version.to_string(), after].concat())
    }

    /// The same as the texts before and after the version, for a store that learns the version as it copies.
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
    /// Checks that the copy may have the given metadata. Copied metadata, and the member that says what is copied, have
    /// no further limit.
    ///
    /// # Errors
    /// [`Refusal::MetadataTooLarge`].
    pub fn check(&self) -> Result<(), Refusal> {
        let limit_bytes = self.policy.max_metadata_bytes;
        let check = |metadata| check_metadata(metadata, limit_bytes);
        self.metadata.map_or(Ok(()), check)
    }

    /// The import that makes the new thread of its image, as [`Self::of`] gives both.
    pub fn import<'a>(&'a self, origin: Origin, image: &'a Image) -> Import<'a> {
        Import {
            image,
            origin: Some(origin),
            if_exists: IfExists::Fail,
            has_place: self.has_place,
            turn: None,
            idempotency: self.conditions.idempotency,
            policy: self.policy,
        }
    }

    /// The image of the new thread, and what it is a copy of.
    ///
    /// # Errors
    /// [`Refusal::CheckpointNotFound`].
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
        thread.metadata = origin.mark(self.metadata.unwrap_or(&thread.metadata));
        thread.stamp = Stamp {
            version: 1,
            life: Life::default(),
        };
        thread.ttl = self.ttl.unwrap_or(thread.ttl);
        thread.owner = self.owner.or(thread.owner.as_ref()).cloned();
        if !self.included.state {
            image.state = Document::default();
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
    fn a_fork_says_in_its_metadata_what_it_is_a_copy_of() {
        let origin = Origin {
            id: ID.parse().unwrap(),
            version: 7,
        };
        let mark = format!(r#""forked_from":{{"thread_id":"{ID}","version":7}}"#);
        for (metadata, marked) in [
            ("{}", format!("{{{mark}}}")),
            (
                r#"{"a":{"b":{}}}"#,
                format!(r#"{{"a":{{"b":{{}}}},{mark}}}"#),
            ),
            (
                r#"{"forked_from":{"thread_id":"x","version":1},"n":1.0,"null":null}"#,
                format!(r#"{{"n":1.0,"null":null,{mark}}}"#),
            ),
        ] {
            let metadata = Json::parse(metadata).unwrap();
            assert_eq!(origin.mark(&metadata).as_str(), marked);
        }
    }
}
