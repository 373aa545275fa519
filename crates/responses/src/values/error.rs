//! Why a response has no answer.

use std::time::Duration;

use threadkeep_domain::{Failure, ResponseId};
use threadkeep_service::ServiceError;
use threadkeep_store::StoreError;

/// Why a response has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ResponseError {
    /// The model is not one of the settings.
    #[error("the model is not configured")]
    NoModel,
    /// The events of the response are no longer kept.
    #[error("the events of this response are no longer kept")]
    StreamExpired,
    /// The response has no event of that number.
    #[error("the response does not have that event")]
    NoSuchEvent,
    /// There is no such response.
    #[error("the response does not exist")]
    NoResponse,
    /// An item of the input is the output of a call that nobody has made.
    #[error("`input[{index}].call_id` matches no call of the conversation")]
    NoCall {
        /// Its place in the input, from 0 on.
        index: usize,
    },
    /// Neither the input nor the conversation has an item that the model could answer.
    #[error("neither the input nor the conversation has an item to answer")]
    NoInput,
    /// The conversation has to exist, and does not.
    #[error("the conversation does not exist")]
    NoConversation,
    /// Another response of the conversation is running, or a client holds the turn of its thread.
    #[error("another response of this conversation is running, or its turn is taken")]
    Locked {
        /// The response that is running; none if a client holds the turn.
        by: Option<ResponseId>,
        /// The time until the turn ends, unless it is renewed.
        left: Duration,
    },
    /// The process runs as many responses as it may.
    #[error("this server runs as many responses as `responses_max` allows; retry later")]
    TooMany,
    /// The process is stopping, and another one can continue the response.
    #[error("this server is stopping; send the request again")]
    Stopping,
    /// It failed, and a repeat goes on with it. Its message may be that of an upstream, which is for the caller alone.
    #[error("the response failed: {}", .0.code.as_str())]
    Failed(Failure),
    /// The store refused a step, or failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

impl From<StoreError> for ResponseError {
    fn from(error: StoreError) -> Self {
        Self::Service(error.into())
    }
}
