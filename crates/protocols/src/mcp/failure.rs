use std::error::Error;

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::json;

use super::revision::Revision;
use threadkeep_service::ServiceError;
use threadkeep_web::ToProblem as _;

/// Converts a service error. `data.code` contains the error code of the `/v1` API. The cause of a server error is only
/// logged.
pub(super) fn error_data(error: ServiceError) -> ErrorData {
    let text = error.to_string();
    let problem = error.problem();
    let code = problem.code;
    let mut data = json!({"code": code});
    if problem.status.is_server_error() {
        tracing::warn!(error = &error as &dyn Error, code, "MCP message failed");
        let text = match code {
            "store_full" => "the store is full",
            _ => "the store is not available",
        };
        return ErrorData::internal_error(text, Some(data));
    }
    if code == "scope_not_found" {
        return ErrorData::resource_not_found(text, Some(data));
    }
    if let Some(seconds) = problem.retry_after_seconds {
        data["retry_after_seconds"] = seconds.into();
    }
    ErrorData::invalid_request(text, Some(data))
}

/// Converts a service error for a tool call. Revision 2026-07-28 removed the error code for missing resources, so this
/// function replaces that code for newer revisions. The library replaces the code for all methods except tool calls.
pub(super) fn tool_error(error: ServiceError, revision: Revision<'_>) -> ErrorData {
    let mut data = error_data(error);
    if revision.is_stateless() && data.code == ErrorCode::RESOURCE_NOT_FOUND {
        data.code = ErrorCode::INVALID_PARAMS;
    }
    data
}
