use actix_web::http::header::CACHE_CONTROL;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;

use super::links::ConsoleLinks;
use threadkeep_identity::bearer;
use threadkeep_web::ApiError;

#[derive(Serialize)]
struct Session<'a> {
    api_key: &'a str,
}

/// Handles `POST /console/session`. Reads the token of a one-time link from `Authorization: Bearer`, and returns the
/// API key of this run. Ignores the body.
pub(super) async fn open_session(
    request: HttpRequest,
    links: web::Data<Option<ConsoleLinks>>,
) -> Result<HttpResponse, ApiError> {
    let token = bearer(request.headers()).ok_or(ApiError::ApiKeyRequired)?;
    let links = links.as_ref().as_ref();
    let api_key = links.and_then(|links| links.exchange(token));
    let api_key = api_key.ok_or(ApiError::InvalidApiKey)?;
    let mut answer = HttpResponse::Ok();
    answer.insert_header((CACHE_CONTROL, "no-store"));
    Ok(answer.json(Session { api_key }))
}
