use serde_json::Value;

use super::wire::Answer;

/// The possible codes of a 503. The `ModelRelay` protocol uses `SERVICE_UNAVAILABLE`.
const UNAVAILABLE: [&str; 5] = [
    "store_unavailable",
    "store_full",
    "overloaded",
    "shutting_down",
    "SERVICE_UNAVAILABLE",
];
/// JSON-RPC 2.0, section 5.1.
const INTERNAL_ERROR: i64 = -32_603;

pub(super) fn fault(answer: &Answer) -> Option<String> {
    let json: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let is_known = |code: &Value| {
        code.as_str()
            .is_some_and(|code| UNAVAILABLE.contains(&code))
    };
    let is_fault = match answer.status {
        // an answer to HEAD has no body, and therefore no code
        503 => !is_known(&json["code"]) && !answer.head.contains("\r\nretry-after:"),
        500.. => true,
        100..=199 => answer.status != 101,
        _ => json["error"]["code"] == INTERNAL_ERROR && !is_known(&json["error"]["data"]["code"]),
    };
    is_fault.then(|| format!("{}\n{}", answer.head, shortened(&answer.body)))
}

pub(super) fn shortened(bytes: &[u8]) -> String {
    const SHOWN: usize = 3_000;
    let shown = bytes[..bytes.len().min(SHOWN)].escape_ascii();
    match bytes.len().saturating_sub(SHOWN) {
        0 => shown.to_string(),
        more => format!("{shown}... and {more} bytes more"),
    }
}
