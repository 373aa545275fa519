use serde::{Deserialize, Serialize};

use super::Usage;
use crate::Json;

/// The stored result of a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The status.
    pub status: Status,
    /// The output items, in order. Each item is an object with `id` and `type`.
    pub output: Vec<Json>,
    /// The total token usage of all steps.
    pub usage: Usage,
    /// When the response ended, in Unix milliseconds.
    pub ended_ms: u64,
}

/// How a response ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The response ended with an answer, or with calls for the client to execute.
    Completed,
    /// The response ended before it was complete.
    Incomplete(Incomplete),
    /// A caller cancelled the response.
    Cancelled,
    /// The response ended with an error.
    Failed(Failure),
}

impl Status {
    /// Returns the name for answers, metrics and logs.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Incomplete(_) => "incomplete",
            Self::Cancelled => "cancelled",
            Self::Failed(_) => "failed",
        }
    }
}

/// Why a response is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Incomplete {
    /// An answer or the whole output reached its maximum length.
    MaxOutputTokens,
    /// The upstream's content filter stopped an answer.
    ContentFilter,
    /// The model exceeded its limit on calls or steps.
    MaxToolCalls,
    /// The response reached its time limit.
    TimeLimit,
}

/// Why a response failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind of failure.
    pub code: FailureCode,
    /// A text for the caller.
    pub message: String,
    /// Seconds that the caller should wait before a retry.
    pub retry_after_seconds: Option<u64>,
    /// Whether a retry may succeed. If so, the response stays open.
    pub is_temporary: bool,
}

/// The kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// The upstream answered 400.
    UpstreamRefused,
    /// The upstream failed, or rejected this server.
    UpstreamError,
    /// The upstream's answer is unusable.
    UpstreamMalformed,
    /// The upstream timed out.
    UpstreamTimeout,
    /// The upstream's rate limit was exceeded.
    RateLimitExceeded,
    /// The conversation ended during the response.
    ConversationDestroyed,
    /// The response does not fit into the conversation.
    ConversationTooLarge,
    /// The driver stopped. Afterwards, a later response or a limit that the operator set ended the response.
    Abandoned,
}

impl Incomplete {
    /// Returns the name in OpenAI's Responses API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MaxOutputTokens => "max_output_tokens",
            Self::ContentFilter => "content_filter",
            Self::MaxToolCalls => "max_tool_calls",
            Self::TimeLimit => "time_limit",
        }
    }
}

impl FailureCode {
    /// Returns the name for clients.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UpstreamRefused => "upstream_refused",
            Self::UpstreamError => "upstream_error",
            Self::UpstreamMalformed => "upstream_malformed",
            Self::UpstreamTimeout => "upstream_timeout",
            Self::RateLimitExceeded => "rate_limit_exceeded",
            Self::ConversationDestroyed => "conversation_destroyed",
            Self::ConversationTooLarge => "conversation_too_large",
            Self::Abandoned => "server_error",
        }
    }
}
