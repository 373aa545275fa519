use std::time::Duration;

use actix_web::{HttpResponse, HttpResponseBuilder};
use serde_json::{Value, json};

use super::UseAgentError;
use super::bodies::{NewThreadBody, PatchBody};
use super::caller::Caller;
use super::naming::{is_named, label, patch, title_of};
use super::request::UseAgentRequest;
use super::titles::UNTITLED;
use threadkeep_domain::{Json, Owner, Precondition, Refusal, ThreadId, merge_json};
use threadkeep_http::mark_replay;
use threadkeep_service::{Changed, NewThread, ServiceError, ThreadChange, WriteOptions};
use threadkeep_store::Destroyed;

/// Default lifetime of a thread after its last use.
const TTL: Duration = Duration::from_secs(30 * 86_400);
/// Maximum number of attempts if other clients create or end the thread at the same time.
const ATTEMPTS: usize = 5;
const FIRST_VERSION: u64 = 1;

/// `POST /api/threads`
pub(super) async fn create_thread(request: UseAgentRequest) -> Result<HttpResponse, UseAgentError> {
    let body = NewThreadBody::read(request.text()?)?;
    let owner = request.owner(body.user_id.as_deref(), body.channel_key.as_deref())?;
    let options = request.options()?;
    let name = match body.id {
        Some(name) => name,
        None => request.generate_name()?,
    };
    let id = request.thread_of(&name)?;
    let given = body
        .title
        .as_deref()
        .filter(|title| !title.trim().is_empty());
    let names = patch(Some(&name), given);
    for _ in 0..ATTEMPTS {
        let new = NewThread {
            metadata: Some(merge_json(body.metadata.as_ref(), &names)),
            ttl: Some(body.ttl.unwrap_or(TTL)),
            owner: Some(owner.clone()),
            ..NewThread::default()
        };
        match request.threads().create(&id, new, options).await {
            Ok(written) => {
                let Some(thread) = written.thread else { break };
                // a replayed answer may be about a thread that already existed
                let is_new = thread.stamp.version <= FIRST_VERSION;
                let replayed = written.replayed;
                return shown(&request, &id, Changed { thread, replayed }, is_new).await;
            }
            Err(ServiceError::ThreadExists) => {}
            Err(error) => return Err(error.into()),
        }
        let found = adopt(&request, &id, &name, given, &owner, options).await?;
        // if nothing was found, the thread has ended in the meantime
        if let Some(changed) = found {
            return shown(&request, &id, changed, false).await;
        }
    }
    Err(ServiceError::from(Refusal::Changed).into())
}

/// Adds the owner, name and title to an existing thread if they are missing.
async fn adopt(
    request: &UseAgentRequest,
    id: &ThreadId,
    name: &str,
    title: Option<&str>,
    owner: &Owner,
    options: WriteOptions,
) -> Result<Option<Changed>, ServiceError> {
    let threads = request.threads();
    let changed = threads.change_thread(id, options, |thread| {
        request.caller.check(thread)?;
        if thread.owner.as_ref().is_some_and(|known| known != owner) {
            return Err(ServiceError::ThreadExists);
        }
        let metadata = &thread.metadata;
        let name = (!is_named(metadata, name)).then_some(name);
        let title = title.filter(|_| title_of(metadata).is_none());
        let is_new = name.is_some() || title.is_some();
        let metadata = is_new.then(|| merge_json(Some(metadata), &patch(name, title)));
        let owner = thread.owner.is_none().then(|| owner.clone());
        // a request with an idempotency key always writes, because the write stores the answer for repeated requests
        let is_change = is_new || owner.is_some() || options.idempotency.is_some();
        Ok(match is_change {
            true => ThreadChange::Write { metadata, owner },
            false => ThreadChange::None,
        })
    });
    changed.await
}

/// Renders a thread that was created, or that already existed.
async fn shown(
    request: &UseAgentRequest,
    id: &ThreadId,
    Changed { thread, replayed }: Changed,
    is_new: bool,
) -> Result<HttpResponse, UseAgentError> {
    let label = label(id, &thread.metadata);
    let (response, title) = match label.title {
        Some(title) if is_new => (HttpResponse::Created(), title),
        None if is_new => (HttpResponse::Created(), UNTITLED.into()),
        title => (
            HttpResponse::Ok(),
            request.protocol.title_or(title, id).await?,
        ),
    };
    let object = json!({"threadId": label.id, "title": title});
    Ok(answer(response, &object, replayed))
}

/// `PATCH /api/threads/{threadId}`
pub(super) async fn patch_thread(request: UseAgentRequest) -> Result<HttpResponse, UseAgentError> {
    let (_, id) = request.thread()?;
    let body = PatchBody::read(request.text()?)?;
    let options = request.options()?;
    let threads = request.threads();
    let changed = threads.change_thread(&id, options, |thread| {
        request.caller.check(thread)?;
        Ok(ThreadChange::Write {
            metadata: patched(&thread.metadata, &body),
            owner: None,
        })
    });
    let changed = changed.await?.ok_or(UseAgentError::NoSuchThread)?;
    let title = title_of(&changed.thread.metadata);
    let title = request.protocol.title_or(title, &id).await?;
    let object = json!({"success": true, "title": title});
    Ok(answer(HttpResponse::Ok(), &object, changed.replayed))
}

/// Returns the new metadata, or `None` if the body contains neither metadata nor a title.
fn patched(metadata: &Json, body: &PatchBody) -> Option<Json> {
    let change = body.metadata.as_ref();
    let mut new = change.map(|change| merge_json(Some(metadata), change));
    if let Some(title) = &body.title {
        let before = new.as_ref().unwrap_or(metadata);
        new = Some(merge_json(Some(before), &patch(None, Some(title))));
    }
    new
}

/// `DELETE /api/threads/{threadId}`
pub(super) async fn delete_thread(request: UseAgentRequest) -> Result<HttpResponse, UseAgentError> {
    let (_, id) = request.thread()?;
    let options = request.options()?;
    for _ in 0..ATTEMPTS {
        match destroy(&request, &id, options).await {
            Err(ServiceError::Refused(Refusal::VersionMismatch { .. })) => {}
            destroyed => {
                let mut response = HttpResponse::NoContent();
                mark_replay(&mut response, destroyed?.replayed);
                return Ok(response.finish());
            }
        }
    }
    Err(ServiceError::from(Refusal::Changed).into())
}

/// Ends a thread. For a user, first checks the owner. Fails if the thread is ended and re-created after that check.
async fn destroy(
    request: &UseAgentRequest,
    id: &ThreadId,
    mut options: WriteOptions,
) -> Result<Destroyed, ServiceError> {
    let threads = request.threads();
    options.precondition = match &request.caller {
        Caller::BackEnd(_) => None,
        Caller::User(_) => match threads.get_thread(id).await? {
            None => Some(Precondition::Version(0)),
            Some(thread) => {
                request.caller.check(&thread)?;
                Some(Precondition::Life(thread.stamp.life))
            }
        },
    };
    threads.destroy(id, options).await
}

fn answer(mut response: HttpResponseBuilder, object: &Value, replayed: bool) -> HttpResponse {
    mark_replay(&mut response, replayed);
    response.json(object)
}
