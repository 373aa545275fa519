//! Ends responses: adds the input and output items to the conversation, and stores the answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::driver::run::Run;
use crate::shared::Shared;
use crate::values::course::Course;
use crate::values::dialogue::messages_of_item;
use crate::values::error::ResponseError;
use crate::values::items::{item_id_of, response_of_item};
use crate::values::request::{ResponseContext, ResponseRequest};
use crate::values::response::EndedResponse;
use crate::values::stateless::without_image;
use crate::values::stored::Stored as _;
use threadkeep_domain::scope::{HistoryItem, ItemId, RecordChange, ScopeId, ScopeWrite};
use threadkeep_domain::{
    Access, Conditions, Failure, FailureCode, Operation, Outcome, Refusal, ResponseId, Status,
    TurnToken, Write,
};
use threadkeep_service::{ServiceError, WriteOptions};
use threadkeep_store::{EndResponse, EndWrite, ScopeParts, WriteError};

/// Retention of events after the response has ended.
pub(crate) const EVENT_RETENTION: Duration = Duration::from_secs(600);
/// How long to retain an ended response that clients cannot read later, in addition to the lease. During this time, the
/// driver can safely retry the write that ended the response.
const UNREADABLE_RETENTION: Duration = Duration::from_secs(5);
/// How long to retain an ended response that is streamed but that clients cannot read later. Readers may need this time
/// to receive the last events.
const STREAMED_RETENTION: Duration = Duration::from_secs(60);

pub(crate) struct Ending<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) id: &'a ResponseId,
    pub(crate) scope: &'a ScopeId,
    /// Token of the driver that ends the response. If `None`, the response is taken away from its driver and ended.
    pub(crate) token: Option<TurnToken>,
    /// Token of the caller's turn (exclusive lease of the thread), if the response runs under that turn.
    pub(crate) lent: Option<TurnToken>,
    pub(crate) request: &'a ResponseRequest,
    pub(crate) course: &'a Course,
    /// Number of the first unwritten event, and all unwritten events.
    pub(crate) events: (u64, Vec<Bytes>),
}

/// Changes that a response makes to its conversation.
struct ConversationChanges {
    items: Vec<HistoryItem>,
    /// Operations that append messages to an array in the thread's state.
    messages: Vec<Operation>,
}

impl ConversationChanges {
    /// Returns the changes as operations on the thread, or an empty list if the thread's state does not change.
    fn operations(&self) -> Vec<Operation> {
        match self.messages.is_empty() {
            true => Vec::new(),
            false => {
                let items = self.items.iter().cloned().map(Operation::Append);
                items.chain(self.messages.iter().cloned()).collect()
            }
        }
    }
}

/// Reason for ending a response from outside its driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closing {
    /// A caller cancelled the response.
    Cancelled,
    /// The response has no driver.
    Abandoned,
    /// The thread of the response was destroyed.
    Destroyed,
}

impl<'a> Ending<'a> {
    /// Prepares to end a response without the driver's token. The driver then loses the response.
    pub(crate) fn of(
        shared: &'a Shared,
        id: &'a ResponseId,
        scope: &'a ScopeId,
        run: &'a Run,
    ) -> Self {
        Self {
            shared,
            id,
            scope,
            token: None,
            lent: None,
            request: &run.request,
            course: &run.course,
            events: run.queue.waiting(),
        }
    }
}

impl Ending<'_> {
    /// Ends the response and adds its items to the conversation in one atomic write. Adds no items if the response
    /// failed in its first step. If the response has already ended, returns the existing outcome.
    pub(crate) async fn run(&self, status: Status) -> Result<Outcome, WriteError> {
        let has_effects = !matches!(status, Status::Failed(_)) || self.course.steps > 0;
        if !has_effects || !self.request.context.has_history() {
            return self.write(status, None).await;
        }
        // omits messages that the client resends, because the array in the thread's state must not contain them twice
        let known = match self.request.messages {
            Some(_) => self.known_items().await?,
            None => Vec::new(),
        };
        let (mut status, mut changes) = (status, self.changes(&known));
        let (mut has_omitted_known, mut is_without_messages) = (false, false);
        let ended = loop {
            let ended = self.write(status.clone(), Some(&changes)).await;
            match &ended {
                // omits known items, because clients may resend the output of earlier responses in a changed form
                Err(WriteError::Refused(
                    Refusal::ItemIdReused { .. } | Refusal::AppendReusesId { .. },
                )) if !has_omitted_known => {
                    has_omitted_known = true;
                    changes = self.changes(&self.known_items().await?);
                }
                Err(WriteError::Refused(refusal)) if !is_without_messages => {
                    let Some(failed) = messages_refused(refusal) else {
                        break ended;
                    };
                    (is_without_messages, status) = (true, failed);
                }
                _ => break ended,
            }
            if is_without_messages {
                changes.messages.clear();
            }
        };
        match ended {
            Err(WriteError::Refused(Refusal::Changed | Refusal::TurnLost)) => ended,
            Err(WriteError::Refused(Refusal::HistoryTooLarge { .. })) => {
                let failed = failed(
                    FailureCode::ConversationTooLarge,
                    "The conversation has no room for the items of this turn.",
                );
                self.write(failed, None).await
            }
            Err(WriteError::Refused(refusal)) if ends_context(&refusal) => {
                self.write(context_ended(), None).await
            }
            // ends the response even if its items cannot be added, because an open response would block later responses
            Err(WriteError::Refused(_)) => {
                let failed = failed(
                    FailureCode::Abandoned,
                    "The items of this turn cannot be added to the conversation.",
                );
                self.write(failed, None).await
            }
            ended => ended,
        }
    }

    async fn write(
        &self,
        status: Status,
        changes: Option<&ConversationChanges>,
    ) -> Result<Outcome, WriteError> {
        let outcome = Outcome {
            status,
            output: self.course.output.clone(),
            usage: self.course.usage,
            ended_ms: self.shared.clock.now_ms(),
        };
        let limits = &self.shared.limits;
        let end = EndResponse {
            token: self.token,
            entries: self.course.entries,
            events: (self.events.0, &self.events.1),
            answer: &outcome.to_bytes(),
            kept: match (self.request.is_kept, self.request.is_repeatable) {
                (true, _) => limits.response_ttl,
                (false, true) => limits.resume,
                (false, false) if self.request.is_streamed => STREAMED_RETENTION,
                (false, false) => limits.lease + UNREADABLE_RETENTION,
            },
            events_kept: EVENT_RETENTION,
        };
        let policy = self.shared.scopes.policy(self.scope);
        let operations = changes
            .map(ConversationChanges::operations)
            .unwrap_or_default();
        let mut record = None;
        loop {
            let earlier = record;
            record = match (changes, self.request.context) {
                (Some(_), ResponseContext::Session) => Some(self.session_record().await?),
                _ => None,
            };
            let items = changes.map(|changes| ScopeWrite {
                history: &changes.items,
                record: record.as_ref(),
                conditions: Conditions {
                    turn: self.lent,
                    ..Conditions::default()
                },
                ..ScopeWrite::new(&policy)
            });
            let messages = Write {
                operations: &operations,
                history: policy.history,
                ..self.shared.threads.plain(WriteOptions {
                    turn: self.lent,
                    ..WriteOptions::default()
                })
            };
            let write = match operations.is_empty() {
                true => items.as_ref().map(EndWrite::Scope),
                false => Some(EndWrite::Thread(&messages)),
            };
            let responses = &self.shared.responses;
            let ended = responses.end_response(self.id, self.scope, &end, write);
            match ended.await {
                // The response or the session's record has changed. If the record differs from the one in the previous
                // attempt, retry. Otherwise, the response has changed, so return the error.
                Err(WriteError::Refused(Refusal::Changed))
                    if record.is_some() && record != earlier => {}
                ended => {
                    let ended = ended?;
                    if !ended.replayed {
                        self.observe(&outcome);
                    }
                    return Ok(Outcome::read(&ended.answer)?);
                }
            }
        }
    }

    /// Reads the session's record. The write that ends the response fails if the record changes in the meantime. Fails
    /// if the scope does not have a record, because the scope is then not a session.
    async fn session_record(&self) -> Result<RecordChange, WriteError> {
        let parts = ScopeParts {
            access: Access::All,
            ..ScopeParts::RECORD
        };
        let view = self.shared.scopes_store.read_scope(self.scope, &parts);
        let record = view.await?.and_then(|view| view.record);
        let record = record.ok_or(Refusal::ScopeNotFound)?;
        Ok(RecordChange {
            new: record.clone(),
            expected: Some(record),
        })
    }

    fn observe(&self, outcome: &Outcome) {
        let duration_ms = outcome.ended_ms.saturating_sub(self.request.created_ms);
        let (protocol, steps) = (self.request.protocol, self.course.steps);
        self.shared.observer.ended(
            protocol,
            &outcome.status,
            Duration::from_millis(duration_ms),
            steps,
        );
        let (response, protocol, end) = (self.id, protocol.as_str(), outcome.status.as_str());
        match &outcome.status {
            Status::Failed(failure) => {
                let code = failure.code.as_str();
                tracing::warn!(%response, protocol, code, steps, duration_ms, "response failed");
            }
            _ => {
                tracing::debug!(%response, protocol, end, steps, duration_ms, "response ended");
            }
        }
    }

    /// Returns the changes to the conversation. Omits input items with an id in `without`.
    fn changes(&self, without: &[ItemId]) -> ConversationChanges {
        let input = self.request.input.iter().filter_map(|item| {
            let id = item.item_id().filter(|id| !without.contains(id))?;
            let value = item.value.clone();
            Some(HistoryItem { id, value })
        });
        let input: Vec<_> = input.collect();
        let messages = self.request.messages.as_ref().map(|window| {
            let input_items = input.iter().map(|item| &item.value);
            window.pushes(input_items, &self.course.output)
        });
        let output = self.course.output.iter().filter_map(|item| {
            let (id, value) = (item_id_of(item)?, without_image(item));
            Some(HistoryItem { id, value })
        });
        let items = input.into_iter().chain(output);
        ConversationChanges {
            items: match self.request.context {
                ResponseContext::Session => items
                    .flat_map(|item| messages_of_item(item.id.as_str(), &item.value))
                    .collect(),
                _ => items.collect(),
            },
            messages: messages.unwrap_or_default(),
        }
    }

    /// Returns the ids of the input items that the conversation already contains.
    async fn known_items(&self) -> Result<Vec<ItemId>, WriteError> {
        let mut known = Vec::new();
        let is_own = |id: &ItemId| {
            response_of_item(id.as_str()).is_some_and(|response| response.id == *self.id)
        };
        let ids = self.request.input.iter().filter_map(|item| item.item_id());
        for id in ids.filter(|id| !is_own(id)) {
            let position = self
                .shared
                .scopes_store
                .find_item(self.scope, Access::All, &id);
            if position.await?.is_some_and(|position| !position.is_removed) {
                known.push(id);
            }
        }
        Ok(known)
    }
}

impl Shared {
    /// Ends a response from outside its driver. Returns the ended response, or `None` if the response is not stored.
    pub(crate) async fn close(
        &self,
        id: &ResponseId,
        reason: Closing,
    ) -> Result<Option<EndedResponse>, ResponseError> {
        loop {
            let Some(view) = self.responses.get_response(id).await? else {
                return Ok(None);
            };
            if let Some(answer) = &view.answer {
                let request = Arc::new(ResponseRequest::read(&view.journal.request)?);
                let outcome = Outcome::read(answer)?;
                let ended = EndedResponse::new(*id, request, view.scope, outcome, true);
                self.running.note_ended(&ended);
                return Ok(Some(ended));
            }
            let run = Run::resumed(self, *id, &view.journal).await?;
            let failure = run.course.failure.clone();
            let status = match (reason, run.course.end()) {
                (Closing::Cancelled, _) => match failure.filter(|_| view.driven.is_none()) {
                    Some(failure) => Status::Failed(failure),
                    None => Status::Cancelled,
                },
                (Closing::Destroyed, _) => context_ended(),
                (Closing::Abandoned, Some(status)) => status.clone(),
                (Closing::Abandoned, None) => match failure {
                    Some(failure) => Status::Failed(failure),
                    None => failed(FailureCode::Abandoned, "The turn was not finished."),
                },
            };
            let ending = Ending::of(self, id, &view.scope, &run);
            match ending.run(status).await {
                // the driver has written a step or ended the response: read the response again
                Err(WriteError::Refused(Refusal::Changed | Refusal::TurnLost)) => {}
                outcome => {
                    let outcome = outcome.map_err(ServiceError::from)?;
                    let ended = EndedResponse::new(*id, run.request, view.scope, outcome, false);
                    self.running.note_ended(&ended);
                    return Ok(Some(ended));
                }
            }
        }
    }
}

/// Returns the failure if the messages do not fit in the thread's state. The response's items may nevertheless fit in
/// the history, which has its own limit.
fn messages_refused(refusal: &Refusal) -> Option<Status> {
    match refusal {
        Refusal::StateTooLarge { .. } | Refusal::TooManyKeys { .. } => Some(failed(
            FailureCode::ConversationTooLarge,
            "The state of the thread has no room for the messages of this turn.",
        )),
        Refusal::NotAnArray { .. } => Some(failed(
            FailureCode::Abandoned,
            "The state of the thread has no array for the messages of this turn.",
        )),
        _ => None,
    }
}

/// Returns whether a write was rejected because the response's thread, session, state handle or run has ended.
pub(crate) fn ends_context(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::Destroyed | Refusal::ScopeNotFound | Refusal::ScopeEnded
    )
}

pub(crate) fn context_ended() -> Status {
    failed(
        FailureCode::ConversationDestroyed,
        "The conversation ended in the meantime.",
    )
}

pub(crate) fn failed(code: FailureCode, message: &str) -> Status {
    Status::Failed(Failure {
        code,
        message: message.into(),
        retry_after_seconds: None,
        is_temporary: false,
    })
}
