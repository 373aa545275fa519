//! Settings that were renamed. Files, variables and flags may still use the earlier names until the next release.

pub(super) type Renamed = (&'static str, &'static str);

const RENAMED: [Renamed; 12] = [
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

pub(super) fn renamed(name: &str) -> Option<Renamed> {
    RENAMED.into_iter().find(|(earlier, _)| *earlier == name)
}

pub(super) fn earlier_names(name: &str) -> impl Iterator<Item = &'static str> {
    let renamed = RENAMED.iter().filter(move |(_, present)| *present == name);
    renamed.map(|(earlier, _)| *earlier)
}
