use super::Spaces;
use crate::kv::answers::{Answer, entry_subject, namespace_subject};
use threadkeep_domain::{EntryKey, IdempotencyKey, Namespace, Precondition, Refusal};
use threadkeep_store::{
    Answered, Entry, EntryTerms, NamespaceChange, NamespaceRecord, NewEntry, Put, Usage,
};

impl Spaces {
    pub(in super::super) fn put(
        &mut self,
        namespace: &Namespace,
        key: &EntryKey,
        new: &NewEntry,
        terms: EntryTerms,
        now_ms: u64,
    ) -> Result<Answered<Put>, Refusal> {
        let subject = entry_subject(namespace, key);
        match self.answers.find(subject, terms.idempotency, now_ms)? {
            Some(Answer::Put(Ok(first))) => return Ok(Answered::replay(*first)),
            Some(Answer::Put(Err(current))) => {
                return Err(Refusal::VersionMismatch { current: *current });
            }
            Some(_) => return Err(Refusal::IdempotencyKeyReused),
            None => {}
        }
        let put = self.put_now(namespace, key, new, terms.precondition, now_ms);
        let answer = match &put {
            Ok(put) => Answer::Put(Ok(*put)),
            Err(Refusal::VersionMismatch { current }) if terms.remembers_mismatch => {
                Answer::Put(Err(*current))
            }
            Err(_) => return put.map(Answered::fresh),
        };
        self.answers.add(subject, terms.idempotency, answer, now_ms);
        put.map(Answered::fresh)
    }

    fn put_now(
        &mut self,
        namespace: &Namespace,
        key: &EntryKey,
        new: &NewEntry,
        precondition: Option<Precondition>,
        now_ms: u64,
    ) -> Result<Put, Refusal> {
        let old = self.check(namespace, key, precondition, now_ms)?;
        let default = self.open(namespace, now_ms).record.default_lifetime;
        let entry = Entry::put(old.as_ref(), new, default, now_ms);
        let (stamp, expires_ms) = (entry.head.stamp, entry.head.expires_ms);
        self.remove(namespace, key);
        self.insert(namespace, key, entry, now_ms);
        Ok(Put { stamp, expires_ms })
    }

    pub(in super::super) fn delete(
        &mut self,
        namespace: &Namespace,
        key: &EntryKey,
        terms: EntryTerms,
        now_ms: u64,
    ) -> Result<Answered<bool>, Refusal> {
        let subject = entry_subject(namespace, key);
        match self.answers.find(subject, terms.idempotency, now_ms)? {
            Some(Answer::Deleted(first)) => return Ok(Answered::replay(*first)),
            Some(_) => return Err(Refusal::IdempotencyKeyReused),
            None => {}
        }
        let old = self.check(namespace, key, terms.precondition, now_ms)?;
        self.remove(namespace, key);
        let answer = Answer::Deleted(old.is_some());
        self.answers.add(subject, terms.idempotency, answer, now_ms);
        Ok(Answered::fresh(old.is_some()))
    }

    pub(in super::super) fn set(
        &mut self,
        namespace: &Namespace,
        change: NamespaceChange,
        idempotency: Option<IdempotencyKey>,
        now_ms: u64,
    ) -> Result<Answered<(NamespaceRecord, Usage)>, Refusal> {
        let subject = namespace_subject(namespace);
        match self.answers.find(subject, idempotency, now_ms)? {
            Some(Answer::Set(record, usage)) => {
                return Ok(Answered::replay((record.clone(), *usage)));
            }
            Some(_) => return Err(Refusal::IdempotencyKeyReused),
            None => {}
        }
        let space = self.open(namespace, now_ms);
        space.record.change(change, now_ms);
        let record = space.record.clone();
        self.check_idle_at(namespace, record.idle.map(|idle| idle.ends_ms));
        let usage = self.usage(namespace, now_ms);
        let answer = Answer::Set(record.clone(), usage);
        self.answers.add(subject, idempotency, answer, now_ms);
        Ok(Answered::fresh((record, usage)))
    }

    pub(in super::super) fn deleted_before(
        &self,
        namespace: &Namespace,
        idempotency: Option<IdempotencyKey>,
        now_ms: u64,
    ) -> Result<Option<Answered<u64>>, Refusal> {
        let subject = namespace_subject(namespace);
        match self.answers.find(subject, idempotency, now_ms)? {
            Some(Answer::NamespaceDeleted(first)) => Ok(Some(Answered::replay(*first))),
            Some(_) => Err(Refusal::IdempotencyKeyReused),
            None => Ok(None),
        }
    }

    /// Remembers the result of deleting a namespace. If two deletions run concurrently, keeps the first result.
    pub(in super::super) fn remember_deleted(
        &mut self,
        namespace: &Namespace,
        idempotency: Option<IdempotencyKey>,
        deleted: u64,
        now_ms: u64,
    ) -> Answered<u64> {
        // ignores errors, because the key was accepted when the deletion began
        if let Ok(Some(first)) = self.deleted_before(namespace, idempotency, now_ms) {
            return first;
        }
        let answer = Answer::NamespaceDeleted(deleted);
        let subject = namespace_subject(namespace);
        self.answers.add(subject, idempotency, answer, now_ms);
        Answered::fresh(deleted)
    }

    /// Records the start of a request that consists of several writes. Returns whether the request had already started.
    pub(in super::super) fn begin(
        &mut self,
        namespace: &Namespace,
        idempotency: IdempotencyKey,
        now_ms: u64,
    ) -> Result<bool, Refusal> {
        let (subject, key) = (namespace_subject(namespace), Some(idempotency));
        match self.answers.find(subject, key, now_ms)? {
            Some(Answer::Begun) => Ok(true),
            Some(_) => Err(Refusal::IdempotencyKeyReused),
            None => {
                self.answers.add(subject, key, Answer::Begun, now_ms);
                Ok(false)
            }
        }
    }
}
