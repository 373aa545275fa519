use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::request::json::RawJson;

/// The definitions of tools for a model.
#[derive(Serialize, ToSchema)]
pub(super) struct ToolList {
    #[schema(value_type = Vec<BTreeMap<String, Value>>)]
    pub(super) tools: Value,
}

/// The call to a tool.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolCallBody<'a> {
    /// The scope to read and write. The default, `request`, is discarded after the response.
    #[schema(nullable = false, value_type = Option<String>)]
    #[serde(borrow)]
    pub(super) scope: Option<RawJson<'a>>,
    /// The arguments of the tool: an object, or a string that contains its JSON text.
    #[schema(value_type = Option<Value>)]
    pub(super) arguments: Option<RawJson<'a>>,
}

/// The outcome of a call: either `result` or `error`.
#[derive(Default, Serialize, ToSchema)]
pub(super) struct ToolResult<'a> {
    /// The result of the tool.
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<&'a Value>,
    /// A message about the error in the call, for the model to read. The call did not change anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<&'a str>,
    /// Present if a call wrote data without a scope. Such data is discarded after the response.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) warning: Option<&'static str>,
}

/// Tool calls in a model's message: one of `tool_calls`, `tool_use` and `content`.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolCallsBody<'a> {
    /// The scope to read and write. The default, `request`, is discarded after the response.
    #[schema(nullable = false, value_type = Option<String>)]
    #[serde(borrow)]
    pub(super) scope: Option<RawJson<'a>>,
    /// Up to 128 tool calls of an OpenAI message, unchanged.
    #[schema(nullable = false, value_type = Option<Vec<BTreeMap<String, Value>>>, max_items = 128)]
    pub(super) tool_calls: Option<RawJson<'a>>,
    /// Up to 128 `tool_use` blocks of an Anthropic message, unchanged.
    #[schema(nullable = false, value_type = Option<Vec<BTreeMap<String, Value>>>, max_items = 128)]
    pub(super) tool_use: Option<RawJson<'a>>,
    /// The whole content of an Anthropic message. The server ignores blocks that are not tool calls.
    #[schema(nullable = false, value_type = Option<Vec<BTreeMap<String, Value>>>)]
    pub(super) content: Option<RawJson<'a>>,
    /// If true, the response returns calls to unknown tools in `unknown`.
    #[schema(nullable = false)]
    pub(super) ignore_unknown: Option<bool>,
}

/// The messages to append to the conversation.
#[derive(Serialize, ToSchema)]
pub(super) struct ToolMessages {
    /// The messages, in the provider's format: for OpenAI, one `tool` message per call; for Anthropic, one `user`
    /// message with a `tool_result` per call.
    #[schema(value_type = Vec<BTreeMap<String, Value>>)]
    pub(super) messages: Value,
    /// With `ignore_unknown`, the calls to unknown tools, unchanged.
    #[schema(value_type = Option<Vec<BTreeMap<String, Value>>>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unknown: Option<Vec<Box<RawValue>>>,
    /// Present if a call wrote data without a scope. Such data is discarded after the response.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) warning: Option<&'static str>,
}
