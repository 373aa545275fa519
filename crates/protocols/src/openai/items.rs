use actix_web::HttpResponse;

use super::OpenAiError;
use super::body::ObjectBody;
use super::conversations::{find, of_items};
use super::list_query::ListQuery;
use super::objects::{added, answer, conversation, item, page};
use super::request::OpenAiRequest;
use threadkeep_domain::scope::{HistorySummary, ItemId, Removal, ScopeId};
use threadkeep_domain::{Operation, Precondition, Refusal, ThreadId};
use threadkeep_service::{ServiceError, WriteOptions};
use threadkeep_store::HistoryFrom;

/// `POST /conversations/{conversation}/items`
pub(super) async fn add_items(request: OpenAiRequest) -> Result<HttpResponse, OpenAiError> {
    let id = request.conversation()?;
    let options = WriteOptions {
        precondition: Some(Precondition::Exists),
        ..request.options()?
    };
    let body = ObjectBody::read(request.text()?)?;
    let items = body.nonempty_items(options.idempotency)?;
    let operations: Vec<_> = items.iter().cloned().map(Operation::Append).collect();
    let protocol = &request.protocol;
    let limit = protocol.scopes.policy(&ScopeId::Thread(id)).history;
    let written = protocol
        .threads
        .merge_with_history(&id, &operations, limit, options);
    let written = written.await.map_err(of_items)?;
    Ok(answer(added(&items), written.replayed))
}

/// `GET /conversations/{conversation}/items`
pub(super) async fn list_items(request: OpenAiRequest) -> Result<HttpResponse, OpenAiError> {
    let id = request.conversation()?;
    let query = ListQuery::read(request.query())?;
    let after = match &query.after {
        Some(after) => Some(seq_of(&request, &id, after).await?),
        None => None,
    };
    let from = match query.is_ascending {
        true => HistoryFrom::After(after.unwrap_or(0)),
        false => HistoryFrom::Before(after.unwrap_or(u64::MAX)),
    };
    let scope = ScopeId::Thread(id);
    let scopes = &request.protocol.scopes;
    // reads one more item than requested, to find out whether another page follows
    let history = scopes.history(&scope, from, query.limit + 1).await?;
    if history.summary == HistorySummary::EMPTY {
        find(&request, &id).await?;
    }
    Ok(answer(page(&history.items, query.limit), false))
}

/// Returns the sequence number of an item that is or was in the conversation.
async fn seq_of(request: &OpenAiRequest, id: &ThreadId, item: &str) -> Result<u64, OpenAiError> {
    let item: Option<ItemId> = item.parse().ok();
    if let Some(item) = item {
        let (scopes, scope) = (&request.protocol.scopes, ScopeId::Thread(*id));
        if let Some(position) = scopes.find_item(&scope, &item).await? {
            return Ok(position.seq);
        }
    }
    find(request, id).await?;
    Err(OpenAiError::UnknownCursor)
}

/// `GET /conversations/{conversation}/items/{item}`
pub(super) async fn get_item(request: OpenAiRequest) -> Result<HttpResponse, OpenAiError> {
    let id = request.conversation()?;
    let scope = ScopeId::Thread(id);
    let scopes = &request.protocol.scopes;
    if let Some(requested) = request.item()
        && let Some(position) = scopes.find_item(&scope, &requested).await?
        && !position.is_removed
    {
        let from = HistoryFrom::After(position.seq - 1);
        let history = scopes.history(&scope, from, 1).await?;
        // the item may have been removed since it was found
        if let Some(stored) = history
            .items
            .first()
            .filter(|stored| stored.id == requested)
        {
            return Ok(answer(item(stored).into_owned(), false));
        }
    }
    find(&request, &id).await?;
    Err(OpenAiError::NoSuchItem)
}

/// `DELETE /conversations/{conversation}/items/{item}`
pub(super) async fn delete_item(request: OpenAiRequest) -> Result<HttpResponse, OpenAiError> {
    let id = request.conversation()?;
    let thread = find(&request, &id).await?;
    let item = request.item().ok_or(OpenAiError::NoSuchItem)?;
    let options = WriteOptions {
        // a removal creates the thread if it is missing, so the precondition rejects a thread that has just ended
        precondition: Some(Precondition::Life(thread.stamp.life)),
        ..request.options()?
    };
    let scope = ScopeId::Thread(id);
    let removal = Removal::Item(&item);
    let scopes = &request.protocol.scopes;
    match scopes.remove_items(&scope, removal, options).await {
        Ok(written) if written.removed > 0 => {
            Ok(answer(conversation(&id, &thread), written.replayed))
        }
        Ok(_) | Err(ServiceError::Refused(Refusal::VersionMismatch { .. })) => {
            Err(OpenAiError::NoSuchItem)
        }
        Err(error) => Err(error.into()),
    }
}
