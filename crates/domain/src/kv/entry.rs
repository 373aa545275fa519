//! Defines the rules for versions, uses and expiry of key-value entries.

use bytes::Bytes;

use super::content::{ContentEncoding, ContentType};
use super::lifetime::Lifetime;
use crate::millis::millis;
use crate::{Life, Precondition, Refusal, Stamp};

/// An entry without its body and use count. Times are in Unix milliseconds, according to the store's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryHead {
    /// The version and life. The version is 1 after the first put, and each further put increments it. The life
    /// prevents the entity tag of a deleted or expired entry from matching a later entry with the same key.
    pub stamp: Stamp,
    /// Size of the body in bytes.
    pub size_bytes: u64,
    /// The media type of the body.
    pub content_type: ContentType,
    /// The encoding of the body, if any.
    pub content_encoding: Option<ContentEncoding>,
    /// Time of the first put.
    pub created_ms: u64,
    /// Time of the last put.
    pub updated_ms: u64,
    /// The lifetime set by the last put.
    pub lifetime: Lifetime,
    /// When the entry expires; `None` if never.
    pub expires_ms: Option<u64>,
}

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Everything except the body and the uses.
    pub head: EntryHead,
    /// Number of uses, including this read. A read that is retried after a connection failure may be counted twice.
    pub uses: u64,
    /// When the entry was last put or used, including this read.
    pub last_used_ms: u64,
    /// The bytes, unchanged.
    pub body: Bytes,
}

/// An entry to put.
#[derive(Debug, Clone)]
pub struct NewEntry {
    /// The bytes.
    pub body: Bytes,
    /// The media type.
    pub content_type: ContentType,
    /// The encoding, if any.
    pub content_encoding: Option<ContentEncoding>,
    /// The lifetime; `None` uses the lifetime of the namespace.
    pub lifetime: Option<Lifetime>,
    /// The lifetime that applies if neither the put nor the namespace sets one.
    pub default_lifetime: Lifetime,
}

/// The result of a put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Put {
    /// Version and life. Version 1 means that the entry is new.
    pub stamp: Stamp,
    /// When the entry expires; `None` if never.
    pub expires_ms: Option<u64>,
}

impl EntryHead {
    /// Returns whether the entry has not expired.
    #[must_use]
    pub fn lives(&self, now_ms: u64) -> bool {
        self.expires_ms.is_none_or(|expires_ms| expires_ms > now_ms)
    }

    /// If less than half of the lifetime remains, renews the lifetime and returns the new expiry time.
    pub fn prolong(&mut self, now_ms: u64) -> Option<u64> {
        let (Some(expires_ms), Lifetime::For(time)) = (self.expires_ms, self.lifetime) else {
            return None;
        };
        let lifetime_ms = millis(time);
        if expires_ms.saturating_sub(now_ms).saturating_mul(2) >= lifetime_ms {
            return None;
        }
        let new_ms = now_ms.saturating_add(lifetime_ms);
        self.expires_ms = Some(new_ms);
        Some(new_ms)
    }

    /// Checks a precondition. `current` is the unexpired entry, if any.
    pub fn check(
        current: Option<&Self>,
        precondition: Option<Precondition>,
    ) -> Result<(), Refusal> {
        let current = current.map_or(Stamp::default(), |head| head.stamp);
        Precondition::check(precondition, current)
    }
}

impl Entry {
    /// Creates an entry from `new`. `old` is the unexpired entry with the same key, if any. `default` is the default
    /// lifetime of the namespace.
    #[must_use]
    pub fn put(old: Option<&Self>, new: &NewEntry, default: Option<Lifetime>, now_ms: u64) -> Self {
        let stamp = match old {
            Some(Self { head, .. }) => Stamp {
                version: head.stamp.version + 1,
                ..head.stamp
            },
            None => Stamp {
                version: 1,
                life: Life::random(),
            },
        };
        let lifetime = new.lifetime.or(default).unwrap_or(new.default_lifetime);
        Self {
            head: EntryHead {
                stamp,
                size_bytes: new.body.len() as u64,
                content_type: new.content_type.clone(),
                content_encoding: new.content_encoding.clone(),
                created_ms: old.map_or(now_ms, |old| old.head.created_ms),
                updated_ms: now_ms,
                lifetime,
                expires_ms: match lifetime {
                    Lifetime::Forever => None,
                    Lifetime::For(time) => Some(now_ms.saturating_add(millis(time))),
                },
            },
            uses: old.map_or(0, |old| old.uses),
            last_used_ms: now_ms,
            body: new.body.clone(),
        }
    }

    /// Counts a use, which may renew the lifetime. Returns the new expiry time if the lifetime was renewed.
    pub fn note_use(&mut self, now_ms: u64) -> Option<u64> {
        self.uses += 1;
        self.last_used_ms = now_ms;
        self.head.prolong(now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const MINUTE: Lifetime = Lifetime::For(Duration::from_secs(60));

    fn new(lifetime: Option<Lifetime>) -> NewEntry {
        NewEntry {
            body: Bytes::from_static(b"body"),
            content_type: ContentType::new("text/plain").unwrap(),
            content_encoding: None,
            lifetime,
            default_lifetime: Lifetime::Forever,
        }
    }

    #[test]
    fn a_put_increments_the_version_and_keeps_the_use_count() {
        let mut first = Entry::put(None, &new(Some(MINUTE)), None, 1_000);
        first.note_use(2_000);
        let second = Entry::put(Some(&first), &new(None), None, 3_000);

        assert_eq!(
            (first.head.stamp.version, second.head.stamp.version),
            (1, 2)
        );
        assert_eq!(first.head.stamp.life, second.head.stamp.life);
        assert_eq!(
            (second.head.created_ms, second.head.updated_ms),
            (1_000, 3_000)
        );
        assert_eq!((second.uses, second.last_used_ms), (1, 3_000));
        assert_eq!(second.head.size_bytes, 4);
    }

    #[test]
    fn the_lifetime_comes_from_the_put_the_namespace_or_the_default() {
        let ends_ms = |own, default| Entry::put(None, &new(own), default, 1_000).head.expires_ms;

        assert_eq!(ends_ms(None, None), None);
        assert_eq!(ends_ms(None, Some(MINUTE)), Some(61_000));
        assert_eq!(ends_ms(Some(Lifetime::Forever), Some(MINUTE)), None);
    }

    #[test]
    fn a_use_renews_the_lifetime_once_less_than_half_is_left() {
        let mut entry = Entry::put(None, &new(Some(MINUTE)), None, 0);

        assert_eq!(entry.note_use(30_000), None);
        assert_eq!(entry.note_use(30_001), Some(90_001));
        assert_eq!(entry.uses, 2);
        assert!(entry.head.lives(90_000) && !entry.head.lives(90_001));
    }

    #[test]
    fn a_precondition_applies_to_the_unexpired_entry() {
        let entry = Entry::put(None, &new(None), None, 0);
        let absent = Some(Precondition::Version(0));

        assert_eq!(EntryHead::check(None, absent), Ok(()));
        assert_eq!(EntryHead::check(Some(&entry.head), None), Ok(()));
        let current = entry.head.stamp;
        let refused = Err(Refusal::VersionMismatch { current });
        assert_eq!(EntryHead::check(Some(&entry.head), absent), refused);
    }
}
