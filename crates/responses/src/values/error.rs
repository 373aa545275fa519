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
    #[error("there is no such event")]
    NoSuchEvent,
    /// There is no such response.
    #[error("there is no such response")]
    NoResponse,
    /// An item of the input is the output of a call that nobody has made.
    #[error("the input has the output of a call that nobody has made")]
    NoCall {
        /// Its place in the input, from 0 on.
        index: usize,
    },
    /// Neither the input nor the conversation has an item that the model could answer.
    #[error("there is nothing to answer")]
    NoInput,
    /// The conversation has to exist, and does not.
    #[error("there is no such conversation")]
    NoConversation,
    /// Another response of the conversation is running, or a client holds the turn of its thread.
    #[error("another turn of this conversation is running")]
    Locked {
        /// The response that is running; none if a client holds the turn.
        by: Option<ResponseId>,
        /// The time until the turn ends, unless it is renewed.
        left: Duration,
    },
    /// The process runs as many responses as it may.
    #[error("this server runs as many turns as it may")]
    TooMany,
    /// The process is stopping, and another one can continue the response.
    #[error("this server is stopping; repeat the request")]
    Stopping,
    /// It failed, and a repeat goes on with it. Its message may be that of an upstream, which is for the caller alone.
    #[error("the turn failed: {}", .0.code.as_str())]
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
