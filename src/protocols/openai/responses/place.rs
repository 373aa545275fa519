//! Where a turn takes place.

use crate::domain::scope::ScopeId;
use crate::domain::{
    Fingerprint, Included, Json, Refusal, ResponseId, ThreadId, TurnToken, member,
};
use crate::protocols::openai::OpenAiError;
use crate::protocols::openai::fault::Fault;
use crate::protocols::openai::ids::thread_of;
use crate::protocols::openai::request::OpenAiRequest;
use crate::service::responses::{MissingThread, TurnError, TurnState, response_of_item};
use crate::service::{ForkDraft, ServiceError, WriteOptions};
use crate::store::HistoryFrom;

use super::body::Context;

/// Where a turn takes place.
pub(super) struct Place {
    pub(super) thread: ThreadId,
    pub(super) missing: MissingThread,
    /// The response that it follows in this thread.
    pub(super) after: Option<ResponseId>,
    /// The turn of the thread that the caller holds.
    pub(super) lent: Option<TurnToken>,
}

impl Place {
    /// The thread of a context, which is made if a turn goes on from an earlier response than the last one.
    ///
    /// # Errors
    /// [`OpenAiError`].
    pub(super) async fn find(
        request: &OpenAiRequest,
        context: Context,
    ) -> Result<Self, OpenAiError> {
        let (thread, missing) = match context {
            Context::Thread(id) => (id, MissingThread::Create(None)),
            Context::Conversation(name) => {
                let id = thread_of(&name).ok_or(OpenAiError::NoSuchConversation)?;
                (id, MissingThread::Refuse)
            }
            Context::Previous(previous) => return Self::after(request, previous).await,
            Context::None => {
                let digest = request.repeat_digest("threadkeep conversation of a response")?;
                let id = digest.map_or_else(ThreadId::random, ThreadId::from_entropy);
                let ttl = request.turns()?.limits().response_ttl;
                (id, MissingThread::Create(Some(ttl)))
            }
        };
        Ok(Self {
            thread,
            missing,
            after: None,
            lent: request.turn()?,
        })
    }

    /// The thread of a response if that is the last one there, or if the request is a repeat; else a copy up to the response.
    async fn after(request: &OpenAiRequest, previous: ResponseId) -> Result<Self, OpenAiError> {
        let turns = request.turns()?;
        let state = turns.get(&previous).await?;
        let thread = *state.scope.thread().ok_or(TurnError::NoResponse)?;
        let place = |thread, after, lent| Self {
            thread,
            missing: MissingThread::Refuse,
            after,
            lent,
        };
        if let Some(digest) = super::digest(request)? {
            let own = turns.response_id(&state.scope, digest);
            if let Some(scope) = turns.scope_of(&own).await? {
                let thread = *scope.thread().ok_or(TurnError::NoResponse)?;
                return Ok(place(thread, None, request.turn()?));
            }
        }
        if is_last(request, &state.scope, previous).await? {
            return Ok(place(thread, Some(previous), request.turn()?));
        }
        // the turn of the copied thread is not that of the copy
        Ok(place(fork(request, &thread, &state).await?, None, None))
    }
}

/// Whether no later response has left items in the conversation.
async fn is_last(
    request: &OpenAiRequest,
    scope: &ScopeId,
    previous: ResponseId,
) -> Result<bool, OpenAiError> {
    let scopes = &request.protocol.scopes;
    let newest = scopes
        .history(scope, HistoryFrom::Before(u64::MAX), 1)
        .await?;
    let newest = newest.items.first();
    let later = newest.and_then(|item| response_of_item(item.id.as_str()));
    Ok(later.is_none_or(|later| later == previous))
}

/// Makes a thread with the items of another one up to a response, and with its keys and tasks: the same one for a repeat with
/// the same key.
async fn fork(
    request: &OpenAiRequest,
    source: &ThreadId,
    state: &TurnState,
) -> Result<ThreadId, OpenAiError> {
    let last = state.output.last().and_then(id_of);
    let last = last.or_else(|| state.request.input.last()?.id.parse().ok());
    let place = match last {
        Some(last) => {
            request
                .protocol
                .scopes
                .find_item(&state.scope, &last)
                .await?
        }
        None => None,
    };
    let Some(place) = place.filter(|place| !place.is_removed) else {
        let name = "previous_response_id";
        let wanted = "a response whose items are still in its conversation";
        let message = format!("Unsupported value for '{name}': expected {wanted}.");
        return Err(Fault::new("unsupported_value", name, message).into());
    };
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
            let print = Fingerprint::of(&[b"fork", &digest, &number.to_be_bytes()]);
            ThreadId::from_entropy(print.0)
        }
    });
    let options = WriteOptions::default();
    let forked = api
        .images
        .fork(&api.service, source, &id, &draft, options)
        .await;
    match forked {
        // nobody else knows the id
        Ok(_) | Err(ServiceError::Refused(Refusal::ThreadExists)) => Ok(id),
        Err(error) => Err(error.into()),
    }
}

fn id_of(item: &Json) -> Option<crate::domain::scope::ItemId> {
    let id: String = serde_json::from_str(member(item.as_str(), "id")?).ok()?;
    id.parse().ok()
}
