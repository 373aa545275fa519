use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use reqwest::Method;

use super::Written;
use super::book::{Book, Fate};
use crate::account::{Tally, lock};
use crate::answer::Wrong;
use crate::ask::Ask;
use crate::http::{Failure, Http};
use crate::made::{Made, make_thread};
use crate::push_id::PushId;
use crate::state::{Op, State};
use crate::thread_ref::ThreadRef;

pub(super) const LIST: &str = "log";
pub(super) const TOTAL: &str = "total";
/// The key for the conditional writes.
pub(super) const ROUND: &str = "round";

#[derive(Debug)]
pub(super) struct HotThread {
    pub(super) number: u32,
    pub(super) thread_ref: ThreadRef,
    size: AtomicU64,
    pub(super) book: Mutex<Book>,
}

impl HotThread {
    pub(super) async fn create(http: &mut Http<'_>, number: u32) -> Result<Self, Failure> {
        let mut state = State::default();
        for (key, value) in [(LIST, "[]"), (ROUND, "0"), (TOTAL, "0")] {
            state.apply(&Op::Set {
                key: key.to_owned(),
                value: value.into(),
            });
        }
        let Made { id, .. } = make_thread(http, "make a hot thread", &state).await?;
        let thread_ref = match http.run.api_key {
            Some(_) => ThreadRef::ById(id.id),
            None => ThreadRef::Signed(id),
        };
        Ok(Self {
            number,
            thread_ref,
            size: AtomicU64::new(0),
            book: Mutex::default(),
        })
    }

    pub(super) fn ask(&self, method: Method, name: &'static str, path: &str) -> Ask {
        Ask::of(method, name, &self.thread_ref, path)
    }

    pub(super) fn note_size(&self, bytes: u64) {
        self.size.fetch_max(bytes, Ordering::Relaxed);
    }

    /// Returns the largest size that an answer reported.
    pub(super) fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    pub(super) fn is_broken(&self) -> bool {
        lock(&self.book).is_broken
    }

    pub(super) fn note_read(&self, failure: Failure) {
        if matches!(failure, Failure::Wrong { .. }) {
            lock(&self.book).is_broken = true;
        }
    }

    pub(super) fn note_push(
        &self,
        http: &Http<'_>,
        ask: &Ask,
        push_id: PushId,
        pushed: &Result<Written, Failure>,
    ) {
        let version = pushed.map(|written| written.version);
        match self.note(http, ask, version) {
            Fate::Done(version) => {
                lock(&self.book).pushes.acknowledge(push_id, version);
                let count = |tally: &mut Tally| tally.pushes.acknowledged += 1;
                http.run.account.count(count);
            }
            Fate::Open => {
                lock(&self.book).pushes.leave_open(push_id);
                let count = |tally: &mut Tally| tally.pushes.unacknowledged += 1;
                http.run.account.count(count);
            }
            Fate::NotDone => {}
        }
    }

    pub(super) fn note_increment(
        &self,
        http: &Http<'_>,
        ask: &Ask,
        added: &Result<Written, Failure>,
    ) {
        let fate = self.note(http, ask, added.map(|written| written.version));
        let sum = added.ok().and_then(|written| written.value);
        let mut book = lock(&self.book);
        let noted = book.sums.note("a sum", &fate, sum);
        drop(book);
        note_duplicate(http, ask, noted);
    }

    /// Notes the outcome of a conditional write. `Ok(None)` means that another agent wrote first.
    pub(super) fn note_round(
        &self,
        http: &Http<'_>,
        ask: &Ask,
        round: u64,
        written: &Result<Option<u64>, Failure>,
    ) {
        let version = match written {
            Ok(None) => {
                http.run.account.count(|tally| tally.conflicts += 1);
                return;
            }
            Ok(Some(version)) => Ok(*version),
            Err(failure) => Err(*failure),
        };
        let fate = self.note(http, ask, version);
        let mut book = lock(&self.book);
        let noted = book
            .rounds
            .note("a round", &fate, version.ok().and(Some(round)));
        drop(book);
        note_duplicate(http, ask, noted);
    }

    fn note(&self, http: &Http<'_>, ask: &Ask, version: Result<u64, Failure>) -> Fate {
        let fate = match version {
            Ok(version) => Fate::Done(Some(version)),
            Err(Failure::Wrong {
                is_acknowledged: true,
            }) => Fate::Done(None),
            Err(
                Failure::Wrong {
                    is_acknowledged: false,
                }
                | Failure::Unanswered { may_be_done: true },
            ) => Fate::Open,
            Err(Failure::Unanswered { may_be_done: false }) => Fate::NotDone,
        };
        let mut book = lock(&self.book);
        book.is_broken |= matches!(version, Err(Failure::Wrong { .. }));
        let noted = book.versions.note("a version", &fate, version.ok());
        drop(book);
        note_duplicate(http, ask, noted);
        fate
    }
}

fn note_duplicate(http: &Http<'_>, ask: &Ask, noted: Result<(), Wrong>) {
    if let Err(wrong) = noted {
        http.note_wrong(ask, &wrong);
    }
}
