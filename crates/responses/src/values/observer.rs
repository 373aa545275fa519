//! Interface for metrics of responses.

use std::fmt;
use std::time::Duration;

use crate::values::request::Protocol;
use threadkeep_domain::{Status, Usage};

/// Receives the measurements of responses. Never receives their texts.
pub trait ResponseObserver: fmt::Debug + Send + Sync {
    fn begun(&self, _taken_over: bool) {}

    fn ended(&self, _protocol: Protocol, _status: &Status, _time: Duration, _steps: u32) {}

    /// Called when a driver has lost its response to another driver.
    fn fenced(&self) {}

    fn refused(&self, _reason: ResponseRefusal) {}

    /// Called when a tool call has run. `_tool` is `None` if the model called an unknown tool.
    fn called(&self, _tool: Option<&'static str>, _is_mistake: bool) {}

    /// Called when a request to an upstream has ended.
    fn answered(&self, _upstream: &str, _answer: UpstreamOutcome, _time: Duration) {}

    fn used(&self, _upstream: &str, _usage: &Usage) {}
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseRefusal {
    Locked,
    TooMany,
    Stopping,
}

/// How a request to an upstream ended, after all retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamOutcome {
    Answered,
    /// Status 400.
    Refused,
    /// Status 429.
    RateLimited,
    /// The upstream rejected this server.
    Rejected,
    /// Status 5xx, or no connection.
    Failed,
    Malformed,
    TimedOut,
}

/// An observer that discards all measurements.
impl ResponseObserver for () {}

impl ResponseRefusal {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Locked => "locked",
            Self::TooMany => "too_many",
            Self::Stopping => "stopping",
        }
    }
}

impl UpstreamOutcome {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::RateLimited => "rate_limited",
            Self::Rejected => "rejected",
            Self::Failed => "failed",
            Self::Malformed => "malformed",
            Self::TimedOut => "timed_out",
        }
    }
}
