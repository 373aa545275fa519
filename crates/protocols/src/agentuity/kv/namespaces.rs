use actix_web::HttpResponse;

use super::super::AgentuityError;
use super::request::KvRequest;
use threadkeep_domain::{Json, Lifetime, given};
use threadkeep_store::NamespaceChange;

/// Maximum number of names in a list.
const NAMES_MAX: usize = 1_000;

const BODY: &str = "the body must be an object of JSON";
const DEFAULT_TTL: &str = "default_ttl_seconds must be a number, 0 for no end";

/// `GET /kv/namespaces`: the names, newest first.
pub(super) async fn list_namespaces(request: KvRequest) -> Result<HttpResponse, AgentuityError> {
    let page = request.all_namespaces()?.newest(None, NAMES_MAX).await?;
    let names = page.records.iter().map(|record| record.namespace.as_str());
    Ok(HttpResponse::Ok().json(names.collect::<Vec<_>>()))
}

/// `POST /kv/{namespace}`: creates the namespace, or changes the settings that the body contains.
pub(super) async fn create_namespace(request: KvRequest) -> Result<HttpResponse, AgentuityError> {
    let (namespaces, namespace) = (request.namespaces(), request.namespace()?);
    match default_lifetime(&request.body()?)? {
        None => drop(namespaces.open(&namespace).await?),
        lifetime => {
            let change = NamespaceChange {
                default_lifetime: Some(lifetime),
                idle_ttl: None,
            };
            namespaces.set_namespace(&namespace, change, None).await?;
        }
    }
    Ok(HttpResponse::NoContent().finish())
}

/// `DELETE /kv/{namespace}`: deletes the namespace and its entries. Idempotent.
pub(super) async fn delete_namespace(request: KvRequest) -> Result<HttpResponse, AgentuityError> {
    let namespace = request.namespace()?;
    request
        .namespaces()
        .delete_namespace(&namespace, None)
        .await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Parses `{"default_ttl_seconds"?}` or an empty body.
fn default_lifetime(body: &[u8]) -> Result<Option<Lifetime>, AgentuityError> {
    if body.is_empty() {
        return Ok(None);
    }
    let text = std::str::from_utf8(body).ok();
    let body = text.and_then(|text| Json::parse_object(text, 1).ok());
    let body = body.ok_or(AgentuityError::Invalid(BODY))?;
    let Some(seconds) = given(body.as_str(), "default_ttl_seconds") else {
        return Ok(None);
    };
    let lifetime = serde_json::from_str(seconds)
        .ok()
        .and_then(Lifetime::clamped);
    lifetime
        .map(Some)
        .ok_or(AgentuityError::Invalid(DEFAULT_TTL))
}
