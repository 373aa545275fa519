use threadkeep_web::ApiError;

/// Returns the error for an invalid parameter, header or body member. `detail` says what is allowed.
pub(crate) fn invalid(detail: impl Into<String>) -> ApiError {
    ApiError::InvalidParameter(detail.into())
}
