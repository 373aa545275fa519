//! Handler of the figures of this replica.

use std::time::Duration;

use actix_web::{HttpResponse, web};
use futures_util::future::join;
use tokio::time::timeout;

use super::stats_object::StatsObject;
use crate::answer::{ApiResult, json};
use crate::problems::BackEndProblems;
use crate::request::{BackEnd, Nothing, Query};
use threadkeep_web::ApiError;

/// How long the store may take to count its threads.
const COUNTING: Duration = Duration::from_millis(500);

/// Show the busiest threads, the routes and the store
///
/// The figures are about this replica. Those called `window` are about the last minute, and the totals about the time since
/// `replica.started_at`. If several replicas share an address, `replica.id` says which one has answered. The memory for these
/// figures is bounded, whatever the number of threads: a count of a thread is never too high, and lacks a thousandth of
/// all traffic at most. `counts.threads` is about the whole store.
#[utoipa::path(
    get,
    path = "/v1/stats",
    responses(
        (status = 200, description = "The figures.", body = StatsObject),
        BackEndProblems,
    ),
)]
pub(crate) async fn get_stats(BackEnd { api, .. }: BackEnd, _: Query<Nothing>) -> ApiResult {
    // not on the thread of the worker, whose other requests would wait
    let stats = api.stats.clone();
    let report = web::block(move || stats.report());
    // the other figures are wanted above all while the store does not answer
    let counting = timeout(COUNTING, api.owners.count_threads());
    let (report, threads) = join(report, counting).await;
    // it fails only while the server stops
    let report = report.map_err(|_| ApiError::ShuttingDown)?;
    let threads = threads.ok().and_then(Result::ok);
    Ok(json(HttpResponse::Ok(), &StatsObject::of(report, threads)))
}
