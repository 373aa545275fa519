//! Faults of bodies and queries that the client can mend.

/// A difference between a request and the rules, with the code that clients match on.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct Fault {
    pub(super) code: &'static str,
    /// The place, such as `items[3].type`.
    pub(super) param: String,
    message: String,
}

impl Fault {
    pub(super) fn new(code: &'static str, param: impl Into<String>, message: String) -> Self {
        Self {
            code,
            param: param.into(),
            message,
        }
    }

    /// A parameter that is missing.
    pub(super) fn missing(param: impl Into<String>) -> Self {
        let param = param.into();
        let message = format!("Missing required parameter: '{param}'.");
        Self::new("missing_required_parameter", param, message)
    }

    /// A value of another type.
    pub(super) fn wrong_type(param: impl Into<String>, wanted: &str) -> Self {
        let param = param.into();
        let message = format!("Invalid type for '{param}': expected {wanted}.");
        Self::new("invalid_type", param, message)
    }

    /// A value that this server does not take, though others do.
    pub(super) fn unsupported(code: &'static str, param: impl Into<String>, wanted: &str) -> Self {
        let param = param.into();
        let message = format!("Unsupported value for '{param}': expected {wanted}.");
        Self::new(code, param, message)
    }

    /// A value that is not allowed.
    pub(super) fn wrong_value(param: impl Into<String>, wanted: &str) -> Self {
        let param = param.into();
        let message = format!("Invalid value for '{param}': expected {wanted}.");
        Self::new("invalid_value", param, message)
    }
}
