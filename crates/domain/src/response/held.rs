//! Holds the stored state of a response, and checks the steps of its driver, the task that runs the response.

use std::time::Duration;

use bytes::Bytes;

use super::ResponseId;
use super::steps::{
    BeginResponse, Begun, EndResponse, Floor, Journal, JournalEntry, ResponseEvents, ResponseView,
};
use crate::scope::ScopeId;
use crate::threads::turn::{LastTurn, check_turn};
use crate::{Fingerprint, Heap, Life, Refusal, TurnToken, heap, millis};

/// Returns how long to keep a response. In the scope of a thread, `requested` is limited to the longer of `archive` and
/// two days.
pub fn response_ttl(scope: &ScopeId, requested: Duration, archive: Duration) -> Duration {
    match scope.thread() {
        Some(_) => requested.min(archive.max(2 * DAY)),
        None => requested,
    }
}

/// Maximum time for which an open response is kept after a write.
pub const OPEN_RESPONSE_MAX: Duration = DAY;
const DAY: Duration = Duration::from_secs(86_400);

/// A stored response.
#[derive(Debug)]
pub struct HeldResponse {
    scope: ScopeId,
    /// The life of the scope's thread, if any.
    pub(super) life: Option<Life>,
    fingerprint: Fingerprint,
    request: Bytes,
    token: TurnToken,
    lease_ms: u64,
    /// The token of the turn under which the response works.
    pub(super) turn: Option<TurnToken>,
    entries: Vec<Bytes>,
    events: Vec<Bytes>,
    events_end_ms: u64,
    pub(super) answer: Option<Bytes>,
    is_delivered: bool,
    kept: Duration,
    due: Duration,
    /// When a sweep, a periodic task, takes over or closes the response, unless the response has ended by then.
    due_ms: u64,
    ends_ms: u64,
    text_bytes: u64,
}

impl HeldResponse {
    /// Creates a response without a driver. `life` identifies the current life of the scope's thread, if any.
    pub fn new(begin: &BeginResponse<'_>, request: &Bytes, life: Option<Life>) -> Self {
        Self {
            scope: begin.scope.clone(),
            life,
            fingerprint: begin.fingerprint,
            request: Bytes::copy_from_slice(request),
            token: begin.token,
            lease_ms: 0,
            turn: None,
            entries: Vec::new(),
            events: Vec::new(),
            events_end_ms: 0,
            answer: None,
            is_delivered: false,
            kept: begin.kept,
            due: begin.due,
            due_ms: 0,
            ends_ms: 0,
            text_bytes: heap::block(request.len()) + begin.scope.heap_bytes(),
        }
    }

    /// Returns the scope.
    pub fn scope(&self) -> &ScopeId {
        &self.scope
    }

    /// Returns the life of the scope's thread, if any.
    pub fn life(&self) -> Option<Life> {
        self.life
    }

    /// Returns the token of the driver.
    pub fn token(&self) -> TurnToken {
        self.token
    }

    /// Returns the answer; `None` until the response has ended.
    pub fn answer(&self) -> Option<&Bytes> {
        self.answer.as_ref()
    }

    /// Returns when the response expires.
    pub fn ends_ms(&self) -> u64 {
        self.ends_ms
    }

    /// Checks that a driver may continue. If the response has ended, returns the answer. If the driver must wait,
    /// returns the reason.
    pub fn check_resume(
        &self,
        begin: &BeginResponse<'_>,
        now_ms: u64,
    ) -> Result<Option<Begun>, Refusal> {
        if self.fingerprint != begin.fingerprint || self.check_scope(begin.scope).is_err() {
            return Err(Refusal::IdempotencyKeyReused);
        }
        if let Some(answer) = &self.answer {
            return Ok(Some(Begun::Ended(answer.clone())));
        }
        let left_ms = self.lease_ms.saturating_sub(now_ms);
        let is_driven = self.token != begin.token && left_ms > 0;
        let left = Duration::from_millis(left_ms);
        Ok(is_driven.then_some(Begun::Running { left }))
    }

    /// Assigns the response to the driver of `begin`.
    pub fn drive(&mut self, begin: &BeginResponse<'_>, now_ms: u64) {
        self.token = begin.token;
        self.turn = match begin.floor {
            Floor::Taken => self.life.map(|_| begin.token),
            Floor::Lent(token) => self.life.map(|_| token),
            Floor::None => None,
        };
        (self.kept, self.due) = (begin.kept.min(OPEN_RESPONSE_MAX), begin.due);
        self.drive_until(begin.lease, now_ms);
    }

    /// Extends the lease of the driver to `now_ms` + `lease`.
    pub fn drive_until(&mut self, lease: Duration, now_ms: u64) {
        self.lease_ms = now_ms.saturating_add(millis(lease));
        self.keep(now_ms);
    }

    fn keep(&mut self, now_ms: u64) {
        self.ends_ms = now_ms.saturating_add(millis(self.kept)).max(1);
        self.due_ms = now_ms.saturating_add(millis(self.due));
        if self.answer.is_none() {
            self.events_end_ms = self.ends_ms;
        }
    }

    /// Returns when a sweep takes over or closes the response, or `None` if the response has ended.
    pub fn due_ms(&self) -> Option<u64> {
        self.answer.is_none().then_some(self.due_ms)
    }

    /// Returns the reason why a different response cannot take the floor from this response. `id` is the id of this
    /// response.
    pub fn floor_conflict(&self, id: ResponseId, now_ms: u64) -> Begun {
        match self.lease_ms.saturating_sub(now_ms) {
            0 => Begun::Behind(id),
            left_ms => Begun::Locked {
                by: Some(id),
                left: Duration::from_millis(left_ms),
            },
        }
    }

    /// Checks that a driver may write in `scope`. If `token` is `None`, any driver is accepted. `thread` contains the
    /// current life and last turn of the thread.
    pub fn check(
        &self,
        scope: &ScopeId,
        token: Option<TurnToken>,
        thread: Option<(Life, Option<&LastTurn>)>,
        now_ms: u64,
    ) -> Result<(), Refusal> {
        self.check_driver(token)?;
        self.check_scope(scope)?;
        if scope.thread().is_none() {
            return Ok(());
        }
        let thread = thread.filter(|(life, _)| Some(*life) == self.life);
        let (_, turn) = thread.ok_or(Refusal::Destroyed)?;
        match token.is_some() && self.turn.is_some() {
            true => check_turn(turn, self.turn, now_ms),
            false => Ok(()),
        }
    }

    /// Checks that the response is open and `token` belongs to its driver. If `token` is `None`, any driver is
    /// accepted.
    pub fn check_driver(&self, token: Option<TurnToken>) -> Result<(), Refusal> {
        match self.answer.is_some() || token.is_some_and(|token| token != self.token) {
            true => Err(Refusal::TurnLost),
            false => Ok(()),
        }
    }

    /// Checks that the response belongs to `scope`. For a response in a thread, any thread is accepted, because
    /// rotation changes the thread id. The caller must compare the thread's [`Life`] instead.
    pub fn check_scope(&self, scope: &ScopeId) -> Result<(), Refusal> {
        let is_in = match self.life {
            Some(_) => scope.thread().is_some(),
            None => *scope == self.scope,
        };
        match is_in {
            true => Ok(()),
            false => Err(Refusal::TurnLost),
        }
    }

    /// Returns whether the response itself took the turn of its thread.
    pub fn took_turn(&self) -> bool {
        self.turn == Some(self.token)
    }

    /// Returns the stored entry with the same number as `entry`, if any. Fails with [`Refusal::Changed`] if an earlier
    /// entry or event is missing.
    pub fn stored_entry(&self, entry: &JournalEntry<'_>) -> Result<Option<&Bytes>, Refusal> {
        let next = self.entries.len() as u64 + 1;
        match entry.number {
            0 => Err(Refusal::Changed),
            number if number > next => Err(Refusal::Changed),
            number if number < next => Ok(self.entries.get(number as usize - 1)),
            _ => self.check_events(entry.events.0).map(|()| None),
        }
    }

    /// Appends an entry with its events.
    pub fn add_entry(&mut self, entry: &JournalEntry<'_>, now_ms: u64) {
        self.text_bytes += heap::block(entry.entry.len());
        self.entries.push(Bytes::copy_from_slice(entry.entry));
        self.add_events(entry.events);
        self.keep(now_ms);
    }

    /// Checks that the events before `first` are stored.
    pub fn check_events(&self, first: u64) -> Result<(), Refusal> {
        match first > self.events.len() as u64 {
            true => Err(Refusal::Changed),
            false => Ok(()),
        }
    }

    /// Appends events. The first field of `events` is the sequence number of the first event. Only the first append
    /// extends the lifetime of the response.
    pub fn append_events(&mut self, events: (u64, &[Bytes]), now_ms: u64) {
        let is_first = self.events.is_empty();
        self.add_events(events);
        if is_first {
            self.keep(now_ms);
        }
    }

    fn add_events(&mut self, (first, events): (u64, &[Bytes])) {
        let stored = self.events.len() as u64 - first;
        for event in events.iter().skip(stored as usize) {
            self.text_bytes += heap::block(event.len());
            self.events.push(Bytes::copy_from_slice(event));
        }
    }

    /// Checks that `end` is based on all stored entries and events.
    pub fn check_end(&self, end: &EndResponse<'_>) -> Result<(), Refusal> {
        let (first, _) = end.events;
        let is_next = first == self.events.len() as u64;
        match is_next && end.entries == self.entries.len() as u64 {
            true => Ok(()),
            false => Err(Refusal::Changed),
        }
    }

    /// Ends the response. `has_thread` is false if the thread of the response no longer exists.
    pub fn end(&mut self, end: &EndResponse<'_>, has_thread: bool, archive: Duration, now_ms: u64) {
        self.add_events(end.events);
        self.text_bytes += heap::block(end.answer.len());
        self.answer = Some(Bytes::copy_from_slice(end.answer));
        let kept = response_ttl(&self.scope, end.kept, archive);
        self.kept = match has_thread {
            true => kept,
            // without the thread, an erasure of the owner's data can find the response only for the time in `self.kept`
            false => self.kept.min(kept),
        };
        self.keep(now_ms);
        self.events_end_ms = now_ms.saturating_add(millis(end.events_kept.min(self.kept)));
    }

    /// Records that the caller has received the answer.
    pub fn note_delivered(&mut self) {
        self.is_delivered = true;
    }

    /// Returns the journal.
    pub fn journal(&self) -> Journal {
        Journal {
            request: self.request.clone(),
            entries: self.entries.clone(),
            next_event: self.events.len() as u64,
        }
    }

    /// Returns the state for readers.
    pub fn view(&self, now_ms: u64) -> ResponseView {
        let left_ms = self.lease_ms.saturating_sub(now_ms);
        ResponseView {
            scope: self.scope.clone(),
            journal: self.journal(),
            driven: (self.answer.is_none() && left_ms > 0).then(|| Duration::from_millis(left_ms)),
            answer: self.answer.clone(),
            fingerprint: self.fingerprint,
            is_delivered: self.is_delivered,
        }
    }

    /// Returns up to `limit` events, starting with event number `from`. Returns `None` if the events have expired.
    pub fn read_events(&self, from: u64, limit: usize, now_ms: u64) -> Option<ResponseEvents> {
        if !self.events.is_empty() && self.events_end_ms <= now_ms {
            return None;
        }
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        Some(ResponseEvents {
            events: self
                .events
                .iter()
                .skip(from)
                .take(limit.max(1))
                .cloned()
                .collect(),
            has_ended: self.answer.is_some(),
        })
    }
}

impl Heap for HeldResponse {
    fn heap_bytes(&self) -> u64 {
        self.text_bytes
            + heap::array::<Bytes>(self.entries.capacity())
            + heap::array::<Bytes>(self.events.capacity())
    }
}

#[cfg(test)]
pub(super) mod tests;
