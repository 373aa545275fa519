use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::catalog::Catalog;
use crate::driver::closing::Closing;
use crate::events::broadcast::{ResponseResult, result_of};
use crate::shared::{ResponseSettings, ResponseStores, Shared};
use crate::stream::ResponseStream;
use crate::values::course::Course;
use crate::values::error::ResponseError;
use crate::values::request::{FollowedResponse, Protocol, ResponseRequest};
use crate::values::response::{EndedResponse, MissingThread, NewResponse, ResponseState};
use crate::values::stored::Stored as _;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Fingerprint, Outcome, ResponseId, ResponseLimits, ThreadId};
use threadkeep_service::{ScopeService, ThreadService};
use threadkeep_store::ResponseView;
use threadkeep_trace as trace;
use threadkeep_trace::Phase;

/// Interval between sweeps for responses without drivers.
const SWEEP_EVERY: Duration = Duration::from_secs(30);
/// Maximum number of responses per bucket and sweep.
const SWEEP_MAX: usize = 64;

/// The model responses of a process. Clones share their state.
#[derive(Debug, Clone)]
pub struct ResponseService(pub(crate) Arc<Shared>);

impl ResponseService {
    /// Returns a token that is cancelled when shutdown begins. From then on, new responses are rejected.
    #[must_use]
    pub fn closing(&self) -> CancellationToken {
        self.0.running.closing.clone()
    }

    /// Starts the service. `threads` and `scopes` must use the same store as `stores`, and must not have rate limits.
    ///
    /// # Panics
    /// Panics if called outside a Tokio runtime. The responses run on that runtime.
    #[must_use]
    pub fn start(
        stores: ResponseStores,
        threads: ThreadService,
        scopes: ScopeService,
        settings: ResponseSettings,
    ) -> Self {
        Self(Arc::new(Shared::new(stores, threads, scopes, settings)))
    }

    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.0.catalog
    }

    #[must_use]
    pub fn limits(&self) -> &ResponseLimits {
        &self.0.limits
    }

    #[must_use]
    pub fn running(&self) -> u64 {
        self.0.running.count()
    }

    /// Derives the id of a response in a scope from `entropy`.
    #[must_use]
    pub fn response_id(&self, scope: &ScopeId, entropy: [u8; 16]) -> ResponseId {
        ResponseId::in_bucket(self.0.responses.bucket_of_scope(scope), entropy)
    }

    /// Runs a response to completion, even if the caller stops waiting. A repeated request waits for the same response,
    /// resumes the response, or returns the earlier result.
    pub async fn run(&self, new: NewResponse) -> ResponseResult {
        let (broadcast, is_joined) = self.0.drive(new).map_err(Arc::new)?;
        let _spending = trace::spend(Phase::Waiting);
        let ended = result_of(&broadcast).await?;
        Ok(match is_joined {
            true => ended.replayed_if(true),
            false => ended,
        })
    }

    /// Like [`run`](Self::run), but streams the events of the response. Streams complete items instead if the response
    /// has ended and its events have expired.
    pub async fn stream(&self, new: NewResponse) -> Result<ResponseStream, Arc<ResponseError>> {
        Ok(self.begin(new).await?.or_complete_items())
    }

    /// Like [`run`](Self::run), but returns a stream of the response.
    pub async fn begin(&self, new: NewResponse) -> Result<ResponseStream, Arc<ResponseError>> {
        let id = new.id;
        let (broadcast, is_joined) = self.0.drive(new).map_err(Arc::new)?;
        ResponseStream::of_new(&self.0, id, broadcast, is_joined).await
    }

    /// Streams the events of a response after event `after`, or all events if `after` is `None`.
    pub async fn listen(
        &self,
        protocol: Protocol,
        id: &ResponseId,
        after: Option<u64>,
    ) -> Result<ResponseStream, ResponseError> {
        ResponseStream::of_known(&self.0, protocol, id, after).await
    }

    /// Returns the response that a request without an idempotency key repeats. This is the thread's last response if it
    /// has the same fingerprint and its answer has not been delivered yet.
    pub async fn repeated(
        &self,
        thread: &ThreadId,
        fingerprint: Fingerprint,
    ) -> Result<Option<ResponseId>, ResponseError> {
        let responses = &self.0.responses;
        let Some(last) = responses.last_response(thread).await? else {
            return Ok(None);
        };
        let view = responses.get_response(&last).await?;
        let is_repeat = |view: &ResponseView| view.fingerprint == fingerprint && !view.is_delivered;
        Ok(view.filter(is_repeat).map(|_| last))
    }

    /// Records that the answer of a response has reached its caller.
    pub async fn note_delivered(&self, id: &ResponseId) {
        if let Err(error) = self.0.responses.note_delivered(id).await {
            tracing::debug!(%error, response = %id, "answer delivered, but not marked: the same request gets it again");
        }
    }

    /// Returns the current state of a response. Fails with [`ResponseError::NoResponse`] if the response belongs to a
    /// different protocol.
    pub async fn get(
        &self,
        protocol: Protocol,
        id: &ResponseId,
    ) -> Result<ResponseState, ResponseError> {
        let (view, request) = self.0.stored_response(protocol, id).await?;
        let request = Arc::new(request);
        let outcome = view.answer.as_ref().map(|answer| Outcome::read(answer));
        let outcome = outcome.transpose()?;
        if !request.is_kept && view.driven.is_none() {
            return Err(ResponseError::NoResponse);
        }
        let course = Course::replay(*id, &request, &view.journal)?;
        Ok(ResponseState {
            request,
            scope: view.scope,
            output: course.output,
            usage: course.usage,
            outcome,
            failure: course.failure.filter(|_| view.driven.is_none()),
        })
    }

    /// Returns whether a response is stored. A repeated request can then return its answer or resume the response.
    pub async fn knows(&self, id: &ResponseId) -> Result<bool, ResponseError> {
        Ok(self.0.responses.get_response(id).await?.is_some())
    }

    /// Returns the last response that added items to a conversation, if that response is newer than `response`.
    /// Searches only the 50 newest items.
    pub async fn later_than(
        &self,
        scope: &ScopeId,
        response: FollowedResponse,
    ) -> Result<Option<ResponseId>, ResponseError> {
        self.0.later_than(scope, response).await
    }

    /// Fails if this process cannot start a response now.
    pub fn check_room(&self) -> Result<(), ResponseError> {
        self.0.running.check_capacity()
    }

    pub async fn scope_of(&self, id: &ResponseId) -> Result<Option<ScopeId>, ResponseError> {
        let view = self.0.responses.get_response(id).await?;
        Ok(view.map(|view| view.scope))
    }

    /// Cancels a response. Has no effect if the response has ended.
    pub async fn cancel(
        &self,
        protocol: Protocol,
        id: &ResponseId,
    ) -> Result<EndedResponse, ResponseError> {
        self.0.stored_response(protocol, id).await?;
        let ended = self.0.close(id, Closing::Cancelled).await?;
        ended.ok_or(ResponseError::NoResponse)
    }

    /// Deletes a response, after cancelling it if it is running. Its items remain in the conversation.
    pub async fn delete(&self, protocol: Protocol, id: &ResponseId) -> Result<(), ResponseError> {
        self.cancel(protocol, id).await?;
        let deleted = self.0.responses.delete_response(id).await;
        match deleted? {
            true => Ok(()),
            false => Err(ResponseError::NoResponse),
        }
    }

    /// Runs [`Self::recover_interrupted`] at intervals. Never returns.
    pub async fn sweep(self) {
        loop {
            sleep(SWEEP_EVERY).await;
            if let Err(error) = self.recover_interrupted().await {
                tracing::warn!(%error, "cannot close interrupted responses yet");
            }
        }
    }

    /// Finds responses that have lost their driver. Resumes background responses, and ends all other responses.
    pub async fn recover_interrupted(&self) -> Result<(), ResponseError> {
        let buckets: Vec<u16> = (0..self.0.buckets).collect();
        let due = self.0.responses.due_responses(&buckets, SWEEP_MAX).await;
        for id in due? {
            if let Err(error) = self.recover(&id).await {
                tracing::warn!(%error, response = %id, "cannot close an interrupted response yet");
            }
        }
        Ok(())
    }

    async fn recover(&self, id: &ResponseId) -> Result<(), ResponseError> {
        let view = self.0.responses.get_response(id).await?;
        let Some(view) = view.filter(|view| view.driven.is_none() && view.answer.is_none()) else {
            return Ok(());
        };
        let request = ResponseRequest::read(&view.journal.request)?;
        if !request.is_background {
            self.0.close(id, Closing::Abandoned).await?;
            return Ok(());
        }
        let resumed = NewResponse {
            id: *id,
            scope: view.scope,
            missing: MissingThread::Refuse,
            lent: None,
            wait: Duration::ZERO,
            fingerprint: view.fingerprint,
            request: Arc::new(request),
        };
        self.0.drive(resumed)?;
        Ok(())
    }

    /// Rejects new responses. Waits up to `patience` for running responses, then releases them to other processes.
    pub async fn shutdown(&self, patience: Duration) {
        self.0.running.shutdown(patience).await;
    }
}
