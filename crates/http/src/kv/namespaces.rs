use actix_web::HttpResponse;

use super::object::{
    EntryList, EntryObject, NamespaceBody, NamespaceDeletion, NamespaceList, NamespaceObject,
    read_settings,
};
use super::path::NamespacePath;
use super::query::{EntryListing, NamespaceListing};
use crate::answer::{ApiResult, json, ok_or_replay};
use crate::problems::{BackEndProblems, BodyProblems, RepeatProblems};
use crate::request::{BackEnd, JsonBody, Nothing, OptionalIdempotencyKey, Query, cursor};
use crate::schemas::{EntryRepeatHeader, NamespaceParam};
use threadkeep_domain::EntryKey;
use threadkeep_store::{Answered, EntryRange, KeyOrder, NamespacePosition};

/// List namespaces
///
/// Returns namespaces, newest first, with the number and size of their entries. With `namespace`, returns only the
/// named namespaces, and omits any that do not exist.
#[utoipa::path(
    get,
    path = "/v1/kv",
    params(
        ("namespace" = Option<Vec<String>>, Query, min_length = 1, max_length = 64, max_items = 100, description = "Return only these namespaces. Cannot be combined with `cursor` and `limit`."),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the previous page."),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "Maximum number of items per page, 100 by default."),
    ),
    responses(
        (status = 200, description = "A page of namespaces.", body = NamespaceList),
        BackEndProblems,
    ),
)]
pub(crate) async fn list_namespaces(
    BackEnd { api, .. }: BackEnd,
    Query(listing): Query<NamespaceListing>,
) -> ApiResult {
    let ring = api.identity.ring();
    let after = cursor::after::<NamespacePosition>(ring, b"", listing.page.cursor.as_deref())?;
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
        next_cursor: cursor::next(ring, b"", next),
    };
    Ok(json(HttpResponse::Ok(), &list))
}

/// List the entries of a namespace
///
/// Returns entries in byte order of their keys, with size, type and times. Puts and deletions between two pages do not
/// cause other entries to be repeated or skipped. For a namespace that does not exist, returns an empty list. With
/// `bodies`, a page is limited to 2 MiB, but contains at least one entry if any exists.
#[utoipa::path(
    get,
    path = "/v1/kv/{namespace}",
    params(
        NamespaceParam,
        ("prefix" = Option<String>, Query, max_length = 1024, description = "Return only keys with this prefix."),
        ("order" = Option<String>, Query, pattern = "^(asc|desc)$", description = "The byte order of the keys: `asc` (default) or `desc`."),
        ("bodies" = Option<bool>, Query, description = "Whether to return the entries with their bodies, `false` by default."),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the previous page, which must have had the same `prefix` and `order`."),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "Maximum number of items per page, 100 by default."),
    ),
    responses(
        (status = 200, description = "A page of entries.", body = EntryList),
        BackEndProblems,
    ),
)]
pub(crate) async fn list_entries(
    BackEnd { api, .. }: BackEnd,
    NamespacePath(namespace): NamespacePath,
    Query(listing): Query<EntryListing>,
) -> ApiResult {
    let ring = api.identity.ring();
    let prefix = listing.prefix();
    // NUL is a safe separator, because names contain no control characters
    let list_id = match listing.order() {
        KeyOrder::Ascending => [namespace.as_str(), prefix].join("\0"),
        KeyOrder::Descending => [namespace.as_str(), prefix, "desc"].join("\0"),
    };
    let list_id = list_id.as_bytes();
    let after = cursor::after::<EntryKey>(ring, list_id, listing.page.cursor.as_deref())?;
    let range = EntryRange {
        prefix,
        after: after.as_ref(),
        order: listing.order(),
    };
    let (namespaces, limit) = (&api.namespaces, listing.page.limit());
    let (entries, next) = if listing.has_bodies() {
        let page = namespaces.list_bodies(&namespace, range, limit, EntryObject::json_size);
        let page = page.await?;
        let entries = page.entries.iter();
        let entries = entries.map(|(key, entry)| EntryObject::with_body(key, entry));
        (entries.collect(), page.next)
    } else {
        let page = namespaces.list(&namespace, range, limit).await?;
        let entries = page.entries.iter();
        let entries = entries.map(|(key, head)| EntryObject::of(key, head));
        (entries.collect(), page.next)
    };
    let list = EntryList {
        entries,
        next_cursor: cursor::next(ring, list_id, next),
    };
    Ok(json(HttpResponse::Ok(), &list))
}

/// Create or update a namespace
///
/// Sets the default lifetime of entries and the idle time of the namespace. Settings that the body omits are removed.
/// The first put into a namespace also creates the namespace.
///
/// A namespace with an idle time ends if none of its entries is read, listed, put or deleted for that long. The
/// namespace may end up to two seconds late. When it ends, all its entries are deleted.
#[utoipa::path(
    put,
    path = "/v1/kv/{namespace}",
    params(NamespaceParam, EntryRepeatHeader),
    request_body(content = Option<NamespaceBody<'_>>),
    responses(
        (status = 200, description = "The updated namespace.", body = NamespaceObject),
        BodyProblems,
        RepeatProblems,
        BackEndProblems,
    ),
)]
pub(crate) async fn put_namespace(
    BackEnd { api, .. }: BackEnd,
    NamespacePath(namespace): NamespacePath,
    OptionalIdempotencyKey(idempotency): OptionalIdempotencyKey,
    _: Query<Nothing>,
    body: JsonBody,
) -> ApiResult {
    let change = read_settings(body.as_str())?;
    let set = api
        .namespaces
        .set_namespace(&namespace, change, idempotency);
    let set = set.await?;
    Ok(ok_or_replay(
        &NamespaceObject::of(&set.answer),
        set.replayed,
    ))
}

/// Delete a namespace and all its entries
///
/// Deletes entries in batches, so that other requests are not blocked. An entry that is put during the deletion is
/// either deleted as well, or creates the namespace again. If the request fails, some entries may remain, so send the
/// request again. With an `Idempotency-Key`, a late retry does not delete entries that were put in the meantime.
#[utoipa::path(
    delete,
    path = "/v1/kv/{namespace}",
    params(NamespaceParam, EntryRepeatHeader),
    responses(
        (status = 200, description = "The namespace no longer exists.", body = NamespaceDeletion),
        RepeatProblems,
        BackEndProblems,
    ),
)]
pub(crate) async fn delete_namespace(
    BackEnd { api, .. }: BackEnd,
    NamespacePath(namespace): NamespacePath,
    OptionalIdempotencyKey(idempotency): OptionalIdempotencyKey,
    _: Query<Nothing>,
) -> ApiResult {
    let deleted = api.namespaces.delete_namespace(&namespace, idempotency);
    let Answered { answer, replayed } = deleted.await?;
    let deletion = NamespaceDeletion { deleted: answer };
    Ok(ok_or_replay(&deletion, replayed))
}
