use std::time::Duration;

use actix_web::{HttpResponse, web};
use futures_util::future::join;
use tokio::time::timeout;

use super::stats_object::StatsObject;
use crate::answer::{ApiResult, json};
use crate::problems::BackEndProblems;
use crate::request::{BackEnd, Nothing, Query};
use threadkeep_web::ApiError;

const COUNT_TIMEOUT: Duration = Duration::from_millis(500);

/// Retrieve statistics
///
/// Returns statistics of this replica. Objects named `window` cover the last minute. Totals cover the time since
/// `replica.started_at`. If several replicas share an address, `replica.id` tells them apart. `counts.threads` covers
/// the whole store.
///
/// The lists of busiest threads use a fixed amount of memory, regardless of the number of threads. The counts are
/// therefore approximate: a count is never too high, and is too low by at most 0.1% of all traffic.
#[utoipa::path(
    get,
    path = "/v1/stats",
    responses(
        (status = 200, description = "The statistics of this replica.", body = StatsObject),
        BackEndProblems,
    ),
)]
pub(crate) async fn get_stats(BackEnd { api, .. }: BackEnd, _: Query<Nothing>) -> ApiResult {
    // building the report on this worker would block its other requests
    let stats = api.stats.clone();
    let report = web::block(move || stats.report());
    // a missing count must not fail the request, because operators need the other statistics most while the store is
    // unavailable
    let counting = timeout(COUNT_TIMEOUT, api.owners.count_threads());
    let (report, threads) = join(report, counting).await;
    // fails only while the server is shutting down
    let report = report.map_err(|_| ApiError::ShuttingDown)?;
    let threads = threads.ok().and_then(Result::ok);
    Ok(json(HttpResponse::Ok(), &StatsObject::of(report, threads)))
}
