//! Where a response takes place.

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
use threadkeep_store::ItemPlace;

use super::body::Context;

/// Where a response takes place.
pub(super) struct Place {
    /// That of a thread; or one that nothing is ever written to, for a response that leaves nothing.
    pub(super) scope: ScopeId,
    pub(super) missing: MissingThread,
    /// The response that it follows in this thread.
    pub(super) after: Option<FollowedResponse>,
    /// The items that it continues without the thread that they are in.
    pub(super) continued: Option<ContinuedItems>,
    /// The turn of the thread that the caller holds.
    pub(super) lent: Option<TurnToken>,
    /// Whether a repeat without a key leads here too.
    pub(super) is_found_again: bool,
    /// The response that the request repeats, where it has no key that names it.
    pub(super) repeated: Option<ResponseId>,
}

/// A request for a response, as far as its place depends on it.
pub(super) struct Placed<'a, F> {
    pub(super) request: &'a OpenAiRequest,
    /// The digest of the request, and that of the key by which a repeat names its response.
    pub(super) fingerprint: Fingerprint,
    pub(super) digest: Option<[u8; 16]>,
    /// Checks the rest of the request.
    pub(super) check: F,
}

impl<F: Fn() -> Result<(), OpenAiError>> Placed<'_, F> {
    /// The thread of a context, which is made if a response goes on from an earlier response than the last one.
    ///
    /// # Errors
    /// [`OpenAiError`].
    pub(super) async fn find(&self, context: Context) -> Result<Place, OpenAiError> {
        let request = self.request;
        let place = async |thread, missing, is_found_again| {
            Ok(Place {
                scope: ScopeId::Thread(thread),
                missing,
                after: None,
                continued: None,
                lent: request.turn()?,
                is_found_again,
                repeated: match is_found_again {
                    true => self.repeated(&thread).await?,
                    false => None,
                },
            })
        };
        match context {
            Context::Thread(id) => place(id, MissingThread::Create(None), true).await,
            Context::Conversation(name) => {
                let id = thread_of(&name).ok_or(OpenAiError::NoSuchConversation)?;
                place(id, MissingThread::Refuse, true).await
            }
            Context::Previous(previous) => self.after(previous).await,
            Context::ReadOnly(previous) => Ok(Place {
                continued: Some(items_until(request, &previous).await?),
                ..self.nowhere()
            }),
            Context::New => {
                let digest = request.repeat_digest("threadkeep conversation of a response")?;
                let id = digest.map_or_else(ThreadId::random, ThreadId::from_entropy);
                let ttl = request.responses()?.limits().response_ttl;
                place(id, MissingThread::Create(Some(ttl)), false).await
            }
            Context::Nothing => Ok(self.nowhere()),
        }
    }

    /// The place of a response that leaves nothing.
    fn nowhere(&self) -> Place {
        let entropy = self.digest.unwrap_or_else(rand::random);
        Place {
            scope: ScopeId::State(Uuid::from_bytes(entropy)),
            missing: MissingThread::Refuse,
            after: None,
            continued: None,
            lent: None,
            is_found_again: false,
            repeated: None,
        }
    }

    /// The response of a thread that the request repeats, by the word of a client that sends no key.
    async fn repeated(&self, thread: &ThreadId) -> Result<Option<ResponseId>, OpenAiError> {
        if self.digest.is_some() || !self.request.is_retry() {
            return Ok(None);
        }
        let responses = self.request.responses()?;
        Ok(responses.repeated(thread, self.fingerprint).await?)
    }

    /// The thread of a response if that is the last one there, or if the request is a repeat; else a copy up to the response.
    async fn after(&self, previous: ResponseId) -> Result<Place, OpenAiError> {
        let (request, responses) = (self.request, self.request.responses()?);
        let state = previous_response(request, &previous).await?;
        let missing = || OpenAiError::NoPreviousResponse(previous.to_string());
        let thread = *state.scope.thread().ok_or_else(missing)?;
        let followed = FollowedResponse {
            id: previous,
            created_ms: state.request.created_ms,
        };
        let mut place = Place {
            scope: state.scope.clone(),
            missing: MissingThread::Refuse,
            after: None,
            continued: None,
            lent: request.turn()?,
            is_found_again: true,
            repeated: self.repeated(&thread).await?,
        };
        if let Some(digest) = self.digest {
            let own = responses.response_id(&state.scope, digest);
            if let Some(scope) = responses.scope_of(&own).await? {
                place.scope = scope;
                return Ok(place);
            }
        } else if place.repeated.is_some() {
            return Ok(place);
        }
        if responses
            .later_than(&state.scope, followed)
            .await?
            .is_none()
        {
            place.after = Some(followed);
            return Ok(place);
        }
        // a copy that nobody uses would stay for a while
        (self.check)()?;
        responses.check_room()?;
        request.protocol.api.service.admit(&thread).await?;
        let (copy, is_new) = fork(request, &thread, &followed, &state).await?;
        Ok(Place {
            scope: ScopeId::Thread(copy),
            after: (!is_new).then_some(followed),
            // the response of the copied thread is not that of the copy
            lent: None,
            is_found_again: false,
            ..place
        })
    }
}

/// The response that a request continues.
///
/// # Errors
/// [`OpenAiError::NoPreviousResponse`] if it is not kept.
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

/// The items up to the end of a response.
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
        until: kept_end_of(request, &state).await?.seq,
    })
}

/// The place of the last item of a response whose items its conversation still has.
async fn kept_end_of(
    request: &OpenAiRequest,
    state: &ResponseState,
) -> Result<ItemPlace, OpenAiError> {
    let place = end_of(request, state).await?;
    let place = place.filter(|place| !place.is_removed);
    place.ok_or_else(|| {
        let wanted = "a response whose items are still in its conversation";
        Fault::unsupported("unsupported_value", "previous_response_id", wanted).into()
    })
}

/// The place of the last item of a response in its conversation.
///
/// # Errors
/// [`OpenAiError`].
pub(super) async fn end_of(
    request: &OpenAiRequest,
    state: &ResponseState,
) -> Result<Option<ItemPlace>, OpenAiError> {
    let last = state.output.last().and_then(item_id_of);
    let Some(last) = last.or_else(|| state.request.input.last()?.id.parse().ok()) else {
        return Ok(None);
    };
    let scopes = &request.protocol.scopes;
    Ok(scopes.find_item(&state.scope, &last).await?)
}

/// Makes a thread with the items of another one up to a response, and with its keys and tasks: the same one for a repeat with
/// the same key. Returns it, and whether it is new.
async fn fork(
    request: &OpenAiRequest,
    source: &ThreadId,
    followed: &FollowedResponse,
    state: &ResponseState,
) -> Result<(ThreadId, bool), OpenAiError> {
    let place = kept_end_of(request, state).await?;
    let draft = ForkDraft {
        included: Included {
            state: false,
            ..Included::ALL
        },
        until: Some(place.seq),
        ..ForkDraft::default()
    };
    let digest = request.repeat_digest("threadkeep fork before a response")?;
    let api = &request.protocol.api;
    let id = api.images.id_near(source, |number| match digest {
        None => ThreadId::random(),
        Some(digest) => {
            let (followed, place) = (followed.id.to_string(), place.seq.to_be_bytes());
            let number = number.to_be_bytes();
            let print = Fingerprint::of(&[&digest, followed.as_bytes(), &place, &number]);
            ThreadId::from_entropy(print.0)
        }
    });
    let options = WriteOptions::default();
    let forked = api
        .images
        .fork(&api.service, source, &id, &draft, options)
        .await;
    match forked {
        // nobody else knows the id: an earlier attempt has made it
        Ok(_) => Ok((id, true)),
        Err(ServiceError::Refused(Refusal::ThreadExists)) => Ok((id, false)),
        Err(error) => Err(error.into()),
    }
}
