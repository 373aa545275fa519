//! Entries.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;

use super::super::AgentuityError;
use super::asked::Asked;
use crate::http::{entry_body, entry_head};
use crate::store::Reading;

/// `GET /kv/{namespace}/{key}`
pub(super) async fn get_entry(asked: Asked) -> Result<HttpResponse, AgentuityError> {
    let (namespace, key) = (asked.namespace()?, asked.key()?);
    let read = asked.namespaces().get(&namespace, &key, Reading::Use);
    let entry = read.await?;
    Ok(entry_body(entry_head(StatusCode::OK, &entry.head), entry))
}

/// `PUT /kv/{namespace}/{key}` and `PUT /kv/{namespace}/{key}/{ttl}`
pub(super) async fn put_entry(asked: Asked) -> Result<HttpResponse, AgentuityError> {
    let (namespace, key) = (asked.namespace()?, asked.key()?);
    let put = asked
        .namespaces()
        .put(&namespace, &key, asked.draft()?, None);
    put.await?;
    Ok(HttpResponse::NoContent().finish())
}

/// `DELETE /kv/{namespace}/{key}`, which may be repeated.
pub(super) async fn delete_entry(asked: Asked) -> Result<HttpResponse, AgentuityError> {
    let (namespace, key) = (asked.namespace()?, asked.key()?);
    asked.namespaces().delete(&namespace, &key, None).await?;
    Ok(HttpResponse::NoContent().finish())
}
