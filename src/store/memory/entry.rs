//! All that the store knows of one id.

use std::time::Duration;

use super::super::{Destroy, Destroyed};
use super::records::{Answered, Records};
use crate::domain::{
    Document, Json, Life, Policy, Precondition, Refusal, Stamp, Thread, Write, Written,
};
use crate::store::millis;

/// A thread, its tombstone, and the answers that are remembered with it.
#[derive(Debug, Default)]
pub(super) struct Entry {
    living: Option<Living>,
    tombstone_ends_ms: u64,
    records: Records,
}

/// A thread that exists, unless its time has passed.
#[derive(Debug)]
pub(super) struct Living {
    pub(super) stamp: Stamp,
    pub(super) document: Document,
    metadata: Option<Json>,
    created_ms: u64,
    updated_ms: u64,
    ttl: Duration,
    /// The end of its absolute lifetime.
    ends_ms: u64,
    expires_ms: u64,
}

impl Entry {
    /// The thread, its end moved to now + TTL; one whose time has passed is freed.
    pub(super) fn touch(&mut self, now_ms: u64) -> Option<&Living> {
        self.living.take_if(|living| living.expires_ms <= now_ms);
        let living = self.living.as_mut()?;
        living.slide(now_ms);
        Some(living)
    }

    /// When nothing of this is needed any more, as it stands now.
    pub(super) fn due_ms(&self) -> u64 {
        let living_ms = self.living.as_ref().map_or(0, |living| living.expires_ms);
        living_ms
            .max(self.tombstone_ends_ms)
            .max(self.records.ends_ms())
    }

    /// Frees what has passed.
    pub(super) fn sweep(&mut self, now_ms: u64) {
        self.living.take_if(|living| living.expires_ms <= now_ms);
        self.records.sweep(now_ms);
    }

    pub(super) fn write(&mut self, write: &Write<'_>, now_ms: u64) -> Result<Written, Refusal> {
        self.sweep(now_ms);
        if let Some(key) = write.idempotency {
            match self.records.find(key, now_ms)? {
                Some(Answered::Written(written)) => return Ok(written),
                Some(Answered::Destroyed(_)) => return Err(Refusal::IdempotencyKeyReused),
                None => {}
            }
        }
        if self.tombstone_ends_ms > now_ms {
            return Err(Refusal::Destroyed);
        }
        check(write.precondition, self.stamp())?;
        let mut fresh = None;
        let living = match &mut self.living {
            Some(living) => living,
            None => fresh.insert(Living::new(write.policy, now_ms)),
        };
        let written = living.write(write, now_ms)?;
        let expires_ms = living.expires_ms;
        self.living = fresh.or(self.living.take());
        if let Some(key) = write.idempotency {
            let answer = Answered::Written(written.clone());
            self.records.add(key, answer, now_ms, expires_ms);
        }
        Ok(written)
    }

    pub(super) fn destroy(&mut self, destroy: &Destroy, now_ms: u64) -> Result<Destroyed, Refusal> {
        self.sweep(now_ms);
        if let Some(key) = destroy.idempotency {
            match self.records.find(key, now_ms)? {
                Some(Answered::Destroyed(destroyed)) => return Ok(destroyed),
                Some(Answered::Written(_)) => return Err(Refusal::IdempotencyKeyReused),
                None => {}
            }
        }
        check(destroy.precondition, self.stamp())?;
        let destroyed = Destroyed {
            existed: self.living.take().is_some(),
            replayed: false,
        };
        if destroyed.existed {
            self.tombstone_ends_ms = now_ms + millis(destroy.tombstone);
            self.records.end_by(self.tombstone_ends_ms, now_ms);
        }
        if let Some(key) = destroy.idempotency {
            let answer = Answered::Destroyed(destroyed);
            self.records
                .add(key, answer, now_ms, self.tombstone_ends_ms);
        }
        Ok(destroyed)
    }

    fn stamp(&self) -> Stamp {
        self.living
            .as_ref()
            .map_or(Stamp::default(), |living| living.stamp)
    }
}

fn check(precondition: Option<Precondition>, stamp: Stamp) -> Result<(), Refusal> {
    match precondition {
        Some(precondition) if !precondition.is_met_by(stamp) => {
            Err(Refusal::VersionMismatch { current: stamp })
        }
        _ => Ok(()),
    }
}

impl Living {
    fn new(policy: &Policy, now_ms: u64) -> Self {
        let ends_ms = policy
            .max_age
            .map_or(u64::MAX, |age| now_ms.saturating_add(millis(age)));
        Self {
            stamp: Stamp {
                version: 0,
                life: Life::random(),
            },
            document: Document::default(),
            metadata: None,
            created_ms: now_ms,
            updated_ms: now_ms,
            ttl: policy.ttl,
            ends_ms,
            expires_ms: now_ms,
        }
    }

    fn slide(&mut self, now_ms: u64) {
        self.expires_ms = now_ms.saturating_add(millis(self.ttl)).min(self.ends_ms);
    }

    fn write(&mut self, write: &Write<'_>, now_ms: u64) -> Result<Written, Refusal> {
        self.document.check(write.guards)?;
        self.check_metadata(write)?;
        // the last step that can refuse, and it changes nothing if it does
        let answers = self.document.apply(write.operations, write.policy)?;
        if let Some(change) = write.metadata {
            self.metadata = Some(change.new.clone());
        }
        self.ttl = write.ttl.unwrap_or(self.ttl);
        self.stamp.version += 1;
        self.updated_ms = now_ms;
        self.slide(now_ms);
        Ok(Written {
            stamp: self.stamp,
            size_bytes: self.document.size_bytes(),
            answers,
            thread: write.describe.then(|| self.describe()),
            replayed: false,
        })
    }

    fn check_metadata(&self, write: &Write<'_>) -> Result<(), Refusal> {
        let Some(change) = write.metadata else {
            return Ok(());
        };
        if change
            .old
            .as_ref()
            .is_some_and(|old| *old != self.metadata())
        {
            return Err(Refusal::ValueChanged);
        }
        let attempted_bytes = change.new.as_str().len() as u64;
        if attempted_bytes > write.policy.max_metadata_bytes {
            return Err(Refusal::MetadataTooLarge {
                limit_bytes: write.policy.max_metadata_bytes,
                attempted_bytes,
            });
        }
        Ok(())
    }

    fn metadata(&self) -> Json {
        self.metadata.clone().unwrap_or_else(Json::empty_object)
    }

    pub(super) fn describe(&self) -> Thread {
        Thread {
            stamp: self.stamp,
            size_bytes: self.document.size_bytes(),
            keys: self.document.len(),
            metadata: self.metadata(),
            created_ms: self.created_ms,
            updated_ms: self.updated_ms,
            expires_ms: self.expires_ms,
            ttl: self.ttl,
        }
    }
}
