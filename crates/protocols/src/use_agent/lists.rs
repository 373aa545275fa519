use actix_web::HttpResponse;

use super::UseAgentError;
use super::list_query::ListQuery;
use super::naming::label;
use super::objects::thread_list;
use super::request::UseAgentRequest;
use threadkeep_service::CONVERSATIONS_EXAMINED_MAX;

/// `GET /api/threads`
pub(super) async fn list_threads(request: UseAgentRequest) -> Result<HttpResponse, UseAgentError> {
    let query: ListQuery = request.query()?;
    let owner = request.owner(query.user_id.as_deref(), query.channel_key.as_deref())?;
    let conversations = &request.protocol.conversations;
    let page = conversations.list(&owner, query.start()?, query.limit(), label);
    let mut page = page.await?.ok_or_else(too_far)?;
    request.protocol.add_titles(&mut page.conversations).await?;
    Ok(HttpResponse::Ok().json(thread_list(&page)))
}

fn too_far() -> UseAgentError {
    UseAgentError::invalid(format!(
        "The page is too far down: a request looks at {CONVERSATIONS_EXAMINED_MAX} threads at most"
    ))
}
