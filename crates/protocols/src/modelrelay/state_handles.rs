use std::time::Duration;

use actix_web::HttpResponse;
use serde::Deserialize;
use serde_json::{Value, json};

use super::bodies::{read_limit, read_offset};
use super::request::RelayRequest;
use super::{PROJECT_ID, RelayError};
use threadkeep_domain::rfc3339;
use threadkeep_service::StateHandle;

const TTL_MAX_SECONDS: u64 = 31_536_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lifetime {
    ttl_seconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    limit: Option<usize>,
    offset: Option<u64>,
    cursor: Option<String>,
}

/// `POST /state-handles`
pub(super) async fn create_handle(request: RelayRequest) -> Result<HttpResponse, RelayError> {
    let ttl = request.json_or_nothing::<Lifetime>()?.ttl()?;
    let making = request.making("state-handle", None)?;
    let handle = request.protocol.handles.create(&making, ttl).await?;
    Ok(HttpResponse::Created().json(handle_object(&handle)))
}

/// `GET /state-handles`
pub(super) async fn list_handles(request: RelayRequest) -> Result<HttpResponse, RelayError> {
    let page: Page = request.query()?;
    let offset = read_offset(page.offset, page.cursor.as_deref())?;
    let limit = read_limit(page.limit)?;
    let listed = request.protocol.handles.list(offset, limit).await?;
    let handles: Vec<_> = listed.items.iter().map(handle_object).collect();
    let mut list = json!({"state_handles": handles});
    if let Some(offset) = listed.next_offset {
        list["next_cursor"] = offset.to_string().into();
    }
    Ok(HttpResponse::Ok().json(list))
}

/// `GET /state-handles/{id}`
pub(super) async fn get_handle(request: RelayRequest) -> Result<HttpResponse, RelayError> {
    let handle = request.protocol.handles.get(request.id()?).await?;
    Ok(HttpResponse::Ok().json(handle_object(&handle)))
}

/// `POST /state-handles/{id}/extend`
pub(super) async fn extend_handle(request: RelayRequest) -> Result<HttpResponse, RelayError> {
    let id = request.id()?;
    let ttl = request.json::<Lifetime>()?.ttl()?;
    let ttl = ttl.ok_or_else(|| RelayError::Validation("ttl_seconds is required".into()))?;
    let handle = request.protocol.handles.extend(id, ttl).await?;
    Ok(HttpResponse::Ok().json(handle_object(&handle)))
}

/// `DELETE /state-handles/{id}`. Idempotent.
pub(super) async fn delete_handle(request: RelayRequest) -> Result<HttpResponse, RelayError> {
    request.protocol.handles.delete(request.id()?).await?;
    Ok(HttpResponse::NoContent().finish())
}

impl Lifetime {
    fn ttl(&self) -> Result<Option<Duration>, RelayError> {
        let is_legal = |seconds: &u64| (1..=TTL_MAX_SECONDS).contains(seconds);
        if !self.ttl_seconds.iter().all(is_legal) {
            let text = format!("ttl_seconds must be between 1 and {TTL_MAX_SECONDS}");
            return Err(RelayError::Validation(text));
        }
        Ok(self.ttl_seconds.map(Duration::from_secs))
    }
}

fn handle_object(handle: &StateHandle) -> Value {
    let mut object = json!({
        "id": handle.id.to_string(),
        "project_id": PROJECT_ID,
        "created_at": rfc3339(handle.created_ms).unwrap_or_default(),
    });
    if let Some(expires_at) = handle.expires_ms.and_then(rfc3339) {
        object["expires_at"] = expires_at.into();
    }
    object
}
