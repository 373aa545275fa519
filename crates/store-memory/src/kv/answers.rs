use std::collections::{BTreeSet, HashMap};

use crate::threads::records::{Records, Remembered};
use threadkeep_domain::heap::Heap;
use threadkeep_domain::{EntryKey, Fingerprint, IdempotencyKey, Namespace, Refusal, Stamp, heap};
use threadkeep_store::{NamespaceRecord, Put, Usage};

#[derive(Debug)]
pub(crate) enum Answer {
    /// The outcome of a put, or the entry's version and life if the precondition failed.
    Put(Result<Put, Stamp>),
    /// The outcome of a deletion; true if the entry existed.
    Deleted(bool),
    Set(NamespaceRecord, Usage),
    NamespaceDeleted(u64),
    /// The start of a request with several writes.
    Begun,
}

#[derive(Debug, Default)]
pub(crate) struct Answers {
    by_subject: HashMap<Fingerprint, Records<Answer>>,
    /// Subjects by the time of the next check for expired results.
    due: BTreeSet<(u64, Fingerprint)>,
    heap_bytes: u64,
}

pub(crate) fn entry_subject(namespace: &Namespace, key: &EntryKey) -> Fingerprint {
    Fingerprint::of(&[namespace.as_str().as_bytes(), key.as_str().as_bytes()])
}

pub(crate) fn namespace_subject(namespace: &Namespace) -> Fingerprint {
    Fingerprint::of(&[namespace.as_str().as_bytes()])
}

impl Answers {
    pub(crate) fn len(&self) -> usize {
        self.by_subject.len()
    }

    /// Returns whether a result is remembered for `key`. If so, a write with `key` is a retry, which does not add data.
    pub(crate) fn has_answer(
        &self,
        subject: Fingerprint,
        key: Option<IdempotencyKey>,
        now_ms: u64,
    ) -> bool {
        let records = self.by_subject.get(&subject);
        key.zip(records)
            .is_some_and(|(key, records)| records.has_answer(key, now_ms))
    }

    pub(crate) fn find(
        &self,
        subject: Fingerprint,
        key: Option<IdempotencyKey>,
        now_ms: u64,
    ) -> Result<Option<&Answer>, Refusal> {
        let records = self.by_subject.get(&subject);
        match key.zip(records) {
            Some((key, records)) if records.ends_ms() > now_ms => records.find(key, now_ms),
            _ => Ok(None),
        }
    }

    pub(crate) fn add(
        &mut self,
        subject: Fingerprint,
        key: Option<IdempotencyKey>,
        answer: Answer,
        now_ms: u64,
    ) {
        let Some(key) = key else {
            return;
        };
        let records = self.by_subject.entry(subject).or_default();
        let is_new = records.ends_ms() == 0;
        let before = records.heap_bytes();
        records.sweep(now_ms);
        records.add(key, answer, now_ms, now_ms);
        self.heap_bytes = self.heap_bytes + records.heap_bytes() - before;
        if is_new {
            self.due.insert((records.ends_ms(), subject));
        }
    }

    /// Moves expired results of up to `limit` subjects into `removed`. Returns whether more expired results may remain.
    pub(crate) fn sweep(
        &mut self,
        now_ms: u64,
        limit: usize,
        removed: &mut Vec<Records<Answer>>,
    ) -> bool {
        for _ in 0..limit {
            match self.due.first() {
                Some((due_ms, _)) if *due_ms <= now_ms => {}
                _ => return false,
            }
            let Some((_, subject)) = self.due.pop_first() else {
                return false;
            };
            let ends_ms = self.by_subject.get(&subject).map(Records::ends_ms);
            match ends_ms {
                Some(ends_ms) if ends_ms > now_ms => drop(self.due.insert((ends_ms, subject))),
                _ => {
                    if let Some(records) = self.by_subject.remove(&subject) {
                        self.heap_bytes -= records.heap_bytes();
                        removed.push(records);
                    }
                }
            }
        }
        if self.by_subject.len() < self.by_subject.capacity() / 4 {
            self.by_subject.shrink_to_fit();
        }
        true
    }
}

impl Remembered for Answer {
    fn cost_bytes(&self) -> u64 {
        8
    }
}

/// Counts a namespace's name once per reference, even though the name is shared.
impl Heap for Answer {
    fn heap_bytes(&self) -> u64 {
        match self {
            Self::Set(record, _) => heap::block(16 + record.namespace.as_str().len()),
            _ => 0,
        }
    }
}

impl Heap for Answers {
    fn heap_bytes(&self) -> u64 {
        heap::table::<(Fingerprint, Records<Answer>)>(self.by_subject.capacity())
            + heap::tree::<(u64, Fingerprint)>(self.due.len())
            + self.heap_bytes
    }
}
