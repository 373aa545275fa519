//! Model responses, for the protocols.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::catalog::Catalog;
use crate::driver::closing::Closing;
use crate::shared::{ResponseSettings, ResponseStores, Shared};
use crate::stream::ResponseStream;
use crate::telling::broadcast::{ResponseResult, result_of};
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

/// How often a process looks for responses whose drivers are gone.
const SWEEP_EVERY: Duration = Duration::from_secs(30);
/// Maximum number of responses of each bucket that one sweep looks after.
const SWEPT: usize = 64;

/// The model responses of a process. Clones share them.
#[derive(Debug, Clone)]
pub struct ResponseService(pub(crate) Arc<Shared>);

impl ResponseService {
    /// Cancelled when the process stops, and no response begins any more.
    #[must_use]
    pub fn closing(&self) -> CancellationToken {
        self.0.running.closing.clone()
    }

    /// Responses over a store. The services have to be of the same store, without limits on how often callers write.
    ///
    /// # Panics
    /// Outside of a Tokio runtime: responses run on the one that this is called from.
    #[must_use]
    pub fn start(
        stores: ResponseStores,
        threads: ThreadService,
        scopes: ScopeService,
        settings: ResponseSettings,
    ) -> Self {
        Self(Arc::new(Shared::new(stores, threads, scopes, settings)))
    }

    /// The models.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.0.catalog
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> &ResponseLimits {
        &self.0.limits
    }

    /// The number of responses that this process drives.
    #[must_use]
    pub fn running(&self) -> u64 {
        self.0.running.count()
    }

    /// The id of a response in a scope. The same entropy gives the same id.
    #[must_use]
    pub fn response_id(&self, scope: &ScopeId, entropy: [u8; 16]) -> ResponseId {
        ResponseId::in_bucket(self.0.responses.bucket_of_scope(scope), entropy)
    }

    /// Runs a response to its end. A repeat waits for the same response, continues it, or gets its earlier end. The
    /// response continues if the caller stops waiting.
    ///
    /// # Errors
    /// [`ResponseError`].
    pub async fn run(&self, new: NewResponse) -> ResponseResult {
        let (broadcast, is_joined) = self.0.drive(new).map_err(Arc::new)?;
        let _spending = trace::spend(Phase::Waiting);
        let ended = result_of(&broadcast).await?;
        Ok(match is_joined {
            true => ended.replayed_if(true),
            false => ended,
        })
    }

    /// Runs a response as [`run`](Self::run) does, and returns its events as soon as it has begun. For an earlier end
    /// whose events are no longer kept, these are the events of whole items.
    ///
    /// # Errors
    /// [`ResponseError`], as long as it has not begun.
    pub async fn stream(&self, new: NewResponse) -> Result<ResponseStream, Arc<ResponseError>> {
        Ok(self.begin(new).await?.or_whole())
    }

    /// Runs a response as [`run`](Self::run) does, and returns as soon as it has begun.
    ///
    /// # Errors
    /// [`ResponseError`], as long as it has not begun.
    pub async fn begin(&self, new: NewResponse) -> Result<ResponseStream, Arc<ResponseError>> {
        let id = new.id;
        let (broadcast, is_joined) = self.0.drive(new).map_err(Arc::new)?;
        ResponseStream::of_new(&self.0, id, broadcast, is_joined).await
    }

    /// The events of a response after that number, or all.
    ///
    /// # Errors
    /// [`ResponseError::NoResponse`], [`ResponseError::StreamExpired`], [`ResponseError::NoSuchEvent`] or [`ResponseError::Service`].
    pub async fn listen(
        &self,
        protocol: Protocol,
        id: &ResponseId,
        after: Option<u64>,
    ) -> Result<ResponseStream, ResponseError> {
        ResponseStream::of_known(&self.0, protocol, id, after).await
    }

    /// The response that a request without a key repeats: the last one of the thread, if it is of the same request and
    /// its answer has not reached the caller. After a complete answer, a user may say the same again.
    ///
    /// # Errors
    /// [`ResponseError::Service`].
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
        let is_it = |view: &ResponseView| view.fingerprint == fingerprint && !view.is_delivered;
        Ok(view.filter(is_it).map(|_| last))
    }

    /// Notes that the answer of a response has reached its caller.
    pub async fn note_delivered(&self, id: &ResponseId) {
        if let Err(error) = self.0.responses.note_delivered(id).await {
            tracing::debug!(%error, response = %id, "answer delivered, but not marked: the same request gets it again");
        }
    }

    /// A response as it is now.
    ///
    /// # Errors
    /// [`ResponseError::NoResponse`], also for one that came by another protocol, or [`ResponseError::Service`].
    pub async fn get(
        &self,
        protocol: Protocol,
        id: &ResponseId,
    ) -> Result<ResponseState, ResponseError> {
        let (view, request) = self.0.known(protocol, id).await?;
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

    /// Whether a response is kept, so that a repeat of its request gets its answer or continues it.
    ///
    /// # Errors
    /// [`ResponseError::Service`].
    pub async fn knows(&self, id: &ResponseId) -> Result<bool, ResponseError> {
        Ok(self.0.responses.get_response(id).await?.is_some())
    }

    /// The response that left the newest items of a conversation, if it came later than `response`. Up to 50 newer
    /// items that no response left are skipped.
    ///
    /// # Errors
    /// [`ResponseError::Service`].
    pub async fn later_than(
        &self,
        scope: &ScopeId,
        response: FollowedResponse,
    ) -> Result<Option<ResponseId>, ResponseError> {
        self.0.later_than(scope, response).await
    }

    /// Whether this process may begin a response now.
    ///
    /// # Errors
    /// [`ResponseError::TooMany`] or [`ResponseError::Stopping`].
    pub fn check_room(&self) -> Result<(), ResponseError> {
        self.0.running.check_room()
    }

    /// The scope of a response that is kept.
    ///
    /// # Errors
    /// [`ResponseError::Service`].
    pub async fn scope_of(&self, id: &ResponseId) -> Result<Option<ScopeId>, ResponseError> {
        let view = self.0.responses.get_response(id).await?;
        Ok(view.map(|view| view.scope))
    }

    /// Ends a response; one that has ended stays as it is.
    ///
    /// # Errors
    /// [`ResponseError::NoResponse`] or [`ResponseError::Service`].
    pub async fn cancel(
        &self,
        protocol: Protocol,
        id: &ResponseId,
    ) -> Result<EndedResponse, ResponseError> {
        self.0.known(protocol, id).await?;
        let ended = self.0.close(id, Closing::Cancelled).await?;
        ended.ok_or(ResponseError::NoResponse)
    }

    /// Deletes a response, and ends it first if it runs. The conversation keeps its items.
    ///
    /// # Errors
    /// [`ResponseError::NoResponse`] or [`ResponseError::Service`].
    pub async fn delete(&self, protocol: Protocol, id: &ResponseId) -> Result<(), ResponseError> {
        self.cancel(protocol, id).await?;
        let deleted = self.0.responses.delete_response(id).await;
        match deleted? {
            true => Ok(()),
            false => Err(ResponseError::NoResponse),
        }
    }

    /// Looks after responses whose drivers are gone, until it is dropped.
    pub async fn sweep(self) {
        loop {
            sleep(SWEEP_EVERY).await;
            if let Err(error) = self.look_after_open().await {
                tracing::warn!(%error, "cannot close interrupted responses yet");
            }
        }
    }

    /// Closes responses whose drivers are gone, or continues those in the background.
    ///
    /// # Errors
    /// [`ResponseError::Service`].
    pub async fn look_after_open(&self) -> Result<(), ResponseError> {
        let buckets: Vec<u16> = (0..self.0.buckets).collect();
        let due = self.0.responses.due_responses(&buckets, SWEPT).await;
        for id in due? {
            if let Err(error) = self.look_after(&id).await {
                tracing::warn!(%error, response = %id, "cannot close an interrupted response yet");
            }
        }
        Ok(())
    }

    /// Continues a response without a driver if it runs in the background, and closes it otherwise.
    async fn look_after(&self, id: &ResponseId) -> Result<(), ResponseError> {
        let view = self.0.responses.get_response(id).await?;
        let Some(view) = view.filter(|view| view.driven.is_none() && view.answer.is_none()) else {
            return Ok(());
        };
        let request = ResponseRequest::read(&view.journal.request)?;
        if !request.is_background {
            self.0.close(id, Closing::Abandoned).await?;
            return Ok(());
        }
        let again = NewResponse {
            id: *id,
            scope: view.scope,
            missing: MissingThread::Refuse,
            lent: None,
            wait: Duration::ZERO,
            fingerprint: view.fingerprint,
            request: Arc::new(request),
        };
        self.0.drive(again)?;
        Ok(())
    }

    /// Takes no new responses, waits that long for those that run, and lets other processes go on with the rest.
    pub async fn shutdown(&self, patience: Duration) {
        self.0.running.shutdown(patience).await;
    }
}
