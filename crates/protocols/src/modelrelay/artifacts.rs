//! The artifacts and tasks of a run, and its list of pending tool calls, which is always empty.

use actix_web::HttpResponse;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

use super::super::leading::Leading;
use super::RelayError;
use super::request::RelayRequest;
use super::run_objects::tasks_object;
use super::session_objects::kv_object;
use threadkeep_http::json_text;

pub(super) const OUTPUTS: &str = "run_outputs.v0";
pub(super) const TASKS: &str = "run_tasks.v0";
const MEMORY: &str = "run_memory.v0";

/// Results of tools that a client has run. Runs on this server never request such results.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolResults {
    #[serde(rename = "node_id")]
    _node_id: String,
    #[serde(rename = "step")]
    _step: u64,
    #[serde(rename = "request_id")]
    _request_id: String,
    #[serde(rename = "results")]
    _results: Leading<IgnoredAny, 0>,
}

/// `GET /runs/{id}/artifacts/{key}`: the content of an artifact, even after the run has ended.
pub(super) async fn get_artifact(request: RelayRequest) -> Result<HttpResponse, RelayError> {
    let runs = &request.protocol.runs;
    let run = runs.get(request.id()?).await?;
    Ok(match request.part("key") {
        OUTPUTS if run.outputs.is_some() => json_text(
            HttpResponse::Ok(),
            runs.outputs(&run).await?.as_str().to_owned(),
        ),
        MEMORY => {
            let state = runs.tool_state(&run).await?;
            HttpResponse::Ok().json(json!({"kv": kv_object(&state.kv)}))
        }
        TASKS => {
            let state = runs.tool_state(&run).await?;
            HttpResponse::Ok().json(tasks_object(&state.tasks))
        }
        _ => return Err(RelayError::NotFound("artifact")),
    })
}

/// `GET /runs/{id}/tasks`
pub(super) async fn get_tasks(request: RelayRequest) -> Result<HttpResponse, RelayError> {
    let runs = &request.protocol.runs;
    let run = runs.get(request.id()?).await?;
    let state = runs.tool_state(&run).await?;
    Ok(HttpResponse::Ok().json(tasks_object(&state.tasks)))
}

/// `GET /runs/{id}/steps`
pub(super) async fn get_steps(request: RelayRequest) -> Result<HttpResponse, RelayError> {
    request.protocol.runs.get(request.id()?).await?;
    Ok(HttpResponse::Ok().json(json!({"steps": []})))
}

/// `GET /runs/{id}/pending-tools`
pub(super) async fn get_pending_tools(request: RelayRequest) -> Result<HttpResponse, RelayError> {
    let run = request.protocol.runs.get(request.id()?).await?;
    Ok(HttpResponse::Ok().json(json!({"run_id": run.id.to_string(), "pending": []})))
}

/// `POST /runs/{id}/tool-results`
pub(super) async fn post_tool_results(request: RelayRequest) -> Result<HttpResponse, RelayError> {
    let id = request.id()?;
    request.json::<ToolResults>()?;
    let run = request.protocol.runs.get(id).await?;
    Ok(HttpResponse::Ok().json(json!({"accepted": 0, "status": run.status.as_str()})))
}
