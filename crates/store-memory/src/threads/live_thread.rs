use std::time::Duration;

use super::held_checkpoints::HeldCheckpoints;
use super::thread_lists::ListPosition;
use threadkeep_domain::effects::Effects;
use threadkeep_domain::heap::Heap;
use threadkeep_domain::scope::{ScopePolicy, ScopeWrite};
use threadkeep_domain::threads::turn::{LastTurn, check_turn};
use threadkeep_domain::{
    Answer, CheckpointImages, CheckpointName, Document, Image, Import, Json, Life, Owner, OwnerTag,
    Refusal, Stamp, Thread, ThreadPolicy, TurnGranted, TurnToken, Write, Written, appends, heap,
    settles,
};
use threadkeep_store::held_scope::{HeldScope, ScopeDone};
use threadkeep_store::{Checkpoint, CheckpointHead, MOVES_AFTER_MS, Whole, millis};

#[derive(Debug)]
pub(crate) struct LiveThread {
    pub(crate) stamp: Stamp,
    pub(crate) document: Document,
    pub(crate) scope: Option<Box<HeldScope>>,
    pub(crate) turn: Option<Box<LastTurn>>,
    pub(crate) effects: Option<Box<Effects>>,
    pub(crate) saved: Option<Box<HeldCheckpoints>>,
    pub(crate) sequence: u64,
    metadata: Option<Json>,
    owner: Option<Owner>,
    created_ms: u64,
    updated_ms: u64,
    ttl: Duration,
    /// End of the absolute lifetime, in Unix milliseconds.
    ends_ms: u64,
    expires_ms: u64,
}

impl LiveThread {
    /// Builds a new life at version 0. `sequence` is the sequence number of the previous life's last event.
    pub(crate) fn new(policy: &ThreadPolicy, sequence: u64, now_ms: u64) -> Self {
        Self {
            stamp: Stamp {
                version: 0,
                life: Life::random(),
            },
            document: Document::default(),
            scope: None,
            turn: None,
            effects: None,
            saved: None,
            sequence,
            metadata: None,
            owner: None,
            created_ms: now_ms,
            updated_ms: now_ms,
            ttl: policy.ttl,
            ends_ms: ends_ms(policy, now_ms),
            expires_ms: now_ms,
        }
    }

    /// Starts a new life with the content of this ended life. `sequence` is the sequence number of the id's last event.
    ///
    /// Moves the scope and the effects, which the ended life does not need. Copies the rest, except the checkpoints and
    /// the holder of the turn.
    pub(crate) fn revive(&mut self, policy: &ThreadPolicy, sequence: u64, now_ms: u64) -> Self {
        let life = Life::random();
        let scope = self.scope.take();
        let mut revived = Self {
            stamp: Stamp {
                version: self.stamp.version + 1,
                life,
            },
            document: self.document.clone(),
            scope: scope.map(|scope| Box::new(scope.reborn(life))),
            turn: self.turn.as_deref().and_then(LastTurn::without_holder),
            effects: self.effects.take(),
            saved: None,
            sequence,
            metadata: self.metadata.clone(),
            owner: self.owner.clone(),
            updated_ms: now_ms,
            ends_ms: ends_ms(policy, now_ms),
            ..*self
        };
        revived.slide(now_ms);
        revived
    }

    pub(crate) fn created_ms(&self) -> u64 {
        self.created_ms
    }

    /// Builds a life from an exported image. Call [`Self::begin`] to start the life.
    pub(crate) fn of_image(import: &Import<'_>) -> Self {
        let Image {
            thread,
            state,
            scope,
            checkpoints,
            turns,
            effects,
        } = import.image;
        let life = Life::random();
        let scope = scope.as_ref();
        Self {
            stamp: Stamp {
                version: thread.stamp.version,
                life,
            },
            document: state.clone(),
            scope: scope.map(|scope| Box::new(HeldScope::of_image(scope, life))),
            turn: LastTurn::after(*turns),
            effects: Effects::of_images(effects, *turns),
            saved: HeldCheckpoints::of_image(checkpoints).map(Box::new),
            sequence: 0,
            metadata: Some(thread.metadata.clone()),
            owner: thread.owner.clone(),
            created_ms: thread.created_ms,
            updated_ms: thread.updated_ms,
            ttl: thread.ttl,
            ends_ms: 0,
            expires_ms: 0,
        }
    }

    /// Starts the life. `sequence` is the sequence number of the previous life's last event.
    pub(crate) fn begin(&mut self, import: &Import<'_>, sequence: u64, now_ms: u64) {
        if import.origin.is_some() {
            self.created_ms = now_ms;
            self.updated_ms = now_ms;
        }
        self.sequence = sequence;
        self.ends_ms = ends_ms(import.policy, now_ms);
        self.slide(now_ms);
    }

    /// Exports the thread. The caller must [parse the checkpoints](HeldCheckpoints::image) afterwards.
    pub(crate) fn image(&self, now_ms: u64) -> (Image, Option<HeldCheckpoints>) {
        let scope = self.scope.as_ref();
        let image = Image {
            thread: self.describe(),
            state: self.document.clone(),
            scope: scope.map(|scope| scope.image(now_ms)),
            checkpoints: CheckpointImages::default(),
            turns: self
                .turn
                .as_deref()
                .map_or_else(Default::default, LastTurn::numbers),
            effects: self
                .effects
                .as_ref()
                .map_or_else(Vec::new, |effects| effects.images()),
        };
        (image, self.saved.as_deref().cloned())
    }

    pub(crate) fn expires_ms(&self) -> u64 {
        self.expires_ms
    }

    pub(crate) fn slide(&mut self, now_ms: u64) {
        self.expires_ms = now_ms.saturating_add(millis(self.ttl)).min(self.ends_ms);
    }

    pub(crate) fn write(&mut self, write: &Write<'_>, now_ms: u64) -> Result<Written, Refusal> {
        self.document.check(write.guards)?;
        self.check_metadata(write)?;
        let (mut answers, changes) = self.document.plan(write.operations, write.policy)?;
        self.check_reservation(write)?;
        let settled = self.check_settles(write, now_ms)?;
        // no later step can fail, and if this step fails, the thread is unchanged
        self.append(write, &mut answers, now_ms)?;
        self.document.commit(changes);
        self.settle_all(write, settled, &mut answers);
        if let Some(change) = write.metadata {
            self.metadata = Some(change.new.clone());
        }
        Ok(self.finish(write, answers, now_ms))
    }

    /// If the write gives the thread to a different owner, checks that the thread is reserved for that owner.
    pub(crate) fn check_reservation(&self, write: &Write<'_>) -> Result<(), Refusal> {
        let owner = write.owner.apply(self.owner.as_ref());
        match write.has_reservation || owner.is_none() || owner == self.owner.as_ref() {
            true => Ok(()),
            false => Err(Refusal::NoReservation),
        }
    }

    pub(crate) fn belongs_to(&self, owner: &Owner) -> bool {
        self.owner.as_ref() == Some(owner)
    }

    fn finish(&mut self, write: &Write<'_>, answers: Vec<Answer>, now_ms: u64) -> Written {
        self.owner = write.owner.apply(self.owner.as_ref()).cloned();
        self.ttl = write.ttl.unwrap_or(self.ttl);
        self.stamp.version += 1;
        self.updated_ms = now_ms;
        self.slide(now_ms);
        Written {
            stamp: self.stamp,
            size_bytes: self.document.size_bytes(),
            answers,
            thread: write.describe.then(|| self.describe()),
            replayed: false,
        }
    }

    pub(crate) fn write_scope(
        &mut self,
        write: &ScopeWrite<'_>,
        now_ms: u64,
    ) -> Result<ScopeDone, Refusal> {
        let done = match &mut self.scope {
            Some(scope) => scope.write(write, now_ms)?,
            None => {
                let mut scope = Box::new(HeldScope::new(self.stamp.life, now_ms));
                let done = scope.write(write, now_ms)?;
                self.scope = Some(scope);
                done
            }
        };
        let mut appended = done.written.appended.iter();
        let grows = appended.any(|appended| !appended.repeated);
        if grows && self.owner.is_some() && now_ms >= self.updated_ms + MOVES_AFTER_MS {
            self.updated_ms = now_ms;
        }
        self.slide(now_ms);
        Ok(done)
    }

    /// Appends either all history items of a write or none. Writes the results of the operations to `answers`.
    fn append(
        &mut self,
        write: &Write<'_>,
        answers: &mut [Answer],
        now_ms: u64,
    ) -> Result<(), Refusal> {
        let (indexes, items): (Vec<_>, Vec<_>) = appends(write.operations)
            .map(|(index, item)| (index, item.clone()))
            .unzip();
        if items.is_empty() {
            return Ok(());
        }
        let policy = ScopePolicy::of_thread(write.history);
        let of_scope = ScopeWrite {
            history: &items,
            ..ScopeWrite::new(&policy)
        };
        let done = self
            .write_scope(&of_scope, now_ms)
            .map_err(|refusal| match refusal {
                Refusal::ItemIdReused { item } => Refusal::AppendReusesId {
                    operation: indexes[item],
                },
                refusal => refusal,
            })?;
        let appended = items.into_iter().zip(done.written.appended);
        for (index, (item, appended)) in indexes.into_iter().zip(appended) {
            answers[index] = Answer::Appended(item.id, appended);
        }
        Ok(())
    }

    fn check_settles(
        &self,
        write: &Write<'_>,
        now_ms: u64,
    ) -> Result<Vec<(usize, Answer)>, Refusal> {
        let none = Effects::default();
        let (token, last) = (write.conditions.turn, self.turn.as_deref());
        let effects = self.effects.as_deref().unwrap_or(&none);
        effects.check_all(write.operations, token, last, now_ms)
    }

    /// Settles the effects that [`Self::check_settles`] has accepted, and writes `settled` to `answers`.
    fn settle_all(
        &mut self,
        write: &Write<'_>,
        settled: Vec<(usize, Answer)>,
        answers: &mut [Answer],
    ) {
        if let Some(effects) = &mut self.effects {
            let last = self.turn.as_deref();
            settles(write.operations).for_each(|(_, settle)| effects.commit(settle, last));
        }
        for (index, answer) in settled {
            answers[index] = answer;
        }
    }

    /// Adds the number of effects in doubt to a grant.
    pub(crate) fn with_doubts(&self, granted: TurnGranted) -> TurnGranted {
        let effects = self.effects.as_deref();
        TurnGranted {
            in_doubt: effects.map_or(0, |effects| effects.in_doubt(self.turn.as_deref())),
            ..granted
        }
    }

    pub(crate) fn whole(&self) -> Whole {
        Whole {
            state: self.document.to_json().into(),
            metadata: self.metadata(),
        }
    }

    pub(crate) fn save(
        &mut self,
        name: Option<CheckpointName>,
        now_ms: u64,
    ) -> Result<CheckpointHead, Refusal> {
        let (version, content) = (self.stamp.version, self.whole());
        let saved = self.saved.get_or_insert_default();
        let head = saved.add(name, version, content, now_ms)?;
        self.slide(now_ms);
        Ok(head)
    }

    /// Deletes a checkpoint. The caller drops it.
    pub(crate) fn delete_saved(&mut self, number: u32, now_ms: u64) -> Result<Checkpoint, Refusal> {
        let saved = self.saved.as_mut().and_then(|saved| saved.remove(number));
        let saved = saved.ok_or(Refusal::CheckpointNotFound)?;
        self.slide(now_ms);
        Ok(saved)
    }

    pub(crate) fn saved(&self, number: u32) -> Option<&Checkpoint> {
        self.saved.as_ref()?.get(number)
    }

    pub(crate) fn drop_saved(&mut self) -> Vec<u32> {
        let saved = self.saved.take();
        saved.map_or_else(Vec::new, |saved| {
            saved.heads().map(|head| head.number).collect()
        })
    }

    /// Restores a checkpoint: `document` is its parsed state, and `metadata` is its metadata. Returns the result and
    /// the previous document.
    pub(crate) fn restore_content(
        &mut self,
        document: Document,
        metadata: Json,
        write: &Write<'_>,
        now_ms: u64,
    ) -> (Written, Document) {
        let before = std::mem::replace(&mut self.document, document);
        self.metadata = Some(metadata);
        (self.finish(write, Vec::new(), now_ms), before)
    }

    pub(crate) fn check_turn(&self, token: Option<TurnToken>, now_ms: u64) -> Result<(), Refusal> {
        check_turn(self.turn.as_deref(), token, now_ms)
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
            return Err(Refusal::Changed);
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

    pub(crate) fn metadata(&self) -> Json {
        self.metadata.clone().unwrap_or_else(Json::empty_object)
    }

    pub(crate) fn describe(&self) -> Thread {
        Thread {
            stamp: self.stamp,
            size_bytes: self.document.size_bytes(),
            keys: self.document.len(),
            metadata: self.metadata(),
            created_ms: self.created_ms,
            updated_ms: self.updated_ms,
            expires_ms: self.expires_ms,
            ttl: self.ttl,
            owner: self.owner.clone(),
        }
    }

    pub(crate) fn owner_tag(&self) -> Option<OwnerTag> {
        self.owner.as_ref().map(Owner::tag)
    }

    pub(crate) fn list_position(&self) -> Option<ListPosition> {
        Some(ListPosition {
            owner: self.owner_tag()?,
            created_ms: self.created_ms,
            updated_ms: self.updated_ms,
        })
    }
}

impl Heap for LiveThread {
    fn heap_bytes(&self) -> u64 {
        let scope = |scope: &HeldScope| heap::array::<HeldScope>(1) + scope.heap_bytes();
        let saved =
            |saved: &HeldCheckpoints| heap::array::<HeldCheckpoints>(1) + saved.heap_bytes();
        let effects = |effects: &Effects| heap::array::<Effects>(1) + effects.heap_bytes();
        self.document.heap_bytes()
            + self.metadata.as_ref().map_or(0, Heap::heap_bytes)
            + self.owner.as_ref().map_or(0, Heap::heap_bytes)
            + self.scope.as_deref().map_or(0, scope)
            + self.saved.as_deref().map_or(0, saved)
            + self.turn.as_ref().map_or(0, |_| heap::array::<LastTurn>(1))
            + self.effects.as_deref().map_or(0, effects)
    }
}

fn ends_ms(policy: &ThreadPolicy, now_ms: u64) -> u64 {
    policy
        .max_age
        .map_or(u64::MAX, |age| now_ms.saturating_add(millis(age)))
}
