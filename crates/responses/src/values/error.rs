use std::time::Duration;

use threadkeep_domain::{Failure, ResponseId};
use threadkeep_service::ServiceError;
use threadkeep_store::StoreError;

/// Reason why a response cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum ResponseError {
    #[error("the model is not configured")]
    NoModel,
    #[error("the events of this response are no longer kept")]
    StreamExpired,
    #[error("the response does not have that event")]
    NoSuchEvent,
    #[error("the response does not exist")]
    NoResponse,
    /// An input item is the output of a call that the conversation does not contain.
    #[error("`input[{index}].call_id` matches no call of the conversation")]
    NoCall { index: usize },
    #[error("neither the input nor the conversation has an item to answer")]
    NoInput,
    #[error("the conversation does not exist")]
    NoConversation,
    #[error("another response of this conversation is running, or its turn is taken")]
    Locked {
        /// The running response; `None` if a client holds the turn.
        by: Option<ResponseId>,
        /// Time until the turn expires unless it is renewed.
        left: Duration,
    },
    #[error("this server runs as many responses as `responses_max` allows; retry later")]
    TooMany,
    /// The process is stopping. A different process can resume the response.
    #[error("this server is stopping; send the request again")]
    Stopping,
    /// The response failed, and a repeated request resumes it. The message may come from an upstream, so only the
    /// caller may see it.
    #[error("the response failed: {}", .0.code.as_str())]
    Failed(Failure),
    /// The store rejected a step, or failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

impl From<StoreError> for ResponseError {
    fn from(error: StoreError) -> Self {
        Self::Service(error.into())
    }
}
