use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{ApiResult, json};
use crate::problems::BackEndProblems;
use crate::request::{BackEnd, Nothing, Query, extract, invalid, path_part};
use threadkeep_domain::Owner;
use threadkeep_service::ServiceError;

/// Index of the path part with the owner in `/v1/owners/{owner}`.
const OWNER_PLACE: usize = 3;

#[derive(Debug)]
pub(crate) struct OwnerPath(Owner);

/// Totals of an owner's threads.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OwnerObject {
    owner: String,
    /// Number of living threads.
    threads: u64,
    /// Bytes of their states.
    size_bytes: u64,
}

/// The progress of an erasure.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ErasureObject {
    /// Number of ended threads. If you repeat a call that got 202 within a minute, includes those of the earlier call.
    threads: u64,
    /// Number of deleted archives.
    archives: u64,
    /// Whether the erasure is complete. If not, it continues. Repeat the call to check.
    complete: bool,
}

/// Count an owner's threads
///
/// Takes time proportional to their number.
#[utoipa::path(
    get,
    path = "/v1/owners/{owner}",
    params(("owner" = String, Path, min_length = 1, max_length = 256, description = "The owner, percent-encoded.")),
    responses(
        (status = 200, description = "The owner's threads as a whole; zeros for an unknown owner.", body = OwnerObject),
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
/// Ends the owner's threads permanently and deletes their scopes and histories, checkpoints, archives, remembered responses,
/// and their data in the log and in pending or failed deliveries. The end of each thread is an event with the reason
/// `erased`, and its id rejects writes with 410 for the tombstone time. Threads that a client creates for the owner
/// meanwhile are either erased too, or remain as new threads. The call takes up to three quarters of a request's time limit.
/// If the erasure takes longer, it continues after the response.
#[utoipa::path(
    delete,
    path = "/v1/owners/{owner}",
    params(("owner" = String, Path, min_length = 1, max_length = 256, description = "The owner, percent-encoded.")),
    responses(
        (status = 200, description = "No thread or archive of the owner is left.", body = ErasureObject),
        (status = 202, description = "The erasure continues. Repeat the call to learn when it is complete.", body = ErasureObject),
        BackEndProblems,
    ),
)]
pub(crate) async fn erase_owner(
    BackEnd { api, .. }: BackEnd,
    _: Query<Nothing>,
    OwnerPath(owner): OwnerPath,
) -> ApiResult {
    // the rest of the time is for the response
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
        let text = path_part(request, OWNER_PLACE);
        let owner = text.and_then(|text| Owner::new(&text).ok());
        owner.map(Self).ok_or_else(|| {
            let detail = "The owner must have 1 to 256 bytes of UTF-8 without control characters";
            invalid(detail)
        })
    }
}

extract!(OwnerPath);
