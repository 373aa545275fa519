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
use super::{Bound, Expects, Kind, List, Op, Removes, Step, ThreadStep, Wanted, WriteStep};
use crate::conformance::room::{Room, Subject};
use crate::conformance::scope_room::{Place, fill, increment, item, key, record, set, tasks, word};

/// A version, and the index of its life in the order in which lives were first seen.
type Mark = (u64, usize);

const CONTENTS: [&str; 3] = ["a", "é\n", "c"];

#[derive(Debug)]
pub(crate) struct Player {
    place: Place,
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
        stamp: Mark,
        kv_bytes: u64,
        keys: u32,
        answers: Vec<KvAnswer>,
        appended: Vec<Appended>,
        removed: u64,
        taken: Vec<(u64, String, String)>,
        replayed: bool,
    },
    Refused(Refusal),
    Unmet(Mark),
    View(Option<Box<View>>),
    Page(Option<Page>),
    Ended(bool),
    Thread(Option<bool>),
    Nothing,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct View {
    stamp: Mark,
    tasks_stamp: Mark,
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
        let place = match list.kind {
            Kind::Thread => room.scope_of(&thread),
            Kind::Other => room.session(),
        };
        let place = Place {
            policy: list.policy,
            ..place
        };
        let threads = Threads::Stored(thread, Arc::clone(&room.backend));
        Self::at(place, threads, room.clock.now_ms())
    }

    pub(crate) fn of_reference(clock: &Clock, list: &List) -> Self {
        let reference = Reference::new(clock.clone(), list);
        let scope = match list.kind {
            Kind::Thread => format!("thread:{}", ThreadId::random()),
            Kind::Other => "session:any".to_owned(),
        };
        let place = Place {
            scopes: Arc::new(reference.clone()),
            scope: scope.parse().unwrap(),
            policy: list.policy,
        };
        Self::at(place, Threads::Reference(reference), clock.ahead_ms())
    }

    fn at(place: Place, threads: Threads, start_ms: u64) -> Self {
        Self {
            place,
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
            Step::Page(bound, most) => self.page(*bound, *most).await,
            Step::End(wanted) => self.end(*wanted).await,
            Step::Again(place) if number > 0 => Box::pin(self.play(list, place % number)).await,
            Step::Thread(step) if list.kind == Kind::Thread => self.thread(*step).await,
            Step::Thread(_) | Step::Again(_) | Step::Advance(_) => Outcome::Nothing,
        }
    }

    pub(crate) async fn look(&mut self) -> [Outcome; 3] {
        let view = self.read(&["k", "l", ""], true).await;
        let items = self.page(Bound::After(0), usize::MAX).await;
        [view, items, self.last_page().await]
    }

    async fn write(&mut self, step: &WriteStep) -> Outcome {
        let operations: Vec<_> = step.operations.iter().flat_map(operations).collect();
        let tasks = step.tasks.map(|(count, expected)| TasksChange {
            new: tasks(&CONTENTS[..count]),
            expected: expected.map(|wanted| stamp(wanted, &self.tasks_seen)),
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
                precondition: step.precondition.map(|wanted| self.precondition(wanted)),
                idempotency: step.idempotency.map(|key| idempotency(key, step)),
                ..Conditions::default()
            },
            ..self.place.blank()
        };
        let written = self.place.write(&write).await;
        match written {
            Ok(written) => self.written(written),
            Err(refusal) => self.refused(refusal),
        }
    }

    fn written(&mut self, written: ScopeWritten) -> Outcome {
        self.see(written.stamp);
        Outcome::Written {
            stamp: self.mark(written.stamp),
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
            Refusal::VersionMismatch { current } => Outcome::Unmet(self.mark(current)),
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
        let view = self.place.read(&parts).await.unwrap();
        Outcome::View(view.map(|view| {
            self.see(view.stamp);
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
            stamp: self.mark(view.stamp),
            tasks_stamp: self.mark(view.tasks_stamp),
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

    async fn page(&self, bound: Bound, most: usize) -> Outcome {
        let from = match bound {
            Bound::After(seq) => HistoryFrom::After(seq),
            Bound::Before(seq) => HistoryFrom::Before(seq),
        };
        let page = self.place.page(from, most).await;
        Outcome::Page(page.map(|page| self.words(page)))
    }

    async fn last_page(&self) -> Outcome {
        let Some(id) = self.place.scope.thread() else {
            return Outcome::Nothing;
        };
        self.threads.reap().await;
        let from = HistoryFrom::Before(u64::MAX);
        let page = self.place.scopes.read_final_history(id, None, from, 100);
        Outcome::Page(page.await.unwrap().map(|page| self.words(page)))
    }

    fn words(&self, page: HistoryPage) -> Page {
        let items = page.items.into_iter().map(|kept| {
            let value = kept.value.as_str().to_owned();
            (kept.seq, self.time(kept.at_ms), kept.id.to_string(), value)
        });
        Page {
            items: items.collect(),
            summary: page.summary,
        }
    }

    async fn end(&mut self, wanted: Option<Wanted>) -> Outcome {
        let version = wanted.map(|wanted| stamp(wanted, &self.seen).version);
        match self.place.end_if(version).await {
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

    fn see(&mut self, stamp: Stamp) {
        if self.seen.last() != Some(&stamp) {
            self.seen.push(stamp);
        }
    }

    fn mark(&mut self, stamp: Stamp) -> Mark {
        let known = self.lives.iter().position(|life| *life == stamp.life);
        let place = known.unwrap_or_else(|| {
            self.lives.push(stamp.life);
            self.lives.len() - 1
        });
        (stamp.version, place)
    }

    fn time(&self, ms: u64) -> u64 {
        (ms + 2_500).saturating_sub(self.start_ms) / 5_000
    }

    fn precondition(&self, wanted: Wanted) -> Precondition {
        match wanted {
            Wanted::Exists => Precondition::Exists,
            Wanted::Version(version) => Precondition::Version(version),
            Wanted::Seen(_) => Precondition::Stamp(stamp(wanted, &self.seen)),
        }
    }

    fn record(&self, new: &str, expects: Option<Expects>) -> RecordChange {
        match expects {
            None => record(new, None),
            Some(Expects::Text(text)) => record(new, Some(text)),
            Some(Expects::AsItWas) => record(new, self.record_seen.as_deref()),
        }
    }
}

impl Threads {
    /// Ends expired threads, because a thread has no archive until it is ended.
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

fn stamp(wanted: Wanted, seen: &[Stamp]) -> Stamp {
    let newest = seen[seen.len() - 1];
    match wanted {
        Wanted::Exists => newest,
        Wanted::Version(version) => Stamp { version, ..newest },
        Wanted::Seen(back) => seen[seen.len() - 1 - back % seen.len()],
    }
}

fn operations(op: &Op) -> Vec<KvOperation> {
    match op {
        Op::Set {
            key: text,
            value,
            ttl: its_ttl,
            if_absent: only_if_absent,
        } => {
            let mut operation = set(text, value);
            if let KvOperation::Set { ttl, if_absent, .. } = &mut operation {
                (*ttl, *if_absent) = (*its_ttl, *only_if_absent);
            }
            vec![operation]
        }
        Op::Delete(text) => vec![KvOperation::Delete { key: key(text) }],
        Op::Increment(text, by) => vec![increment(text, *by)],
        Op::Clear => vec![KvOperation::Clear],
        Op::Fill(left) => {
            let fill = |n: usize| fill(&format!("f{n}"), 32_768 - left * usize::from(n == 3));
            (0..4).map(fill).collect()
        }
        Op::Many(count) => (0..*count).map(|n| set(&format!("m{n}"), "")).collect(),
    }
}

/// Derives the fingerprint of the request from the step, so equal steps count as equal requests.
fn idempotency(key: u8, request: &WriteStep) -> IdempotencyKey {
    IdempotencyKey {
        digest: Fingerprint::of(&[&[key]]),
        request: Fingerprint::of(&[format!("{request:?}").as_bytes()]),
    }
}
