//! Bodies and answers about tools.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::openapi::RefOr;
use utoipa::openapi::response::Response;
use utoipa::{IntoResponses, ToSchema};

use crate::http::request::json::RawJson;
use crate::http::schemas::problems;

/// Tools as they are defined for a model.
#[derive(Serialize, ToSchema)]
pub(super) struct ToolList {
    #[schema(value_type = Vec<BTreeMap<String, Value>>)]
    pub(super) tools: Value,
}

/// A call of a tool.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolCallBody<'a> {
    /// Where it reads and writes; `request`, which is gone with the response, when absent.
    #[schema(nullable = false, value_type = Option<String>)]
    #[serde(borrow)]
    pub(super) scope: Option<RawJson<'a>>,
    /// An object, or its JSON text in a string.
    #[schema(value_type = Option<Value>)]
    pub(super) arguments: Option<RawJson<'a>>,
}

/// Either `result` or `error`.
#[derive(Default, Serialize, ToSchema)]
pub(super) struct ToolResult<'a> {
    /// What the tool answers.
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<&'a Value>,
    /// What the call got wrong, for the model to read. Nothing has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<&'a str>,
    /// That the request names no scope, so that what the tool wrote is gone with the response.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) warning: Option<&'static str>,
}

/// Calls of a model's message: one of `tool_calls`, `tool_use` and `content`.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolCallsBody<'a> {
    /// Where they read and write; `request`, which is gone with the response, when absent.
    #[schema(nullable = false, value_type = Option<String>)]
    #[serde(borrow)]
    pub(super) scope: Option<RawJson<'a>>,
    /// Of an OpenAI message, as they came; at most 128.
    #[schema(nullable = false, value_type = Option<Vec<BTreeMap<String, Value>>>, max_items = 128)]
    pub(super) tool_calls: Option<RawJson<'a>>,
    /// Of an Anthropic message, as they came; at most 128.
    #[schema(nullable = false, value_type = Option<Vec<BTreeMap<String, Value>>>, max_items = 128)]
    pub(super) tool_use: Option<RawJson<'a>>,
    /// The whole content of an Anthropic message, whose other blocks are passed over.
    #[schema(nullable = false, value_type = Option<Vec<BTreeMap<String, Value>>>)]
    pub(super) content: Option<RawJson<'a>>,
    /// Whether calls of tools that are none of ours are left to the caller, in `unknown`.
    #[schema(nullable = false)]
    pub(super) ignore_unknown: Option<bool>,
}

/// What a conversation goes on with.
#[derive(Serialize, ToSchema)]
pub(super) struct ToolMessages {
    /// In the form of the provider: a `tool` message for each call of OpenAI, one `user` message with
    /// a `tool_result` for each of Anthropic.
    #[schema(value_type = Vec<BTreeMap<String, Value>>)]
    pub(super) messages: Value,
    /// With `ignore_unknown`: the calls that are left to the caller, as they came.
    #[schema(value_type = Option<Vec<BTreeMap<String, Value>>>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unknown: Option<Vec<Box<RawValue>>>,
    /// That the request names no scope, so that what its calls wrote is gone with the response.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) warning: Option<&'static str>,
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
