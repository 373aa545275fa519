//! The interface for counting responses.

use std::fmt;
use std::time::Duration;

use crate::values::request::Protocol;
use threadkeep_domain::{Status, Usage};

/// Counts responses. Never gets their texts.
pub trait ResponseObserver: fmt::Debug + Send + Sync {
    /// This process drives a response.
    fn begun(&self, _taken_over: bool) {}

    /// A response has ended after that time and that many answers.
    fn ended(&self, _protocol: Protocol, _status: &Status, _time: Duration, _steps: u32) {}

    /// A driver has lost its response to another one.
    fn fenced(&self) {}

    /// A response was refused before it began.
    fn refused(&self, _reason: ResponseRefusal) {}

    /// A call was run; without a tool, the model called one that does not exist.
    fn called(&self, _tool: Option<&'static str>, _is_mistake: bool) {}

    /// A model has answered, or has not.
    fn answered(&self, _upstream: &str, _answer: UpstreamOutcome, _time: Duration) {}

    /// The tokens of an answer.
    fn used(&self, _upstream: &str, _usage: &Usage) {}
}

/// Why a response was refused before it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseRefusal {
    /// Another response of the conversation is running.
    Locked,
    /// The process runs as many responses as it may.
    TooMany,
    /// The process is stopping.
    Stopping,
}

/// How a request to an upstream ended, with all its repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamOutcome {
    /// With an answer.
    Answered,
    /// With 400.
    Refused,
    /// With 429.
    RateLimited,
    /// With a rejection of this server.
    Rejected,
    /// With 5xx, or without a connection.
    Failed,
    /// With an unreadable answer.
    Malformed,
    /// Too late.
    TimedOut,
}

/// Counts nothing.
impl ResponseObserver for () {}

impl ResponseRefusal {
    /// Its name in metrics.
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
    /// Its name in metrics.
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
