//! The shapes of bodies and answers about tools, for the OpenAPI document.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::response::Response;
use utoipa::{IntoResponses, ToSchema};

use crate::http::schemas::problems;

/// Tools as they are defined for a model.
#[derive(ToSchema)]
#[expect(dead_code, reason = "its shape alone is used")]
pub(super) struct ToolList {
    tools: Vec<BTreeMap<String, Value>>,
}

/// A call of a tool.
#[derive(ToSchema, Deserialize)]
#[expect(dead_code, reason = "its shape alone is used")]
#[serde(deny_unknown_fields)]
pub(super) struct ToolCallBody {
    /// Where it reads and writes; `request`, which is gone with the response, when absent.
    #[schema(nullable = false)]
    scope: Option<String>,
    /// An object, or its JSON text in a string.
    arguments: Option<Value>,
}

/// Either `result` or `error`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "its shape alone is used")]
pub(super) struct ToolResult {
    /// What the tool answers.
    result: Option<BTreeMap<String, Value>>,
    /// What the call got wrong, for the model to read. Nothing has changed.
    error: Option<String>,
    /// That the request names no scope, so that what the tool wrote is gone with the response.
    #[schema(nullable = false)]
    warning: Option<String>,
}

/// Calls of a model's message: one of `tool_calls`, `tool_use` and `content`.
#[derive(ToSchema, Deserialize)]
#[expect(dead_code, reason = "its shape alone is used")]
#[serde(deny_unknown_fields)]
pub(super) struct ToolCallsBody {
    /// Where they read and write; `request`, which is gone with the response, when absent.
    #[schema(nullable = false)]
    scope: Option<String>,
    /// Of an OpenAI message, as they came; at most 128.
    #[schema(nullable = false, max_items = 128)]
    tool_calls: Option<Vec<BTreeMap<String, Value>>>,
    /// Of an Anthropic message, as they came; at most 128.
    #[schema(nullable = false, max_items = 128)]
    tool_use: Option<Vec<BTreeMap<String, Value>>>,
    /// The whole content of an Anthropic message, whose other blocks are passed over.
    #[schema(nullable = false)]
    content: Option<Vec<BTreeMap<String, Value>>>,
    /// Whether calls of tools that are none of ours are left to the caller, in `unknown`.
    #[schema(nullable = false)]
    ignore_unknown: Option<bool>,
}

/// What a conversation goes on with.
#[derive(ToSchema)]
#[expect(dead_code, reason = "its shape alone is used")]
pub(super) struct ToolMessages {
    /// In the form of the provider: a `tool` message for each call of OpenAI, one `user` message with
    /// a `tool_result` for each of Anthropic.
    messages: Vec<BTreeMap<String, Value>>,
    /// With `ignore_unknown`: the calls that are left to the caller, as they came.
    unknown: Option<Vec<BTreeMap<String, Value>>>,
    /// That the request names no scope, so that what its calls wrote is gone with the response.
    #[schema(nullable = false)]
    warning: Option<String>,
}

/// What may come back in place of definitions.
pub(super) struct ToolProblems;

impl IntoResponses for ToolProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        problems(&[
            ("400", "A parameter is malformed or unknown."),
            ("406", "The client does not take JSON."),
        ])
    }
}
