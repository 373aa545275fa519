/// An invalid request that the client can fix. Clients check `code`.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct Fault {
    pub(super) code: &'static str,
    /// Path of the parameter, such as `items[3].type`.
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

    pub(super) fn missing(param: impl Into<String>) -> Self {
        let param = param.into();
        let message = format!("Missing required parameter: '{param}'.");
        Self::new("missing_required_parameter", param, message)
    }

    pub(super) fn wrong_type(param: impl Into<String>, expected: &str) -> Self {
        let param = param.into();
        let message = format!("Invalid type for '{param}': expected {expected}.");
        Self::new("invalid_type", param, message)
    }

    /// Returns the fault for a value that this server rejects, although other servers accept it.
    pub(super) fn unsupported(
        code: &'static str,
        param: impl Into<String>,
        expected: &str,
    ) -> Self {
        let param = param.into();
        let message = format!("Unsupported value for '{param}': expected {expected}.");
        Self::new(code, param, message)
    }

    pub(super) fn wrong_value(param: impl Into<String>, expected: &str) -> Self {
        let param = param.into();
        let message = format!("Invalid value for '{param}': expected {expected}.");
        Self::new("invalid_value", param, message)
    }
}
