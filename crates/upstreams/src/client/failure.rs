//! The reason why an attempt failed, and whether a retry may help.

use std::time::Duration;

use reqwest::Response;
use time::OffsetDateTime;

use super::body::read_whole;
use crate::json::{parse, text};
use crate::retry::requested_wait;
use threadkeep_domain::member;
use threadkeep_responses::UpstreamError;

const REFUSAL_MAX_BYTES: u64 = 65_536;
const MESSAGE_MAX_CHARS: usize = 1_000;
const NO_REASON: &str = "it gave no reason";
/// Maximum `retry_after` that is passed on to callers.
const CALLERS_WAIT_MAX: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub(crate) struct Failure {
    pub(super) error: UpstreamError,
    pub(super) is_temporary: bool,
    /// HTTP status of the response; `None` if it was 2xx or no response arrived.
    pub(super) status: Option<u16>,
    pub(super) requested_wait: Option<Duration>,
}

impl Failure {
    pub(super) fn temporary(error: UpstreamError) -> Self {
        Self {
            error,
            is_temporary: true,
            status: None,
            requested_wait: None,
        }
    }

    pub(super) fn permanent(error: UpstreamError) -> Self {
        Self {
            is_temporary: false,
            ..Self::temporary(error)
        }
    }

    pub(crate) fn malformed() -> Self {
        Self::temporary(UpstreamError::Malformed)
    }

    /// Returns the failure for an answer that exceeds the size limit. A retry would not make the answer shorter.
    pub(crate) fn too_long() -> Self {
        Self::permanent(UpstreamError::Malformed)
    }

    /// Converts an error that arrived with status 200. `error` is compact JSON. Its `code` may be an HTTP status or a
    /// name, and its `type` is a name.
    pub(crate) fn of_error(error: &str) -> Self {
        let code = member(error, "code").unwrap_or_default();
        let status = code
            .parse()
            .ok()
            .filter(|status| (400..600).contains(status));
        let status = status.unwrap_or_else(|| status_of_names(error, text(code).as_deref()));
        if status == 400 {
            let message = message_of(error).unwrap_or_else(|| NO_REASON.into());
            return Self::permanent(UpstreamError::Refused(message));
        }
        Self::of_status(status, None)
    }

    fn of_status(status: u16, requested_wait: Option<Duration>) -> Self {
        match status {
            408 => Self::temporary(UpstreamError::Timeout),
            429 => Self::temporary(UpstreamError::RateLimited {
                retry_after: requested_wait.map(|wait| wait.min(CALLERS_WAIT_MAX)),
            }),
            500.. => Self::temporary(UpstreamError::Failed),
            // includes redirects: the operator must configure the final URL
            _ => Self::permanent(UpstreamError::Rejected),
        }
    }

    /// Returns the failure for a request that got no response. Drops `error`, because it contains the URL.
    pub(super) fn unanswered(error: &reqwest::Error) -> Self {
        Self::temporary(if error.is_timeout() && !error.is_connect() {
            UpstreamError::Timeout
        } else {
            UpstreamError::Failed
        })
    }

    /// Converts a response with a status other than 2xx. Reads the body only if the status is 400.
    pub(super) async fn of_answer(response: Response) -> Self {
        let requested_wait = requested_wait(response.headers(), OffsetDateTime::now_utc());
        let status = response.status().as_u16();
        let failure = match status {
            400 => Self::permanent(UpstreamError::Refused(refusal(response).await)),
            _ => Self::of_status(status, requested_wait),
        };
        Self {
            status: Some(status),
            requested_wait,
            ..failure
        }
    }

    pub(super) fn label(&self) -> &'static str {
        match self.error {
            UpstreamError::Refused(_) => "refused",
            UpstreamError::RateLimited { .. } => "rate limited",
            UpstreamError::Rejected => "rejected",
            UpstreamError::Failed => "failed",
            UpstreamError::Malformed => "malformed",
            UpstreamError::Timeout => "timeout",
        }
    }
}

/// Returns the HTTP status for the `code` and `type` of an error. An `invalid_request_error` with an unknown `code`
/// counts as 401, because errors about request content have no `code` or a known one.
fn status_of_names(error: &str, code: Option<&str>) -> u16 {
    let kind = member(error, "type").and_then(text);
    let kind = kind.as_deref();
    let named = [code, kind].into_iter().flatten().find_map(status_named);
    match (named, code) {
        (Some(status), _) => status,
        (None, None) if kind == Some("invalid_request_error") => 400,
        (None, Some(code)) if code.starts_with("invalid_image") => 400,
        (None, Some(_)) if kind == Some("invalid_request_error") => 401,
        _ => 500,
    }
}

/// Returns the HTTP status for the name of an error. Anthropic sends names as `type`, OpenAI as `code` or `type`.
fn status_named(name: &str) -> Option<u16> {
    Some(match name {
        "context_length_exceeded" | "image_parse_error" | "invalid_prompt" => 400,
        "authentication_error"
        | "billing_error"
        | "invalid_api_key"
        | "model_not_found"
        | "not_found_error"
        | "permission_error"
        | "request_too_large" => 401,
        "timeout_error" => 408,
        "insufficient_quota" | "rate_limit_error" | "rate_limit_exceeded" => 429,
        _ => return None,
    })
}

async fn refusal(response: Response) -> String {
    let body = read_whole(response, REFUSAL_MAX_BYTES).await;
    body.ok()
        .and_then(|body| message(&body))
        .unwrap_or_else(|| NO_REASON.into())
}

/// Returns the message in an error response: `error.message` from OpenAI and Anthropic, otherwise `error` or `message`.
fn message(body: &[u8]) -> Option<String> {
    let json = parse(body)?;
    let body = json.as_str();
    message_of(member(body, "error").unwrap_or(body))
}

fn message_of(error: &str) -> Option<String> {
    let message = text(error).or_else(|| text(member(error, "message")?))?;
    let message: String = message.chars().take(MESSAGE_MAX_CHARS).collect();
    (!message.trim().is_empty()).then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_message_is_found_in_each_form() {
        for (body, expected) in [
            (
                r#"{"error":{"message":"no such tool","code":1}}"#,
                Some("no such tool"),
            ),
            (
                r#"{"type":"error","error":{"message":"long"}}"#,
                Some("long"),
            ),
            (r#"{"error":"model missing"}"#, Some("model missing")),
            (r#"{"object":"error","message":"bad"}"#, Some("bad")),
            (r#"{"error":{"message":5}}"#, None),
            (r#"{"error":{"message":" "}}"#, None),
            (r#"{"error":null}"#, None),
            (r#"[]"#, None),
            ("<html>", None),
        ] {
            assert_eq!(message(body.as_bytes()).as_deref(), expected, "{body}");
        }
        assert_eq!(message(b"{\"message\":\"\xff\"}"), None);
    }

    #[test]
    fn an_error_without_a_status_is_classified_by_name() {
        let refused = |message: &str| UpstreamError::Refused(message.into());
        for (error, expected, is_temporary) in [
            ("null", UpstreamError::Failed, true),
            ("\"overloaded\"", UpstreamError::Failed, true),
            (
                r#"{"type":"overloaded_error"}"#,
                UpstreamError::Failed,
                true,
            ),
            (
                r#"{"code":"server_error","message":"key sk"}"#,
                UpstreamError::Failed,
                true,
            ),
            (r#"{"code":529}"#, UpstreamError::Failed, true),
            (r#"{"code":1301}"#, UpstreamError::Failed, true),
            (r#"{"type":"timeout_error"}"#, UpstreamError::Timeout, true),
            (
                r#"{"type":"tokens","code":"rate_limit_exceeded"}"#,
                UpstreamError::RateLimited { retry_after: None },
                true,
            ),
            (
                r#"{"type":"rate_limit_error","message":"org"}"#,
                UpstreamError::RateLimited { retry_after: None },
                true,
            ),
            (
                r#"{"code":429}"#,
                UpstreamError::RateLimited { retry_after: None },
                true,
            ),
            (
                r#"{"code":403,"message":"a"}"#,
                UpstreamError::Rejected,
                false,
            ),
            (
                r#"{"type":"authentication_error"}"#,
                UpstreamError::Rejected,
                false,
            ),
            (
                r#"{"type":"invalid_request_error","code":"invalid_api_key"}"#,
                UpstreamError::Rejected,
                false,
            ),
            (
                r#"{"type":"invalid_request_error","code":"new"}"#,
                UpstreamError::Rejected,
                false,
            ),
            (r#"{"code":400,"message":"long"}"#, refused("long"), false),
            (
                r#"{"type":"invalid_request_error","code":null,"message":"long"}"#,
                refused("long"),
                false,
            ),
            (
                r#"{"code":"context_length_exceeded"}"#,
                refused(NO_REASON),
                false,
            ),
            (r#"{"code":"invalid_image_url"}"#, refused(NO_REASON), false),
        ] {
            let failure = Failure::of_error(error);

            assert_eq!(failure.error, expected, "{error}");
            assert_eq!(failure.is_temporary, is_temporary, "{error}");
        }
    }

    #[test]
    fn a_message_is_cut_between_characters() {
        let body = format!(r#"{{"message":"{}"}}"#, "ä".repeat(2_000));

        assert_eq!(message(body.as_bytes()).unwrap(), "ä".repeat(1_000));
    }
}
