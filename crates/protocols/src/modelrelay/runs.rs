//! Creates, reads and ends runs for the program that executes the runs.

use actix_web::HttpResponse;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::bodies::read_id;
use super::error::{wrong_body, wrong_input};
use super::request::RelayRequest;
use super::run_objects::RunObject;
use super::{ModelRelay, RelayError};
use crate::object::Object;
use threadkeep_domain::Json;
use threadkeep_service::{Completion, Digested, Run, RunError, RunPlan, RunStatus};

/// Maximum size in bytes of a workflow name, and of the message and the code of an error.
const TEXT_MAX_BYTES: usize = 4_096;
const HASH_DIGITS: usize = 64;

/// The body of a new run. Members that control the execution of a workflow are accepted, but have no effect.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewRun {
    workflow_id: Option<String>,
    spec: Option<Box<RawValue>>,
    plan_hash: Option<String>,
    input: Option<Box<RawValue>>,
    session_id: Option<String>,
    state_id: Option<String>,
    options: Option<Object<Options>>,
    #[serde(rename = "model_override")]
    _model_override: Option<String>,
    #[serde(rename = "model_overrides")]
    _model_overrides: Option<Box<RawValue>>,
    #[serde(rename = "stream")]
    _stream: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    idempotency_key: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    status: String,
    output: Option<Box<RawValue>>,
    error: Option<Object<RunError>>,
}

#[derive(Deserialize)]
struct Include {
    include: Option<String>,
}

/// `POST /runs`
pub(super) async fn create_run(request: RelayRequest) -> Result<HttpResponse, RelayError> {
    let body: NewRun = request.json()?;
    let options = body.options.as_ref();
    let key = options.and_then(|Object(options)| options.idempotency_key.as_deref());
    let making = request.making("run", key)?;
    let plan = body.plan()?;
    let relay = &request.protocol;
    let run = match relay.runs.made(&making).await? {
        Some(run) => run,
        None => {
            check_ids(relay, &plan).await?;
            relay.runs.create(&making, plan).await?
        }
    };
    Ok(HttpResponse::Ok().json(json!({
        "run_id": run.id.to_string(),
        "status": run.status.as_str(),
        "plan_hash": run.plan.plan_hash,
    })))
}

/// `GET /runs/{id}`
pub(super) async fn get_run(request: RelayRequest) -> Result<HttpResponse, RelayError> {
    let id = request.id()?;
    let include: Include = request.query()?;
    let include = include.include.as_deref().unwrap_or_default();
    let mut has_steps = false;
    for part in include.split(',').filter(|part| !part.is_empty()) {
        match part {
            "steps" => has_steps = true,
            // calls exist only inside steps
            "tool_calls" => {}
            _ => return Err(wrong_input("include must be steps, tool_calls or both")),
        }
    }
    let run = request.protocol.runs.get(id).await?;
    respond(&request.protocol, &run, has_steps).await
}

/// `POST /runs/{id}/complete`. The original API does not have this route, because the original server ends runs itself.
pub(super) async fn complete_run(request: RelayRequest) -> Result<HttpResponse, RelayError> {
    let id = request.id()?;
    let completion = request.json::<End>()?.completion()?;
    let run = request.protocol.runs.complete(id, &completion).await?;
    respond(&request.protocol, &run, false).await
}

async fn respond(
    relay: &ModelRelay,
    run: &Run,
    has_steps: bool,
) -> Result<HttpResponse, RelayError> {
    let outputs = relay.runs.outputs(run).await?;
    let outputs = RawValue::from_string(outputs.as_str().to_owned()).unwrap_or_default();
    Ok(HttpResponse::Ok().json(RunObject::of(run, outputs, has_steps)))
}

/// Checks that the run's session and state handle exist.
async fn check_ids(relay: &ModelRelay, plan: &RunPlan) -> Result<(), RelayError> {
    let id = |text: &Option<String>| -> Option<Uuid> { text.as_ref()?.parse().ok() };
    if let Some(id) = id(&plan.session_id) {
        relay.sessions.tool_scope(id).await?;
    }
    if let Some(id) = id(&plan.state_id) {
        relay.handles.get(id).await?;
    }
    Ok(())
}

impl NewRun {
    fn plan(&self) -> Result<RunPlan, RelayError> {
        check_text("workflow_id", self.workflow_id.as_deref())?;
        check_object("spec", self.spec.as_deref())?;
        check_object("input", self.input.as_deref())?;
        let text = |name, id: &Option<String>| {
            let id = read_id(name, id.as_deref())?;
            Ok::<_, RelayError>(id.map(|id| id.to_string()))
        };
        Ok(RunPlan {
            plan_hash: self.plan_hash()?,
            workflow_id: self.workflow_id.clone(),
            session_id: text("session_id", &self.session_id)?,
            state_id: text("state_id", &self.state_id)?,
        })
    }

    /// Returns the plan hash in the request or, if absent, the hash of the spec or the workflow id.
    fn plan_hash(&self) -> Result<String, RelayError> {
        let Some(hash) = &self.plan_hash else {
            let spec = self.spec.as_deref().map(RawValue::get);
            let plan = spec.or(self.workflow_id.as_deref()).unwrap_or("{}");
            return Ok(Digested::of(plan).sha256);
        };
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if hash.len() != HASH_DIGITS || !hash.bytes().all(is_digit) {
            let text = format!("plan_hash must have {HASH_DIGITS} hex digits in lower case");
            return Err(RelayError::Validation(text));
        }
        Ok(hash.clone())
    }
}

impl End {
    fn completion(self) -> Result<Completion, RelayError> {
        let status = match self.status.as_str() {
            "succeeded" => RunStatus::Succeeded,
            "failed" => RunStatus::Failed,
            "canceled" => RunStatus::Canceled,
            _ => return Err(wrong_body("status must be succeeded, failed or canceled")),
        };
        if let Some(Object(error)) = &self.error {
            if status == RunStatus::Succeeded {
                return Err(wrong_body("a run that has succeeded has no error"));
            }
            check_text("error.message", Some(&error.message))?;
            check_text("error.code", error.code.as_deref())?;
        }
        Ok(Completion {
            status,
            outputs: self.output.as_deref().map(outputs),
            error: self.error.map(|Object(error)| error),
        })
    }
}

/// Converts a run's output to an object. If the output is not an object, it becomes the member `output`.
fn outputs(output: &RawValue) -> Json {
    let json = output.get();
    if json.starts_with('{') {
        return Json::from_compact(json);
    }
    Json::from_compact(format!(r#"{{"output":{json}}}"#))
}

fn check_text(name: &str, text: Option<&str>) -> Result<(), RelayError> {
    let is_legal = |text: &str| (1..=TEXT_MAX_BYTES).contains(&text.len());
    if text.is_none_or(is_legal) {
        return Ok(());
    }
    Err(wrong_body(format!(
        "{name} must have 1 to {TEXT_MAX_BYTES} bytes"
    )))
}

fn check_object(name: &str, json: Option<&RawValue>) -> Result<(), RelayError> {
    if json.is_none_or(|json| json.get().starts_with('{')) {
        return Ok(());
    }
    Err(RelayError::Validation(format!("{name} must be an object")))
}
