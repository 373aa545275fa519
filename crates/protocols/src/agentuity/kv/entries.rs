use actix_web::HttpResponse;
use actix_web::http::StatusCode;

use super::super::AgentuityError;
use super::request::KvRequest;
use threadkeep_http::{entry_body, entry_head};
use threadkeep_store::{EntryTerms, Reading};

/// `GET /kv/{namespace}/{key}`
pub(super) async fn get_entry(request: KvRequest) -> Result<HttpResponse, AgentuityError> {
    let (namespace, key) = (request.namespace()?, request.key()?);
    let read = request.namespaces().get(&namespace, &key, Reading::Use);
    let entry = read.await?;
    Ok(entry_body(entry_head(StatusCode::OK, &entry.head), entry))
}

/// `PUT /kv/{namespace}/{key}` and `PUT /kv/{namespace}/{key}/{ttl}`
pub(super) async fn put_entry(request: KvRequest) -> Result<HttpResponse, AgentuityError> {
    let (namespace, key) = (request.namespace()?, request.key()?);
    let put = request
        .namespaces()
        .put(&namespace, &key, request.draft()?, EntryTerms::default());
    put.await?;
    Ok(HttpResponse::NoContent().finish())
}

/// `DELETE /kv/{namespace}/{key}`. Idempotent.
pub(super) async fn delete_entry(request: KvRequest) -> Result<HttpResponse, AgentuityError> {
    let (namespace, key) = (request.namespace()?, request.key()?);
    let terms = EntryTerms::default();
    request.namespaces().delete(&namespace, &key, terms).await?;
    Ok(HttpResponse::NoContent().finish())
}
