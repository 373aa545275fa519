//! Runs tool calls in the context of a state handle, a session or a run.

use actix_web::HttpResponse;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::leading::Leading;
use super::RelayError;
use super::bodies::read_id;
use super::error::wrong_body;
use super::request::RelayRequest;
use crate::object::Object;
use threadkeep_domain::scope::{Scope, ScopeId};
use threadkeep_domain::{Fingerprint, IdempotencyKey};
use threadkeep_service::tools::{Call, Outcome, Tool};

/// Maximum number of calls in a request. Models never request that many calls in one answer.
const CALLS_MAX: usize = 128;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolCalls {
    state_id: Option<String>,
    session_id: Option<String>,
    run_id: Option<String>,
    tool_calls: Leading<Object<ToolCall>, { CALLS_MAX + 1 }>,
}

/// A model's call. Unknown members are ignored.
#[derive(Deserialize)]
struct ToolCall {
    #[serde(default)]
    id: String,
    name: Option<String>,
    arguments: Option<Box<RawValue>>,
    function: Option<Object<Function>>,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: Option<Box<RawValue>>,
}

/// `POST /tool-calls`. The original API does not have this route, because the original server calls the tools itself.
///
/// If the request does not name a state handle, session or run, the tools' state is discarded after the answer.
pub(super) async fn call_tools(request: RelayRequest) -> Result<HttpResponse, RelayError> {
    let body: ToolCalls = request.json()?;
    if body.tool_calls.len() > CALLS_MAX {
        return Err(wrong_body(format!(
            "tool_calls has at most {CALLS_MAX} calls"
        )));
    }
    let named: Vec<_> = body
        .tool_calls
        .iter()
        .map(|Object(call)| call.read())
        .collect::<Result<_, _>>()?;
    let scope = body.scope(&request).await?;
    let calls = named.iter().enumerate().filter_map(|(index, named)| {
        Some(Call {
            idempotency: request.call_key(index),
            ..Call::new(named.tool?, named.arguments)
        })
    });
    let calls: Vec<_> = calls.collect();
    request.idempotency_key()?;
    let outcomes = request.protocol.tools.call_all(&scope, &calls).await?;
    let mut outcomes = outcomes.into_iter();
    let results: Vec<_> = named
        .iter()
        .map(|named| {
            let ran = named.tool.and_then(|_| outcomes.next());
            let outcome = ran.map(|ran| ran.outcome);
            named.result(outcome.unwrap_or_else(unknown_tool))
        })
        .collect();
    Ok(HttpResponse::Ok().json(json!({"results": results})))
}

struct Named<'a> {
    id: &'a str,
    name: &'a str,
    tool: Option<Tool>,
    arguments: &'a str,
}

impl ToolCalls {
    async fn scope(&self, request: &RelayRequest) -> Result<Scope, RelayError> {
        let state = read_id("state_id", self.state_id.as_deref())?;
        let session = read_id("session_id", self.session_id.as_deref())?;
        let run = read_id("run_id", self.run_id.as_deref())?;
        let relay = &request.protocol;
        Ok(match (state, session, run) {
            (None, None, None) => Scope::Request,
            (Some(id), None, None) => {
                relay.handles.get(id).await?;
                ScopeId::State(id).into()
            }
            (None, Some(id), None) => relay.sessions.tool_scope(id).await?.into(),
            (None, None, Some(id)) => relay.runs.tool_scope(id).await?.into(),
            _ => {
                return Err(wrong_body(
                    "one of state_id, session_id and run_id is the context",
                ));
            }
        })
    }
}

impl ToolCall {
    fn read(&self) -> Result<Named<'_>, RelayError> {
        let (name, arguments) = match (&self.name, &self.function) {
            (Some(name), None) => (name, &self.arguments),
            (None, Some(Object(function))) => (&function.name, &function.arguments),
            _ => return Err(wrong_body("a tool call has either a name or a function")),
        };
        Ok(Named {
            id: &self.id,
            name,
            tool: name.parse().ok(),
            arguments: arguments.as_deref().map_or("", RawValue::get),
        })
    }
}

impl Named<'_> {
    fn result(&self, outcome: Outcome) -> Value {
        // returns the canonical name, because the name in the call may contain dots, which model APIs reject
        let name = self.tool.map_or(self.name, |tool| tool.as_str());
        match outcome {
            Outcome::Result(result) => {
                json!({"tool_call_id": self.id, "name": name, "result": result})
            }
            Outcome::Mistake(text) => {
                json!({"tool_call_id": self.id, "name": name, "error": text})
            }
        }
    }
}

fn unknown_tool() -> Outcome {
    Outcome::Mistake("there is no such tool".into())
}

impl RelayRequest {
    /// Returns the idempotency key of the call at `index`. Each call has its own key, so that a retry does not repeat
    /// calls that succeeded.
    fn call_key(&self, index: usize) -> Option<IdempotencyKey> {
        let key = self.idempotency_key().ok()??;
        let index = (index as u64).to_be_bytes();
        Some(IdempotencyKey {
            digest: Fingerprint::of(&[b"modelrelay tool call", self.key_name(), key, &index]),
            request: self.fingerprint(),
        })
    }
}
