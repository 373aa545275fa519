//! Errors in the format of OpenAI's clients: `{"error":{"message","type","param","code"}}`. The status is never 409,
//! because the clients automatically retry requests that fail with status 409.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use serde_json::{Value, json};

use super::fault::Fault;
use threadkeep_domain::{Failure, FailureCode, Refusal, ResponseId};
use threadkeep_http::mark_answer_of_replay;
use threadkeep_responses::ResponseError;
use threadkeep_service::ServiceError;
use threadkeep_web::ApiError;

const INVALID: &str = "invalid_request_error";

#[derive(Debug, thiserror::Error)]
pub enum OpenAiError {
    #[error(transparent)]
    Api(ApiError),
    /// The store failed before the request changed anything.
    #[error(transparent)]
    Unchanged(ApiError),
    #[error(transparent)]
    Invalid(#[from] InvalidRequest),
    /// The body of a request for a response is not JSON.
    #[error(transparent)]
    NotJson(ApiError),
    /// The body is JSON, but not an object.
    #[error("The body must be a JSON object.")]
    NotAnObject,
    #[error("Conversation not found.")]
    NoSuchConversation,
    #[error("Item not found in this conversation.")]
    NoSuchItem,
    /// The previous response is not stored, or never existed.
    #[error("Previous response with id '{0}' not found.")]
    NoPreviousResponse(String),
    /// The item in the query parameter `after` was never in the conversation.
    #[error("The item in 'after' was not found in this conversation.")]
    UnknownCursor,
    /// A model response that ended without an answer.
    #[error("{0}")]
    Response(Arc<ResponseError>),
    /// A failed model response. Logs omit the message, which may quote the upstream and is meant only for the caller.
    #[error("the response failed: {}", .failure.code.as_str())]
    Failed {
        failure: Failure,
        /// True if the response had already failed before this request.
        is_replay: bool,
    },
    #[error("Unknown request URL. This server has {}.", served(*.has_models))]
    UnknownUrl {
        /// True if models are configured. Otherwise, `/responses` and `/models` do not exist.
        has_models: bool,
    },
}

/// A request that the client can fix.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct InvalidRequest(Fault);

struct Row {
    status: StatusCode,
    kind: &'static str,
    code: Option<&'static str>,
    param: Option<String>,
    message: String,
}

impl Row {
    fn at(self, param: impl Into<String>) -> Self {
        let param = Some(param.into());
        Self { param, ..self }
    }

    fn of_server(self) -> Self {
        Self {
            kind: "server_error",
            ..self
        }
    }
}

impl From<Arc<ResponseError>> for OpenAiError {
    fn from(error: Arc<ResponseError>) -> Self {
        Self::Response(error)
    }
}

impl From<ResponseError> for OpenAiError {
    fn from(error: ResponseError) -> Self {
        Self::Response(Arc::new(error))
    }
}

impl From<ApiError> for OpenAiError {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

impl From<ServiceError> for OpenAiError {
    fn from(error: ServiceError) -> Self {
        Self::Api(error.into())
    }
}

impl From<Fault> for OpenAiError {
    fn from(fault: Fault) -> Self {
        Self::Invalid(InvalidRequest(fault))
    }
}

impl OpenAiError {
    /// Converts the error of a read.
    pub(super) fn unchanged(error: ServiceError) -> Self {
        Self::Unchanged(error.into())
    }

    /// Converts the error of a request for a model response. Invalid JSON has its own error code in such requests.
    pub(super) fn of_response_request(self) -> Self {
        match self {
            Self::Api(error @ ApiError::InvalidJson(_)) => Self::NotJson(error),
            error => error,
        }
    }

    /// Returns whether the request may have changed something despite the error.
    pub(super) fn is_ambiguous(&self) -> bool {
        match self {
            Self::Api(ApiError::Service(ServiceError::Store(error))) => error.is_ambiguous(),
            _ => false,
        }
    }

    pub(super) fn code_and_message(&self) -> (&'static str, String) {
        let row = self.row();
        (row.code.unwrap_or("server_error"), row.message)
    }

    /// Returns whether a retry can succeed, even though clients by default do not retry the status of this error.
    pub(super) fn is_temporary(&self) -> bool {
        matches!(self, Self::Response(error) if matches!(**error, ResponseError::Locked { .. }))
    }

    /// Returns whether the model response may already have run tool calls, which a repeated request would run again.
    pub(super) fn may_have_run_calls(&self) -> bool {
        match self {
            Self::Failed { .. } => true,
            Self::Response(error) => matches!(
                **error,
                ResponseError::Failed(_)
                    | ResponseError::Stopping
                    | ResponseError::Service(
                        ServiceError::Store(_) | ServiceError::Refused(Refusal::TurnLost)
                    )
            ),
            _ => false,
        }
    }

    /// Returns the value of `Retry-After`. API errors set that header themselves.
    fn retry_after_seconds(&self) -> Option<u64> {
        match self {
            Self::Failed { failure, .. } => failure.retry_after_seconds,
            Self::Response(error) => match &**error {
                ResponseError::Failed(failure) => failure.retry_after_seconds,
                ResponseError::Locked { .. }
                | ResponseError::TooMany
                | ResponseError::Stopping
                | ResponseError::Service(ServiceError::Store(_)) => Some(1),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the running response that blocks the request.
    fn running_response(&self) -> Option<ResponseId> {
        match self {
            Self::Response(error) => match **error {
                ResponseError::Locked { by, .. } => by,
                _ => None,
            },
            _ => None,
        }
    }

    /// Renders the error as a socket event.
    pub(super) fn event(&self) -> String {
        let row = self.row();
        let status = row.status.as_u16();
        let mut event = self.body(row);
        event["type"] = "error".into();
        event["status"] = status.into();
        event.to_string()
    }

    fn body(&self, row: Row) -> Value {
        let mut body = json!({"error": {
            "message": row.message,
            "type": row.kind,
            "param": row.param,
            "code": row.code,
        }});
        if let Some(id) = self.running_response() {
            body["error"]["response_id"] = id.to_string().into();
        }
        body
    }

    fn message(&self) -> String {
        match self {
            Self::Response(error) => response_error_message(error),
            Self::Failed { failure, .. } => failure.message.clone(),
            error => error.to_string(),
        }
    }

    fn row(&self) -> Row {
        let row = |status, code| Row {
            status,
            kind: INVALID,
            code,
            param: None,
            message: self.message(),
        };
        match self {
            Self::Api(error) | Self::Unchanged(error) => row_of(error),
            Self::NotJson(error) => Row {
                code: Some("invalid_json"),
                ..row_of(error)
            },
            Self::Invalid(InvalidRequest(fault)) => {
                row(StatusCode::BAD_REQUEST, Some(fault.code)).at(fault.param.clone())
            }
            Self::NotAnObject => row(StatusCode::BAD_REQUEST, None),
            Self::NoSuchConversation | Self::NoSuchItem => row(StatusCode::NOT_FOUND, None),
            // OpenAI's clients and the Open Responses test suite check this status, code and parameter
            Self::NoPreviousResponse(_) => {
                row(StatusCode::BAD_REQUEST, Some("previous_response_not_found"))
                    .at("previous_response_id")
            }
            Self::UnknownCursor => row(StatusCode::NOT_FOUND, None).at("after"),
            Self::Response(error) => row_of_response_error(error, row),
            Self::Failed { failure, .. } => row_of_failure(failure, row),
            Self::UnknownUrl { .. } => row(StatusCode::NOT_FOUND, Some("unknown_url")),
        }
    }
}

/// Lists the paths below a base URL, for error messages.
fn served(has_models: bool) -> &'static str {
    match has_models {
        true => "/conversations, /responses and /models here",
        false => {
            "/conversations here; /responses and /models need the settings models and upstreams"
        }
    }
}

/// Returns the row for a response without an answer.
fn row_of_response_error(
    error: &ResponseError,
    row: impl Fn(StatusCode, Option<&'static str>) -> Row,
) -> Row {
    let unavailable = |code| row(StatusCode::SERVICE_UNAVAILABLE, Some(code)).of_server();
    match error {
        ResponseError::NoModel => row(StatusCode::NOT_FOUND, Some("model_not_found")).at("model"),
        ResponseError::NoResponse => row(StatusCode::NOT_FOUND, Some("response_not_found")),
        ResponseError::StreamExpired => {
            row(StatusCode::BAD_REQUEST, Some("stream_expired")).at("stream")
        }
        ResponseError::NoSuchEvent => {
            row(StatusCode::BAD_REQUEST, Some("invalid_value")).at("starting_after")
        }
        ResponseError::NoCall { index } => row(StatusCode::BAD_REQUEST, Some("invalid_value"))
            .at(format!("input[{index}].call_id")),
        ResponseError::NoInput => {
            row(StatusCode::BAD_REQUEST, Some("missing_required_parameter")).at("input")
        }
        ResponseError::NoConversation => row(StatusCode::NOT_FOUND, None),
        ResponseError::Locked { .. } => row(StatusCode::BAD_REQUEST, Some("conversation_locked")),
        ResponseError::TooMany => unavailable("too_many_turns"),
        ResponseError::Failed(failure) => row_of_failure(failure, row),
        ResponseError::Service(ServiceError::Refused(Refusal::Destroyed)) => {
            row(StatusCode::GONE, Some("conversation_destroyed"))
        }
        ResponseError::Service(ServiceError::Refused(Refusal::ItemIdReused { item })) => {
            row(StatusCode::BAD_REQUEST, Some("item_id_reused")).at(format!("input[{item}].id"))
        }
        ResponseError::Service(ServiceError::Refused(refusal)) => {
            let problem = ApiError::from(ServiceError::from(*refusal));
            row_of(&problem)
        }
        ResponseError::Stopping | ResponseError::Service(_) => unavailable("store_unavailable"),
    }
}

fn response_error_message(error: &ResponseError) -> String {
    match error {
        ResponseError::NoModel => "The model does not exist or is not configured.".into(),
        ResponseError::NoResponse => "Response not found.".into(),
        ResponseError::StreamExpired => {
            "The events of this response are no longer kept. The response itself may be.".into()
        }
        ResponseError::NoSuchEvent => {
            "Invalid value for 'starting_after': the response has no event with this number.".into()
        }
        ResponseError::NoCall { index } => format!(
            "Invalid value for 'input[{index}].call_id': no call with this id waits for its output."
        ),
        ResponseError::NoInput => {
            "Missing required parameter: 'input'. The conversation has no items to answer.".into()
        }
        ResponseError::Service(ServiceError::Refused(Refusal::ItemIdReused { item })) => format!(
            "Invalid value for 'input[{item}].id': the conversation has another item with this id."
        ),
        ResponseError::NoConversation => OpenAiError::NoSuchConversation.to_string(),
        ResponseError::Locked { .. } => "Another response of this conversation is running, or a client holds its turn. Retry later.".into(),
        ResponseError::TooMany => {
            "The server runs as many responses as `responses_max` allows. Retry later.".into()
        }
        ResponseError::Stopping => "The server is stopping. Send the request again.".into(),
        ResponseError::Service(ServiceError::Store(_)) => "The store is unavailable.".into(),
        ResponseError::Failed(failure) => failure.message.clone(),
        error => error.to_string(),
    }
}

/// Returns the row for a failed response.
fn row_of_failure(failure: &Failure, row: impl Fn(StatusCode, Option<&'static str>) -> Row) -> Row {
    let code = Some(failure.code.as_str());
    let of_server = |status| row(status, code).of_server();
    match failure.code {
        FailureCode::UpstreamRefused => row(StatusCode::BAD_REQUEST, code),
        FailureCode::RateLimitExceeded => Row {
            kind: "requests",
            ..row(StatusCode::TOO_MANY_REQUESTS, code)
        },
        FailureCode::UpstreamError | FailureCode::UpstreamMalformed => {
            of_server(StatusCode::BAD_GATEWAY)
        }
        FailureCode::UpstreamTimeout => of_server(StatusCode::GATEWAY_TIMEOUT),
        FailureCode::ConversationDestroyed => row(StatusCode::GONE, code),
        FailureCode::ConversationTooLarge => row(StatusCode::PAYLOAD_TOO_LARGE, code),
        FailureCode::Abandoned => of_server(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

fn row_of(error: &ApiError) -> Row {
    let problem = error.problem();
    // `turn_taken` becomes 503, because clients retry a 503 but not a 400, and the turn (a thread's lease) ends soon
    let (status, kind, code) = match (problem.status, problem.code) {
        (_, "invalid_json") => (StatusCode::BAD_REQUEST, INVALID, None),
        (StatusCode::UNAUTHORIZED, _) => {
            (StatusCode::UNAUTHORIZED, INVALID, Some("invalid_api_key"))
        }
        (StatusCode::NOT_FOUND | StatusCode::GONE | StatusCode::PRECONDITION_FAILED, _) => {
            (StatusCode::NOT_FOUND, INVALID, None)
        }
        (StatusCode::CONFLICT, "turn_taken") => (
            StatusCode::SERVICE_UNAVAILABLE,
            "server_error",
            Some("turn_taken"),
        ),
        (StatusCode::CONFLICT, code) => (StatusCode::BAD_REQUEST, INVALID, Some(code)),
        (status @ StatusCode::PAYLOAD_TOO_LARGE, "history_too_large") => {
            (status, INVALID, Some("conversation_too_large"))
        }
        (status @ StatusCode::PAYLOAD_TOO_LARGE, _) => (status, INVALID, Some("request_too_large")),
        (StatusCode::BAD_REQUEST, _) => (StatusCode::BAD_REQUEST, INVALID, Some("invalid_value")),
        (status @ StatusCode::TOO_MANY_REQUESTS, _) => {
            (status, "requests", Some("rate_limit_exceeded"))
        }
        (status, _) if status.is_server_error() => {
            (status, "server_error", Some("store_unavailable"))
        }
        (status, code) => (status, INVALID, Some(code)),
    };
    Row {
        status,
        kind,
        code,
        param: None,
        message: message(error).unwrap_or(problem.detail),
    }
}

/// Returns a replacement for the `/v1` message of an API error, or `None` to keep that message.
fn message(error: &ApiError) -> Option<String> {
    match error {
        // writes require that the conversation exists
        ApiError::Service(ServiceError::Refused(
            Refusal::VersionMismatch { .. } | Refusal::Destroyed,
        )) => Some(OpenAiError::NoSuchConversation.to_string()),
        ApiError::BodyTooLarge {
            limit_bytes,
            read_bytes,
        } if read_bytes > limit_bytes => Some(format!(
            "The request body has {read_bytes} bytes or more; the limit is {limit_bytes} bytes."
        )),
        ApiError::Service(ServiceError::Refused(Refusal::HistoryTooLarge {
            limit_bytes,
            size_bytes,
            attempted_bytes,
        })) => Some(format!(
            "The conversation has {size_bytes} bytes and would have {attempted_bytes}; the limit is {limit_bytes} bytes."
        )),
        _ => None,
    }
}

impl actix_web::ResponseError for OpenAiError {
    fn status_code(&self) -> StatusCode {
        self.row().status
    }

    fn error_response(&self) -> HttpResponse {
        let row = self.row();
        let mut response = match self {
            Self::Api(error) | Self::Unchanged(error) => error.error_response(),
            _ => HttpResponse::new(row.status),
        };
        *response.status_mut() = row.status;
        let is_json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, is_json);
        if let Some(seconds) = self.retry_after_seconds() {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        if let Self::Failed {
            is_replay: true, ..
        } = self
        {
            mark_answer_of_replay(&mut response);
        }
        response.set_body(BoxBody::new(self.body(row).to_string()))
    }
}
