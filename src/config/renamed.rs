//! Settings whose names have changed. Files, variables and flags may have the earlier names until the next release.

/// The earlier names, each with the present one.
const RENAMED: [(&str, &str); 12] = [
    ("max_connections", "worker_max_connections"),
    ("max_body_memory_bytes", "worker_max_body_bytes"),
    ("memory_max_bytes", "embedded_store_max_bytes"),
    ("turn_max_steps", "response_max_steps"),
    ("turn_max_tool_calls", "response_max_tool_calls"),
    ("turn_max_seconds", "response_max_seconds"),
    ("turn_max_bytes", "response_max_bytes"),
    ("turns_max", "responses_max"),
    ("turn_lease_ms", "response_lease_ms"),
    ("turn_resume_seconds", "response_resume_seconds"),
    ("turn_window", "model_window_exchanges"),
    ("response_window", "model_window_exchanges"),
];

/// The present name of a setting that is given by an earlier one.
pub(super) fn present_name(name: &str) -> Option<&'static str> {
    let renamed = RENAMED.iter().find(|(earlier, _)| *earlier == name);
    renamed.map(|(_, present)| *present)
}

/// The earlier name of a setting.
pub(super) fn earlier_name(name: &str) -> Option<&'static str> {
    let renamed = RENAMED.iter().find(|(_, present)| *present == name);
    renamed.map(|(earlier, _)| *earlier)
}
