use actix_web::HttpResponse;

use super::OpenAiError;
use super::body::ObjectBody;
use super::fault::Fault;
use super::objects::{answer, conversation, deleted};
use super::request::OpenAiRequest;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Refusal, Thread, ThreadId};
use threadkeep_service::{NewThread, ServiceError};

/// `POST /conversations`
pub(super) async fn create_conversation(
    request: OpenAiRequest,
) -> Result<HttpResponse, OpenAiError> {
    let protocol = &request.protocol;
    let options = request.options()?;
    let id = request.new_conversation()?;
    let body = ObjectBody::read(request.text()?)?;
    let new = NewThread {
        metadata: body.metadata()?,
        ttl: Some(protocol.ttl),
        ..NewThread::default()
    };
    let items = body.items(options.idempotency)?;
    let limit = protocol.scopes.policy(&ScopeId::Thread(id)).history;
    let created = protocol
        .threads
        .create_with_history(&id, new, items, limit, options);
    let written = created.await.map_err(|error| match error {
        // an earlier request with this idempotency key created the thread, but its stored answer has expired
        ServiceError::ThreadExists => ServiceError::from(Refusal::IdempotencyKeyReused).into(),
        error => of_items(error),
    })?;
    let thread = written.thread.ok_or(OpenAiError::NoSuchConversation)?;
    Ok(answer(conversation(&id, &thread), written.replayed))
}

/// `GET /conversations/{conversation}`
pub(super) async fn get_conversation(request: OpenAiRequest) -> Result<HttpResponse, OpenAiError> {
    let id = request.conversation()?;
    let thread = find(&request, &id).await?;
    Ok(answer(conversation(&id, &thread), false))
}

/// `POST /conversations/{conversation}`
pub(super) async fn update_conversation(
    request: OpenAiRequest,
) -> Result<HttpResponse, OpenAiError> {
    let id = request.conversation()?;
    let options = request.options()?;
    let new = ObjectBody::read(request.text()?)?.new_metadata()?;
    let threads = &request.protocol.threads;
    let written = threads.replace_metadata(&id, new, options).await?;
    let thread = written.thread.ok_or(OpenAiError::NoSuchConversation)?;
    Ok(answer(conversation(&id, &thread), written.replayed))
}

/// `DELETE /conversations/{conversation}`
pub(super) async fn delete_conversation(
    request: OpenAiRequest,
) -> Result<HttpResponse, OpenAiError> {
    let id = request.conversation()?;
    let options = request.options()?;
    let destroyed = request.protocol.threads.destroy(&id, options).await?;
    match destroyed.existed {
        true => Ok(answer(deleted(&id), destroyed.replayed)),
        false => Err(OpenAiError::NoSuchConversation),
    }
}

/// Returns the thread that stores a conversation. Fails if the conversation does not exist.
pub(super) async fn find(request: &OpenAiRequest, id: &ThreadId) -> Result<Thread, OpenAiError> {
    let found = request.protocol.threads.get_thread(id).await;
    let found = found.map_err(OpenAiError::unchanged)?;
    found.ok_or(OpenAiError::NoSuchConversation)
}

/// Converts the error of a write that adds items.
pub(super) fn of_items(error: ServiceError) -> OpenAiError {
    match error {
        ServiceError::Refused(Refusal::AppendReusesId { operation }) => {
            let param = format!("items[{operation}].id");
            let message = format!(
                "Invalid '{param}': the conversation has an item of this id with another content."
            );
            Fault::new("item_id_reused", param, message).into()
        }
        error => error.into(),
    }
}
