use std::sync::Arc;

use threadkeep_domain::scope::{
    Appended, HistoryItem, HistorySummary, KvAnswer, KvOperation, RecordChange, Removal,
    ScopeWrite, ScopeWritten, TasksChange,
};
use threadkeep_domain::{
    Conditions, Fingerprint, IdempotencyKey, Life, Precondition, Refusal, Stamp, ThreadId,
    ThreadPolicy,
};
use threadkeep_store::{
    Backend, Clock, HistoryFrom, HistoryPage, ScopeParts, ScopeView, WriteError,
};

use super::reference::Reference;
use super::{
    Bound, Expects, Kind, List, Op, PreconditionStep, Removes, Step, ThreadStep, WriteStep,
};
use crate::conformance::room::{Room, Subject};
use crate::conformance::scope_room::{Scope, fill, increment, item, key, record, set, tasks, word};

/// A version, and the index of its life (incarnation of the scope). The player numbers lives as they first appear.
type LocalStamp = (u64, usize);

const CONTENTS: [&str; 3] = ["a", "é\n", "c"];

#[derive(Debug)]
pub(crate) struct Player {
    scope: Scope,
    threads: Threads,
    start_ms: u64,
    lives: Vec<Life>,
    seen: Vec<Stamp>,
    tasks_seen: Vec<Stamp>,
    record_seen: Option<String>,
}

#[derive(Debug)]
enum Threads {
    Stored(Subject, Arc<dyn Backend>),
    Reference(Reference),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    Written {
        stamp: LocalStamp,
        kv_bytes: u64,
        keys: u32,
        answers: Vec<KvAnswer>,
        appended: Vec<Appended>,
        removed: u64,
        taken: Vec<(u64, String, String)>,
        replayed: bool,
    },
    Refused(Refusal),
    Unmet(LocalStamp),
    View(Option<Box<View>>),
    Page(Option<Page>),
    Ended(bool),
    Thread(Option<bool>),
    Nothing,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct View {
    stamp: LocalStamp,
    tasks_stamp: LocalStamp,
    times: [u64; 2],
    expires: Option<u64>,
    rest: ScopeView,
    values: Vec<Option<String>>,
    keys: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Page {
    items: Vec<(u64, u64, String, String)>,
    summary: HistorySummary,
}

impl Player {
    pub(crate) fn new(room: &Room, list: &List) -> Self {
        let thread = room.subject_under(ThreadPolicy {
            ttl: list.thread_ttl,
            tombstone: list.tombstone,
            ..ThreadPolicy::THREAD
        });
        let scope = match list.kind {
            Kind::Thread => room.scope_of(&thread),
            Kind::Other => room.session(),
        };
        let scope = Scope {
            policy: list.policy,
            ..scope
        };
        let threads = Threads::Stored(thread, Arc::clone(&room.backend));
        Self::at(scope, threads, room.clock.now_ms())
    }

    pub(crate) fn of_reference(clock: &Clock, list: &List) -> Self {
        let reference = Reference::new(clock.clone(), list);
        let name = match list.kind {
            Kind::Thread => format!("thread:{}", ThreadId::random()),
            Kind::Other => "session:any".to_owned(),
        };
        let scope = Scope {
            scopes: Arc::new(reference.clone()),
            id: name.parse().unwrap(),
            policy: list.policy,
        };
        Self::at(scope, Threads::Reference(reference), clock.ahead_ms())
    }

    fn at(scope: Scope, threads: Threads, start_ms: u64) -> Self {
        Self {
            scope,
            threads,
            start_ms,
            lives: vec![Life::default()],
            seen: vec![Stamp::default()],
            tasks_seen: vec![Stamp::default()],
            record_seen: None,
        }
    }

    /// Runs step `number`. The caller advances the clock.
    pub(crate) async fn play(&mut self, list: &List, number: usize) -> Outcome {
        match &list.steps[number] {
            Step::Write(step) => self.write(step).await,
            Step::Read { values, all } => self.read(values, *all).await,
            Step::Page(bound, limit) => self.page(*bound, *limit).await,
            Step::End(required) => self.end(*required).await,
            Step::Again(index) if number > 0 => Box::pin(self.play(list, index % number)).await,
            Step::Thread(step) if list.kind == Kind::Thread => self.thread(*step).await,
            Step::Thread(_) | Step::Again(_) | Step::Advance(_) => Outcome::Nothing,
        }
    }

    pub(crate) async fn read_everything(&mut self) -> [Outcome; 3] {
        let view = self.read(&["k", "l", ""], true).await;
        let items = self.page(Bound::After(0), usize::MAX).await;
        [view, items, self.last_page().await]
    }

    async fn write(&mut self, step: &WriteStep) -> Outcome {
        let operations: Vec<_> = step.operations.iter().flat_map(operations).collect();
        let tasks = step.tasks.map(|(count, expected)| TasksChange {
            new: tasks(&CONTENTS[..count]),
            expected: expected.map(|required| stamp(required, &self.tasks_seen)),
        });
        let record = step.record.map(|(new, expects)| self.record(new, expects));
        let items: Vec<HistoryItem> = step.items.iter().map(|(id, it)| item(id, it)).collect();
        let removed_id = match step.removes {
            Some(Removes::Item(id)) => id,
            _ => "none",
        };
        let removed_id = item(removed_id, "1").id;
        let removes = step.removes.map(|removes| match removes {
            Removes::All => Removal::All,
            Removes::Item(_) => Removal::Item(&removed_id),
            Removes::Newest(count) => Removal::Newest(count),
        });
        let write = ScopeWrite {
            makes: step.makes,
            operations: &operations,
            tasks: tasks.as_ref(),
            record: record.as_ref(),
            removes,
            history: &items,
            seals: step.seals,
            ttl: step.ttl,
            conditions: Conditions {
                precondition: step
                    .precondition
                    .map(|required| self.precondition(required)),
                idempotency: step.idempotency.map(|key| idempotency(key, step)),
                ..Conditions::default()
            },
            ..self.scope.blank()
        };
        let written = self.scope.write(&write).await;
        match written {
            Ok(written) => self.written(written),
            Err(refusal) => self.refused(refusal),
        }
    }

    fn written(&mut self, written: ScopeWritten) -> Outcome {
        self.record_stamp(written.stamp);
        Outcome::Written {
            stamp: self.local_stamp(written.stamp),
            kv_bytes: written.kv_bytes,
            keys: written.keys,
            answers: written.answers,
            appended: written.appended,
            removed: written.removed,
            taken: written.taken.iter().map(word).collect(),
            replayed: written.replayed,
        }
    }

    fn refused(&mut self, refusal: Refusal) -> Outcome {
        match refusal {
            Refusal::VersionMismatch { current } => Outcome::Unmet(self.local_stamp(current)),
            other => Outcome::Refused(other),
        }
    }

    async fn read(&mut self, values: &[&str], all: bool) -> Outcome {
        let values: Vec<_> = values.iter().map(|text| key(text)).collect();
        let parts = ScopeParts {
            values: &values,
            keys: all,
            tasks: all,
            record: all,
            ..ScopeParts::default()
        };
        let view = self.scope.read(&parts).await.unwrap();
        Outcome::View(view.map(|view| {
            self.record_stamp(view.stamp);
            if self.tasks_seen.last() != Some(&view.tasks_stamp) {
                self.tasks_seen.push(view.tasks_stamp);
            }
            if all {
                let record = view.record.as_ref();
                let text = |record: &bytes::Bytes| String::from_utf8(record.to_vec()).unwrap();
                self.record_seen = record.map(text);
            }
            self.view(view)
        }))
    }

    fn view(&mut self, view: ScopeView) -> Box<View> {
        let values = view.values.iter();
        let keys = view.keys.iter();
        Box::new(View {
            stamp: self.local_stamp(view.stamp),
            tasks_stamp: self.local_stamp(view.tasks_stamp),
            times: [view.created_ms, view.updated_ms].map(|ms| self.time(ms)),
            expires: view.expires_ms.map(|ms| self.time(ms)),
            values: values
                .map(|value| Some(value.as_ref()?.as_str().to_owned()))
                .collect(),
            keys: keys.map(|key| key.as_str().to_owned()).collect(),
            rest: ScopeView {
                stamp: Stamp::default(),
                tasks_stamp: Stamp::default(),
                created_ms: 0,
                updated_ms: 0,
                expires_ms: None,
                ..view
            },
        })
    }

    async fn page(&self, bound: Bound, limit: usize) -> Outcome {
        let from = match bound {
            Bound::After(seq) => HistoryFrom::After(seq),
            Bound::Before(seq) => HistoryFrom::Before(seq),
        };
        let page = self.scope.page(from, limit).await;
        Outcome::Page(page.map(|page| self.page_outcome(page)))
    }

    async fn last_page(&self) -> Outcome {
        let Some(id) = self.scope.id.thread() else {
            return Outcome::Nothing;
        };
        self.threads.reap().await;
        let from = HistoryFrom::Before(u64::MAX);
        let page = self.scope.scopes.read_final_history(id, None, from, 100);
        Outcome::Page(page.await.unwrap().map(|page| self.page_outcome(page)))
    }

    fn page_outcome(&self, page: HistoryPage) -> Page {
        let items = page.items.into_iter().map(|stored| {
            let value = stored.value.as_str().to_owned();
            (
                stored.seq,
                self.time(stored.at_ms),
                stored.id.to_string(),
                value,
            )
        });
        Page {
            items: items.collect(),
            summary: page.summary,
        }
    }

    async fn end(&mut self, required: Option<PreconditionStep>) -> Outcome {
        let version = required.map(|required| stamp(required, &self.seen).version);
        match self.scope.end_if(version).await {
            Ok(ended) => Outcome::Ended(ended),
            Err(refusal) => self.refused(refusal),
        }
    }

    async fn thread(&self, step: ThreadStep) -> Outcome {
        Outcome::Thread(match (&self.threads, step) {
            (Threads::Reference(reference), ThreadStep::Write) => Some(reference.write_thread()),
            (Threads::Reference(reference), ThreadStep::Destroy) => {
                Some(reference.destroy_thread())
            }
            (Threads::Reference(reference), ThreadStep::Restore) => reference.restore_thread(),
            (Threads::Stored(thread, _), ThreadStep::Write) => {
                Some(thread.try_merge(&[]).await.is_ok())
            }
            (Threads::Stored(thread, _), ThreadStep::Destroy) => {
                Some(thread.destroy().await.existed)
            }
            (Threads::Stored(thread, backend), ThreadStep::Restore) => {
                match backend.restore(&thread.id, None, &thread.policy).await {
                    Ok(restored) => Some(restored.is_some()),
                    Err(WriteError::Refused(_)) => None,
                    Err(WriteError::Store(error)) => panic!("the store failed: {error:?}"),
                }
            }
        })
    }

    fn record_stamp(&mut self, stamp: Stamp) {
        if self.seen.last() != Some(&stamp) {
            self.seen.push(stamp);
        }
    }

    fn local_stamp(&mut self, stamp: Stamp) -> LocalStamp {
        let existing = self.lives.iter().position(|life| *life == stamp.life);
        let index = existing.unwrap_or_else(|| {
            self.lives.push(stamp.life);
            self.lives.len() - 1
        });
        (stamp.version, index)
    }

    fn time(&self, ms: u64) -> u64 {
        (ms + 2_500).saturating_sub(self.start_ms) / 5_000
    }

    fn precondition(&self, required: PreconditionStep) -> Precondition {
        match required {
            PreconditionStep::Exists => Precondition::Exists,
            PreconditionStep::Version(version) => Precondition::Version(version),
            PreconditionStep::Seen(_) => Precondition::Stamp(stamp(required, &self.seen)),
        }
    }

    fn record(&self, new: &str, expects: Option<Expects>) -> RecordChange {
        match expects {
            None => record(new, None),
            Some(Expects::Text(text)) => record(new, Some(text)),
            Some(Expects::LastSeen) => record(new, self.record_seen.as_deref()),
        }
    }
}

impl Threads {
    /// Ends expired threads, because an expired thread does not have an archive until the store ends it.
    async fn reap(&self) {
        let Self::Stored(thread, backend) = self else {
            return;
        };
        let bucket = backend.bucket_of(&thread.id);
        for _ in 0..1_000 {
            let due = backend.due(&[bucket], 100).await.unwrap();
            if due.ids[0].is_empty() {
                return;
            }
            backend.end_due(bucket, &due.ids[0]).await.unwrap();
        }
        panic!("an expired scope stays expired");
    }
}

fn stamp(required: PreconditionStep, seen: &[Stamp]) -> Stamp {
    let newest = seen[seen.len() - 1];
    match required {
        PreconditionStep::Exists => newest,
        PreconditionStep::Version(version) => Stamp { version, ..newest },
        PreconditionStep::Seen(back) => seen[seen.len() - 1 - back % seen.len()],
    }
}

fn operations(op: &Op) -> Vec<KvOperation> {
    match op {
        Op::Set {
            key: text,
            value,
            ttl: new_ttl,
            if_absent: only_if_absent,
        } => {
            let mut operation = set(text, value);
            if let KvOperation::Set { ttl, if_absent, .. } = &mut operation {
                (*ttl, *if_absent) = (*new_ttl, *only_if_absent);
            }
            vec![operation]
        }
        Op::Delete(text) => vec![KvOperation::Delete { key: key(text) }],
        Op::Increment(text, by) => vec![increment(text, *by)],
        Op::Clear => vec![KvOperation::Clear],
        Op::Fill(free_bytes) => {
            let fill = |n: usize| fill(&format!("f{n}"), 32_768 - free_bytes * usize::from(n == 3));
            (0..4).map(fill).collect()
        }
        Op::Many(count) => (0..*count).map(|n| set(&format!("m{n}"), "")).collect(),
    }
}

/// Derives the request's fingerprint from the step, so that equal steps count as the same request.
fn idempotency(key: u8, request: &WriteStep) -> IdempotencyKey {
    IdempotencyKey {
        digest: Fingerprint::of(&[&[key]]),
        request: Fingerprint::of(&[format!("{request:?}").as_bytes()]),
    }
}
