use actix_web::HttpResponse;
use serde::Deserialize;

use super::RelayError;
use super::bodies::{read_id, read_limit, read_offset};
use super::request::RelayRequest;
use super::session_objects::{RESERVED, SessionList, SessionObject};
use threadkeep_http::json_text;
use threadkeep_service::{Clearing, SessionMetadata};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewSession {
    customer_id: Option<String>,
    metadata: Option<SessionMetadata>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Patch {
    metadata: SessionMetadata,
}

/// The body of `POST /sessions/{id}/clear`, which removes the messages of a session.
///
/// If `tool_state` is true, the route also removes keys and tasks. If `keep_unfinished` is true and a task is not
/// completed, nothing is removed. In the original API, the route has no body.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClearingBody {
    #[serde(default)]
    tool_state: bool,
    #[serde(default)]
    keep_unfinished: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    limit: Option<usize>,
    offset: Option<u64>,
    cursor: Option<String>,
    customer_id: Option<String>,
}

/// `POST /sessions`
pub(super) async fn create_session(request: RelayRequest) -> Result<HttpResponse, RelayError> {
    let body: NewSession = request.json_or_nothing()?;
    let customer_id = read_id("customer_id", body.customer_id.as_deref())?;
    let metadata = unreserved(body.metadata.unwrap_or_default())?;
    let making = request.making("session", None)?;
    let sessions = &request.protocol.sessions;
    let session = sessions.create(&making, customer_id, metadata).await?;
    Ok(HttpResponse::Created().json(SessionObject::of(&session)))
}

/// `GET /sessions`: lists sessions without the state of their tools.
pub(super) async fn list_sessions(request: RelayRequest) -> Result<HttpResponse, RelayError> {
    let page: Page = request.query()?;
    let offset = read_offset(page.offset, page.cursor.as_deref())?;
    let limit = read_limit(page.limit)?;
    let customer_id = read_id("customer_id", page.customer_id.as_deref())?;
    let sessions = &request.protocol.sessions;
    let listed = sessions.list(customer_id, offset, limit).await?;
    Ok(HttpResponse::Ok().json(SessionList {
        sessions: listed.items.iter().map(SessionObject::of).collect(),
        next_cursor: listed.next_offset.map(|offset| offset.to_string()),
    }))
}

/// `GET /sessions/{id}`
pub(super) async fn get_session(request: RelayRequest) -> Result<HttpResponse, RelayError> {
    let sessions = &request.protocol.sessions;
    let conversation = sessions.conversation(request.id()?).await?;
    let json = SessionObject::of(&conversation.session).with_messages(&conversation.messages);
    Ok(json_text(HttpResponse::Ok(), json))
}

/// `PATCH /sessions/{id}`
pub(super) async fn patch_session(request: RelayRequest) -> Result<HttpResponse, RelayError> {
    let id = request.id()?;
    let patch = unreserved(request.json::<Patch>()?.metadata)?;
    let session = request.protocol.sessions.patch(id, &patch).await?;
    Ok(HttpResponse::Ok().json(SessionObject::of(&session)))
}

/// `POST /sessions/{id}/clear`
pub(super) async fn clear_session(request: RelayRequest) -> Result<HttpResponse, RelayError> {
    let id = request.id()?;
    let body: ClearingBody = request.json_or_nothing()?;
    let clearing = Clearing {
        tool_state: body.tool_state,
        keep_unfinished: body.keep_unfinished,
    };
    let session = request.protocol.sessions.clear(id, clearing).await?;
    Ok(HttpResponse::Ok().json(SessionObject::of(&session)))
}

/// `DELETE /sessions/{id}`
pub(super) async fn delete_session(request: RelayRequest) -> Result<HttpResponse, RelayError> {
    request.protocol.sessions.delete(request.id()?).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Rejects metadata names that are reserved for the state of tools.
fn unreserved(metadata: SessionMetadata) -> Result<SessionMetadata, RelayError> {
    if metadata.iter().any(|(name, _)| name.starts_with(RESERVED)) {
        let text = format!("metadata names that begin with {RESERVED} are reserved");
        return Err(RelayError::Validation(text));
    }
    Ok(metadata)
}
