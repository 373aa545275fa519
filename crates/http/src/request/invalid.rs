//! The error of a request that is not as it must be.

use threadkeep_web::ApiError;

/// The error of a parameter, a header or a member of a body; `detail` says what it must be.
pub(crate) fn invalid(detail: impl Into<String>) -> ApiError {
    ApiError::InvalidParameter(detail.into())
}
