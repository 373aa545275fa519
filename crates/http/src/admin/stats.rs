use std::time::Duration;

use actix_web::{HttpResponse, web};
use futures_util::future::join;
use tokio::time::timeout;

use super::stats_object::StatsObject;
use crate::answer::{ApiResult, json};
use crate::problems::BackEndProblems;
use crate::request::{BackEnd, Nothing, Query};
use threadkeep_web::ApiError;

const COUNTING: Duration = Duration::from_millis(500);

/// Show the busiest threads, the routes and the store
///
/// Returns figures of this replica. Those called `window` cover the last minute, and the totals the time since
/// `replica.started_at`. If several replicas share an address, `replica.id` shows which one answered. The memory for these
/// figures is bounded, regardless of the number of threads: the count of a thread is never too high, and misses no more than
/// a thousandth of all traffic. `counts.threads` covers the whole store.
#[utoipa::path(
    get,
    path = "/v1/stats",
    responses(
        (status = 200, description = "The figures.", body = StatsObject),
        BackEndProblems,
    ),
)]
pub(crate) async fn get_stats(BackEnd { api, .. }: BackEnd, _: Query<Nothing>) -> ApiResult {
    // the report would block other requests of the worker
    let stats = api.stats.clone();
    let report = web::block(move || stats.report());
    // operators need the other figures most while the store is down
    let counting = timeout(COUNTING, api.owners.count_threads());
    let (report, threads) = join(report, counting).await;
    // fails only while the server stops
    let report = report.map_err(|_| ApiError::ShuttingDown)?;
    let threads = threads.ok().and_then(Result::ok);
    Ok(json(HttpResponse::Ok(), &StatsObject::of(report, threads)))
}
