//! Handlers of namespaces, for back ends.

use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;

use super::object::{
    EntryList, EntryObject, NamespaceBody, NamespaceDeletion, NamespaceList, NamespaceObject,
    read_default,
};
use super::path::NamespacePath;
use super::query::{EntryListing, NamespaceListing};
use crate::domain::EntryKey;
use crate::http::answer::negotiation::accepts_json;
use crate::http::openapi::problems::{
    BodyProblems, EntryProblems, NotAcceptable, TooManyNamespaces,
};
use crate::http::request::back_end::BackEnd;
use crate::http::request::cursor;
use crate::http::request::json_body::JsonBody;
use crate::http::request::query::{Nothing, Query};
use crate::store::NamespacePlace;
use crate::web::ApiError;

/// List namespaces
///
/// Newest first, with the number and size of their entries; or those that `namespace` names, if they exist.
#[utoipa::path(
    get,
    path = "/v1/kv",
    tag = "kv",
    params(
        ("namespace" = Option<Vec<String>>, Query, min_length = 1, max_length = 64, max_items = 100, description = "Return only these. Not with `cursor` and `limit`."),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the previous page."),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "Items on the page, 100 by default."),
    ),
    responses(
        (status = 200, description = "A page of namespaces.", body = NamespaceList),
        NotAcceptable,
        EntryProblems,
    ),
    security(("api_key" = [])),
)]
pub(crate) async fn list_namespaces(
    request: HttpRequest,
    BackEnd { api, .. }: BackEnd,
    Query(listing): Query<NamespaceListing>,
) -> Result<HttpResponse, ApiError> {
    accepts_json(&request)?;
    let ring = api.identity.ring();
    let cursor = listing.page.cursor.as_deref();
    let after = cursor.map(|text| cursor::open::<NamespacePlace>(ring, b"", text));
    let after = after.transpose()?;
    let limit = listing.page.limit();
    let (views, next) = if listing.names.is_empty() {
        api.namespaces
            .list_namespaces(after.as_ref(), limit)
            .await?
    } else {
        (api.namespaces.describe(&listing.names).await?, None)
    };
    let list = NamespaceList {
        namespaces: views.iter().map(NamespaceObject::of).collect(),
        next_cursor: next.map(|place| cursor::seal(ring, b"", &place)),
    };
    Ok(json(&list))
}

/// List the keys of a namespace
///
/// In the order of their bytes, with size, type and times. Puts and deletions between two pages do not repeat or skip
/// other keys. A namespace that does not exist has none.
#[utoipa::path(
    get,
    path = "/v1/kv/{namespace}",
    tag = "kv",
    params(
        ("namespace" = String, Path, min_length = 1, max_length = 64, description = "1 to 64 visible characters, percent-encoded."),
        ("prefix" = Option<String>, Query, max_length = 1024, description = "Return only keys with this prefix."),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the previous page, which had the same prefix."),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "Items on the page, 100 by default."),
    ),
    responses(
        (status = 200, description = "A page of keys.", body = EntryList),
        NotAcceptable,
        EntryProblems,
    ),
    security(("api_key" = [])),
)]
pub(crate) async fn list_entries(
    request: HttpRequest,
    BackEnd { api, .. }: BackEnd,
    NamespacePath(namespace): NamespacePath,
    Query(listing): Query<EntryListing>,
) -> Result<HttpResponse, ApiError> {
    accepts_json(&request)?;
    let ring = api.identity.ring();
    let prefix = listing.prefix();
    // no name has a control character
    let about = [namespace.as_str(), prefix].join("\0");
    let cursor = listing.page.cursor.as_deref();
    let after = cursor.map(|text| cursor::open::<EntryKey>(ring, about.as_bytes(), text));
    let after = after.transpose()?;
    let page = api
        .namespaces
        .list(&namespace, prefix, after.as_ref(), listing.page.limit());
    let page = page.await?;
    let next = page.next;
    let list = EntryList {
        keys: page
            .entries
            .iter()
            .map(|(key, head)| EntryObject::of(key, head))
            .collect(),
        next_cursor: next.map(|key| cursor::seal(ring, about.as_bytes(), &key)),
    };
    Ok(json(&list))
}

/// Create or change a namespace
///
/// Sets the default lifetime of its entries. The first put into a namespace also creates it.
#[utoipa::path(
    put,
    path = "/v1/kv/{namespace}",
    tag = "kv",
    params(("namespace" = String, Path, min_length = 1, max_length = 64, description = "1 to 64 visible characters, percent-encoded.")),
    request_body(content = Option<NamespaceBody<'_>>),
    responses(
        (status = 200, description = "The namespace after the change.", body = NamespaceObject),
        NotAcceptable,
        BodyProblems,
        TooManyNamespaces,
        EntryProblems,
    ),
    security(("api_key" = [])),
)]
pub(crate) async fn put_namespace(
    request: HttpRequest,
    BackEnd { api, .. }: BackEnd,
    NamespacePath(namespace): NamespacePath,
    _: Query<Nothing>,
    body: JsonBody,
) -> Result<HttpResponse, ApiError> {
    accepts_json(&request)?;
    let lifetime = read_default(body.as_str())?;
    let view = api.namespaces.set_default_lifetime(&namespace, lifetime);
    Ok(json(&NamespaceObject::of(&view.await?)))
}

/// Delete a namespace with all its entries
///
/// Deletes in batches, so that other requests do not wait. An entry that is put meanwhile is either deleted too, or
/// stays and creates the namespace again. If the request fails, entries may be left: send it again.
#[utoipa::path(
    delete,
    path = "/v1/kv/{namespace}",
    tag = "kv",
    params(("namespace" = String, Path, min_length = 1, max_length = 64, description = "1 to 64 visible characters, percent-encoded.")),
    responses(
        (status = 200, description = "The namespace no longer exists.", body = NamespaceDeletion),
        NotAcceptable,
        EntryProblems,
    ),
    security(("api_key" = [])),
)]
pub(crate) async fn delete_namespace(
    request: HttpRequest,
    BackEnd { api, .. }: BackEnd,
    NamespacePath(namespace): NamespacePath,
    _: Query<Nothing>,
) -> Result<HttpResponse, ApiError> {
    accepts_json(&request)?;
    let deleted = api.namespaces.delete_namespace(&namespace).await?;
    Ok(json(&NamespaceDeletion { deleted }))
}

fn json(body: &impl Serialize) -> HttpResponse {
    let body = serde_json::to_vec(body).expect("text and numbers always serialize");
    HttpResponse::Ok()
        .content_type("application/json")
        .body(body)
}
