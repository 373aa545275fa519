use actix_web::HttpResponse;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::super::AgentuityError;
use super::request::KvRequest;
use super::stats_query::read_ranking;
use threadkeep_service::NamespaceView;

/// Maximum number of namespaces in an answer that is not a sorted page.
const UNSORTED_MAX: usize = 1_000;

/// Usage statistics for a namespace. Times are in milliseconds since the Unix epoch.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Stats {
    /// Total size of all values in bytes.
    sum: u64,
    /// Number of entries.
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<u64>,
}

/// `GET /kv/stats/{namespace}`. All counts are 0 if the namespace does not exist.
pub(super) async fn get_stats(request: KvRequest) -> Result<HttpResponse, AgentuityError> {
    let namespace = [request.namespace()?];
    let views = request.namespaces().describe(&namespace).await?;
    let stats = views.first().map(Stats::of).unwrap_or_default();
    Ok(HttpResponse::Ok().json(stats))
}

/// `GET /kv/stats`: the newest namespaces, or a sorted page of all namespaces if the query requests one.
pub(super) async fn get_all_stats(request: KvRequest) -> Result<HttpResponse, AgentuityError> {
    let Some(ranking) = read_ranking(request.query())? else {
        let all = request.all_namespaces()?;
        let (views, _) = all.list_namespaces(None, UNSORTED_MAX).await?;
        return Ok(HttpResponse::Ok().json(by_name(&views)));
    };
    let ranked = request.all_namespaces()?.rank(&ranking).await?;
    Ok(HttpResponse::Ok().json(json!({
        "namespaces": by_name(&ranked.views),
        "total": ranked.total,
        "limit": ranking.limit,
        "offset": ranking.offset,
        "hasMore": ranking.offset.saturating_add(ranked.views.len()) < ranked.total,
    })))
}

fn by_name(views: &[NamespaceView]) -> Map<String, Value> {
    let member = |view: &NamespaceView| {
        let name = view.record.namespace.as_str().to_owned();
        (name, json!(Stats::of(view)))
    };
    views.iter().map(member).collect()
}

impl Stats {
    fn of(view: &NamespaceView) -> Self {
        Self {
            sum: view.usage.bytes,
            count: view.usage.entries,
            created_at: Some(view.record.created_ms),
            last_used_at: view.usage.last_used_ms,
        }
    }
}
