//! Determines the target of a response: the thread to which the response belongs, and the items that it continues.

use std::time::Duration;

use uuid::Uuid;

use crate::openai::OpenAiError;
use crate::openai::fault::Fault;
use crate::openai::ids::thread_of;
use crate::openai::request::OpenAiRequest;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Fingerprint, Included, Refusal, ResponseId, ThreadId, TurnToken};
use threadkeep_responses::{
    ContinuedItems, FollowedResponse, MissingThread, Protocol, ResponseError, ResponseState,
    item_id_of,
};
use threadkeep_service::{ForkDraft, ServiceError, WriteOptions};
use threadkeep_store::ItemPosition;

use super::body::Context;

/// The thread of a response, and the items that the response continues.
pub(super) struct ResponseTarget {
    /// The thread's scope. If the response stores nothing, a scope id that is not in use.
    pub(super) scope: ScopeId,
    pub(super) missing: MissingThread,
    /// The preceding response in this thread.
    pub(super) after: Option<FollowedResponse>,
    /// Items of a different thread that the response continues.
    pub(super) continued: Option<ContinuedItems>,
    /// The token of the thread's turn (its exclusive lease), if the caller holds the turn.
    pub(super) lent: Option<TurnToken>,
    /// True if repeats of the request find this thread even without an idempotency key.
    pub(super) is_repeat_detectable: bool,
    /// The response that the request repeats, if it was found without an idempotency key.
    pub(super) repeated: Option<ResponseId>,
}

/// The parts of a request for a response that determine its [`ResponseTarget`].
pub(super) struct TargetFinder<'a, F> {
    pub(super) request: &'a OpenAiRequest,
    /// Digest of the whole request. `digest` covers only the idempotency key.
    pub(super) fingerprint: Fingerprint,
    pub(super) digest: Option<[u8; 16]>,
    /// Checks the rest of the request.
    pub(super) check: F,
}

impl<F: Fn() -> Result<(), OpenAiError>> TargetFinder<'_, F> {
    /// Determines the target of the response. Forks the thread if the response does not continue from the thread's last
    /// response.
    pub(super) async fn find(&self, context: Context) -> Result<ResponseTarget, OpenAiError> {
        let request = self.request;
        let target = async |thread, missing, is_repeat_detectable| {
            Ok(ResponseTarget {
                scope: ScopeId::Thread(thread),
                missing,
                after: None,
                continued: None,
                lent: request.turn()?,
                is_repeat_detectable,
                repeated: match is_repeat_detectable {
                    true => self.repeated(&thread).await?,
                    false => None,
                },
            })
        };
        match context {
            Context::Thread(id) => target(id, MissingThread::Create(None), true).await,
            Context::Conversation(name) => {
                let id = thread_of(&name).ok_or(OpenAiError::NoSuchConversation)?;
                target(id, MissingThread::Refuse, true).await
            }
            Context::Previous(previous) => self.after(previous).await,
            Context::ReadOnly(previous) => Ok(ResponseTarget {
                continued: Some(items_until(request, &previous).await?),
                ..self.unstored()
            }),
            Context::New => {
                let digest = request.repeat_digest("threadkeep conversation of a response")?;
                let id = digest.map_or_else(ThreadId::random, ThreadId::from_entropy);
                let ttl = request.responses()?.limits().response_ttl;
                target(id, MissingThread::Create(Some(ttl)), false).await
            }
            Context::Nothing => Ok(self.unstored()),
        }
    }

    /// Returns the target of a response that stores nothing.
    fn unstored(&self) -> ResponseTarget {
        let entropy = self.digest.unwrap_or_else(rand::random);
        ResponseTarget {
            scope: ScopeId::State(Uuid::from_bytes(entropy)),
            missing: MissingThread::Refuse,
            after: None,
            continued: None,
            lent: None,
            is_repeat_detectable: false,
            repeated: None,
        }
    }

    /// Returns the response that a retry without an idempotency key repeats.
    async fn repeated(&self, thread: &ThreadId) -> Result<Option<ResponseId>, OpenAiError> {
        if self.digest.is_some() || !self.request.is_retry() {
            return Ok(None);
        }
        let responses = self.request.responses()?;
        Ok(responses.repeated(thread, self.fingerprint).await?)
    }

    /// Returns the thread of `previous` as the target if the request is a repeat, or if `previous` is the thread's last
    /// response. Otherwise, returns a fork of the thread that ends with `previous`.
    async fn after(&self, previous: ResponseId) -> Result<ResponseTarget, OpenAiError> {
        let (request, responses) = (self.request, self.request.responses()?);
        let state = previous_response(request, &previous).await?;
        let missing = || OpenAiError::NoPreviousResponse(previous.to_string());
        let thread = *state.scope.thread().ok_or_else(missing)?;
        let followed = FollowedResponse {
            id: previous,
            created_ms: state.request.created_ms,
        };
        let mut target = ResponseTarget {
            scope: state.scope.clone(),
            missing: MissingThread::Refuse,
            after: None,
            continued: None,
            lent: request.turn()?,
            is_repeat_detectable: true,
            repeated: self.repeated(&thread).await?,
        };
        if let Some(digest) = self.digest {
            let own = responses.response_id(&state.scope, digest);
            if let Some(scope) = responses.scope_of(&own).await? {
                target.scope = scope;
                return Ok(target);
            }
        } else if target.repeated.is_some() {
            return Ok(target);
        }
        if responses
            .later_than(&state.scope, followed)
            .await?
            .is_none()
        {
            target.after = Some(followed);
            return Ok(target);
        }
        // checks the request before forking, so that a rejected request does not leave an unused fork behind
        (self.check)()?;
        responses.check_room()?;
        request.protocol.api.service.admit(&thread).await?;
        let (copy, is_new) = fork(request, &thread, &followed, &state).await?;
        Ok(ResponseTarget {
            scope: ScopeId::Thread(copy),
            after: (!is_new).then_some(followed),
            // the caller's turn (exclusive lease) is for the original thread, not for the fork
            lent: None,
            is_repeat_detectable: false,
            ..target
        })
    }
}

/// Returns the response that a request continues.
///
/// # Errors
/// [`OpenAiError::NoPreviousResponse`] if the response is not stored.
pub(super) async fn previous_response(
    request: &OpenAiRequest,
    id: &ResponseId,
) -> Result<ResponseState, OpenAiError> {
    let state = request.responses()?.get(Protocol::OpenAi, id).await;
    state.map_err(|error| match error {
        ResponseError::NoResponse => OpenAiError::NoPreviousResponse(id.to_string()),
        error => error.into(),
    })
}

/// Returns the items up to the end of a response.
async fn items_until(
    request: &OpenAiRequest,
    previous: &ResponseId,
) -> Result<ContinuedItems, OpenAiError> {
    let state = previous_response(request, previous).await?;
    if state.outcome.is_none() && state.failure.is_none() {
        let (by, left) = (Some(*previous), Duration::ZERO);
        return Err(ResponseError::Locked { by, left }.into());
    }
    let missing = || OpenAiError::NoPreviousResponse(previous.to_string());
    Ok(ContinuedItems {
        thread: *state.scope.thread().ok_or_else(missing)?,
        until: existing_end_of(request, &state).await?.seq,
    })
}

/// Returns the position of a response's last item. Fails if that item is not in the conversation.
async fn existing_end_of(
    request: &OpenAiRequest,
    state: &ResponseState,
) -> Result<ItemPosition, OpenAiError> {
    let end = end_of(request, state).await?;
    let end = end.filter(|end| !end.is_removed);
    end.ok_or_else(|| {
        let expected = "a response whose items are still in its conversation";
        Fault::unsupported("unsupported_value", "previous_response_id", expected).into()
    })
}

/// Returns the position of a response's last item in its conversation.
pub(super) async fn end_of(
    request: &OpenAiRequest,
    state: &ResponseState,
) -> Result<Option<ItemPosition>, OpenAiError> {
    let last = state.output.last().and_then(item_id_of);
    let Some(last) = last.or_else(|| state.request.input.last()?.id.parse().ok()) else {
        return Ok(None);
    };
    let scopes = &request.protocol.scopes;
    Ok(scopes.find_item(&state.scope, &last).await?)
}

/// Copies a thread up to the end of a response, including keys and tasks. Returns the id of the copy, and whether the
/// copy is new. A repeated request with the same idempotency key gets the same copy.
async fn fork(
    request: &OpenAiRequest,
    source: &ThreadId,
    followed: &FollowedResponse,
    state: &ResponseState,
) -> Result<(ThreadId, bool), OpenAiError> {
    let end = existing_end_of(request, state).await?;
    let draft = ForkDraft {
        included: Included {
            state: false,
            ..Included::ALL
        },
        until: Some(end.seq),
        ..ForkDraft::default()
    };
    let digest = request.repeat_digest("threadkeep fork before a response")?;
    let api = &request.protocol.api;
    let id = api.images.id_near(source, |number| match digest {
        None => ThreadId::random(),
        Some(digest) => {
            let (followed, end) = (followed.id.to_string(), end.seq.to_be_bytes());
            let number = number.to_be_bytes();
            let print = Fingerprint::of(&[&digest, followed.as_bytes(), &end, &number]);
            ThreadId::from_entropy(print.0)
        }
    });
    let options = WriteOptions::default();
    let forked = api
        .images
        .fork(&api.service, source, &id, &draft, options)
        .await;
    match forked {
        // the id is derived from the request, so only an earlier attempt at the request can have created this thread
        Ok(_) => Ok((id, true)),
        Err(ServiceError::Refused(Refusal::ThreadExists)) => Ok((id, false)),
        Err(error) => Err(error.into()),
    }
}
