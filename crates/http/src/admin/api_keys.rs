use actix_web::HttpResponse;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{ApiResult, json};
use crate::problems::BackEndProblems;
use crate::request::{BackEnd, Nothing, Query};

/// An API key.
#[derive(Serialize, ToSchema)]
pub(crate) struct ApiKeyObject<'a> {
    /// The key's name in the settings.
    name: &'a str,
    /// The rights of the key: `all`, `threads`, `threads.read`, `scopes`, `kv`, `kv/<namespace>`, `events`, `webhooks`,
    /// `owners` or `admin`.
    rights: Vec<String>,
}

/// Retrieve the current API key
///
/// Returns the API key that authenticates the request.
#[utoipa::path(
    get,
    path = "/v1/api-keys/current",
    responses(
        (status = 200, description = "The name and rights of the API key.", body = ApiKeyObject<'_>),
        BackEndProblems,
    ),
)]
pub(crate) async fn get_api_key(BackEnd { key, .. }: BackEnd, _: Query<Nothing>) -> ApiResult {
    let object = ApiKeyObject {
        name: &key.name,
        rights: key.rights.names().collect(),
    };
    Ok(json(HttpResponse::Ok(), &object))
}
