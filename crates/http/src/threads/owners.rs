use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{ApiResult, json};
use crate::problems::BackEndProblems;
use crate::request::{BackEnd, Nothing, Query, extract, invalid, path_part};
use threadkeep_domain::Owner;
use threadkeep_service::ServiceError;

/// Index of the path part with the owner in `/v1/owners/{owner}`.
const OWNER_INDEX: usize = 3;

#[derive(Debug)]
pub(crate) struct OwnerPath(Owner);

/// Totals of an owner's threads.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OwnerObject {
    owner: String,
    /// The number of threads that have not ended.
    threads: u64,
    /// Size of all states in bytes.
    size_bytes: u64,
}

/// The progress of an erasure.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ErasureObject {
    /// The number of threads that were ended. If a request returned 202 and you repeat it within a minute, the number
    /// includes the threads that the earlier request ended.
    threads: u64,
    /// The number of deleted archives.
    archives: u64,
    /// True if the erasure is complete. If false, the erasure continues. Repeat the request to check its progress.
    complete: bool,
}

/// Count an owner's threads
///
/// The duration of the request is proportional to the number of threads.
#[utoipa::path(
    get,
    path = "/v1/owners/{owner}",
    params(("owner" = String, Path, min_length = 1, max_length = 256, description = "The owner, percent-encoded.")),
    responses(
        (status = 200, description = "The totals of the owner's threads. An unknown owner has zeros.", body = OwnerObject),
        BackEndProblems,
    ),
)]
pub(crate) async fn get_owner(
    BackEnd { api, .. }: BackEnd,
    _: Query<Nothing>,
    OwnerPath(owner): OwnerPath,
) -> ApiResult {
    let owned = api.owners.measure(&owner).await?;
    let object = OwnerObject {
        owner: owner.as_str().to_owned(),
        threads: owned.threads,
        size_bytes: owned.size_bytes,
    };
    Ok(json(HttpResponse::Ok(), &object))
}

/// Erase an owner
///
/// Ends the owner's threads permanently. Deletes their scopes, histories, checkpoints, archives and idempotency keys,
/// and their data in the event log and in pending or failed deliveries. Each thread ends with an event that has the
/// reason `erased`. Writes to the thread's id return 410 for `tombstone_seconds`.
///
/// Threads that a client creates for the owner during the erasure are either erased as well, or remain as new threads.
/// The request takes up to three quarters of the request time limit. A longer erasure continues after the response.
#[utoipa::path(
    delete,
    path = "/v1/owners/{owner}",
    params(("owner" = String, Path, min_length = 1, max_length = 256, description = "The owner, percent-encoded.")),
    responses(
        (status = 200, description = "The erasure is complete. The owner has no threads or archives left.", body = ErasureObject),
        (status = 202, description = "The erasure continues. Repeat the request to check its progress.", body = ErasureObject),
        BackEndProblems,
    ),
)]
pub(crate) async fn erase_owner(
    BackEnd { api, .. }: BackEnd,
    _: Query<Nothing>,
    OwnerPath(owner): OwnerPath,
) -> ApiResult {
    // leaves the rest of the time limit for the response
    let wait = api.service.timeout() * 3 / 4;
    let tombstone = api.service.policy().tombstone;
    let erasing = api.events.erase(owner.tag(), tombstone, wait).await;
    let erasing = erasing.map_err(ServiceError::Store)?;
    let response = match erasing.is_complete {
        true => HttpResponse::Ok(),
        false => HttpResponse::Accepted(),
    };
    let object = ErasureObject {
        threads: erasing.erased.threads,
        archives: erasing.erased.archives,
        complete: erasing.is_complete,
    };
    Ok(json(response, &object))
}

impl OwnerPath {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        let text = path_part(request, OWNER_INDEX);
        let owner = text.and_then(|text| Owner::new(&text).ok());
        owner.map(Self).ok_or_else(|| {
            let detail = "The owner must have 1 to 256 bytes of UTF-8 without control characters";
            invalid(detail)
        })
    }
}

extract!(OwnerPath);
