use std::collections::{BTreeMap, HashMap};

use super::effect::OUTCOME_BYTES_MAX;
use super::{
    BeginEffect, Effect, EffectId, EffectImage, EffectRefusal, EffectState, Fence, InputHash,
    Outcome, RunKey, SettleEffect, Settled, ToolName,
};
use crate::threads::operation::{Answer, Operation, settles};
use crate::threads::turn::{LastTurn, TurnNumbers, check_held};
use crate::{Fingerprint, Heap, Refusal, TurnToken, heap};

/// Maximum number of effects in a thread.
pub const EFFECTS_MAX: usize = 1_000;
/// Maximum number of open effects, which are running or in doubt.
pub const OPEN_MAX: usize = 64;
/// Limit for the total size of results, in bytes. At the limit, a new effect must make room. The results of effects
/// that are already open may exceed it.
pub const RESULTS_BYTES_MAX: u64 = 4 * 1_048_576;

/// Maximum number of effects that one begin removes to make room for results.
const REMOVED_MAX: usize = 64;

const _: () = assert!(OPEN_MAX as u64 * OUTCOME_BYTES_MAX == RESULTS_BYTES_MAX);

/// The ledger of a thread's effects: the reference implementation.
#[derive(Debug, Clone, Default)]
pub struct Effects {
    records: BTreeMap<u64, Record>,
    positions: HashMap<EffectId, u64>,
    /// The highest position so far.
    last: u64,
    open: usize,
    results_bytes: u64,
    heap_bytes: u64,
}

#[derive(Debug, Clone)]
struct Record {
    id: EffectId,
    tool: ToolName,
    hash: InputHash,
    key: RunKey,
    attempt: u32,
    turn: u32,
    /// The last turn that began, settled or read the effect to use its result.
    used: u32,
    begun_ms: u64,
    /// `None` in a copy or an import, so that no fence settles the effect.
    fence: Option<Fence>,
    /// The digest of the idempotency key of the request that began the last attempt.
    request: Option<Fingerprint>,
    outcome: Option<Outcome>,
}

impl Effects {
    /// Begins an effect or its next attempt, or returns the effect as it is. `last` is the last turn of the thread.
    pub fn begin(
        &mut self,
        begin: &BeginEffect<'_>,
        last: Option<&LastTurn>,
        now_ms: u64,
    ) -> Result<Effect, Refusal> {
        let turn = check_held(last, begin.turn, now_ms)?;
        let position = self.positions.get(begin.id).copied();
        let known = position.and_then(|position| self.records.get_mut(&position));
        let (Some(position), Some(record)) = (position, known) else {
            if begin.retry.is_some() {
                return Err(EffectRefusal::NotFound.into());
            }
            return Ok(self.add(begin, turn, now_ms)?);
        };
        if record.tool != *begin.tool || record.hash != *begin.hash {
            return Err(EffectRefusal::Reused.into());
        }
        let state = record.state(last);
        let asks_again = begin.retry == Some(record.attempt);
        let is_next = match state {
            EffectState::Failed => asks_again,
            EffectState::InDoubt => asks_again || begin.idempotent,
            _ => false,
        };
        if !is_next {
            let digest = begin.idempotency.map(|key| key.digest);
            let is_retry = digest.is_some() && record.request == digest;
            return Ok(match state {
                EffectState::Running if is_retry => record.granted(position),
                state => {
                    record.used = turn.number();
                    record.view(position, state)
                }
            });
        }
        if state == EffectState::Failed && self.open >= OPEN_MAX {
            return Err(EffectRefusal::TooMany.into());
        }
        record.start(begin, turn, now_ms);
        if let Some(before) = record.outcome.take() {
            self.open += 1;
            self.results_bytes -= before.size_bytes();
            self.heap_bytes -= before.heap_bytes();
        }
        Ok(record.granted(position))
    }

    fn add(
        &mut self,
        begin: &BeginEffect<'_>,
        turn: &LastTurn,
        now_ms: u64,
    ) -> Result<Effect, EffectRefusal> {
        if self.open >= OPEN_MAX {
            return Err(EffectRefusal::TooMany);
        }
        self.make_room(turn.complete())?;
        let mut record = Record {
            id: begin.id.clone(),
            tool: begin.tool.clone(),
            hash: begin.hash.clone(),
            key: begin.key,
            attempt: 0,
            turn: 0,
            used: 0,
            begun_ms: 0,
            fence: None,
            request: None,
            outcome: None,
        };
        record.start(begin, turn, now_ms);
        let granted = record.granted(self.last + 1);
        self.insert(record);
        Ok(granted)
    }

    fn insert(&mut self, record: Record) {
        self.last += 1;
        self.heap_bytes += record.heap_bytes();
        match &record.outcome {
            Some(outcome) => self.results_bytes += outcome.size_bytes(),
            None => self.open += 1,
        }
        self.positions.insert(record.id.clone(), self.last);
        self.records.insert(self.last, record);
    }

    /// Removes the oldest settled effects whose last use was by a turn up to `complete`, until there is room for
    /// another effect.
    ///
    /// Removes up to 64 effects to make room for results. If there is not enough room, removes none.
    fn make_room(&mut self, complete: u32) -> Result<(), EffectRefusal> {
        let (mut len, mut bytes) = (self.records.len(), self.results_bytes);
        let mut gone = Vec::new();
        let mut settled = self.records.iter().filter_map(|(&position, record)| {
            let outcome = record
                .outcome
                .as_ref()
                .filter(|_| record.used.max(1) <= complete)?;
            Some((position, outcome.size_bytes()))
        });
        while len >= EFFECTS_MAX || bytes >= RESULTS_BYTES_MAX && gone.len() < REMOVED_MAX {
            let (position, its_bytes) = settled.next().ok_or(EffectRefusal::TooMany)?;
            len -= 1;
            bytes -= its_bytes;
            gone.push(position);
        }
        for position in gone {
            if let Some(record) = self.records.remove(&position) {
                self.positions.remove(&record.id);
                self.heap_bytes -= record.heap_bytes();
            }
        }
        self.results_bytes = bytes;
        Ok(())
    }

    /// Records how a tool call ended. With the fence of the last attempt, any caller can settle the effect. Without a
    /// fence, only the holder of the turn can settle it, and only if it is in doubt.
    pub fn settle(
        &mut self,
        settle: &SettleEffect,
        token: Option<TurnToken>,
        last: Option<&LastTurn>,
        now_ms: u64,
    ) -> Result<Settled, Refusal> {
        let repeated = self.check(settle, None, token, last, now_ms)?;
        self.commit(settle, last);
        let effect = self.get(&settle.id, last).ok_or(EffectRefusal::NotFound)?;
        Ok(Settled { effect, repeated })
    }

    /// Checks the operations of a write that settle effects. Returns the answer to each of them, with its index.
    pub fn check_all(
        &self,
        operations: &[Operation],
        token: Option<TurnToken>,
        last: Option<&LastTurn>,
        now_ms: u64,
    ) -> Result<Vec<(usize, Answer)>, Refusal> {
        let mut earlier = HashMap::<&EffectId, &Outcome>::new();
        let settles = settles(operations).map(|(index, settle)| {
            let earlier = earlier.insert(&settle.id, &settle.outcome);
            let repeated = self.check(settle, earlier, token, last, now_ms);
            let state = settle.outcome.state();
            match repeated {
                Ok(repeated) => Ok((index, Answer::Settled { state, repeated })),
                Err(refusal) => Err(refusal.in_operation(index)),
            }
        });
        settles.collect()
    }

    /// Returns whether the effect was already settled with this value. `earlier` is the value that an earlier operation
    /// of the same write records.
    fn check(
        &self,
        settle: &SettleEffect,
        earlier: Option<&Outcome>,
        token: Option<TurnToken>,
        last: Option<&LastTurn>,
        now_ms: u64,
    ) -> Result<bool, Refusal> {
        let position = self.positions.get(&settle.id);
        let record = position.and_then(|position| self.records.get(position));
        let record = record.ok_or(EffectRefusal::NotFound)?;
        let attempt = record.attempt;
        match settle.fence {
            Some(fence) if record.fence == Some(fence) => {}
            Some(_) => return Err(EffectRefusal::Lost { attempt }.into()),
            None => {
                check_held(last, token, now_ms)?;
                if record.state(last) == EffectState::Running {
                    return Err(EffectRefusal::Lost { attempt }.into());
                }
            }
        }
        match record.outcome.as_ref().or(earlier) {
            Some(outcome) if *outcome != settle.outcome => {
                Err(EffectRefusal::Settled { attempt }.into())
            }
            outcome => Ok(outcome.is_some()),
        }
    }

    /// Settles an effect that [`Self::check_all`] has accepted.
    pub fn commit(&mut self, settle: &SettleEffect, last: Option<&LastTurn>) {
        let position = self.positions.get(&settle.id);
        let record = position.and_then(|position| self.records.get_mut(position));
        let Some(record) = record.filter(|record| record.outcome.is_none()) else {
            return;
        };
        record.outcome = Some(settle.outcome.clone());
        record.used = last.map_or(0, LastTurn::number);
        self.open -= 1;
        self.results_bytes += settle.outcome.size_bytes();
        self.heap_bytes += settle.outcome.heap_bytes();
    }

    /// Returns an effect with its outcome.
    #[must_use]
    pub fn get(&self, id: &EffectId, last: Option<&LastTurn>) -> Option<Effect> {
        let &position = self.positions.get(id)?;
        let record = self.records.get(&position)?;
        Some(record.view(position, record.state(last)))
    }

    /// Returns effects before a position, newest first, without their outcomes.
    pub fn before<'a>(
        &'a self,
        position: Option<u64>,
        last: Option<&'a LastTurn>,
    ) -> impl Iterator<Item = Effect> + 'a {
        let end = position.unwrap_or(u64::MAX);
        let found = self.records.range(..end).rev();
        found.map(move |(&position, record)| Effect {
            outcome: None,
            ..record.view(position, record.state(last))
        })
    }

    /// Returns how many effects are in doubt.
    #[must_use]
    pub fn in_doubt(&self, last: Option<&LastTurn>) -> u32 {
        let records = self.records.values();
        let in_doubt = records.filter(|record| record.state(last) == EffectState::InDoubt);
        in_doubt.count() as u32
    }

    /// Returns the effects for an image of the thread.
    #[must_use]
    pub fn images(&self) -> Vec<EffectImage> {
        self.records.values().map(Record::image).collect()
    }

    /// Builds a ledger from the effects of an image. No fence settles them.
    #[must_use]
    pub fn of_images(images: &[EffectImage], turns: TurnNumbers) -> Option<Box<Self>> {
        let mut effects = Box::<Self>::default();
        for image in images {
            effects.insert(Record::of(image, turns.last));
        }
        (!images.is_empty()).then_some(effects)
    }
}

impl Record {
    fn start(&mut self, begin: &BeginEffect<'_>, turn: &LastTurn, now_ms: u64) {
        self.attempt = self.attempt.saturating_add(1);
        self.turn = turn.number();
        self.used = turn.number();
        self.begun_ms = now_ms;
        self.fence = Some(begin.fence);
        self.request = begin.idempotency.map(|key| key.digest);
    }

    fn state(&self, last: Option<&LastTurn>) -> EffectState {
        match &self.outcome {
            Some(outcome) => outcome.state(),
            None if last.is_some_and(|last| last.may_continue(self.turn)) => EffectState::Running,
            None => EffectState::InDoubt,
        }
    }

    fn view(&self, position: u64, state: EffectState) -> Effect {
        Effect {
            id: self.id.clone(),
            state,
            tool: self.tool.clone(),
            hash: self.hash.clone(),
            attempt: self.attempt,
            key: self.key,
            turn: self.turn,
            begun_ms: self.begun_ms,
            outcome: self.outcome.clone(),
            fence: None,
            position,
        }
    }

    fn granted(&self, position: u64) -> Effect {
        Effect {
            fence: self.fence,
            ..self.view(position, EffectState::Granted)
        }
    }

    fn image(&self) -> EffectImage {
        EffectImage {
            id: self.id.clone(),
            tool: self.tool.clone(),
            hash: self.hash.clone(),
            attempt: self.attempt,
            key: self.key,
            turn: self.turn,
            begun_ms: self.begun_ms,
            outcome: self.outcome.clone(),
        }
    }

    /// Builds a record that can be removed once the turn `used` or a later turn is complete.
    fn of(image: &EffectImage, used: u32) -> Self {
        Self {
            id: image.id.clone(),
            tool: image.tool.clone(),
            hash: image.hash.clone(),
            key: image.key,
            attempt: image.attempt,
            turn: image.turn,
            used,
            begun_ms: image.begun_ms,
            fence: None,
            request: None,
            outcome: image.outcome.clone(),
        }
    }
}

/// Counts the id twice, because two collections hold it.
impl Heap for Record {
    fn heap_bytes(&self) -> u64 {
        2 * self.id.heap_bytes()
            + self.tool.heap_bytes()
            + self.hash.heap_bytes()
            + self.outcome.as_ref().map_or(0, Heap::heap_bytes)
    }
}

impl Heap for Effects {
    fn heap_bytes(&self) -> u64 {
        self.heap_bytes
            + heap::tree::<(u64, Record)>(self.records.len())
            + heap::table::<(EffectId, u64)>(self.positions.capacity())
    }
}
