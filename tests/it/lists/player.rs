use std::sync::Arc;
use std::time::Duration;

use threadkeep_domain::scope::{HistoryLimit, ScopeId, StoredItem};
use threadkeep_domain::{
    Access, Answer, Conditions, Document, Fingerprint, Fork, Guard, GuardedValue, IdempotencyKey,
    IfExists, Image, Import, Included, Life, MetadataChange, Operation, Owner, OwnerChange,
    Position, Precondition, Refusal, Release, Stamp, TakeTurn, Thread, ThreadId, ThreadPolicy,
    Tombstone, TurnToken, Write, Written,
};
use threadkeep_store::{
    Archive, Backend, CheckpointDeleted, CheckpointHead, CheckpointSaved, Clock, Destroy,
    Destroyed, Found, HistoryFrom, Reader, Rotate, Rotated, Whole, WriteError,
};

use super::history::{History, WATCHED};
use super::{
    Caller, CheckpointStep, CopyStep, Expects, List, LocalStamp, Op, OwnerStep, PreconditionStep,
    ReadStep, Step, TombstoneCheck, WriteStep,
};
use crate::conformance::room::{Room, Subject, delete, increment, json, key, set};
use crate::conformance::scope_room::item;
use crate::conformance::story;

#[derive(Debug)]
pub(crate) struct Player {
    subject: Subject,
    ids: Vec<ThreadId>,
    backend: Arc<dyn Backend>,
    clock: Clock,
    history: History,
    start_ms: u64,
    seen: Vec<Stamp>,
    lives: Vec<Life>,
    version: u64,
    /// Guards that always hold. If set, every write has them, because a store takes no shortcuts for guarded writes.
    extra: Vec<Guard>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Written {
        stamp: LocalStamp,
        size_bytes: u64,
        answers: Vec<Answer>,
        thread: Option<Description>,
        replayed: bool,
    },
    Refused(Refusal),
    Unmet(LocalStamp),
    Destroyed(Destroyed),
    Read(Option<(LocalStamp, String)>),
    Thread(Option<Description>),
    /// The turn was granted by this step or, if `replayed`, by an earlier step with the same idempotency key.
    Granted {
        replayed: bool,
    },
    Copied(String),
    Checkpoint(LocalStamp, String, bool),
    Nothing,
}

/// A thread object. `times` are in units of 5 s since the player was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Description {
    stamp: LocalStamp,
    size_bytes: u64,
    keys: u32,
    metadata: String,
    times: [u64; 3],
    ttl: Duration,
    owner: Option<Owner>,
}

impl Player {
    pub(crate) fn new(room: &Room, policy: ThreadPolicy) -> Self {
        let subject = room.subject_under(policy);
        Self {
            ids: vec![subject.id],
            subject,
            backend: Arc::clone(&room.backend),
            clock: room.clock.clone(),
            history: History::default(),
            start_ms: room.clock.now_ms(),
            seen: vec![Stamp::default()],
            lives: vec![Life::default()],
            version: 0,
            extra: Vec::new(),
        }
    }

    pub(crate) fn without_shortcuts(self) -> Self {
        Self {
            extra: vec![Guard {
                key: key("no list has this key"),
                expected: GuardedValue::NotAnObject,
            }],
            ..self
        }
    }

    /// Runs step `number`. The caller advances the clock.
    pub(crate) async fn play(&mut self, list: &List, number: usize) -> Outcome {
        match &list.steps[number] {
            Step::Write(step) => self.write(step).await,
            step @ (Step::Destroy { .. }
            | Step::TakeTurn { .. }
            | Step::RenewTurn { .. }
            | Step::EndTurn { .. }) => self.end_or_turn(step).await,
            Step::Checkpoint {
                action,
                precondition,
                idempotency,
            } => self.checkpoint(*action, *precondition, *idempotency).await,
            Step::Rotate => self.rotate().await,
            Step::Copy(copy, caller) => match self.copy(copy, access(*caller)).await {
                Ok(found) => found.map_or(Outcome::Nothing, Outcome::Copied),
                Err(error) => self.failed(error),
            },
            Step::Again(index) if number > 0 => Box::pin(self.play(list, index % number)).await,
            Step::Read(step, caller) => {
                let read = self.read(step, access(*caller)).await;
                read.unwrap_or_else(|error| self.failed(error))
            }
            Step::Restore(back) => self.restore(*back).await,
            Step::Reap => {
                self.reap().await;
                Outcome::Nothing
            }
            Step::Watch => {
                let ids = [self.subject.id];
                self.backend.watch(&ids, WATCHED).await.unwrap();
                self.history.watch(self.ahead());
                Outcome::Nothing
            }
            Step::Again(_) | Step::Advance(_) => Outcome::Nothing,
        }
    }

    /// Returns all events and archives of the thread, in a form that is the same for all stores. If the log differs
    /// from the expected events, returns an error that describes the difference.
    pub(crate) async fn story(&mut self) -> Result<Vec<String>, String> {
        self.reap().await;
        if !self.subject.exists().await {
            self.history.miss();
        }
        let bucket = self.backend.bucket_of(&self.subject.id);
        // start a second earlier, because the store's clock may be behind
        let start = Position {
            ms: self.start_ms - 1_000,
            seq: 0,
        };
        let read = self.backend.read_log(&[(bucket, start)], 100_000).await;
        let mut events = read.unwrap().remove(0);
        events.retain(|event| event.thread().is_some_and(|id| self.ids.contains(id)));
        let events: Vec<_> = events
            .into_iter()
            .map(|event| {
                let (_, life) = self.local_stamp(Stamp {
                    version: event.version,
                    life: event.life,
                });
                (event, life)
            })
            .collect();
        self.history.check(&events)?;
        let mut story: Vec<_> = events
            .iter()
            .map(|(event, life)| format!("{} of {life}", story::words(event)))
            .collect();
        for (index, life) in self.lives.clone().into_iter().enumerate() {
            story.extend(self.last_of(index, life).await);
        }
        Ok(story)
    }

    async fn last_of(&self, index: usize, life: Life) -> Option<String> {
        let mut found = None;
        for id in &self.ids {
            let archive = self.backend.get_final(id, life).await.unwrap();
            found = found.or(archive.map(|archive| (id, archive)));
        }
        let (id, Archive { head, state, .. }) = found?;
        let archive = self.backend.get_archive(id, Some(life)).await.unwrap();
        Some(format!(
            "{index} v{} {} {} {} {} {:?} {}",
            head.version,
            head.reason.as_str(),
            head.size_bytes,
            head.metadata.as_str(),
            text(&state),
            head.checkpoints,
            if archive.is_some() { "" } else { "restored" },
        ))
    }

    async fn reap(&self) {
        let bucket = self.backend.bucket_of(&self.subject.id);
        for _ in 0..1_000 {
            let due = self.backend.due(&[bucket], 100).await.unwrap();
            if due.ids[0].is_empty() {
                return;
            }
            self.backend.end_due(bucket, &due.ids[0]).await.unwrap();
        }
        panic!("an expired thread stays expired");
    }

    async fn restore(&mut self, back: Option<usize>) -> Outcome {
        let life = back.map(|back| self.seen_before(back).life);
        let (id, policy) = (&self.subject.id, &self.subject.policy);
        match self.backend.restore(id, life, policy).await {
            Ok(thread) => Outcome::Thread(thread.map(|thread| {
                let stamp = self.local_stamp(thread.stamp);
                self.history.restore(stamp);
                self.description(thread)
            })),
            Err(error) => self.failed(error),
        }
    }

    async fn rotate(&mut self) -> Outcome {
        let rotate = Rotate {
            conditions: Conditions::default(),
            tombstone: self.subject.policy.tombstone,
        };
        match self.subject.store.rotate(&self.subject.id, &rotate).await {
            Ok(Rotated { id, thread, .. }) => Outcome::Thread(thread.map(|thread| {
                self.subject.id = id;
                self.ids.push(id);
                let stamp = self.local_stamp(thread.stamp);
                self.history.rotate(stamp);
                self.description(thread)
            })),
            Err(error) => self.failed(error),
        }
    }

    async fn copy(&self, copy: &CopyStep, access: Access) -> Result<Option<String>, WriteError> {
        let source = self.subject.id;
        let policy = &self.subject.policy;
        let id = match copy {
            CopyStep::Import => {
                let Some(image) = self.backend.export(&source, access).await? else {
                    return Ok(None);
                };
                let id = ThreadId::random();
                let import = Import {
                    image: &image,
                    origin: None,
                    if_exists: IfExists::Fail,
                    has_reservation: true,
                    turn: None,
                    idempotency: None,
                    policy,
                };
                self.backend.import(&id, &import).await?;
                id
            }
            CopyStep::Fork {
                checkpoint,
                parts: [state, scope, history],
                metadata,
                is_near,
                precondition,
                turn,
            } => {
                let bucket = self.backend.bucket_of(&source);
                let is_fit = |id: &ThreadId| (self.backend.bucket_of(id) == bucket) == *is_near;
                let mut ids = std::iter::repeat_with(ThreadId::random);
                let id = ids.find(is_fit).unwrap();
                let metadata = metadata.map(json);
                let fork = Fork {
                    included: Included {
                        state: *state,
                        scope: *scope,
                        history: *history,
                    },
                    checkpoint: *checkpoint,
                    until: None,
                    metadata: metadata.as_ref(),
                    owner: None,
                    has_reservation: true,
                    ttl: None,
                    policy,
                    conditions: Conditions {
                        access,
                        precondition: precondition.map(|required| self.precondition(required)),
                        turn: turn.map(token),
                        idempotency: None,
                    },
                };
                self.backend.fork(&source, &id, &fork).await?;
                id
            }
        };
        let image = self.backend.export(&id, Access::All).await?;
        Ok(image.map(|image| describe_image(&image).replace(source.as_str(), "the source")))
    }

    async fn checkpoint(
        &mut self,
        action: CheckpointStep,
        precondition: Option<PreconditionStep>,
        key: Option<u8>,
    ) -> Outcome {
        let request = (action, precondition.map(|required| format!("{required:?}")));
        let conditions = Conditions {
            precondition: precondition.map(|required| self.precondition(required)),
            idempotency: key.map(|key| idempotency(key, &request)),
            ..Conditions::default()
        };
        let (backend, id) = (Arc::clone(&self.backend), self.subject.id);
        match action {
            CheckpointStep::Save => match backend.save_checkpoint(&id, None, &conditions).await {
                Ok(CheckpointSaved {
                    stamp,
                    head,
                    replayed,
                }) => Outcome::Checkpoint(self.local_stamp(stamp), shown(&head), replayed),
                Err(error) => self.failed(error),
            },
            CheckpointStep::List => {
                let found = backend.list_checkpoints(&id, Access::All).await.unwrap();
                Outcome::Read(found.map(|found| {
                    let heads: Vec<_> = found.content.iter().map(shown).collect();
                    (self.local_stamp(found.stamp), format!("{heads:?}"))
                }))
            }
            CheckpointStep::Get(number) => {
                let found = backend.get_checkpoint(&id, Access::All, number).await;
                Outcome::Read(found.unwrap().map(|Found { stamp, content }| {
                    let Whole { state, metadata } = content.content;
                    let text = format!(
                        "{} {} {}",
                        shown(&content.head),
                        metadata.as_str(),
                        text(&state)
                    );
                    (self.local_stamp(stamp), text)
                }))
            }
            CheckpointStep::Restore(number) => {
                let policy = self.subject.policy;
                let write = Write {
                    describe: true,
                    conditions: Conditions {
                        precondition: conditions.precondition,
                        idempotency: conditions.idempotency,
                        ..Conditions::default()
                    },
                    ..Write::new(&policy)
                };
                match backend.restore_checkpoint(&id, number, &write).await {
                    Ok(written) => self.written(written),
                    Err(error) => self.failed(error),
                }
            }
            CheckpointStep::Delete(number) => {
                match backend.delete_checkpoint(&id, number, &conditions).await {
                    Ok(CheckpointDeleted { stamp, replayed }) => {
                        Outcome::Checkpoint(self.local_stamp(stamp), "deleted".into(), replayed)
                    }
                    Err(error) => self.failed(error),
                }
            }
        }
    }

    fn ahead(&self) -> Duration {
        Duration::from_millis(self.clock.ahead_ms())
    }

    fn seen_before(&self, back: usize) -> Stamp {
        self.seen[self.seen.len() - 1 - back % self.seen.len()]
    }

    /// Returns the state, and records its stamp as seen.
    pub(crate) async fn state(&mut self) -> Outcome {
        let id = &self.subject.id;
        let found = self.subject.store.get_state(id, Reader::ALL).await.unwrap();
        let stamp = found.as_ref().map_or(Stamp::default(), |found| found.stamp);
        self.version = stamp.version;
        if self.seen.last() != Some(&stamp) {
            self.seen.push(stamp);
        }
        let state = found.map(|found| text(&found.content));
        Outcome::Read(state.map(|state| (self.local_stamp(stamp), state)))
    }

    async fn write(&mut self, step: &WriteStep) -> Outcome {
        let operations: Vec<_> = step.operations.iter().map(operation).collect();
        let mut guards = self.extra.clone();
        for (key_text, expects) in &step.guards {
            guards.push(Guard {
                key: key(key_text),
                expected: self.expected(key_text, *expects).await,
            });
        }
        let metadata = match &step.metadata {
            Some((new, old)) => Some(self.metadata_change(new, *old).await),
            None => None,
        };
        let owner = match &step.owner {
            None => OwnerChange::None,
            Some(OwnerStep::Bind(owner)) => OwnerChange::Bind(owner),
            Some(OwnerStep::Set(owner)) => OwnerChange::Set(owner),
            Some(OwnerStep::Clear) => OwnerChange::Clear,
        };
        let write = Write {
            owner,
            operations: &operations,
            guards: &guards,
            metadata: metadata.as_ref(),
            ttl: step.ttl,
            tombstone: self.tombstone(step.tombstone),
            describe: step.describe,
            history: HistoryLimit {
                max_bytes: 600,
                drops_oldest: step.ttl.is_some(),
            },
            conditions: Conditions {
                access: access(step.caller),
                turn: step.turn.map(token),
                precondition: step
                    .precondition
                    .map(|required| self.precondition(required)),
                idempotency: step.idempotency.map(|key| idempotency(key, step)),
            },
            ..self.subject.blank()
        };
        match self.subject.write(&write).await {
            Ok(written) => self.written(written),
            Err(refusal) => self.refused(refusal),
        }
    }

    async fn end_or_turn(&mut self, step: &Step) -> Outcome {
        let id = &self.subject.id;
        let granted = match step {
            Step::Destroy {
                caller,
                precondition,
                idempotency: key,
                turn,
            } => {
                let destroy = Destroy {
                    conditions: Conditions {
                        precondition: precondition.map(|required| self.precondition(required)),
                        access: access(*caller),
                        turn: turn.map(token),
                        idempotency: key.map(|key| idempotency(key, step)),
                    },
                    ..self.subject.end()
                };
                return match self.subject.destroy_by(&destroy).await {
                    Ok(destroyed) => {
                        if !destroyed.replayed {
                            self.history.destroy(destroyed.existed);
                        }
                        Outcome::Destroyed(destroyed)
                    }
                    Err(refusal) => self.refused(refusal),
                };
            }
            Step::TakeTurn {
                turn,
                exclusive,
                ttl,
                idempotency: key,
                caller,
            } => {
                let take = TakeTurn {
                    token: token(*turn),
                    ttl: *ttl,
                    exclusive: *exclusive,
                    waits: false,
                    idempotency: key.map(|key| idempotency(key, step)),
                };
                self.backend.take_turn(id, access(*caller), &take).await
            }
            Step::RenewTurn { turn, ttl, caller } => {
                let renewed = self
                    .backend
                    .renew_turn(id, access(*caller), token(*turn), *ttl);
                renewed.await
            }
            Step::EndTurn { turn, caller } => {
                let ended =
                    self.backend
                        .end_turn(id, access(*caller), token(*turn), Release::Complete);
                return match ended.await {
                    Ok(()) => Outcome::Nothing,
                    Err(error) => self.failed(error),
                };
            }
            _ => return Outcome::Nothing,
        };
        match granted {
            Ok(granted) => Outcome::Granted {
                replayed: granted.replayed,
            },
            Err(error) => self.failed(error),
        }
    }

    fn failed(&mut self, error: WriteError) -> Outcome {
        match error {
            WriteError::Refused(refusal) => self.refused(refusal),
            WriteError::Store(error) => panic!("the store failed: {error:?}"),
        }
    }

    fn refused(&mut self, refusal: Refusal) -> Outcome {
        match refusal {
            Refusal::VersionMismatch { current } => Outcome::Unmet(self.local_stamp(current)),
            // drop the times, which have millisecond precision and differ between stores
            Refusal::TurnTaken { .. } => Outcome::Refused(Refusal::TurnTaken {
                ends_ms: 0,
                left_ms: 0,
            }),
            other => Outcome::Refused(other),
        }
    }

    async fn read(&mut self, step: &ReadStep, access: Access) -> Result<Outcome, WriteError> {
        let (store, id) = (&self.subject.store, &self.subject.id);
        let read = match step {
            ReadStep::Values(keys) => {
                let keys: Vec<_> = keys.iter().copied().map(key).collect();
                let found = store.get_values(id, access.into(), &keys).await?;
                found.map(|found| {
                    let values = found.content.iter();
                    let texts: Vec<_> = values.map(|value| value.as_deref().map(text)).collect();
                    (found.stamp, format!("{texts:?}"))
                })
            }
            ReadStep::Value(name, slice) => {
                let found = store
                    .get_value(id, access.into(), &key(name), *slice)
                    .await?;
                found.map(|found| {
                    let part = found.content.map(|part| (text(&part.json), part.total));
                    (found.stamp, format!("{part:?}"))
                })
            }
            ReadStep::Keys => {
                let found = store.get_keys(id, access.into()).await?;
                found.map(|found| {
                    let keys: Vec<_> = found.content.iter().map(|key| key.as_str()).collect();
                    (found.stamp, format!("{keys:?}"))
                })
            }
            ReadStep::History => {
                let scope = ScopeId::Thread(*id);
                let (from, scopes) = (HistoryFrom::After(0), &self.backend);
                let page = scopes.read_history(&scope, Reader::ALL, from, 100).await;
                page.unwrap().map(|page| {
                    let items = page
                        .items
                        .iter()
                        .map(|stored| (stored.seq, stored.id.as_str(), stored.value.as_str()));
                    let items: Vec<_> = items.collect();
                    (Stamp::default(), format!("{items:?} {:?}", page.summary))
                })
            }
            ReadStep::Thread => {
                let thread = store.get_thread(id, access.into()).await?;
                let thread = thread.map(|thread| self.description(thread));
                return Ok(Outcome::Thread(thread));
            }
        };
        let read = read.map(|(stamp, text)| (self.local_stamp(stamp), text));
        Ok(Outcome::Read(read))
    }

    fn written(&mut self, written: Written) -> Outcome {
        let stamp = self.local_stamp(written.stamp);
        if !written.replayed {
            let is_new =
                |answer: &Answer| matches!(answer, Answer::Appended(_, new) if !new.repeated);
            let appends = written.answers.iter().any(is_new);
            self.history.write(stamp, appends, self.ahead());
        }
        Outcome::Written {
            stamp,
            size_bytes: written.size_bytes,
            answers: written.answers,
            thread: written.thread.map(|thread| self.description(thread)),
            replayed: written.replayed,
        }
    }

    fn description(&mut self, thread: Thread) -> Description {
        let time = |ms: u64| (ms + 2_500).saturating_sub(self.start_ms) / 5_000;
        Description {
            times: [thread.created_ms, thread.updated_ms, thread.expires_ms].map(time),
            stamp: self.local_stamp(thread.stamp),
            size_bytes: thread.size_bytes,
            keys: thread.keys,
            metadata: thread.metadata.as_str().to_owned(),
            ttl: thread.ttl,
            owner: thread.owner,
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

    fn tombstone(&self, check: TombstoneCheck) -> Tombstone {
        match check {
            TombstoneCheck::Always => Tombstone::Enforced,
            TombstoneCheck::Never => Tombstone::Ignored,
            TombstoneCheck::After(back) => Tombstone::EnforcedAfter(self.seen_before(back).life),
        }
    }

    fn precondition(&self, required: PreconditionStep) -> Precondition {
        match required {
            PreconditionStep::Exists => Precondition::Exists,
            PreconditionStep::Version(version) => Precondition::Version(version),
            PreconditionStep::CurrentVersion => Precondition::Version(self.version),
            PreconditionStep::Seen(back) => Precondition::Stamp(self.seen_before(back)),
        }
    }

    async fn expected(&self, key: &str, expects: Expects) -> GuardedValue {
        match expects {
            Expects::Object(object) => GuardedValue::Object(json(object)),
            Expects::NotAnObject => GuardedValue::NotAnObject,
            Expects::Current => match self.subject.value(key).await {
                Some(value) if value.starts_with('{') => GuardedValue::Object(json(&value)),
                _ => GuardedValue::NotAnObject,
            },
        }
    }

    async fn metadata_change(&self, new: &str, old: Option<Expects>) -> MetadataChange {
        let old = match old {
            None => None,
            Some(Expects::Object(object)) => Some(json(object)),
            Some(Expects::NotAnObject) => Some(json("{}")),
            Some(Expects::Current) => {
                let thread = self.subject.thread().await;
                Some(thread.map_or_else(|| json("{}"), |thread| thread.metadata))
            }
        };
        MetadataChange {
            new: json(new),
            old,
        }
    }
}

fn operation(op: &Op) -> Operation {
    match op {
        Op::Set(key, value) => set(key, value),
        Op::Delete(key) => delete(key),
        Op::Clear => Operation::Clear,
        Op::Push(name, element, max_records, mismatch) => Operation::Push {
            key: key(name),
            value: json(element),
            max_records: *max_records,
            mismatch: *mismatch,
        },
        Op::Pop(name, count) => Operation::Pop {
            key: key(name),
            count: *count,
        },
        Op::Increment(key, by) => increment(key, *by),
        Op::Append(id, value) => Operation::Append(item(id, value)),
    }
}

fn access(caller: Caller) -> Access {
    match caller {
        Caller::BackEnd => Access::All,
        Caller::Unnamed => Access::Unowned,
        Caller::Owner(name) => Access::Of(Owner::new(name).unwrap().tag()),
    }
}

fn token(turn: u8) -> TurnToken {
    // a token of zeros is malformed
    format!("turn_1{turn:031x}").parse().unwrap()
}

/// Derives the request's fingerprint from the step, so that equal steps count as the same request.
fn idempotency(key: u8, request: &impl std::fmt::Debug) -> IdempotencyKey {
    IdempotencyKey {
        digest: Fingerprint::of(&[&[key]]),
        request: Fingerprint::of(&[format!("{request:?}").as_bytes()]),
    }
}

fn describe_image(image: &Image) -> String {
    let Image {
        thread,
        state,
        scope,
        checkpoints,
        turns,
        effects,
    } = image;
    let of_state = |state: &Document| {
        let mut json = Vec::new();
        state.write_json(&mut json);
        String::from_utf8(json).unwrap()
    };
    let scope = scope.as_ref().map(|scope| {
        let item = |item: &StoredItem| format!("{} {} {}", item.seq, item.id, item.value.as_str());
        let items: Vec<_> = scope.items.iter().map(item).collect();
        (scope.version, scope.history(), items)
    });
    let saved = checkpoints.saved.iter().map(|saved| {
        let (metadata, state) = (saved.metadata.as_str(), of_state(&saved.state));
        format!("{} v{} {metadata} {state}", saved.number, saved.version)
    });
    format!(
        "v{} {} {} {} {:?} {:?} {} {scope:?} {turns:?} {effects:?} {} {:?}",
        thread.stamp.version,
        thread.size_bytes,
        thread.keys,
        thread.metadata.as_str(),
        thread.ttl,
        thread.owner,
        of_state(state),
        checkpoints.last,
        saved.collect::<Vec<_>>(),
    )
}

fn shown(head: &CheckpointHead) -> String {
    format!("{} v{} {}", head.number, head.version, head.size_bytes)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
