use threadkeep_web::ApiError;

/// `detail` says what the parameter, header or body member must be.
pub(crate) fn invalid(detail: impl Into<String>) -> ApiError {
    ApiError::InvalidParameter(detail.into())
}
