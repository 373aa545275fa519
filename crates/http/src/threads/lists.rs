use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::list_query::ThreadListing;
use super::object::ThreadObject;
use crate::Api;
use crate::answer::{ApiResult, accepts_json, json};
use crate::problems::ReadProblems;
use crate::request::cursor::{self, Cursor};
use crate::request::{Query, key_for, own};
use threadkeep_domain::{Refusal, Thread, ThreadId};
use threadkeep_identity::Right;
use threadkeep_service::ServiceError;
use threadkeep_store::ThreadPage;

/// A page of threads.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ThreadList {
    /// The threads of an owner, newest first, or all threads in the order of their ids.
    threads: Vec<ThreadObject>,
    /// The cursor of the next page. Null on the last page.
    next_cursor: Option<String>,
}

/// List threads
///
/// With an API key, returns the threads of `owner`, or all threads in the order of their ids. For a caller that has an
/// owner, returns the threads of that owner. Each thread contains the signed id that gives access to the thread, unless
/// the API key is read-only. Listing threads does not extend their lifetime.
#[utoipa::path(
    get,
    path = "/v1/threads",
    params(
        ("owner" = Option<String>, Query, min_length = 1, max_length = 256, description = "Return only threads of this owner. By default, a caller with an owner gets the owner's threads, and a caller with an API key gets all threads."),
        ("order" = Option<String>, Query, pattern = "^(updated|created)$", description = "The order of the threads, newest first: `updated` (by the last write, the default) or `created`. Requires an owner."),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 100, description = "Maximum number of threads per page, 20 by default. A page may contain fewer threads, or be empty, even if more pages follow."),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the previous page."),
        ("metadata.<key>" = Option<String>, Query, description = "Return only threads whose metadata has this string, integer or boolean at the key. You can filter by up to 8 keys."),
    ),
    responses(
        (status = 200, description = "A page of threads.", body = ThreadList),
        ReadProblems,
    ),
    security(("api_key" = []), ()),
)]
pub(crate) async fn list_threads(
    request: HttpRequest,
    api: web::Data<Api>,
    Query(mut listing): Query<ThreadListing>,
) -> ApiResult {
    accepts_json(&request)?;
    let key = key_for(&request, &api);
    let includes_signed_ids = key
        .as_ref()
        .map_or(true, |key| key.rights.cover(&Right::Threads));
    if let Err(refusal) = key {
        let owner = own(&request, &api, refusal)?;
        if listing.owner.get_or_insert(owner.clone()) != &owner {
            return Err(ServiceError::from(Refusal::NotTheOwner).into());
        }
    }
    let (limit, filter) = (listing.page.limit(), &listing.filter);
    match &listing.owner {
        Some(owner) => {
            let after = read_cursor(&api, &listing)?;
            let order = listing.order();
            let page = api.owners.list_owned(owner, order, after, limit, filter);
            let page = page.await?;
            Ok(respond(
                &api,
                &listing,
                page,
                includes_signed_ids,
                |(_, id)| id,
            ))
        }
        None => {
            let after = read_cursor(&api, &listing)?;
            let page = api.owners.list_threads(after, limit, filter).await?;
            Ok(respond(&api, &listing, page, includes_signed_ids, |id| id))
        }
    }
}

fn read_cursor<P: Cursor>(api: &Api, listing: &ThreadListing) -> ApiResult<Option<P>> {
    let text = listing.page.cursor.as_deref();
    cursor::after(api.identity.ring(), &listing.list_id(), text)
}

fn respond<P: Cursor>(
    api: &Api,
    listing: &ThreadListing,
    page: ThreadPage<P>,
    includes_signed_ids: bool,
    id: impl Fn(&P) -> &ThreadId,
) -> HttpResponse {
    let policy = api.service.policy();
    let object = |(position, thread): &(P, Thread)| {
        let id = id(position);
        let signed_id = includes_signed_ids.then(|| api.identity.signed_id(id));
        ThreadObject::of(id, thread, policy).signed_with(signed_id.as_ref())
    };
    let ring = api.identity.ring();
    json(
        HttpResponse::Ok(),
        &ThreadList {
            threads: page.threads.iter().map(object).collect(),
            next_cursor: cursor::next(ring, &listing.list_id(), page.next),
        },
    )
}
