//! How a response ended.

use serde::{Deserialize, Serialize};

use super::Usage;
use crate::Json;

/// The end of a response, in the form in which it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// Its output: objects with `id` and `type`, in order.
    pub output: Vec<Json>,
    /// The tokens of all steps.
    pub usage: Usage,
    /// When it ended, in milliseconds of the Unix epoch.
    pub ended_ms: u64,
}

/// How a response ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// With an answer, or with calls for the client.
    Completed,
    /// Before it was complete.
    Incomplete(Incomplete),
    /// By a request to end it.
    Cancelled,
    /// With an error.
    Failed(Failure),
}

impl Status {
    /// Its name in answers, metrics and logs.
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

/// Why a response ended before it was complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Incomplete {
    /// An answer was as long as it may be, or all output is.
    MaxOutputTokens,
    /// The upstream's filter ended an answer.
    ContentFilter,
    /// The model wanted more calls or steps than it may have.
    MaxToolCalls,
    /// The time limit of a response was reached.
    TimeLimit,
}

/// Why a response failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Which kind.
    pub code: FailureCode,
    /// A text for the caller.
    pub message: String,
    /// How many seconds the caller should wait before the next attempt.
    pub retry_after_seconds: Option<u64>,
    /// Whether another attempt may succeed, so that the response stays open for it.
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
    /// The upstream's answer cannot be used.
    UpstreamMalformed,
    /// The upstream took too long.
    UpstreamTimeout,
    /// The upstream has too many requests.
    RateLimitExceeded,
    /// The conversation ended in the meantime.
    ConversationDestroyed,
    /// The conversation has no room for the response.
    ConversationTooLarge,
    /// A later response or an operator's limit ended it after its driver was gone.
    Abandoned,
}

impl Incomplete {
    /// Its name in the form of OpenAI's Responses API.
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
    /// Its name for clients.
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
